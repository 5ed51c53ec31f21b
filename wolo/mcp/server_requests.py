"""Answers the requests that a server makes of its client: questions to the user, workspace folders, and use of the model."""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from wolo.errors import UsageError
from wolo.messages.terminal_text import clean_line, escaped_line
from wolo.tools.tool_values import UNASKED, AnswerOption, AskQuestions, Question, Replies, Reply

MOST_LOG_LINES = 200
_ANSWERS_TRIES = 3
_LONGEST_LOG_LINE = 2_000
ALLOW = "Allow in this session"
_DECLINED, _CANCELLED = {"action": "decline"}, {"action": "cancel"}
MOST_FIELDS = 20
_MOST_OPTIONS = 9
"""Each key selects one option; further values are typed."""
_LONGEST_TEXT = 20_000
"""Characters of a text that a question shows; a request with a longer one is declined."""
_LONGEST_HEADER = 24
_YES, _NO = "Yes", "No"
SEND, OPEN, DECLINE = "Send", "Open in the browser", "Decline"


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
        fields = read_fields(params.get("requestedSchema") or {}) if is_form else ()
        if caller is None or ask is None:
            return self._answer_alone(fields, "form" if is_form else "wish to open a page")
        if is_form:
            message = str(params.get("message", ""))
            if len(fields) > MOST_FIELDS:
                self.note("warning", f"a form with {len(fields)} fields was declined; at most {MOST_FIELDS} are asked")
                return dict(_DECLINED)
            if is_too_long(message, *(as_question("", field).text for field in fields)):
                self.note("warning", "a form was declined whose texts are too long to be shown")
                return dict(_DECLINED)
            values: dict[str, Any] = {}
            complaints = {field.name: "" for field in fields}
            for _ in range(_ANSWERS_TRIES):
                open_fields = [field for field in fields if field.name in complaints]
                questions = [as_question(self.server, field, complaints[field.name]) for field in open_fields]
                replies = await self._ask(ask, caller, [*questions, consent_question(self.server, message, len(fields))])
                if replies is None:
                    return dict(_CANCELLED)
                if UNASKED in replies:
                    self.note("warning", "its form was declined: the editor has no field for text")
                    return dict(_DECLINED)
                if replies[-1] != Reply(chosen=(SEND,)):
                    return dict(_DECLINED if replies[-1].chosen == (DECLINE,) else _CANCELLED)
                complaints = {}
                for field, reply in zip(open_fields, replies[:-1], strict=True):
                    is_given, value, complaint = read_value(field, reply)
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
        if is_too_long(url, str(params.get("message", ""))):
            self.note("warning", "an address was declined that is too long to be shown")
            return dict(_DECLINED)
        replies = await self._ask(ask, caller, [url_question(self.server, str(params.get("message", "")), url)])
        if replies is None:
            return dict(_CANCELLED)
        if replies[0] != Reply(chosen=(OPEN,)):
            return dict(_DECLINED)
        caller.progress(f"Open {url}\n")
        await asyncio.to_thread(_show_page, url)
        return {"action": "accept"}

    def _answer_alone(self, fields: Sequence[Field], request: str) -> dict[str, Any]:
        values = default_values(fields) if self._accepts_defaults else None
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
            if is_too_long(said):
                raise UsageError("The request is too long to be shown to the user.")
            text = (
                f"{self.server} wants to use your model, up to {self.sampling_tokens:,} tokens in this session. It asks:\n{said}"
            )
            question = Question(text=text, header=self.server, options=(AnswerOption(ALLOW), AnswerOption(DECLINE)))
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


class Field(Struct, frozen=True, kw_only=True):
    """One property of the form."""

    name: str
    schema: Mapping[str, Any]
    required: bool

    @property
    def kind(self) -> str:
        found = self.schema.get("type")
        return found if isinstance(found, str) else "string"

    @property
    def has_default(self) -> bool:
        """A default that the form itself does not accept counts as none."""
        default = self.schema.get("default")
        if default is None:
            return False
        from wolo.mcp.tool_answer import UnusableSchema, first_violation  # noqa: PLC0415  # few servers ask

        try:
            return not first_violation(self.schema, default)
        except UnusableSchema:
            return False

    @property
    def choices(self) -> dict[str, Any]:
        """Label to value; empty: any value of the kind."""
        items = self.schema.get("items")
        schema = items if self.kind == "array" and isinstance(items, Mapping) else self.schema
        for key in ("oneOf", "anyOf"):
            if isinstance(titled := schema.get(key), list):
                return {str(each.get("title") or each["const"]): each["const"] for each in titled if "const" in _mapping(each)}
        values, names = schema.get("enum"), schema.get("enumNames")
        if isinstance(values, list):
            labels = names if isinstance(names, list) and len(names) == len(values) else values
            return dict(zip(map(str, labels), values, strict=True))
        return {_YES: True, _NO: False} if self.kind == "boolean" else {}


def read_fields(schema: Mapping[str, Any]) -> tuple[Field, ...]:
    """The fields in the server's order."""
    properties, required = _mapping(schema.get("properties")), schema.get("required")
    wanted = required if isinstance(required, list) else []
    described = {**properties, **{name: {} for name in wanted if isinstance(name, str) and name not in properties}}
    return tuple(Field(name=name, schema=_mapping(each), required=name in wanted) for name, each in described.items())


def default_values(fields: Sequence[Field]) -> dict[str, Any] | None:
    """The form filled with its defaults; None: no field is required, which makes it a mere yes, or a required one has none."""
    required = [field for field in fields if field.required]
    if not required or not all(field.has_default for field in required):
        return None
    return {field.name: field.schema["default"] for field in fields if field.has_default}


def as_question(server: str, field: Field, complaint: str = "") -> Question:
    """`complaint`: the reason why the previous reply was not accepted."""
    described = field.schema.get("description")
    title = escaped_line(str(field.schema.get("title") or field.name))
    text = f"{title}: {escaped_line(described)}" if isinstance(described, str) and described else title
    facts = [each for each in (complaint, _about_default(field), "" if field.required else "may be left out") if each]
    note = f" ({'; '.join(facts)})" if facts else ""
    labels = list(field.choices)
    return Question(
        text=f"{server}: {text}{note}",
        header=title[:_LONGEST_HEADER],
        options=tuple(AnswerOption(clean_line(label)) for label in labels) if len(labels) <= _MOST_OPTIONS else (),
        several=field.kind == "array",
    )


def _about_default(field: Field) -> str:
    if not field.has_default:
        return ""
    default = field.schema["default"]
    values = default if isinstance(default, list) else [default]
    labels = [next((label for label, value in field.choices.items() if value == each), str(each)) for each in values]
    return f"skip for {clean_line(', '.join(labels))}"


def read_value(field: Field, reply: Reply) -> tuple[bool, Any, str]:
    """Returns: there is a value, the value, and why the reply is not one."""
    if reply == Reply():
        if field.has_default:
            return True, field.schema["default"], ""
        return False, None, "it is required" if field.required else ""
    answers = [*reply.chosen, *([reply.text] if reply.text else [])]
    try:
        if field.kind == "array":
            spoken = [part.strip() for each in answers for part in ([each] if each in reply.chosen else each.split(","))]
            values = [_choice(field, each) for each in spoken if each]
            least, most = field.schema.get("minItems"), field.schema.get("maxItems")
            if isinstance(least, int) and len(values) < least:
                raise ValueError(f"at least {least}")
            if isinstance(most, int) and len(values) > most:
                raise ValueError(f"at most {most}")
            return True, values, ""
        return True, _check(field, _choice(field, answers[0])), ""
    except ValueError as error:
        return False, None, str(error)


def _choice(field: Field, answer: str) -> Any:
    choices = field.choices
    for label, value in choices.items():
        if answer.casefold() in (clean_line(label).casefold(), str(value).casefold()):
            return value
    if choices:
        raise ValueError(f"it must be one of {', '.join(map(clean_line, choices))}")
    return answer


def _check(field: Field, value: Any) -> Any:
    match field.kind:
        case "integer" | "number" as kind if isinstance(value, str):
            return _number(field, value, whole=kind == "integer")
        case "string" if isinstance(value, str):
            least, most = field.schema.get("minLength"), field.schema.get("maxLength")
            if isinstance(least, int) and len(value) < least:
                raise ValueError(f"at least {least} characters")
            if isinstance(most, int) and len(value) > most:
                raise ValueError(f"at most {most} characters")
            if field.schema.get("format") == "email" and "@" not in value:
                raise ValueError("it must be an e-mail address")
            if field.schema.get("format") == "uri" and ":" not in value:
                raise ValueError("it must be an address")
            return value
        case _:
            return value


def _number(field: Field, text: str, *, whole: bool) -> int | float:
    try:
        value: int | float = int(text) if whole else float(text)
    except ValueError:
        raise ValueError("it must be a whole number" if whole else "it must be a number") from None
    least, most = field.schema.get("minimum"), field.schema.get("maximum")
    if not math.isfinite(value):
        raise ValueError("it must be a number")
    if isinstance(least, int | float) and value < least:
        raise ValueError(f"at least {least}")
    if isinstance(most, int | float) and value > most:
        raise ValueError(f"at most {most}")
    return value


def is_too_long(*texts: str) -> bool:
    """A question cannot show one of the texts whole."""
    return any(len(text) > _LONGEST_TEXT for text in texts)


def consent_question(server: str, message: str, num_fields: int) -> Question:
    """Comes last, so that declining is one key away in any form."""
    said = escaped_line(message)
    sends = "Send these answers to it?" if num_fields else "Accept?"
    return Question(text=f"{server} asks: {said} {sends}", header=server, options=(AnswerOption(SEND), AnswerOption(DECLINE)))


def url_question(server: str, message: str, url: str) -> Question:
    text = f"{server} asks you to open {escaped_line(url)} : {escaped_line(message)}"
    return Question(text=text, header=server, options=(AnswerOption(OPEN), AnswerOption(DECLINE)))


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
