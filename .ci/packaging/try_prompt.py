"""Has an installed wolo make and change a file with a scripted model on this machine, and undo it: try_prompt.py WOLO."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

CALLS = [
    ("write", {"path": "made.txt", "content": "one\n"}),
    ("edit", {"path": "there.txt", "old": "one", "new": "two"}),
    ("write", {"path": "linked/outside.txt", "content": "changed\n"}),
]
DENIED = 4
"""The exit code when nobody could approve a call."""


class Model(BaseHTTPRequestHandler):
    """Makes the calls one after the other, then answers."""

    num_asked = 0

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        delta: dict[str, Any] = {"role": "assistant", "content": "Done."}
        if Model.num_asked < len(CALLS):
            name, arguments = CALLS[Model.num_asked]
            function = {"name": name, "arguments": json.dumps(arguments)}
            delta = {
                "role": "assistant",
                "tool_calls": [{"index": 0, "id": f"call_{name}", "type": "function", "function": function}],
            }
        Model.num_asked += 1
        ended = {"index": 0, "delta": {}, "finish_reason": "tool_calls" if "tool_calls" in delta else "stop"}
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        for choice in ({"index": 0, "delta": delta}, ended):
            chunk = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "test", "choices": [choice]}
            self.wfile.write(f"data: {json.dumps(chunk)}\n\n".encode())
        self.wfile.write(b"data: [DONE]\n\n")

    def do_GET(self) -> None:
        self.send_error(404)

    def log_message(self, format: str, *arguments: Any) -> None:
        pass


def main() -> None:
    program = str(Path(sys.argv[1]).absolute())
    server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_address[1]}/v1"
    with tempfile.TemporaryDirectory() as scratch:
        project = Path(scratch, "project")
        project.mkdir()
        (project / "there.txt").write_bytes(b"one\n")
        outside = Path(scratch, "elsewhere", "outside.txt")
        outside.parent.mkdir()
        outside.write_bytes(b"outside\n")
        with contextlib.suppress(OSError):  # Windows lets only some accounts make links
            (project / "linked").symlink_to(outside.parent, target_is_directory=True)
        environ = {**os.environ, "WOLO_HOME": str(Path(scratch, "home"))}

        def wolo(*arguments: str) -> str:
            done = subprocess.run([program, *arguments], cwd=project, env=environ, capture_output=True, timeout=120, input=b"")
            if done.returncode not in (0, DENIED):
                sys.exit(f"wolo {' '.join(arguments)} ended with {done.returncode}:\n{done.stdout!r}\n{done.stderr!r}")
            return done.stdout.decode()

        model = ("--base-url", address, "--api-key", "none", "--model", "custom/test")
        answer = wolo(*model, "--mode", "edit", "-p", "write a file")
        files = {path.name: path.read_bytes() for path in project.glob("*.txt")}
        wolo("undo")
        after = {path.name: path.read_bytes() for path in project.glob("*.txt")}
        if outside.read_bytes() != b"outside\n":
            sys.exit("A link led out of the project.")
    expected = ({"made.txt": b"one\n", "there.txt": b"two\n"}, {"there.txt": b"one\n"})
    if (files, after) != expected:
        sys.exit(f"A prompt left {files}, and its undo {after}.")
    print(answer.strip())


if __name__ == "__main__":
    main()
