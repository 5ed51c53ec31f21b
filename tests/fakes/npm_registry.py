"""An npm registry on a real socket: lists versions with the hashes of their archives, and serves those."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import tarfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote


class NpmRegistry:
    def __init__(self) -> None:
        self.requests: list[tuple[str, Mapping[str, str]]] = []
        """Paths and headers in lower case."""
        self.answers: dict[str, bytes] = {}
        self.url = ""
        self._listings: dict[str, dict[str, Any]] = {}

    def publish(self, name: str, version: str, content: Mapping[str, Any], **changed: Any) -> bytes:
        """The newest version of a package; `changed` are other values of its `dist`."""
        archive = pack({"package.json": {"name": name, "version": version}, **content})
        path = f"/{name}/-/{version}.tgz"
        sha512 = base64.b64encode(hashlib.sha512(archive).digest()).decode()
        dist = {"tarball": f"{self.url}{path}", "integrity": f"sha1-AAAA sha512-{sha512}", **changed}
        listing = self._listings.setdefault(name, {"name": name, "dist-tags": {}, "versions": {}})
        listing["dist-tags"]["latest"] = version
        listing["versions"][version] = {"name": name, "version": version, "dist": dist}
        self.answers |= {path: archive, f"/{name}": json.dumps(listing).encode()}
        return archive


def pack(content: Mapping[str, Any]) -> bytes:
    """As `npm pack` does: everything below `package`. Values of other types than text are JSON."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as archive:
        for name, each in content.items():
            data = (each if isinstance(each, str) else json.dumps(each)).encode()
            info = tarfile.TarInfo(f"package/{name}")
            info.size, info.mode = len(data), 0o755 if data.startswith(b"#!") else 0o644
            archive.addfile(info, io.BytesIO(data))
    return made.getvalue()


@contextmanager
def npm_registry() -> Iterator[NpmRegistry]:
    registry = NpmRegistry()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = unquote(self.path)
            registry.requests.append((path, {name.lower(): value for name, value in self.headers.items()}))
            body = registry.answers.get(path)
            self.send_response(404 if body is None else 200)
            self.send_header("content-length", str(len(body or b"")))
            self.end_headers()
            self.wfile.write(body or b"")

        def log_message(self, *_: Any) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        registry.url = f"http://127.0.0.1:{server.server_port}"
        yield registry
        server.shutdown()
