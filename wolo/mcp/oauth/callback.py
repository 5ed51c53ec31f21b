"""Receives the redirect of a browser on a loopback port, and opens the browser."""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import NamedTuple, Self
from urllib.parse import parse_qs, urlsplit

from wolo.errors import ConfigError
from wolo.messages.terminal_text import clean_line

WAIT_S = 300.0
HOST = "127.0.0.1"
_REQUEST_S = 10.0
_MOST_LINES = 100
_PATH = "/callback"
_PAGE = "<!doctype html><meta charset=utf-8><title>wolo</title><p>{}</p>"


class LoginFailed(Exception):
    """The login failed; the text says why."""


class Redirect(NamedTuple):
    """What the authorization server answered."""

    code: str
    state: str
    issuer: str | None


class Callback:
    """Listens on a loopback address from `open` until `close`."""

    def __init__(self, on_address: Callable[[str], None], redirect_uri: str = "", port: int = 0) -> None:
        """`on_address` receives the address to open. `redirect_uri`: where to listen; empty: `port` if it is free, else any."""
        self.redirect_uri = redirect_uri
        self._on_address = on_address
        self._port = port
        self._state = ""
        self._found: asyncio.Future[Redirect] | None = None
        self._servers: list[asyncio.Server] = []

    async def open(self) -> Self:
        """Raises ConfigError if the port is in use."""
        address = urlsplit(self.redirect_uri)
        port = address.port or self._port
        host = "::1" if address.hostname == "::1" else HOST
        try:
            self._servers.append(await asyncio.start_server(self._serve, host, port))
        except OSError as error:
            if self._port and not self.redirect_uri:
                self._port = 0
                return await self.open()
            raise ConfigError(f"Cannot listen on {self.redirect_uri} for the login: {error.strerror or error}.") from error
        port = self._servers[0].sockets[0].getsockname()[1]
        if address.hostname == "localhost":
            with suppress(OSError):  # browsers may try IPv6 first, but fall back
                self._servers.append(await asyncio.start_server(self._serve, "::1", port))
        self.redirect_uri = self.redirect_uri or f"http://{HOST}:{port}{_PATH}"
        return self

    def show(self, authorization_url: str) -> None:
        """Accept only the answer to this request from now on."""
        self._state = parse_qs(urlsplit(authorization_url).query).get("state", [""])[0]
        self._found = asyncio.get_running_loop().create_future()
        self._on_address(authorization_url)

    async def wait(self) -> Redirect:
        """Raises LoginFailed."""
        assert self._found is not None  # `show` is called first
        try:
            async with asyncio.timeout(WAIT_S):
                return await self._found
        except TimeoutError:
            raise LoginFailed(f"nobody logged in within {WAIT_S:g} s") from None

    def take(self, address: str) -> bool:
        """Accept the address that a browser was redirected to; False for the answer to another request."""
        query = {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}
        if not self._state or query.get("state") != self._state or self._found is None or self._found.done():
            return False
        if "error" in query:
            why = clean_line(query.get("error_description") or query["error"])[:500]
            self._found.set_exception(LoginFailed(f"the authorization server refused: {why}"))
        elif "code" not in query:
            return False
        else:
            self._found.set_result(Redirect(query["code"], self._state, query.get("iss")))
        return True

    async def close(self) -> None:
        for server in self._servers:
            server.close()
        if self._found is not None:
            self._found.cancel()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_REQUEST_S):
                method, _, rest = (await reader.readline()).decode("latin-1").partition(" ")
                target = rest.split(" ", 1)[0]
                host = ""
                for _ in range(_MOST_LINES):
                    line = (await reader.readline()).decode("latin-1").strip()
                    if not line:
                        break
                    if line.lower().startswith("host:"):
                        host = line[5:].strip()
                own = urlsplit(self.redirect_uri)
                if method != "GET" or urlsplit(target).path.rstrip("/") != own.path.rstrip("/"):
                    status, sentence = "404 Not Found", "There is nothing here."
                elif host.rpartition(":")[0] not in ("localhost", HOST, "[::1]"):
                    status, sentence = "403 Forbidden", "This address is not that of a login."
                elif not self.take(target):
                    status, sentence = "400 Bad Request", "This is not the answer to the login that wolo waits for."
                else:
                    status, sentence = "200 OK", "wolo has received the answer. You can close this page."
                body = _PAGE.format(sentence).encode()
                head = f"HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {len(body)}"
                writer.write(f"{head}\r\nReferrer-Policy: no-referrer\r\nConnection: close\r\n\r\n".encode() + body)
                await writer.drain()
        except (OSError, ValueError, TimeoutError):
            pass  # a broken request; the browser's own one may still come
        finally:
            writer.close()


def open_browser(url: str, environ: Mapping[str, str]) -> bool:
    """Tries the programs of BROWSER, else the system's browser if there is a screen."""
    named = environ.get("BROWSER", "")
    if named.strip():
        argvs = [_argv(each, url) for each in named.split(os.pathsep)]
    elif sys.platform == "darwin":
        argvs = [["open", url]]
    else:
        has_screen = environ.get("DISPLAY") or environ.get("WAYLAND_DISPLAY")
        programs = ["xdg-open", "gio open", "x-www-browser"] if has_screen else []
        argvs = [[*program.split(), url] for program in [*programs, "wslview"] if shutil.which(program.split()[0])]
    return any(_start(argv, environ) for argv in argvs if argv)


def _argv(command: str, url: str) -> list[str]:
    try:
        words = shlex.split(command)
    except ValueError:
        return []
    filled = [word.replace("%s", url) for word in words]
    return filled if filled != words else [*words, url] if words else []


def _start(argv: list[str], environ: Mapping[str, str]) -> bool:
    quiet = subprocess.DEVNULL
    try:
        subprocess.Popen(argv, stdin=quiet, stdout=quiet, stderr=quiet, env=dict(environ), start_new_session=True)
    except (OSError, ValueError):
        return False
    return True


def read_pasted(callback: Callback, on_wrong: Callable[[], None]) -> Callable[[], None]:
    """Also accepts the address pasted at the terminal, for browsers on another machine; returns what stops it."""
    loop = asyncio.get_running_loop()

    def read() -> None:
        line = os.read(sys.stdin.fileno(), 65536).decode(errors="replace").strip()
        if not line:
            loop.remove_reader(sys.stdin.fileno())
        elif not callback.take(line):
            on_wrong()

    def stop() -> None:
        loop.remove_reader(sys.stdin.fileno())

    loop.add_reader(sys.stdin.fileno(), read)
    return stop
