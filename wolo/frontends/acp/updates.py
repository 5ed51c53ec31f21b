"""Translates the events of a turn, and saved messages, into updates of the protocol."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from wolo.agent import events
from wolo.conversation.phrasing import describe_briefly
from wolo.frontends.acp.acp_sdk import helpers, schema
from wolo.frontends.acp.contents import blocks_of
from wolo.messages.call_arguments import call_line
from wolo.messages.message import Message
from wolo.messages.parts import TextPart, ThinkingPart, ToolPart
from wolo.messages.terminal_text import clean
from wolo.tools.todo import latest_todos
from wolo.tools.tool_values import Diff, Location, Output, TodoItem, TodoList, View

MOST_OF_TITLE = 120
MOST_OF_OUTPUT = 30_000
"""Characters; of longer output the end is sent."""
_PLAN_STATUS = {"pending": "pending", "in_progress": "in_progress", "completed": "completed", "cancelled": "completed"}


class Updates:
    """The updates of one session."""

    def __init__(self, window: int) -> None:
        """`window`: tokens of the context window; 0: unknown."""
        self.window = window
        self._known: set[str] = set()
        """Ids of the calls that the client has received."""
        self._unsaved: set[str] = set()
        """Those of an answer that is not complete."""
        self._output: dict[str, str] = {}
        """Output so far, by running call."""
        self._streamed = False
        self._cost: float | None = 0.0

    def on_event(self, event: events.Event) -> Iterator[Any]:
        match event:
            case events.TextStreamed():
                self._streamed = True
                yield helpers.update_agent_message_text(event.text)
            case events.ThinkingStreamed():
                yield helpers.update_agent_thought_text(event.text)
            case events.CallStreamed() if event.tool and event.id not in self._known:
                self._known.add(event.id)
                self._unsaved.add(event.id)
                yield _start(ToolPart(id=event.id, tool=event.tool, kind=event.kind))
            case events.RequestStarted() | events.AttemptFailed() | events.ModelReplaced() | events.Compacted():
                # Ends the calls of an answer that does not count
                for id in sorted(self._unsaved):
                    yield schema.ToolCallProgress(session_update="tool_call_update", tool_call_id=id, status="failed")
                self._unsaved.clear()
                self._streamed = False
                if isinstance(event, events.RequestStarted):
                    yield from self._usage(event.context_tokens)
                elif text := describe_briefly(event):
                    if isinstance(event, events.AttemptFailed) and event.is_limit:
                        text += " Choose another model to go on with it until then, or cancel."
                    yield helpers.update_agent_thought_text(f"{text}\n")
            case events.AnswerEnded():
                yield from self._answer(event.message)
            case events.CallStarted():
                yield from self._begin(event.part)
                yield schema.ToolCallProgress(
                    session_update="tool_call_update",
                    tool_call_id=event.part.id,
                    status="in_progress",
                    locations=places(event.locations),
                )
            case events.CallProgressed():
                if event.part_id in self._known:
                    output = self._output[event.part_id] = (self._output.get(event.part_id, "") + event.text)[-MOST_OF_OUTPUT:]
                    content: list[Any] = [helpers.tool_content(helpers.text_block(clean(output)))]
                    yield schema.ToolCallProgress(session_update="tool_call_update", tool_call_id=event.part_id, content=content)
            case events.CallEnded():
                yield from self._begin(event.part)
                self._output.pop(event.part.id, None)
                yield _call_end(event.part, event.view, event.locations)
                if isinstance(event.view, TodoList):
                    yield _plan(event.view.items)
            case events.ModeChanged():
                yield helpers.update_current_mode(event.mode)
                yield helpers.update_agent_thought_text(f"{describe_briefly(event)}\n")
            case events.TurnEnded():
                if event.work.line:
                    yield helpers.update_agent_thought_text(f"\n{event.work.line}\n")
                if event.goal is not None and event.goal.status not in ("active", "met", "cleared"):
                    from wolo.agent.goal import describe_round  # noqa: PLC0415  # few sessions have a goal

                    yield helpers.update_agent_thought_text(f"\n{describe_round(event.goal)}\n")
            case events.Noticed(level="info"):
                pass
            case events.Verified() | events.Noticed() | events.HookAwaited():
                if text := describe_briefly(event):
                    yield helpers.update_agent_thought_text(f"{text}\n")

    def replay(self, messages: Sequence[Message]) -> Iterator[Any]:
        """A saved conversation, as its client would have received it."""
        for message in messages:
            if message.is_prompt and message.is_from_user:
                for block in blocks_of(message.parts):
                    yield helpers.update_user_message(block)
            elif message.role == "assistant":
                for part in message.parts:
                    match part:
                        case TextPart() if part.text:
                            yield helpers.update_agent_message_text(part.text)
                        case ThinkingPart() if part.text:
                            yield helpers.update_agent_thought_text(part.text)
                        case ToolPart():
                            self._known.add(part.id)
                            yield _start(part)
                            yield _call_end(part, None, ())
        if items := latest_todos(messages):
            yield _plan(items)

    def _begin(self, part: ToolPart) -> Iterator[Any]:
        if part.id not in self._known:
            self._known.add(part.id)
            yield _start(part)

    def _answer(self, message: Message) -> Iterator[Any]:
        """Sends a text that was not streamed, and the calls with their arguments."""
        if not self._streamed and message.text:
            yield helpers.update_agent_message_text(message.text)
        self._streamed = False
        self._unsaved.clear()
        for part in message.calls:
            if part.id not in self._known:
                self._known.add(part.id)
                yield _start(part)
            else:
                yield schema.ToolCallProgress(
                    session_update="tool_call_update",
                    tool_call_id=part.id,
                    title=title(part),
                    kind=part.kind or "other",
                    raw_input=part.input,
                )
        if usage := message.usage:
            cost = usage.cost.total if usage.cost else None
            self._cost = None if cost is None or self._cost is None else self._cost + cost
            yield from self._usage(usage.context_tokens)

    def _usage(self, used: int) -> Iterator[Any]:
        """Nothing while the window is unknown: an update must have its size."""
        if not self.window:
            return
        update = schema.UsageUpdate(session_update="usage_update", used=used, size=self.window)
        if self._cost:
            update.cost = schema.Cost(amount=self._cost, currency="USD")
        yield update


def _plan(items: Sequence[TodoItem]) -> Any:
    entries = [helpers.plan_entry(each.text, status=_PLAN_STATUS[each.status]) for each in items]  # type: ignore[arg-type]  # as listed
    return helpers.update_plan(entries)


def title(part: ToolPart) -> str:
    return call_line(part, most_chars=MOST_OF_TITLE, most_of_change=0)


def places(locations: Sequence[Location]) -> list[Any]:
    return [
        schema.ToolCallLocation(path=each.path, line=each.line) if each.line else schema.ToolCallLocation(path=each.path)
        for each in locations
    ]


def content_of(part: ToolPart, view: View | None) -> list[Any]:
    """The changes of files, else the output."""
    if isinstance(view, Diff) and view.changes:
        return [helpers.tool_diff_content(each.path, each.after or "", each.before) for each in view.changes]
    text = view.text if isinstance(view, Output) else part.output
    blocks = [helpers.tool_content(block) for block in blocks_of(part.output_parts)]
    return [helpers.tool_content(helpers.text_block(clean(text[-MOST_OF_OUTPUT:]))), *blocks] if text else blocks


def _start(part: ToolPart) -> Any:
    return schema.ToolCallStart(
        session_update="tool_call",
        tool_call_id=part.id,
        title=title(part),
        kind=part.kind or "other",
        status="pending",
        raw_input=part.input or None,
    )


def _call_end(part: ToolPart, view: View | None, locations: Sequence[Location]) -> Any:
    update = schema.ToolCallProgress(
        session_update="tool_call_update",
        tool_call_id=part.id,
        status="failed" if part.is_error else "completed",
        content=content_of(part, view),
    )
    if locations:
        update.locations = places(locations)
    if isinstance(view, Output):
        update.raw_output = {"exitCode": view.exit_code, "output": clean(part.output[-MOST_OF_OUTPUT:])}
    return update
