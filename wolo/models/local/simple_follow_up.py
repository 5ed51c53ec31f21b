"""Steps of simple mode after a call: use what was read, try what was written, repair what fails, or report."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from wolo.errors import BadAnswer
from wolo.messages.message import Message
from wolo.messages.parts import ToolPart
from wolo.models.local import simple_texts as texts
from wolo.models.local.local_chat import Sampling
from wolo.models.local.simple_context import SimpleStep
from wolo.models.local.simple_runs import (
    COMMAND_TOKENS,
    RUN_S,
    RUNNERS,
    error_of,
    example_command,
    file_to_fix,
    needs_input,
    next_change,
    next_file,
    printed_nothing,
    run_command,
    shows_something,
    takes_arguments,
    wants_run,
)
from wolo.models.local.simple_texts import describe_failure, describe_output, describe_success, file_text, listing_of
from wolo.models.local.simple_writer import OTHER_MODEL, ask_replacement, write_file

REPAIRS: Final = 3
"""Writes in one turn after which a failing program is reported."""
MAX_CHANGED_LINES: Final = 200
MAX_CHANGED_CHARS: Final = 4_000
"""Maximum size of a file to rewrite; larger ones would take minutes and lose content."""


async def continue_turn(step: SimpleStep, call: ToolPart) -> Message:
    """The step after a call that has ended."""
    turn = step.turn
    if call.is_error:
        return await _after_failure(step, call)
    match call.tool:
        case "read" if turn.plan in ("change", "repair") and "write" in step.tools:
            path = str(call.input.get("path", ""))
            file = file_text(call.output)
            is_long = not file.is_whole or len(file.text) > MAX_CHANGED_CHARS or file.text.count("\n") > MAX_CHANGED_LINES
            if not is_long:
                return await write_file(step, path, file.text)
            if "edit" not in step.tools:
                raise BadAnswer(f"{path} is too long for this small model to change.", hint=OTHER_MODEL)
            failed = step.turn.failed_run
            replacement = await ask_replacement(step, path, file.text, error_of(failed) if failed is not None else "")
            return await step.call("edit", {"path": path, "old": replacement.old, "new": replacement.new})
        case "read":
            excerpt = texts.shorten(file_text(call.output).text, texts.MAX_EXCERPT_CHARS)
            return await step.answer(texts.about(step.request, str(call.input.get("path", "The file")), excerpt))
        case "glob" if turn.plan == "project" and listing_of(call.output):
            names = "\n".join(listing_of(call.output)[:40])
            return await step.answer(texts.about(step.request, "The files of the project", names))
        case "shell" if turn.plan == "check":
            is_silent = printed_nothing(call) and shows_something(step.question) and len(turn.written) < REPAIRS
            return await (_after_failed_run(step, call) if is_silent else _reply_written(step, call))
        case "glob" | "shell":
            return await step.response.reply(describe_output(call))
        case "write" | "edit":
            return await _after_write(step, call)
        case _:
            return await step.response.reply(describe_success(call))


async def _after_write(step: SimpleStep, call: ToolPart) -> Message:
    """Write the next file, run what was written, or report it."""
    written = [str(each.input.get("path")) for each in step.turn.written]
    if name := next_file(step.question, step.names, written):
        return await write_file(step, name)
    if "read" in step.tools and (name := next_change(step.question, step.names, written)):
        return await step.call("read", {"path": name}, plan="change")
    command = ""
    if "shell" in step.tools:
        tried = next((each for each in step.turn.calls if each.tool == "shell"), None)
        path, asked = str(call.input.get("path", "")), wants_run(step.question)
        text = str(call.input.get("content") or step.names.beginning(path))
        command = str(tried.input["command"]) if tried else run_command(path, text, asked=asked)
        runner = RUNNERS.get(Path(path).suffix.lower(), "")
        if not command and runner and takes_arguments(text) and step.response.chat.server.continues:
            turns = texts.example_run(path, runner, step.question)
            completion = await step.response.complete(turns, Sampling(max_tokens=COMMAND_TOKENS, stop=("\n",)))
            command = example_command(path, runner, completion.text)
    if command:
        return await step.call("shell", {"command": command, "timeout_s": RUN_S}, plan="check")
    return await _reply_written(step)


async def _after_failed_run(step: SimpleStep, call: ToolPart) -> Message:
    """Let the model see why a program fails, and write it again."""
    if needs_input(call) and step.turn.plan == "check":
        return await _reply_written(step)
    written = step.turn.written
    path = file_to_fix(call, step.question, step.names) or (str(written[-1].input["path"]) if written else "")
    if len(written) >= REPAIRS or not path:  # end without success: the work that was asked for does not run
        paths = dict.fromkeys(str(each.input.get("path")) for each in written)
        begin = f"{', '.join(paths)} {'was' if len(paths) == 1 else 'were'} written, but " if paths else ""
        raise BadAnswer(f"{begin}{describe_failure(call)}", hint=OTHER_MODEL)
    last = next((each for each in reversed(written) if each.input.get("path") == path), None)
    if last is None or last.tool == "edit":
        return await step.call("read", {"path": path}, plan="repair")
    return await write_file(step, path, str(last.input["content"]))


async def _after_failure(step: SimpleStep, call: ToolPart) -> Message:
    """Repair after a failed run; read an unexpected existing file once; report other failures."""
    turn = step.turn
    if call.tool == "shell" and turn.plan in ("try", "check"):
        if call.outcome == "error" and "write" in step.tools:
            return await _after_failed_run(step, call)
        if turn.written:
            return await _reply_written(step)
    has_read = any(earlier.tool == "read" for earlier in turn.calls)
    if call.tool == "write" and call.outcome == "error" and not has_read and "read" in step.tools:
        path = str(call.input.get("path", ""))
        if step.names.exists(path) and not step.names.is_folder(path):
            return await step.call("read", {"path": path}, plan="change")
    if (call.tool in ("write", "edit") and call.outcome == "error") or (turn.plan == "change" and call.tool == "read"):
        raise BadAnswer(describe_failure(call), hint=OTHER_MODEL)
    return await step.response.reply(describe_failure(call))


async def _reply_written(step: SimpleStep, run: ToolPart | None = None) -> Message:
    by_path = {call.input.get("path"): call for call in step.turn.written}
    text = "\n".join(describe_success(call, is_run=run is not None) for call in by_path.values())
    return await step.response.reply(text + (f"\n\n{describe_output(run)}" if run and not printed_nothing(run) else ""))
