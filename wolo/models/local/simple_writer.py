"""Writes one file with a tiny model: starts the code for it, checks the result, retries once."""

from __future__ import annotations

import ast
import itertools
import json
import re
import tomllib
import warnings
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path, PurePath
from typing import Final

from msgspec import Struct

from wolo.errors import BadAnswer
from wolo.messages.deltas import CallDelta
from wolo.messages.parts import new_id
from wolo.models.local import simple_texts as texts
from wolo.models.local.local_chat import Completion, Sampling, Turn, sentence
from wolo.models.protocol import Listener

FILE_TOKENS: Final = 1024
PROSE_TOKENS: Final = 400
"""Tiny models repeat themselves beyond this."""
TRIES: Final = 2
OTHER_MODEL: Final = "Ask for something smaller, or use a larger model with --model."

Complete = Callable[[Sequence[Turn], Sampling, "CallStream | None"], Awaitable[Completion]]


class FileRequest(Struct, frozen=True, kw_only=True):
    path: str
    request: str
    old: str | None = None
    """Current content; None: a new file."""

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
        label: str,
    ) -> None:
        self._complete = complete
        self._announce_attempt = announce_attempt
        self._listener = listener
        self._max_tokens = max_tokens
        self._label = label

    async def write(self, order: FileRequest) -> tuple[str, str]:
        """Call id used for display, and the text. Raises BadAnswer if every attempt failed."""
        fault = ""
        for attempt in range(1, TRIES + 1):
            if fault:
                error = BadAnswer(
                    f"{sentence(self._label)} wrote a {order.path} that cannot be used ({fault}).", hint=OTHER_MODEL
                )
                await self._listener.on_attempt_failed(error, attempt - 1, TRIES, 0.0)
                await self._announce_attempt(attempt)
            call_id = new_id("call")
            text, fault = await self._write_once(order, call_id, attempt)
            if not fault:
                return call_id, text
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
        completion = await self._complete(turns, sampling, stream)
        await stream.end()
        text = completion.text.removeprefix(prefill).removesuffix(order.fence).strip("\n")
        if completion.cut_off:
            if not is_new_prose:
                return text, "it did not come to an end"
            text = whole_paragraphs(text)
        return _checked(order, f"{text}\n" if text else "")


def _turns(order: FileRequest) -> list[Turn]:
    if order.old is None:
        return texts.new_file(order.request, order.path, order.language, order.fence)
    return texts.changed_file(order.request, order.path, order.old, order.language, order.fence)


def _checked(order: FileRequest, text: str) -> tuple[str, str]:
    if order.old is not None and order.language == "python":
        text = restore_definitions(order.old, text, order.request)
    elif order.old is not None and loses_content(order.old, text):
        return text, "most of what was in it would be lost"
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


KEPT_SHARE: Final = 0.5
"""Minimum share of lines a changed file must keep; Python is compared by definitions instead."""
_FUNCTIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_IMPORTS: Final = (ast.Import, ast.ImportFrom)
_REMOVING: Final = frozenset(("remove", "delete", "drop", "rename", "replace", "without"))
_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def syntax_problem(path: str, text: str) -> str:
    """Syntax error of the text for this file type; empty if none."""
    if not text.strip():
        return "it is empty"
    try:
        match PurePath(path).suffix.lower():
            case ".py":
                _parse(text)
            case ".json":
                json.loads(text)
            case ".toml":
                tomllib.loads(text)
    except SyntaxError as error:
        return f"line {error.lineno}: {error.msg}"
    except (ValueError, RecursionError, MemoryError) as error:
        return str(error) or "it cannot be parsed"
    return ""


def restore_definitions(old: str, new: str, request: str) -> str:
    """Restore definitions of the old file that the model omitted.

    Tiny models answer "add a power function" with that function alone. A name is removed only if the request says so.
    """
    try:
        old_tree, new_tree = _parse(old), _parse(new)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return new  # cannot be compared, so accept it
    words = set(re.findall(r"\w+", request))
    may_go = words if _REMOVING & {word.lower() for word in words} else set()
    before, present = _definitions(old_tree), _definitions(new_tree)
    if not before.keys() - present.keys() - may_go:
        return new
    bodies = {name: _lines_of(new, node) for name, node in present.items()}
    old_lines = old.splitlines()
    imports_at = _imports_end(old_lines, old_tree)
    imports = [line for line in _imports(new, new_tree) if line not in old_lines]
    if imports and old_lines[imports_at : imports_at + 1] not in ([], [""]):
        imports += ["", ""]
    joined = [*old_lines[:imports_at], *imports]
    at = imports_at
    for name, node in before.items():
        first, last = _span(node)
        joined += old_lines[at : first - 1]
        joined += bodies.get(name, [] if name in may_go else old_lines[first - 1 : last])
        at = last
    added = (line for name, body in bodies.items() if name not in before for line in ("", "", *body))
    return "\n".join([*joined, *added, *old_lines[at:]]).strip("\n") + "\n"


def loses_content(old: str, new: str) -> bool:
    """Check whether a changed file lost too many lines."""
    before = {line.strip() for line in old.splitlines() if line.strip()}
    after = {line.strip() for line in new.splitlines()}
    return len(before & after) < len(before) * KEPT_SHARE


def whole_paragraphs(text: str) -> str:
    """Truncate prose after the last complete sentence or line."""
    end = max(text.rfind(mark) + len(mark.rstrip()) for mark in (".\n", ". ", "!\n", "?\n", "\n\n"))
    return text[:end].rstrip() if end > len(text) // 2 else text.rpartition("\n")[0].rstrip() or text


def _parse(text: str) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # do not show warnings about odd escapes
        tree = ast.parse(text)
        compile(text, "written", "exec", dont_inherit=True)  # finds errors the parser misses, such as a stray `return`
    return tree


def _definitions(tree: ast.Module) -> dict[str, _Definition]:
    """Top-level definitions in file order; of duplicates the last wins."""
    by_name = {node.name: node for node in tree.body if isinstance(node, _FUNCTIONS)}
    return dict(sorted(by_name.items(), key=lambda item: item[1].lineno))


def _span(node: _Definition) -> tuple[int, int]:
    """First and last line, from 1, including decorators."""
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    return first, node.end_lineno or node.lineno


def _lines_of(text: str, node: _Definition) -> list[str]:
    first, last = _span(node)
    return text.splitlines()[first - 1 : last]


def _imports(text: str, tree: ast.Module) -> list[str]:
    lines = text.splitlines()
    return [line for node in tree.body if isinstance(node, _IMPORTS) for line in lines[node.lineno - 1 : node.end_lineno]]


def _imports_end(lines: list[str], tree: ast.Module) -> int:
    """Number of lines before further imports: after imports, docstring or opening comments."""
    top = itertools.takewhile(lambda node: not isinstance(node, _FUNCTIONS), tree.body)
    ends = [node.end_lineno or 0 for node in top if isinstance(node, _IMPORTS)]
    if not ends and ast.get_docstring(tree) is not None:
        ends = [tree.body[0].end_lineno or 0]
    comments = next((number for number, line in enumerate(lines) if not line.startswith("#")), len(lines))
    return max([comments, *ends])
