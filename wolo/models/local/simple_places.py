"""Changes one place of a file with a tiny model: lines of a long file, additions to prose, docstrings of functions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePath
from typing import Final

from wolo.errors import BadAnswer
from wolo.messages.message import Message
from wolo.models.local import simple_texts as texts
from wolo.models.local.checks import code_check
from wolo.models.local.checks.asked_parts import asked_parts
from wolo.models.local.checks.begun_code import shown_part
from wolo.models.local.checks.edited_place import exact_texts
from wolo.models.local.checks.edited_python import with_docstrings
from wolo.models.local.checks.kept_content import lost_content
from wolo.models.local.checks.missing_parts import missing_parts
from wolo.models.local.checks.sections import asked_heading, place_of_addition, repeats
from wolo.models.local.checks.senses import GOES, means
from wolo.models.local.file_request import OTHER_MODEL, TRIES, FileRequest, state_of
from wolo.models.local.local_chat import Sampling
from wolo.models.local.simple_context import SimpleStep

BLOCK_TOKENS: Final = 500
EXCERPT_CHARS: Final = 5_000
WINDOW_LINES: Final = 40
"""Lines shown on each side of the place that the request is most likely about."""
SEARCH, MIDDLE, REPLACE = "<<<<<<< SEARCH\n", "\n=======\n", "\n>>>>>>> REPLACE"
_EXAMPLE: Final = "def limit():\n    return 10\n\n\ndef name():\n    return 'a'\n"


async def change_place(step: SimpleStep, path: str, text: str, error: str) -> Message:
    """Make an `edit` call for a file that is not written again. Raises BadAnswer if no attempt names lines of the file."""
    excerpt, request = excerpt_about(text, f"{step.request} {error}"), step.request
    failure = f"Running it fails:\n~~~\n{error}\n~~~\n" if error else ""
    turns = [
        ("system", "You change a file with one block: the lines to replace, copied exactly, and the new lines."),
        ("user", f"a.py:\n~~~\n{_EXAMPLE}~~~\nMake the limit 20."),
        ("assistant", f"{SEARCH}    return 10{MIDDLE}    return 20{REPLACE}"),
        ("user", f"{path}:\n~~~\n{excerpt}\n~~~\n{failure}{request}"),
        ("assistant", SEARCH),
    ]
    fault = ""
    for attempt in range(1, TRIES + 1):
        if fault and step.is_late(path):
            break
        sampling = Sampling(max_tokens=BLOCK_TOKENS, stop=(REPLACE.strip(),), attempt=attempt)
        replacement = _find_block(text, (await step.write(path, turns, sampling, whole=False)).text)
        if replacement is None:
            fault = "it names lines that are not in the file"
            continue
        old, new = replacement
        changed = text.replace(old, new, 1)
        fault = code_check.syntax_problem(path, changed)
        if lost := lost_content(path, text, changed, request):
            fault = f"it lost {lost}"
        elif missing := missing_parts(step.question, path, changed, text):
            fault = f"it has no {', '.join(missing)}"
        if old == new:
            fault = "nothing in it was changed"
        if not fault:
            return await step.call("edit", {"path": path, "old": old, "new": new})
    raise BadAnswer(f"{step.response.label} could not change {path}: {fault.rstrip('.')}. {state_of(step)}", hint=OTHER_MODEL)


def excerpt_about(text: str, request: str) -> str:
    """Cut out the part of the file that shares most words with the request."""
    if len(text) <= EXCERPT_CHARS:
        return text.rstrip()
    words = {word.lower() for word in re.findall(r"\w{3,}", request)}
    lines = text.splitlines()
    score = [len(words & {word.lower() for word in re.findall(r"\w{3,}", line)}) for line in lines]
    best = max(range(len(lines)), key=lambda at: sum(score[max(0, at - 3) : at + 4]) + 2 * score[at])
    return "\n".join(lines[max(0, best - WINDOW_LINES) : best + WINDOW_LINES])[:EXCERPT_CHARS]


def _find_block(text: str, answer: str) -> tuple[str, str] | None:
    """Find the lines of the file that a block means, and the new ones; None if they are not there exactly once."""
    block = answer.partition(SEARCH)[2] if SEARCH in answer else answer
    old, middle, new = block.partition(MIDDLE)
    if not middle:
        return None
    new = new.partition(REPLACE)[0].rstrip("\n")
    exact = old.strip("\n")
    if exact.strip() and text.count(exact) == 1:
        return exact, new
    lines, stripped = text.splitlines(), [line.strip() for line in exact.splitlines()]
    places = [at for at in range(len(lines)) if [line.strip() for line in lines[at : at + len(stripped)]] == stripped]
    if not any(stripped) or len(places) != 1:
        return None
    real = lines[places[0] : places[0] + len(stripped)]  # the same lines with other indentation
    shift = _indentation(real)[: max(0, len(_indentation(real)) - len(_indentation(new.splitlines())))]
    indented = "\n".join(f"{shift}{line}" if line.strip() else line for line in new.splitlines())
    whole = "\n".join(real)
    return (whole, indented) if text.count(whole) == 1 else None


def _indentation(lines: Sequence[str]) -> str:
    first = next((line for line in lines if line.strip()), "")
    return first[: len(first) - len(first.lstrip())]


DOCSTRING_TOKENS: Final = 60
MOST_DOCSTRINGS: Final = 12
ADDED_TOKENS: Final = 160
AROUND_LINES: Final = 12
"""Shown before a place where lines are added."""


async def write_docstrings(step: SimpleStep, order: FileRequest, names: Sequence[str]) -> str:
    """Ask for a docstring for each of the functions: the model writes a sentence, and changes no code."""
    old, sentences = order.old or "", dict[str, str]()
    for name in names[:MOST_DOCSTRINGS]:
        turns = texts.docstring(order.request, name, shown_part(old, name))
        sampling = Sampling(max_tokens=DOCSTRING_TOKENS, stop=("\n", '"""'))
        answer = (await step.write(order.path, turns, sampling, whole=False)).text
        sentences[name] = answer.strip().strip("\"'`").replace("\\", "").strip() or f"{name.replace('_', ' ').capitalize()}."
    return with_docstrings(old, sentences)


def is_addition(path: str, old: str, request: str) -> bool:
    """Tells whether words are added to prose that exists: the model writes them, and wolo finds their place."""
    is_prose = PurePath(path).suffix.lower() in (".md", ".txt", ".rst")
    return is_prose and bool(old.strip()) and means(request, "add") and not means(request, *GOES, "move")


async def added_lines(step: SimpleStep, order: FileRequest) -> str:
    """Put what the model adds in the place that the request means; empty if it adds nothing of use."""
    lines = (order.old or "").splitlines()
    at, begin = place_of_addition(order.old or "", order.request)
    begin = begin or asked_heading(order.old or "", order.request)
    turns = texts.addition(order.request, order.path, "\n".join(lines[:at][-AROUND_LINES:]), begin)
    stated = [each for each in asked_parts(order.request).quoted if each not in (order.old or "") and each not in begin]
    gap = [] if begin.lstrip()[:1] not in ("", "#") or not lines[at - 1 : at] or not lines[at - 1].strip() else [""]
    added = stated[0].lstrip("-*+ ") if len(stated) == 1 else ""
    for attempt in () if added else (1, 2):
        sampling = Sampling(
            max_tokens=ADDED_TOKENS, stop=("\n\n\n", "\n#") if gap else ("\n\n",), shun_repeats=True, attempt=attempt
        )
        answer = (await step.write(order.path, turns, sampling, whole=False)).text.removeprefix(begin).strip()
        added = exact_texts(answer if gap else answer.partition("\n")[0], order.request)
        if is_about(added, order.request, order.old or ""):
            break
        added = stated_sentence(order.request, order.path)
        if attempt > 1 and not added:
            return ""
    return "\n".join([*lines[:at], *gap, f"{begin}{added}", *lines[at:]]).rstrip("\n") + "\n"


def is_about(added: str, request: str, old: str) -> bool:
    """Tells whether an addition speaks of what the request does, in its words but not as an order."""
    words, asked_for = _content_words(added), _content_words(request) - _content_words(old)
    known = len(words & _content_words(request))
    is_part = re.sub(r"\W+", " ", added).strip() in re.sub(r"\W+", " ", request) and means(added, "work", "add")
    is_repeated = is_part or repeats(request, added)
    return bool(words) and not is_repeated and bool(words & asked_for) and known >= min(2, len(words)) and known * 3 >= len(words)


def _content_words(text: str) -> set[str]:
    """Collect beginnings of longer words, and pairs of characters where words are not separated."""
    latin = {word.lower()[:5] for word in re.findall(r"[^\W\d_\u0e00-\uffff]{4,}", text)}
    return latin | {
        text[at : at + 2] for at in range(len(text) - 1) if re.fullmatch(r"[\u3040-\u9fff\uac00-\ud7af]{2}", text[at : at + 2])
    }


def stated_sentence(request: str, path: str) -> str:
    """Find the only sentence that states something, beside the one that names the file; empty if there is none."""
    sentences = [each.strip() for each in re.split(r"(?<=[.!])\s+|(?<=[。！])|\n+", request) if re.search(r"\w", each)]
    stated = [each for each in sentences if PurePath(path).name not in each and not means(each, "add") and "?" not in each]
    return stated[0] if len(stated) == 1 and (len(stated[0].split()) > 2 or not stated[0].isascii()) else ""
