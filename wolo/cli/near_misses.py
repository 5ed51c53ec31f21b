"""Recognises prompts that were meant as subcommands, and names the subcommand."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping

from wolo.errors import UsageError

MOST_WORDS = 3
"""A longer line is a prompt."""
SHORT = 5
"""Number of letters up to which one typo is allowed; longer words may have two."""
LEAST_PREFIX = 4
ANY_PROMPT = '"…"'
OTHER_NAMES = {
    "chat": "wolo",
    "configure": "wolo config show",
    "exec": 'wolo -p "…"',
    "export": "wolo sessions export ID",
    "fork": "wolo sessions fork ID",
    "history": "wolo sessions list",
    "import": "wolo sessions import FILE",
    "resume": "wolo --resume",
    "run": 'wolo "…"',
    "settings": "wolo config show",
    "setup": "wolo login",
    "signin": "wolo login",
    "signout": "wolo logout",
    "upgrade": "wolo update",
    "version": "wolo --version",
}
"""Command names of other programs, with the equivalent in wolo."""


def refuse_almost_command(words: list[str], subcommands: Mapping[str, tuple[str, ...]]) -> None:
    """Raises UsageError for a line that nearly matches one of the `subcommands` and the words they take."""
    if len(words) == 2 and (name := OTHER_NAMES.get(words[0].casefold())) and " " in words[1]:
        prompt = shlex.quote(words[1])
        raise UsageError(
            f"Unknown command `wolo {words[0]}`.",
            hint=f"Did you mean `{name.replace(ANY_PROMPT, prompt)}`? `wolo -- {words[0]} {prompt}` sends it as a prompt.",
        )
    if not words or any(set(word) & set(" \t\n") for word in words) or len(words) > MOST_WORDS:
        return
    if not (meant := _suggestion(words, subcommands)):
        return
    said = " ".join(words)
    raise UsageError(f"Unknown command `wolo {said}`.", hint=f"{meant} `wolo -- {said}` sends it as a prompt.")


def _suggestion(words: list[str], subcommands: Mapping[str, tuple[str, ...]]) -> str:
    """Returns the hint that names the command; empty for a prompt."""
    first, *rest = words
    if not rest:
        name = OTHER_NAMES.get(first.casefold()) or ((near := nearest(first, subcommands)) and f"wolo {near}")
        return f"Did you mean `{name}`?" if name else ""
    group = first if first in subcommands else nearest(first, subcommands)
    takes = subcommands.get(group, ())
    word = rest[0] if rest[0] in takes else nearest(rest[0], takes)
    if word:
        return f"Did you mean `wolo {group} {word}`?" if len(rest) == 1 or group != "help" else ""
    if group == first and takes and group != "help":
        return f"Did you mean one of its commands? `wolo {group} --help` lists them."
    return ""


def nearest(word: str, names: Iterable[str]) -> str:
    """Returns the name that `word` is a typo or a prefix of, or an empty string."""
    from rapidfuzz.distance import OSA  # a swap of neighbours is one edit

    folded = word.casefold()
    close = [
        (distance, name)
        for name in names
        if (distance := OSA.distance(folded, name)) <= (1 if min(len(folded), len(name)) <= SHORT else 2)
    ]
    if close:
        return min(close)[1]
    begun = [name for name in names if len(folded) >= LEAST_PREFIX and name.startswith(folded)]
    return begun[0] if len(begun) == 1 else ""
