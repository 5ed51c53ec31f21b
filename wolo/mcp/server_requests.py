"""Answers the requests that a server makes of its client: questions to the user, workspace folders, and use of the model."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from wolo.errors import UsageError
from wolo.mcp import elicitation
from wolo.messages.terminal_text import clean_line, escaped_line
from wolo.tools.tool_values import UNASKED, AnswerOption, AskQuestions, Question, Replies, Reply

MOST_LOG_LINES = 200
_ANSWERS_TRIES = 3
_LONGEST_LOG_LINE = 2_000
ALLOW = "Allow in this session"
_DECLINED, _CANCELLED = {"action": "decline"}, {"action": "cancel"}


class Caller(Struct, frozen=True):
    """The call that a server works for."""

    call_id: str
    progress: Callable[[str], None]
    ask_user: AskQuestions | None
    """None: no user can be asked."""


class SampleRequest(Struct, frozen=True):
    """A request of a server to the model."""

    system: str
    messages: tuple[tuple[str, str], ...]
    """Role and text."""
    max_tokens: int


class SampleAnswer(Struct, frozen=True):
    text: str
    model: str
    tokens: int
    """Used by prompt and answer."""
    is_cut: bool = False


Sample = Callable[[SampleRequest], Awaitable[SampleAnswer]]
"""Raises WoloError with the reason for a refusal."""


class ServerRequests:
    """State that all connections of one server share."""

    def __init__(self, server: str, *, attended: bool, sampling_tokens: int = 0, accepts_defaults: bool = False) -> None:
        """`attended`: a user is present, so nothing is answered without them. `sampling_tokens`: 0: the model may not be used.
        `accepts_defaults`: fill in forms while no user can be asked.
        """
        self.server = server
        self._accepts_defaults = accepts_defaults and not attended
        self.sampling_tokens = sampling_tokens
        self.roots: Sequence[Path] = ()
        """The workspace: its folder and the ones added to it."""
        self.sample: Sample | None = None
        """Asks the model; None: there is no conversation."""
        self._sampled_tokens = 0
        self._may_sample = not attended
        self.log: deque[str] = deque(maxlen=MOST_LOG_LINES)
        self._callers: list[Caller] = []
        self._asking: set[asyncio.Future[Replies | None]] = set()
        self._deadlines: list[tuple[asyncio.Timeout, float]] = []

    @contextmanager
    def working_for(self, caller: Caller) -> Iterator[None]:
        """With the last call end the questions to the user: nobody says yes for a call that is over."""
        self._callers.append(caller)
        try:
            yield
        finally:
            self._callers.remove(caller)
            for question in () if self._callers else self._asking:
                question.cancel()

    @contextmanager
    def limiting(self, deadline: asyncio.Timeout, timeout_s: float) -> Iterator[None]:
        """The deadline of a call, which does not pass while the user is asked."""
        entry = (deadline, timeout_s)
        self._deadlines.append(entry)
        try:
            yield
        finally:
            self._deadlines.remove(entry)

    def note(self, level: str, text: str) -> None:
        """A log message of the server; during a call it is also live output."""
        line = f"{level}: {clean_line(' '.join(text.split()))[:_LONGEST_LOG_LINE]}"
        self.log.append(line)
        if self._callers and level != "debug":
            self._callers[-1].progress(f"{line}\n")

    async def elicit(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Answers a form or the wish to open an address. Without a user nobody says yes, unless the server's settings do."""
        caller = self._callers[-1] if self._callers else None
        ask = caller.ask_user if caller else None
        is_form = params.get("mode") != "url"
        fields = elicitation.read_fields(params.get("requestedSchema") or {}) if is_form else ()
        if caller is None or ask is None:
            return self._answer_alone(fields, "form" if is_form else "wish to open a page")
        if is_form:
            message = str(params.get("message", ""))
            if len(fields) > elicitation.MOST_FIELDS:
                self.note(
                    "warning", f"a form with {len(fields)} fields was declined; at most {elicitation.MOST_FIELDS} are asked"
                )
                return dict(_DECLINED)
            if elicitation.is_too_long(message, *(elicitation.as_question("", field).text for field in fields)):
                self.note("warning", "a form was declined whose texts are too long to be shown")
                return dict(_DECLINED)
            values: dict[str, Any] = {}
            complaints = {field.name: "" for field in fields}
            for _ in range(_ANSWERS_TRIES):
                open_fields = [field for field in fields if field.name in complaints]
                questions = [elicitation.as_question(self.server, field, complaints[field.name]) for field in open_fields]
                replies = await self._ask(
                    ask, caller, [*questions, elicitation.consent_question(self.server, message, len(fields))]
                )
                if replies is None:
                    return dict(_CANCELLED)
                if UNASKED in replies:
                    self.note("warning", "its form was declined: the editor has no field for text")
                    return dict(_DECLINED)
                if replies[-1] != Reply(chosen=(elicitation.SEND,)):
                    return dict(_DECLINED if replies[-1].chosen == (elicitation.DECLINE,) else _CANCELLED)
                complaints = {}
                for field, reply in zip(open_fields, replies[:-1], strict=True):
                    is_given, value, complaint = elicitation.read_value(field, reply)
                    if is_given:
                        values[field.name] = value
                    if complaint:
                        complaints[field.name] = complaint
                if not complaints:
                    return {"action": "accept", "content": values}
            return dict(_CANCELLED)
        url = str(params.get("url", ""))
        if not url.startswith(("https://", "http://")):
            self.note("warning", f"an address that is not http was declined: {url}")
            return dict(_DECLINED)
        if elicitation.is_too_long(url, str(params.get("message", ""))):
            self.note("warning", "an address was declined that is too long to be shown")
            return dict(_DECLINED)
        replies = await self._ask(ask, caller, [elicitation.url_question(self.server, str(params.get("message", "")), url)])
        if replies is None:
            return dict(_CANCELLED)
        if replies[0] != Reply(chosen=(elicitation.OPEN,)):
            return dict(_DECLINED)
        caller.progress(f"Open {url}\n")
        await asyncio.to_thread(_show_page, url)
        return {"action": "accept"}

    def _answer_alone(self, fields: Sequence[elicitation.Field], request: str) -> dict[str, Any]:
        values = elicitation.default_values(fields) if self._accepts_defaults else None
        if values is not None:
            return {"action": "accept", "content": values}
        self.note("warning", f"its {request} was declined: no user can be asked")
        return dict(_DECLINED)

    async def use_model(self, request: SampleRequest) -> SampleAnswer:
        """Raises WoloError for a refusal. With a user present, the user is asked before the first request."""
        if self.sample is None or not self.sampling_tokens:
            raise UsageError("The model cannot be used.")
        left = self.sampling_tokens - self._sampled_tokens
        if left <= 0:
            raise UsageError(f"The budget of {self.sampling_tokens:,} tokens is used up.")
        if not self._may_sample:
            caller = self._callers[-1] if self._callers else None
            if caller is None or caller.ask_user is None:
                raise UsageError("The model may be used during a call only.")
            said = "\n".join(_request_lines(request))
            if elicitation.is_too_long(said):
                raise UsageError("The request is too long to be shown to the user.")
            text = (
                f"{self.server} wants to use your model, up to {self.sampling_tokens:,} tokens in this session. It asks:\n{said}"
            )
            question = Question(text=text, header=self.server, options=(AnswerOption(ALLOW), AnswerOption(elicitation.DECLINE)))
            replies = await self._ask(caller.ask_user, caller, [question])
            if replies is None or replies[0] != Reply(chosen=(ALLOW,)):
                raise UsageError("The user declined.")
            self._may_sample = True
        answer = await self.sample(replace(request, max_tokens=min(request.max_tokens, left)))
        self._sampled_tokens += answer.tokens
        return answer

    async def _ask(self, ask: AskQuestions, caller: Caller, questions: Sequence[Question]) -> Replies | None:
        for deadline, _ in self._deadlines:
            deadline.reschedule(None)
        question = asyncio.ensure_future(ask(caller.call_id, questions))
        self._asking.add(question)
        try:
            await asyncio.wait([question])
            return None if question.cancelled() else question.result()
        finally:
            question.cancel()
            self._asking.discard(question)
            for deadline, timeout_s in self._deadlines:
                deadline.reschedule(asyncio.get_running_loop().time() + timeout_s)


def _request_lines(request: SampleRequest) -> Iterator[str]:
    """Each text on one line behind its role, whole."""
    if request.system:
        yield f"system: {escaped_line(request.system)}"
    for role, said in request.messages:
        yield f"{role}: {escaped_line(said)}"


def _show_page(url: str) -> None:
    import webbrowser  # noqa: PLC0415  # few servers open a page

    webbrowser.open(url)
