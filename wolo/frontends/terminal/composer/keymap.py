"""Actions that keys perform, the keys for them, and their bindings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from functools import partial
from textwrap import wrap

from msgspec import Struct
from prompt_toolkit.application.current import get_app
from prompt_toolkit.filters import Condition, vi_insert_mode, vi_mode
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys

from wolo.errors import ConfigError
from wolo.frontends.terminal.composer.composer import KEYS_COMMAND, Composer
from wolo.frontends.terminal.io.graphemes import after_cursor, before_cursor
from wolo.frontends.terminal.io.prompt_toolkit_adapter import map_sequence

SETTING = "ui.keymap"
LEAST_NOTE = 24
"""Columns beside the keys that a note needs."""
SHIFT_ENTER = "f24"
"""Stands for Shift-Enter, which prompt_toolkit does not know; no keyboard has this key."""


class Action(Struct, frozen=True):
    name: str
    keys: tuple[str, ...]
    """A space separates keys that are pressed one after the other."""
    help: str


ACTIONS = (
    Action("send", ("enter",), "send; while wolo works: after the running call"),
    Action("send_later", ("alt-enter",), "while wolo works: queue until the turn has ended"),
    Action("new_line", ("alt-enter", "ctrl-j", "shift-enter"), "new line"),
    Action("stop", ("escape",), "stop the turn; close a menu; twice on an empty line: rewind"),
    Action("cancel", ("ctrl-c",), "clear the text; stop the turn; twice: quit"),
    Action("leave", ("ctrl-d",), "quit, when the line is empty"),
    Action("take_back", ("up",), "while wolo works: edit the queued message"),
    Action("search", ("ctrl-r",), "search the prompt history"),
    Action("editor", ("ctrl-g", "ctrl-x ctrl-e", "ctrl-x e"), "write in your editor (VISUAL, EDITOR)"),
    Action("files", ("ctrl-x ctrl-f",), "choose a file to mention"),
    Action("model", ("alt-p", "f2", "ctrl-x m"), "choose the model"),
    Action("thinking", ("alt-t",), "show the thinking level"),
    Action("new", ("ctrl-x n",), "start a new session"),
    Action("resume", ("ctrl-x l",), "continue another session"),
    Action("undo", ("ctrl-x u",), "revert the last turn, when the line is empty"),
    Action("redo", ("ctrl-x r",), "restore what was undone, when the line is empty"),
    Action("status", ("ctrl-x s",), "model, session, mode, context and cost"),
    Action("copy", ("ctrl-x y",), "copy the last answer"),
    Action("theme", ("ctrl-x t",), "choose the theme"),
    Action("tasks", ("ctrl-t",), "show the task list"),
    Action("stash", ("ctrl-s",), "keep the text aside; on an empty line: bring it back"),
    Action("paste_image", ("ctrl-v",), "attach the image in the clipboard"),
    Action("mode", ("shift-tab", "alt-m"), "the next mode: plan, ask, edit, auto"),
    Action("expand", ("ctrl-o",), "view everything: whole outputs, thinking, earlier turns"),
    Action("background", ("ctrl-b",), "while wolo works, on an empty line: list what runs in the background"),
    Action("redraw", ("ctrl-l",), "redraw"),
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
"""prompt_toolkit's names by the names in settings."""


class Keymap:
    """Keys by action. A key that the user assigns to one action is removed from the others.

    Raises ConfigError for unknown actions and keys, and for a key that is assigned twice.
    """

    def __init__(self, changed: Mapping[str, str | tuple[str, ...]]) -> None:
        self._changed = dict(changed)
        known = [action.name for action in ACTIONS]
        for name in changed:
            if name not in known:
                raise ConfigError(f"{SETTING}: there is no action {name}.", hint=_nearest(name, known))
        taken: dict[tuple[str, ...], str] = {}
        for name in self._changed:
            for key in self._own_keys(name):
                if taken.setdefault(parse(key), name) != name:
                    raise ConfigError(f"{SETTING}: {key} cannot be both {taken[parse(key)]} and {name}.")
        self._taken = taken
        self._pressed = {action.name: tuple(map(parse, self.keys(action))) for action in ACTIONS}

    def keys(self, action: Action) -> tuple[str, ...]:
        """Keys by their names in settings."""
        if action.name in self._changed:
            return self._own_keys(action.name)
        return tuple(key for key in action.keys if parse(key) not in self._taken)

    def _own_keys(self, name: str) -> tuple[str, ...]:
        given = self._changed[name]
        return (given,) if isinstance(given, str) else given

    def key_presses(self, name: str) -> tuple[tuple[str, ...], ...]:
        """Keys by prompt_toolkit's names."""
        return self._pressed[name]

    def table(self, columns: int = 80) -> str:
        """A table of actions and their keys, for /keys; in a narrow window a note is below its keys."""
        rows = [(action.name, ", ".join(self.keys(action)) or "(no key)", action) for action in ACTIONS]
        names, keys = max(len(row[0]) for row in rows), max(len(row[1]) for row in rows)
        indent = names + keys + 4
        is_narrow = columns - indent < LEAST_NOTE
        lines: list[str] = []
        for name, pressed, action in rows:
            first = f"{name:<{names}}  {pressed:<{keys}}  "
            lines += wrap(f"{name}  {pressed}", columns, subsequent_indent="    ") if is_narrow else []
            lead = "    " if is_narrow else " " * indent
            lines += wrap(
                f"{action.help}{' (yours)' if action.name in self._changed else ''}",
                columns,
                initial_indent=lead if is_narrow else first,
                subsequent_indent=lead,
            )
        other = f'Other keys: [{SETTING}] in config.toml, such as editor = "ctrl-x ctrl-e".'
        return "\n".join([*lines, "", other])


def parse(written: str) -> tuple[str, ...]:
    """Translates `alt-enter` or `ctrl-x ctrl-e` to prompt_toolkit's keys. Raises ConfigError."""
    keys: list[str] = []
    for word in written.lower().split():
        bare = word.removeprefix("alt-") if word != "alt-" else word
        if bare != word:
            keys.append("escape")
        keys.append(bare if keys and len(bare) == 1 else _key(bare, word))
    if not keys:
        raise ConfigError(f"{SETTING}: a key has no name.", hint="An empty list means no key.")
    return tuple(keys)


def _key(bare: str, word: str) -> str:
    if bare in KEYS:
        return KEYS[bare]
    if len(bare) == 1 and bare != word:
        return bare
    if len(bare) == 1:
        raise ConfigError(f"{SETTING}: {word} alone types a letter.", hint=f"alt-{word} or ctrl-{word} are keys.")
    raise ConfigError(f"{SETTING}: there is no key {word}.", hint=_nearest(word, [*KEYS, "alt-enter"]))


def _nearest(name: str, known: list[str]) -> str:
    near = get_close_matches(name, known, n=1, cutoff=0.5)
    return f"Did you mean {near[0]}?" if near else f"There are {', '.join(known[:40])}."


_SPELLINGS_OF_SHIFT_ENTER = ("\x1b[13;2u", "\x1b[27;2;13~")
"""Sent by terminals that can tell it from Enter."""


def composer_keys(composer: Composer, keymap: Keymap, handle_other: Callable[[str], object]) -> KeyBindings:
    """`handle_other` gets the actions that are not the composer's."""
    for spelling in _SPELLINGS_OF_SHIFT_ENTER:
        map_sequence(spelling, Keys(SHIFT_ENTER))
    keys = KeyBindings()
    has_focus = Condition(lambda: get_app().layout.current_buffer is composer.buffer)
    for action in reversed(ACTIONS):  # of two actions with one key the first in the list wins while it is accepted
        for pressed in keymap.key_presses(action.name):
            is_accepted = Condition(partial(composer.accepts, action.name))
            keys.add(*pressed, filter=has_focus & is_accepted)(partial(_perform, composer, handle_other, action.name))

    # A grapheme is deleted and stepped over as one character.

    is_typing = has_focus & (~vi_mode | vi_insert_mode)
    keys.add("c-h", filter=is_typing)(
        lambda event: event.current_buffer.delete_before_cursor(before_cursor(event.current_buffer.document) or 1)
    )
    keys.add("delete", filter=has_focus)(
        lambda event: event.current_buffer.delete(after_cursor(event.current_buffer.document) or 1)
    )
    for key, filter in (("left", has_focus), ("c-b", has_focus & ~vi_mode)):
        keys.add(key, filter=filter)(lambda event: event.current_buffer.cursor_left(before_cursor(event.current_buffer.document)))
    for key, filter in (("right", has_focus), ("c-f", has_focus & ~vi_mode)):
        keys.add(key, filter=filter)(lambda event: event.current_buffer.cursor_right(after_cursor(event.current_buffer.document)))

    @keys.add("?", filter=is_typing & Condition(lambda: not composer.buffer.text))
    def show_keys(event: KeyPressEvent) -> None:
        if event.key_processor.input_queue:  # the beginning of text that came at once
            event.current_buffer.insert_text(event.data)
        else:
            composer.submit_line(KEYS_COMMAND)

    keys.add("c-q", filter=has_focus)(lambda event: None)  # not the editor's way to type a control character
    keys.add(Keys.BracketedPaste, filter=has_focus)(lambda event: composer.paste(event.data))
    return keys


def _perform(composer: Composer, handle_other: Callable[[str], object], action: str, event: KeyPressEvent) -> None:
    if not composer.handle_key(action):
        handle_other(action)
