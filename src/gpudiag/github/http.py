"""One HTTP request at a time to one host, maybe through a proxy, with an end to how long and how large an answer is."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from threading import Thread
from typing import NamedTuple, TypeVar
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

import urllib3

from gpudiag.errors import GpudiagError

LOCAL = {"localhost", "127.0.0.1", "::1"}
TIMEOUT = urllib3.Timeout(connect=10, read=30)  # between two parts of an answer
WHOLE = 60.0  # seconds for all of an answer, with the connection
LARGEST = 64 * 2**20  # bytes: a hundred comments of GitHub's greatest length take 39 MB, if every letter is escaped
CHUNK = 2**16
PROXY = (
    "is no address of a proxy that can be used: it is like http://HOST:PORT or http://USER:PASSWORD@HOST:PORT, with"
    " special characters of the password as %XX; a SOCKS proxy cannot be used."
)
_HOST = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9._-]*[A-Za-z0-9_.])?|[0-9a-fA-F:.]+(?:%[A-Za-z0-9]+)?")
_T = TypeVar("_T")


class Reply(NamedTuple):
    """A whole answer."""

    status: int
    headers: Mapping[str, str]
    content: bytes


class Address(NamedTuple):
    """Target of a URL; user and password are kept elsewhere."""

    scheme: str
    host: str
    port: int | None


def address(url: str) -> Address:
    """Raises ValueError for what is no URL of a host, without saying the URL."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if not _HOST.fullmatch(host) or any(not 0 < len(label) < 64 for label in host.rstrip(".").split(".")):
        raise ValueError("no host")
    return Address(parts.scheme, host, parts.port)


def pool(to: Address) -> urllib3.HTTPConnectionPool:
    """Connections to that host only, through the proxy that the environment names. Raises GpudiagError."""
    proxy = None if to.host in LOCAL or proxy_bypass(to.host) else getproxies().get(to.scheme)
    manager = _proxied(proxy, f"{to.scheme.upper()}_PROXY") if proxy else urllib3.PoolManager()
    return manager.connection_from_host(to.host, to.port, to.scheme)


def _proxied(url: str, variable: str) -> urllib3.ProxyManager:
    """A way through a proxy. Its URL may hold a password, so no error says it."""
    try:
        url = url if "://" in url else f"http://{url}"
        scheme, host, port = address(url)
        if scheme not in ("http", "https"):
            raise ValueError("no scheme")
        place = f"[{host}]" if ":" in host else host
        headers = {}
        user, at, _ = urlsplit(url).netloc.rpartition("@")
        if at:
            name, _, password = user.partition(":")
            word = b64encode(f"{unquote(name)}:{unquote(password)}".encode()).decode()
            headers["Proxy-Authorization"] = f"Basic {word}"
        place += f":{port}" if port else ""
        return urllib3.ProxyManager(f"{scheme}://{place}", proxy_headers=headers)
    except (ValueError, urllib3.exceptions.HTTPError):
        raise GpudiagError(f"{variable} {PROXY}") from None


def exchange(
    connections: urllib3.HTTPConnectionPool,
    method: str,
    target: str,
    content: bytes | None,
    headers: Mapping[str, str],
) -> Reply | None:
    """The answer; None for one above LARGEST. Raises TimeoutError after WHOLE seconds, else urllib3's HTTPError."""

    def whole() -> Reply | None:
        # The pool connects to one host only: whatever a redirect or a page's link says, a token stays there.
        response = connections.urlopen(
            method, target, content, headers, retries=False, redirect=False, timeout=TIMEOUT, preload_content=False
        )
        try:
            read = bytearray()
            for part in response.stream(CHUNK):
                read += part
                if len(read) > LARGEST:
                    return None
            return Reply(response.status, response.headers, bytes(read))
        finally:
            response.close()

    return _within(WHOLE, whole)


def _within(seconds: float, work: Callable[[], _T]) -> _T:
    """The result of `work`, or TimeoutError. A socket's own limit starts anew with every byte that drips in."""
    future: Future[_T] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # noqa: BLE001  it is raised where the result is asked for
            future.set_exception(error)

    # Nobody waits for it at the end of the process, unlike for the threads of an executor.
    Thread(target=run, daemon=True).start()
    return future.result(seconds)
