"""Commands that destroy what nothing brings back: recognised by what a program does with its options, not by how it is spelt.

They ask in every mode but `yolo`, also inside the sandbox, unless a rule that a person wrote names what they do.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice

from wolo.guard.destructive.affected_files import ExecutionContext, Loss
from wolo.guard.destructive.command_effects import CHECKS, emptied
from wolo.guard.shell.nested_commands import Found, commands_in
from wolo.guard.shell.parser import Line
from wolo.guard.shell.words import name_of, split_words, unquoted, unwrapped

_SUSPECT = re.compile(rf"(?<![\w.-])(?:{'|'.join(map(re.escape, CHECKS))}|mkfs|eval|\$')|[>*?]|\$\(|`|\\x", re.IGNORECASE)
"""Nothing in a text without any of these is worth a second look."""
_MOVES = frozenset({"cd", "pushd", "popd"})


def find_loss(line: Line, roots: Sequence[str], rules: Sequence[str]) -> str:
    """Why the line asks, a sentence for each destructive part; empty when it need not. `rules` are those that allowed its parts.

    Raises TooComplex.
    """
    if not any(map(_SUSPECT.search, {line.text, unquoted(line.text)})):
        return ""
    found = commands_in(line.text)
    scene = _scene(line, found, roots)
    said = [f"`{' '.join(loss.words)}` cannot be undone: {loss.what}." for each in found for loss in _unnamed(each, scene, rules)]
    return " ".join(dict.fromkeys(said))


def _scene(line: Line, found: Sequence[Found], roots: Sequence[str]) -> ExecutionContext:
    if line.commands is not None:
        places = tuple(dict.fromkeys(place for command in line.commands for place in command.places))
        known = tuple(place for place in places if place is not None)
        return ExecutionContext(known if len(known) == len(places) else (), roots, is_alone=len(line.commands) == 1)
    moves = any(each.words[:1] and each.words[0] in _MOVES for each in found)
    return ExecutionContext(() if moves else (str(line.cwd),), roots, is_alone=len(found) == 1)


def _unnamed(found: Found, scene: ExecutionContext, rules: Sequence[str]) -> Iterator[Loss]:
    """What no rule names; of a wrapper and the programs behind it the first, as the others are the same command again."""
    truncated = filter(None, (emptied(path, scene) for path in found.emptied))
    yield from (loss for loss in truncated if not any(_names(rule, loss) for rule in rules))
    yield from islice((loss for loss in _losses(found, scene) if not any(_names(rule, loss) for rule in rules)), 1)


def _losses(found: Found, scene: ExecutionContext) -> Iterator[Loss]:
    for words in unwrapped(found.words):
        program = name_of(words[0]) if words else ""
        if program.startswith("git-"):
            words, program = ("git", program[4:], *words[1:]), "git"
        if program.startswith("mkfs."):
            program = "mkfs"
        check = CHECKS.get(program)
        if check and (loss := check([program, *words[1:]], scene)):
            yield loss


def _names(rule: str, loss: Loss) -> bool:
    """Whether a person who wrote this rule meant such a command: `git push --force *` did, `git *` did not."""
    words = {word.text for word in split_words(rule.partition(":")[2]) or ()}
    return set(loss.words) <= {*words, *map(name_of, words)}
