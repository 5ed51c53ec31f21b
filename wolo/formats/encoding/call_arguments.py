"""The arguments of a call as they go out again, as text or as an object."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import msgspec

from wolo.formats.decoding.loose_json import read_strictly
from wolo.messages.parts import ToolPart
from wolo.messages.unicode import whole


def arguments_text(call: ToolPart) -> str:
    """What the model wrote where that is JSON and still what it means, otherwise the parsed arguments written anew."""
    if call.raw_input and read_strictly(call.raw_input) == call.input:
        return call.raw_input
    return _written(call.input) if call.input else "{}"


def arguments_object(call: ToolPart) -> dict[str, Any]:
    """For formats that carry an object. The keys keep the order in which the model wrote them; always strict JSON."""
    arguments = read_strictly(arguments_text(call))
    return arguments if isinstance(arguments, dict) else {}


def _written(arguments: Mapping[str, Any]) -> str:
    """As models write it, with a blank behind comma and colon."""
    try:
        return json.dumps(msgspec.json.decode(msgspec.json.encode(arguments)), ensure_ascii=False)
    except UnicodeEncodeError:  # halves of characters; only arguments that no model wrote can hold them
        return whole(json.dumps(arguments, ensure_ascii=False, default=str))
