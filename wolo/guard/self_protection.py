"""Commands that would change wolo's own settings, rules and consents, by wolo itself or with the directory that holds them.

A person gives those, and no command of the model does.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence

from wolo.guard.shell.named_paths import TooManyFiles, expand, real_path
from wolo.guard.shell.words import Word, name_of, unquoted
from wolo.guard.shell.wrappers import behind

_CHANGING = frozenset(
    (
        *(("config", "set"), ("config", "edit"), ("permissions", "remove"), ("trust", "forget")),
        *(("mcp", "add"), ("mcp", "remove"), ("mcp", "allow"), ("hooks", "allow"), ("auth", "login"), ("auth", "logout")),
    )
)
_REMOVING = frozenset({"rm", "mv", "chmod", "chown", "chgrp", "shred", "trash", "unlink"})
_FINDING = frozenset({"find", "fd", "fdfind"})
_MAY_REMOVE = re.compile(rf"(?<![\w.-])(?:{'|'.join(sorted(_REMOVING))}|-delete)(?![\w-])|\$'", re.IGNORECASE)


def may_remove(text: str) -> bool:
    """A first look: most commands do not."""
    return any(map(_MAY_REMOVE.search, {text, unquoted(text)}))


def removed_by(text: str, cwd: str, home: str, named: Iterable[str]) -> Iterator[str]:
    """Real paths that the command may move, remove or close, looked up in every directory that it names; also with wildcards.

    Raises TooComplex.
    """
    from wolo.guard.shell.nested_commands import commands_in  # noqa: PLC0415  # few commands remove anything

    folders = dict.fromkeys((cwd, *(path for path in named if os.path.isdir(path))))  # noqa: PTH112  # the same
    for each in commands_in(text):
        for words in behind(each.words):
            if words and _removes(words):
                for word in words[1:-1] if name_of(words[0]) == "mv" else words[1:]:
                    yield from _meant(re.sub(r"^(?:~|\$HOME|\$\{HOME\})(?=/|$)", home, word), folders)


def _removes(words: Sequence[str]) -> bool:
    program = name_of(words[0])
    if program in _FINDING:
        return "-delete" in words or not _REMOVING.isdisjoint(map(name_of, words[1:]))
    return program in _REMOVING


def _meant(word: str, folders: Iterable[str]) -> Iterator[str]:
    for folder in folders:
        if not any(letter in word for letter in "*?["):
            yield real_path(folder, word)
            continue
        try:
            yield from map(os.path.realpath, expand(Word(word, True), folder))
        except TooManyFiles:
            yield os.path.normpath(word if word[:1] == "/" else f"{folder}/{word}")


def are_changed_by(command: str) -> bool:
    if not re.search("wolo", command, re.IGNORECASE) and not re.search(r"w\W*o\W*l\W*o", command):
        return False
    from wolo.guard.shell.nested_commands import commands_in  # noqa: PLC0415  # where wolo is named

    return any(_is_change(each.words) for each in commands_in(command))


def _is_change(words: tuple[str, ...]) -> bool:
    """Behind whatever runs it, and whatever options say before: `env wolo mcp add`, `python -m wolo -C x mcp add`."""
    plain = [word for word in words if not word.startswith("-")]
    at = next((at for at, word in enumerate(plain) if name_of(word) == "wolo"), len(plain))
    return not _CHANGING.isdisjoint(zip(plain[at + 1 :], plain[at + 2 :], strict=False))
