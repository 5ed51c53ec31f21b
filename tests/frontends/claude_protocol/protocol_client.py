"""A program that speaks Claude Code's protocol with a wolo of its own, line by line."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.fakes.command import start_wolo
from tests.fakes.provider_server import ProviderServer

Line = dict[str, Any]
FORMS = ("--output-format", "claude-stream-json", "--input-format", "claude-stream-json")
Answer = Callable[[Line], Line | None]
"""Takes a control request of wolo and returns the response; None: no answer."""


def allow(request: Line) -> Line:
    return {"behavior": "allow", "updatedInput": request.get("input", {})}


class ProtocolClient:
    """`answer` answers what wolo asks while a result is awaited."""

    def __init__(
        self,
        provider: ProviderServer | None,
        *options: str,
        answer: Answer = lambda request: None,
        forms: tuple[str, ...] = FORMS,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> None:
        flags = provider.flags if provider else ()
        self.process: subprocess.Popen[bytes] = start_wolo(*forms, *flags, *options, stdin_pipe=True, env=env, cwd=cwd)
        self.asked: list[Line] = []
        """Control requests of wolo."""
        self._answer = answer
        self._num_requests = 0

    def __enter__(self) -> Self:
        self.process.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is not None:
            self.process.kill()
        assert self.process.stdin is not None
        if not self.process.stdin.closed:
            self.process.stdin.close()
        self.process.__exit__(kind, error, trace)

    def write(self, text: str) -> None:
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(text.encode())
            self.process.stdin.flush()
        except BrokenPipeError:
            output, errors = self.process.communicate()
            raise AssertionError(f"wolo ended with {self.process.returncode}: {output!r} {errors!r}") from None

    def send(self, message: Mapping[str, Any]) -> None:
        self.write(json.dumps(message) + "\n")

    def prompt(self, text: Any, **more: Any) -> None:
        self.send({"type": "user", "message": {"role": "user", "content": text}, "parent_tool_use_id": None, **more})

    def respond(self, id: str, response: Mapping[str, Any]) -> None:
        self.send({"type": "control_response", "response": {"subtype": "success", "request_id": id, "response": response}})

    def start_request(self, subtype: str, **fields: Any) -> str:
        self._num_requests += 1
        id = f"r{self._num_requests}"
        self.send({"type": "control_request", "request_id": id, "request": {"subtype": subtype, **fields}})
        return id

    def request(self, subtype: str, **fields: Any) -> Line:
        """The response: `subtype` success or error."""
        id = self.start_request(subtype, **fields)
        lines = self.read_until(lambda line: line["type"] == "control_response" and line["response"]["request_id"] == id)
        response: Line = lines[-1]["response"]
        return response

    def read(self) -> Line | None:
        """The next line; None: there is no further one."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        return json.loads(line) if line else None

    def read_until(self, is_last: Callable[[Line], bool]) -> list[Line]:
        """The lines up to the first that is so; control requests are answered, and not among them."""
        lines: list[Line] = []
        while True:
            line = self.read()
            assert line is not None, f"wolo ended: {lines} {self.process.stderr.read() if self.process.stderr else b''!r}"
            if line["type"] == "control_request":
                self.asked.append(line["request"])
                if (response := self._answer(line["request"])) is not None:
                    self.respond(line["request_id"], response)
                continue
            lines.append(line)
            if is_last(line):
                return lines

    def turn(self, text: Any = "go", **more: Any) -> list[Line]:
        """Sends a prompt; the lines of its turn, the result last."""
        self.prompt(text, **more)
        return self.read_until(lambda line: line["type"] == "result")

    def end(self) -> int:
        """Ends the input; the exit code."""
        assert self.process.stdin is not None
        if not self.process.stdin.closed:
            self.process.stdin.close()
        return self.process.wait(30)


def blocks(lines: list[Line], kind: str) -> list[Line]:
    """Content blocks of a kind."""
    messages = [line["message"] for line in lines if line["type"] in ("assistant", "user")]
    return [block for message in messages for block in message["content"] if block["type"] == kind]
