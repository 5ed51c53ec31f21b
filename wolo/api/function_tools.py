"""Python functions as tools of an agent."""

from __future__ import annotations

import asyncio
import inspect
import re
import time
import typing
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from contextvars import ContextVar, copy_context
from functools import partial, wraps
from threading import Thread
from typing import Any, TypedDict, Unpack, overload

import msgspec

from wolo.api.run_context import RunContext, ToolContext, active_run
from wolo.errors import ToolError, UsageError
from wolo.extensions.custom_tools.function_schema import ArgumentError, FunctionTool, UnusableFunctionError, as_json
from wolo.formats.format import ToolSpec
from wolo.guard.intents import CallIntent, Intent
from wolo.messages.parts import MediaPart
from wolo.tools.clipping import clip_and_keep
from wolo.tools.tool import CallContext, ToolServices
from wolo.tools.tool_values import Answered, CallResult

_NAME = r"[A-Za-z_][A-Za-z0-9_-]{0,63}"
"""Names that all providers take."""
_context: ContextVar[RunContext[Any]] = ContextVar("tool_context")


class ToolOptions(TypedDict, total=False):
    """Options of `@tool`."""

    name: str
    description: str
    reads_only: bool
    """It changes nothing, so that `plan` mode allows it."""
    in_loop: bool
    """A plain function runs in the event loop, which stands still meanwhile, in place of a thread."""
    parallel: bool
    """Calls may run side by side; without it those that only read, and async functions, do."""
    timeout_s: float
    """A longer call has failed. A thread cannot be stopped: its result is dropped."""
    retries: int
    """Times that a call which failed is repeated before the model gets the error."""
    approval: bool | Callable[[dict[str, Any]], bool]
    """Calls need an approval, or those for whose arguments the function is true."""


class ProgramTool:
    """A function of the embedding program. The program decides which calls need an approval; `plan` mode takes only readers."""

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        name: str = "",
        description: str = "",
        reads_only: bool = False,
        in_loop: bool = False,
        parallel: bool | None = None,
        timeout_s: float | None = None,
        retries: int = 0,
        approval: bool | Callable[[dict[str, Any]], bool] = False,
    ) -> None:
        """`ToolOptions` has the meanings. Raises UsageError for a function that cannot be a tool, and for impossible options."""
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
        if (timeout_s is not None and not timeout_s > 0) or retries < 0:
            raise UsageError(f"The tool {self.name} needs a timeout_s above 0 and retries of 0 or more.")
        if inspect.iscoroutinefunction(approval):
            raise UsageError(f"`approval` of the tool {self.name} cannot be async.", hint="on_approval of the agent may be.")
        is_async = inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)
        self.reads_only = reads_only
        self.is_parallel = (reads_only or is_async) if parallel is None else parallel
        self.spec = ToolSpec(self.name, description, self._tool.parameters)
        self.function = function
        self._runs_in_loop = in_loop or is_async
        self._timeout_s = timeout_s
        self._num_attempts = 1 + retries
        self._approval = approval

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def intents(self, args: Mapping[str, Any], services: ToolServices) -> Sequence[Intent]:
        asks = self._approval(dict(args)) if callable(self._approval) else self._approval
        return (CallIntent(f"tool:{self.name}", only_reads=self.reads_only, by_program="ask" if asks else "allow"),)

    async def run(self, args: Mapping[str, Any], call: CallContext) -> CallResult:
        services, began = call.services, time.monotonic()
        run = active_run.get()
        deps = run.deps if run else None
        token = _context.set(RunContext(call.call_id, services.shell.cwd, services.workspace.root, call.progress, deps))
        try:
            values = self._tool.values(args)
            text, media = _content(await self._attempts(values, call.progress))
        except ArgumentError as error:
            raise ToolError(str(error)) from error
        except (Exception, SystemExit) as error:  # a parser of command lines exits
            raise ToolError(f"{self.name} failed: {type(error).__name__}: {error}") from error
        finally:
            _context.reset(token)
        data = services.secrets.hide(text).encode(errors="replace")
        clipped = clip_and_keep(data, name=f"{self.name}-{call.call_id or 'output'}.txt", keep=services.save_output)
        return CallResult(clipped, Answered(clipped, time.monotonic() - began), media=media)

    async def _attempts(self, values: dict[str, Any], progress: Callable[[str], None]) -> Any:
        for attempt in range(1, self._num_attempts + 1):
            limit = asyncio.timeout(self._timeout_s)
            try:
                async with limit:
                    result = await self._attempt(values, progress)
                if _is_over(limit):  # the function blocks the loop, or catches the cancellation
                    raise TimeoutError
                return result
            except (Exception, SystemExit) as error:
                if attempt == self._num_attempts:
                    if _is_over(limit):
                        raise TimeoutError(f"it took longer than {self._timeout_s:g} s, and may still be running") from error
                    raise
        raise AssertionError

    async def _attempt(self, values: dict[str, Any], progress: Callable[[str], None]) -> Any:
        call = partial(_collect, self._tool.function, values, progress)
        result = call() if self._runs_in_loop else await _in_thread(call)
        if inspect.isawaitable(result):
            result = await result
        if not inspect.isasyncgen(result):
            return result
        async with aclosing(result) as pieces:
            return _join([_report(piece, progress) async for piece in pieces])


def _is_over(limit: asyncio.Timeout) -> bool:
    return (end := limit.when()) is not None and asyncio.get_running_loop().time() >= end


def _collect(function: Callable[..., Any], values: dict[str, Any], progress: Callable[[str], None]) -> Any:
    """Calls the function; a generator is read to its end."""
    result = function(**values)
    return _join([_report(piece, progress) for piece in result]) if inspect.isgenerator(result) else result


def _report(piece: Any, progress: Callable[[str], None]) -> Any:
    progress(_content(piece)[0])
    return piece


def _join(pieces: list[Any]) -> Any:
    """Texts as one; with images or files among them a list."""
    return pieces if any(isinstance(each, MediaPart) for each in pieces) else "".join(_content(each)[0] for each in pieces)


async def _in_thread(call: Callable[[], Any]) -> Any:
    """Runs the call in a thread of its own, which neither other waiting work nor the end of the process depends on."""
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[Any] = loop.create_future()

    def end(result: Any, error: BaseException | None) -> None:
        if not ended.done():
            if error is None:
                ended.set_result(result)
            else:
                ended.set_exception(error)

    def run() -> None:
        result: Any = None
        error: BaseException | None = None
        try:
            result = call()
        except StopIteration as stop:  # a future cannot carry it
            error = RuntimeError(f"StopIteration: {stop}")
        except BaseException as failure:
            error = failure
        with suppress(RuntimeError):  # the loop has been closed: nobody waits
            loop.call_soon_threadsafe(end, result, error)

    Thread(target=copy_context().run, args=(run,), daemon=True).start()
    return await ended


@overload
def tool(function: Callable[..., Any], **options: Unpack[ToolOptions]) -> ProgramTool: ...
@overload
def tool(**options: Unpack[ToolOptions]) -> Callable[[Callable[..., Any]], ProgramTool]: ...
def tool(function: Any = None, **options: Unpack[ToolOptions]) -> Any:
    """Marks a function as a tool: `@tool`, or `@tool(name=…)`. Its types and docstring become the schema.

    Plain functions run in a thread with a copy of the context, and generators report what they yield. Raises UsageError for a
    function that cannot be a tool.
    """
    if function is None:
        return lambda each: ProgramTool(each, **options)
    return ProgramTool(function, **options)


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


def _is_context(kind: Any) -> bool:
    return (typing.get_origin(kind) or kind) in (ToolContext, RunContext)


def _without_context(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function without the parameters of type ToolContext or RunContext, which gets them from the running call."""
    try:
        hints = typing.get_type_hints(function, include_extras=True)
        signature = inspect.signature(function)
    except (NameError, TypeError, ValueError):
        return function  # the schema says what is wrong with it
    names = [
        name
        for name, kind in hints.items()
        if name in signature.parameters and any(map(_is_context, (kind, *typing.get_args(kind))))
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
