"""A small replacement for ripgrep, run as a process of its own so that a runaway regular expression can be killed.

Takes the arguments that `grep` passes to `rg`, and prints the same output. It imports nothing of wolo, because it starts without
a search path to be fast.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import warnings
from collections.abc import Iterator
from itertools import chain
from re import _parser  # type: ignore[attr-defined]  # no public module parses patterns

_BAD_PATTERN = 2
_NOT_ALL_SEARCHED = 3
_MAX_COLUMNS = 2000
_MOST_BYTES = 256 << 20
"""Maximum size of a file, which is held in memory."""
_SNIFF_BYTES = 8000
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_CLASSES = {
    "alpha": r"^\W\d_",
    "digit": "0-9",
    "alnum": "a-zA-Z0-9",
    "upper": "A-Z",
    "lower": "a-z",
    "space": r"\s",
    "blank": r" \t",
    "punct": r"!-/:-@\[-`{-~",
    "xdigit": "0-9a-fA-F",
    "word": r"\w",
}


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--regexp", required=True)
    for name in ("--files-with-matches", "--count", "--ignore-case", "--multiline"):
        parser.add_argument(name, action="store_true")
    parser.add_argument("--before-context", type=int, default=0)
    parser.add_argument("--after-context", type=int, default=0)
    parser.add_argument("--max-count", type=int, default=sys.maxsize)
    parser.add_argument("files", nargs="*")
    options = parser.parse_args(argv)
    try:
        pattern = compile_pattern(options.regexp, ignore_case=options.ignore_case, multiline=options.multiline)
    except (re.error, OverflowError, RecursionError) as error:
        sys.stderr.write(f"error: {error}\n")
        return _BAD_PATTERN
    needed = needed_bytes(pattern)
    is_complete = True
    for path in chain.from_iterable(map(_files, options.files)):
        try:
            data = _read(path)
            if may_match(data, needed, pattern):
                if data.startswith(_UTF16_MARKS):
                    text = data.decode("utf-16", errors="replace")
                else:
                    text = data.removeprefix(b"\xef\xbb\xbf").decode(errors="surrogateescape")
                _show(path, text.replace("\r\n", "\n"), pattern, options)
                sys.stdout.buffer.flush()  # flush, so that a timeout in the next file loses nothing
        except FileNotFoundError:
            continue
        except (OSError, MemoryError, RecursionError):
            is_complete = False
    return 0 if is_complete else _NOT_ALL_SEARCHED


def needed_bytes(pattern: re.Pattern[str]) -> bytes:
    """Returns the longest literal text that every match contains; lower case if case is ignored."""
    longest = max(_runs(_parser.parse(pattern.pattern, pattern.flags)), key=len)
    return (longest.lower() if pattern.flags & re.IGNORECASE else longest).encode()


def _runs(parsed: _parser.SubPattern) -> Iterator[str]:
    """Returns ASCII runs that every match contains."""
    run = ""
    for kind, value in parsed:
        name = str(kind)
        if name == "LITERAL" and value < 128 and value not in (10, 13):
            run += chr(value)
            continue
        yield run
        run = ""
        if name == "SUBPATTERN" and not value[1] and not value[2]:
            yield from _runs(value[3])
        elif name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT") and value[0] > 0:
            yield from _runs(value[2])
    yield run


def may_match(data: bytes, needed: bytes, pattern: re.Pattern[str]) -> bool:
    """Quick check that excludes most files without reading them line by line."""
    if not needed or data.startswith(_UTF16_MARKS):
        return True
    if not pattern.flags & re.IGNORECASE:
        return needed in data
    return not data.isascii() or needed in data.lower()  # non-ASCII letters may equal an ASCII letter


def compile_pattern(pattern: str, *, ignore_case: bool, multiline: bool) -> re.Pattern[str]:
    """Supports ripgrep's POSIX classes and `(?<name>…)`."""
    translated = re.sub(r"\[:(\w+):\]", lambda match: _CLASSES.get(match[1], match[0]), pattern)
    translated = re.sub(r"\(\?<(?![=!])", "(?P<", translated)
    flags = (re.IGNORECASE if ignore_case else 0) | (re.MULTILINE | re.DOTALL if multiline else 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return re.compile(translated, flags)


def _files(path: str) -> list[str]:
    """The regular files of a folder, whose path ends with a slash; otherwise the file itself."""
    if not path.endswith("/"):
        return [path]
    with os.scandir(path) as entries:
        return sorted(entry.path for entry in entries if entry.is_file(follow_symlinks=False))


def _read(path: str) -> bytes:
    """Empty for a binary file."""
    source: str | int = path
    if sys.platform == "win32" and path.startswith("/dev/fd/"):  # an inherited handle
        import msvcrt  # noqa: PLC0415  # Windows only

        source = msvcrt.open_osfhandle(int(path.rpartition("/")[2]), os.O_RDONLY)
    with open(source, "rb") as file:
        head = file.peek(_SNIFF_BYTES)[:_SNIFF_BYTES]
        if b"\0" in head and not head.startswith(_UTF16_MARKS):
            return b""
        if os.fstat(file.fileno()).st_size > _MOST_BYTES:
            raise OSError("too large")
        return file.read()


def _show(path: str, text: str, pattern: re.Pattern[str], options: argparse.Namespace) -> None:
    if options.files_with_matches:
        if next(_matches(text, pattern, options.multiline), None) is not None:
            sys.stdout.buffer.write(os.fsencode(path) + b"\0")
        return
    if options.count:
        count = sum(1 for _ in _matches(text, pattern, options.multiline))
        if count:
            sys.stdout.buffer.write(os.fsencode(path) + b"\0%d\n" % count)
        return
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    columns: dict[int, int] = {}
    for matched, (first, last, column) in enumerate(_matches(text, pattern, options.multiline)):
        if matched == options.max_count:
            break
        for number in range(first, last + 1):
            columns.setdefault(number, column if number == first else 0)
    before, after = options.before_context, options.after_context
    near = {other for number in columns for other in range(number - before, number + after + 1)}
    for number in sorted(near.intersection(range(len(lines)))):
        place = f"{number + 1}-"
        if number in columns:
            place = f"{number + 1}:{len(_encode(lines[number][: columns[number]])) + 1}:"
        sys.stdout.buffer.write(os.fsencode(path) + b"\0" + place.encode() + _encode(lines[number][:_MAX_COLUMNS]) + b"\n")


def _matches(text: str, pattern: re.Pattern[str], multiline: bool) -> Iterator[tuple[int, int, int]]:
    """Yields first and last line (from 0) of each match and its column; one match per line unless multiline."""
    if multiline:
        yield from _matches_across_lines(text, pattern)
        return
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    for number, line in enumerate(lines):
        if match := pattern.search(line):
            yield number, number, match.start()


def _matches_across_lines(text: str, pattern: re.Pattern[str]) -> Iterator[tuple[int, int, int]]:
    number = position = 0
    for match in pattern.finditer(text):
        number += text.count("\n", position, match.start())
        position = match.start()
        if position == len(text) and (not text or text.endswith("\n")):
            return  # no line follows the last one
        spanned = text.count("\n", match.start(), max(match.start(), match.end() - 1))
        yield number, number + spanned, position - (text.rfind("\n", 0, position) + 1)


def _encode(text: str) -> bytes:
    return text.encode(errors="surrogateescape")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
