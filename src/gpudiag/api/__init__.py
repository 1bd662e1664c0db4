"""The command line's answers as objects, for programs and notebooks: everything that `import gpudiag` offers."""

from gpudiag.api.calls import diff, explain, read
from gpudiag.api.difference import Diff
from gpudiag.api.recording import Recording, profile
from gpudiag.api.report import Report

__all__ = ["Diff", "Recording", "Report", "diff", "explain", "profile", "read"]
