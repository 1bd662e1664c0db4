"""A GitHub of the tests' own on localhost: the few routes that `gpudiag comment` uses, and the ways they can fail."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

TOKEN = "ghs_0123456789secret"  # of nothing but this server
BOT = {"id": 41898282, "login": "github-actions[bot]", "type": "Bot"}
OTHER_USER = {"id": 1234, "login": "mallory", "type": "User"}
REPO = "owner/name"
PR = 7


@dataclass
class Failure:
    """What the next request of that method gets instead of its answer.

    `stored`: after it was carried out. `content`: in place of an object with the message. `drips`: a byte at a time.
    """

    method: str
    status: int = 0  # 0: the connection is dropped
    message: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    stored: bool = False
    times: int = 1
    route: str = "/"
    content: Any = None
    drips: bool = False


@dataclass
class GitHub:
    """Its comments, the pull requests it knows, and every request it got."""

    comments: list[dict[str, Any]] = field(default_factory=list)
    pulls: list[dict[str, Any]] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    requests: list[tuple[str, str, str]] = field(default_factory=list)  # method, path, Authorization
    prefix: str = ""
    url: str = ""

    def add(self, body: str, user: Mapping[str, Any] = BOT) -> dict[str, Any]:
        number = 100 + len(self.comments)
        url = f"https://github.example/{REPO}/pull/{PR}#issuecomment-{number}"
        self.comments.append({"id": number, "body": body, "user": dict(user), "html_url": url})
        return self.comments[-1]

    def by(self, user: Mapping[str, Any]) -> list[str]:
        return [comment["body"] for comment in self.comments if comment["user"]["id"] == user["id"]]

    def methods(self) -> list[str]:
        """What was asked of the REST routes, in order."""
        return [method for method, path, _ in self.requests if not path.endswith("/graphql")]

    def environ(self) -> dict[str, str]:
        return {"GITHUB_TOKEN": TOKEN, "GITHUB_API_URL": self.url + self.prefix}

    def failing(self, method: str, path: str) -> Failure | None:
        for failure in self.failures:
            if failure.times and failure.method == method and failure.route in path:
                failure.times -= 1
                return failure
        return None


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def _handle(self) -> None:
        hub = self.server.hub
        authorization = self.headers.get("Authorization", "")
        hub.requests.append((self.command, self.path, authorization))
        content = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or "null")
        failure = hub.failing(self.command, self.path)
        answer = None
        if failure is None or failure.stored:
            answer = self._carry_out(hub, content) if authorization == f"Bearer {TOKEN}" else (401, "Bad credentials")
        if failure is None:
            assert answer is not None
            self._send(*answer)
        elif failure.drips:
            self._drip()
        elif failure.status:
            content = failure.message if failure.content is None else failure.content
            self._send(failure.status, content, failure.headers)
        else:
            self.close_connection = True

    do_GET = do_POST = do_PATCH = do_DELETE = _handle

    def _carry_out(self, hub: GitHub, content: Any) -> tuple[Any, ...]:
        url = urlsplit(self.path)
        if url.path == ("/api/graphql" if hub.prefix else "/graphql"):
            return 200, {"data": {"viewer": {"databaseId": BOT["id"]}}}
        path = url.path.removeprefix(hub.prefix)
        query = {key: values[0] for key, values in parse_qs(url.query).items()}
        if path == f"/repos/{REPO}/pulls":
            owner, _, branch = query["head"].partition(":")
            found = [pull for pull in hub.pulls if (pull["head"]["owner"], pull["head"]["ref"]) == (owner, branch)]
            return 200, found
        if path == f"/repos/{REPO}/issues/{PR}/comments":
            return self._create(hub, content["body"]) if self.command == "POST" else self._list(hub, query)
        match = re.fullmatch(rf"/repos/{REPO}/issues/comments/(\d+)", path)
        comment = next((c for c in hub.comments if match and c["id"] == int(match[1])), None)
        if comment is None:
            return 404, "Not Found"
        if self.command == "DELETE":
            hub.comments.remove(comment)
            return (204,)
        comment["body"] = content["body"]
        return 200, comment

    def _create(self, hub: GitHub, body: str) -> tuple[Any, ...]:
        if len(body) > 65536:
            return 422, "Validation Failed"
        return 201, hub.add(body)

    def _list(self, hub: GitHub, query: Mapping[str, str]) -> tuple[Any, ...]:
        size, page = int(query.get("per_page", 30)), int(query.get("page", 1))
        link = f'<{hub.url}{hub.prefix}/repos/{REPO}/issues/{PR}/comments?per_page={size}&page={page + 1}>; rel="next"'
        more = len(hub.comments) > size * page
        return 200, hub.comments[size * (page - 1) : size * page], {"Link": link} if more else {}

    def _send(self, status: int, content: Any = None, headers: Mapping[str, str] | None = None) -> None:
        if isinstance(content, str):
            content = {"message": content, "documentation_url": "https://docs.github.example"}
        data = b"" if status == 204 else json.dumps(content).encode()
        self.send_response(status)
        for name, value in {**(headers or {}), "Content-Length": str(len(data))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def _drip(self) -> None:
        """An answer that comes so slowly that no wait for its next byte is ever long."""
        self.close_connection = True
        try:
            for byte in b"HTTP/1.1 200 OK\r\nX-Slow: " + b"x" * 300:
                self.wfile.write(bytes([byte]))
                self.wfile.flush()
                time.sleep(0.02)
        except OSError:
            """Whoever asked has gone."""

    def log_message(self, *_: object) -> None:
        """Nothing: the test's output is its own."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    hub: GitHub


@contextmanager
def serve(hub: GitHub | None = None) -> Iterator[GitHub]:
    """A running GitHub on a port of its own."""
    server = _Server(("127.0.0.1", 0), _Handler)
    server.hub = hub or GitHub()
    server.hub.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server.hub
    finally:
        server.shutdown()
        server.server_close()
