"""The house rules that no linter knows: who may import whom, what start-up may load, how long things may be."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

from paths import ROOT

SOURCE = ROOT / "src" / "gpudiag"
MODULES = sorted(SOURCE.rglob("*.py"))

# Who may import whom, besides errors, model and schema, which all may. A folder stands for its modules, which may
# import each other. Stages stand in the order in which data passes them; none names a later one.
MAY_IMPORT: dict[str, set[str]] = {
    "errors": set(), "model": set(), "schema": set(), "tracing": set(), "files": set(), "lockfile": set(),
    "text": set(), "library": set(), "store": set(), "loops": set(),
    "memory": {"text"},
    "tempdir": {"lockfile"},
    "selection": {"loops", "store", "text"},
    "options": {"selection"},
    "remote": set(),
    "cache": {"library", "lockfile", "options", "remote", "text"},
    "jit": {"cache"},
    "ingest": {"jit", "remote", "tracing"},
    "replay": {"jit", "store"},
    "prepare": {
        "cache", "ingest", "library", "loops", "memory", "options", "replay", "selection", "store", "tempdir",
        "tracing",
    },
    "evaluate": {"library", "store", "text"},
    "jobs": {
        "cache", "evaluate", "ingest", "library", "memory", "options", "prepare", "remote", "store", "tempdir", "text",
        "tracing",
    },
    "diagnosis": {"evaluate", "library", "replay", "selection", "text"},
    "timeline": {"replay", "text"},
    "answer": {"cache", "diagnosis", "ingest", "options", "timeline"},
    "next_steps": {"diagnosis", "evaluate", "library", "replay", "store", "text"},
    "compare": {"diagnosis", "text"},
    "gate": {"diagnosis", "files", "library", "text"},
    "github": set(),
    "capture": {"library"},  # for its thresholds, where it is not the single file of the recorder
    "report": {"diagnosis", "files", "gate", "ingest", "library", "next_steps", "remote", "text", "timeline"},
}  # fmt: skip
# These chain the stages, or serve those who write rules; nothing above may import them.
CHAINS = {"pipeline", "api", "authoring", "cli", "__init__", "__main__"}
HEAVY = {"duckdb", "polars", "numba", "numpy", "jinja2", "rich", "adbc_driver_manager", "yaml", "pydantic", "urllib3"}

MAX_MODULE_LINES = 300
MAX_FUNCTION_LINES = 60


def owner(path: Path) -> str:
    """The module's name, or its package's: `report/markdown.py` → `report`."""
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


def imported(path: Path) -> set[str]:
    """Modules of ours that a file imports anywhere, functions included."""
    found: set[str] = set()
    for node in ast.walk(tree(path)):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name}: relative import in line {node.lineno}"
            base = node.module or ""
            names = [f"gpudiag.{a.name}" for a in node.names] if base == "gpudiag" else [base]
        found |= {name.split(".")[1] for name in names if name.startswith("gpudiag.")}
    return found - {"__version__"}


def test_modules_import_only_what_their_stage_may() -> None:
    shared = {"errors", "model", "schema"}
    foreign = {}
    for path in MODULES:
        who = owner(path)
        if who in CHAINS:
            continue
        assert who in MAY_IMPORT, f"{path.name}: which folder does it belong to? Give a new one a line in MAY_IMPORT."
        allowed = MAY_IMPORT[who] | {who} | (shared if who not in shared else set())
        foreign[str(path.relative_to(SOURCE))] = imported(path) - allowed
    assert {path: names for path, names in foreign.items() if names} == {}


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


def test_modules_and_functions_stay_short() -> None:
    lines = {str(path.relative_to(SOURCE)): path.read_text("utf-8").count("\n") for path in MODULES}
    assert {path for path, count in lines.items() if count > MAX_MODULE_LINES} == set()
    long = [
        f"{path.name}: {node.name}: {node.end_lineno - node.lineno + 1} lines"
        for path in MODULES
        for node in ast.walk(tree(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.end_lineno is not None
        and node.end_lineno - node.lineno >= MAX_FUNCTION_LINES
    ]
    assert long == []


MAX_MODULES = 14
# A class or a module may bear the name of another where the folder says which one is meant.
SAME_CLASS = {
    "Report": "api wraps the model's for Python users",
    "Diff": "the same",
}
SAME_MODULE = {"api", "cli", "report", "model", "ingest"}


def test_folders_hold_few_modules() -> None:
    folders = [folder for folder in (SOURCE, *SOURCE.rglob("*")) if folder.is_dir()]
    crowded = {str(folder.relative_to(SOURCE)): len(list(folder.glob("*.py"))) for folder in folders}
    assert {folder: count for folder, count in crowded.items() if count > MAX_MODULES} == {}
    assert len([path for path in SOURCE.iterdir() if path.is_file()]) <= MAX_MODULES


def test_no_name_stands_for_two_things() -> None:
    classes: dict[str, set[str]] = {}
    modules: dict[str, set[str]] = {}
    for path in MODULES:
        place = str(path.relative_to(SOURCE))
        for node in tree(path).body:
            if isinstance(node, ast.ClassDef):
                classes.setdefault(node.name, set()).add(place)
        if not path.stem.startswith("__") and owner(path) not in SAME_MODULE:
            modules.setdefault(path.stem, set()).add(place)
    assert {name for name, places in classes.items() if len(places) > 1} == set(SAME_CLASS)
    assert {name: places for name, places in modules.items() if len(places) > 1} == {}


MAX_TEST_NAME = 60


def test_names_of_tests_stay_short() -> None:
    found = {
        node.name
        for path in (ROOT / "tests").rglob("test_*.py")
        for node in ast.walk(tree(path))
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }
    assert found
    assert sorted(name for name in found if len(name) > MAX_TEST_NAME) == []


CODE = re.compile(r"\b[ACDHKLMNOPQSW]\d{2}\b")
# Where a rule stands as an example for users.
NAMES_RULES = {
    "model/finding.py": "descriptions of the report's schema",
    "model/kernel.py": "the same",
    "gate/config.py": "descriptions of the configuration's schema",
    "gate/configfile.py": "what an error suggests",
    "gate/init.py": "the configuration to start from",
    "api/frames.py": "descriptions of columns",
    "cli/rules.py": "examples in the help",
    "cli/arguments.py": "examples in the help",
}


def test_no_code_decides_by_a_rules_code() -> None:
    found: set[str] = set()
    for path in MODULES:
        parsed = tree(path)
        documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        texts = {
            id(node.body[0].value)
            for node in ast.walk(parsed)
            if isinstance(node, documented) and node.body and isinstance(node.body[0], ast.Expr)
        }
        for node in ast.walk(parsed):
            is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
            if is_text and id(node) not in texts and CODE.search(node.value):  # type: ignore[attr-defined]
                found.add(str(path.relative_to(SOURCE)))
    assert found == set(NAMES_RULES)
