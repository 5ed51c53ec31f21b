"""A server of credentials on a real socket: a token endpoint, or a metadata server."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qsl


@dataclass(frozen=True)
class CloudAsked:
    method: str
    path: str
    headers: Mapping[str, str]
    form: Mapping[str, str]


@dataclass(frozen=True)
class CloudAnswer:
    body: Any = ""
    """A text as it is; anything else as JSON."""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    hangs: bool = False
    """Nothing is sent until the server is closed."""


Answer = CloudAnswer | Callable[[CloudAsked], CloudAnswer]


class CloudServer:
    def __init__(self) -> None:
        self.answers: dict[str, Answer] = {}
        """By method and path without its query: `GET /token`. Anything else is 404."""
        self.asked: list[CloudAsked] = []
        self._closing = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def _serve(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length") or 0)).decode()
                headers = {name.lower(): value for name, value in self.headers.items()}
                asked = CloudAsked(self.command, self.path, headers, dict(parse_qsl(body)))
                outer.asked.append(asked)
                scripted = outer.answers.get(f"{self.command} {self.path.partition('?')[0]}", CloudAnswer("", 404))
                answer = scripted if isinstance(scripted, CloudAnswer) else scripted(asked)
                if answer.hangs:
                    outer._closing.wait()
                    return
                data = answer.body.encode() if isinstance(answer.body, str) else json.dumps(answer.body).encode()
                self.send_response_only(answer.status)
                if "date" not in answer.headers:
                    self.send_header("date", self.date_time_string())
                for name, value in {**answer.headers, "content-length": str(len(data))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = do_PUT = _serve

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.host = f"127.0.0.1:{self._server.server_address[1]}"
        self.url = f"http://{self.host}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()
