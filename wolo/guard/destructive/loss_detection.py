"""Finds commands in a line that destroy data irrecoverably, by what a program does with its options.

They ask in every mode except `yolo`, even inside the sandbox, unless a rule of the user names what they do.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice

from wolo.guard.destructive.affected_files import UNKNOWN, ExecutionContext, Loss
from wolo.guard.destructive.command_effects import CHECKS, DELETERS, emptied
from wolo.guard.shell.nested_commands import NestedCommand, commands_in
from wolo.guard.shell.parser import ParsedLine
from wolo.guard.shell.words import name_of, split_words, unquoted, unwrapped

_SUSPECT = re.compile(rf"(?<![\w.-])(?:{'|'.join(map(re.escape, CHECKS))}|mkfs|eval|\$')|[>*?]|\$\(|`|\\x", re.IGNORECASE)
"""A text without any of these is not parsed."""
_MOVES = frozenset({"cd", "pushd", "popd"})


def find_loss(line: ParsedLine, roots: Sequence[str], rules: Sequence[str]) -> str:
    """Reasons for the line to ask, a sentence per destructive part; empty if there is none.

    `rules` are those that allowed its parts. Raises TooComplex.
    """
    if not any(map(_SUSPECT.search, {line.text, unquoted(line.text)})):
        return ""
    found = commands_in(line.text)
    context = _context_of(line, found, roots)
    reasons = [_sentence(loss) for each in found for loss in _unnamed(each, context, rules)]
    return " ".join(dict.fromkeys(reasons))


def _sentence(loss: Loss) -> str:
    command = f"`{' '.join(loss.words)}`"
    if loss.what == UNKNOWN:
        return f"{command} {'deletes' if loss.words[0] in DELETERS else 'overwrites'} files permanently; {UNKNOWN}."
    return f"{command} cannot be undone: {loss.what}."


def _context_of(line: ParsedLine, found: Sequence[NestedCommand], roots: Sequence[str]) -> ExecutionContext:
    if line.commands is not None:
        directories = tuple(dict.fromkeys(place for command in line.commands for place in command.directories))
        known = tuple(place for place in directories if place is not None)
        return ExecutionContext(known if len(known) == len(directories) else (), roots, is_alone=len(line.commands) == 1)
    moves = any(each.words[:1] and each.words[0] in _MOVES for each in found)
    return ExecutionContext(() if moves else (str(line.cwd),), roots, is_alone=len(found) == 1)


def _unnamed(found: NestedCommand, context: ExecutionContext, rules: Sequence[str]) -> Iterator[Loss]:
    """Losses that no rule names. Of a wrapper and its inner programs only the first counts: the others repeat the command."""
    truncated = filter(None, (emptied(path, context) for path in found.emptied))
    yield from (loss for loss in truncated if not any(_names(rule, loss) for rule in rules))
    yield from islice((loss for loss in _losses(found, context) if not any(_names(rule, loss) for rule in rules)), 1)


def _losses(found: NestedCommand, context: ExecutionContext) -> Iterator[Loss]:
    for words in unwrapped(found.words):
        program = name_of(words[0]) if words else ""
        if program.startswith("git-"):
            words, program = ("git", program[4:], *words[1:]), "git"
        if program.startswith("mkfs."):
            program = "mkfs"
        check = CHECKS.get(program)
        if check and (loss := check([program, *words[1:]], context)):
            yield loss


def _names(rule: str, loss: Loss) -> bool:
    """Tells whether the author of a rule meant such a command: `git push --force *` does, `git *` does not."""
    words = {word.text for word in split_words(rule.partition(":")[2]) or ()}
    return set(loss.words) <= {*words, *map(name_of, words)}
