"""Which keys do what: names for all that wolo does with a key, and the keys for it, the usual ones or a person's own."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches

from msgspec import Struct

from wolo.errors import ConfigError

SETTING = "ui.keymap"
SHIFT_ENTER = "f24"
"""prompt_toolkit has no name for it, and no keyboard has this key."""


class Action(Struct, frozen=True):
    name: str
    keys: tuple[str, ...]
    """A blank stands between keys that are pressed one after the other."""
    help: str


ACTIONS = (
    Action("send", ("enter",), "send; while wolo works: it is heard after the running call"),
    Action("send_later", ("alt-enter",), "while wolo works: send when the turn has ended"),
    Action("new_line", ("alt-enter", "ctrl-j", "shift-enter"), "begin a new line"),
    Action("stop", ("escape",), "stop what is under way; close a menu; twice on an empty line: go back"),
    Action("cancel", ("ctrl-c",), "clear what is written; stop a turn; twice: leave"),
    Action("leave", ("ctrl-d",), "leave, when nothing is written"),
    Action("take_back", ("up",), "while wolo works: take back what was sent and not heard"),
    Action("search", ("ctrl-r",), "search what was sent before"),
    Action("editor", ("ctrl-g",), "write in your editor (VISUAL, EDITOR)"),
    Action("files", ("ctrl-x ctrl-f",), "choose a file to mention"),
    Action("mode", ("shift-tab",), "the next mode: plan, ask, edit, auto"),
    Action("expand", ("ctrl-o",), "show what the model thought last"),
    Action("redraw", ("ctrl-l",), "paint the foot of the screen anew"),
    Action("suspend", ("ctrl-z",), "back to the shell; fg comes back"),
)
_NAMED = {
    "enter": "c-m",
    "tab": "c-i",
    "escape": "escape",
    "space": " ",
    "backspace": "c-h",
    "page-up": "pageup",
    "page-down": "pagedown",
    "shift-tab": "s-tab",
    "shift-enter": SHIFT_ENTER,
    **{name: name for name in ("up", "down", "left", "right", "home", "end", "insert", "delete")},
    **{f"f{number}": f"f{number}" for number in range(1, 24)},
}
_CONTROL = {f"ctrl-{letter}": f"c-{letter}" for letter in "abcdefghijklmnopqrstuvwxyz@\\]^_"}
_MOVED = {f"{kind}-{name}": f"{kind[0]}-{_NAMED[name]}" for kind in ("ctrl", "shift") for name in ("up", "down", "left", "right")}
KEYS = {**_NAMED, **_CONTROL, **_MOVED}
"""By the names that people write, as prompt_toolkit calls them."""


class Keymap:
    """The keys in force: a key that a person gives to one action is taken from all others.

    Raises ConfigError for a name that is no action or no key, and for a key that is given away twice.
    """

    def __init__(self, changed: Mapping[str, str | tuple[str, ...]]) -> None:
        self._changed = dict(changed)
        known = [action.name for action in ACTIONS]
        for name in changed:
            if name not in known:
                raise ConfigError(f"{SETTING}: there is no action {name}.", hint=_nearest(name, known))
        self._taken = self._given_away()
        self._pressed = {action.name: tuple(map(parse, self.keys(action))) for action in ACTIONS}

    def keys(self, action: Action) -> tuple[str, ...]:
        """As they are written."""
        if action.name in self._changed:
            return self._own(action.name)
        return tuple(key for key in action.keys if parse(key) not in self._taken)

    def _own(self, name: str) -> tuple[str, ...]:
        given = self._changed[name]
        return (given,) if isinstance(given, str) else given

    def _given_away(self) -> dict[tuple[str, ...], str]:
        taken: dict[tuple[str, ...], str] = {}
        for name in self._changed:
            for key in self._own(name):
                if taken.setdefault(parse(key), name) != name:
                    raise ConfigError(f"{SETTING}: {key} cannot be both {taken[parse(key)]} and {name}.")
        return taken

    def pressed(self, name: str) -> tuple[tuple[str, ...], ...]:
        """As prompt_toolkit knows them; none where a person wants none."""
        return self._pressed[name]

    def listed(self) -> str:
        """Every action with the keys that do it now."""
        rows = [(action.name, ", ".join(self.keys(action)) or "(no key)", action) for action in ACTIONS]
        names, keys = max(len(row[0]) for row in rows), max(len(row[1]) for row in rows)
        lines = [f"{name:<{names}}  {pressed:<{keys}}  {self._note(action)}".rstrip() for name, pressed, action in rows]
        return "\n".join([*lines, "", f'Other keys: [{SETTING}] in config.toml, such as editor = "ctrl-x ctrl-e".'])

    def _note(self, action: Action) -> str:
        return f"{action.help}{' (yours)' if action.name in self._changed else ''}"


def parse(written: str) -> tuple[str, ...]:
    """`alt-enter` or `ctrl-x ctrl-e` as prompt_toolkit's keys. Raises ConfigError."""
    keys: list[str] = []
    for word in written.lower().split():
        bare = word.removeprefix("alt-") if word != "alt-" else word
        if bare != word:
            keys.append("escape")
        keys.append(_key(bare, word))
    if not keys:
        raise ConfigError(f"{SETTING}: a key has no name.", hint="An empty list means no key.")
    return tuple(keys)


def _key(bare: str, word: str) -> str:
    if bare in KEYS:
        return KEYS[bare]
    if len(bare) == 1 and bare != word:
        return bare
    if len(bare) == 1:
        raise ConfigError(
            f"{SETTING}: {word} alone is a letter that one writes with.", hint=f"alt-{word} or ctrl-{word} are keys."
        )
    raise ConfigError(f"{SETTING}: there is no key {word}.", hint=_nearest(word, [*KEYS, "alt-enter"]))


def _nearest(name: str, known: list[str]) -> str:
    near = get_close_matches(name, known, n=1, cutoff=0.5)
    return f"Did you mean {near[0]}?" if near else f"There are {', '.join(known[:40])}."
