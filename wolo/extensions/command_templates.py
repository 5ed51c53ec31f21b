"""Fills the text of a command with typed arguments and finds the shell commands in it.

Markdown uses the placeholders of Claude Code, Codex and OpenCode, TOML those of Gemini CLI.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

_PLACE = r"\\?\$(?:ARGUMENTS\[(\d{1,2})\]|ARGUMENTS\b|@|(\d)(?!\d)|\{@:(\d{1,2})(?::(\d{1,2}))?\}|([A-Za-z_]\w*)|\$)"
_RUN = r"!`([^`\n]+)`"
_NOT_PLAIN = r"[\\'\"`$#]|<<"
"""Shell syntax that could defeat the quoting of arguments."""
_NAMED_VALUE = r"(?s)([A-Za-z_]\w*)=(.*)"
_INPUT = r"\$\{input:([\w-]+)(?::[^}]*)?\}"
_GEMINI = r"\{\{args\}\}|[!@]\{"
_GEMINI_ARGS = "{{args}}"
_OPEN_SHELL = r"[`#]|\$[('\"{]|<<|\(\(|\[\["
"""Shell syntax in which a quoted argument could be evaluated again."""


class InsertedCommand(Struct, frozen=True):
    """A shell command whose output becomes part of the prompt."""

    written: str
    """As written in the file."""
    line: str
    """The command to run; empty if the arguments cannot be inserted safely."""


Piece = str | InsertedCommand


class Arguments(Struct, frozen=True):
    typed: str
    words: tuple[str, ...]
    named: Mapping[str, str]
    """Values of `$NAME`."""
    first: int = 1
    """The number of the first position: 0 in a text with `$0`, as in newer commands of Claude Code."""
    doubles_dollar: bool = False
    """`$$` is a literal `$`."""


def arguments(typed: str, names: Sequence[str] = (), *, is_codex: bool = False) -> Arguments:
    """`names` of the positions, in order. In Codex prompts, `KEY=value` names one."""
    words = tuple(split(typed))
    named = {name: words[at] if at < len(words) else "" for at, name in enumerate(names)}
    if is_codex:
        pairs = [found for word in words if (found := re.fullmatch(_NAMED_VALUE, word))]
        named |= {found[1]: found[2] for found in pairs}
    return Arguments(typed, words, named, doubles_dollar=is_codex)


def fill_markdown(body: str, arguments: Arguments) -> tuple[Piece, ...]:
    """Appends the arguments if the text has no placeholder."""
    filled: list[Piece] = []
    is_used = False
    arguments = replace(arguments, first=0) if re.search(r"(?<!\\)\$0(?!\d)", body) else arguments
    for number, piece in enumerate(re.split(_RUN, body)):
        is_used = is_used or any(_is_place(found, arguments) and not _is_escaped(found) for found in re.finditer(_PLACE, piece))
        if number % 2:
            filled.append(InsertedCommand(f"!`{piece}`", _line(piece, arguments)))
        else:
            filled.append(re.sub(_PLACE, lambda found: _replacement(found, arguments), piece))
    if arguments.typed and not is_used:
        filled.append(f"\n\n{arguments.typed}")
    return tuple(filled)


def fill_skill(text: str, typed: str) -> tuple[Piece, ...]:
    """Only `$ARGUMENTS` and commands count in a skill: its text is full of code."""
    given = Arguments(typed, tuple(split(typed)), {})
    pieces: list[Piece] = []
    for number, piece in enumerate(re.split(_RUN, text)):
        if number % 2:
            pieces.append(InsertedCommand(f"!`{piece}`", _line(piece, given)))
        elif piece:
            pieces.append(piece.replace("$ARGUMENTS", typed))
    return tuple(pieces)


def fill_copilot(body: str, typed: str, defaults: Mapping[str, str]) -> tuple[Piece, ...]:
    """`${input:NAME:hint}` is a word of the arguments, by the order of the names; a single one is all of them."""
    names = tuple(dict.fromkeys(match[1] for match in re.finditer(_INPUT, body)))
    words = [typed] if len(names) == 1 else split(typed)
    named = {name: (words[at] if at < len(words) else "") or defaults.get(name, "") for at, name in enumerate(names)}
    filled = re.sub(_INPUT, lambda match: named[match[1]], body)
    return (filled,) if names or not typed else (filled, f"\n\n{typed}")


def fill_gemini(body: str, typed: str) -> tuple[Piece, ...]:
    """`{{args}}` is quoted inside `!{…}`; without one the arguments are appended."""
    filled: list[Piece] = []
    at = 0
    for start, end, kind in _gemini_places(body):
        filled.append(body[at:start])
        inner = body[start + 2 : end - 1]
        if kind == "!":
            filled.append(InsertedCommand(body[start:end], _gemini_line(inner.strip(), typed)))
        elif kind == "@":
            path = inner.strip().replace(_GEMINI_ARGS, typed)
            escaped = path.replace("\\", "\\\\").replace('"', '\\"') if re.search(r"[\s\"]", path) else path
            filled.append(f'@"{escaped}"')
        else:
            filled.append(typed)
        at = end
    filled.append(body[at:])
    if typed and _GEMINI_ARGS not in body:
        filled.append(f"\n\n{typed}")
    return tuple(piece for piece in filled if piece != "")


def split(typed: str) -> list[str]:
    """Splits like a shell; an apostrophe inside a word and an unmatched quote are ordinary characters."""
    try:
        return [word.replace("\0", "'") for word in shlex.split(re.sub(r"(?<=\w)'(?=\w)", "\0", typed))]
    except ValueError:
        return typed.split()


def _is_place(match: re.Match[str], arguments: Arguments) -> bool:
    """False for `$HOME` and other names that are no argument."""
    if match[0].endswith("$$") or match[0] == "\\$$":
        return False
    return match[5] is None or match[5] in arguments.named


def _is_escaped(match: re.Match[str]) -> bool:
    return match[0].startswith("\\")


def _replacement(match: re.Match[str], arguments: Arguments) -> str:
    if match[0].endswith("$$"):
        return match[0][:-1] if arguments.doubles_dollar else match[0]
    if not _is_place(match, arguments):
        return match[0]
    if _is_escaped(match):
        return match[0][1:]
    return " ".join(_values(match, arguments)) if any(match.groups()) else arguments.typed


def _values(match: re.Match[str], arguments: Arguments) -> Sequence[str]:
    """The arguments that a placeholder stands for."""
    index, number, first, count, name = match.groups()
    words = arguments.words
    if name:
        return (arguments.named[name],)
    if index:
        return words[int(index) : int(index) + 1]
    if number:
        at = int(number) - arguments.first
        return words[at : at + 1]
    begin = max(int(first) - 1, 0) if first else 0
    return words[begin : begin + int(count) if count else None]


def _line(command: str, arguments: Arguments) -> str:
    """Quotes each argument.

    Placeholders must stand alone and nothing else may be quoted, so that no argument becomes a command.
    """
    places = [match for match in re.finditer(_PLACE, command) if _is_place(match, arguments)]
    if all(map(_is_escaped, places)):
        return re.sub(_PLACE, lambda match: match[0][1:] if _is_place(match, arguments) else match[0], command)
    stands_alone = all(
        command[match.start() - 1 : match.start()].strip() == "" == command[match.end() : match.end() + 1].strip()
        for match in places
    )
    rest = re.sub(_PLACE, lambda match: "" if _is_place(match, arguments) else match[0], command)
    if any(map(_is_escaped, places)) or not stands_alone or re.search(_NOT_PLAIN, rest):
        return ""
    return re.sub(_PLACE, lambda match: shlex.join(_values(match, arguments)), command)


def _gemini_places(body: str) -> Iterator[tuple[int, int, str]]:
    """Start, end and kind of each placeholder. Braces inside are balanced; an unclosed one is text."""
    at = 0
    while match := re.compile(_GEMINI).search(body, at):
        if match[0] == _GEMINI_ARGS:
            yield match.start(), match.end(), ""
            at = match.end()
            continue
        depth, end = 1, match.end()
        while end < len(body) and depth:
            depth += (body[end] == "{") - (body[end] == "}")
            end += 1
        at = match.end() if depth else end
        if not depth:
            yield match.start(), end, match[0][0]


def _gemini_line(command: str, typed: str) -> str:
    """Inserts the arguments as a single quoted word; empty where a quoted word would not stay one word."""
    if _GEMINI_ARGS not in command:
        return command
    if re.search(_OPEN_SHELL, command):
        return ""
    quote, at = "", 0
    while at < len(command):
        if command.startswith(_GEMINI_ARGS, at):
            if quote:
                return ""
            at += len(_GEMINI_ARGS)
            continue
        if command[at] == "\\" and quote != "'":
            at += 1
            if command.startswith(_GEMINI_ARGS, at):
                return ""
        elif command[at] in "'\"" and quote in ("", command[at]):
            quote = "" if quote else command[at]
        at += 1
    return command.replace(_GEMINI_ARGS, shlex.quote(typed) if typed else "")
