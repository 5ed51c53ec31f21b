"""Python functions as tools of an agent."""

from __future__ import annotations

import inspect
import re
import time
import typing
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from functools import partial, wraps
from pathlib import Path
from typing import Any, overload

import msgspec
from msgspec import Struct

from wolo.errors import ToolError, UsageError
from wolo.extensions.custom_tools.function_schema import ArgumentError, FunctionTool, UnusableFunctionError, as_json
from wolo.formats.format import ToolSpec
from wolo.guard.intents import Intent
from wolo.messages.parts import MediaPart
from wolo.tools.clipping import clip_and_keep
from wolo.tools.tool import CallContext, ToolServices
from wolo.tools.tool_values import Answered, CallResult


class ToolContext(Struct, frozen=True):
    """The running call, for a function with a parameter of this type."""

    call_id: str
    cwd: Path
    """The working directory of commands."""
    root: Path
    """The workspace."""
    progress: Callable[[str], None]
    """Shows live output."""


_NAME = r"[A-Za-z_][A-Za-z0-9_-]{0,63}"
"""Names that all providers take."""
_context: ContextVar[ToolContext] = ContextVar("tool_context")


class ProgramTool:
    """A function of the embedding program. Its calls are not judged: the program chose to offer it."""

    def __init__(self, function: Callable[..., Any], *, name: str = "", description: str = "", reads_only: bool = False) -> None:
        """`reads_only`: calls may run in parallel. Raises UsageError for a function that cannot be a tool."""
        function = _name_function(function)
        shown = function.__name__
        try:
            self._tool = FunctionTool(_without_context(function))
        except UnusableFunctionError as error:
            raise UsageError(f"The function {shown} cannot be a tool: {error}.") from error
        self.name = name or self._tool.name
        description = description or self._tool.description
        if not description:
            raise UsageError(f"The function {shown} has no docstring.", hint="The model reads it to know what the tool does.")
        if not re.fullmatch(_NAME, self.name):
            raise UsageError(
                f"{self.name!r} cannot be the name of a tool: it takes up to 64 letters (a-z), digits, `_` and `-`.",
                hint="@tool(name=…) gives the function another name.",
            )
        self.reads_only = reads_only
        self.spec = ToolSpec(self.name, description, self._tool.parameters)
        self.function = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def intents(self, args: Mapping[str, Any], services: ToolServices) -> Sequence[Intent]:
        return ()

    async def run(self, args: Mapping[str, Any], call: CallContext) -> CallResult:
        services, began = call.services, time.monotonic()
        token = _context.set(ToolContext(call.call_id, services.shell.cwd, services.workspace.root, call.progress))
        try:
            value = await self._tool.call(args)
            text, media = _content(value)
        except ArgumentError as error:
            raise ToolError(str(error)) from error
        except (Exception, SystemExit) as error:  # a parser of command lines exits
            raise ToolError(f"{self.name} failed: {type(error).__name__}: {error}") from error
        finally:
            _context.reset(token)
        data = services.secrets.hide(text).encode(errors="replace")
        clipped = clip_and_keep(data, name=f"{self.name}-{call.call_id or 'output'}.txt", keep=services.save_output)
        return CallResult(clipped, Answered(clipped, time.monotonic() - began), media=media)


@overload
def tool(function: Callable[..., Any], *, name: str = "", description: str = "", reads_only: bool = False) -> ProgramTool: ...
@overload
def tool(*, name: str = "", description: str = "", reads_only: bool = False) -> Callable[[Callable[..., Any]], ProgramTool]: ...
def tool(function: Any = None, *, name: str = "", description: str = "", reads_only: bool = False) -> Any:
    """Marks a function as a tool: `@tool`, or `@tool(name=…)`. Its types and docstring become the schema.

    Raises UsageError for a function that cannot be a tool.
    """
    if function is None:
        return lambda each: ProgramTool(each, name=name, description=description, reads_only=reads_only)
    return ProgramTool(function, name=name, description=description, reads_only=reads_only)


def as_tool(function: Any) -> ProgramTool:
    """Raises UsageError for something that is no function."""
    if isinstance(function, ProgramTool):
        return function
    if not callable(function):
        raise UsageError(f"{function!r} is no tool.", hint="Pass functions, or names of built-in tools.")
    return ProgramTool(function)


def _content(value: Any) -> tuple[str, tuple[MediaPart, ...]]:
    """Converts a result for the model: text, JSON for other values, and images and files as such."""
    if isinstance(value, str):
        return value, ()
    if isinstance(value, bytes):
        with suppress(UnicodeDecodeError):
            return value.decode(), ()
    several = value if isinstance(value, list | tuple) else (value,)
    media = tuple(each for each in several if isinstance(each, MediaPart))
    if not media:
        return msgspec.json.encode(as_json(value)).decode(), ()
    lines = (
        f"[{each.media_type}, {len(each.data or b''):,} bytes]" if isinstance(each, MediaPart) else _content(each)[0]
        for each in several
    )
    return "\n".join(lines), media


def _name_function(function: Callable[..., Any]) -> Callable[..., Any]:
    """A `partial`, or an object with `__call__`, as a function with a name and a docstring."""
    if hasattr(function, "__name__"):
        return function
    bound: Mapping[str, Any] = {}
    if isinstance(function, partial):
        inner, bound = _name_function(function.func), function.keywords
        name, text = inner.__name__, inner.__doc__
    else:
        inner = type(function).__call__
        name, text = type(function).__name__, inner.__doc__ or type(function).__doc__

    def call(**arguments: Any) -> Any:
        return function(**arguments)

    call.__name__, call.__doc__ = name, text
    with suppress(NameError, TypeError, ValueError):  # the schema says what is wrong with it
        signature = inspect.signature(function)
        kept = [each for each in signature.parameters.values() if each.name not in bound]
        call.__signature__ = signature.replace(parameters=kept)  # type: ignore[attr-defined]  # read by `inspect`
        hints = typing.get_type_hints(inner, include_extras=True)
        call.__annotations__ = {each.name: hints[each.name] for each in kept if each.name in hints}
    return call


def _without_context(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function without the parameters of type ToolContext, which gets them from the running call."""
    try:
        hints = typing.get_type_hints(function, include_extras=True)
        signature = inspect.signature(function)
    except (NameError, TypeError, ValueError):
        return function  # the schema says what is wrong with it
    names = [
        name
        for name, kind in hints.items()
        if name in signature.parameters and (kind is ToolContext or ToolContext in typing.get_args(kind))
    ]
    if not names:
        return function

    @wraps(function)
    def call(**arguments: Any) -> Any:
        return function(**arguments, **dict.fromkeys(names, _context.get()))

    del call.__wrapped__  # its signature would be read
    call.__signature__ = signature.replace(  # type: ignore[attr-defined]  # read by `inspect`
        parameters=[each for name, each in signature.parameters.items() if name not in names]
    )
    call.__annotations__ = {name: kind for name, kind in hints.items() if name not in names}
    return call
