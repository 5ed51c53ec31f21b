"""A question aside: the model is shown what was said and offered no tools, and nothing of it becomes part of the conversation."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from wolo.agent.compaction.history_cut import shorten
from wolo.agent.loop_detection import AnswerWatch
from wolo.errors import BadAnswer, ProviderError
from wolo.formats.encoding.cached_blocks import format_conversation_for_cache
from wolo.messages.deltas import Delta
from wolo.messages.message import Message, user
from wolo.messages.parts import TextPart
from wolo.models.protocol import Asker, NoticeLevel, Question
from wolo.models.tokens import ConversationMemory

TRIES = 2
MOST_TOKENS = 100_000
"""Of what was said, where nobody knows the model's window; more of it would only make the answer late."""
SHARE = 0.7
"""Of the window; estimates are coarse, and the answer needs room too."""
CLIP_CHARS = 8_000
"""The length of each text, where the conversation does not fit otherwise."""
_NOT_ALL = "[… the conversation began earlier; its older messages are left out here …]"


async def ask_aside(asker: Asker, said: Sequence[Message], question: str, *, session_id: str, window: int | None) -> Message:
    """Raises ProviderError, also for an answer without any text."""
    most_tokens = min(round(window * SHARE), MOST_TOKENS) if window else MOST_TOKENS
    asked = Question(
        messages=(*_told(said, most_tokens), user(f"<aside>\n{question}\n</aside>")),
        system=(Path(__file__).parent / "prompts" / "side_question.md").read_text(encoding="utf-8").strip(),
        session_id=session_id,
    )
    answer = await asker.ask(asked, _Patience())
    if not answer.text.strip():
        raise BadAnswer("The model did not answer.", hint="Ask again, or ask it as a prompt of its own.")
    return answer


def _told(said: Sequence[Message], most_tokens: int) -> list[Message]:
    """The conversation as one cached block, so that a second question finds it in the provider's cache."""
    remembered: tuple[Message, ...] = ()
    is_whole = False
    for shrink in (lambda message: message, shorten, _clipped):
        memory = ConversationMemory[Message](most_tokens)
        is_whole = not [gone for message in said for gone in memory.add(shrink(message))]
        remembered = memory.messages
        if is_whole:
            break
    return [format_conversation_for_cache(remembered if is_whole else (user(_NOT_ALL), *remembered))] if said else []


def _clipped(message: Message) -> Message:
    """With outputs shortened and the middle of long texts left out."""
    parts = (
        replace(part, text=f"{part.text[: CLIP_CHARS // 2]}\n[…]\n{part.text[-CLIP_CHARS // 2 :]}")
        if isinstance(part, TextPart) and len(part.text) > CLIP_CHARS
        else part
        for part in shorten(message).parts
    )
    return replace(message, parts=tuple(parts))


class _Patience:
    """Nobody watches it: a person waits for the answer, and would rather know soon that there is none."""

    def __init__(self) -> None:
        self._watch = AnswerWatch()

    async def on_request(self, attempt: int, context_tokens: int) -> None:
        self._watch = AnswerWatch()

    async def on_deltas(self, deltas: Sequence[Delta]) -> None:
        """It is shown when it is whole. Raises BadAnswer when the model has lost itself in repetition."""
        self._watch.take(deltas)

    async def on_attempt_failed(self, error: ProviderError, attempt: int, tries: int, delay_s: float) -> None:
        if attempt >= TRIES:
            raise error

    async def on_replaced(self, error: ProviderError, model: str) -> None:
        """Whoever answers will do."""

    async def on_notice(self, text: str, level: NoticeLevel = "warning") -> None:
        """What is wrong with the model is said of prompts."""
