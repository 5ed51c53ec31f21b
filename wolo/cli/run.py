"""Runs one command line: one prompt and exit, or the interactive session."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import stat
import sys
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from wolo.cli.crash_log import log_to_file, report
from wolo.cli.options import CommandLine, Values
from wolo.cli.signals import answer_signals, is_answered, leave_if, leave_on_signals, note_signals, stop_on_signals
from wolo.config.cli_options import many, text
from wolo.errors import UsageError, WoloError
from wolo.frontends.headless.headless_run import Headless, OutputFormat, check_format, print_failure
from wolo.frontends.streams import OutputLost, print_message, print_messages, show_error
from wolo.operating_system import EXIT_BY_SIGNAL, has_input
from wolo.workspace.root import find_root

if TYPE_CHECKING:
    from wolo.commands.command import SendPrompt
    from wolo.conversation.conversation import Conversation
    from wolo.conversation.resources.startup import StartOptions
    from wolo.messages.message import Origin, UserPrompt


def run(line: CommandLine) -> int:
    """Raises WoloError for text output; with JSON output prints the error as the result object."""
    began, values = time.time(), line.values
    format = check_format(text(values, "output_format") or "text")
    headless = "print" in values or format != "text" or not _is_terminal(sys.stdout) or not _is_terminal(sys.stdin)
    try:
        return _run(line, format, headless=headless)
    except WoloError as error:
        if format == "text":
            raise
        show_error(error)
        return fail_in_json(error)
    except Exception as error:
        if format == "text":
            raise
        return fail_in_json(WoloError(report(error, began)))
    finally:
        answer_signals(signal.SIG_IGN)  # the exit status is final


def fail_in_json(error: WoloError) -> int:
    """Prints the JSON result of a run that never began; returns the exit status."""
    try:
        print_failure(error)
    except OutputLost as lost:
        return lost.exit_code
    return error.exit_code


def _run(line: CommandLine, format: OutputFormat, *, headless: bool) -> int:
    directory = text(line.values, "cd")
    try:
        if directory:
            os.chdir(Path(directory).expanduser())
        Path.cwd()
    except FileNotFoundError as error:
        if directory:
            raise UsageError(f"There is no directory {directory}.") from error
        raise UsageError("The current directory has been deleted.", hint="Change to another one, or use -C DIR.") from error
    except OSError as error:
        raise UsageError(f"Cannot change to {directory}: {error.strerror}.") from error
    if "worktree" in line.values:
        return _run_in_worktree(line, format, headless=headless)
    if "from" in line.values:
        raise UsageError("--from needs --worktree.")
    if "bg" in line.values:
        from wolo.cli.sessions.background import start_in_background

        return start_in_background(line.values, _prompt_text(line))
    if "trust" in line.values:
        line.values["trust"] = str(find_root())  # not a folder the run changes to later
    reads_lines = _reads_lines(line, format)
    origin: Origin
    prompt, piped, origin = ("", "", "file") if reads_lines else _prompt_text(line)
    if headless and "interactive" in line.values:
        raise UsageError("-i needs a terminal.")
    if not headless and "json_schema" in line.values:
        raise UsageError("--json-schema needs -p.")
    if not prompt.strip() and not reads_lines:
        prompt = text(line.values, "goal") or ""
    files, last = tuple(map(Path, many(line.values, "file"))), _last_message_file(line.values)
    if headless and not prompt.strip() and not piped.strip() and not reads_lines:
        raise UsageError("No prompt was given.", hint='wolo -p "create a calculator"')
    came = note_signals()
    from wolo.conversation.local_context import LocalContext

    local_context = LocalContext(Path.cwd().resolve())
    if not {"continue", "resume", "session"} & {*line.values}:
        local_context.begin()  # looks around while the rest of wolo is loaded
    from wolo.conversation.resources.startup import StartOptions

    log_to_file(has_screen=not headless and _is_terminal(sys.stderr))
    progress = show_progress if _is_terminal(sys.stderr) else None
    opening = StartOptions(
        flags=line.values, attended=not headless, owns_loop=headless, progress=progress, local_context=local_context
    )
    with asyncio.Runner() as runner:
        if headless:
            return runner.run(_headless(opening, format, _Errand(prompt, origin, piped, files, last, reads_lines), came))
        from wolo.frontends.terminal.repl.terminal_runner import TerminalTask, start

        leave_on_signals(came)
        stay, ends = "interactive" in line.values or not (prompt.strip() or piped.strip()), list[Path]()
        task = TerminalTask(prompt=prompt, piped=piped, files=files, last_message_file=last, stay=stay, on_end=ends.append)
        code = runner.run(start(opening, task))
    return code or _settle_moved(ends)


def _settle_moved(ends: list[Path]) -> int:
    if ends and ends[0] != Path.cwd().resolve():
        from wolo.cli.sessions.worktree_commands import settle_moved

        settle_moved(ends[0])
    return 0


def _run_in_worktree(line: CommandLine, format: OutputFormat, *, headless: bool) -> int:
    from wolo.cli.sessions.worktree_commands import work_in_worktree

    kept = {name: value for name, value in line.values.items() if name not in ("worktree", "from", "cd")}
    asks = not headless and "bg" not in kept and ("interactive" in kept or not line.words)
    name, ref = text(line.values, "worktree") or "", text(line.values, "from") or ""
    inner = line._replace(values=kept)
    return work_in_worktree(name, ref, lambda: _run(inner, format, headless=headless), asks=asks)


class _Errand(Struct, frozen=True):
    prompt: str
    origin: Origin
    piped: str
    """Content of stdin, in addition to the prompt."""
    files: tuple[Path, ...]
    last_message_file: Path | None
    reads_lines: bool
    """Prompts come as JSON lines on stdin."""


async def _headless(opening: StartOptions, format: OutputFormat, errand: _Errand, came: list[int]) -> int:
    """`came` collects signals until the turn can be cancelled."""
    from wolo.conversation.factory import open_conversation
    from wolo.conversation.prompt_attachments import must_be_sent, write_prompt

    flags = opening.flags
    form = None
    if "json_schema" in flags:
        from wolo.conversation.structured_output import read_schema

        form = read_schema(text(flags, "json_schema"))
    conversation = await open_conversation(opening)
    try:
        prompt, typed = errand.prompt, None
        front = Headless(conversation, format=format, partial="partial" in flags, verbose="verbose" in flags)
        if prompt.startswith("/"):
            stop_on_signals(front)
            leave_if(came)
            if made := await _expand(prompt, conversation, errand.origin):
                from wolo.commands.expansion import switch_model

                if not made.text:
                    return 0
                prompt, typed = made.text, made.typed
                if "model" not in flags:
                    conversation = await switch_model(made.model, conversation, print_message)
                front = Headless(conversation, format=format, partial="partial" in flags, verbose="verbose" in flags)
        message = write_prompt(
            prompt, conversation, origin=errand.origin, notify=print_message, typed=typed, piped=errand.piped, files=errand.files
        )
        if errand.files and "ignore_unsupported" not in flags:
            message = must_be_sent(conversation.choice, message)
        stop_on_signals(front)
        leave_if(came)
        gc.enable()
        gc.freeze()
        try:
            if errand.reads_lines:
                from wolo.frontends.headless.input_lines import run_lines

                return await run_lines(
                    front, partial(_text_line, conversation), last_message_file=errand.last_message_file, form=form
                )
            return await front.run(message, last_message_file=errand.last_message_file, form=form)
        except OutputLost as lost:
            return front.stopped_by or lost.exit_code
    except UsageError:
        if front.stopped_by:
            return front.stopped_by
        raise
    finally:
        await conversation.close()
        _stop_listening()


async def _text_line(conversation: Conversation, line: str) -> UserPrompt:
    """The prompt of a text that comes as a JSON line, and may mention files."""
    from wolo.conversation.prompt_attachments import write_prompt

    if line.startswith("/"):
        await _expand(line, conversation, "file")  # tells that it is text
    return await asyncio.to_thread(write_prompt, line, conversation, origin="file", notify=print_message)


async def _expand(prompt: str, conversation: Conversation, origin: Origin) -> SendPrompt | None:
    """The prompt that a slash command makes; None: it is text."""
    from wolo.agent.events import Event, Noticed
    from wolo.commands.expansion import expand

    def show(event: Event) -> None:
        if isinstance(event, Noticed):
            print_message(event.text)

    made = await expand(prompt, conversation, show, origin)
    print_messages(made.notices if made else ())
    return made


def _reads_lines(line: CommandLine, format: OutputFormat) -> bool:
    """Raises UsageError for options that do not fit together."""
    named = text(line.values, "input_format") or "text"
    if named not in ("text", "stream-json"):
        raise UsageError(f"There is no input format {named!r}.", hint="Choose text or stream-json.")
    if named == "text":
        return False
    if format != "stream-json":
        raise UsageError("--input-format stream-json needs --output-format stream-json.")
    if line.words or "file" in line.values:
        raise UsageError("With --input-format stream-json prompts come from stdin only.", hint="Leave the prompt and -f out.")
    return True


def _last_message_file(values: Values) -> Path | None:
    """Raises UsageError before the request when the file cannot be created."""
    if not (named := text(values, "output_last_message")):
        return None
    path = Path(named).expanduser()
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise UsageError(f"-o {named}: the directory does not exist.", hint="Name a file in an existing directory.")
    return path


def _stop_listening() -> None:
    """Removes the handlers before the loop closes the pipe they write to."""
    loop = asyncio.get_running_loop()
    for number in filter(is_answered, EXIT_BY_SIGNAL):
        with suppress(NotImplementedError):  # on Windows
            loop.remove_signal_handler(number)
        signal.signal(number, signal.SIG_IGN)


def _prompt_text(line: CommandLine) -> tuple[str, str, Origin]:
    """Returns the prompt, the piped text and the prompt's origin; `-` alone reads the prompt from stdin."""
    words = list(line.words)
    if _is_terminal(sys.stdin):
        return " ".join(words), "", "keyboard"
    if not words or words == ["-"]:
        return read_piped(patient=True), "", "file"
    return " ".join(word for word in words if word != "-"), read_piped(patient=False), "command line"


def _is_terminal(stream: object) -> bool:
    try:
        return bool(stream is not None and stream.isatty())  # type: ignore[attr-defined]  # None when the descriptor is closed
    except ValueError:
        return False


WAIT_S = 3.0
"""Time to wait for the first byte of an open pipe when a prompt is given as an argument."""

MAX_BYTES = 16 * 1024 * 1024


def read_piped(*, patient: bool) -> str:
    """Reads stdin; invalid UTF-8 is replaced. `patient` waits for input without a limit."""
    if sys.stdin is None:
        return ""
    try:
        descriptor = sys.stdin.fileno()
        kind = os.fstat(descriptor).st_mode
    except (OSError, ValueError):
        return ""
    if stat.S_ISCHR(kind) and not patient:
        return ""
    if not patient and (stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind)) and not has_input(descriptor, WAIT_S):
        print_message("No input on stdin; continuing without it.")
        return ""
    return _read(descriptor)


def _read(descriptor: int) -> str:
    pieces: list[bytes] = []
    size = 0
    while True:
        try:
            piece = os.read(descriptor, 1 << 20)
        except OSError as error:
            raise UsageError(f"Cannot read stdin: {error.strerror}.") from error
        if not piece:
            return b"".join(pieces).decode("utf-8-sig", "replace")
        size += len(piece)
        if size > MAX_BYTES:
            raise UsageError(f"stdin is larger than {MAX_BYTES // 2**20} MB.", hint="Save it to a file and name the file.")
        pieces.append(piece)


def show_progress(done: int, total: int) -> None:
    """Updates one line of progress on stderr, if that is a terminal."""
    from wolo.models.local.weights import format_size

    if sys.stderr.isatty():
        share = 100 * done // max(total, 1)
        end = "\n" if done >= total else ""
        sys.stderr.write(f"\r  {share:3d} %  {format_size(done)} of {format_size(total)} {end}")
        sys.stderr.flush()
