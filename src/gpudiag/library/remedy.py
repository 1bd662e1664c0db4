"""A remedy: one fix, described once for each framework that it concerns."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from gpudiag.errors import GpudiagError
from gpudiag.library.yaml_file import read_text
from gpudiag.model import Framework, Remedy, RemedyGain
from gpudiag.model.vocabulary import FRAMEWORKS

FRAMEWORK_HEADINGS: dict[str, Framework] = {words.name: key for key, words in FRAMEWORKS.items()}
MAX_HINT = 60  # characters, so that a line of a terminal has room for it
MAX_SECTION = 4_000  # characters: four times the longest of ours, and a report may hold hundreds


@dataclass(frozen=True, slots=True)
class RemedyText:
    """A remedy file: one fix, a section for each framework it concerns. hints: what to write there, in a few words."""

    id: str
    title: str
    intro: str
    sections: Mapping[Framework, str]
    hints: Mapping[Framework, str]
    path: Path

    def remedy(self, framework: Framework, gain: RemedyGain | None = None) -> Remedy:
        """Return the fix in that framework, as a report prints it; in general terms where no section is for it."""
        text = f"{self.intro}\n\n{self.sections.get(framework, '')}".strip()
        hint = self.hints.get(framework, "")
        return Remedy(id=self.id, title=self.title, framework=framework, text=text, hint=hint, gain=gain)


def parse_remedy(path: Path) -> RemedyText:
    """A remedy file: `# Title`, a paragraph, then one `## Framework: hint` section each. Raises GpudiagError.

    The hint, with the colon before it, may be left out.
    """
    sections: dict[Framework, str] = {}
    hints: dict[Framework, str] = {}
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
        elif (framework := FRAMEWORK_HEADINGS.get(_name(heading))) and heading.startswith("## ") and text:
            sections[framework] = text
            hints[framework] = heading.partition(": ")[2].strip()
        else:
            wanted = ", ".join(FRAMEWORK_HEADINGS)
            raise GpudiagError(f"{path}:{number}: {heading!r:.80} is not a filled section of one of: {wanted}.")
    if not title or not intro or not sections:
        raise GpudiagError(f"{path}:1: a remedy is `# Title`, one paragraph, and at least one `## Framework` section.")
    if long := next((text for text in (title, intro, *sections.values()) if len(text) > MAX_SECTION), None):
        raise GpudiagError(f"{path}:1: has a part of {len(long):,} characters; {MAX_SECTION:,} are the most.")
    if long := next((hint for hint in hints.values() if len(hint) > MAX_HINT), None):
        raise GpudiagError(f"{path}:1: the hint {long!r:.80} has {len(long)} characters; {MAX_HINT} are the most.")
    return RemedyText(path.stem, title, intro, sections, hints, path)


def _name(heading: str) -> str:
    """`PyTorch` of the heading ``## PyTorch: `torch.compile` ``."""
    return heading[3:].partition(": ")[0].strip()
