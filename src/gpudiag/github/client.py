"""GitHub's API as a client: one host, one token, patience where it helps, one sentence where it does not.

The token comes from the environment, goes to the API's own host only, and stands in no message, not even where a
server repeats it.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple
from urllib.parse import urljoin, urlsplit

import urllib3

from gpudiag import __version__
from gpudiag.errors import GpudiagError
from gpudiag.github import http

VARIABLES = ("GITHUB_TOKEN", "GH_TOKEN")
DEFAULT = "https://api.github.com"
TRIES = 5
LONGEST_WAIT = 60.0  # seconds: a longer wait is refused with the time at which to come back
UNSAID_WAIT = 60.0  # what GitHub asks for where a refusal names no time
REDIRECTS = 3
SAID_LIMIT = 200  # characters of GitHub's own message that a sentence quotes
PAGE = "docs/github.md of gpudiag"


class Clock(NamedTuple):
    """Clock of the retries; tests put a faster one here."""

    now: Callable[[], float] = time.time
    sleep: Callable[[float], None] = time.sleep


CLOCK = Clock()


class Answer(NamedTuple):
    """Response of the server: status, content, and the target of the next page, if there is one."""

    status: int
    content: Any
    next: str | None = None


class Refused(GpudiagError):
    """GitHub's final no, in a sentence."""

    def __init__(self, sentence: str, status: int) -> None:
        super().__init__(sentence)
        self.status = status


class Passing(Exception):
    """It may work in a moment: after `wait` seconds, or after those that the number of tries suggests."""

    def __init__(self, said: str, wait: float | None = None) -> None:
        super().__init__(said)
        self.wait = wait


@dataclass(frozen=True)
class Api:
    """An open connection. `about` names in errors what is asked for: `pull request 7 of owner/name`."""

    origin: str
    path: str
    pool: urllib3.HTTPConnectionPool = field(repr=False)
    token: str = field(repr=False)
    variable: str
    about: str
    clock: Clock
    say: Callable[[str], None]

    def call(self, method: str, target: str, body: object = None) -> Answer:
        """The answer, after as many tries as it takes: for requests that may be repeated. Raises GpudiagError."""
        for tried in range(1, TRIES + 1):
            try:
                return self.once(method, target, body)
            except Passing as failure:
                self.pause(failure, tried)
        raise AssertionError("the last pause raises")

    def query(self, text: str) -> dict[str, Any]:
        """The data of a GraphQL query, which has an address of its own beside the REST routes. Raises GpudiagError."""
        content = replace(self, path=self.path.removesuffix("/v3")).call("POST", "/graphql", {"query": text}).content
        data = content.get("data") if isinstance(content, dict) else None
        return data if isinstance(data, dict) else {}

    def pause(self, failure: Passing, tried: int) -> None:
        """Wait before the next try, or raise GpudiagError if there shall be none."""
        wait = 2.0 ** (tried - 1) if failure.wait is None else failure.wait
        if tried >= TRIES:
            raise GpudiagError(f"{failure}, {TRIES} times: run this again later.")
        if wait > LONGEST_WAIT:
            then = time.strftime("%H:%M UTC on %Y-%m-%d", time.gmtime(min(self.clock.now() + wait, 4e9)))
            raise GpudiagError(f"{failure}: run this again after {then}.")
        self.say(f"{failure}; trying again in {wait:.0f} s")
        self.clock.sleep(wait)

    def once(self, method: str, target: str, body: object = None) -> Answer:
        """One request. `target` starts with a slash and lies below the API's path. Raises Passing, GpudiagError."""
        target = self.path + target
        for _ in range(REDIRECTS + 1):
            response = self._send(method, target, body)
            place = response.headers.get("Location")
            if response.status not in (301, 302, 307, 308) or not place:
                return self._answer(response)
            target = self._own(place, target)
        raise GpudiagError(f"{self.origin} redirects in a circle: is GITHUB_API_URL right?")

    def masked(self, text: str) -> str:
        """Text of the server's, without the token, should it repeat it in small letters or in capitals."""
        return re.sub(re.escape(self.token), "***", text, flags=re.IGNORECASE)

    def _send(self, method: str, target: str, body: object) -> http.Reply:
        self.say(self.masked(f"{method} {self.origin}{target}"))
        headers = {
            "Authorization": f"Bearer {self.token}",
            "Accept": "application/vnd.github+json",
            "X-GitHub-Api-Version": "2022-11-28",
            "User-Agent": f"gpudiag/{__version__}",
        }
        content = None
        if body is not None:
            headers["Content-Type"] = "application/json"
            content = json.dumps(body).encode()
        try:
            reply = http.exchange(self.pool, method, target, content, headers)
        except TimeoutError:
            raise GpudiagError(
                f"{self.origin} has not finished an answer in {http.WHOLE:.0f} s: run this again later."
            ) from None
        except urllib3.exceptions.SSLError:
            raise GpudiagError(
                f"The certificate of {self.origin} is not trusted: SSL_CERT_FILE can name your own authority's."
            ) from None
        except urllib3.exceptions.HTTPError as error:
            raise Passing(f"{self.origin} cannot be reached ({type(error).__name__})") from None
        if reply is None:
            raise self.unlike()
        return reply

    def unlike(self) -> GpudiagError:
        """The error for an answer of a form that GitHub's API does not give."""
        return GpudiagError(f"{self.origin} does not answer as GitHub's API does: is GITHUB_API_URL right?")

    def _answer(self, response: http.Reply) -> Answer:
        try:
            content = json.loads(response.content) if response.content else None
        except (ValueError, RecursionError):
            content = None
        if 200 <= response.status < 300:
            if content is None and response.status != 204:
                raise self.unlike()
            return Answer(response.status, content, self._next(response.headers.get("Link", "")))
        said = self._said(content)
        wait = _wait(response, said, self.clock.now())
        if wait is not None:
            raise Passing("GitHub's rate limit for this token is reached", wait)
        if response.status >= 500:
            raise Passing(f"GitHub's API fails with {response.status}", _seconds(response, "Retry-After"))
        raise Refused(self._refusal(response.status, f" (“{said}”)" if said else ""), response.status)

    def _said(self, content: object) -> str:
        """GitHub's own message."""
        message = content.get("message") if isinstance(content, dict) else None
        words = self.masked(message) if isinstance(message, str) else ""
        return " ".join(words[:SAID_LIMIT].split()).rstrip(".")

    def _refusal(self, status: int, said: str) -> str:
        """Explain a refusal, and what to do about it."""
        if status == 401:
            return (
                f"GitHub does not accept the token in {self.variable}{said}: set one that is valid and has the"
                " permission `pull-requests: write`."
            )
        if status == 403 and "locked" in said.lower():
            return (
                f"The conversation of {self.about} is locked{said}: unlock it, or comment with the token of somebody"
                " who may write to the repository."
            )
        if status == 403:
            return (
                f"The token in {self.variable} may not comment on {self.about}{said}: give the job the permission"
                " `pull-requests: write`; for a fork's pull request, whose token can only read, use the two workflows"
                f" in {PAGE}."
            )
        if status == 404:
            return (
                f"There is no {self.about}, or the token in {self.variable} may not see it{said}: check --repo and"
                " --pr, and the token's permission `pull-requests: write`."
            )
        if status == 410:
            return (
                f"GitHub keeps no comments on {self.about} any more{said}: it was deleted, or its comments are switched"
                " off in the repository's settings."
            )
        if status == 422:
            return f"GitHub refuses the comment on {self.about}{said}: read it with --dry-run."
        return f"GitHub answers {status}{said} for {self.about}."

    def _next(self, link: str) -> str | None:
        """The target of the next page that a Link header names."""
        found = re.search(r'<([^<>]+)>\s*;[^,<]*\brel="?next\b', link)
        if not found:
            return None
        return self._own(found[1]).removeprefix(self.path)

    def _own(self, url: str, from_target: str = "/") -> str:
        """The path and query of a URL on the API's own host. Raises GpudiagError for any other host."""
        try:
            parts = urlsplit(urljoin(self.origin + from_target, url))
            here = f"{parts.scheme}://{parts.netloc}" == self.origin
        except ValueError:
            here, parts = False, urlsplit("")
        if not here:
            raise GpudiagError(
                f"{self.origin} sends on to another host ({self.masked(parts.hostname or '?')[:100]}), which is not"
                " given the token: set GITHUB_API_URL to the API's own address."
            )
        return parts.path + (f"?{parts.query}" if parts.query else "")


def connect(
    environ: Mapping[str, str],
    about: str,
    clock: Clock | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> Api:
    """A connection to the API that the environment names, with its token. Sends nothing yet. Raises GpudiagError."""
    variable, token = _token(environ)
    base = environ.get("GITHUB_API_URL") or DEFAULT
    try:
        parts, to = urlsplit(base), http.address(base)
    except ValueError:
        raise GpudiagError("GITHUB_API_URL is no address: it is like https://HOST/api/v3.") from None
    local = to.scheme == "http" and to.host in http.LOCAL
    if "@" in parts.netloc or parts.query or parts.fragment or not (to.scheme == "https" or local):
        raise GpudiagError("GITHUB_API_URL is no address of an API: it is like https://HOST/api/v3, and always https.")
    return Api(
        origin=f"{parts.scheme}://{parts.netloc}",
        path=parts.path.rstrip("/"),
        pool=http.pool(to),
        token=token,
        variable=variable,
        about=about,
        clock=clock or CLOCK,
        say=say,
    )


def _token(environ: Mapping[str, str]) -> tuple[str, str]:
    for variable in VARIABLES:
        token = environ.get(variable, "").strip()
        if token:
            # A line feed inside would end up in an error of the HTTP library, and the token with it.
            if not re.fullmatch(r"[!-~]+", token):
                raise GpudiagError(f"{variable} holds characters that no token has: set it anew.")
            return variable, token
    raise GpudiagError(
        "Commenting needs a token: set GITHUB_TOKEN to one with the permission `pull-requests: write`, or look at the"
        " comment first with --dry-run."
    )


def _wait(response: http.Reply, said: str, now: float) -> float | None:
    """Seconds until a rate limit lets requests through again; None if this is no rate limit."""
    if response.status not in (403, 429):
        return None
    after = _seconds(response, "Retry-After")
    if after is not None:
        return after
    if response.headers.get("X-RateLimit-Remaining") == "0":
        reset = _seconds(response, "X-RateLimit-Reset")
        return UNSAID_WAIT if reset is None else max(1.0, reset - now + 1)
    return UNSAID_WAIT if response.status == 429 or "rate limit" in said.lower() else None


def _seconds(response: http.Reply, header: str) -> float | None:
    text = response.headers.get(header, "")
    return float(text) if re.fullmatch(r"[0-9]{1,12}", text) else None
