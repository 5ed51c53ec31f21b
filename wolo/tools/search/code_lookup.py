"""The tool `lsp`: definitions, references, symbols and the preview of a rename, from an installed language server."""

from __future__ import annotations

import asyncio
import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal
from urllib.parse import unquote, urlsplit

from msgspec import Meta, Struct

from wolo.errors import ToolError
from wolo.guard.intents import Intent, ReadIntent
from wolo.messages.parts import ToolKind
from wolo.tools.clipping import clip
from wolo.tools.tool import CallContext, ToolServices
from wolo.tools.tool_values import CallResult, Listing

Action = Literal["definition", "references", "symbols", "rename"]
_METHODS: Mapping[Action, str] = {
    "definition": "textDocument/definition",
    "references": "textDocument/references",
    "symbols": "textDocument/documentSymbol",
    "rename": "textDocument/rename",
}
_KINDS = dict(
    enumerate(
        (
            *("file", "module", "namespace", "package", "class", "method", "property", "field", "constructor", "enum"),
            *("interface", "function", "variable", "constant", "string", "number", "boolean", "array", "object", "key", "null"),
            *("enum member", "struct", "event", "operator", "type parameter"),
        ),
        start=1,
    )
)
_MOST_PLACES = 100
_MOST_LINE_CHARS = 200
_MOST_FILE_BYTES = 1024 * 1024
_MOST_DEPTH = 20


class LspArgs(Struct, frozen=True):
    action: Action
    path: str
    line: int | None = None
    name: Annotated[str | None, Meta(description="the identifier in that line")] = None
    new_name: Annotated[str | None, Meta(description="for rename, which changes no file")] = None


class CodeLookup:
    """Ask a language server, which knows the code better than a search: the `definition` of a name, all `references` to it, the
    `symbols` of a file, or what a `rename` would change."""

    name: ClassVar[str] = "lsp"
    Args: ClassVar[type[Struct]] = LspArgs
    aliases: ClassVar[Mapping[str, str]] = {"file_path": "path", "file": "path", "operation": "action", "symbol": "name"}
    reads_only: ClassVar[bool] = True
    kind: ClassVar[ToolKind] = "search"

    def intents(self, args: LspArgs, services: ToolServices) -> Sequence[Intent]:
        if args.action != "symbols" and not args.name:
            raise ToolError(f"`{args.action}` needs the `name` and, where it occurs more than once, its `line`.")
        if (args.action == "rename") != bool(args.new_name):
            raise ToolError("`rename` needs a `new_name`." if not args.new_name else "`new_name` is for the action `rename`.")
        resolved = services.workspace.resolve(args.path)
        return (ReadIntent(resolved.path, args.path, resolved.inside),)

    async def run(self, args: LspArgs, call: CallContext) -> CallResult:
        if recorded := call.services.recorded_result(call.call_id):
            return recorded
        if call.services.edit_checks is None:
            raise ToolError("No language server can be asked here.")
        path = call.judged_path(args.path).path
        params: dict[str, Any] = {}
        if args.name:
            if (text := await asyncio.to_thread(_read, path)) is None:
                raise ToolError(f"{args.path} is no text file of at most {_MOST_FILE_BYTES >> 20} MB.")
            params["position"] = _find(text, args.name, args.line)
        if args.action == "references":
            params["context"] = {"includeDeclaration": True}
        if args.action == "rename":
            params["newName"] = args.new_name
        answer = await call.services.edit_checks().look_up(path, _METHODS[args.action], params)
        if not (rows := await asyncio.to_thread(_describe, args.action, answer, call.services)):
            raise ToolError(f"The language server knows no {'such name' if args.name else 'symbols'} there.")
        more = [f"… and {len(rows) - _MOST_PLACES:,} more"] if args.action != "rename" and len(rows) > _MOST_PLACES else []
        shown = rows if args.action == "rename" else [*rows[:_MOST_PLACES], *more]
        return CallResult(clip("\n".join((*shown, "")).encode()).text, Listing("lsp", tuple(shown), len(rows)))


def _find(text: str, name: str, line: int | None) -> dict[str, int]:
    """The position of an identifier, in UTF-16 units. Raises ToolError."""
    lines = text.split("\n")
    if line is not None and not 1 <= line <= len(lines):
        raise ToolError(f"The file has {len(lines)} lines.")
    numbers = range(len(lines)) if line is None else (line - 1,)
    for number in numbers:
        if match := re.search(rf"(?<!\w){re.escape(name)}(?!\w)", lines[number]):
            return {"line": number, "character": len(lines[number][: match.start()].encode("utf-16-le")) // 2}
    raise ToolError(f"`{name}` is not in {'the file' if line is None else f'line {line}'}.")


def _describe(action: Action, answer: Any, services: ToolServices) -> list[str]:
    if action == "symbols":
        return list(_symbols(answer))
    if action == "rename":
        return list(_changes(answer, services))
    places = answer if isinstance(answer, list) else [answer]
    return list(dict.fromkeys(filter(None, (_place(each, services) for each in places))))


def _place(place: Any, services: ToolServices) -> str:
    """`path:line: text`; empty for what is no place. The text of a file is shown only where it may be read."""
    if not isinstance(place, dict):
        return ""
    path = _path(place.get("uri") or place.get("targetUri"))
    line = _line(place.get("range") or place.get("targetSelectionRange"))
    if path == Path("/") or line is None:
        return ""
    text = _text(path, services)
    lines = text.split("\n") if text is not None else []
    content = f": {lines[line].strip()[:_MOST_LINE_CHARS]}" if line < len(lines) else ""
    return f"{services.workspace.relative(path)}:{line + 1}{content}"


def _symbols(rows: Any, depth: int = 0) -> Iterator[str]:
    for row in rows if isinstance(rows, list) and depth < _MOST_DEPTH else ():
        if not isinstance(row, dict):
            continue
        location = row.get("location")
        place = row.get("selectionRange") or row.get("range") or (location.get("range") if isinstance(location, dict) else None)
        if (line := _line(place)) is not None:
            kind = _KINDS.get(row["kind"], "") if isinstance(row.get("kind"), int) else ""
            yield f"{'  ' * depth}{line + 1}: {kind} {row.get('name')}"
        yield from _symbols(row.get("children"), depth + 1)


def _changes(answer: Any, services: ToolServices) -> Iterator[str]:
    """A unified diff of the files that may be read; others are named."""
    for uri, edits in _edits(answer):
        path = _path(uri)
        name, text = services.workspace.relative(path), _text(path, services)
        if text is None:
            yield f"{name}: {len(edits)} changes, in a file that is not shown"
            continue
        changed = _apply(text, edits)
        yield from difflib.unified_diff(text.split("\n"), changed.split("\n"), f"a/{name}", f"b/{name}", lineterm="", n=1)


def _edits(answer: Any) -> Iterator[tuple[Any, list[Any]]]:
    if not isinstance(answer, dict):
        return
    for change in answer.get("documentChanges") or ():
        if isinstance(change, dict) and isinstance(change.get("textDocument"), dict):
            yield change["textDocument"].get("uri"), [*(change.get("edits") or ())]
    if not answer.get("documentChanges") and isinstance(changes := answer.get("changes"), dict):
        yield from ((uri, [*(edits or ())]) for uri, edits in changes.items())


def _apply(text: str, edits: Sequence[Any]) -> str:
    """From the last to the first, so that positions hold; edits of another form are skipped."""
    starts = [0]
    for line in text.split("\n"):
        starts.append(starts[-1] + len(line) + 1)
    matches = []
    for edit in edits:
        try:
            begin, end = (_offset(text, starts, edit["range"][side]) for side in ("start", "end"))
            matches.append((begin, end, str(edit["newText"])))
        except (KeyError, TypeError, IndexError):
            continue
    for begin, end, new in sorted(matches, reverse=True):
        text = text[:begin] + new + text[end:]
    return text


def _offset(text: str, starts: Sequence[int], position: Any) -> int:
    line = starts[int(position["line"])]
    rest = text[line:].split("\n", 1)[0].encode("utf-16-le")
    return line + len(rest[: 2 * int(position["character"])].decode("utf-16-le", "ignore"))


def _path(uri: Any) -> Path:
    """`/` for anything but a local file."""
    parts = urlsplit(uri) if isinstance(uri, str) else None
    return Path("/", unquote(parts.path) if parts is not None and parts.scheme == "file" else "")


def _line(place: Any) -> int | None:
    try:
        return max(int(place["start"]["line"]), 0)
    except (KeyError, TypeError, ValueError):
        return None


def _text(path: Path, services: ToolServices) -> str | None:
    """None for a file outside the workspace, of no text, or that a rule keeps from being read."""
    real = path.resolve()
    inside = any(real.is_relative_to(root) for root in (services.workspace.root, *services.workspace.extra))
    return _read(real) if inside and services.is_readable(real) else None


def _read(path: Path) -> str | None:
    try:
        return path.read_text("utf-8") if path.stat().st_size <= _MOST_FILE_BYTES else None
    except (OSError, UnicodeDecodeError):
        return None
