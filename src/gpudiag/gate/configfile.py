"""gpudiag.toml: where it is, and what is wrong with it."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from gpudiag import files
from gpudiag.errors import GpudiagError
from gpudiag.gate.config import Budget, Config, Findings, Suppression
from gpudiag.library.rule_file import near
from gpudiag.text.parse import shown

NAME = "gpudiag.toml"
SHARED = "pyproject.toml"
LARGEST = 1_000_000  # bytes
_ROOTS = (".git", ".hg")
_TABLES: dict[str, type[BaseModel]] = {"": Config, "findings": Findings}
_WANTED = {
    "reason": "say why the finding is accepted",
    "until": "say until when, such as until = 2027-03-31",
    "code": "say which rule, such as S01",
}


def find(start: Path) -> Path | None:
    """The nearest configuration: in `start` or a folder above it, as far up as the repository goes."""
    folders = [start, *start.parents]
    root = next((i for i, folder in enumerate(folders) if any((folder / name).exists() for name in _ROOTS)), 0)
    for folder in folders[: root + 1]:
        if (folder / NAME).is_file():
            return folder / NAME
        shared = folder / SHARED
        if shared.is_file() and _section(shared, _toml(shared)) is not None:
            return shared
    return None


def read(path: Path) -> Config:
    """The configuration in the file. Raises GpudiagError that names file and key."""
    content = _toml(path)
    if path.name == SHARED:
        section = _section(path, content)
        if section is None:
            raise GpudiagError(f"{path} has no table [tool.gpudiag].")
        content = section
    try:
        return Config.model_validate(content)
    except ValidationError as error:
        # An unknown key explains a missing one, so it is named first.
        first = min(error.errors(), key=lambda one: one["type"] != "extra_forbidden")
        raise GpudiagError(f"{path}: {_sentence(first)}") from None


def _toml(path: Path) -> dict[str, Any]:
    try:
        # Editors of Windows put a byte order mark at the start.
        return tomllib.loads(files.content(path, LARGEST, "configuration").decode("utf-8-sig"))
    except OSError as error:
        raise GpudiagError(f"{path} cannot be read ({error.strerror}).") from None
    except UnicodeDecodeError:
        raise GpudiagError(f"{path} is not TOML: it is not UTF-8 text.") from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        reason = str(error)[:200] or "nested too deeply"  # it may quote a key of any length
        raise GpudiagError(f"{path} is not TOML: {reason}.") from None
    except ValueError:  # int() refuses thousands of digits
        raise GpudiagError(f"{path} is not TOML: a number in it has too many digits.") from None


def _section(path: Path, content: dict[str, Any]) -> dict[str, Any] | None:
    tool = content.get("tool")
    section = tool.get("gpudiag") if isinstance(tool, dict) else None
    if section is not None and not isinstance(section, dict):
        raise GpudiagError(f"{path}: tool.gpudiag is {shown(section)}, but should be a table.")
    return section


def _sentence(error: Any) -> str:
    """Return pydantic's complaint as a sentence that names the key as TOML writes it."""
    loc, kind = tuple(error["loc"]), error["type"]
    key = _key(loc)
    if kind == "extra_forbidden":
        return (
            f"there is no key {key}{near(str(loc[-1]), _known(loc)) or '; known are ' + ', '.join(_known(loc)) + '.'}"
        )
    if kind == "missing":
        return f"{_key(loc[:-1])} lacks {loc[-1]}: {_WANTED.get(str(loc[-1]), 'it is required')}."
    if kind == "value_error":
        return f"{key} {error['ctx']['error']}."
    given = shown(error["input"])
    if kind == "literal_error":
        return f"{key} is {given}, but should be one of {error['ctx']['expected'].replace(chr(39), chr(34))}."
    if kind == "string_pattern_mismatch":
        return f"{key} is {given}, no code of a rule such as S01; `gpudiag rules list` shows all."
    if kind in ("model_type", "dict_type"):
        return f"{key} is {given}, but should be a table ([{key}])."
    if kind == "tuple_type":
        return f"{key} is {given}, but should be a list{' ([[' + key + ']])' if key.endswith('suppress') else ''}."
    if kind == "string_too_short":
        return f"{key} is empty."
    return f"{key} is {given}: {error['msg'][:1].lower()}{error['msg'][1:]}."


def _key(loc: tuple[str | int, ...]) -> str:
    text = ""
    for part in loc:
        if isinstance(part, int):
            text += f"[{part + 1}]"
        else:
            bare = part.replace("_", "").replace("-", "").isalnum() and part.isascii()
            text += ("." if text else "") + (part if bare else f'"{part}"')
    return text or "the file"


def _known(loc: tuple[str | int, ...]) -> list[str]:
    """The keys that may stand where the unknown one does."""
    if loc[0] == "budgets" and len(loc) > 1:
        return list(Budget.model_fields)
    if "suppress" in loc[:-1]:
        return list(Suppression.model_fields)
    return list(_TABLES["findings" if loc[0] == "findings" and len(loc) > 1 else ""].model_fields)
