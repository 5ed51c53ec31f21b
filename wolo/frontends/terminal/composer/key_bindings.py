"""The keys of the place where a person writes, as the keymap names them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from prompt_toolkit.application import run_in_terminal
from prompt_toolkit.application.current import get_app
from prompt_toolkit.filters import Condition, Filter, vi_insert_mode, vi_mode
from prompt_toolkit.input import ansi_escape_sequences
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.key_binding.vi_state import InputMode
from prompt_toolkit.keys import Keys
from prompt_toolkit.search import SearchDirection, start_search

from wolo.frontends.terminal.composer.composer import Composer
from wolo.frontends.terminal.composer.keymap import SHIFT_ENTER, Keymap
from wolo.frontends.terminal.io.graphemes import after_cursor, before_cursor
from wolo.frontends.terminal.io.suspend import END_OF_PASTE, is_within_paste, suspend

_SPELLINGS_OF_SHIFT_ENTER = ("\x1b[13;2u", "\x1b[27;2;13~")
"""How terminals send it, those that do."""


def composer_keys(composer: Composer, keymap: Keymap, others: Mapping[str, Callable[[], None]]) -> KeyBindings:
    """`others` are the actions that are not the composer's own."""
    ansi_escape_sequences.ANSI_SEQUENCES[END_OF_PASTE] = Keys.Ignore  # what is left of one that was pasted
    for spelling in _SPELLINGS_OF_SHIFT_ENTER:
        ansi_escape_sequences.ANSI_SEQUENCES[spelling] = Keys(SHIFT_ENTER)
    keys = KeyBindings()
    has_focus = Condition(lambda: get_app().layout.current_buffer is composer.buffer)
    writing = has_focus & Condition(lambda: not composer.is_asking())
    working = Condition(lambda: composer.is_working)
    empty = Condition(lambda: not composer.buffer.text)

    def bind(name: str, does: Callable[[KeyPressEvent], None], when: Filter = writing) -> None:
        for pressed in keymap.pressed(name):
            keys.add(*pressed, filter=when)(does)

    bind("new_line", lambda event: event.current_buffer.insert_text("\n"))
    bind("send", _send(composer))
    bind("send_later", lambda event: composer.send_later(), writing & working)
    bind("stop", lambda event: _stop(composer, event), writing & (~vi_mode | ~vi_insert_mode | empty))
    bind("cancel", lambda event: composer.cancel())
    bind("leave", lambda event: composer.end(), writing & empty)
    bind("take_back", lambda event: composer.take_back(), writing & working & empty)
    bind("search", lambda event: start_search(direction=SearchDirection.BACKWARD))
    bind("redraw", lambda event: event.app.invalidate())
    bind("suspend", lambda event: _suspend())
    _add_graphemes(keys, has_focus)
    for name, does in others.items():
        bind(name, _calls(does))
    keys.add(Keys.BracketedPaste, filter=has_focus)(lambda event: composer.paste(event.data))
    return keys


def _add_graphemes(keys: KeyBindings, when: Filter) -> None:
    """What is seen as one is deleted and stepped over as one."""

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


def _send(composer: Composer) -> Callable[[KeyPressEvent], None]:
    def send(event: KeyPressEvent) -> None:
        if is_within_paste(event) and not composer.is_choosing:
            event.current_buffer.insert_text("\n")
        else:
            composer.enter()

    return send


def _stop(composer: Composer, event: KeyPressEvent) -> None:
    composer.escape(may_go_back=not vi_mode())
    if vi_mode() and not composer.is_working:
        event.app.vi_state.input_mode = InputMode.NAVIGATION


def _suspend() -> None:
    run_in_terminal(suspend)


def _calls(does: Callable[[], None]) -> Callable[[KeyPressEvent], None]:
    return lambda event: does()
