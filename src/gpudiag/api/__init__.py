"""What `import gpudiag` offers to programs and notebooks: the command line's answers as objects."""

from gpudiag.api.calls import diff, explain, read
from gpudiag.api.difference import Diff
from gpudiag.api.report import Report

__all__ = ["Diff", "Report", "diff", "explain", "read"]
