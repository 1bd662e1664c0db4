"""The report that fits a terminal: all of the first screen, nothing cut off at its side or its end."""

import io
import re

import pytest

import samples
from gpudiag.model import Gain, Job, Report, Unclaimed
from gpudiag.report import markdown, short

CODES = re.compile(r"\x1b(\[[0-9;]*m|\]8;[^\x1b]*\x1b\\)")


class Screen(io.StringIO):
    """Stands for a terminal."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def colours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    for name in ("NO_COLOR", "ACCESSIBLE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PAGER", "cat")


def shown(report: Report, width: int = 80, height: int = 40, encoding: str = "utf-8") -> str:
    stream = Screen()
    stream.encoding = encoding
    short.show(report, stream, width, height)
    return CODES.sub("", stream.getvalue())


def with_findings(count: int) -> Report:
    findings = tuple(samples.launch_bound_finding(rank=n, code=f"U{n:03}") for n in range(1, count + 1))
    return samples.launch_bound().model_copy(update={"findings": findings})


def test_cause_gain_place_and_fix_are_seen() -> None:
    lines = [line.strip() for line in shown(samples.launch_bound()).split("\n")]
    at = lines.index("1. The GPU waits for small kernels to be launched")
    assert lines[at + 1] == "saves  up to 79 % of an iteration: 4.50 ms"
    assert lines[at + 2].startswith("seen   ")
    fix = lines.index("fix    Replay the step as one CUDA graph")
    assert lines[fix - 1] == "where  decode.py:31 in step; :44 in sample"
    assert "decode_token: 5.70 ms an iteration, the GPU computes 20 % of it" in lines


def test_what_was_seen_gives_way_before_a_finding_does() -> None:
    tall, low = (shown(with_findings(5), height=height) for height in (60, 40))
    assert (tall.count("saves "), tall.count("seen ")) == (5, 5)
    assert low.count("saves ") == 5
    assert 0 < low.count("seen ") < 5


def test_only_the_first_sentence_of_a_message_is_seen() -> None:
    finding = samples.launch_bound_finding(message="`a.b` ran 2.5 times. Then `c` ran.")
    text = shown(samples.launch_bound().model_copy(update={"findings": (finding,)}))
    assert "seen   a.b ran 2.5 times.\n" in re.sub(" +\n", "\n", text)


def test_what_all_fixes_leave_stands_above_them() -> None:
    text = " ".join(shown(samples.launch_bound()).split())
    said = "with both fixed, an iteration takes at best 1.18 ms instead of 5.70 ms."
    assert (
        text.index("What to fix, in this order") < text.index(said) < text.index("1. The GPU waits for small kernels")
    )


def test_parts_of_the_only_loop_get_a_line_each() -> None:
    lines = [line.rstrip() for line in shown(samples.launch_bound()).split("\n")]
    at = lines.index("██████░░░░░░░░░░░░░░░░░░░░░░░░ █ computing · ░ idle")
    assert lines[at + 1 : at + 5] == [
        "72 %  idle, the host is launching work",
        "5.1 % idle after the host waited for the GPU",
        "2.2 % idle, the CPU does other work",
        "0.3 % other",
    ]


def test_the_first_line_counts_the_ranks_of_a_job() -> None:
    job = Job(
        ranks=10, hosts=2, reference="rank 3", iterations=4, iteration_ms=10.0, waiting=0.2, at_median_ms=8.0
    )  # fmt: skip
    report = samples.launch_bound().model_copy(update={"job": job})
    assert shown(report).startswith("gpudiag: 10 ranks on 2 hosts, rank 3 in full")


@pytest.mark.slow
@pytest.mark.parametrize("width", [40, 60, 80])
@pytest.mark.parametrize("count", [1, 5, 30])
def test_it_fits_the_terminal(width: int, count: int) -> None:
    lines = shown(with_findings(count), width).rstrip("\n").split("\n")
    assert max(map(len, lines)) <= width
    assert len(lines) <= 40 - short.PROMPT


@pytest.mark.slow
def test_findings_without_room_are_counted() -> None:
    text = shown(with_findings(30))
    listed = len(re.findall(r"^ ?\d+\. ", text, re.MULTILINE))
    assert listed >= 4
    assert f"{30 - listed} more findings with --full." in text


def test_the_only_finding_without_room_is_named() -> None:
    assert "1 more finding with --full: The GPU waits for small kernels to be launched." in shown(
        with_findings(2), height=20
    )


def test_work_outside_the_loop_is_said_where_it_is_much() -> None:
    report = samples.launch_bound()
    for coverage, said in ((0.8, True), (0.99, False)):
        run = report.run.model_copy(update={"mode": "iterations", "coverage": coverage})
        assert ("The loop holds" in shown(report.model_copy(update={"run": run}))) is said


def test_a_low_terminal_shows_the_first_finding() -> None:
    assert "1. The GPU waits for small kernels" in shown(with_findings(9), height=8)


def test_the_verdict_is_shown_where_nothing_was_found() -> None:
    assert "Healthy: the GPU computes 98 %" in shown(samples.healthy())
    assert "What to fix" not in shown(samples.healthy())


def test_a_terminal_without_block_characters_gets_letters() -> None:
    text = shown(samples.launch_bound(), encoding="ascii")
    assert "\n######........................ # computing | . idle\n72 %  idle, the host is launching work\n" in text


def test_names_cannot_send_codes() -> None:
    stream = Screen()
    short.show(samples.hostile(), stream, 80, 40)
    assert not {"\x07", "\u202e"} & set(stream.getvalue())
    assert "\x1b[31m" not in CODES.sub("", stream.getvalue())


@pytest.mark.parametrize("width", range(38, 82, 3))
def test_no_line_ends_between_number_and_unit(width: int) -> None:
    assert not re.search(r"\d\n *(%|ms|µs)", shown(samples.launch_bound(), width))


@pytest.mark.parametrize(("name", "value"), [("TERM", "dumb"), ("ACCESSIBLE", "1")])
def test_what_is_read_out_has_no_bar(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(name, value)
    stream = Screen()
    short.show(samples.launch_bound(), stream, 80, 40)
    text = stream.getvalue()
    assert "\x1b" not in text
    assert not set(text) & set("█▓░─│")
    assert "72 % idle, the host is launching work" in text
    assert "1. The GPU waits for small kernels" in text


@pytest.mark.slow
def test_no_two_empty_lines_follow_each_other() -> None:
    for report in (samples.healthy(), samples.launch_bound(), with_findings(30)):
        assert "\n\n\n" not in re.sub(" +$", "", shown(report), flags=re.MULTILINE)


def test_the_device_is_named() -> None:
    assert shown(samples.launch_bound()).split("\n")[0].endswith("· NVIDIA H200")


def test_a_call_stands_for_a_place_that_is_not_recorded() -> None:
    finding = samples.launch_bound_finding(where=(), evidence={"call_name": "cudaDeviceSynchronize"})
    report = samples.launch_bound().model_copy(update={"findings": (finding,)})
    assert "where  calls of cudaDeviceSynchronize; their lines are not recorded" in shown(report)


def test_unexplained_time_is_shown_below_the_findings() -> None:
    report = samples.launch_bound()
    part = Unclaimed(leaf="input", share=0.2, large=True, calls=("cudaMemcpyAsync",))
    loop = report.run.loops[0].model_copy(update={"unclaimed": (part,)})
    text = " ".join(shown(report.model_copy(update={"run": report.run.model_copy(update={"loops": (loop,)})})).split())
    assert "No finding explains 20 % of an iteration (idle, waiting for input): the next CUDA call was" in text


def test_a_finding_that_adds_nothing_has_a_sentence_and_no_row() -> None:
    """On the terminal and in the file's table; its section stays."""
    values = {"kind": "expected", "basis": "loop", "loop": 1, "before_ms": 10.0, "after_ms": 5.0, "share": 0.5}
    gain = Gain.model_validate({**values, "cumulative_before_ms": 5.0, "cumulative_after_ms": 5.0})
    second = samples.launch_bound_finding(rank=2, code="U002", title="Reads", gain=gain)
    report = with_findings(1)
    report = report.model_copy(update={"findings": (*report.findings, second)})
    page = markdown.render(report)
    said = "No extra gain after those above: {} (2, at the line of finding 1; alone about 50 % of an iteration)."
    assert said.format("Reads") in " ".join(shown(report, width=200).split())
    assert said.format("*Reads*") in page
    assert "2. Reads" not in shown(report) and "| 2 |" not in page
    assert "### 2. Reads" in page
