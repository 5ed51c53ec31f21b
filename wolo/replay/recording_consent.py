"""Consent to replay a recording that was not made on this machine, for exactly its calls and files."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import msgspec

from wolo.agent.hook_calls import changed_inputs
from wolo.config import consents
from wolo.messages.terminal_text import exact, label, quantity
from wolo.places import Notices, Places, make_private
from wolo.replay.replay_setup import Recording


def is_given(places: Places, recording: Recording) -> bool:
    """Raises ConfigError for a store that others may have written."""
    return (
        places.state.is_dir() and consents.consent_to(places, places.state.resolve(), _consent_key(recording), Notices()) == "yes"
    )


def save(places: Places, recording: Recording) -> None:
    """Raises ConfigError when it cannot be saved."""
    make_private(places.state)
    consents.save_consent(places, places.state.resolve(), _consent_key(recording), "yes")


def lines_of(recording: Recording) -> Iterator[str]:
    """Every argument of every call, each character as one that can be seen, and the files that they find."""
    files = recording.cassette.files if recording.cassette else ()
    yield f"This recording was not made here. It begins with {quantity(len(files), 'file')} and would run:"
    for number, (tool, arguments) in enumerate(_calls(recording), 1):
        yield f"{number}. {exact(tool)}"
        for name, value in arguments.items():
            text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
            yield from (f"   {line}" for line in label(exact(name), exact(text)).split("\n"))


def _calls(recording: Recording) -> list[tuple[str, dict[str, Any]]]:
    """Calls as they were made, and in each way that hooks had changed them: which of these hooks act again is not known."""
    calls: dict[bytes, tuple[str, dict[str, Any]]] = {}
    for turn in recording.tape.turns:
        ended = [part for message in turn.new for part in message.calls]
        for recorded in turn.script.answers:
            for made in recorded.answer.calls:
                for part in (made, *(each for each in ended if each.id == made.id)):
                    for arguments in (part.input, *changed_inputs(part)):
                        calls.setdefault(msgspec.json.encode((made.id, part.tool, arguments)), (part.tool, arguments))
    return [*calls.values()]


def _consent_key(recording: Recording) -> str:
    cassette = recording.cassette
    content = (_calls(recording), cassette, "" if cassette else recording.info.cwd)
    return f"replay {hashlib.sha256(msgspec.json.encode(content)).hexdigest()}"
