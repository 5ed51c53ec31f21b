"""Examples that a person wrote beside a rule: what it must match and what it must not. They are checked when it is read."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import NamedTuple

from wolo.guard.matching import Ground, read_host
from wolo.guard.rule_index import Paths, Rulebook, Subject, Target
from wolo.guard.rules import Exampled, Rule
from wolo.guard.shell.parser import Command, Line
from wolo.guard.shell.words import plain_words
from wolo.places import find_home


class Misfit(NamedTuple):
    example: str
    why: str


def find_misfit(written: Exampled, rule: Rule, root: Path) -> Misfit | None:
    """The first example that the rule does not treat as it says."""
    ground = Ground(os.path.realpath(root), os.path.realpath(find_home()), fold_case=sys.platform == "darwin")
    book = Rulebook([rule], ground)
    for example in (*written.match, *written.no_match):
        matches = book.find(rule.decision, rule.tool, _subject(rule, example, ground)) is not None
        if matches != (example in written.match):
            return Misfit(example, f"the rule {'matches' if matches else 'does not match'} its example `{example}`")
    return None


def _subject(rule: Rule, example: str, ground: Ground) -> Subject:
    """An example may begin with the rule's tool, as the rule does."""
    text = example.removeprefix(f"{rule.tool}:")
    match rule.tool:
        case "read" | "write":
            given = Path(ground.root, f"{ground.home}{text[1:]}" if text[:2] == "~/" else text)
            return Paths(os.path.realpath(given), os.path.normpath(given))
        case "shell":
            words = plain_words(text)
            return Command(words, (ground.root,)) if words else Line(text, Path(ground.root), None, is_readable=True)
        case "fetch":
            return read_host(text if "://" in text else f"https://{text}")
        case "mcp" | "task":
            return Target(text)
