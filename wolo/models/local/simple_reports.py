"""Texts that simple mode writes itself: what a call did, what was checked, and which line an answer rests on."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from wolo.messages.line_numbers import remove_numbers, split_output
from wolo.messages.parts import ToolPart
from wolo.models.local.checks.asked_parts import asked_parts
from wolo.models.local.checks.run_check import COMPARED
from wolo.models.local.checks.stated_results import asked_formula

MAX_LINES: Final = 30
LONG_WORD: Final = 5
SUCCEEDED: Final = "[exit 0]"
_NUMBER: Final = re.compile(r"^\d+→|^\[… .* left out .*\n|^\nmessage_id .*\n.*\Z", re.MULTILINE)
_NOTE: Final = re.compile(r"\[.*\]\Z", re.DOTALL)
_ALL_LINES: Final = re.compile(r"\[(\d+) lines?\.")


class FileText(Struct, frozen=True):
    text: str
    is_whole: bool


def file_text(output: str) -> FileText:
    """Extract a file from the output of `read`, without line numbers.

    Lines may be missing, because old results are shortened in small windows.
    """
    page, note = split_output(output)
    _, lines = remove_numbers(page) or (0, [])
    total = _ALL_LINES.match(note)
    if total is not None and int(total[1]) == len(lines) and not any(" … [cut: " in line for line in lines):
        return FileText("".join(f"{line}\n" for line in lines), is_whole=True)
    return FileText(_NUMBER.sub("", "\n".join(page)), is_whole=output == "[The file is empty.]")


def listing_of(output: str) -> list[str]:
    return [line for line in output.splitlines() if line and not _NOTE.match(line)]


def describe_output(call: ToolPart) -> str:
    """Show the output of a listing or command, with the middle cut if long."""
    if call.tool == "glob":
        names = listing_of(call.output)
        if not names:
            return "There are no files here."
        count = "There is 1 file" if len(names) == 1 else f"There are {len(names)} files"
        return f"{count}:\n\n{_code_fence(names)}"
    lines = [line for line in call.output.rstrip().splitlines() if line != SUCCEEDED and not line.startswith(COMPARED)]
    command = str(call.input.get("command", "The command")).rpartition("' && ")[2]  # without a comparison before it
    return f"`{command}` printed:\n\n{_code_fence(lines)}"


def describe_success(call: ToolPart, *, is_run: bool = False) -> str:
    if call.tool == "edit":
        return f"Changed {call.input.get('path')}."
    if call.tool != "write":
        return call.output.strip() or "Done."
    path, content = str(call.input.get("path", "")), str(call.input.get("content", ""))
    count = len(content.splitlines())
    run = f" Run it with `python3 {path}`." if not is_run and path.endswith(".py") and "__main__" in content else ""
    return f"Wrote {path} ({count} line{'' if count == 1 else 's'}).{run}"


def describe_failure(call: ToolPart) -> str:
    what = {
        "write": f"{call.input.get('path')} was not written",
        "edit": f"{call.input.get('path')} was not changed",
        "read": f"{call.input.get('path')} was not read",
        "shell": f"`{call.input.get('command')}` was not run",
    }.get(call.tool, f"`{call.tool}` did not work")
    if call.outcome in ("denied_by_person", "denied_by_rule"):
        return f"{what}, because it was not allowed."
    if call.tool == "shell" and call.outcome == "error":
        return f"`{call.input.get('command')}` failed:\n\n{_code_fence(call.output.rstrip().splitlines())}"
    return f"{what}: {call.output.strip() or 'no reason was given.'}"


def _code_fence(lines: list[str]) -> str:
    if len(lines) > MAX_LINES:
        left_out = len(lines) - MAX_LINES
        lines = [*lines[: MAX_LINES // 2], f"… {left_out} more lines …", *lines[-MAX_LINES // 2 :]]
    text = "\n".join(lines)
    fence = "````" if "```" in text else "```"
    return f"{fence}\n{text}\n{fence}"


def quote_source(path: str, text: str, request: str, answer: str) -> str:
    """Quote the line of a file that an answer rests on; empty if none shares a name or word with it."""
    asked, answered = ({word.lower() for word in re.findall(r"\w{2,}", part)} for part in (request, answer))
    best, score = 0, 0
    lines = text.splitlines()
    for at, line in enumerate(lines):
        own = {word.lower() for word in re.findall(r"\w{2,}", line)}
        names = {word for word in own & asked if "_" in word or not word.isascii() or len(word) > LONG_WORD}
        if (
            points := len(own & asked) + 3 * len(names) + len(own & answered) + line.strip().startswith(("def ", "class "))
        ) > score:
            best, score = at, points
    return f"> {lines[best].strip()}\n> ({path}, line {best + 1})" if score else ""


def describe_checks(request: str, contents: Mapping[str, str], run: ToolPart | None) -> str:
    """Write the last line of a report: what was compared with the request."""
    checks = ["the tests pass" if "pytest" in str(run.input.get("command")) else "runs"] if run and not run.is_error else []
    checks += ["another version has the same results"] * bool(run and f"{COMPARED}the same" in run.output)
    parts, whole = asked_parts(request), "\n".join(contents.values())
    if run and not run.is_error and (formula := asked_formula(request, whole)) and "asked, " in str(run.input.get("command")):
        checks.append(f"computes {formula}")
    defines = [each.name for each in parts.functions if re.search(rf"\b(?:def|class|function) {each.name}\b", whole)]
    has = [
        each
        for each in (*parts.names, *(f"“{text}”" for text in parts.quoted if text not in parts.names), *parts.numbers)
        if each.strip("“”") in whole
    ]
    if not checks and any(path.endswith((".py", ".json", ".toml")) for path in contents):
        checks.append("can be parsed")
    checks += [f"defines {', '.join(defines)}"] * bool(defines) + [f"has {', '.join(dict.fromkeys(has))}"] * bool(has)
    return f"Checked: {', '.join(checks)}." if checks else "Nothing of it could be checked."
