"""Commands by which wolo changes its own settings, rules and consents: a person gives those, and no command of the model does."""

from __future__ import annotations

import re

from wolo.guard.shell import name_of

_CHANGING = frozenset(
    (
        *(("config", "set"), ("config", "edit"), ("permissions", "remove"), ("trust", "forget")),
        *(("mcp", "add"), ("mcp", "remove"), ("mcp", "allow"), ("auth", "login"), ("auth", "logout")),
    )
)


def are_changed_by(command: str) -> bool:
    if not re.search("wolo", command, re.IGNORECASE) and not re.search(r"w\W*o\W*l\W*o", command):
        return False
    from wolo.guard.anywhere import commands_in  # noqa: PLC0415  # where wolo is named

    return any(_is_change(each.words) for each in commands_in(command))


def _is_change(words: tuple[str, ...]) -> bool:
    """Behind whatever runs it, and whatever options say before: `env wolo mcp add`, `python -m wolo -C x mcp add`."""
    plain = [word for word in words if not word.startswith("-")]
    at = next((at for at, word in enumerate(plain) if name_of(word) == "wolo"), len(plain))
    return not _CHANGING.isdisjoint(zip(plain[at + 1 :], plain[at + 2 :], strict=False))
