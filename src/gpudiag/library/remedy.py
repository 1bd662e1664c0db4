"""A remedy: one fix, described once for each framework that it concerns."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from gpudiag.errors import GpudiagError
from gpudiag.library.yaml_file import read_text
from gpudiag.model import Framework
from gpudiag.model.vocabulary import FRAMEWORKS

FRAMEWORK_HEADINGS: dict[str, Framework] = {words.name: key for key, words in FRAMEWORKS.items()}
MAX_SECTION = 4_000  # characters: four times the longest of ours, and a report may hold hundreds


@dataclass(frozen=True, slots=True)
class RemedyText:
    """A remedy file: one fix, a section for each framework it concerns."""

    id: str
    title: str
    intro: str
    sections: Mapping[Framework, str]
    path: Path


def parse_remedy(path: Path) -> RemedyText:
    """A remedy file: `# Title`, a paragraph, then one `## Framework` section each. Raises GpudiagError."""
    sections: dict[Framework, str] = {}
    title, intro = "", ""
    fence = False
    parts: list[tuple[int, str, list[str]]] = [(1, "", [])]
    for number, line in enumerate(read_text(path).splitlines(), 1):
        fence ^= line.lstrip().startswith("```")
        if not fence and re.match(r"##? \S", line):
            parts.append((number, line, []))
        else:
            parts[-1][2].append(line)
    for number, heading, body in parts[1:]:
        text = "\n".join(body).strip()
        if heading.startswith("# ") and not title:
            title, intro = heading[2:].strip(), text
        elif (framework := FRAMEWORK_HEADINGS.get(heading[3:].strip())) and heading.startswith("## ") and text:
            sections[framework] = text
        else:
            wanted = ", ".join(FRAMEWORK_HEADINGS)
            raise GpudiagError(f"{path}:{number}: {heading!r:.80} is not a filled section of one of: {wanted}.")
    if not title or not intro or not sections:
        raise GpudiagError(f"{path}:1: a remedy is `# Title`, one paragraph, and at least one `## Framework` section.")
    if long := next((text for text in (title, intro, *sections.values()) if len(text) > MAX_SECTION), None):
        raise GpudiagError(f"{path}:1: has a part of {len(long):,} characters; {MAX_SECTION:,} are the most.")
    return RemedyText(path.stem, title, intro, sections, path)
