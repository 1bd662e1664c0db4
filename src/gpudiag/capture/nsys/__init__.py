"""Recording by Nsight Systems: the installed version, its command line, and the export that is kept."""
