"""Answers as typed values: the JSON schema of a type, the words that ask for it, and the check of the answer."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, is_typeddict

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from wolo.agent.budget import add
from wolo.agent.events import ErrorInfo, TurnEnded
from wolo.errors import UsageError, WoloError
from wolo.extensions.custom_tools.function_schema import build_value, schema_of
from wolo.messages.message import Origin, UserPrompt, user
from wolo.messages.parts import TextPart
from wolo.models.protocol import ANSWER_SCHEMA

INSTRUCTION = """

When you are done, answer with one JSON value that fits this JSON schema, and nothing else: no explanation, no code fence.
{schema}"""
REPAIR = """That is not a value that fits the JSON schema:
{problem}
Answer again with the corrected JSON value only."""
_MOST_PROBLEMS = 8
_FENCED = re.compile(r"```(?:json|JSON)?[ \t]*\n(.*?)\n?[ \t]*```", re.DOTALL)


class OutputError(WoloError):
    """The answer is no value of the wanted type; `raw` is its text."""

    kind = "output"

    def __init__(self, problem: str, raw: str) -> None:
        super().__init__(f"The answer does not fit the schema: {problem}")
        self.problem, self.raw = problem, raw

    def __reduce__(self) -> tuple[Any, ...]:
        return OutputError, (self.problem, self.raw)


VALUE = "value"
"""Member of the object around a value that is none."""
MISSING = object()


class Structured(Struct, frozen=True):
    value: Any


class OutputForm:
    """A wanted type, or a JSON schema as a mapping."""

    def __init__(self, type_or_schema: Any) -> None:
        """Raises UsageError for a type without a JSON schema, and for an invalid schema."""
        self._check = _check_of(type_or_schema)
        self.wire_schema: dict[str, Any] = _with_root(self.schema)
        self._is_wrapped = self.wire_schema.get("type") != "object"
        """Servers enforce only objects, so that another value is asked for as the member `value` of one."""
        if self._is_wrapped:
            inner = _relocate(self.schema, f"#/properties/{VALUE}")
            self.wire_schema = {
                "type": "object",
                "properties": {VALUE: inner},
                "required": [VALUE],
                "additionalProperties": False,
            }

    @property
    def schema(self) -> Mapping[str, Any]:
        return self._check.schema

    def parse(self, answer: str) -> Any:
        """Returns the value of an answer, also of one with words or a code fence around it. Raises OutputError."""
        from wolo.formats.encoding.answer_schema import without_fillers  # noqa: PLC0415  # only typed answers need it

        problem = ""
        for value in _values(answer, takes_text=self.schema.get("type") == "string"):
            meant = value[VALUE] if self._wraps(value) else value
            variants = (meant, without_fillers(meant, self.schema), value)
            for each in variants:
                try:
                    return self._check.validate(each)
                except ValueError as error:
                    problem = problem or str(error)
        if not problem:
            problem = "it contains no JSON."
            try:
                _DECODER.decode(answer.strip())
            except (ValueError, RecursionError) as error:
                problem = f"it is no JSON ({error})." if answer.strip() else problem
        raise OutputError(problem, answer)

    def _wraps(self, value: Any) -> bool:
        return self._is_wrapped and isinstance(value, dict) and value.keys() == {VALUE}

    def partial(self, answer: str) -> Any:
        """The value that the beginning of an answer has so far, unchecked; the type MISSING: none yet."""
        from pydantic import TypeAdapter  # noqa: PLC0415  # loads slowly

        start = _BRACKET.search(answer)
        try:
            value = TypeAdapter(Any).validate_json(
                answer[start.start() :] if start else answer, experimental_allow_partial="trailing-strings"
            )
        except ValueError:
            return MISSING
        if self._wraps(value):
            return value[VALUE]
        return MISSING if self._is_wrapped and value == {} else value

    def asking(self, prompt: UserPrompt) -> UserPrompt:
        """Returns the prompt with the words that ask for the value; where no tools are offered, servers enforce it."""
        words = TextPart(text=INSTRUCTION.format(schema=as_text(self.wire_schema)))
        return replace(prompt, parts=(*prompt.parts, words), metadata={**prompt.metadata, **self._metadata(is_last=False)})

    def repair(self, error: OutputError, origin: Origin) -> UserPrompt:
        """Returns a prompt that sends an answer back, which servers enforce; `origin` is that of the first one."""
        prompt = UserPrompt.from_message(user(REPAIR.format(problem=error.problem)), origin)
        return replace(prompt, metadata={**prompt.metadata, **self._metadata(is_last=True)})

    def _metadata(self, *, is_last: bool) -> dict[str, Any]:
        return {ANSWER_SCHEMA: {"schema": self.wire_schema, "is_last": is_last}}

    async def ask(
        self, run: Callable[[UserPrompt], Awaitable[TurnEnded]], prompt: UserPrompt
    ) -> tuple[TurnEnded, Structured | None]:
        """Runs a turn, and another one if its answer does not fit. Returns both as one, and the value; None: there is none."""
        ended = await run(self.asking(prompt))
        if ended.cause != "done":
            return ended, None
        try:
            return ended, Structured(self.parse(ended.answer))
        except OutputError as error:
            repaired = await run(self.repair(error, prompt.origin))
            ended = replace(
                repaired,
                usage=add(ended.usage, repaired.usage),
                num_answers=ended.num_answers + repaired.num_answers,
                duration_s=ended.duration_s + repaired.duration_s,
                provider_s=ended.provider_s + repaired.provider_s,
            )
        if ended.cause != "done":
            return ended, None
        try:
            return ended, Structured(self.parse(ended.answer))
        except OutputError as error:
            return replace(ended, cause="model_error", error=ErrorInfo.of(error), exit_code=error.exit_code), None


def read_schema(text_or_path: str) -> OutputForm:
    """The form of `--json-schema FILE|JSON`. Raises UsageError."""
    text = text_or_path
    if not text_or_path.strip():
        raise UsageError("--json-schema is empty.", hint="Pass a file, or the schema as JSON.")
    if not text_or_path.lstrip().startswith(("{", "[")):
        try:
            text = Path(text_or_path).expanduser().read_text(encoding="utf-8-sig")
        except (OSError, ValueError) as error:
            raise UsageError(f"--json-schema: {text_or_path} cannot be read: {error}.") from error
    try:
        schema = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"--json-schema: this is no JSON: {error}.") from error
    if not isinstance(schema, dict):
        raise UsageError("--json-schema: the schema must be a JSON object.")
    return OutputForm(schema)


def _with_root(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema with its definition at the root in place of a reference."""
    root = dict(schema)
    name = str(root.get("$ref", "")).removeprefix("#/$defs/")
    if isinstance(target := root.get("$defs", {}).get(name), Mapping):
        del root["$ref"]
        return {**target, **root}
    return root


def _relocate(schema: Any, place: str) -> Any:
    """A copy whose references point into the schema at its new place."""
    if isinstance(schema, Mapping):
        return {
            name: f"{place}{value[1:]}"
            if name == "$ref" and isinstance(value, str) and value[:1] == "#"
            else _relocate(value, place)
            for name, value in schema.items()
        }
    return [_relocate(each, place) for each in schema] if isinstance(schema, list) else schema


def as_text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


class _SchemaCheck:
    def __init__(self, schema: Mapping[str, Any]) -> None:
        from jsonschema.exceptions import SchemaError  # noqa: PLC0415  # loads slowly; most runs need no schema
        from jsonschema.validators import SPECIFICATIONS, validator_for  # noqa: PLC0415  # the same

        self.schema = schema
        kind = validator_for(schema)
        try:
            kind.check_schema(schema)
        except SchemaError as error:
            raise UsageError(f"The JSON schema is invalid: {error.message}.") from error
        self._validator = kind(schema, registry=SPECIFICATIONS)  # without a retriever: nothing is fetched
        self._check_references(schema)

    def _check_references(self, value: Any) -> None:
        """Raises UsageError for a reference to something that the schema does not contain."""
        if isinstance(value, Mapping):
            if isinstance(reference := value.get("$ref"), str):
                try:
                    next(self._validator.evolve(schema={"$ref": reference}).iter_errors(None), None)
                except Exception as error:  # of several libraries, and private
                    raise UsageError(f"The JSON schema refers to {reference}, which it does not contain.") from error
            for each in value.values():
                self._check_references(each)
        elif isinstance(value, list):
            for each in value:
                self._check_references(each)

    def validate(self, value: Any) -> Any:
        """Raises ValueError that names the places."""
        errors = sorted(self._validator.iter_errors(value), key=lambda error: list(map(str, error.absolute_path)))
        if errors:
            raise ValueError("\n".join(f"{error.json_path}: {error.message}" for error in errors[:_MOST_PROBLEMS]))
        return value


class _UnknownTypedDict(Exception):
    """Before Python 3.12 pydantic reads only the TypedDict of typing_extensions."""


class _TypeCheck:
    def __init__(self, output_type: Any) -> None:
        from pydantic import PydanticSchemaGenerationError, PydanticUserError, TypeAdapter  # noqa: PLC0415  # loads slowly

        try:
            self._adapter: TypeAdapter[Any] = TypeAdapter(output_type)
            self.schema: Mapping[str, Any] = self._adapter.json_schema()
        except (PydanticSchemaGenerationError, PydanticUserError, NameError, TypeError, AttributeError) as error:
            if getattr(error, "code", None) == "typed-dict-version":
                raise _UnknownTypedDict from error
            raise _without_schema(output_type, error) from error

    def validate(self, value: Any) -> Any:
        """Raises ValueError that names the places."""
        from pydantic import ValidationError  # noqa: PLC0415  # as above

        try:
            return self._adapter.validate_json(json.dumps(value))
        except ValidationError as error:
            places = ((".".join(map(str, each["loc"])) or "the value", each["msg"]) for each in error.errors()[:_MOST_PROBLEMS])
            raise ValueError("\n".join(f"{place}: {message}" for place, message in places)) from error


class _MsgspecCheck:
    def __init__(self, output_type: Any) -> None:
        self._output_type = output_type
        try:
            schema, definitions = schema_of(output_type)
        except (TypeError, NotImplementedError, ValueError) as error:
            raise _without_schema(output_type, error) from error
        self.schema = {**schema, **({"$defs": definitions} if definitions else {})}

    def validate(self, value: Any) -> Any:
        """Raises ValueError that names the place."""
        return msgspec.convert(value, self._output_type, dec_hook=build_value)  # its ValidationError is a ValueError


def _check_of(type_or_schema: Any) -> _SchemaCheck | _TypeCheck | _MsgspecCheck:
    if isinstance(type_or_schema, Mapping):
        return _SchemaCheck(type_or_schema)
    if isinstance(type_or_schema, str | bytes):
        raise UsageError(f"{type_or_schema!r} is no type.", hint="Pass the type itself, or a JSON schema as a dict.")
    if is_typeddict(type_or_schema) or (isinstance(type_or_schema, type) and issubclass(type_or_schema, Struct)):
        return _MsgspecCheck(type_or_schema)
    try:
        return _TypeCheck(type_or_schema)
    except _UnknownTypedDict:
        return _MsgspecCheck(type_or_schema)
    except UsageError as error:  # pydantic knows no Struct, which may be in a list or a union
        try:
            return _MsgspecCheck(type_or_schema)
        except UsageError:
            raise error from None


def _without_schema(output_type: Any, error: Exception) -> UsageError:
    return UsageError(f"{output_type!r} has no JSON schema: {' '.join(str(error).split())[:300]}")


def _values(answer: str, *, takes_text: bool) -> Iterator[Any]:
    """JSON values that may be meant: the whole answer, then those in code fences and between words, the last one first.

    `takes_text`: finally the answer itself, for a model that leaves out the quotes.
    """
    text = answer.strip()
    with suppress(ValueError, RecursionError):
        yield _DECODER.decode(text)
        return
    for fenced in reversed(_FENCED.findall(text)):
        with suppress(ValueError, RecursionError):
            yield _DECODER.decode(fenced.strip())
    between_words: list[Any] = []
    at, tries = 0, 0
    while tries < _MOST_TRIES and (match := _BRACKET.search(text, at)):
        try:
            value, at = _DECODER.raw_decode(text, match.start())
            between_words.append(value)
        except (ValueError, RecursionError):
            at, tries = match.end(), tries + 1
    yield from reversed(between_words)
    if takes_text and text:
        yield text


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON value")


_DECODER = json.JSONDecoder(parse_constant=_refuse)
_BRACKET = re.compile(r"[{\[]")
_MOST_TRIES = 200
"""Brackets that begin no JSON."""
