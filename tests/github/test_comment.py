"""`gpudiag comment` against a GitHub on localhost: one comment of ours, whatever the network, others or a fork do."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, ClassVar

import pytest
from click.testing import CliRunner, Result

import samples
from fakegithub import BOT, OTHER_USER, PR, REPO, TOKEN, Failure, GitHub, serve
from gpudiag.cli import comment as command
from gpudiag.cli import main
from gpudiag.errors import GpudiagError
from gpudiag.github import client, pull_request
from gpudiag.github import http as transport
from gpudiag.github.pull_request import Head, Target

MARK = "<!-- gpudiag -->"
BODY = f"{MARK}\nThe report.\n"
WHERE = Target(REPO, PR)
SHA = "a" * 40


class Time:
    """A clock that only ever moves when somebody waits."""

    def __init__(self) -> None:
        self.at = 1_700_000_000.0
        self.waits: list[float] = []

    def now(self) -> float:
        return self.at

    def sleep(self, seconds: float) -> None:
        self.at += seconds
        self.waits.append(seconds)


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    time = Time()
    monkeypatch.setattr(client, "CLOCK", client.Clock(time.now, time.sleep))
    return time


@pytest.fixture
def hub(time: Time, monkeypatch: pytest.MonkeyPatch) -> Iterator[GitHub]:
    for variable in ("GH_TOKEN", "GITHUB_REPOSITORY", "GITHUB_EVENT_PATH", "GITHUB_ACTIONS"):
        monkeypatch.delenv(variable, raising=False)
    with serve() as hub:
        for variable, value in hub.environ().items():
            monkeypatch.setenv(variable, value)
        yield hub


def publish(hub: GitHub, body: str = BODY, mark: str = MARK) -> str:
    return pull_request.publish(client.connect(hub.environ(), str(WHERE)), WHERE, body, mark).action


def refusal(hub: GitHub) -> str:
    with pytest.raises(GpudiagError) as caught:
        publish(hub)
    return str(caught.value)


# One comment


def test_the_first_run_creates_the_comment_later_ones_edit_it(hub: GitHub) -> None:
    assert publish(hub) == "created"
    assert publish(hub, BODY + "More.") == "updated"
    assert publish(hub, BODY + "More.") == "unchanged"
    assert hub.by(BOT) == [BODY + "More."]


def test_a_comment_behind_250_others_is_found(hub: GitHub) -> None:
    for number in range(250):
        hub.add(f"Remark {number}", OTHER_USER)
    hub.add(f"{MARK}\r\nAn old report")
    assert publish(hub) == "updated"
    assert hub.by(BOT) == [BODY]
    assert hub.methods() == ["GET", "GET", "GET", "PATCH"]


def test_a_key_has_a_comment_of_its_own(hub: GitHub) -> None:
    publish(hub)
    assert publish(hub, "<!-- gpudiag:train -->\nTraining", "<!-- gpudiag:train -->") == "created"
    assert publish(hub, "<!-- gpudiag:train -->\nTraining again", "<!-- gpudiag:train -->") == "updated"
    assert hub.by(BOT) == [BODY, "<!-- gpudiag:train -->\nTraining again"]


def test_a_marker_that_another_user_planted_is_left_alone(hub: GitHub) -> None:
    planted = f"{MARK}\nAll is well, merge me."
    hub.add(planted, OTHER_USER)
    assert publish(hub) == "created"
    assert publish(hub, BODY + "More.") == "updated"
    assert hub.by(OTHER_USER) == [planted]
    assert hub.by(BOT) == [BODY + "More."]


def test_a_comment_that_only_quotes_the_marker_is_another(hub: GitHub) -> None:
    hub.add(f"> {MARK}\nsomebody asked about this")
    assert publish(hub) == "created"
    assert len(hub.by(BOT)) == 2


def test_of_two_comments_of_a_past_race_the_first_is_kept(hub: GitHub) -> None:
    kept = hub.add(f"{MARK}\nOld")
    hub.add("Between", OTHER_USER)
    hub.add(f"{MARK}\nOld too")
    assert publish(hub) == "updated"
    assert hub.by(BOT) == [BODY]
    assert kept["body"] == BODY
    assert hub.by(OTHER_USER) == ["Between"]


def test_two_runs_at_the_same_time_leave_one_comment(hub: GitHub, monkeypatch: pytest.MonkeyPatch) -> None:
    def create(api: client.Api, method: str, *rest: Any) -> client.Answer:
        if method == "POST" and "issues" in rest[0] and not hub.comments:
            hub.add(f"{MARK}\nOf the other run")
        return once(api, method, *rest)

    once = client.Api.once
    monkeypatch.setattr(client.Api, "once", create)
    publish(hub)
    assert hub.by(BOT) == [BODY]


def test_a_comment_that_two_pages_show_is_one(hub: GitHub) -> None:
    hub.add(f"{MARK}\nOld")
    for number in range(99):
        hub.add(f"Remark {number}", OTHER_USER)
    again = f'<{hub.url}/repos/{REPO}/issues/{PR}/comments?per_page=100&page=1>; rel="next"'
    hub.failures = [Failure("GET", 200, headers={"Link": again}, content=hub.comments)]
    assert publish(hub) == "updated"
    assert hub.by(BOT) == [BODY]


@pytest.mark.slow
@pytest.mark.parametrize("status", [404, 410])
@pytest.mark.parametrize("left", [0, 1])
def test_a_comment_that_is_deleted_meanwhile_is_replaced(hub: GitHub, status: int, left: int) -> None:
    gone = dict(hub.add(f"{MARK}\nOld"))
    hub.comments.clear()
    if left:
        hub.add("Between", OTHER_USER)
        hub.add(f"{MARK}\nOld too")
    # The first list still shows it.
    hub.failures = [Failure("GET", 200, content=[gone]), Failure("PATCH", status, "Gone")]
    assert publish(hub) == ("updated" if left else "created")
    assert hub.by(BOT) == [BODY]


def test_a_listed_comment_never_found_is_no_missing_request(hub: GitHub) -> None:
    hub.add(f"{MARK}\nOld")
    hub.failures = [Failure("PATCH", 404, "Not Found", times=9)]
    text = refusal(hub)
    assert "There is no" not in text
    assert "run this again later" in text
    assert hub.methods() == ["GET", "PATCH", "GET", "PATCH"]


def test_true_is_no_account(hub: GitHub) -> None:
    hub.add(f"{MARK}\nOf user 1", {"id": 1})
    viewer = {"data": {"viewer": {"databaseId": True}}}
    hub.failures = [Failure("POST", 200, content=viewer, route="/graphql")]
    assert "whose the token" in refusal(hub)
    hub.failures = [Failure("POST", 200, content={"data": {"viewer": {"databaseId": 1}}}, route="/graphql")]
    hub.comments[0]["user"]["id"] = True
    assert publish(hub) == "created"
    assert hub.comments[0]["body"] == f"{MARK}\nOf user 1"


def test_true_is_no_number_of_a_comment_or_pull_request(hub: GitHub, tmp_path: Path) -> None:
    hub.add(f"{MARK}\nOld")["id"] = True
    assert "number" in refusal(hub)
    with pytest.raises(GpudiagError, match="--pr"):
        pull_request.target(None, None, event(tmp_path, {"pull_request": {"number": True}}))


def test_a_github_enterprise_server_has_its_api_below_a_path(time: Time) -> None:
    with serve(GitHub(prefix="/api/v3")) as hub:
        for number in range(101):
            hub.add(f"Remark {number}", OTHER_USER)
        assert publish(hub) == "created"
        assert publish(hub) == "unchanged"
        assert {path.split("?")[0] for _, path, _ in hub.requests} == {
            "/api/graphql", f"/api/v3/repos/{REPO}/issues/{PR}/comments",
        }  # fmt: skip


# Failures


def test_an_invalid_token_is_named_by_its_variable(hub: GitHub) -> None:
    hub.failures = [Failure("POST", 401, "Bad credentials")]
    text = refusal(hub)
    assert "GITHUB_TOKEN" in text
    assert "pull-requests: write" in text


def test_a_token_that_can_only_read_points_to_the_two_workflows(hub: GitHub, time: Time) -> None:
    hub.failures = [Failure("POST", 403, "Resource not accessible by integration", route="/comments")]
    text = refusal(hub)
    assert "docs/github.md" in text
    assert "Resource not accessible by integration" in text
    assert time.waits == []
    assert hub.comments == []


def test_a_locked_conversation_is_no_missing_permission(hub: GitHub) -> None:
    message = "Unable to create comment because issue is locked."
    hub.failures = [Failure("POST", 403, message, route="/comments")]
    text = refusal(hub)
    assert f"conversation of pull request {PR} of {REPO} is locked" in text
    assert "pull-requests: write" not in text


def test_switched_off_comments_are_reported(hub: GitHub) -> None:
    hub.failures = [Failure("POST", 410, "Issues are disabled for this repo", route="/comments")]
    text = refusal(hub)
    assert "Issues are disabled for this repo" in text
    assert "settings" in text


@pytest.mark.parametrize("content", [{}, {"message": "odd"}, "odd", 7])
def test_a_list_that_is_none_makes_no_second_comment(hub: GitHub, content: object) -> None:
    hub.add(f"{MARK}\nOld")
    hub.failures = [Failure("GET", 200, content=content)]
    assert "does not answer as GitHub's API does" in refusal(hub)
    assert len(hub.comments) == 1


@pytest.mark.slow
def test_an_answer_that_drips_has_an_end(hub: GitHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "WHOLE", 0.5)
    hub.failures = [Failure("GET", 200, drips=True)]
    assert "has not finished an answer" in refusal(hub)


def test_an_answer_without_measure_is_refused(hub: GitHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "LARGEST", 1000)
    hub.add("x" * 2000, OTHER_USER)
    assert "does not answer as GitHub's API does" in refusal(hub)
    assert len(hub.comments) == 1


def test_a_missing_pull_request_is_named(hub: GitHub) -> None:
    hub.failures = [Failure("GET", 404, "Not Found")]
    assert f"pull request {PR} of {REPO}" in refusal(hub)


def test_a_refused_body_is_reported_with_githubs_reason(hub: GitHub) -> None:
    hub.failures = [Failure("POST", 422, "Body is too long", route="/comments")]
    text = refusal(hub)
    assert "Body is too long" in text
    assert "--dry-run" in text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("status", "headers", "message", "wait"),
    [
        (403, {"Retry-After": "7"}, "You have exceeded a secondary rate limit", 7),
        (403, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1700000029"}, "API rate limit exceeded", 30),
        (403, {}, "You have exceeded a secondary rate limit. Please wait", 60),
        (429, {}, "Too many requests", 60),
        (429, {"Retry-After": "1"}, "", 1),
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_short_rate_limit_is_waited_for(
    hub: GitHub, time: Time, method: str, status: int, headers: dict[str, str], message: str, wait: float
) -> None:
    hub.failures = [Failure(method, status, message, headers, route="/comments")]
    assert publish(hub) == "created"
    assert time.waits == [wait]
    assert hub.by(BOT) == [BODY]


def test_a_long_rate_limit_says_when_to_try_again(hub: GitHub, time: Time) -> None:
    headers = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(int(time.at) + 1800)}
    hub.failures = [Failure("GET", 403, "API rate limit exceeded", headers)]
    text = refusal(hub)
    assert "22:43 UTC on 2023-11-14" in text
    assert time.waits == []


@pytest.mark.slow
@pytest.mark.parametrize("status", [500, 502, 503, 504])
@pytest.mark.parametrize("stored", [False, True])
@pytest.mark.parametrize("times", [1, 4])
def test_a_server_that_recovers_is_waited_for(hub: GitHub, time: Time, status: int, stored: bool, times: int) -> None:
    hub.failures = [Failure("POST", status, "Oops", stored=stored, times=times, route="/comments")]
    assert publish(hub) == "created"
    assert hub.by(BOT) == [BODY]
    assert time.waits == [1, 2, 4, 8][: 1 if stored else times]


@pytest.mark.slow
@pytest.mark.parametrize("method", ["GET", "POST", "PATCH"])
def test_a_server_that_stays_broken_ends_in_a_sentence(hub: GitHub, time: Time, method: str) -> None:
    if method == "PATCH":
        hub.add(f"{MARK}\nOld")
    hub.failures = [Failure(method, 502, times=1000, route="/comments")]
    text = refusal(hub)
    assert "502" in text
    assert "5 times" in text
    assert time.waits == [1, 2, 4, 8]


@pytest.mark.slow
@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("stored", [False, True])
def test_a_dropped_connection_leaves_one_comment(hub: GitHub, time: Time, method: str, stored: bool) -> None:
    hub.failures = [Failure(method, stored=stored, route="/comments")]
    assert publish(hub) == "created"
    assert hub.by(BOT) == [BODY]
    assert hub.methods().count("POST") == (1 if stored or method == "GET" else 2)


def test_a_dropped_update_is_sent_again(hub: GitHub, time: Time) -> None:
    hub.add(f"{MARK}\nOld")
    hub.failures = [Failure("PATCH", stored=True, times=2)]
    assert publish(hub) == "updated"
    assert hub.by(BOT) == [BODY]


def test_nobody_at_home(time: Time) -> None:
    with serve() as hub:
        environ = hub.environ()
    api = client.connect(environ, str(WHERE))
    with pytest.raises(GpudiagError, match="cannot be reached"):
        pull_request.publish(api, WHERE, BODY, MARK)


# The token


def test_a_redirect_to_another_host_gets_no_token(hub: GitHub) -> None:
    with serve() as other:
        elsewhere = f"{other.url}/repos/{REPO}/issues/{PR}/comments"
        hub.failures = [Failure("GET", 301, headers={"Location": elsewhere})]
        assert "another host" in refusal(hub)
        assert other.requests == []


def test_a_next_page_on_another_host_gets_no_token(hub: GitHub) -> None:
    with serve() as other:
        link = {"Link": f'<{other.url}/repos/{REPO}/issues/{PR}/comments?page=2>; rel="next"'}
        hub.failures = [Failure("GET", 200, headers=link)]
        assert "another host" in refusal(hub)
        assert other.requests == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "place", ["//127.0.0.1:1/x", "http://localhost@127.0.0.1:1/", "https://127.0.0.1/", "http://[", "http:\\\\evil"]
)
def test_an_odd_redirect_stays_here(hub: GitHub, place: str) -> None:
    hub.failures = [Failure("GET", 302, headers={"Location": place}, times=9)]
    refusal(hub)
    assert all(authorization == f"Bearer {TOKEN}" for _, _, authorization in hub.requests)


def test_a_redirect_of_the_api_itself_is_followed(hub: GitHub) -> None:
    moved = f"{hub.url}/repos/{REPO}/issues/{PR}/comments?per_page=100"
    hub.failures = [Failure("GET", 301, headers={"Location": moved})]
    assert publish(hub) == "created"


@pytest.mark.parametrize(
    "url",
    [
        "http://github.example/api/v3", "ftp://localhost", "https://user:secret@github.example", "github.example",
        "https://", "http://localhost.evil.example", "http://127.0.0.1:99999999", "https://a b/", "https://:p@host",
        "https://[::1", "https://a..b", f"https://{'a' * 64}.example", "https://host:port",
    ],
)  # fmt: skip
def test_the_token_goes_to_no_address_that_others_could_read(url: str) -> None:
    with pytest.raises(GpudiagError, match="GITHUB_API_URL"):
        client.connect({"GITHUB_TOKEN": TOKEN, "GITHUB_API_URL": url}, "")


@pytest.mark.parametrize("token", ["ghp_abc\ndef", "ghp_abc def", "gh\x1bp", "ghp_ä"])
def test_a_token_that_is_none_is_refused_without_printing_it(token: str) -> None:
    with pytest.raises(GpudiagError) as caught:
        client.connect({"GH_TOKEN": token}, "")
    assert "GH_TOKEN" in str(caught.value)
    assert token not in str(caught.value)


def test_the_connection_does_not_show_its_token(hub: GitHub) -> None:
    assert TOKEN not in repr(client.connect(hub.environ(), ""))


class _Proxy(BaseHTTPRequestHandler):
    asked: ClassVar[list[str]] = []

    def do_CONNECT(self) -> None:
        self.asked += [self.requestline, str(self.headers)]
        self.send_error(502)

    do_GET = do_POST = do_CONNECT

    def log_message(self, *_: object) -> None:
        """Nothing: the test's output is its own."""


@pytest.fixture
def proxy(time: Time, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """HOST:PORT of a proxy that refuses everything."""
    _Proxy.asked.clear()
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Proxy)
    Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    yield f"127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


BEHIND = {"GITHUB_TOKEN": TOKEN, "GITHUB_API_URL": "https://github.example"}


@pytest.mark.parametrize("scheme", ["http://", ""])
def test_a_proxy_is_asked_for_a_tunnel_and_sees_no_token(
    proxy: str, monkeypatch: pytest.MonkeyPatch, scheme: str
) -> None:
    monkeypatch.setenv("https_proxy", scheme + proxy)
    with pytest.raises(GpudiagError, match="cannot be reached"):
        pull_request.publish(client.connect(BEHIND, str(WHERE)), WHERE, BODY, MARK)
    assert _Proxy.asked[0].startswith("CONNECT github.example:443 ")
    assert TOKEN not in str(_Proxy.asked)
    assert "Proxy-Authorization" not in str(_Proxy.asked)


@pytest.mark.parametrize("scheme", ["http://", ""])
def test_a_proxy_gets_its_password_and_nobody_else_does(
    proxy: str, monkeypatch: pytest.MonkeyPatch, scheme: str
) -> None:
    monkeypatch.setenv("https_proxy", f"{scheme}me:p%40ss%C3%A9@{proxy}")
    said: list[str] = []
    with pytest.raises(GpudiagError, match="cannot be reached") as caught:
        pull_request.publish(client.connect(BEHIND, str(WHERE), say=said.append), WHERE, BODY, MARK)
    word = base64.b64encode("me:p@ssé".encode()).decode()
    assert f"Proxy-Authorization: Basic {word}" in _Proxy.asked[1]
    for secret in ("p@ss", "p%40ss", word):
        assert all(secret not in text for text in (*said, str(caught.value)))


@pytest.mark.parametrize(
    "place", ["socks5://me:hidden@127.0.0.1:1", "http://me:hidden@bad host:1", "http://[bad", "me:hidden@h:99999",
              "http://me:hid/den@h:1", "http://", "hidden://x y"],
)  # fmt: skip
def test_an_odd_proxy_ends_in_a_sentence_without_its_password(
    time: Time, report: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    for variable, value in {**BEHIND, "https_proxy": place}.items():
        monkeypatch.setenv(variable, value)
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    done = run(report, "--repo", REPO, "--pr", PR, "--verbose")
    assert done.exit_code == 2
    assert done.stderr.splitlines()[-1].startswith("gpudiag: HTTPS_PROXY is no address of a proxy")
    assert "hid" not in done.output


# Which pull request


def event(folder: Path, content: object) -> dict[str, str]:
    path = folder / "event.json"
    path.write_text(json.dumps(content), "utf-8")
    return {"GITHUB_REPOSITORY": REPO, "GITHUB_EVENT_PATH": str(path)}


RUN = {
    "workflow_run": {
        "head_sha": SHA, "head_branch": "fix me&base=main", "pull_requests": [],
        "head_repository": {"full_name": "forker/name", "owner": {"login": "forker"}},
    }
}  # fmt: skip


def test_actions_tell_the_pull_request(tmp_path: Path) -> None:
    assert pull_request.target(None, None, event(tmp_path, {"pull_request": {"number": 12}})) == (REPO, 12, None)
    asked = {"issue": {"number": 12, "pull_request": {}}}
    assert pull_request.target(None, None, event(tmp_path, asked)) == (REPO, 12, None)
    assert pull_request.target(None, None, event(tmp_path, RUN)) == (
        REPO,
        None,
        Head("forker", "fix me&base=main", SHA),
    )
    assert pull_request.target(None, 3, event(tmp_path, RUN)) == (REPO, 3, None)


@pytest.mark.parametrize("content", [{}, [], {"issue": {"number": 4}}, {"workflow_run": {"head_sha": "$(id)"}}])
def test_an_event_without_a_pull_request_asks_for_one(tmp_path: Path, content: object) -> None:
    with pytest.raises(GpudiagError, match="--pr"):
        pull_request.target(None, None, event(tmp_path, content))


def test_another_repository_than_the_workflows_wants_its_number(tmp_path: Path) -> None:
    with pytest.raises(GpudiagError, match="--pr"):
        pull_request.target("owner/other", None, event(tmp_path, {"pull_request": {"number": 12}}))


@pytest.mark.parametrize("repo", ["owner", "owner/name/../../x", "owner/..", "a b/c", "owner/name?x", ""])
def test_a_repository_is_owner_and_name(repo: str) -> None:
    with pytest.raises(GpudiagError, match="OWNER/NAME"):
        pull_request.target(repo, 1, {})


def pull(number: int, sha: str) -> dict[str, Any]:
    return {"number": number, "head": {"owner": "forker", "ref": "fix me&base=main", "sha": sha}}


def test_a_forks_pull_request_is_found_by_its_commit(hub: GitHub, tmp_path: Path) -> None:
    wanted = pull_request.target(None, None, event(tmp_path, RUN))
    api = client.connect(hub.environ(), str(wanted))
    hub.pulls = [pull(5, "b" * 40), pull(PR, SHA)]
    assert pull_request.find(api, wanted) == (REPO, PR, wanted.head)
    hub.pulls = [pull(PR, "b" * 40)]
    assert pull_request.find(api, wanted) is None
    hub.pulls = [pull(PR, SHA), pull(8, SHA)]
    with pytest.raises(GpudiagError, match="7, 8"):
        pull_request.find(api, wanted)


# The command


@pytest.fixture
def report(tmp_path: Path) -> Path:
    path = tmp_path / "report.json"
    path.write_text(samples.launch_bound().model_dump_json(), "utf-8")
    return path


def run(*args: object) -> Result:
    return CliRunner().invoke(main, ["comment", *map(str, args)])


def test_the_command_creates_and_updates(hub: GitHub, report: Path) -> None:
    done = run(report, "--repo", REPO, "--pr", PR)
    assert done.exit_code == 0, done.output
    assert done.stdout == f"created https://github.example/{REPO}/pull/{PR}#issuecomment-100\n"
    assert run(report, "--repo", REPO, "--pr", PR).stdout.startswith("unchanged ")
    (body,) = hub.by(BOT)
    assert body.startswith(f"{MARK}\n")
    assert "H01" in body


def test_in_actions_the_command_needs_no_options(
    hub: GitHub, report: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable, value in event(tmp_path, RUN).items():
        monkeypatch.setenv(variable, value)
    done = run(report)
    assert (done.exit_code, hub.comments) == (0, [])
    assert "no open pull request has this commit" in done.stderr
    hub.pulls = [pull(PR, SHA)]
    assert run(report, "--key", "train").exit_code == 0
    assert hub.by(BOT)[0].startswith("<!-- gpudiag:train -->\n")


def test_a_dry_run_sends_nothing_and_needs_no_token(hub: GitHub, report: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GITHUB_TOKEN")
    done = run(report, "--repo", REPO, "--pr", PR, "--dry-run")
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith(f"{MARK}\n")
    assert f"pull request {PR} of {REPO}" in done.stderr
    assert hub.requests == []
    assert run(report, "--dry-run").exit_code == 0


def test_a_dry_run_in_actions_gives_the_runner_no_commands(report: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setattr(command, "_body", lambda *_: f"{MARK}\n::error::planted\n")
    first, *_, last = run(report, "--dry-run").stdout.splitlines()
    word = first.removeprefix("::stop-commands::")
    assert len(word) == 32
    assert last == f"::{word}::"


def test_without_a_token_it_says_which_one(hub: GitHub, report: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GITHUB_TOKEN")
    done = run(report, "--repo", REPO, "--pr", PR)
    assert (done.exit_code, done.stdout) == (2, "")
    assert "GITHUB_TOKEN" in done.stderr
    monkeypatch.setenv("GH_TOKEN", TOKEN)
    assert run(report, "--repo", REPO, "--pr", PR).exit_code == 0


@pytest.mark.parametrize("key", ["a b", "-->", "x" * 65, "--", "\n"])
def test_a_key_is_a_word(report: Path, key: str) -> None:
    done = run(report, "--dry-run", f"--key={key}")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "letters" in done.stderr


ALL_FAILURES = [
    *(Failure(method, status, f"No: {TOKEN}", times=9) for method in ("GET", "POST") for status in (401, 403, 404)),
    Failure("POST", 422, f"Bearer {TOKEN}", route="/comments"),
    Failure("GET", 500, TOKEN, times=9),
    Failure("GET", 302, headers={"Location": "https://evil.example/"}),
    Failure("GET", 200, TOKEN, {"Link": '<https://evil.example/>; rel="next"'}),
    Failure("GET", 429, TOKEN, {"Retry-After": "4000"}),
    Failure("GET", times=9),
]


@pytest.mark.slow
@pytest.mark.parametrize("failure", ALL_FAILURES, ids=lambda failure: f"{failure.method}-{failure.status}")
def test_no_failure_prints_the_token(hub: GitHub, report: Path, failure: Failure) -> None:
    hub.failures = [failure]
    done = run(report, "--repo", REPO, "--pr", PR, "--verbose")
    assert done.exit_code == 2
    assert done.stdout == ""
    assert TOKEN not in done.output
    sentence = done.stderr.splitlines()[-1]
    assert sentence.startswith("gpudiag: ")
    assert "Traceback" not in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("echo", [TOKEN, TOKEN.upper()])
def test_a_token_that_the_server_repeats_is_not_printed(hub: GitHub, report: Path, echo: str) -> None:
    hub.add("x", OTHER_USER)
    hub.failures = [
        Failure("GET", 200, headers={"Link": f'</repos/{REPO}/issues/{PR}/comments?{echo}>; rel="next"'}, content=[]),
        Failure("POST", 201, content={"id": 9, "html_url": f"https://github.example/{echo}"}, route="/comments"),
    ]
    done = run(report, "--repo", REPO, "--pr", PR, "--verbose")
    assert done.exit_code == 0
    assert done.stdout == "created https://github.example/***\n"
    assert "comments?***" in done.stderr
    assert TOKEN.lower() not in done.output.lower()


@pytest.mark.parametrize(
    "failure",
    [
        Failure("GET", 404, f"No {TOKEN.upper()}", route="/comments"),
        Failure("GET", 302, headers={"Location": f"https://{TOKEN}.evil.example/"}),
        Failure("GET", 200, content=[], headers={"Link": f'<https://{TOKEN}.evil.example/x>; rel="next"'}),
    ],
    ids=["message", "redirect", "page"],
)
def test_a_failure_that_repeats_the_token_does_not_print_it(hub: GitHub, report: Path, failure: Failure) -> None:
    hub.failures = [failure]
    done = run(report, "--repo", REPO, "--pr", PR, "--verbose")
    assert done.exit_code == 2
    assert "***" in done.output
    assert TOKEN.lower() not in done.output.lower()


def test_success_does_not_print_the_token_either(hub: GitHub, report: Path) -> None:
    done = run(report, "--repo", REPO, "--pr", PR, "--verbose")
    assert done.exit_code == 0
    assert TOKEN not in done.output


def test_a_saved_reports_own_words_do_not_reach_the_comment(hub: GitHub, tmp_path: Path) -> None:
    base = samples.launch_bound()
    evil = "[free gift](https://evil.example/)"
    planted = base.findings[0].model_copy(
        update={
            "why": evil, "check": evil, "title": evil, "not_a_problem_when": evil, "references": ("https://evil.example",),
            "remedies": (base.findings[0].remedies[0].model_copy(update={"text": evil, "title": evil}),),
        }
    )  # fmt: skip
    path = tmp_path / "report.json"
    path.write_text(base.model_copy(update={"findings": (planted,)}).model_dump_json(), "utf-8")
    assert run(path, "--repo", REPO, "--pr", PR).exit_code == 0
    assert "evil.example" not in hub.by(BOT)[0]
    assert "free gift" not in hub.by(BOT)[0]


def test_a_base_makes_it_a_comparison(hub: GitHub, report: Path, tmp_path: Path) -> None:
    run_ = samples.launch_bound().run
    slow = run_.loops[0].model_copy(update={"iteration_ms": 11.4, "iteration_ms_unprofiled": None})
    before = samples.launch_bound().model_copy(update={"run": run_.model_copy(update={"loops": (slow,)})})
    bases = []
    for name in ("first", "second"):
        path = tmp_path / f"{name}.json"
        path.write_text(before.model_dump_json(), "utf-8")
        bases += ["--base", path]
    done = run(report, "--repo", REPO, "--pr", PR, *bases)
    assert done.exit_code == 0, done.output
    (body,) = hub.by(BOT)
    assert body.startswith(f"{MARK}\n")
    assert "11.4 ms" in body
    assert "5.70 ms" in body
    assert "2 recordings" in body


def test_a_damaged_saved_report_ends_in_a_sentence(hub: GitHub, tmp_path: Path) -> None:
    base = samples.kernel_only()
    kernel = base.run.kernels[0].model_copy(update={"facts": {"limit": "none such", "busy_pct": "much"}})
    odd = base.model_copy(update={"run": base.run.model_copy(update={"kernels": (kernel,)})})
    path = tmp_path / "report.json"
    path.write_text(odd.model_dump_json(), "utf-8")
    done = run(path, "--repo", REPO, "--pr", PR)
    # Whether these figures are printed at all is the page's affair.
    assert (done.exit_code, len(hub.comments)) in ((0, 1), (2, 0)), done.exception
