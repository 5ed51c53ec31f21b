"""A server that speaks only the revision 2026-07-28 of the protocol: no handshake, metadata and version in each request."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.fakes.command import run_wolo

REVISION = "2026-07-28"
COMMON = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
RESULTS: dict[str, dict[str, Any]] = {
    "server/discover": {
        "supportedVersions": [REVISION],
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "m", "version": "1"},
    },
    "tools/list": {"tools": [{"name": "look", "inputSchema": {"type": "object"}}]},
}
Asked = list[tuple[str, str | None, dict[str, Any]]]


@contextmanager
def modern_server() -> Iterator[tuple[str, Asked]]:
    """Its address, and the method, version header and metadata of each request."""
    asked: Asked = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            message = json.loads(self.rfile.read(int(self.headers["content-length"])))
            method, params = message["method"], message.get("params") or {}
            asked.append((method, self.headers.get("mcp-protocol-version"), params.get("_meta") or {}))
            refusal = {
                "code": -32022,
                "message": "Unsupported protocol version",
                "data": {"supported": [REVISION], "requested": "x"},
            }
            answer = {"result": {**RESULTS[method], **COMMON}} if method in RESULTS else {"error": refusal}
            body = json.dumps({"jsonrpc": "2.0", "id": message.get("id"), **answer}).encode()
            self.send_response(200 if method in RESULTS else 400)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_GET(self) -> None:
            self.send_error(405)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/mcp", asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_newest_revision_needs_no_handshake() -> None:
    with modern_server() as (address, asked):
        run_wolo("mcp", "add", "-t", "http", "web", address)
        assert run_wolo("mcp", "test", "web").stdout.endswith("web works: 1 tool.\n")
    refused, *later = asked
    assert refused[0] == "initialize"
    assert {"server/discover", "tools/list"} <= {method for method, *_ in later}
    for _, version, meta in later:
        assert version == REVISION
        assert meta["io.modelcontextprotocol/protocolVersion"] == REVISION
        assert meta["io.modelcontextprotocol/clientInfo"]["name"] == "wolo"
