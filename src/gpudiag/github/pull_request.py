"""The pull request that a report belongs to, and the one comment on it that is ours.

A comment is ours when it starts with our marker **and** the token's own account wrote it: anybody can write the
marker, and a token that may comment may often edit the comments of others.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

from gpudiag.errors import GpudiagError
from gpudiag.github.client import Answer, Api, Passing, Refused

_REPO = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]*/(?!\.{1,2}$)[A-Za-z0-9._-]+")
_SHA = re.compile(r"[0-9a-f]{40,64}")
PAGES = 100  # of a hundred comments: four times what GitHub lets a pull request have

GONE = (404, 410)


class _Deleted(GpudiagError):
    """The comment to change is there no longer."""


class Head(NamedTuple):
    """The branch and last commit that a pull request proposes to merge."""

    owner: str
    branch: str
    sha: str


class Target(NamedTuple):
    """The pull request to comment on: its number is known, or is to be found by the head."""

    repo: str
    number: int | None
    head: Head | None = None

    def __str__(self) -> str:
        return f"pull request {self.number} of {self.repo}" if self.number else f"repository {self.repo}"


class Done(NamedTuple):
    """The action taken (`created`, `updated`, `unchanged`), and the comment's address."""

    action: str
    url: str


@dataclass(frozen=True)
class _Comment:
    id: int
    body: str
    url: str


def target(repo: str | None, number: int | None, environ: Mapping[str, str]) -> Target:
    """Return the pull request to comment on, from the options or GitHub Actions' variables. Raises GpudiagError."""
    here = environ.get("GITHUB_REPOSITORY", "")
    name = repo or here
    if not name:
        raise GpudiagError("Which repository? Give --repo OWNER/NAME.")
    if not _REPO.fullmatch(name):
        raise GpudiagError(f"{name!r} is not like OWNER/NAME: give --repo as GitHub spells it.")
    if number is not None:
        return Target(name, number)
    event = _event(environ) if name == here else {}
    found = _number(event)
    if found is not None:
        return Target(name, found)
    head = _head(event)
    if head is None:
        raise GpudiagError("Which pull request? Give --pr NUMBER: this run does not belong to one.")
    return Target(name, None, head)


def _event(environ: Mapping[str, str]) -> dict[str, Any]:
    path = environ.get("GITHUB_EVENT_PATH")
    if not path:
        return {}
    try:
        event = json.loads(Path(path).read_bytes())
    except (OSError, ValueError, RecursionError):
        raise GpudiagError(f"{path} (GITHUB_EVENT_PATH) cannot be read: give --pr NUMBER.") from None
    return event if isinstance(event, dict) else {}


def _number(event: Mapping[str, Any]) -> int | None:
    issue = _part(event, "issue")
    pull = _part(event, "pull_request") or (issue if "pull_request" in issue else {})
    number = _whole(pull.get("number"))
    return number if number and number > 0 else None


def _head(event: Mapping[str, Any]) -> Head | None:
    """The head that a `workflow_run` event names. Its list of pull requests is empty where a fork is the source."""
    run = _part(event, "workflow_run")
    owner = _part(_part(run, "head_repository"), "owner").get("login")
    branch, sha = run.get("head_branch"), run.get("head_sha")
    if isinstance(owner, str) and isinstance(branch, str) and isinstance(sha, str) and _SHA.fullmatch(sha):
        return Head(owner, branch, sha)
    return None


def _part(of: Mapping[str, Any], key: str) -> dict[str, Any]:
    part = of.get(key)
    return part if isinstance(part, dict) else {}


def _whole(value: object) -> int | None:
    """A whole number. JSON's `true` is none, though Python holds it equal to 1."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def find(api: Api, wanted: Target) -> Target | None:
    """The target with its number; None if no open pull request has that head any more. Raises GpudiagError."""
    if wanted.number is not None or wanted.head is None:
        return wanted
    owner, branch, sha = wanted.head
    query = urlencode({"state": "open", "head": f"{owner}:{branch}", "per_page": 100})
    pulls = _rows(api, api.call("GET", f"/repos/{wanted.repo}/pulls?{query}"))
    # A branch can be pushed to, so what counts is the commit.
    same = {_whole(pull.get("number")) for pull in pulls if _part(pull, "head").get("sha") == sha}
    numbers = sorted(number for number in same if number is not None)
    if len(numbers) > 1:
        raise GpudiagError(f"Pull requests {', '.join(map(str, numbers))} have the same head: name one with --pr.")
    return wanted._replace(number=numbers[0]) if numbers else None


def publish(api: Api, where: Target, body: str, mark: str) -> Done:
    """Make `body` the one comment of ours with that marker. Raises GpudiagError.

    Where runs raced and left several, the oldest is kept, since links lead to it; the others are deleted, since an
    outdated report beside the new one misleads.
    """
    api = replace(api, about=str(where))
    me = _me(api)
    try:
        return _keep(api, where, me, body, mark)
    except _Deleted:  # another run or somebody was faster, so the list is another by now
        return _keep(api, where, me, body, mark)


def _keep(api: Api, where: Target, me: int, body: str, mark: str) -> Done:
    """Create or update the comment. Raises _Deleted if it was deleted meanwhile."""
    created: _Comment | None = None
    tried = 0
    while True:
        # Listed before every try, since a request whose answer was lost may have arrived; and after the last one,
        # since another run may have commented at the same time.
        ours = _ours(api, where, me, mark)
        if ours or created:
            break
        tried += 1
        try:
            answer = api.once("POST", f"/repos/{where.repo}/issues/{where.number}/comments", {"body": body})
            created = _comment(answer.content)
        except Passing as failure:
            api.pause(failure, tried)
    if created and not ours:  # lists may lag behind
        return Done("created", api.masked(created.url))
    first, *others = ours
    changed = _text(first.body) != _text(body)
    if changed:
        first = _update(api, f"/repos/{where.repo}/issues/comments/{first.id}", body)
    for other in others:
        _delete(api, f"/repos/{where.repo}/issues/comments/{other.id}")
    return Done("updated" if changed else "created" if tried else "unchanged", api.masked(first.url))


def _me(api: Api) -> int:
    """The account of the token, by GraphQL: the REST route for it is closed to the tokens of Actions and Apps."""
    account = _whole(_part(api.query("query { viewer { databaseId } }"), "viewer").get("databaseId"))
    if account is None:
        raise GpudiagError(f"GitHub does not say whose the token in {api.variable} is: use GITHUB_TOKEN of Actions.")
    return account


def _ours(api: Api, where: Target, me: int, mark: str) -> list[_Comment]:
    """Comments that start with the marker and that the token's account wrote, oldest first."""
    found: list[_Comment] = []
    page = f"/repos/{where.repo}/issues/{where.number}/comments?per_page=100"
    for _ in range(PAGES):
        answer = api.call("GET", page)
        found += [
            _comment(row)
            for row in _rows(api, answer)
            if _whole(_part(row, "user").get("id")) == me and str(row.get("body") or "").startswith(mark)
        ]
        if answer.next is None:
            # Once each: a page may repeat what moved there from the one before.
            return sorted({comment.id: comment for comment in found}.values(), key=lambda comment: comment.id)
        page = answer.next
    raise GpudiagError(f"The comments of {where} have no end: is GITHUB_API_URL right?")


def _rows(api: Api, answer: Answer) -> list[dict[str, Any]]:
    if not isinstance(answer.content, list):  # taken for an empty list it would make a second comment
        raise api.unlike()
    return [row for row in answer.content if isinstance(row, dict)]


def _comment(row: Any) -> _Comment:
    number = _whole(row.get("id")) if isinstance(row, dict) else None
    if number is None:
        raise GpudiagError("GitHub's API answers without a comment's number: is GITHUB_API_URL right?")
    return _Comment(number, str(row.get("body") or ""), str(row.get("html_url") or ""))


def _text(body: str) -> str:
    """Return what GitHub keeps of a comment: it may change line ends and cut space at the end."""
    return body.replace("\r\n", "\n").strip()


def _update(api: Api, comment: str, body: str) -> _Comment:
    try:
        return _comment(api.call("PATCH", comment, {"body": body}).content)
    except Refused as refusal:
        if refusal.status not in GONE:
            raise
        raise _Deleted(
            f"GitHub lists a comment of ours on {api.about} that it does not find: run this again later."
        ) from None


def _delete(api: Api, comment: str) -> None:
    try:
        api.call("DELETE", comment)
    except Refused as refusal:
        if refusal.status not in GONE:  # another run was faster
            raise
