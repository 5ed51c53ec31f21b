"""What fills the window, by source, and what a compaction would make of it."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from wolo.agent.compaction.compactor import Compactor
from wolo.agent.compaction.context_window import Fixed
from wolo.agent.compaction.history_cut import Cut
from wolo.messages.message import Message
from wolo.messages.parts import MediaPart, ThinkingPart, ToolPart
from wolo.models.tokens import estimate_message, estimate_part, estimate_text, estimate_tools
from wolo.tools.toolbox import OF_SERVERS

SYSTEM, TOOLS, REMOTE_TOOLS, SUMMARY = "system prompt", "tools", "tools of MCP servers", "summary of what is left out"
PROMPTS, ANSWERS, THINKING, CALLS, MEDIA = "prompts", "answers", "thinking", "calls and their outputs", "images and files"


class Filling(Struct, frozen=True, kw_only=True):
    tokens: dict[str, int]
    """Estimates by source, in the order in which they are sent."""
    most: int | None
    """What a request may hold; None: nobody knows."""
    messages: int
    left_out: int
    shortened: int

    @property
    def total(self) -> int:
        return sum(self.tokens.values())


class Preview(Struct, frozen=True, kw_only=True):
    before: Filling
    after: Filling
    """Without the summary that the model would write."""
    summary_tokens: int
    """How long it may become; 0: none would be asked for."""
    requests: int


def filling(compactor: Compactor, messages: Sequence[Message], fixed: Fixed) -> Filling:
    return _filling(compactor, compactor.cut, messages, fixed)


def preview(compactor: Compactor, messages: Sequence[Message], fixed: Fixed, *, may_ask: bool = True) -> Preview:
    cut, order = compactor.preview(messages, fixed, may_ask=may_ask)
    return Preview(
        before=filling(compactor, messages, fixed),
        after=_filling(compactor, cut, messages, fixed),
        summary_tokens=order.most_tokens if order else 0,
        requests=len(order.pieces) if order else 0,
    )


def _filling(compactor: Compactor, cut: Cut, messages: Sequence[Message], fixed: Fixed) -> Filling:
    scale = compactor.window.scale
    tokens = dict.fromkeys((SYSTEM, TOOLS, REMOTE_TOOLS, SUMMARY, PROMPTS, ANSWERS, THINKING, CALLS, MEDIA), 0)
    tokens[SYSTEM], tokens[TOOLS] = estimate_text(fixed.system), estimate_tools(fixed.tools)
    tokens[REMOTE_TOOLS] = estimate_tools([tool for tool in fixed.tools if tool.name.startswith(OF_SERVERS)])
    tokens[TOOLS] -= tokens[REMOTE_TOOLS]
    shown = cut.apply(messages)
    for message in shown:
        _add(tokens, message)
    most = compactor.window.most(fixed)
    return Filling(
        tokens={source: round(count * scale) for source, count in tokens.items() if count},
        most=None if most is None else round(most),
        messages=len(shown) - (cut.lead is not None and bool(cut.left_out)),
        left_out=sum(message.id in cut.left_out for message in messages),
        shortened=sum(message.id in cut.shortened for message in messages),
    )


def _add(tokens: dict[str, int], message: Message) -> None:
    """The frame of a message counts with what it is."""
    kind = SUMMARY if message.role.endswith("_summary") else ANSWERS if message.role == "assistant" else PROMPTS
    rest = estimate_message(message)
    for part in message.parts:
        source = THINKING if isinstance(part, ThinkingPart) else CALLS if isinstance(part, ToolPart) else ""
        source = source or (MEDIA if isinstance(part, MediaPart) else kind)
        tokens[source] += estimate_part(part)
        rest -= estimate_part(part)
    tokens[kind] += rest
