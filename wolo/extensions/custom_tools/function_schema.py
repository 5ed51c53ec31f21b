"""Turns a Python function into a tool: its types and docstring become a JSON schema, and JSON becomes its arguments."""

from __future__ import annotations

import inspect
import re
import typing
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import PurePath
from typing import Annotated, Any, get_args, get_origin

import msgspec
from msgspec import Meta

_LIMITS = ("gt", "ge", "lt", "le", "multiple_of", "min_length", "max_length", "pattern")
_REFERENCES = "#/$defs/{name}"
_BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class UnusableFunctionError(Exception):
    """The function cannot be a tool; the message says why."""


class ArgumentError(Exception):
    """The arguments do not fit the schema; the message is for the model."""


class FunctionTool:
    """A function, plain or async, as a tool."""

    def __init__(self, function: Callable[..., Any]) -> None:
        """Raises UnusableFunctionError."""
        self.function = function
        self.name: str = function.__name__
        self.description, texts = read_docstring(function.__doc__ or "")
        self._parameters = _parameters(function)
        self._adapters: dict[str, Any] = {}
        """Types that only pydantic knows, by parameter."""
        definitions: dict[str, Any] = {}
        properties: dict[str, Any] = {}
        for name, each in self._parameters.items():
            try:
                schema, more = schema_of(each.annotation)
            except (TypeError, NotImplementedError, ValueError):
                self._adapters[name], schema = _adapt(name, each.annotation)
                more = schema.pop("$defs", {})
            definitions |= more
            text = texts.get(name, "")
            own_schema = dict(schema)
            if text and "description" not in own_schema:
                own_schema["description"] = text
            if each.default is not inspect.Parameter.empty and each.default is not None:
                with suppress(TypeError):  # the function knows its default
                    own_schema["default"] = as_json(each.default)
            properties[name] = own_schema
        needed = [name for name, each in self._parameters.items() if each.default is inspect.Parameter.empty]
        self.parameters: dict[str, Any] = {
            "type": "object",
            "properties": properties,
            **({"required": needed} if needed else {}),
            "additionalProperties": False,
            **({"$defs": definitions} if definitions else {}),
        }

    async def call(self, arguments: Mapping[str, Any]) -> Any:
        """Raises ArgumentError, and whatever the function raises."""
        result = self.function(**self.values(arguments))
        return await result if inspect.isawaitable(result) else result

    def values(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments as the types that the function takes. Raises ArgumentError."""
        # The fields of a model that is the only parameter may be given without its name
        if len(self._parameters) == 1 and arguments:
            ((name, only),) = self._parameters.items()
            if name not in arguments and _is_model(only.annotation):
                arguments = {name: arguments}
        if unknown := sorted(arguments.keys() - self._parameters.keys()):
            names = ", ".join(self._parameters) or "none"
            raise ArgumentError(f"{self.name} takes no argument {', '.join(unknown)}; it takes {names}.")
        needed = [name for name, each in self._parameters.items() if each.default is inspect.Parameter.empty]
        if missing := [name for name in needed if name not in arguments]:
            raise ArgumentError(f"{self.name} needs {', '.join(missing)}.")
        return {name: self._value(name, value) for name, value in arguments.items()}

    def _value(self, name: str, value: Any) -> Any:
        if name not in self._adapters:
            kind = self._parameters[name].annotation
            for strict in (True, False):
                try:
                    return msgspec.convert(value, kind, strict=strict, dec_hook=build_value)
                except msgspec.ValidationError as error:
                    if not strict:
                        raise ArgumentError(f"`{name}`: {_first_line(error)}") from error
            raise AssertionError
        try:
            return self._adapters[name].validate_json(msgspec.json.encode(value))
        except ValueError as error:
            raise ArgumentError(f"`{name}`: {_problems(error)}") from error


def as_json(value: Any) -> Any:
    """Plain lists, dicts and scalars. Raises TypeError for a value that JSON cannot hold."""
    return msgspec.to_builtins(value, enc_hook=_dump, str_keys=True)


def _parameters(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    try:
        signature = inspect.signature(function)
        hints = typing.get_type_hints(function, include_extras=True)
    except (NameError, TypeError, ValueError, AttributeError) as error:
        raise UnusableFunctionError(f"its types cannot be read: {error}") from error
    if unfit := [name for name, each in signature.parameters.items() if each.kind not in _BY_NAME]:
        raise UnusableFunctionError(f"the parameter {unfit[0]} cannot be passed by name")
    return {name: each.replace(annotation=_with_meta(hints.get(name, Any))) for name, each in signature.parameters.items()}


def schema_of(kind: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The JSON schema of a type and its definitions. Raises TypeError, NotImplementedError and ValueError for one without."""
    definitions: dict[str, Any] = {}

    def of_class(kind: type) -> dict[str, Any]:
        if _is_model(kind):
            schema: dict[str, Any] = kind.model_json_schema(ref_template="#/$defs/{model}")  # type: ignore[attr-defined]  # pydantic's
            definitions.update(schema.pop("$defs", {}))
            return schema
        if issubclass(kind, PurePath):
            return {"type": "string", "format": "path"}
        raise NotImplementedError

    (schema,), more = msgspec.json.schema_components([kind], schema_hook=of_class, ref_template=_REFERENCES)
    return schema, definitions | more


def _adapt(name: str, kind: Any) -> tuple[Any, dict[str, Any]]:
    """Pydantic's reader of a type that msgspec does not know, such as a union of models, and its schema."""
    from pydantic import PydanticSchemaGenerationError, PydanticUserError, TypeAdapter  # noqa: PLC0415  # few tools need it

    try:
        adapter: TypeAdapter[Any] = TypeAdapter(kind)
        return adapter, adapter.json_schema()
    except (PydanticSchemaGenerationError, PydanticUserError, ImportError) as error:
        raise UnusableFunctionError(f"the type of {name} has no JSON schema: {_first_line(error)}") from error


def _with_meta(kind: Any) -> Any:
    """Understands descriptions and limits of other libraries in `Annotated`, also inside of lists and unions."""
    if get_origin(kind) is not Annotated:
        return kind
    inner, *extras = get_args(kind)
    limits: dict[str, Any] = {}
    for extra in extras:
        if isinstance(extra, Meta):
            return kind
        if isinstance(extra, str):
            limits.setdefault("description", extra)
        for each in (extra, *getattr(extra, "metadata", ())):
            limits |= {name: value for name in _LIMITS if (value := getattr(each, name, None)) is not None}
            text = getattr(each, "description", None) or getattr(each, "documentation", None)
            limits |= {"description": text} if isinstance(text, str) and text else {}
    try:
        return Annotated[inner, Meta(**limits)] if limits else inner
    except (TypeError, ValueError) as error:
        raise UnusableFunctionError(f"its limits cannot be read: {error}") from error


def build_value(kind: type, value: Any) -> Any:
    """A value of a class that msgspec does not know."""
    if _is_model(kind):
        try:
            return kind.model_validate(value)  # type: ignore[attr-defined]  # pydantic's
        except ValueError as error:
            raise ValueError(_problems(error)) from error
    return kind(value)


def _is_model(kind: Any) -> bool:
    """True for a class of pydantic, which is not imported to find out."""
    return isinstance(kind, type) and hasattr(kind, "model_json_schema") and hasattr(kind, "model_validate")


def _problems(error: ValueError) -> str:
    """Places and complaints of pydantic, for the model."""
    errors = getattr(error, "errors", None)
    if errors is None:
        return _first_line(error)
    places = ((".".join(map(str, each["loc"])), each["msg"]) for each in errors())
    return "; ".join(f"{place}: {said}" if place else said for place, said in places)[:400]


def _dump(value: Any) -> Any:
    if _is_model(type(value)):
        return value.model_dump(mode="json")
    if isinstance(value, PurePath):
        return str(value)
    raise TypeError(f"{type(value).__name__} is no JSON value")


def _first_line(error: Exception) -> str:
    return " ".join(str(error).split())[:400]


_GOOGLE = r"(?:args|arguments|parameters|params|keyword args|keyword arguments|other parameters):"
_GOOGLE_OTHERS = r"(?:returns?|yields?|raises|examples?|notes?|see also|attributes|references|warnings?|todo):"
_NUMPY = r"(?:other )?parameters"
_ENTRY = r"\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)"
_FIELD = r":(\w+)(?:\s+([^:]*))?:\s*(.*)"


def read_docstring(text: str) -> tuple[str, dict[str, str]]:
    """The description without sections, and the descriptions of parameters by name. Reads Google, NumPy and reST forms."""
    lines = inspect.cleandoc(text).splitlines()
    kept: list[str] = []
    descriptions: dict[str, str] = {}
    at = 0
    while at < len(lines):
        line, following = lines[at], lines[at + 1] if at + 1 < len(lines) else ""
        if re.fullmatch(r"-{3,}\s*", following) and line.strip():
            end = _next_underlined(lines, at + 2)
            if re.fullmatch(_NUMPY, line.strip().lower()):
                descriptions |= _numpy(lines[at + 2 : end])
            at = end
        elif re.fullmatch(_GOOGLE, line.strip().lower()):
            end = _end_of_block(lines, at)
            descriptions |= _google(lines[at + 1 : end])
            at = end
        elif re.fullmatch(_GOOGLE_OTHERS, line.strip().lower()):
            at = _end_of_block(lines, at)
        elif field := re.fullmatch(_FIELD, line.strip()):
            end = _end_of_block(lines, at)
            if field[1] in ("param", "parameter", "arg", "argument", "key", "keyword") and field[2]:
                descriptions[field[2].split()[-1].lstrip("*")] = _join([field[3], *lines[at + 1 : end]])
            at = end
        else:
            kept.append(line)
            at += 1
    return re.sub(r"\n{3,}", "\n\n", "\n".join(kept)).strip(), descriptions


def _next_underlined(lines: list[str], start: int) -> int:
    pairs = ((at, lines[at], lines[at + 1]) for at in range(start, len(lines) - 1))
    return next((at for at, line, below in pairs if line.strip() and re.fullmatch(r"-{3,}\s*", below)), len(lines))


def _end_of_block(lines: list[str], start: int) -> int:
    """The first line after `start` that is not indented further."""
    depth = _indent(lines[start])
    for at in range(start + 1, len(lines)):
        if lines[at].strip() and _indent(lines[at]) <= depth:
            return at
    return len(lines)


def _google(lines: list[str]) -> dict[str, str]:
    depth = min((_indent(line) for line in lines if line.strip()), default=0)
    return _entries(lines, depth, lambda line: [(name[1], name[2])] if (name := re.fullmatch(_ENTRY, line)) else [])


def _numpy(lines: list[str]) -> dict[str, str]:
    def names(line: str) -> list[tuple[str, str]]:
        said = line.partition(":")[0]
        return [(each.strip().lstrip("*"), "") for each in said.split(",")]

    return _entries(lines, 0, names)


def _entries(lines: list[str], depth: int, read: object) -> dict[str, str]:
    entries: dict[str, list[str]] = {}
    current: list[list[str]] = []
    for line in lines:
        if line.strip() and _indent(line) == depth:
            starts = read(line.strip())  # type: ignore[operator]  # a function from a line to names and texts
            if starts:
                current = [entries.setdefault(name, [text]) for name, text in starts]
                continue
        for each in current:
            each.append(line)
    return {name: _join(texts) for name, texts in entries.items()}


def _join(lines: list[str]) -> str:
    return " ".join(filter(None, (line.strip() for line in lines)))


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
