"""Reads items of the Responses API in other agents' files."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from wolo.formats.openai_responses.encode import BETWEEN, CONTENT, SUMMARY, blobs_of, pieces_of
from wolo.messages.parts import AnyPart, ImagePart, Outcome, TextPart, ThinkingPart, ToolPart
from wolo.sessions.exchange.foreign.builder import ImportedResult, medium, outcome_of, text_and_media, tool_part
from wolo.sessions.exchange.json_files import Record, content, parse_object, record, text

HOSTED = ("web_search_call", "image_generation_call")
"""Calls run by the provider; there is no item for their result."""
SEARCHED = "The provider ran this search itself; its result is not in the session file."
REFUSALS: Mapping[str, Outcome] = {
    "rejected by user": "denied_by_person",
    "rejected by the user": "denied_by_person",
    "approval policy is never": "denied_by_rule",
    "aborted by user": "interrupted",
}
_EXIT = re.compile(r"(?:Process exited with code|Exit code:) (-?\d+)")
_FRAME = re.compile(r"\s*</?image\b[^>]*>\s*")
"""Written by Codex around an image."""


def spoken_part(block: Record) -> AnyPart | None:
    match block.get("type"):
        case "text" | "input_text" | "output_text":
            words = text(block, "text")
            return TextPart(text=words) if words.strip() and not _FRAME.fullmatch(words) else None
        case "input_image":
            address = text(record(block, "image_url"), "url") or text(block, "image_url")
            return medium(address) if address else None
    return None


def parts_of(item: Record) -> list[AnyPart]:
    return [part for block in content(item) if (part := spoken_part(block)) is not None]


def reasoning(item: Record, otherwise: str = "") -> ThinkingPart | None:
    """`otherwise` is the text for an item without one; None for an empty item."""
    pieces = pieces_of(item)
    field = CONTENT if pieces and all(name == CONTENT for name, _, _ in pieces) else SUMMARY
    thought = BETWEEN.join(piece for _, _, piece in pieces) or otherwise
    blobs = blobs_of(item, thought, field) if item else ()
    return ThinkingPart(text=thought, field=field, item_id=text(item, "id"), blobs=blobs) if thought or blobs else None


def call(item: Record, at: float, otherwise_id: str) -> ToolPart | None:
    """None for an item without a tool name."""
    kind, tool = text(item, "type"), text(item, "name")
    arguments: Any = item.get("arguments")
    if kind == "custom_tool_call":
        arguments = {"input": text(item, "input")}
    elif kind == "local_shell_call":
        tool, arguments = "local_shell", record(item, "action")
    elif kind != "function_call":
        tool = tool or kind.removesuffix("_call")
        arguments = arguments or record(item, "action") or {"prompt": text(item, "revised_prompt")}
    if not tool:
        return None
    if space := text(item, "namespace"):
        tool = f"{space}{'' if space.endswith('_') else '__'}{tool}"
    call_id = text(item, "call_id") or text(item, "id") or otherwise_id
    return tool_part(tool, arguments or "", call_id, item_id=text(item, "id"), at=at)


def hosted_result(item: Record, at: float) -> ImportedResult:
    made = medium(text(item, "result"), "image/png") if text(item, "result") else None
    return ImportedResult("", "ok", (made,), at) if isinstance(made, ImagePart) else ImportedResult(SEARCHED, at=at)


def result(item: Record, at: float) -> ImportedResult:
    """The output is text, a list of blocks, or either one in an object or its JSON."""
    raw = item.get("output") if "tools" not in item else json.dumps(item["tools"], ensure_ascii=False)
    if isinstance(raw, str) and raw.startswith('{"output"'):
        inner = parse_object(raw.encode("utf-8", "replace")) or {}
    else:
        inner = raw if isinstance(raw, dict) else {}
    if inner:
        raw = next((inner[name] for name in ("output", "content", "content_items") if name in inner), "")
    output, media = text_and_media(part for block in content({"content": raw}) if (part := spoken_part(block)) is not None)
    if output.strip() == "aborted":
        return ImportedResult("", "interrupted", media, at)
    left = _EXIT.search(output[:400])
    failed = inner.get("success") is False or record(inner, "metadata").get("exit_code") not in (None, 0)
    failed = failed or (left is not None and left[1] != "0")
    return ImportedResult(output, outcome_of(output, REFUSALS, otherwise="error" if failed else "ok"), media, at)
