"""The house rules that no linter knows: who may import whom, what start-up may load, how long things may be."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[1] / "src" / "gpudiag"
MODULES = sorted(SOURCE.rglob("*.py"))

# Who may import whom, besides errors, model and tables, which all may. A package stands for its modules, which may
# import each other. A new module needs a line here: the question is which stage it belongs to. Stages stand in the
# order in which data passes them, and none names a later one.
MAY_IMPORT: dict[str, set[str]] = {
    "errors": set(),
    "model": set(),
    "tables": set(),
    "stages": set(),
    "jit": set(),
    "duration": set(),
    "bytesize": set(),
    "selection": {"duration"},
    "memory": {"bytesize"},
    "options": {"selection"},
    # The knowledge, and what reading it takes.
    "yamlfile": set(),
    "templating": set(),
    "sqlfunctions": set(),
    "sqlcheck": {"sqlfunctions"},
    "viewdoc": set(),
    "rulefolder": {"yamlfile"},
    "remedy": {"yamlfile"},
    "library": {"remedy", "rulefolder", "viewdoc", "yamlfile"},
    # What runs write down, for themselves and for the next one.
    "lockfile": set(),
    "workfolder": {"lockfile"},
    "cache": {"bytesize", "library", "lockfile", "options"},
    # The stages.
    "ingest": {"jit", "stages"},
    "store": set(),
    "period": set(),
    "loops": set(),
    "loops_nvtx": {"loops"},
    "loops_period": {"loops", "period"},
    "query": set(),
    "part": {"loops"},
    "selecting": {"loops", "part", "query", "selection", "templating"},
    "window": {"loops", "loops_nvtx", "loops_period", "part"},
    "child": set(),
    "sandbox": {"child", "library", "query", "sqlcheck"},
    "rowcheck": set(),
    "evaluate": {"library", "query", "rowcheck", "sandbox", "sqlcheck", "templating"},
    "replay": {"jit"},
    "where": set(),
    "plausible": set(),
    "kernels": {"plausible", "templating"},
    "rank": {"evaluate", "kernels", "library", "replay", "templating", "where"},
    "summary": {"kernels", "library", "selecting", "templating"},
    "candidates": {"evaluate", "library", "query", "replay"},
    "picture": {"replay", "templating"},
    "ncucommand": set(),
    "proposals": {"candidates", "ncucommand", "templating"},
    "contradiction": {"templating"},
    "budgetparts": set(),
    "wholefile": set(),
    "comparison": {"budgetparts", "contradiction", "templating"},
    "gate": {"budgetparts", "contradiction", "duration", "library", "templating", "wholefile"},
    "report": {"picture", "gate", "proposals", "templating"},
    "frames": {"report"},
    "savedreport": {"library", "plausible", "wholefile"},
    "transport": set(),
    "github": {"transport"},
    "pullrequest": {"github"},
}
# These chain the stages, or serve those who write rules; nothing above may import them.
CHAINS = {"opening", "pipeline", "api", "nextsteps", "rulelint", "rulecheck", "authoring", "cli"} | {
    "__init__",
    "__main__",
}
HEAVY = {"duckdb", "polars", "numba", "numpy", "jinja2", "rich", "adbc_driver_manager", "yaml", "pydantic", "urllib3"}

MAX_MODULE_LINES = 350
MAX_FUNCTION_LINES = 70


def owner(path: Path) -> str:
    """The module's name, or its package's: `report/markdown.py` → `report`."""
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported(path: Path) -> set[str]:
    """Modules of ours that a file imports anywhere, functions included."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name}: relative import in line {node.lineno}"
            base = node.module or ""
            names = [f"gpudiag.{a.name}" for a in node.names] if base == "gpudiag" else [base]
        found |= {name.split(".")[1] for name in names if name.startswith("gpudiag.")}
    return found - {"__version__"}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_module_imports_only_what_its_stage_may(path: Path) -> None:
    who = owner(path)
    if who in CHAINS:
        return
    assert who in MAY_IMPORT, f"{path.name}: which stage does it belong to? Give it a line in MAY_IMPORT."
    shared = {"errors", "model", "tables"}
    allowed = MAY_IMPORT[who] | {who} | (shared if who not in shared else set())
    assert imported(path) <= allowed


def test_the_map_is_in_order_and_names_only_modules() -> None:
    assert set(MAY_IMPORT) <= {owner(path) for path in MODULES}
    order = list(MAY_IMPORT)
    later = [(who, name) for who, names in MAY_IMPORT.items() for name in names if order.index(name) > order.index(who)]
    assert later == []


def test_help_loads_nothing_heavy() -> None:
    script = (
        "import sys\n"
        "from gpudiag.cli import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        "print('loaded:', *sorted(set(sys.argv[1:]) & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", script, *HEAVY], capture_output=True, text=True, check=True)
    assert done.stdout.strip().splitlines()[-1] == "loaded:"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_modules_and_functions_stay_short(path: Path) -> None:
    text = path.read_text("utf-8")
    assert text.count("\n") <= MAX_MODULE_LINES
    long = [
        f"{node.name}: {node.end_lineno - node.lineno + 1} lines"
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.end_lineno is not None
        and node.end_lineno - node.lineno >= MAX_FUNCTION_LINES
    ]
    assert long == []
