"""Tells which part of a finished request nothing has shown: what a tiny model wrote is then no success."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Final

from wolo.messages.parts import ToolPart
from wolo.models.local.checks.asked_parts import asked_parts, clauses_of
from wolo.models.local.checks.kept_content import PROSE_SUFFIXES
from wolo.models.local.checks.marks import prose_of
from wolo.models.local.checks.run_check import COMPARED, PROBE, RUNNERS
from wolo.models.local.checks.senses import means

MOST_WORDS: Final = 6
"""Words of a clause, beside names and literals, up to which it describes no behaviour of its own: "create a calculator"."""
LONGEST_SHOWN: Final = 90
_SIGN: Final = r"[\u3040-\u30ff\u4e00-\u9fff]"
_SHORT: Final = 3
"""Letters; shorter words are articles and prepositions, in most languages."""


def unshown_part(request: str, changes: Mapping[str, tuple[str, str]], runs: Sequence[ToolPart]) -> str:
    """The clause whose behaviour no run compared, or that a change of data does not follow from; empty if there is none.

    `changes`: the text before and after, by path. Prose is not judged.
    """
    suffixes = {path: PurePath(path).suffix.lower() for path in changes}
    if any(suffix in RUNNERS for suffix in suffixes.values()):
        longest = max(clauses_of(request) or [""], key=num_words)
        is_short = num_words(longest) <= MOST_WORDS and num_words(request) <= 2 * MOST_WORDS
        return "" if is_short or _is_compared(request, changes, runs) else _quotation(longest)
    words = {each.lower() for each in re.findall(rf"{_SIGN}|[^\W_]+", request)}
    for path, (old, new) in changes.items():
        before, after = old.splitlines(), new.splitlines()
        changed = [line for line in (*before, *after) if (line in before) != (line in after) and re.search(r"\w", line)]
        own = [{each.lower() for each in re.findall(rf"{_SIGN}|[^\W_]+", line)} for line in changed]
        if suffixes[path] not in PROSE_SUFFIXES - {".csv"} and old and not (own and all(words & each for each in own)):
            return _quotation(max(clauses_of(request) or [""], key=num_words))
    return ""


def num_words(clause: str) -> float:
    """Words that are no names, numbers or quotations; two signs of Chinese or Japanese count as one."""
    text = re.sub(r"-?\d[\d.,]*|--?[\w-]+|\.\w+", " ", prose_of(clause))
    words = re.findall(r"[^\W\d_]+", text)
    signs = [each for each in words if re.match(_SIGN, each)]
    return sum(map(len, signs)) / 2 + sum(len(each) >= _SHORT for each in words if each not in signs)


def _is_compared(request: str, changes: Mapping[str, tuple[str, str]], runs: Sequence[ToolPart]) -> bool:
    """Tells whether a run compared results, or showed texts of the request."""
    numbers = re.findall(r"(?<![\w.])\d+", prose_of(request))
    parts, texts = asked_parts(request), "\n".join(new for _, new in changes.values())
    for run in (each for each in runs if not each.is_error):
        command = str(run.input.get("command", ""))
        has_probe = command.count(PROBE) > (COMPARED in command)
        if has_probe or "pytest" in command or f"{COMPARED}the same" in run.output:
            return True
        if parts.quoted and means(request, "output") and any(each in run.output for each in parts.quoted):
            return True
        has_argument = any(re.search(rf"{re.escape(path)} \S", command) for path in changes)
        if has_argument and numbers and all(re.search(rf"(?<!\d){each}(?!\d)", texts) for each in numbers):
            return True
    return False


def _quotation(clause: str) -> str:
    clause = " ".join(clause.split())
    return clause if len(clause) <= LONGEST_SHOWN else f"{clause[:LONGEST_SHOWN].rpartition(' ')[0] or clause[:LONGEST_SHOWN]} …"
