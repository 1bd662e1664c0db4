"""Every command that the documents show runs, or its block says what it needs.

A block of shell lines whose title says "needs a GPU" (or the network, or one of NVIDIA's profilers) is not run. All
others are, page by page in one folder, on bundled recordings that stand for the reader's.
"""

from __future__ import annotations

import gzip
import lzma
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from captures import named
from gpudiag.cli import main
from paths import CAPTURES, ROOT

pytestmark = pytest.mark.capture

NEEDS = {"needs a GPU", "needs the network", "needs Nsight Systems", "needs Nsight Compute"}
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
OTHERS = [ROOT / "fixtures/README.md", ROOT / "fixtures/wild/README.md", *(ROOT / "docs").glob("*/**/*.md")]
BLOCK = re.compile(r'```(?:sh|bash|console)(?: title="([^"\n]*)")?\n(.*?)```', re.DOTALL)
GENERATED = re.compile(r"<!-- [\w ]+: generated -->.*?<!-- end -->", re.DOTALL)  # what wrote these ran them

# The reader's files, and the recordings that stand for them.
FILES = {
    "report.sqlite": "transpose/slow-naive.sqlite.xz",
    "main.sqlite": "transpose/slow-naive.sqlite.xz",
    "before.sqlite": "transpose/slow-naive.sqlite.xz",
    "after.sqlite": "transpose/fixed.sqlite.xz",
    "kernels.csv": "transpose/slow-naive.raw.csv.xz",
    "smi.csv": "transpose/smi.csv.xz",
    "a.pstats": "game_of_life_small/slow.pstats.xz",
    "rank0.sqlite": "ddp_slow_rank/fixed.rank0",
    "rank1.sqlite": "ddp_slow_rank/fixed.rank1",
}
TRACE = "rollout_eager/fixed.pt.trace.json.xz"  # trace.json.gz, and all of traces/
# Names and times of the reader's program, and those of the recordings.
WORDS = {
    "step=3.57ms": "iter=1.05ms",
    "train_step=41.5ms": "iter=1.05ms",
    "train_step=43.0ms": "iter=1.06ms",
    "20s:25s": "0.45s:0.48s",
    "step": "iter",
    "3": "1",  # --rank
    "0": "1",  # --device, which the second of two ranks has
}
ITSELF = {"scripts/test.sh", ".ci/run"}


def blocks(page: Path) -> Iterator[tuple[str, list[str]]]:
    """The title of each block of shell lines, and its lines."""
    for title, text in BLOCK.findall(GENERATED.sub("", page.read_text("utf-8"))):
        yield title, text.replace("\\\n", " ").splitlines()


def lines(page: Path) -> list[list[str]]:
    """The words of every line that should run anywhere."""
    found = [shlex.split(line, comments=True) for title, block in blocks(page) if not title for line in block]
    return [words for words in found if words and words[-1] not in ITSELF]


def own(page: Path) -> list[list[str]]:
    """The lines of a page but for those that an earlier page has, too, and after which no other line asks."""
    before = [words for other in PAGES[: PAGES.index(page)] for words in lines(other)]
    return [words for words in lines(page) if words not in before or words[-1].endswith(".json")]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_block_that_is_not_run_says_what_it_needs(page: Path) -> None:
    for title, block in blocks(page):
        assert title in NEEDS | {""}
        words = [word for line in block for word in shlex.split(line, comments=True)]
        reads = {word for word in words if word.endswith((".nsys-rep", ".ncu-rep"))}
        assert title or not reads, f"{reads} can be opened only with NVIDIA's tools"


def test_pages_that_are_not_run_say_so_in_each_block() -> None:
    """The remedies of rules are for the machine that is slow."""
    silent = [page.name for page in OTHERS for title, _ in blocks(page) if title not in NEEDS]
    assert silent == []
    assert any(title for page in OTHERS for title, _ in blocks(page))


@pytest.mark.parametrize("page", [page for page in PAGES if own(page)], ids=lambda page: page.name)
def test_commands_shown_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    prepare(own(page))
    for words in own(page):
        assert words[0] in {"gpudiag", "sh"}, f"{words}: say what it needs, or run it here"
        if words[0] == "sh":
            assert (ROOT / words[1]).is_file()  # set-up and demonstration: the latter's own line is run below
            words = ["gpudiag", "explain", str(CAPTURES / "item_every_stage/slow.sqlite.xz")]
        done = CliRunner().invoke(main, [part for word in words[1:] for part in expanded(WORDS.get(word, word))])
        assert done.exit_code in (0, 1), f"{shlex.join(words)}: {done.output}"
        assert not isinstance(done.exception, Exception), f"{shlex.join(words)}: {done.exception!r}"


def expanded(word: str) -> list[str]:
    """A pattern of files becomes the files, as in a shell."""
    return sorted(str(path) for path in Path().glob(word)) if "*" in word else [word]


def prepare(wanted: list[list[str]]) -> None:
    """Put the files that the lines name into the working directory."""
    words_shown = {word for words in wanted for word in words}
    for name, source in FILES.items():
        if name in words_shown or (name.startswith("rank") and "rank*.sqlite" in words_shown):
            held = named(source)
            Path(name).write_bytes(lzma.decompress(held.read_bytes()) if held.suffix == ".xz" else held.read_bytes())
    Path("traces").mkdir()
    Path("trace.json.gz").write_bytes(gzip.compress(lzma.decompress((CAPTURES / TRACE).read_bytes()), 1))
    shutil.copy("trace.json.gz", "traces")
    if ["gpudiag", "check", "report.sqlite", "--init"] not in wanted:
        Path("gpudiag.toml").write_text("[budgets.iter]\nlaunches = 100000\n", "utf-8")
    scaffold = ["rules", "new", "sync", "my-smell", "--code", "U01", "--dir", "my-rules"]
    if "my-rules" in words_shown:
        assert CliRunner().invoke(main, scaffold).exit_code == 0
