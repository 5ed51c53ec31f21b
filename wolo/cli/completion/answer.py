"""Answers the shell's request for completions."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from wolo.cli.options import OPTIONS, SUBCOMMANDS, Option


class Word(NamedTuple):
    text: str
    about: str = ""


class Offer(NamedTuple):
    words: tuple[Word, ...] = ()
    kind: str = "words"


def answer(argv: list[str]) -> int:
    """Always 0: nobody reads an exit status, or an error, in the middle of a line."""
    try:
        shell, *rest = argv
        if shell == "bash":
            breaks, line = rest
            typed = read_line(line, breaks)
        else:
            typed = Typed(tuple(rest[:-1]), rest[-1])
        _print(offer(typed.words, typed.current), typed, shell)
    except Exception:  # whatever it is, a prompt is no place for it
        return 0
    return 0


def offer(words: tuple[str, ...], current: str) -> Offer:
    """`words` stand between `wolo` and the cursor, `current` is what is written of the word there."""
    if "--" in words:
        return _at_sign(current)
    line = _read(words)
    spelling, equals, begun = current.partition("=")
    if line.expects:
        return _values(line.expects, current, "")
    if equals and current.startswith("-"):
        option = line.options.get(spelling)
        return _values(option, begun, f"{spelling}=") if option and option.kind != "flag" else Offer()
    if current.startswith("-"):
        return _spellings(line.options, current)
    if line.may_expect and ((found := _values(line.may_expect, current, "")).words or current):
        return found
    return _words(line, current)


class _Line(NamedTuple):
    """What the words before the cursor mean."""

    names: tuple[str, ...]
    """The subcommand."""
    behind: int
    """How many words stand behind its name."""
    options: Mapping[str, Option]
    expects: Option | None = None
    """The option whose value comes now."""
    may_expect: Option | None = None
    facts: Mapping[str, Any] = {}
    """Of the subcommand."""
    before: str = ""
    """The word before the one at the cursor."""


def _read(words: tuple[str, ...]) -> _Line:
    options = _by_spelling(OPTIONS)
    facts: Mapping[str, Any] = {}
    names: tuple[str, ...] = ()
    behind, last = 0, None
    for word in words:
        if last is not None and (last.kind != "maybe" or not word.startswith("-")):
            last = None
            continue
        last = None
        if word.startswith("-") and len(word) > 1:
            option = options.get(word)
            last = option if option and option.kind != "flag" else None
        elif not names and not behind and word in SUBCOMMANDS:
            names, facts = _named((word,), facts)
            options = _by_spelling(_own_options(facts)) if facts else options
        elif len(names) == 1 and not behind and word in SUBCOMMANDS[names[0]]:
            names, facts = _named((*names, word), facts)
            options = _by_spelling(_own_options(facts)) if facts else options
        else:
            behind += 1
    maybe = last if last is not None and last.kind == "maybe" else None
    return _Line(names, behind, options, None if maybe else last, maybe, facts, words[-1] if words else "")


def _named(names: tuple[str, ...], facts: Mapping[str, Any]) -> tuple[tuple[str, ...], Mapping[str, Any]]:
    return names, _table().get(" ".join(names), facts)


def _by_spelling(options: Iterable[Option]) -> dict[str, Option]:
    return {spelling: option for option in options for spelling in (*option.spellings, *option.also)}


def _table() -> Mapping[str, Any]:
    """What Typer knows about the subcommands, without loading it: docs/generate.py writes it down."""
    import json
    from pathlib import Path

    return dict(json.loads(Path(__file__).with_name("subcommands.json").read_text("utf-8")))


def _own_options(facts: Mapping[str, Any]) -> list[Option]:
    rows = facts.get("options", [])
    help = Option("help", ("-h", "--help"), "flag", "Print this help.")
    return [help, *(Option("", tuple(row["spellings"]), row["kind"], row["help"], row["metavar"]) for row in rows)]


# What is offered


def _spellings(options: Mapping[str, Option], current: str) -> Offer:
    """Short ones when only the dash is written, and never the spellings of other agents."""
    shown = {spelling: option for spelling, option in options.items() if spelling in option.spellings}
    return Offer(tuple(Word(each, option.help) for each, option in shown.items() if each.startswith(current)))


def _words(line: _Line, current: str) -> Offer:
    if not line.names and line.behind:
        return _at_sign(current)
    if not line.names:
        table = _table()
        words = [Word(name, table.get(name, {}).get("about", "")) for name in SUBCOMMANDS if name.startswith(current)]
        return Offer(tuple(words)) if words else _at_sign(current)
    name = " ".join(line.names)
    next_names = SUBCOMMANDS[line.names[0]] if len(line.names) == 1 and not line.behind else ()
    words = [Word(each, _table().get(f"{name} {each}", {}).get("about", "")) for each in next_names]
    if words:
        return Offer(tuple(word for word in words if word.text.startswith(current)))
    if line.names == ("config", "set") and line.behind == 1:
        return _setting(line.before, current)
    metavars = line.facts.get("arguments", [])
    if not metavars:
        return Offer()
    return _values(Option("", (), "value", "", metavars[min(line.behind, len(metavars) - 1)]), current, "")


def _setting(key: str, current: str) -> Offer:
    from wolo.cli.completion.values import values_of

    return Offer(tuple(Word(value, about) for value, about in values_of(key, current)))


def _at_sign(current: str) -> Offer:
    """`@path` in a prompt; any other word of one is a person's own, or a file's name."""
    if not current.startswith("@"):
        return Offer(kind="files") if current else Offer()
    from wolo.cli.completion.values import files_under

    found = tuple(Word(f"@{path}") for path in files_under(current[1:]))
    return Offer(found, "nospace" if all(each.text.endswith("/") for each in found) else "words")


def _values(option: Option, begun: str, before: str) -> Offer:
    """What the value can be; `before` stands in front of it in the same word."""
    from wolo.cli.completion import values

    names = option.name if option.name in values.BY_NAME else option.metavar.removesuffix("...").strip("[]")
    kind: str | Callable[[str], Iterable[tuple[str, str]]] | None = values.BY_NAME.get(names, values.BY_METAVAR.get(names))
    if isinstance(kind, str):
        return Offer(kind=kind)
    found = list(kind(begun)) if kind else [(each, "") for each in values.named_in(option.help, option.metavar)]
    words = tuple(Word(before + text, about) for text, about in found if kind or text.startswith(begun))
    return Offer(words, "nospace" if words and all(word.text.endswith(("/", "=", ":")) for word in words) else "words")


def _print(found: Offer, typed: Typed, shell: str) -> None:
    lines = [found.kind]
    for word in found.words:
        if not word.text.isprintable():
            continue  # the terminal would obey it
        if shell != "bash":
            about = "".join(filter(str.isprintable, word.about))
            lines.append(f"{word.text}\t{about}" if about else word.text)
        elif (quoted := written(word.text, typed)) is not None:
            lines.append(quoted)
    sys.stdout.buffer.write("\n".join([*lines, ""]).encode("utf-8", "replace"))
    sys.stdout.buffer.flush()


QUOTES = "'\""
PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=@,+%")
"""What needs no backslash in front."""


class Typed(NamedTuple):
    words: tuple[str, ...]
    """Between the command's name and the word at the cursor, without their quotes."""
    current: str
    """What is written of the word at the cursor; the same."""
    quote: str = ""
    """The quote that is open there."""
    kept: int = 0
    """So much of `current` stays in the line: bash takes the rest out and puts in what it is offered."""


def read_line(line: str, breaks: str) -> Typed:
    """`breaks` are the characters at which bash cuts words anew for itself."""
    words: list[str] = []
    text, quote, kept, is_word = "", "", 0, False
    letters = iter(line)
    for letter in letters:
        if quote:
            if letter == quote:
                quote = ""
            elif letter == "\\" and quote == '"':
                text += _escaped_within(next(letters, ""))
            else:
                text += letter
            continue
        if letter.isspace():
            if is_word:
                words.append(text)
            text, kept, is_word = "", 0, False
            continue
        is_word = True
        if letter in QUOTES:
            quote, kept = letter, len(text)
        elif letter == "\\":
            text += next(letters, "")
        else:
            text += letter
            kept = len(text) if letter in breaks else kept
    while words and words[0].partition("=")[0].isidentifier() and "=" in words[0]:
        del words[0]  # `NAME=value wolo …`
    return Typed(tuple(words[1:]), text, quote, kept)


def written(word: str, typed: Typed) -> str | None:
    """What bash puts in for what it takes out; None where the word cannot be written there."""
    rest = word[typed.kept :]
    if not rest.isprintable():
        return None
    match typed.quote:
        case "'":
            return rest.replace("'", "'\\''")
        case '"':
            if "!" in rest:
                return None  # bash would look for it in the history
            return "".join(f"\\{letter}" if letter in '"$`\\' else letter for letter in rest)
        case _:
            return "".join(letter if letter in PLAIN or not letter.isascii() else f"\\{letter}" for letter in rest)


def _escaped_within(letter: str) -> str:
    """In double quotes a backslash stands for itself unless one of these follows."""
    return letter if letter in '"$`\\' else f"\\{letter}"
