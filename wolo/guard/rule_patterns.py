"""Matches the pattern of a rule against a path, a command, a host or a tool name.

`allow` matches narrowly, `ask` and `deny` widely: when in doubt, less is allowed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from urllib.parse import urlsplit

from msgspec import Struct

from wolo.guard.shell.named_paths import TooManyFiles, expand
from wolo.guard.shell.parser import ParsedLine, PlainCommand
from wolo.guard.shell.words import Word, name_of, print_escapes, split_words, unquote


class PathBase(Struct, frozen=True):
    """Directories that path patterns are relative to."""

    root: str
    """Real path of the workspace root."""
    home: str
    fold_case: bool = False
    """The volume ignores case."""


class PathPattern:
    """`*` and `?` match within one name, `**` any number of names; a pattern without wildcards also covers everything below."""

    def __init__(self, text: str, base: PathBase, *, wide: bool) -> None:
        if text == "~" or text.startswith("~/"):
            text = base.home + text[1:]
        start, parts = _fixed_start(Path(base.root, re.sub("^/+", "/", text)))
        starts = {start}
        if wide or not Path(start).is_relative_to(base.root):
            # The model may have made a link inside, so an allow does not follow it.
            starts.add(Path(os.path.realpath(start)).as_posix())
        tail = ""
        for part in parts[:-1] if parts[-1:] == ["**"] else parts:
            tail += "(?:/[^/]+)*" if part == "**" else "/" + _name_regex(part)
        if not parts or wide or parts[-1] == "**":
            tail += "(?:/.*)?"
        flags = re.DOTALL | (re.IGNORECASE if base.fold_case else 0)
        self._regexes = [re.compile(re.escape(each.rstrip("/")) + tail, flags) for each in sorted(starts)]

    def matches(self, path: str) -> bool:
        return any(regex.fullmatch(path) for regex in self._regexes)


def whole_place(pattern: str, base: PathBase) -> str:
    """The path that a pattern covers completely; empty if the pattern selects among names."""
    spelt_out = base.home + pattern[1:] if pattern == "~" or pattern.startswith("~/") else pattern
    start, parts = _fixed_start(Path(base.root, re.sub("^/+", "/", spelt_out)))
    return os.path.realpath(start) if parts in ([], ["**"]) else ""


def _fixed_start(path: Path) -> tuple[str, list[str]]:
    """Splits off the directory before the first wildcard, normalised, and returns the remaining parts."""
    parts = path.as_posix().split("/")
    wild = next((index for index, part in enumerate(parts) if "*" in part or "?" in part), len(parts))
    start = os.path.normpath("/".join(parts[:wild]) or "/")
    return Path(start).as_posix(), [part for part in parts[wild:] if part not in ("", ".")]


def _name_regex(part: str) -> str:
    letters = {"*": "[^/]*", "?": "[^/]"}
    return "".join(letters.get(letter) or re.escape(letter) for letter in re.sub(r"\*+", "*", part))


class ShellPattern:
    """Matches word by word: a final `*` is any further words, another `*` alone one word, a `*` within a word part of it."""

    def __init__(self, text: str) -> None:
        self.words = split_words(text) or ()
        self._is_open = bool(self.words) and _is_star(self.words[-1])
        self._heads = self.words[:-1] if self._is_open else self.words
        self._regexes = [_word_regex(word) if word.has_glob and "*" in word.text else None for word in self._heads]
        self._program = name_of(self._heads[0].text) if self._heads and not self._heads[0].has_glob else ""
        self._named = re.compile(rf"(?<![\w-]){re.escape(self._program)}(?![\w-])", re.IGNORECASE)

    def allows(self, command: PlainCommand) -> bool:
        words = command.words
        if len(words) < len(self._heads) or (len(words) > len(self._heads) and not self._is_open):
            return False
        return all(
            _is_word(pattern, regex, word) for pattern, regex, word in zip(self._heads, self._regexes, words, strict=False)
        )

    def forbids(self, command: PlainCommand | ParsedLine) -> bool:
        """Matches more widely than `allows`: after wrappers, by any path, inside quoted code, with or without a final `*`.

        A line that is not plain matches if it names the program anywhere that its use is unclear.
        """
        if isinstance(command, ParsedLine):
            return not self._program or self._may_use(command.text)
        # A cheap first check: most rules are about another program.
        mentioned = f"{unquote(command.text)} {print_escapes(command.text)}".casefold()
        if self._program not in mentioned and not any(word.has_glob for word in command.words):
            return False
        texts = [text for word in command.words for text in self._expand(word, command)]
        if self._is_among(texts):
            return True
        codes = (code for text in texts if not re.fullmatch(_BARE, text) for code in {unquote(text), print_escapes(text)})
        return any(self._is_among(re.findall(_PIECES, code)) for code in codes)

    def _expand(self, word: Word, command: PlainCommand) -> list[str]:
        """Expands a word as bash would: `env /bin/r[m] x` runs rm."""
        if not word.has_glob:
            return [word.text]
        try:
            return [path for place in command.directories if place for path in expand(word, place)] or [word.text]
        except TooManyFiles:
            name = name_of(word.text)
            # `*` alone selects no program: the first match would run.
            return [self._program if name.strip("*?") and fnmatchcase(self._program, name) else word.text]

    def _is_among(self, texts: Sequence[str]) -> bool:
        regex = self._regexes[0] if self._regexes else None
        for index, text in enumerate(texts):
            if self._program:
                is_head = name_of(text) == self._program
            else:
                is_head = regex is None or bool(regex.fullmatch(text) or regex.fullmatch(name_of(text)))
            if is_head and self._begins(texts[index:]):
                return True
        return False

    def _begins(self, texts: Sequence[str]) -> bool:
        """Tells whether the rule's words follow in order.

        Other options may come between; an option of the rule may be anywhere.
        """
        position = 1
        for pattern, regex in zip(self._heads[1:], self._regexes[1:], strict=True):
            option = pattern.text
            if option.startswith("-") and not _is_star(pattern):
                if regex is not None:
                    has_option = any(map(regex.fullmatch, texts[1:]))
                elif not option.startswith("--") and option[1:].isalpha():  # its letters, in one cluster or several
                    letters = "".join(text[1:] for text in texts[1:] if text.startswith("-") and not text.startswith("--"))
                    has_option = option in texts[1:] or set(option[1:]) <= set(letters)
                else:  # `--force` also matches `--force=…`
                    has_option = any(text == option or text.startswith(f"{option}=") for text in texts[1:])
                if not has_option:
                    return False
                continue
            position = _find(pattern, regex, texts, position)
            if not position:
                return False
        return True

    def _may_use(self, text: str) -> bool:
        """False if every mention of the program is a word of a parsed command that the rule does not match."""
        num_mentions = max(len(self._named.findall(each)) for each in (text, unquote(text), print_escapes(text)))
        if not num_mentions:
            return False
        from wolo.guard.shell.nested_commands import all_commands  # noqa: PLC0415  # rarely needed

        naming = [each.words for each in all_commands(text) or () if self._program in map(name_of, each.words)]
        num_parsed = sum(name_of(word) == self._program for words in naming for word in words)
        if num_parsed < num_mentions or any(re.search(_EXPANDED, word) for words in naming for word in words):
            return True
        return any(map(self._is_among, naming))


_EXPANDED = r"[$`*?\[{~]"
"""Marks a word that bash would expand."""
_BARE = r"[\w./:=@%+,-]*"
_PIECES = r"""[^\s;|&()<>\[\],'"`{}$\\]+"""


def _is_star(word: Word) -> bool:
    return word.has_glob and word.text == "*"


def _word_regex(word: Word) -> re.Pattern[str]:
    """`*` in a word never matches `..`."""
    if _is_star(word):
        return re.compile(".*", re.DOTALL)
    return re.compile("/".join(rf"(?!\.\.?(?:/|$)){_name_regex(part)}" for part in word.text.split("/")), re.DOTALL)


def _is_word(pattern: Word, regex: re.Pattern[str] | None, word: Word) -> bool:
    if regex is not None:
        return regex.fullmatch(word.text) is not None
    return pattern.text == word.text and (pattern.has_glob or not word.has_glob)


def _find(pattern: Word, regex: re.Pattern[str] | None, texts: Sequence[str], start: int) -> int:
    """Index after the match of `pattern`, where the search continues; 0 if it was not found."""
    for index in range(start, len(texts)):
        if _is_word(pattern, regex, Word(texts[index])):
            return index + 1
        is_value = index > start and texts[index - 1].startswith("-") and "=" not in texts[index - 1]
        if not texts[index].startswith("-") and not is_value:
            return 0
    return 0


DEFAULT_PORTS = {"http": 80, "https": 443}


class HostAddress(Struct, frozen=True):
    scheme: str
    name: str
    """Lower case; empty if the address has none."""
    port: int | None
    """None: the default of the scheme."""
    has_user: bool
    carried: int
    """Length of the URL parts that the host receives, its own name included: any of them could carry data."""


def read_host(url: str) -> HostAddress:
    if not url.isprintable() or " " in url or "\\" in url:
        return HostAddress("", "", None, False, 0)  # programs differ in what they make of such an address
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return HostAddress("", "", None, False, 0)
    name = (parts.hostname or "").rstrip(".")
    own = DEFAULT_PORTS.get(parts.scheme)
    carried = len(parts.netloc) + len(parts.path) + len(parts.query)
    return HostAddress(parts.scheme, name, None if port == own else port, "@" in parts.netloc, carried)


class HostPattern:
    """Matches whole labels: `*.a.org` is every host below `a.org`, but not `a.org` itself."""

    def __init__(self, text: str, *, wide: bool) -> None:
        name, port = re.fullmatch(r"(.*?)(?::(\d+))?", text.lower()).groups()  # type: ignore[union-attr]  # matches anything
        self._name = name.strip("[]")
        self._port = int(port) if port else None
        self._wide = wide

    def matches(self, host: HostAddress) -> bool:
        if self._port is not None:
            if (host.port or DEFAULT_PORTS.get(host.scheme)) != self._port:
                return False
        elif host.port is not None and not self._wide and self._name != "*":
            return False
        if self._name == "*":
            return bool(host.name)
        if self._name.startswith("*."):
            return host.name.endswith(self._name[1:]) and len(host.name) >= len(self._name)
        return host.name == self._name


class TargetPattern:
    """`SERVER/TOOL`, `SERVER/*` or the name of an agent or a custom tool; a server alone means all its tools."""

    def __init__(self, tool: str, text: str, *, wide: bool) -> None:
        if tool == "mcp" and "/" not in text:
            text += "/*"
        regex = _name_regex(text) if tool != "mcp" else "/".join(map(_name_regex, text.split("/")))
        self._regex = re.compile(regex, re.IGNORECASE if wide else 0)

    def matches(self, name: str) -> bool:
        return self._regex.fullmatch(name) is not None
