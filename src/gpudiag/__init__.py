"""gpudiag reads what NVIDIA's profilers recorded and says what is slow, why, where, and what each fix is worth."""

__version__ = "0.1.0"
