"""Changes one place of a file that is too long to write again, by a search/replace block."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from wolo.errors import BadAnswer
from wolo.models.local.code_check import syntax_problem
from wolo.models.local.local_chat import ChatServer, Sampling, Turn, sentence
from wolo.models.local.simple_writer import OTHER_MODEL, TRIES, Complete

BLOCK_TOKENS: Final = 500
EXCERPT_CHARS: Final = 5_000
WINDOW_LINES: Final = 40
"""Lines shown on each side of the place that the request is most likely about."""
SEARCH, MIDDLE, REPLACE = "<<<<<<< SEARCH\n", "\n=======\n", "\n>>>>>>> REPLACE"
_EXAMPLE: Final = "def limit():\n    return 10\n\n\ndef name():\n    return 'a'\n"


class BlockReplacement(Struct, frozen=True):
    old: str
    """Lines as they stand in the file, once."""
    new: str


async def ask_replacement(
    complete: Complete, server: ChatServer, path: str, text: str, request: str, error: str = ""
) -> BlockReplacement:
    """Raises BadAnswer if no attempt names lines of the file."""
    fault = ""
    turns = _turns(path, _excerpt(text, f"{request} {error}"), request, error)
    for attempt in range(1, TRIES + 1):
        sampling = Sampling(max_tokens=BLOCK_TOKENS, stop=(REPLACE.strip(),), attempt=attempt)
        said = (await complete(turns, sampling, None)).text
        found = _find(text, said)
        if found is None:
            fault = "it names lines that are not in the file"
            continue
        fault = syntax_problem(path, text.replace(found.old, found.new, 1))
        if found.old == found.new:
            fault = "nothing in it was changed"
        if not fault:
            return found
    raise BadAnswer(f"{sentence(server.label)} could not change {path}: {fault}. Nothing was written.", hint=OTHER_MODEL)


def _turns(path: str, excerpt: str, request: str, error: str) -> list[Turn]:
    failure = f"Running it fails:\n~~~\n{error}\n~~~\n" if error else ""
    return [
        ("system", "You change a file with one block: the lines to replace, copied exactly, and the new lines."),
        ("user", f"a.py:\n~~~\n{_EXAMPLE}~~~\nMake the limit 20."),
        ("assistant", f"{SEARCH}    return 10{MIDDLE}    return 20{REPLACE}"),
        ("user", f"{path}:\n~~~\n{excerpt}\n~~~\n{failure}{request}"),
        ("assistant", SEARCH),
    ]


def _excerpt(text: str, request: str) -> str:
    """The part of the file that shares most words with the request."""
    if len(text) <= EXCERPT_CHARS:
        return text.rstrip()
    words = {word.lower() for word in re.findall(r"\w{3,}", request)}
    lines = text.splitlines()
    score = [len(words & {word.lower() for word in re.findall(r"\w{3,}", line)}) for line in lines]
    best = max(range(len(lines)), key=lambda at: sum(score[max(0, at - 3) : at + 4]) + 2 * score[at])
    return "\n".join(lines[max(0, best - WINDOW_LINES) : best + WINDOW_LINES])[:EXCERPT_CHARS]


def _find(text: str, said: str) -> BlockReplacement | None:
    """The block of an answer, with the lines of the file that it means; None if they are not there exactly once."""
    block = said.partition(SEARCH)[2] if SEARCH in said else said
    old, middle, new = block.partition(MIDDLE)
    if not middle:
        return None
    new = new.partition(REPLACE)[0].rstrip("\n")
    return _exact(text, old.strip("\n"), new) or _ignoring_indentation(text, old, new)


def _exact(text: str, old: str, new: str) -> BlockReplacement | None:
    return BlockReplacement(old, new) if old.strip() and text.count(old) == 1 else None


def _ignoring_indentation(text: str, old: str, new: str) -> BlockReplacement | None:
    lines = text.splitlines()
    wanted = [line.strip() for line in old.strip("\n").splitlines()]
    if not any(wanted):
        return None
    places = [at for at in range(len(lines)) if [line.strip() for line in lines[at : at + len(wanted)]] == wanted]
    if len(places) != 1:
        return None
    real = lines[places[0] : places[0] + len(wanted)]
    shift = _indentation(real)[: max(0, len(_indentation(real)) - len(_indentation(new.splitlines())))]
    meant = "\n".join(f"{shift}{line}" if line.strip() else line for line in new.splitlines())
    return _exact(text, "\n".join(real), meant)


def _indentation(lines: Sequence[str]) -> str:
    first = next((line for line in lines if line.strip()), "")
    return first[: len(first) - len(first.lstrip())]
