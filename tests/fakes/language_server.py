"""A language server: each line with BAD is an error. The first argument says how it behaves."""

from __future__ import annotations

import json
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

SECTION = "exotic.lint"
GARBAGE = b"Warning: this is a log line\nand another\n"


def send(message: dict[str, Any]) -> None:
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    sys.stdout.buffer.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
    sys.stdout.buffer.flush()


def publish(params: Any) -> None:
    send({"method": "textDocument/publishDiagnostics", "params": params})


def receive() -> dict[str, Any] | None:
    size = 0
    while (line := sys.stdin.buffer.readline()).strip():
        if line.lower().startswith(b"content-length"):
            size = int(line.split(b":")[1])
    return json.loads(sys.stdin.buffer.read(size)) if line or size else None


def errors(text: str) -> list[dict[str, Any]]:
    found = []
    for number, line in enumerate(text.split("\n")):
        if (at := line.find("BAD")) >= 0:
            place = {"line": number, "character": at}
            found.append({"range": {"start": place, "end": place}, "severity": 1, "message": line.strip(), "code": "E1"})
        if "ODD" in line:
            place = {"line": number, "character": 0}
            found.append({"range": {"start": place, "end": place}, "severity": 2, "message": "only a warning"})
    return found


def main(how: str, log: str = "") -> None:
    if how == "dies":
        sys.exit("\x1b[31mno licence\n\x1b[0m")
    if how == "writes":
        with suppress(OSError):
            Path("made-by-the-server").touch()
    if how == "garbage":
        sys.stdout.buffer.write(GARBAGE)
        sys.stdout.buffer.flush()
    texts: dict[str, str] = {}
    while (message := receive()) is not None:
        if log:
            with Path(log).open("a") as file:
                file.write(json.dumps(message) + "\n")
        method, params = message.get("method"), message.get("params") or {}
        if method == "textDocument/diagnostic":
            send({"id": message["id"], "result": {"kind": "full", "items": errors(texts[params["textDocument"]["uri"]])}})
            continue
        if method == "initialize" and how == "refuses":
            send({"id": message["id"], "error": {"code": 1, "message": "no project here"}})
        elif method == "initialize" and how != "mute":
            send({"id": 7, "method": "workspace/configuration", "params": {"items": [{}, {"section": SECTION}]}})
            send({"id": message["id"], "result": {"capabilities": {}}})
            if how == "stops reading":
                signal.pause()
        elif method in ("textDocument/didOpen", "textDocument/didChange"):
            document = params["textDocument"]
            if how == "dies late" and method == "textDocument/didChange":
                sys.exit(3)
            text = document["text"] if method == "textDocument/didOpen" else params["contentChanges"][0]["text"]
            texts[document["uri"]] = text
            if how == "pulled":
                continue
            version = {} if how == "unversioned" else {"version": document["version"]}
            if how == "steps":
                send(
                    {
                        "method": "textDocument/publishDiagnostics",
                        "params": {"uri": document["uri"], "diagnostics": [], **version},
                    }
                )
            if how == "odd":
                rows: Any = [7, {"range": None}, {"message": "x"}, *errors(text)]
                publish(None)
            else:
                rows = errors(text)
            if how != "silent" and "QUIET" not in text:
                send(
                    {
                        "method": "textDocument/publishDiagnostics",
                        "params": {"uri": document["uri"], "diagnostics": rows, **version},
                    }
                )


if __name__ == "__main__":
    main(*sys.argv[1:])
