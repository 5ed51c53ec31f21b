"""Which checks failed, read from what a test runner, a compiler or a linter printed: names that mean the same in the next run."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

_NAMED = (
    r"(?:FAILED|ERROR) (?P<pytest>\S+\.py(?:::.+?)?)(?: - .*)?",
    r"(?:FAIL|ERROR): (?P<unittest>\S+ \([^)]*\).*)",
    r"\s*--- FAIL: (?P<go>\S+).*",
    r"FAIL[\t ]+(?P<package>[\w@][\w./@-]*)(?:[\t ].*)?",
    r"test (?P<cargo>\S+) \.\.\. FAILED",
    r"not ok \d+(?: -)? ?(?P<tap>.*?)(?: #.*)?",
    r"rspec (?P<rspec>\S+)(?: #.*)?",
    r"\s*[✕✗✘×] (?P<spec>.+?)(?: \(?\d+(?:\.\d+)? ?m?s\)?)?",
    r"\[(?:ERROR|FAIL)\]\s+(?P<maven>[\w.$]+[.#:]\w+).*",
    r"(?P<place>[^\s:(]+\.\w+)(?::\d+(?::\d+)?:?|\(\d+(?:,\d+)?\):?)\s+(?P<complaint>.+)",
)
"""One line each, at most one name in it; a complaint about a place in a file keeps the file and the words."""
_LINE = re.compile("|".join(f"(?:{form})" for form in _NAMED))
_COMPLAINS = re.compile(r"error|fail|warn|\b[A-Z]{1,4}\d{3,4}\b", re.IGNORECASE)
_RAISED = re.compile(r"[\w.]+")
"""The last line of a traceback: the test it belongs to is named elsewhere."""
_TELLING = re.compile(r"\b(?:fail(?:ed|ure|ures|s)?|errors?|exceptions?|panicked|fatal|abort(?:ed)?)\b", re.IGNORECASE)
_PASSING = re.compile(r"\b(?:0|no) (?:fail|error|warning)", re.IGNORECASE)
_CHANGING = re.compile(r"0x[0-9a-fA-F]+|\d+(?:[.,:]\d+)*")
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
MOST_NAMES = 500


def failures(output: str) -> tuple[str, ...]:
    """In the order in which they came. What no known form fits is known by its words, with the numbers left out."""
    lines = [_COLOURS.sub("", line).rstrip() for line in output.splitlines()]
    named = [name for line in lines if (name := _name(line))]
    found = named or [_steady(line) for line in lines if _TELLING.search(line) and not _PASSING.search(line)]
    return tuple(dict.fromkeys(_counted(found)))[:MOST_NAMES]


def _name(line: str) -> str:
    found = _LINE.fullmatch(line)
    if found is None:
        return ""
    if complaint := found["complaint"]:
        is_new = _COMPLAINS.search(complaint) and not _RAISED.fullmatch(complaint)
        return f"{found['place']}: {_steady(complaint)}" if is_new else ""
    return next(filter(None, found.groups()), "").strip()


def _steady(text: str) -> str:
    """Without what differs from run to run: times, addresses, numbers of lines."""
    return _CHANGING.sub("…", text.strip())


def _counted(names: Iterable[str]) -> list[str]:
    """The second of its kind is another failure than the first."""
    seen: Counter[str] = Counter()
    told = []
    for name in names:
        seen[name] += 1
        told.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return told
