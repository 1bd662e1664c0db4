"""The page: whole, self-contained, every link lands, nothing of a capture is more than text."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import samples
from captures import named, report_of
from evaluation.corpus import CAPTURES
from evaluation.packed import recording
from gpudiag import pipeline
from gpudiag.model import Kernel, Report
from gpudiag.report import formats, json_format, markdown
from gpudiag.report.html import page, tables
from gpudiag.report.html.roofline import CLOCKS, roofline
from gpudiag.report.html.track import WIDTH, drawing
from gpudiag.timeline import tracks
from gpudiag.timeline.model import FixPreview, Name, Picture, Row, Slice, Timeline

HOSTILE = '</script><img src=x onerror="alert(1)">\u202e--><svg onload=alert(2)>{{ 7 * 7 }}\x1b[31m\'"`*_&lt;'
VOID = {"meta", "br", "hr", "img", "input", "link"}


class Parsed(HTMLParser):
    """Elements with their attributes, the text of scripts and styles, and whether all that opens is closed."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.open: list[str] = []
        self.inside: dict[str, list[str]] = {"script": [], "style": []}
        self.text = ""
        self.faults: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {key: value or "" for key, value in attrs}))
        if tag not in VOID:
            self.open.append(tag)
        if tag in self.inside:
            self.inside[tag].append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {key: value or "" for key, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.faults.append(tag)

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in self.inside:
            self.inside[self.open[-1]][-1] += data
        else:
            self.text += data

    def values(self, attribute: str) -> list[str]:
        return [attributes[attribute] for _, attributes in self.elements if attribute in attributes]


def one_timeline(key: str = "loop1", name: str = "gemm", rank: int | None = 1, loop: int | None = 1) -> Timeline:
    """Synthetic."""
    rows = (
        Row("f1", "finding", name, (Slice(10, 50, "mark", 0, 1),), rank=rank),
        Row("n0", "nvtx", name, (Slice(0, 1000, "range", 0, 1),)),
        Row("h0", "host", "CUDA calls", (Slice(0, 100, "launch", 0, 3),)),
        Row("g0", "gpu", name, (Slice(0, 400, "compute", -1, 1), Slice(400, 600, "idle_sync", 0, 1))),
        Row("s0", "stream", name, (Slice(0, 400, "kernel", 0, 1),)),
    )
    return Timeline(key, 0, 1000, rows if rank is not None else rows[1:], (Name(name, name),), loop, 3, (name,))


def picture(name: str = "gemm") -> Picture:
    """Synthetic."""
    preview = FixPreview(
        1, 5.7, 1.2, 1.0, 2.0, (Row("s0", "stream", name, (Slice(0, 9, "kernel", 0, 1),)),), (), (Name(name, name),)
    )
    return Picture((one_timeline(name=name),), one_timeline("run", name, 1, None), preview)


def fattened(value: Any, poison: str) -> Any:
    """Every text of a report, hostile; what has a fixed vocabulary stays."""
    fixed = {"state", "kind", "basis", "status", "severity", "confidence", "framework", "frameworks", "source", "code",
             "id", "limit", "fingerprint", "mode", "precision"}  # fmt: skip
    if isinstance(value, dict):
        return {key: item if key in fixed else fattened(item, poison) for key, item in value.items()}
    if isinstance(value, list):
        return [fattened(item, poison) for item in value]
    return f"{value} {poison}" if isinstance(value, str) else value


@pytest.fixture(scope="module")
def real() -> tuple[Report, Picture | None]:
    return pipeline.pictured([recording(CAPTURES / "nbody_host_arrays" / "slow")])


@pytest.fixture(scope="module")
def drawn(real: tuple[Report, Picture | None]) -> str:
    return page.render(*real)


@pytest.mark.capture
def test_the_page_is_whole_and_every_link_in_it_lands(drawn: str) -> None:
    parsed = Parsed(drawn)
    assert parsed.faults == [] and parsed.open == []
    ids = parsed.values("id")
    assert len(ids) == len(set(ids))
    inside = [href[1:] for href in parsed.values("href") if href.startswith("#")]
    assert {"finding-1", "mark-loop0-1", "mark-run-1", "timeline"} <= set(inside)
    assert set(inside) <= set(ids)


@pytest.mark.capture
def test_a_kernel_of_the_table_is_found_on_the_timeline(real: tuple[Report, Picture | None], drawn: str) -> None:
    listed = {row.full for row in tables.by_kernel(real[0]).rows if row.full}
    named: set[str] = set()
    for one in Parsed(drawn).inside["script"][:-1]:
        named |= {names[-1] for names in json.loads(one)["names"]}  # the script compares full names
    assert listed and listed <= named


@pytest.mark.capture
def test_it_says_what_the_markdown_report_says(real: tuple[Report, Picture | None], drawn: str) -> None:
    said = re.sub(r"\W+", " ", Parsed(drawn).text)
    for finding in real[0].findings:
        for summary in (finding.title, finding.message, finding.why, finding.not_a_problem_when):
            assert re.sub(r"\W+", " ", summary).strip() in said
        for remedy in finding.remedies[: markdown.FIXES]:
            assert re.sub(r"\W+", " ", remedy.title).strip() in said


@pytest.mark.capture
def test_causes_places_and_fixes_come_before_the_timeline(drawn: str) -> None:
    said = Parsed(drawn).text
    assert said.index("What to fix, in this order") < said.index("Fix: ") < said.index("Zoom with")
    assert " open" not in "".join(re.findall(r"<details class=\"finding[^>]*>", drawn)), "details are folded"


@pytest.mark.capture
def test_nothing_is_loaded_and_only_this_pages_script_runs(drawn: str) -> None:
    parsed = Parsed(drawn)
    assert parsed.values("src") == [] and parsed.values("style") == []
    assert not any(key.startswith("on") for _, attributes in parsed.elements for key in attributes)
    assert "@import" not in drawn and not re.search(r"url\((?!#)", "".join(parsed.inside["style"]))
    policy = next(a["content"] for _, a in parsed.elements if a.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'") and "unsafe" not in policy
    scripts = [a for tag, a in parsed.elements if tag == "script" and a.get("type") != "application/json"]
    assert len(scripts) == 1
    from gpudiag.report.html.markup import digest

    assert digest(parsed.inside["script"][-1]) in policy and digest(parsed.inside["style"][0]) in policy


@pytest.mark.capture
def test_a_page_of_a_small_capture_stays_small(drawn: str) -> None:
    assert len(drawn.encode()) <= 400_000


def test_hostile_names_stay_text() -> None:
    report = samples.launch_bound()
    poisoned = Report.model_validate(fattened(json.loads(json_format.render(report)), HOSTILE))
    clean = Parsed(page.render(report, picture()))
    parsed = Parsed(page.render(poisoned, picture(HOSTILE)))
    assert parsed.faults == [] and parsed.open == []
    tags = {tag for tag, _ in parsed.elements}
    assert tags <= {tag for tag, _ in clean.elements} | {"ul", "ol", "li", "em", "strong", "pre", "h3"}
    assert "onload" not in tags and not any(key.startswith("on") for _, a in parsed.elements for key in a)
    assert "\u202e" not in parsed.text and "\x1b" not in parsed.text and "49" not in parsed.text.split("{{")[-1][:12]
    for block in parsed.inside["script"][:-1]:
        data = json.loads(block)
        assert any("</script>" in part for names in data["names"] for part in names)
    assert all(link.startswith(("#", "https://")) for link in parsed.values("href"))


@pytest.mark.parametrize("name", samples.ALL)
def test_every_kind_of_report_makes_a_whole_page(name: str) -> None:
    parsed = Parsed(page.render(samples.ALL[name]()))
    assert parsed.faults == [] and parsed.open == []
    assert {href[1:] for href in parsed.values("href") if href.startswith("#")} <= set(parsed.values("id"))
    assert not {tag for tag, _ in parsed.elements} & {"img", "iframe", "object", "form", "base"}


@pytest.mark.capture
def test_a_saved_report_says_why_it_shows_no_timeline(real: tuple[Report, Picture | None]) -> None:
    text = formats.render(real[0], "html")
    parsed = Parsed(text)
    assert "a saved report holds no timeline" in parsed.text
    assert real[0].findings[0].title in parsed.text and "timeline-loop0" not in parsed.values("id")
    assert {href[1:] for href in parsed.values("href") if href.startswith("#")} <= set(parsed.values("id"))


def test_the_static_drawing_has_a_bound_whatever_is_drawn() -> None:
    parts = [Slice(at, 1, "kernel", -1, 1) for at in range(0, 200_000, 2)]
    assert len(drawing(parts, 200_000)) < 100
    spread = [Slice(at * 10, 1, "kernel" if at % 2 else "set", -1, 1) for at in range(100_000)]
    assert len(drawing(spread, 1_000_000)) < 30 * WIDTH


def crowded(key: str, ns: int, slices: int, loop: int | None) -> Timeline:
    """Synthetic: a timeline with as many slices of every kind of row as the capture's reader gives."""
    step = ns // slices
    busy = tuple(Slice(at * step + at % 97, step - 977, "kernel", at % 90, 1 + at % 7) for at in range(slices))
    half = tuple(Slice(at * 2 * step, step, "mark", -1, 1) for at in range(slices // 2))
    groups = [("finding", half), *((group, busy) for group in ("nvtx", "host", "gpu", "stream"))]
    rows = tuple(Row(group, group, group, own, rank=1 if group == "finding" else None) for group, own in groups)
    return Timeline(key, 0, ns, rows, tuple(Name(f"k{at}", f"void k{at}<{'x' * 150}>") for at in range(90)), loop)


def test_a_page_of_the_most_that_is_drawn_stays_small() -> None:
    whole = Picture(
        (crowded("loop1", 25_000_000, tracks.SLICES_ITERATION, 1),),
        crowded("run", 3_740_000_000, tracks.SLICES_RUN, None),
    )
    text = page.render(samples.launch_bound(), whole)
    assert 250_000 < len(text.encode()) <= 400_000  # the least: so that it tells something


@pytest.mark.capture
def test_the_script_can_tell_where_each_slice_starts() -> None:
    timeline = crowded("loop1", 100_000, 9, 1)
    drawn = Parsed(page.render(samples.launch_bound(), Picture((timeline,))))
    for row, data in zip(timeline.rows, json.loads(drawn.inside["script"][0])["rows"], strict=True):
        end, starts = 0, []
        for at in range(0, len(data), 5):  # start, length, kind, name, count
            starts.append(data[at] + end)
            end = starts[-1] + data[at + 1]
        assert starts == [one.start for one in row.slices]


@pytest.mark.capture
def test_a_kernel_is_drawn_at_its_intensity_and_bandwidth() -> None:
    report = report_of(named("stencil_spills/slow.raw.csv"))
    drawing = roofline(report.run.kernels)
    assert drawing
    (roof,) = drawing.roofs
    facts = report.run.kernels[0].facts
    assert roof.ridge == f"{facts['ridge']:.0f}"
    dot = drawing.dots[0]
    assert float(dot.x.rstrip("%")) < float(roof.ridge_x.rstrip("%"))  # fewer operations a byte than the ridge
    assert float(dot.y.rstrip("%")) > float(drawing.roof_y.rstrip("%"))  # below the roof
    assert f"{facts['dram_pct']:.0f} %" in dot.summary


def measured(name: str, precision: str, ridge: float, **facts: float) -> Kernel:
    """Synthetic."""
    known = {"intensity": 3.0, "dram_pct": 60.0, "limit": "dram", "busy_pct": 60.0, "precision": precision}
    return Kernel(name=name, launches=1, duration_ms=1.0, facts={**known, "ridge": ridge, **facts})


def test_all_kernels_are_on_one_roofline() -> None:
    kernels = [measured(f"k{at}", "fp32", 13.0 + at / 10) for at in range(12)]  # at other clocks, on one GPU
    kernels += [measured("double", "fp64", 7.0), measured("integers", "fp32", 13.0, intensity=0.0)]
    drawing = roofline(kernels)
    assert drawing
    assert [roof.precision for roof in drawing.roofs] == ["single-precision", "double-precision"]
    assert [dot.kind for dot in drawing.dots] == [0] * 12 + [1]
    assert [dot.number for dot in drawing.dots] == [*range(1, 11), 0, 0, 0]
    assert drawing.missing == 1
    other_gpu = roofline([*kernels, measured("elsewhere", "fp32", 14.1 * CLOCKS)])
    assert other_gpu and len(other_gpu.roofs) == 3
    assert roofline([kernels[-1]]) is None


@pytest.mark.capture
def test_explain_writes_a_page_with_timelines(tmp_path: Path) -> None:
    from click.testing import CliRunner

    from gpudiag.cli import main

    out = tmp_path / "report.html"
    done = CliRunner().invoke(
        main, ["explain", str(recording(CAPTURES / "nbody_host_arrays" / "slow")), "--format", "html", "-o", str(out)]
    )
    assert done.exit_code == 0, done.output
    assert "timeline-run" in Parsed(out.read_text("utf-8")).values("id")


def test_the_bar_of_a_finding_shows_the_saving_in_green() -> None:
    text = page.render(samples.launch_bound())
    gain = samples.launch_bound().findings[0].gain
    assert gain.before_ms and gain.after_ms is not None
    found = re.search(r'<rect class="k-saved" x="([\d.]+)%" width="([\d.]+)%"', text)
    assert found
    assert float(found[1]) == pytest.approx(100 * gain.after_ms / gain.before_ms, abs=0.1)
    assert float(found[1]) + float(found[2]) == pytest.approx(100, abs=0.1)
    assert "what the fix would save</span>" in text
    none = samples.launch_bound().model_copy(update={"findings": ()})
    assert "what the fix would save" not in page.render(none)
