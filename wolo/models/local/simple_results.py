"""What simple mode says about the result of a call, without asking the model: it is short, and it is true."""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct

from wolo.messages.parts import ToolPart

MAX_LINES: Final = 30
_NUMBERED: Final = re.compile(r"\d+→(.*)", re.DOTALL)
_NOTE: Final = re.compile(r"\[.*\]\Z", re.DOTALL)
_ALL_LINES: Final = re.compile(r"\[(\d+) lines?\.")


class FileText(Struct, frozen=True):
    text: str
    is_whole: bool


def file_text(output: str) -> FileText:
    """A file out of what the `read` tool says about it: the lines without their numbers.

    Lines may be missing in the middle: an old result is sent shortened where the window is small.
    """
    lines = output.split("\n")
    numbered = [found[1] for line in lines if (found := _NUMBERED.fullmatch(line))]
    total = _ALL_LINES.match(lines[-1])
    is_whole = total is not None and int(total[1]) == len(numbered) and not any(" … [cut: " in line for line in numbered)
    return FileText("".join(f"{line}\n" for line in numbered), is_whole or output == "[The file is empty.]")


def listing_of(output: str) -> list[str]:
    return [line for line in output.splitlines() if line and not _NOTE.match(line)]


def finding(call: ToolPart) -> str:
    """What a listing or a command brought to light, both ends of it when it is long."""
    if call.tool == "glob":
        names = listing_of(call.output)
        if not names:
            return "There are no files here."
        count = "There is 1 file" if len(names) == 1 else f"There are {len(names)} files"
        return f"{count}:\n\n{_fenced(names)}"
    return f"`{call.input.get('command', 'The command')}` says:\n\n{_fenced(call.output.rstrip().splitlines())}"


def success(call: ToolPart) -> str:
    if call.tool != "write":
        return call.output.strip() or "Done."
    path, content = str(call.input.get("path", "")), str(call.input.get("content", ""))
    count = len(content.splitlines())
    run = f" Run it with `python3 {path}`." if path.endswith(".py") and "__main__" in content else ""
    return f"Wrote {path} ({count} line{'' if count == 1 else 's'}).{run}"


def failure(call: ToolPart) -> str:
    what = {
        "write": f"{call.input.get('path')} was not written",
        "read": f"{call.input.get('path')} was not read",
        "shell": f"`{call.input.get('command')}` was not run",
    }.get(call.tool, f"`{call.tool}` did not work")
    if call.outcome in ("denied_by_person", "denied_by_rule"):
        return f"{what}, because it was not allowed."
    if call.tool == "shell" and call.outcome == "error":
        return f"`{call.input.get('command')}` failed:\n\n{_fenced(call.output.rstrip().splitlines())}"
    return f"{what}: {call.output.strip() or 'no reason was given.'}"


def _fenced(lines: list[str]) -> str:
    if len(lines) > MAX_LINES:
        left_out = len(lines) - MAX_LINES
        lines = [*lines[: MAX_LINES // 2], f"… {left_out} more lines …", *lines[-MAX_LINES // 2 :]]
    text = "\n".join(lines)
    fence = "````" if "```" in text else "```"
    return f"{fence}\n{text}\n{fence}"
