"""Two sides of reports → what changed, and whether the change is more than what two recordings differ by."""

from gpudiag.compare.compare import compare

__all__ = ["compare"]
