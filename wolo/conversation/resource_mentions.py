"""Adds resources of MCP servers to a prompt that mentions them as `@SERVER:URI`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec.structs import replace

from wolo.errors import ToolError
from wolo.mcp.servers import Servers
from wolo.mcp.tool_answer import BinaryFile, ToolAnswer
from wolo.messages.message import RESOURCES, Message
from wolo.messages.parts import AnyPart, TextPart
from wolo.messages.terminal_text import clean_line
from wolo.tools.clipping import clip_and_keep

MOST_RESOURCES = 20
"""In one prompt."""
_MEANS_NO_URI = ".,;:!?)]}'"


async def add_resources(message: Message, servers: Servers, save: Callable[[str, bytes], Path]) -> tuple[Message, list[str]]:
    """Returns the notices about resources that could not be read, too. Mentions of unknown servers stay text."""
    names = {status.name for status in servers.statuses() if status.state not in ("off", "needs consent")}
    parts: list[AnyPart] = []
    notices: list[str] = []
    mentioned = [(server, uri) for server, uri in message.metadata[RESOURCES] if server in names]
    for server, uri in mentioned[:MOST_RESOURCES]:
        try:
            parts += await _read(servers, server, uri, save)
        except ToolError as error:
            notices.append(f"@{server}:{clean_line(uri)} is not attached: {error.message}")
    if len(mentioned) > MOST_RESOURCES:
        notices.append(f"Only the first {MOST_RESOURCES} of {len(mentioned)} resources are attached.")
    metadata = {key: value for key, value in message.metadata.items() if key != RESOURCES}
    return replace(message, parts=(*message.parts, *parts), metadata=metadata), notices


async def _read(servers: Servers, server: str, uri: str, save: Callable[[str, bytes], Path]) -> Sequence[AnyPart]:
    listed = {each.uri for each in servers.resources.get(server, ())}
    if uri not in listed:
        uri = uri.rstrip(_MEANS_NO_URI)
    answer = ToolAnswer(await servers.read(server, uri))
    text = answer.text(save) if any(isinstance(item, str | BinaryFile) for item in answer.items) else ""
    clipped = clip_and_keep(text.encode(errors="replace"), name=f"{server}-resource.txt", keep=save)
    return (TextPart(text=f'\n\n<resource server="{server}" uri="{clean_line(uri)}">\n{clipped}\n</resource>'), *answer.media)
