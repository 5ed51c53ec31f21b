"""The rule that "always" would write for a call: as narrow as the call itself, but for a few programs that only check."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from wolo.guard.intents import CallIntent, FetchIntent, ReadIntent, WriteIntent
from wolo.guard.matching import read_host
from wolo.guard.rules import Rule
from wolo.guard.shell.words import Word, split_words
from wolo.guard.shell.wrappers import runs_anything

CHECKERS = frozenset({"pytest", "ruff", "tsc", "ls", "wc"})
"""Their arguments cannot name another program to run: a last `*` is fair to offer. Everything else is offered exactly."""

_BARE = re.compile(r"[\w./:=@%+,-]+")


def suggest(intent: ReadIntent | WriteIntent | FetchIntent | CallIntent, root: str) -> str:
    """Empty when no rule can say exactly this."""
    match intent:
        case ReadIntent():
            return _of_path("read", intent.path, root)
        case WriteIntent():
            return _of_path("write", intent.path, root)
        case FetchIntent():
            return _of_url(intent.url)
        case CallIntent():
            return intent.target if re.fullmatch(r"(?:mcp:[\w.-]+/[\w.-]+)|(?:task:[\w.-]+)", intent.target) else ""


def suggest_command(words: Sequence[Word]) -> str:
    """The same for one plain command."""
    if not all(word.text.isprintable() for word in words):
        return ""
    if words[0].text in CHECKERS:
        return f"shell:{words[0].text} *"
    written = [_written(word) for word in words]
    return f"shell:{' '.join(written)}" if all(written) else ""


def is_too_wide(rule: Rule) -> bool:
    """Whether an allow rule leaves words open behind a program that would run them."""
    if rule.tool != "shell":
        return False
    words = split_words(rule.pattern) or ()
    open_at = next((at for at, word in enumerate(words) if word.has_glob), None)
    return open_at is not None and (open_at == 0 or runs_anything([word.text for word in words[:open_at]]))


def _of_path(tool: str, path: Path, root: str) -> str:
    shown = str(path.relative_to(root)) if path.is_relative_to(root) else str(path)
    if shown != shown.strip() or re.search(r"[*?~$]", shown) or not shown.isprintable():
        return ""
    return f"{tool}:{shown}"


def _written(word: Word) -> str:
    """The word as a pattern that means only itself; empty when there is no such pattern."""
    if word.has_glob:
        return ""
    if _BARE.fullmatch(word.text):
        return word.text
    quote = '"' if "'" in word.text else "'"
    return "" if quote in word.text or (quote == '"' and "\\" in word.text) else f"{quote}{word.text}{quote}"


def _of_url(url: str) -> str:
    host = read_host(url)
    if not host.name or not re.fullmatch(r"[\w.-]+", host.name, re.ASCII):
        return ""
    return f"fetch:{host.name}" + (f":{host.port}" if host.port else "")
