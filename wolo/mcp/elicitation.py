"""Questions that a server asks during a call: its form as questions for the user, and their replies as its values."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from wolo.messages.terminal_text import clean_line, escaped_line
from wolo.tools.tool_values import AnswerOption, Question, Reply

MOST_FIELDS = 20
_MOST_OPTIONS = 9
"""Each key selects one option; further values are typed."""
_LONGEST_TEXT = 20_000
"""Characters of a text that a question shows; a request with a longer one is declined."""
_LONGEST_HEADER = 24
_YES, _NO = "Yes", "No"
SEND, OPEN, DECLINE = "Send", "Open in the browser", "Decline"


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
