"""Writes one file with a tiny model: starts the code for it, checks the result, retries twice."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from wolo.errors import BadAnswer
from wolo.messages.deltas import CallDelta
from wolo.messages.parts import new_id
from wolo.models.local import simple_texts as texts
from wolo.models.local.code_check import (
    apply_asked_name,
    apply_rename,
    complete_python,
    does_nothing,
    loses_content,
    missing_functions,
    name_problem,
    restore_definitions,
    syntax_problem,
)
from wolo.models.local.local_chat import ChatServer, Completion, Sampling, Turn, sentence
from wolo.models.local.simple_runs import is_library
from wolo.models.protocol import Listener

FILE_TOKENS: Final = 1024
PROSE_TOKENS: Final = 400
"""Tiny models repeat themselves beyond this."""
TRIES: Final = 3
END_TOKENS: Final = 120
MAIN_GUARD: Final = 'if __name__ == "__main__":'
OTHER_MODEL: Final = "Ask for something smaller, or use a larger model with --model."

Complete = Callable[[Sequence[Turn], Sampling, "CallStream | None"], Awaitable[Completion]]


class FileRequest(Struct, frozen=True, kw_only=True):
    path: str
    request: str
    old: str | None = None
    """Current content; None: a new file."""
    error: str = ""
    """Output of a command that fails because of the file."""
    is_draft: bool = False
    """Written in this turn: where a repair fails, a new text is as good."""
    around: str = ""
    """Excerpts of files that a new one may read or use."""
    first_attempt: int = 1
    """Seed of the first attempt, so that a repair does not repeat the text."""

    @property
    def language(self) -> str:
        return texts.LANGUAGES.get(Path(self.path).suffix.lower(), "text")

    @property
    def is_prose(self) -> bool:
        return self.language in texts.PROSE

    @property
    def fence(self) -> str:
        return "~~~~" if self.language == "markdown" else "```"  # Markdown contains fences itself


class FileWriter:
    def __init__(
        self,
        complete: Complete,
        announce_attempt: Callable[[int], Awaitable[None]],
        listener: Listener,
        max_tokens: int,
        server: ChatServer,
    ) -> None:
        self._complete = complete
        self._announce_attempt = announce_attempt
        self._listener = listener
        self._max_tokens = max_tokens
        self._label = server.label
        self._continues = server.continues

    async def write(self, order: FileRequest) -> tuple[str, str]:
        """Call id used for display, and the text. Raises BadAnswer if every attempt failed."""
        fault = ""
        for attempt in range(1, TRIES + 1):
            if fault:
                said = f"{sentence(self._label)} wrote a {order.path} that cannot be used ({fault})."
                error = BadAnswer(said, hint=OTHER_MODEL)
                await self._listener.on_attempt_failed(error, attempt - 1, TRIES, 0.0)
                await self._announce_attempt(attempt)
            call_id = new_id("call")
            text, fault = await self._write_once(order, call_id, order.first_attempt + attempt - 1)
            if not fault and order.language == "python" and attempt < TRIES:
                fault = name_problem(text) or missing_functions(text, order.request)
            if not fault:
                return call_id, text
            if order.is_draft:
                order = replace(order, old=None)
        raise BadAnswer(f"{sentence(self._label)} could not write {order.path}: {fault}. Nothing was written.", hint=OTHER_MODEL)

    async def _write_once(self, order: FileRequest, call_id: str, attempt: int) -> tuple[str, str]:
        """The text, and its problem if any."""
        turns = _turns(order)
        prefill = turns[-1][1]
        stream = CallStream(self._listener, call_id, order.path, prefill)
        is_new_prose = order.is_prose and order.old is None
        sampling = Sampling(
            max_tokens=min(self._max_tokens, PROSE_TOKENS if is_new_prose else FILE_TOKENS),
            stop=(f"\n{order.fence}",),
            attempt=attempt,
            shun_repeats=order.is_prose,
        )
        completion = await self._complete(turns, sampling, stream if self._continues else None)
        text = code_in(completion.text, prefill, order.fence)
        if not self._continues:
            await stream.add(f"{prefill}{text}")
        await stream.end()
        if completion.cut_off:
            if not is_new_prose:
                return text, "it did not come to an end"
            text = whole_paragraphs(text)
        text = f"{text}\n" if text else ""
        if self._continues and order.old is None and order.language == "python" and not is_library(order.request):
            text = await self._with_effect(turns, text)
        return _checked(order, text)

    async def _with_effect(self, turns: Sequence[Turn], text: str) -> str:
        """Let the model end a program that only defines functions, so that it does something when run."""
        text = complete_python(text)
        if not does_nothing(text):
            return text
        begun = f"{text.rstrip()}\n\n\n{MAIN_GUARD}\n   "
        sampling = Sampling(max_tokens=END_TOKENS, stop=("\n```", "\n\n\n"))
        turns = [*turns[:-1], ("assistant", f"{turns[-1][1]}{begun}")]
        try:
            completion = await self._complete(turns, sampling, None)
        except BadAnswer:
            return text
        ending = completion.text.removeprefix(turns[-1][1]).rstrip()
        whole = f"{begun}{ending}\n"
        return text if completion.cut_off or not ending or syntax_problem("a.py", whole) else whole


def code_in(said: str, prefill: str, fence: str) -> str:
    """The code of an answer: after the given start, inside its first block, or all of it."""
    text = said.removeprefix(prefill)
    lines = text.split("\n")
    mark = fence[:3]
    begins = next((at for at, line in enumerate(lines) if line.startswith(mark)), None)
    if len(text) == len(said) and begins is not None and begins < len(lines) - 1:
        ends = next((at for at in range(begins + 1, len(lines)) if lines[at].startswith(mark)), len(lines))
        if begins == 0 or ends < len(lines):
            return "\n".join(lines[begins + 1 : ends]).strip("\n")
    return text.removesuffix(fence).strip("\n")


def _turns(order: FileRequest) -> list[Turn]:
    if order.old is None:
        return texts.new_file(order.request, order.path, order.language, order.fence, order.around)
    return texts.changed_file(order.request, order.path, order.old, order.language, order.fence, order.error)


def _checked(order: FileRequest, text: str) -> tuple[str, str]:
    if order.old is not None and order.language == "python":
        text = restore_definitions(order.old, text, order.request)
    elif order.old is not None and loses_content(order.old, text):
        return text, "most of what was in it would be lost"
    if order.language == "python":
        text = apply_rename(text, order.request) if order.old is not None else apply_asked_name(text, order.request)
    if order.old is not None and text.strip() == order.old.strip():
        return text, "nothing in it was changed"
    if order.language == "python":
        text = complete_python(text)
    return text, syntax_problem(order.path, text)


class CallStream:
    """Streams code as arguments of a `write` call, without the given start."""

    def __init__(self, listener: Listener, call_id: str, path: str, prefill: str) -> None:
        self._listener = listener
        self._call_id = call_id
        self._path = path
        self._prefill = prefill
        self._held = ""
        self._begun = False

    async def add(self, text: str) -> None:
        if self._begun:
            await self._tell(CallDelta(slot=0, arguments=_inside(text)))
            return
        self._held += text
        if len(self._held) < len(self._prefill) and self._prefill.startswith(self._held):
            return
        self._begun = True
        head = json.dumps({"path": self._path}, ensure_ascii=False)[:-1] + ', "content": "'
        code = self._held.removeprefix(self._prefill)
        await self._tell(
            CallDelta(slot=0, call_id=self._call_id, tool="write", arguments=head + _inside(code), part_id=self._call_id)
        )

    async def end(self) -> None:
        if self._begun:
            await self._tell(CallDelta(slot=0, arguments='"}'))

    async def _tell(self, delta: CallDelta) -> None:
        await self._listener.on_deltas((delta,))


def _inside(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]


def whole_paragraphs(text: str) -> str:
    """Truncate prose after the last complete sentence or line."""
    end = max(text.rfind(mark) + len(mark.rstrip()) for mark in (".\n", ". ", "!\n", "?\n", "\n\n"))
    return text[:end].rstrip() if end > len(text) // 2 else text.rpartition("\n")[0].rstrip() or text
