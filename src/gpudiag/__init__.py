"""gpudiag reads what NVIDIA's profilers recorded and says what is slow, why, where, and what each fix is worth."""

from typing import TYPE_CHECKING, Any

from gpudiag.errors import GpudiagError

__version__ = "0.1.0"
__all__ = ["Diff", "GpudiagError", "Recording", "Report", "__version__", "diff", "explain", "profile", "read"]

if TYPE_CHECKING:
    from gpudiag.api import Diff, Recording, Report, diff, explain, profile, read
else:

    def __getattr__(name: str) -> object:
        """The names of `gpudiag.api`, loaded with what they need when the first of them is asked for."""
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from gpudiag import api

        return getattr(api, name)

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})


def load_ipython_extension(shell: Any) -> None:
    """Make `%%gpudiag` known to IPython, which calls this for `%load_ext gpudiag`."""
    from gpudiag.api import cell_magic

    cell_magic.register(shell)
