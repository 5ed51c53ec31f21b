"""Changes of one place that need few or no words of a model: a value, a renaming, an exchange of texts, lines at an end."""

from __future__ import annotations

import re
from pathlib import PurePath
from typing import Final

from wolo.models.local.checks.asked_changes import apply_rename, asked_exchange, asked_rename
from wolo.models.local.checks.asked_parts import asked_parts, clauses_of, marked_lines
from wolo.models.local.checks.edited_data import DATA, remove_entries, set_cell, set_value
from wolo.models.local.checks.edited_python import change_definition, set_result
from wolo.models.local.checks.kept_content import PROSE_SUFFIXES
from wolo.models.local.checks.marks import num_of
from wolo.models.local.checks.sections import heading_level
from wolo.models.local.checks.senses import means

MOST_CLAUSES: Final = 12
"""Of a request that is done clause by clause."""


def edit_places(path: str, old: str, request: str) -> tuple[str, str]:
    """Make the changes that the request states in full; also return the sentences that a model has to do."""
    edited = edit_place(path, old, request)
    if edited is not None:
        return edited, ""
    clauses = clauses_of(request)
    text, rest = old, []
    for each in clauses if 1 < len(clauses) <= MOST_CLAUSES else ():
        edited = edit_place(path, text, each)
        text = edited or text
        rest += [] if edited not in (None, old) else [each]
    return (text, "\n".join(rest)) if text != old else (old, request)


def edit_place(path: str, old: str, request: str) -> str | None:
    """Make a change that the request states in full; None: a model has to write it."""
    if means(request, "negated"):
        return None
    suffix, parts = PurePath(path).suffix.lower(), asked_parts(request)
    suffix = ".env" if PurePath(path).name.startswith(".env") else suffix
    if suffix == ".csv" and not means(request, "remove") and (changed := set_cell(old, request, parts)):
        return changed
    is_list = suffix == ".csv" or PurePath(path).name.startswith((".", "requirements"))
    if rename := asked_rename(request, old):
        return apply_rename(old, rename)
    if suffix == ".py" and (changed := change_definition(old, request)):
        return changed
    if suffix == ".py" and parts.calls:
        return set_result(old, request)
    if parts.functions or parts.calls or means(request, "remove"):
        is_data = suffix in DATA or is_list
        return (
            remove_entries(suffix, old, request) if is_data and not (parts.quoted or means(request, "add", "rewrite")) else None
        )
    if (exchange := asked_exchange(request, old)) and (
        exchange[0].isdigit() or suffix != ".py" or re.search(rf"[\"']{re.escape(exchange[0])}[\"']", old)
    ):
        return _exchange(old, exchange, request)
    if suffix in DATA or suffix == ".py":
        return set_value(suffix, old, request, parts)
    if is_list and not parts.quoted and (marked := marked_lines(request, path)) and not means(request, "rewrite"):
        return "\n".join([*old.splitlines(), *(each for each in marked if each not in old.splitlines())]) + "\n"
    if suffix in PROSE_SUFFIXES:
        known = [each for each in parts.quoted if each in old]
        fresh = [each for each in parts.quoted if each not in old]
        if means(request, "rewrite", "rename"):
            return old.replace(known[0], fresh[0]) if len(known) == 1 and len(fresh) == 1 else None
        at_end, is_heading = means(request, "at_end"), means(request, "heading")
        if at_end:
            fresh = list(parts.quoted)
        if not fresh or (known and not at_end) or not (at_end or is_heading):
            return None
        if is_heading and len(fresh) == 1:
            return None  # its text is for the model to write
        fresh[0] = f"{heading_level(old)} {fresh[0]}" if is_heading and not fresh[0].startswith("#") else fresh[0]
        gap = "\n" if is_list or re.match("[-*+] ", fresh[0]) else "\n\n"
        return gap.join((old.rstrip(), *fresh)) + "\n"
    return None


def _exchange(old: str, exchange: tuple[str, str], request: str) -> str | None:
    """Put the new value in the only place of the old one, in that whose surroundings the request names, or in all."""
    if means(request, "all"):
        return re.sub(rf"(?<!\w){re.escape(exchange[0])}(?!\w)", lambda _: exchange[1], old)
    lines, words, points = old.split("\n"), re.findall(r"\w{3,}", request.lower()), dict[int, int]()
    for at in (at for at, line in enumerate(lines) if num_of(exchange[0], line)):
        owners = [lines[at]]
        for line in reversed(lines[:at]):
            if line.strip() and len(line) - len(line.lstrip()) < len(owners[-1]) - len(owners[-1].lstrip()):
                owners.append(line)
        around = set(re.findall(r"\w{3,}", " ".join(owners).lower()))
        points[at] = sum(any(word.startswith(each) for word in words) for each in around)
    best = [at for at in points if points[at] == max(points.values())]
    for at in best:
        lines[at] = re.sub(rf"(?<!\w){re.escape(exchange[0])}(?!\w)", lambda _: exchange[1], lines[at], count=1)
    return "\n".join(lines) if len(best) == 1 and num_of(exchange[0], old.split("\n")[best[0]]) == 1 else None


def exact_texts(text: str, request: str) -> str:
    """Write quotations as in the request: tiny models change capitals and end sentences."""
    for each in asked_parts(request).quoted:
        text = re.sub(rf"({re.escape(each)})[.!](?=\\n|[\"'])", r"\1", text)
        if each not in text and len(spellings := set(re.findall(re.escape(each), text, re.IGNORECASE))) == 1:
            text = text.replace(spellings.pop(), each)
    return text
