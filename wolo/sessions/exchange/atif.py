"""Reads and writes ATIF, the Agent Trajectory Interchange Format of evaluation harnesses.

It writes version 1.6, the first one with images. It reads every version 1, ignoring unknown fields.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from wolo import __version__
from wolo.errors import SessionError
from wolo.formats.encoding import attachments, wire_forms
from wolo.messages.message import Message, Usage, UsageCost
from wolo.messages.parts import ImagePart, MediaPart, TextPart, ToolPart, new_id
from wolo.sessions.exchange import export_stream, json_diff, openai_messages, redaction, rows, text_export
from wolo.sessions.exchange.foreign.record_writer import encode
from wolo.sessions.exchange.json_files import FilePreview, Imported, number, read_document, record, records, text, unix_time
from wolo.sessions.listing import SessionInfo
from wolo.sessions.store import Store

FORMAT = "atif"
VERSION = "ATIF-v1.6"
PICTURES = ("image/jpeg", "image/png", "image/gif", "image/webp")
SOURCES: Mapping[str, str] = {"user": "user", "agent": "assistant", "system": "system"}

_NAMED = re.compile(rb'"schema_version"\s*:\s*"ATIF-v?(\d+)')
_STEPS = re.compile(rb'"steps"\s*:\s*\[\s*\{[^{}]*"step_id"\s*:')

Step = dict[str, Any]


class _Totals:
    def __init__(self) -> None:
        self.steps = self.prompt = self.completion = self.cached = 0
        self.cost: float | None = 0.0

    def add(self, message: Message) -> None:
        self.steps += 1
        if usage := message.usage:
            self.prompt += usage.prompt_tokens
            self.completion += usage.output_tokens
            self.cached += usage.cache_read_tokens
            self.cost = None if self.cost is None or usage.cost is None else self.cost + usage.cost.total

    def metrics(self) -> dict[str, Any]:
        counted = {"total_prompt_tokens": self.prompt, "total_completion_tokens": self.completion}
        counted |= {"total_cached_tokens": self.cached, "total_steps": self.steps}
        return counted | ({"total_cost_usd": self.cost} if self.cost is not None else {})


def write(store: Store, info: SessionInfo, out: export_stream.Write, redactor: redaction.Redactor | None) -> None:
    """Raises SessionError for a session without messages: a trajectory has at least one step."""
    totals = _Totals()
    for message in filter(text_export.is_for_readers, export_stream.MessageStream(store, info.id, redactor)):
        totals.add(message)
        out(b",\n" if totals.steps > 1 else _head(info, redactor))
        source = {"user": "user", "assistant": "agent"}.get(message.role, "system")
        spoken = [part for part in message.parts if isinstance(part, TextPart | MediaPart)]
        step: Step = {"step_id": totals.steps, "source": source, "message": _content(spoken)}
        if message.timestamp:
            step["timestamp"] = text_export.timestamp(message.timestamp)
        extra: dict[str, Any] = {"message_id": message.id, "finish_reason": message.finish_reason, "error": message.error}
        if source == "agent":
            if message.producer and message.producer.model:
                step["model_name"] = f"{message.producer.provider}/{message.producer.model}".lstrip("/")
            if reasoning := message.reasoning_content:
                step["reasoning_content"] = reasoning
            if message.calls:
                # Call ids must be unique within a step, because results refer to them.
                seen: dict[str, ToolPart] = {}
                for call in message.calls:
                    seen[call.wire_id if call.wire_id not in seen else call.id] = call
                ids = list(seen.items())
                step["tool_calls"] = [
                    {"tool_call_id": id, "function_name": call.tool, "arguments": wire_forms.arguments_object(call)}
                    for id, call in ids
                ]
                outputs = [(id, _content([TextPart(text=wire_forms.result_text(call)), *call.output_parts])) for id, call in ids]
                step["observation"] = {"results": [{"source_call_id": id, "content": output} for id, output in outputs]}
            if usage := message.usage:
                step["metrics"] = {
                    "prompt_tokens": usage.prompt_tokens,
                    "completion_tokens": usage.output_tokens,
                    "cached_tokens": usage.cache_read_tokens,
                    "extra": {"cache_write_tokens": usage.cache_write_tokens, "reasoning_tokens": usage.reasoning_tokens},
                    **({"cost_usd": usage.cost.total} if usage.cost else {}),
                }
            extra["outcomes"] = {call.wire_id: call.outcome for call in message.calls if call.status == "failed"}
        step["extra"] = {name: value for name, value in extra.items() if value}
        reader = openai_messages.ChatReader()
        _read_step(step, reader)
        step["extra"][rows.OWN] = json_diff.missing_in(reader.finish()[0], message)
        out(encode(step))
    if not totals.steps:
        raise SessionError(f"Session {info.id} has no messages.", hint="A trajectory has at least one step.")
    out(b'\n],"final_metrics":' + encode(totals.metrics()) + b"}\n")


def matches(preview: FilePreview) -> bool:
    return bool(_NAMED.search(preview.beginning) or _STEPS.search(preview.beginning))


def read(source: Path) -> Imported:
    document = read_document(source)
    steps = document.get("steps") if isinstance(document, dict) else None
    if not isinstance(steps, list):
        raise SessionError(f"{source} has no steps, so it is not a trajectory.", hint="Name its format with --format.")
    agent, extra = record(document, "agent"), record(document, "extra")
    reader, model = openai_messages.ChatReader(), text(agent, "model_name")
    places = [_read_step(step, reader) for step in steps]
    messages = list(reader.finish())
    for step, at in zip(steps, places, strict=True):
        if at is not None and rows.OWN in (own := record(step, "extra")):
            messages[at] = json_diff.complete(messages[at], own[rows.OWN])
    version = str(document.get("schema_version", ""))
    notices = (
        [] if re.match(r"ATIF-v1\.\d+$", version) else [f"Its version is {version or 'not stated'}; it was read as {VERSION}."]
    )
    if document.get("continued_trajectory_ref"):
        notices.append("It continues in another file, which was not read.")
    if others := records(document, "subagent_trajectories"):
        notices.append(f"Trajectories of subagents were not read: {len(others)}.")
    return Imported(
        id=text(document, "session_id"),
        title=text(extra, "title"),
        cwd=text(extra, "cwd"),
        created=next((message.timestamp for message in messages if message.timestamp), 0.0),
        model=model,
        messages=tuple(messages),
        skipped=reader.skipped,
        notices=tuple(notices),
    )


def _head(info: SessionInfo, redactor: redaction.Redactor | None) -> bytes:
    agent = {"name": "wolo", "version": __version__, "model_name": info.model or None}
    extra = {"title": info.title, "cwd": info.cwd}
    head = {"schema_version": VERSION, "session_id": info.id, "agent": {k: v for k, v in agent.items() if v}, "extra": extra}
    return encode(redactor.value(head) if redactor else head)[:-1] + b',"steps":[\n'


def _content(parts: list[Any]) -> str | list[Step]:
    """Text, or a list of items when there is an image; other attachments are described in words."""
    items: list[Step] = []
    for part in parts:
        if isinstance(part, ImagePart) and part.media_type in PICTURES:
            where = attachments.data_url(part.media_type, part.data) if part.data else part.url
            items.append({"type": "image", "source": {"media_type": part.media_type, "path": where}})
        else:
            items.append({"type": "text", "text": part.text if isinstance(part, TextPart) else text_export.describe(part)})
    if all(item["type"] == "text" for item in items):
        return "".join(item["text"] for item in items)
    return items


def _read_step(step: Any, reader: openai_messages.ChatReader) -> int | None:
    """Returns the index of its message; None without one."""
    if not isinstance(step, dict) or text(step, "source") not in SOURCES:
        reader.skipped += 1
        return None
    calls: list[Step] = []
    for call in records(step, "tool_calls"):
        function = {"name": call.get("function_name"), "arguments": call.get("arguments")}
        calls.append({"id": call.get("tool_call_id"), "function": function})
    item = {
        "role": SOURCES[step["source"]],
        "content": _read_content(step.get("message")),
        "reasoning_content": step.get("reasoning_content"),
        "tool_calls": calls,
    }
    then, metrics = unix_time(step.get("timestamp")), step.get("metrics")
    at = reader.add(item, id=text(record(step, "extra"), "message_id"), timestamp=then)
    if at is not None and isinstance(metrics, dict):
        prompt, answer, cached = (number(metrics, f"{name}_tokens") for name in ("prompt", "completion", "cached"))
        cost = metrics.get("cost_usd")
        usage = Usage(
            input_tokens=max(prompt - cached, 0),
            output_tokens=answer,
            cache_read_tokens=cached,
            cost=UsageCost(total=float(cost)) if isinstance(cost, int | float) else None,
        )
        reader.messages[at] = msgspec.structs.replace(reader.messages[at], usage=usage)
    for result in records(record(step, "observation"), "results"):
        content, call_id = _read_content(result.get("content")), result.get("source_call_id")
        if call_id is not None:
            reader.add({"role": "tool", "tool_call_id": call_id, "content": content}, timestamp=then)
        elif content:
            reader.add({"role": "user", "content": content}, id=new_id("msg"), timestamp=then)  # a result without a call
    return at


def _read_content(content: Any) -> Any:
    if not isinstance(content, list):
        return content
    items: list[Any] = []
    for item in content:
        match item:
            case {"type": "image", "source": {"path": str(path)}}:
                items.append({"type": "image_url", "image_url": {"url": path}})
            case {"type": "audio", "source": {"path": str(path)}}:
                items.append({"type": "text", "text": f"[audio: {path}]"})
            case _:
                items.append(item)
    return items
