"""A question aside: the model is shown what was said and offered no tools, and nothing of it becomes part of the conversation."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from wolo.agent.transcript import pieces
from wolo.errors import BadAnswer, ProviderError
from wolo.messages.deltas import Delta
from wolo.messages.message import Message, user
from wolo.models.ask import Asker, NoticeLevel, Question

TRIES = 2
MOST_TOKENS = 100_000
"""Of what was said, where nobody knows the model's window; more of it would only make the answer late."""
SHARE = 0.7
"""Of the window; estimates are coarse, and the answer needs room too."""
_NOT_ALL = "[… what was said before is not told here …]"


async def ask_aside(asker: Asker, said: Sequence[Message], question: str, *, session_id: str, window: int | None) -> Message:
    """Raises ProviderError, also for an answer without any text."""
    most_tokens = min(round(window * SHARE), MOST_TOKENS) if window else MOST_TOKENS
    asked = Question(
        messages=(user(_prompt(said, question, most_tokens)),),
        system=(Path(__file__).parent / "prompts" / "aside.md").read_text(encoding="utf-8").strip(),
        session_id=session_id,
    )
    answer = await asker.ask(asked, _Patience())
    if not answer.text.strip():
        raise BadAnswer("The model did not answer.", hint="Ask again, or ask it as a prompt of its own.")
    return answer


def _prompt(said: Sequence[Message], question: str, most_tokens: int) -> str:
    told = pieces(said, most_tokens) or ["(nothing yet)"]
    transcript = told[-1] if len(told) == 1 else f"{_NOT_ALL}\n\n{told[-1]}"
    return f"<conversation>\n{transcript}\n</conversation>\n\n<aside>\n{question}\n</aside>"


class _Patience:
    """Nobody watches it: a person waits for the answer, and would rather know soon that there is none."""

    async def on_request(self, attempt: int, context_tokens: int) -> None:
        """It is known that it was asked."""

    async def on_deltas(self, deltas: Sequence[Delta]) -> None:
        """It is shown when it is whole."""

    async def on_attempt_failed(self, error: ProviderError, attempt: int, tries: int, delay_s: float) -> None:
        if attempt >= TRIES:
            raise error

    async def on_replaced(self, error: ProviderError, model: str) -> None:
        """Whoever answers will do."""

    async def on_notice(self, text: str, level: NoticeLevel = "warning") -> None:
        """What is wrong with the model is said of prompts."""
