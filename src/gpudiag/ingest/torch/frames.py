"""Frames of Python stacks as torch.profiler names functions: `torch/nn/modules/module.py(1776): _wrapped_call_impl`."""

from __future__ import annotations

import re
import sys
from typing import NamedTuple

_NAME = re.compile(r"(.*)\((-?\d+)\): (.*)", re.DOTALL)

_PACKAGES = frozenset({
    "accelerate", "apex", "bitsandbytes", "cupy", "cv2", "datasets", "deepspeed", "diffusers", "einops",
    "fbgemm_gpu", "flash_attn", "fsspec", "huggingface_hub", "jax", "joblib", "lightning", "lightning_fabric",
    "megatron", "numba", "numpy", "pandas", "peft", "PIL", "pyarrow", "pytorch_lightning", "safetensors", "scipy",
    "sklearn", "tensorboard", "timm", "tokenizers", "torch", "torch_geometric", "torchaudio", "torchdata",
    "torchmetrics", "torchrec", "torchvision", "tqdm", "transformer_engine", "transformers", "triton", "webdataset",
    "xformers",
})  # fmt: skip
"""Packages whose code is not the user's. The profiler leaves out the folder that a module was found in, so that paths
of packages and of the user's own modules look alike.
"""


class Frame(NamedTuple):
    """A function on a stack; the line is where its definition begins where `exact` was not asked for, so it is left
    out.
    """

    function: str
    file: str | None
    line: int | None


def parse(text: str, *, exact: bool = False) -> Frame:
    """exact: the number in the text is the line that was running, as in PyTorch 1.8, and not that of the definition."""
    found = _NAME.fullmatch(text)
    if not found or found[1].startswith("<"):
        return Frame(text, None, None)
    line = int(found[2])
    return Frame(found[3], placed(found[1]), line if exact and 0 < line < 1 << 31 else None)


def placed(file: str) -> str:
    """The file, below the folder that Python keeps its library or packages in where it is not the user's."""
    path = file.replace("\\", "/")
    if path.startswith("/") or ":" in path[:3]:
        return file
    top, _, below = path.partition("/")
    if top in _PACKAGES:
        return f"/site-packages/{path}"
    if top.removesuffix(".py") in sys.stdlib_module_names and (below or top.endswith(".py")):
        return f"/lib/python3/{path}"
    return file


def of_stack(text: str) -> list[Frame]:
    """The frames of a `Call stack`, innermost first."""
    return [parse(part, exact=True) for part in text.split(";") if part]
