"""stdout for the answer, stderr for people: either may be closed, full, or have nobody reading."""

from __future__ import annotations

import codecs
import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

from wolo.errors import WoloError

_C1 = {code: f"\\u{code:04x}" for code in range(0x7F, 0xA0)}


class OutputLost(Exception):
    """Nobody reads stdout any more, or there is no room to write to."""

    def __init__(self, exit_code: int) -> None:
        super().__init__(exit_code)
        self.exit_code = exit_code


def write(text: str) -> None:
    """To stdout, at once. Raises OutputLost."""
    if sys.stdout is None:
        raise OutputLost(1)
    try:
        sys.stdout.buffer.write(text.encode("utf-8", "replace"))
        sys.stdout.buffer.flush()
    except (OSError, ValueError) as error:
        raise _lost(error) from error


def safe(text: str) -> str:
    """For a terminal: without control sequences and invisible characters."""
    if text.replace("\n", "").isprintable() and text.isascii():
        return text
    from wolo.messages.terminal_text import clean  # noqa: PLC0415  # its patterns take a while to compile, and few texts need them

    return clean(text)


def for_stdout(text: str) -> str:
    """A document: unchanged for a program that reads it; a terminal would obey what it says."""
    return safe(text) if on_terminal() else text


def visible(text: str) -> str:
    """Every control and invisible character as an escape, nothing left out; newlines and tabs stay."""
    if text.isascii() and text.replace("\n", "").isprintable():
        return text
    from wolo.messages.terminal_text import escape_hidden  # noqa: PLC0415  # as above

    return escape_hidden(text.replace("\r\n", "\n")).encode("utf-8", "replace").decode()


def on_terminal() -> bool:
    """A person reads stdout."""
    return sys.stdout is not None and sys.stdout.isatty()


def tell(text: str = "", *, end: str = "\n") -> None:
    """Prints a line for people on stdout: a pipe gets no control characters either. Raises what `print` raises."""
    print(visible(text), end=end)


def tell_json(text: str) -> None:
    """Prints JSON on stdout: valid in a pipe, readable on a terminal. Raises what `print` raises."""
    print(visible(text) if on_terminal() else without_c1(text))


def without_c1(spelled: str) -> str:
    """The same JSON: the control characters that it allows in a string (DEL, C1) become escapes."""
    return spelled if spelled.isascii() and "\x7f" not in spelled else spelled.translate(_C1)


@contextmanager
def stdout_bytes() -> Iterator[Callable[[bytes], object]]:
    """Takes a document in pieces: byte for byte for a program, cleaned for a terminal. Raises what writing raises."""
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
    """Characters that a terminal would obey are JSON escapes; on a terminal, so are all others that are not ASCII."""
    if on_terminal():
        return json.dumps(value, ensure_ascii=True, indent=indent, default=str)
    spelled = json.dumps(value, ensure_ascii=False, indent=indent, default=str).encode("utf-8", "replace").decode()
    return without_c1(spelled)


def flush() -> None:
    """What was printed is out. Raises OutputLost."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except (OSError, ValueError) as error:
        raise _lost(error) from error


def say(text: str, *, hint: str = "") -> None:
    """A line for people, on stderr; lost when nobody listens. What may come from outside cannot steer their terminal."""
    if sys.stderr is None:
        return
    try:
        print(_broken(safe(f"wolo: {text}" + (f"\n      {hint}" if hint else ""))), file=sys.stderr, flush=True)
    except (OSError, ValueError):
        abandon(sys.stderr)


def _broken(text: str) -> str:
    """At spaces, where a person reads it in a window."""
    if not sys.stderr.isatty():
        return text
    from wolo.frontends.wrapping import wrapped  # noqa: PLC0415  # only where something is said to a person

    return wrapped(text, os.get_terminal_size(sys.stderr.fileno()).columns or 80)


def show_error(error: WoloError) -> None:
    """One sentence, one hint."""
    say(error.message, hint=error.hint)


def abandon(stream: TextIO) -> None:
    """What is still in the stream's buffer goes nowhere: the interpreter would complain when it flushes at exit."""
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
    except (OSError, ValueError):
        pass  # there is no descriptor to write to, so nothing will be flushed either


def _lost(error: OSError | ValueError) -> OutputLost:
    abandon(sys.stdout)
    if isinstance(error, BrokenPipeError):
        return OutputLost(1)
    say(f"The answer could not be written: {getattr(error, 'strerror', None) or error}.")
    return OutputLost(3)
