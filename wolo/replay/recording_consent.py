"""Consent to replay a recording that was not made on this machine, for exactly its calls and files."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import msgspec

from wolo.agent.hook_calls import executed_input
from wolo.config import consents
from wolo.messages.terminal_text import clean, clean_line, counted
from wolo.places import Places, make_private
from wolo.replay.replay_setup import Recording


def is_given(places: Places, recording: Recording) -> bool:
    """Raises ConfigError for a store that others may have written."""
    return places.state.is_dir() and consents.consent_to(places, places.state.resolve(), _asked(recording), []) == "yes"


def save(places: Places, recording: Recording) -> None:
    """Raises ConfigError when it cannot be saved."""
    make_private(places.state)
    consents.save_consent(places, places.state.resolve(), _asked(recording), "yes")


def lines_of(recording: Recording) -> Iterator[str]:
    """Every argument of every call, and the files that they find."""
    files = recording.cassette.files if recording.cassette else ()
    yield f"This recording was not made here. It begins with {counted(len(files), 'file')} and would run:"
    for number, (tool, arguments) in enumerate(_calls(recording), 1):
        yield f"{number}. {clean_line(tool)}"
        for name, value in arguments.items():
            text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
            first, *rest = clean(text).split("\n")
            yield f"   {clean_line(name)}: {first}"
            yield from (f"      {line}" for line in rest)


def _calls(recording: Recording) -> list[tuple[str, dict[str, Any]]]:
    """Calls as they were made, and as hooks had changed them."""
    found: list[tuple[str, dict[str, Any]]] = []
    for turn in recording.tape.turns:
        for recorded in turn.script.answers:
            for made in recorded.answer.calls:
                final = recording.tape.calls.get(made.id, made)
                found += [(made.tool, made.input), (final.tool, final.input), (final.tool, executed_input(final))]
    return [each for at, each in enumerate(found) if each not in found[max(at - 2, 0) : at]]


def _asked(recording: Recording) -> str:
    cassette = recording.cassette
    content = (_calls(recording), cassette, "" if cassette else recording.info.cwd)
    return f"replay {hashlib.sha256(msgspec.json.encode(content)).hexdigest()}"
