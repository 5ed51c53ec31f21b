"""Decode Responses streams: output items open, grow and close.

Events refer to items by `output_index`; item ids are unreliable because some proxies send a new one with every event. If the
final version of an item says more than its fragments did, the rest is emitted then.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from wolo.formats.encoding.wire_forms import names_by_wire
from wolo.formats.openai_responses import output_items
from wolo.formats.openai_responses.encode import BETWEEN, CONTENT, ENCRYPTED, MESSAGE_CONTENT, SUMMARY, blobs_of, pieces_of
from wolo.formats.response_end import bad_body_error, ended_early_error, is_error, resolve_finish, response_error
from wolo.formats.tolerant_json import list_at, mapping_at, read_object, short_text, text_at, usage_of
from wolo.messages.deltas import BreakDelta, CallDelta, Delta, FinishDelta, TextDelta, TextMark, ThinkingDelta, UsageDelta
from wolo.messages.message import FinishReason
from wolo.messages.parts import Blob

if TYPE_CHECKING:
    from wolo.formats.web_findings import WebFindings

SAID = "content"
"""Field of a message that holds its text."""
ARGUMENTS: output_items.Place = ("arguments", 0)


class ResponsesDecoder:
    """Decodes one response; `close` reports finish and token counts."""

    held_chars = 0
    findings: WebFindings | None = None

    def __init__(self, offered: Mapping[str, Mapping[str, Any]], reserved_tool_names: Sequence[str] = ()) -> None:
        """`offered` maps tool names to argument schemas."""
        self._events = output_items.ResponsesReader()
        self._read_event = self._events.read
        self._offered = offered
        self._names = names_by_wire(offered, reserved_tool_names)
        self._items: dict[int, output_items.OpenItem] = {}
        self._current: output_items.OpenItem | None = None
        """The message or reasoning item that received text last."""
        self._running: output_items.RunningText | None = None
        """The text that the next fragment most likely continues."""
        self._calls = 0
        self._ids_valid = True
        """False after reasoning that cannot be replayed: the items that followed must drop their ids too."""
        self._end: dict[str, Any] | None = None
        self._done = False
        self._sources: list[object] = []
        """Pages of searches that the text may not cite."""

    @property
    def is_complete(self) -> bool:
        return self._end is not None

    def feed(self, *payloads: bytes) -> Sequence[Delta]:
        """Skips unknown events and invalid JSON. Raises a ProviderError when the response failed."""
        return [delta for payload in payloads for delta in self._feed(payload)]

    def _feed(self, payload: bytes) -> Sequence[Delta]:
        if (event := self._read_event(payload)) is None:
            self._done = self._done or payload[:6] == output_items.DONE
            return ()
        if self._running is not None and event.delta and self._running.continues(event):
            self._running.fragments.append(event.delta)
            return (self._running.make_delta(event.delta),)
        if self._end is not None:
            return ()
        if event.type in ("", "error") and is_error(read_object(payload) or {}):
            raise response_error(200, {}, payload)
        match event.type:
            case "response.output_text.delta" | "response.refusal.delta":
                return self._text_fragment("message", event, (SAID, event.content_index or 0), event.delta or "")
            case "response.function_call_arguments.delta":
                return self._on_arguments(event)
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                is_summary = event.type.startswith("response.reasoning_summary")
                place = (SUMMARY, event.summary_index or 0) if is_summary else (CONTENT, event.content_index or 0)
                return self._text_fragment("reasoning", event, place, event.delta or "")
            case "response.output_text.done" | "response.refusal.done":
                place = (SAID, event.content_index or 0)
                final = event.text or event.refusal or ""
                return self._text_fragment("message", event, place, self._item(event, "message").remaining(place, final))
            case "response.function_call_arguments.done":
                item = self._item(event, "call")
                return self._complete(item, event.arguments or "") if item.kind == "call" else []
            case "response.output_item.added":
                index = event.output_index if event.output_index is not None else len(self._items)
                if index not in self._items:
                    document = output_items.read_part(event.item)
                    return self._name_call(self._open_item(index, output_items.kind_of(document)), document)
            case "response.output_item.done":
                document = output_items.read_part(event.item)
                index = event.output_index if event.output_index is not None else max(self._items, default=0)
                return self._close_item(index, document)
            case "response.completed" | "response.incomplete":
                answer = output_items.read_part(event.response)
                answer.setdefault("status", event.type.rpartition(".")[2])
                return self._finish_response(answer)
            case "response.failed" | "response.cancelled":
                raise output_items.failure(output_items.read_part(event.response))
        return ()

    def close(self) -> Sequence[Delta]:
        """Raises Unavailable when the response is incomplete, ContextOverflow when it exceeded the window."""
        if self._end is None:  # without a final event, only `[DONE]` after completed items ends a response
            if not (self._done and self._items and all(item.is_done for item in self._items.values())):
                raise ended_early_error(self._events.skipped)
            self._end = {"status": "completed"}
        usage, word = usage_of(self._end.get("usage")), text_at(self._end, "status")
        reason: FinishReason = "tool_calls" if self._calls else "stop"
        if word == "incomplete":
            cause = text_at(mapping_at(self._end, "incomplete_details"), "reason")
            reason = resolve_finish(cause, output_items.INCOMPLETE.get(cause), has_calls=self._calls > 0)
            if reason == "tool_calls" and any(item.kind == "call" and not item.is_done for item in self._items.values()):
                reason = "length"  # a call was never completed
            word = cause or word
        id = short_text(self._end.get("id"))
        if self.findings is not None:
            self.findings.add_all(self._sources)
        counted = [UsageDelta(usage)] if usage is not None else []
        return [
            *counted,
            *([self.findings.mark()] if self.findings is not None else ()),
            FinishDelta(reason, word, response_id=id, model=short_text(self._end.get("model"))),
        ]

    def read_whole(self, body: bytes) -> Sequence[Delta]:
        if (document := read_object(body)) is None:
            raise bad_body_error(body)
        if document.get("status") in output_items.BROKEN_OFF:
            raise output_items.failure(document)
        if not isinstance(document.get("output"), list):
            raise response_error(200, {}, body)
        return [*self._finish_response(document), *self.close()]

    # Text and reasoning

    def _text_fragment(
        self, kind: output_items.Kind, event: output_items.ResponsesEvent, place: output_items.Place, text: str
    ) -> list[Delta]:
        item = self._item(event, kind)
        if not text or item.kind != kind:
            return []
        deltas: list[Delta] = []
        self._add_text(item, place, text, deltas)
        field = item.field
        tell = TextDelta if kind == "message" else lambda delta: ThinkingDelta(delta, field)
        self._running = output_items.RunningText(event, item.fragments(place), tell)
        return deltas

    def _add_text(self, item: output_items.OpenItem, place: output_items.Place, text: str, deltas: list[Delta]) -> None:
        if not text:
            return
        deltas += self._switch_to(item)
        begins = item.begins_new_piece(place)
        item.fragments(place).append(text)
        if item.kind == "message":
            deltas.append(TextDelta(text))
            return
        item.field = item.field or place[0]
        deltas.append(ThinkingDelta(BETWEEN + text if begins else text, item.field))

    def _switch_to(self, item: output_items.OpenItem) -> list[Delta]:
        """Each item becomes a separate part."""
        if self._current is item:
            return []
        is_first = self._current is None
        self._current = item
        self._running = None
        return [] if is_first else [BreakDelta()]

    # Calls

    def _on_arguments(self, event: output_items.ResponsesEvent) -> list[Delta]:
        item = self._item(event, "call")
        if not event.delta or item.kind not in ("call", "wrapper"):
            return []
        fragments, slot = item.fragments(ARGUMENTS), item.slot
        fragments.append(event.delta)
        if item.kind == "wrapper":
            return []
        self._running = output_items.RunningText(event, fragments, lambda delta: CallDelta(slot, "", "", delta))
        return [CallDelta(slot, arguments=event.delta)]

    def _complete(self, item: output_items.OpenItem, final: str, item_id: str = "") -> list[Delta]:
        """The final arguments win over the fragments."""
        sent = item.text_at(ARGUMENTS)
        if not final or final == sent:
            return [CallDelta(item.slot, item_id=item_id)] if item_id else []
        fragments = item.fragments(ARGUMENTS)
        if final.startswith(sent):
            fragments.append(final[len(sent) :])
            return [CallDelta(item.slot, arguments=final[len(sent) :], item_id=item_id)]
        fragments[:] = [final]
        return [CallDelta(item.slot, arguments=final, item_id=item_id, replaces=True)]

    # Items

    def _item(self, event: output_items.ResponsesEvent, kind: output_items.Kind) -> output_items.OpenItem:
        """Item of this event; an unannounced item gets the kind that the event implies."""
        index = event.output_index if event.output_index is not None else max(self._items, default=0)
        item = self._items.get(index)
        return item if item is not None else self._open_item(index, kind)

    def _open_item(self, index: int, kind: output_items.Kind) -> output_items.OpenItem:
        item = self._items[index] = output_items.OpenItem(kind)
        if kind == "call":
            item.slot = self._next_slot()
        return item

    def _next_slot(self) -> int:
        self._calls += 1
        self._current = None if self._current is None else _TEXT_BEFORE_CALL
        self._running = None
        return self._calls - 1

    def _name_call(self, item: output_items.OpenItem, document: Mapping[str, Any]) -> list[Delta]:
        """Emit id and name of a call, again if the final version differs."""
        call_id, name = text_at(document, "call_id"), text_at(document, "name")
        if item.kind != "call" or (call_id or item.call_id, name or item.name) == (item.call_id, item.name):
            return []
        item.call_id, item.name = call_id or item.call_id, name or item.name
        return [CallDelta(item.slot, item.call_id, self._names.get(item.name, item.name))]

    def _close_item(self, index: int, document: Mapping[str, Any]) -> list[Delta]:
        item = self._items.get(index) or self._open_item(index, output_items.kind_of(document))
        if item.is_done or not document:
            return []
        item.is_done = True
        is_whole = self._ids_valid and text_at(document, "status") != "incomplete"
        item_id = text_at(document, "id") if is_whole else ""
        deltas: list[Delta] = []
        match item.kind:
            case "message":
                content = output_items.content_of(document)
                if self.findings is not None:
                    for piece in pieces if isinstance(pieces := document.get("content"), list) else ():
                        self.findings.add_all(piece.get("annotations") if isinstance(piece, dict) else None)
                for at, piece in enumerate(content):
                    final = piece.get("text") or piece.get("refusal") or ""
                    self._add_text(item, (SAID, at), item.remaining((SAID, at), final), deltas)
                phase: Any = document.get("phase")
                phase = phase if phase in ("commentary", "final_answer") else ""
                is_plain = [piece["type"] for piece in content] == ["output_text"]
                original = () if is_plain or not content else (Blob(MESSAGE_CONTENT, msgspec.json.encode(content).decode()),)
                if item is self._current and item.has_text and (item_id or phase):
                    deltas.append(TextMark(item_id, phase, original if item_id else ()))
                return deltas
            case "reasoning":
                for field, at, final in pieces_of(document):
                    self._add_text(item, (field, at), item.remaining((field, at), final), deltas)
                is_last = item is next(reversed(self._items.values()))
                if not is_last or (item.has_text and item is not self._current):
                    self._ids_valid = False  # a later item has started, so this part can no longer be marked
                    return deltas
                field = item.field or SUMMARY
                text = BETWEEN.join(text for _, _, text in pieces_of(document))
                blobs = blobs_of(document, text, field)
                self._ids_valid = bool(text_at(document, "id")) and text_at(document, "status") != "incomplete"
                if not any(blob.kind == ENCRYPTED for blob in blobs) and not text:
                    self._ids_valid = False
                    return deltas
                return [
                    *deltas,
                    *self._switch_to(item),
                    ThinkingDelta("", field, blobs, item_id=text_at(document, "id")),
                ]
            case "call":
                return [*self._name_call(item, document), *self._complete(item, output_items.arguments_of(document), item_id)]
            case "wrapper":
                return self._unwrap(document, output_items.arguments_of(document) or item.text_at(ARGUMENTS))
            case "custom":
                # Free text becomes the only argument of the tool.
                name = self._names.get(text_at(document, "name"), text_at(document, "name"))
                required = list_at(self._offered.get(name, {}), "required")
                argument = str(required[0]) if len(required) == 1 else "input"
                arguments = json.dumps({argument: text_at(document, "input")}, ensure_ascii=False)
                return [CallDelta(self._next_slot(), text_at(document, "call_id"), name, arguments)]
            case _:
                action = document.get("action")
                if self.findings is not None and isinstance(action, dict):
                    self.findings.num_searches += action.get("type") == "search"
                    self._sources += sources if isinstance(sources := action.get("sources"), list) else ()
                return []

    def _unwrap(self, document: Mapping[str, Any], arguments: str) -> list[Delta]:
        """Wrapped calls have no ids; theirs are derived from the wrapper's."""
        name, call_id = text_at(document, "name"), text_at(document, "call_id")
        calls = output_items.unwrap_calls(arguments) or [(name, arguments)]
        return [
            CallDelta(self._next_slot(), f"{call_id}_{number}" if call_id else "", self._names.get(tool, tool), written)
            for number, (tool, written) in enumerate(calls, 1)
        ]

    # Finish

    def _finish_response(self, answer: dict[str, Any]) -> list[Delta]:
        """Emit what is missing: some proxies omit events, so the final response fills the gaps."""
        self._end = answer
        self._running = None
        output = answer.get("output")
        deltas: list[Delta] = []
        for index, document in enumerate(output if isinstance(output, list) else ()):
            if not isinstance(document, dict):
                continue
            # The output may be numbered differently: then its items are others than those of the events.
            item = self._items.get(index)
            is_same = item.kind == output_items.kind_of(document) if item is not None else index > max(self._items, default=-1)
            if is_same:
                deltas += self._close_item(index, document)
            else:
                self._ids_valid = False
        return deltas


_TEXT_BEFORE_CALL = output_items.OpenItem("other")
"""Placeholder for text before a call, so that later text becomes a new part."""
