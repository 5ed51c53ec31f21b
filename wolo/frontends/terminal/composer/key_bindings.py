"""Binds the keys of the keymap to the actions of the composer and the REPL."""

from __future__ import annotations

from collections.abc import Callable

from prompt_toolkit.application.current import get_app
from prompt_toolkit.filters import Condition, Filter, vi_insert_mode, vi_mode
from prompt_toolkit.input import ansi_escape_sequences
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys

from wolo.frontends.terminal.composer.composer import Composer
from wolo.frontends.terminal.composer.keymap import ACTIONS, SHIFT_ENTER, Keymap
from wolo.frontends.terminal.io.graphemes import after_cursor, before_cursor
from wolo.frontends.terminal.io.suspend import END_OF_PASTE
from wolo.frontends.terminal.live.component import KeyTarget

_SPELLINGS_OF_SHIFT_ENTER = ("\x1b[13;2u", "\x1b[27;2;13~")
"""Sent by terminals that can tell it from Enter."""


def composer_keys(composer: Composer, keymap: Keymap, repl: KeyTarget) -> KeyBindings:
    """Actions that are not the composer's go to the `repl`."""
    ansi_escape_sequences.ANSI_SEQUENCES[END_OF_PASTE] = Keys.Ignore  # the rest of a mark that was pasted itself
    for spelling in _SPELLINGS_OF_SHIFT_ENTER:
        ansi_escape_sequences.ANSI_SEQUENCES[spelling] = Keys(SHIFT_ENTER)
    keys = KeyBindings()
    has_focus = Condition(lambda: get_app().layout.current_buffer is composer.buffer)
    for action in reversed(ACTIONS):  # of two actions with one key the first in the list wins while it is accepted
        for pressed in keymap.pressed(action.name):
            keys.add(*pressed, filter=has_focus & _accepted(composer, action.name))(_performs(composer, repl, action.name))
    _add_graphemes(keys, has_focus)
    keys.add(Keys.BracketedPaste, filter=has_focus)(lambda event: composer.paste(event.data))
    return keys


def _accepted(composer: Composer, action: str) -> Condition:
    return Condition(lambda: composer.accepts(action))


def _performs(composer: Composer, repl: KeyTarget, action: str) -> Callable[[KeyPressEvent], None]:
    def perform(event: KeyPressEvent) -> None:
        if not composer.handle_key(action):
            repl.handle_key(action)

    return perform


def _add_graphemes(keys: KeyBindings, when: Filter) -> None:
    """Deletes and steps over a grapheme as one character."""

    @keys.add("c-h", filter=when & (~vi_mode | vi_insert_mode))
    def delete_before(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        buffer.delete_before_cursor(before_cursor(buffer.document) or 1)

    @keys.add("delete", filter=when)
    def delete_after(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        buffer.delete(after_cursor(buffer.document) or 1)

    @keys.add("left", filter=when)
    @keys.add("c-b", filter=when & ~vi_mode)
    def step_back(event: KeyPressEvent) -> None:
        event.current_buffer.cursor_position -= before_cursor(event.current_buffer.document)

    @keys.add("right", filter=when)
    @keys.add("c-f", filter=when & ~vi_mode)
    def step_on(event: KeyPressEvent) -> None:
        event.current_buffer.cursor_position += after_cursor(event.current_buffer.document)
