"""A real `wolo serve` process and a client of its API."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Self, get_args, get_type_hints

import httpx2
import msgspec

from tests.fakes.command import start_wolo
from tests.fakes.provider_server import KEY, ProviderServer
from wolo.frontends.server.response_types import EVENT_TYPES, EventType
from wolo.frontends.server.routes import ROUTES


def literal(kind: type[EventType], name: str) -> str:
    hint = get_type_hints(kind).get(name)
    return str(get_args(hint)[0]) if get_args(hint) else ""


BY_KIND = {tuple(literal(each, name) for name in ("type", "subtype")): each for each in EVENT_TYPES}


def check_event(line: dict[str, Any]) -> None:
    """Each line fits its documented type, and has no other field."""
    documented = BY_KIND.get((line["type"], line.get("subtype", "") if line["type"] == "system" else ""))
    assert documented is not None, f"a line without a type: {line}"
    check(line, documented)


def check(value: Any, documented: Any) -> None:
    assert json.loads(msgspec.json.encode(msgspec.convert(value, documented))) == value, documented


def documented_type(method: str, path: str) -> Any:
    for route in ROUTES:
        if route.method == method and re.fullmatch(route.path.replace("{id}", "[^/]+"), path):
            return route.returns
    return None


class Answered(Exception):
    """Another status than the caller expected."""


class Events:
    """Reads a stream of events in a thread; stops at the end of the test."""

    def __init__(self, server: Server, session_id: str, last: str = "") -> None:
        self.lines: list[dict[str, Any]] = []
        self.ids: list[int] = []
        self._checked = 0
        self._changed = threading.Condition()
        self._client = httpx2.Client(timeout=30)
        self._stop = False
        self._thread = threading.Thread(target=self._read, args=(server, session_id, last), daemon=True)
        self._thread.start()

    def _read(self, server: Server, session_id: str, last: str) -> None:
        headers = {**server.headers, **({"Last-Event-ID": last} if last else {})}
        try:
            with self._client.stream("GET", f"{server.origin}/v1/sessions/{session_id}/events", headers=headers) as stream:
                assert stream.status_code == 200
                for line in stream.iter_lines():
                    if self._stop:
                        return
                    with self._changed:
                        if line.startswith("id: "):
                            self.ids.append(int(line[4:]))
                        elif line.startswith("data: "):
                            self.lines.append(json.loads(line[6:]))
                        self._changed.notify_all()
        except httpx2.HTTPError:
            pass

    def wait(self, wanted: Callable[[dict[str, Any]], bool], *, after: int = 0) -> dict[str, Any]:
        """The first line that fits."""

        def find() -> dict[str, Any] | None:
            return next((line for line in self.lines[after:] if wanted(line)), None)

        with self._changed:
            assert self._changed.wait_for(lambda: find() is not None, timeout=60), [kind(line) for line in self.lines]
            found = find()
            for line in self.lines[self._checked :]:
                check_event(line)
            self._checked = len(self.lines)
        assert found is not None
        return found

    def result(self, *, after: int = 0) -> dict[str, Any]:
        return self.wait(lambda line: line["type"] == "result", after=after)

    def of(self, wanted: str) -> list[dict[str, Any]]:
        return [line for line in list(self.lines) if kind(line) == wanted]

    def close(self) -> None:
        self._stop = True
        self._client.close()


def kind(line: dict[str, Any]) -> str:
    return str(line.get("subtype") if line["type"] == "system" else line["type"])


class Server:
    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        assert process.stdout is not None
        self.address = process.stdout.readline().decode().strip()
        assert self.address, process.communicate()[1]
        self.origin, _, self.token = self.address.partition("/?token=")
        self.headers = {"Authorization": f"Bearer {self.token}"}
        self._client = httpx2.Client(timeout=30)
        self._streams: list[Events] = []

    def request(self, method: str, path: str, headers: dict[str, str] | None = None, **more: Any) -> httpx2.Response:
        response = self._client.request(method, self.origin + path, headers=self.headers | (headers or {}), **more)
        if response.is_success and (documented := documented_type(method, response.url.path)) is not None:
            check(response.json(), documented)
        return response

    def stream(self, path: str) -> Any:
        return self._client.stream("GET", self.origin + path, headers=self.headers)

    def get(self, path: str) -> Any:
        response = self.request("GET", path)
        assert response.status_code == 200, response.text
        return response.json()

    def post(self, path: str, status: int = 200, **body: Any) -> Any:
        response = self.request("POST", path, json=body)
        assert response.status_code == status, response.text
        return response.json()

    def delete(self, path: str, status: int = 200) -> Any:
        response = self.request("DELETE", path)
        assert response.status_code == status, response.text
        return response.json()

    def new(self, **body: Any) -> str:
        return str(self.post("/v1/sessions", 201, **body)["id"])

    def prompt(self, session_id: str, text: str, status: int = 202, **more: Any) -> Any:
        return self.post(f"/v1/sessions/{session_id}/prompt", status, text=text, **more)

    def events(self, session_id: str, last: object = "") -> Events:
        self._streams.append(Events(self, session_id, str(last)))
        return self._streams[-1]

    def stop(self, number: signal.Signals = signal.SIGINT) -> int:
        self.process.send_signal(number)
        return self.process.wait(timeout=20)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for stream in self._streams:
            stream.close()
        self._client.close()
        if self.process.poll() is None:
            self.process.terminate()
        self.process.communicate(timeout=20)


@contextmanager
def running(provider: ProviderServer, *options: str, **environment: str) -> Iterator[Server]:
    env = {"WOLO_BASE_URL": provider.base_url, "WOLO_API_KEY": KEY, "WOLO_MODEL": "custom/test-model"} | environment
    with Server(start_wolo("serve", *options, env=env)) as server:
        yield server
