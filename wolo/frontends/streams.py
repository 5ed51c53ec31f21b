"""Writes the answer to stdout and messages to stderr; either may be closed, full, or without a reader."""

from __future__ import annotations

import codecs
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from wolo.errors import WoloError

if TYPE_CHECKING:
    from pathlib import Path

    from wolo.agent.events import ErrorInfo

_C1 = {code: f"\\u{code:04x}" for code in range(0x7F, 0xA0)}


class OutputLost(Exception):
    """Stdout has no reader any more, or its disk is full."""

    def __init__(self, exit_code: int) -> None:
        super().__init__(exit_code)
        self.exit_code = exit_code


def write(text: str) -> None:
    """Writes to stdout at once. Raises OutputLost."""
    if sys.stdout is None:
        raise OutputLost(1)
    try:
        sys.stdout.buffer.write(text.encode("utf-8", "replace"))
        sys.stdout.buffer.flush()
    except (OSError, ValueError) as error:
        raise _abandon_output(error) from error


def safe(text: str) -> str:
    """Text without control sequences and invisible characters, for a terminal."""
    if text.replace("\n", "").isprintable() and text.isascii():
        return text
    from wolo.messages.terminal_text import clean  # noqa: PLC0415  # its patterns are slow to compile, and few texts need them

    return clean(text)


def for_stdout(text: str) -> str:
    """A document: unchanged for a pipe, without control sequences for a terminal."""
    return safe(text) if on_terminal() else text


def visible(text: str) -> str:
    """Escapes every control and invisible character except newlines and tabs."""
    if text.isascii() and text.replace("\n", "").isprintable():
        return text
    from wolo.messages.terminal_text import escape_hidden  # noqa: PLC0415  # as above

    return escape_hidden(text.replace("\r\n", "\n")).encode("utf-8", "replace").decode()


def on_terminal() -> bool:
    return sys.stdout is not None and sys.stdout.isatty()


def print_line(text: str = "", *, end: str = "\n") -> None:
    """Prints a line on stdout, in a pipe without control characters, too. Raises what `print` raises."""
    print(visible(text), end=end)


def print_lines(lines: Iterable[str]) -> None:
    for line in lines:
        print_line(line)


def print_json_text(text: str) -> None:
    """Prints JSON on stdout: valid in a pipe, readable on a terminal. Raises what `print` raises."""
    print(visible(text) if on_terminal() else without_c1(text))


def without_c1(spelled: str) -> str:
    """Escapes the control characters that JSON allows in a string (DEL, C1)."""
    return spelled if spelled.isascii() and "\x7f" not in spelled else spelled.translate(_C1)


@contextmanager
def stdout_bytes() -> Iterator[Callable[[bytes], object]]:
    """Writes a document in pieces: byte for byte to a pipe, cleaned to a terminal. Raises what writing raises."""
    sys.stdout.flush()
    if not on_terminal():
        yield sys.stdout.buffer.write
        sys.stdout.buffer.flush()
        return
    from wolo.messages.terminal_text import Cleaner  # noqa: PLC0415  # as above

    decoder, cleaner = codecs.getincrementaldecoder("utf-8")("replace"), Cleaner()
    yield lambda data: sys.stdout.write(cleaner.feed(decoder.decode(data)))
    sys.stdout.write(cleaner.feed(decoder.decode(b"", True)) + cleaner.close())
    sys.stdout.flush()


def as_json(value: object, *, indent: int | None = None) -> str:
    """Serialises without control characters; on a terminal as ASCII only."""
    import json  # noqa: PLC0415  # loaded before libraries that it would hide

    if on_terminal():
        return json.dumps(value, ensure_ascii=True, indent=indent, default=str)
    spelled = json.dumps(value, ensure_ascii=False, indent=indent, default=str).encode("utf-8", "replace").decode()
    return without_c1(spelled)


def print_json(value: object) -> None:
    """Writes one JSON line to stdout at once. Raises OutputLost."""
    write(as_json(value) + "\n")


def watch_reader(on_gone: Callable[[], None]) -> None:
    """Calls `on_gone` in the running loop when nobody can read stdout any more; a pipe or socket only."""
    import asyncio  # noqa: PLC0415  # few runs have a program at the other end
    import select  # noqa: PLC0415
    import stat  # noqa: PLC0415

    try:
        descriptor = sys.stdout.fileno()
        mode = os.fstat(descriptor).st_mode
    except (AttributeError, OSError, ValueError):
        return
    if not (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)) or sys.platform == "win32":  # whose loops watch no pipes
        return
    loop = asyncio.get_running_loop()

    def report() -> None:
        loop.remove_reader(descriptor)
        poll = select.poll()
        poll.register(descriptor, 0)
        if poll.poll(0):  # else the other end of a socket only sends nothing any more
            on_gone()

    loop.add_reader(descriptor, report)


def flush() -> None:
    """Flushes stdout. Raises OutputLost."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except (OSError, ValueError) as error:
        raise _abandon_output(error) from error


def print_message(text: str, *, hint: str = "") -> None:
    """Prints a message on stderr, without control sequences; it is lost when stderr has no reader."""
    if sys.stderr is None:
        return
    try:
        print(_wrap(safe(f"wolo: {text}" + (f"\n      {hint}" if hint else ""))), file=sys.stderr, flush=True)
    except (OSError, ValueError):
        abandon(sys.stderr)


def print_messages(texts: Iterable[str]) -> None:
    for text in texts:
        print_message(text)


def _wrap(text: str) -> str:
    if not sys.stderr.isatty():
        return text
    from wolo.frontends.wrapping import wrap  # noqa: PLC0415  # for messages on a terminal only

    return wrap(text, os.get_terminal_size(sys.stderr.fileno()).columns or 80)


def save_answer(path: Path, answer: str, report: Callable[[str], object]) -> None:
    """Writes the final answer of a run; `report` gets a failure, which changes nothing else."""
    from wolo.workspace.files.unfinished import write_whole  # noqa: PLC0415  # few runs write this

    try:
        write_whole(path, (answer.rstrip("\n") + "\n").encode("utf-8", "replace"), mode=0o666)
    except (OSError, ValueError) as error:
        report(f"Cannot write {path}: {error}.")


def error_text(error: WoloError | ErrorInfo) -> str:
    """The message with its hint, where both share a line."""
    return f"{error.message} {error.hint}".rstrip()


def show_error(error: WoloError) -> None:
    print_message(error.message, hint=error.hint)


def abandon(stream: TextIO) -> None:
    """Discards the buffer of a stream, whose flush at exit would fail."""
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
    except (OSError, ValueError):
        pass  # without a descriptor nothing will be flushed


def _abandon_output(error: OSError | ValueError) -> OutputLost:
    abandon(sys.stdout)
    if isinstance(error, BrokenPipeError):
        return OutputLost(1)
    print_message(f"Cannot write output: {getattr(error, 'strerror', None) or error}.")
    return OutputLost(3)


def confirm(question: str) -> bool:
    """Asks on the terminal; everything but y or yes is a no, end of input included."""
    try:
        return input(f"{question} [y/N] ").strip().lower() in ("y", "yes")
    except EOFError:
        return False
