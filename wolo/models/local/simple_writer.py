"""Has a tiny model write one file: fenced code that is begun for it, checked, and asked for once more when it is no good."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from wolo.errors import BadAnswer
from wolo.messages.parts import new_id
from wolo.models.local import simple_prompts as prompts
from wolo.models.local.call_stream import CallStream
from wolo.models.local.code_check import complain, keep_the_rest, lost_lines, whole_paragraphs
from wolo.models.local.local_chat import Completion, Sampling, Turn
from wolo.models.protocol import Listener

FILE_TOKENS: Final = 1024
PROSE_TOKENS: Final = 400
"""A tiny model has said what it knows by then, and goes round in circles."""
TRIES: Final = 2
OTHER_MODEL: Final = "Ask for something smaller, or use a larger model with --model."

Complete = Callable[[Sequence[Turn], Sampling, CallStream | None], Awaitable[Completion]]


class Order(Struct, frozen=True, kw_only=True):
    """The file that is wanted."""

    path: str
    request: str
    old: str | None = None
    """What the file holds now; None: there is no such file."""

    @property
    def language(self) -> str:
        return prompts.LANGUAGES.get(Path(self.path).suffix.lower(), "text")

    @property
    def is_prose(self) -> bool:
        return self.language in prompts.PROSE

    @property
    def fence(self) -> str:
        return "~~~~" if self.language == "markdown" else "```"  # Markdown holds fences of its own


class FileWriter:
    def __init__(
        self, complete: Complete, tell_attempt: Callable[[int], Awaitable[None]], listener: Listener, max_tokens: int
    ) -> None:
        self._complete = complete
        self._tell_attempt = tell_attempt
        self._listener = listener
        self._max_tokens = max_tokens

    async def write(self, order: Order) -> tuple[str, str]:
        """The id under which the call was shown, and the text. Raises BadAnswer when no try gave a file that can be used."""
        fault = ""
        for attempt in range(1, TRIES + 1):
            if fault:
                error = BadAnswer(f"The embedded model wrote a {order.path} that cannot be used ({fault}).", hint=OTHER_MODEL)
                await self._listener.on_attempt_failed(error, attempt - 1, TRIES, 0.0)
                await self._tell_attempt(attempt)
            call_id = new_id("call")
            text, fault = await self._write_once(order, call_id, retry=attempt > 1)
            if not fault:
                return call_id, text
        raise BadAnswer(f"The embedded model could not write {order.path}: {fault}. Nothing was written.", hint=OTHER_MODEL)

    async def _write_once(self, order: Order, call_id: str, *, retry: bool) -> tuple[str, str]:
        """The text, and what is wrong with it."""
        turns = _turns(order)
        prefill = turns[-1][1]
        stream = CallStream(self._listener, call_id, order.path, prefill)
        is_new_prose = order.is_prose and order.old is None
        sampling = Sampling(
            max_tokens=min(self._max_tokens, PROSE_TOKENS if is_new_prose else FILE_TOKENS),
            stop=(f"\n{order.fence}",),
            retry=retry,
            shun_repeats=order.is_prose,
        )
        completion = await self._complete(turns, sampling, stream)
        await stream.end()
        text = completion.text.removeprefix(prefill).removesuffix(order.fence).strip("\n")
        if completion.cut_off:
            if not is_new_prose:
                return text, "it did not come to an end"
            text = whole_paragraphs(text)
        return _checked(order, f"{text}\n" if text else "")


def _turns(order: Order) -> list[Turn]:
    if order.old is None:
        return prompts.new_file(order.request, order.path, order.language, order.fence)
    return prompts.changed_file(order.request, order.path, order.old, order.language, order.fence)


def _checked(order: Order, text: str) -> tuple[str, str]:
    if order.old is not None and order.language == "python":
        text = keep_the_rest(order.old, text, order.request)
    elif order.old is not None and lost_lines(order.old, text):
        return text, "most of what was in it would be lost"
    return text, complain(order.path, text)
