"""Parts of a loop that are compared: its kernels, and where its time goes."""
