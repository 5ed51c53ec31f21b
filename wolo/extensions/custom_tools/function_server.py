"""Loads one file of tools in a process of its own, and serves calls as JSON lines.

Answers are written to a copy of stdout; stdout itself becomes stderr, so what a tool prints breaks nothing. The process may be
unable to see wolo and the file of tools, so it gets their text: see `tool_listing.py`.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import inspect
import io
import json
import linecache
import os
import sys
import traceback
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from wolo.extensions.custom_tools.function_schema import ArgumentError, FunctionTool, UnusableFunctionError, as_json

ENTRY_POINT = "entry point "
"""Begins the name of a file that is none: `entry point NAME=MODULE:ATTRIBUTE`."""
_OWN = str(Path(__file__).parent)


def main(where: str, text: str, requests: IO[bytes], *, only_lists: bool) -> None:
    serve(where, text, requests, (_load, _answer), only_lists=only_lists)


def serve(
    where: str, text: str, requests: IO[bytes], server: tuple[Callable[..., Any], Callable[..., Any]], *, only_lists: bool
) -> None:
    """`server` loads the file, giving what it holds and how it is listed, and answers a request with what it holds."""
    load, answer_to = server
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8", errors="replace")
    os.dup2(2, 1)
    try:
        content, listing = load(where, text)
    except BaseException as error:
        content, listing = None, {"tools": [], "problems": [_problem(error, where)]}
    _send(answers, listing)
    if only_lists:
        return
    process = os.getpid()
    for line in requests:
        request = json.loads(line)
        answer = answer_to(content, request)
        if os.getpid() != process:
            os._exit(0)  # a tool forked, and its child came back: only the parent answers
        _send(answers, {"id": request["id"], **answer})


def load_module(where: str, text: str) -> types.ModuleType:
    """The file as a module, from the text that the user allowed."""
    module = types.ModuleType(f"wolo_tools_{Path(where).stem}")
    module.__file__ = where
    sys.modules[module.__name__] = module
    linecache.cache[where] = (len(text), None, text.splitlines(keepends=True), where)
    exec(compile(text, where, "exec", dont_inherit=True), module.__dict__)
    return module


def _load(where: str, text: str) -> tuple[dict[str, FunctionTool], dict[str, Any]]:
    if where.startswith(ENTRY_POINT):
        module, functions = _from_package(where.removeprefix(ENTRY_POINT))
    else:
        module = load_module(where, text)
        functions = _public_functions(module)
    tools, listing = make_tools(functions)
    return tools, {**listing, **declarations(module)}


def make_tools(
    functions: Iterable[tuple[str, Callable[..., Any]]], *, needs_docstring: bool = False
) -> tuple[dict[str, FunctionTool], dict[str, Any]]:
    """The tools by name; `tools` and `problems` of the listing."""
    tools: dict[str, FunctionTool] = {}
    problems = []
    for name, function in functions:
        try:
            if needs_docstring and not (function.__doc__ or "").strip():
                raise UnusableFunctionError("it has no docstring")
            tools[name] = FunctionTool(function)
        except UnusableFunctionError as error:
            problems.append({"line": _line_of(function), "message": f"{name} is no tool: {error}"})
    listed = [
        {"name": name, "description": tool.description, "parameters": tool.parameters, "line": _line_of(tool.function)}
        for name, tool in tools.items()
    ]
    return tools, {"tools": listed, "problems": problems}


def declarations(module: types.ModuleType) -> dict[str, Any]:
    effects, timeout_s = getattr(module, "EFFECTS", ()), getattr(module, "TIMEOUT_S", None)
    if isinstance(effects, str) or not all(isinstance(each, str) for each in effects):
        raise ValueError('EFFECTS is no list such as ["network", "write"]')
    return {"effects": list(effects), "timeout_s": timeout_s}


def _from_package(entry: str) -> tuple[types.ModuleType, list[tuple[str, Callable[..., Any]]]]:
    name, _, value = entry.partition("=")
    path, _, attribute = value.partition(":")
    module = importlib.import_module(path)
    exported = getattr(module, attribute) if attribute else module
    if isinstance(exported, types.ModuleType):
        return exported, _public_functions(exported)
    if not callable(exported):
        raise ValueError(f"{value}, the entry point {name}, is no function and no module")
    return module, [(exported.__name__, exported)]


def _public_functions(module: types.ModuleType) -> list[tuple[str, Callable[..., Any]]]:
    """Those that the module itself defines and describes, in its order."""
    return [
        (name, each)
        for name, each in vars(module).items()
        if inspect.isfunction(each)
        and not name.startswith("_")
        and each.__module__ == module.__name__
        and (each.__doc__ or "").strip()
    ]


def _line_of(function: Callable[..., Any]) -> int:
    code = getattr(inspect.unwrap(function), "__code__", None)
    return code.co_firstlineno if code else 0


def _answer(tools: Mapping[str, FunctionTool], request: Mapping[str, Any]) -> dict[str, Any]:
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            result = asyncio.run(tools[request["tool"]].call(request["input"]))
        text = as_text(result)
    except ArgumentError as error:
        return {"output": str(error), "is_error": True}
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return {"output": explain(error), "is_error": True, "printed": printed.getvalue()}
    return {"output": text, "is_error": False, "printed": printed.getvalue()}


def as_text(result: Any) -> str:
    if result is None or isinstance(result, str):
        return result or ""
    return json.dumps(as_json(result), ensure_ascii=False, indent=2)


def explain(error: BaseException) -> str:
    """The error, with the lines of the user's code that led to it."""
    output = "".join(traceback.format_exception_only(error)).strip()
    if frames := list(_frames(error)):
        output = f"Traceback (most recent call last):\n{''.join(traceback.format_list(frames)).rstrip()}\n{output}"
    return output


def _frames(error: BaseException) -> Iterator[traceback.FrameSummary]:
    library = os.path.dirname(asyncio.__file__)  # noqa: PTH120  # compared as text
    for frame in traceback.extract_tb(error.__traceback__):
        if not frame.filename.startswith((_OWN, library)):
            yield frame


def _problem(error: BaseException, where: str) -> dict[str, Any]:
    if isinstance(error, SyntaxError) and error.filename == where:
        return {"line": error.lineno or 0, "message": f"SyntaxError: {error.msg}"}
    line = next((frame.lineno for frame in reversed(list(_frames(error))) if frame.filename == where), 0)
    return {"line": line or 0, "message": "".join(traceback.format_exception_only(error)).strip()}


def _send(answers: IO[str], value: Mapping[str, Any]) -> None:
    answers.write(json.dumps(value, ensure_ascii=False) + "\n")
    answers.flush()
