"""Reports: one module per format, each `render(report) -> str`."""
