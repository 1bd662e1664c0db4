"""The GitHub Action: its steps run as a runner runs them, against a GitHub on localhost; its documented examples."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

import forked
from captures import report_of
from evaluation.corpus import CAPTURES, ROOT
from evaluation.packed import plain, stored
from fakegithub import BOT, PR, REPO, TOKEN, GitHub, serve
from gpudiag.report import saved as load

pytestmark = pytest.mark.slow

ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
STEPS: list[dict[str, Any]] = ACTION["runs"]["steps"]
PAGE = (ROOT / "docs" / "github.md").read_text("utf-8")
EXAMPLES = sorted((ROOT / "docs" / "examples").glob("*.yml"))
SHA = "c" * 40


# A runner


@dataclass
class Outcome:
    """What a run of the action left: its log, the summary, the outputs, and whether it passed."""

    ok: bool = True
    log: str = ""
    summary: str = ""
    steps: dict[str, dict[str, str]] = field(default_factory=dict)
    ran: list[str] = field(default_factory=list)

    @property
    def outputs(self) -> dict[str, str]:
        return {name: expand(out["value"], {}, self.steps) for name, out in ACTION["outputs"].items()}


def value(expression: str, inputs: Mapping[str, str], steps: Mapping[str, Mapping[str, str]]) -> str:
    """An expression of the few kinds that the action uses."""
    name = expression.strip()
    if match := re.fullmatch(r"inputs\.([\w-]+)", name):
        assert match[1] in ACTION["inputs"], f"{match[1]} is no input"
        return inputs[match[1]]
    if match := re.fullmatch(r"steps\.([\w-]+)\.outputs\.([\w-]+)", name):
        assert match[1] in {step.get("id") for step in STEPS}, f"{match[1]} is no step"
        return steps.get(match[1], {}).get(match[2], "")
    if name == "github.token":
        return TOKEN
    raise AssertionError(f"what is {name}?")


def expand(text: str, inputs: Mapping[str, str], steps: Mapping[str, Mapping[str, str]]) -> str:
    return re.sub(r"\$\{\{(.*?)\}\}", lambda match: value(match[1], inputs, steps), str(text))


def wanted(step: Mapping[str, Any], inputs: Mapping[str, str]) -> bool:
    if "if" not in step:
        return True
    match = re.fullmatch(r"(.+?) (==|!=) '([^']*)'", step["if"])
    assert match, f"what is {step['if']}?"
    return (value(match[1], inputs, {}) == match[3]) == (match[2] == "==")


def run_action(folder: Path, environ: Mapping[str, str], **given: str) -> Outcome:
    """The action's steps, one after the other, until one fails."""
    inputs = {name: expand(item.get("default", ""), {}, {}) for name, item in ACTION["inputs"].items()}
    inputs |= {name.replace("_", "-"): text for name, text in given.items()}
    place = folder / "runner"
    place.mkdir(exist_ok=True)
    outcome = Outcome()
    for number, step in enumerate(STEPS):
        if not wanted(step, inputs):
            continue
        assert step["shell"] == "bash"
        script, output = place / f"{number}.sh", place / f"{number}.out"
        summary = place / f"{number}.md"
        script.write_text(step["run"], "utf-8")
        output.touch()
        env = {
            "PATH": os.environ["PATH"], "HOME": str(folder), "RUNNER_TEMP": str(place), "GITHUB_ACTIONS": "true",
            "GITHUB_ACTION_PATH": str(ROOT), "GITHUB_OUTPUT": str(output), "GITHUB_STEP_SUMMARY": str(summary),
            "GITHUB_WORKSPACE": str(folder), **environ,
            **{name: expand(text, inputs, outcome.steps) for name, text in step.get("env", {}).items()},
        }  # fmt: skip
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)]
        done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
        outcome.ran.append(step["name"])
        outcome.log += done.stdout + done.stderr
        outcome.summary += summary.read_text("utf-8") if summary.exists() else ""
        lines = [line.partition("=") for line in output.read_text("utf-8").splitlines()]
        outcome.steps[step.get("id", step["name"])] = {name: text for name, _, text in lines}
        if done.returncode:
            outcome.ok = False
            break
    return outcome


@pytest.fixture(scope="module")
def gpudiag() -> Iterator[str]:
    """This checkout's gpudiag, as one that is installed already."""
    with forked.command() as command:
        yield command


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A repository with two captures, one of them in a folder with a space, and a saved report of each."""
    program = CAPTURES / "item_every_stage"
    (tmp_path / "my profiles").mkdir()
    for variant, place in (("slow", tmp_path / "my profiles"), ("fixed", tmp_path)):
        capture = stored(program / variant)
        (place / f"{variant}.sqlite").write_bytes(plain(capture).read_bytes())
        (tmp_path / f"{variant}.json").write_text(report_of(capture).model_dump_json(), "utf-8")
    return tmp_path


@pytest.fixture
def hub() -> Iterator[GitHub]:
    with serve() as hub:
        yield hub


def environ(hub: GitHub, folder: Path, name: str, event: object) -> dict[str, str]:
    """What Actions say of a run."""
    path = folder / "event.json"
    path.write_text(json.dumps(event), "utf-8")
    return {
        "GITHUB_API_URL": hub.url, "GITHUB_REPOSITORY": REPO, "GITHUB_EVENT_NAME": name, "GITHUB_EVENT_PATH": str(path),
    }  # fmt: skip


Run = Callable[..., Outcome]


@pytest.fixture
def on_pull_request(hub: GitHub, workspace: Path, gpudiag: str) -> Run:
    run = environ(hub, workspace, "pull_request", {"pull_request": {"number": PR}})
    return lambda **given: run_action(workspace, run, command=gpudiag, **given)


# The action


def test_a_capture_becomes_annotations_comment_and_outputs(on_pull_request: Run, hub: GitHub) -> None:
    done = on_pull_request(files="my profiles/slow.sqlite", comment="true")
    assert done.ok, done.log
    assert done.summary.startswith("# gpudiag: `slow.sqlite`\n")
    assert re.search(r"^::(error|warning|notice) .*S01", done.log, re.MULTILINE)
    (body,) = hub.by(BOT)
    assert body.startswith("<!-- gpudiag -->\n")
    assert "S01" in body
    assert done.outputs["state"] == "problems"
    assert done.outputs["code"] == "S01"
    report = load.read(Path(done.outputs["report"]))
    assert int(done.outputs["findings"]) == len(report.findings) > 0
    assert TOKEN not in done.log + done.summary
    assert on_pull_request(files="my profiles/slow.sqlite", comment="true").ok
    assert hub.by(BOT) == [body]


def test_what_is_switched_off_stays_off(on_pull_request: Run, hub: GitHub) -> None:
    done = on_pull_request(files="fixed.json", summary="false", annotations="false")
    assert done.ok, done.log
    assert (done.summary, hub.requests) == ("", [])
    assert "::" not in done.log
    assert done.outputs["state"]


def test_a_base_makes_it_a_comparison(on_pull_request: Run, hub: GitHub) -> None:
    done = on_pull_request(files="my profiles/slow.sqlite", base="fixed.sqlite", comment="true", key="train")
    assert done.ok, done.log
    (body,) = hub.by(BOT)
    assert body.startswith("<!-- gpudiag:train -->\n")
    for page in (done.summary, body):
        assert "base.json" in page or "fixed.sqlite" in page
        assert "S01" in page


def test_inputs_are_paths_or_patterns_and_quoted_options(on_pull_request: Run) -> None:
    rules = Path(ROOT / "rules")
    done = on_pull_request(
        files="\n  my profiles/s*.sqlite  \n", rules=f"\n {rules}\n", args="--set 'S01.max_bytes=0' --verbose",
        annotations="false",
    )  # fmt: skip
    assert done.ok, done.log
    assert "reading slow.sqlite" in done.log
    assert done.outputs["code"] != "S01"


@pytest.mark.parametrize("args", ["-o evil", "--format html", "--output=evil.html --format=markdown"])
def test_an_option_does_not_take_the_report_elsewhere(on_pull_request: Run, workspace: Path, args: str) -> None:
    done = on_pull_request(files="fixed.json", args=args, summary="false", annotations="false")
    assert done.ok, done.log
    assert load.read(Path(done.outputs["report"])).schema_version
    assert list(workspace.glob("evil*")) == []


def test_what_cannot_be_compared_is_reported_as_well(on_pull_request: Run, hub: GitHub, workspace: Path) -> None:
    saved = on_pull_request(files="fixed.json", summary="false", annotations="false").outputs["report"]
    report = load.read(Path(saved))
    other = report.model_copy(update={"run": report.run.model_copy(update={"devices": ("NVIDIA A100",)})})
    (workspace / "other.json").write_text(other.model_dump_json(), "utf-8")
    done = on_pull_request(files=saved, base="other.json", comment="true", annotations="false")
    assert done.ok, done.log
    assert "NVIDIA A100" in done.summary
    assert "NVIDIA A100" in hub.by(BOT)[0]


@pytest.mark.parametrize("name", ["files", "args", "base", "base_args", "rules", "key", "pr", "fail_on"])
def test_no_input_is_run_as_code(on_pull_request: Run, workspace: Path, name: str) -> None:
    given = {"files": "fixed.json", "comment": "true", "summary": "false", "annotations": "false"}
    if name in ("args", "base_args"):  # options are for captures
        given |= {"files": "fixed.sqlite", "base": "fixed.sqlite"}
    given[name] = "$(touch planted) `touch planted` \"; touch planted; \" '; touch planted; '"
    assert not on_pull_request(**given).ok
    assert not (workspace / "planted").exists()


def test_a_file_that_looks_like_an_option_is_a_file(on_pull_request: Run, workspace: Path) -> None:
    (workspace / "fixed.sqlite").rename(workspace / "--help.sqlite")
    done = on_pull_request(files="*.sqlite")
    assert done.ok, done.log
    assert "--help.sqlite" in done.summary


def test_a_damaged_capture_fails_with_its_sentence(on_pull_request: Run, workspace: Path, hub: GitHub) -> None:
    (workspace / "fixed.sqlite").write_bytes(b"SQLite format 3\0")
    done = on_pull_request(files="fixed.sqlite", comment="true")
    assert not done.ok
    assert "gpudiag: fixed.sqlite" in done.log
    assert hub.requests == []


def test_the_gate_fails_after_everything_was_reported(on_pull_request: Run, hub: GitHub) -> None:
    done = on_pull_request(files="slow.json", comment="true", fail_on="low")
    assert not done.ok
    assert done.ran[-1] == STEPS[-1]["name"]
    assert done.summary
    assert len(hub.by(BOT)) == 1
    assert "::error title=gpudiag::" in done.log


def test_a_push_has_nothing_to_comment_on(hub: GitHub, workspace: Path, gpudiag: str) -> None:
    run = environ(hub, workspace, "push", {"ref": "refs/heads/main"})
    done = run_action(workspace, run, command=gpudiag, files="fixed.json", comment="true")
    assert done.ok, done.log
    assert "::notice title=gpudiag::" in done.log
    assert hub.requests == []


def test_a_summary_over_githubs_limit_becomes_the_short_form(on_pull_request: Run, workspace: Path) -> None:
    saved = on_pull_request(files="slow.json").outputs["report"]
    report = load.read(Path(saved))
    many = tuple(
        finding.model_copy(update={"code": f"S{number}", "rank": number, "message": "Long. " * 300})
        for number in range(100, 999)
        for finding in report.findings[:1]
    )
    (workspace / "large.json").write_text(report.model_copy(update={"findings": many}).model_dump_json(), "utf-8")
    done = on_pull_request(files="large.json", annotations="false")
    assert done.ok, done.log
    assert 1000 < len(done.summary.encode()) < 1024 * 1024


def test_a_forks_second_workflow_comments_from_the_report(
    on_pull_request: Run, hub: GitHub, workspace: Path, gpudiag: str
) -> None:
    saved = Path(on_pull_request(files="slow.json").outputs["report"])
    content = json.loads(saved.read_text("utf-8"))
    content["findings"][0]["why"] = "[a present](https://evil.example/)"
    content["findings"][0]["code"] += "\nstate=healthy"  # would set another output
    (workspace / "report.json").write_text(json.dumps(content), "utf-8")
    head = {"head_sha": SHA, "head_branch": "fix", "head_repository": {"owner": {"login": "forker"}}}
    hub.pulls = [{"number": PR, "head": {"owner": "forker", "ref": "fix", "sha": SHA}}]
    run = environ(hub, workspace, "workflow_run", {"workflow_run": {**head, "pull_requests": []}})
    inputs = dict.fromkeys(("summary", "annotations"), "false")
    done = run_action(workspace, run, command=gpudiag, files="report.json", comment="true", **inputs)
    assert done.ok, done.log
    assert (done.outputs["state"], done.outputs["code"]) == ("problems", "")
    assert "evil.example" not in hub.by(BOT)[0]


def test_the_action_installs_itself_unless_switched_off(tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    for name, text in (("scripts/setup.sh", 'echo "setup $1"'), (".venv/bin/gpudiag", "#!/bin/sh\necho gpudiag 0")):
        (checkout / name).parent.mkdir(parents=True)
        (checkout / name).write_text(f"{text}\n", "utf-8")
        (checkout / name).chmod(0o755)
    done = run_action(tmp_path, {"GITHUB_ACTION_PATH": str(checkout)}, files="none.sqlite")
    assert done.log.startswith("setup run\ngpudiag 0\n")
    assert done.steps["install"] == {"command": f"{checkout}/.venv/bin/gpudiag"}


# What is written of it


def test_no_script_holds_an_expression() -> None:
    assert [step["name"] for step in STEPS if "${{" in step["run"]] == []
    assert all(step["run"].startswith("set -euo pipefail\n") for step in STEPS)


def used(example: Path) -> list[dict[str, Any]]:
    jobs = yaml.safe_load(example.read_text("utf-8"))["jobs"].values()
    return [step for job in jobs for step in job["steps"] if "/gpudiag@" in step.get("uses", "")]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_an_example_stands_in_the_page_and_uses_what_there_is(example: Path) -> None:
    blocks = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    assert example.read_text("utf-8") in blocks
    steps = used(example)
    assert steps
    for step in steps:
        assert set(step["with"]) <= set(ACTION["inputs"])
        assert "files" in step["with"]
    outputs = set(re.findall(r"steps\.gpudiag\.outputs\.([\w-]+)", example.read_text("utf-8")))
    assert outputs <= set(ACTION["outputs"])


def test_the_page_names_every_input_and_output_as_it_is() -> None:
    for name in (*ACTION["inputs"], *ACTION["outputs"]):
        assert f"`{name}`" in PAGE


def test_the_two_workflows_fit_together() -> None:
    first, second = (
        yaml.safe_load((ROOT / "docs" / "examples" / name).read_text("utf-8"))
        for name in ("gpudiag-explain.yml", "gpudiag-comment.yml")
    )
    (upload,) = [s for s in first["jobs"]["explain"]["steps"] if "upload-artifact" in s.get("uses", "")]
    (download,) = [s for s in second["jobs"]["comment"]["steps"] if "download-artifact" in s.get("uses", "")]
    assert upload["with"]["name"] == download["with"]["name"]
    assert second[True]["workflow_run"]["workflows"] == [first["name"]]  # YAML reads `on` as true
    assert first["permissions"] == {"contents": "read"}
    steps = second["jobs"]["comment"]["steps"]
    assert [step for step in steps if "run" in step or "checkout" in step.get("uses", "")] == [], "runs a fork's code"
    assert second["jobs"]["comment"]["permissions"] == {"actions": "read", "pull-requests": "write"}
    assert steps[-1]["with"]["files"].startswith(f"{download['with']['path']}/")
