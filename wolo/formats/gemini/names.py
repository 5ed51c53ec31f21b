"""Tool names as Gemini takes them, and what it makes of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from wolo.formats.encoding.tool_names import to_wire

NAMESPACE = "default_api"
"""Models sometimes put this in front of a tool's name: inside they see tools as functions of a module of this name."""


def gemini_name(name: str) -> str:
    """A name must begin with a letter or an underscore."""
    wire = to_wire(name)
    if wire[0].isalpha() or wire[0] == "_":
        return wire
    return to_wire(f"_{name}", (f"_{name}",))


def own_names(tools: Iterable[str]) -> dict[str, str]:
    """What the server calls each of these tools → our name."""
    return {gemini_name(tool): tool for tool in tools}


def called_by(wire: str, names: Mapping[str, str]) -> str:
    """Our name of the tool that a call means."""
    if wire in names:
        return names[wire]
    bare = wire.removeprefix(NAMESPACE)
    return names.get(bare[1:], wire) if bare != wire and bare[:1] in (".", ":") else wire
