"""The todo list of a conversation: what its last call of `todo` said."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from wolo.errors import ToolError
from wolo.messages.message import Message
from wolo.messages.parts import ToolPart
from wolo.tools.todo import Todo, TodoArgs, read_items
from wolo.tools.tool import TodoItem
from wolo.tools.toolbox import Toolbox

_TODO = Toolbox((Todo(),))


def latest_todos(messages: Sequence[Message]) -> tuple[TodoItem, ...] | None:
    """None: nobody has made a list yet; an empty one was cleared."""
    return next(filter(_is_list, map(todos_of, _calls_backwards(messages))), None)


def todos_of(part: ToolPart) -> tuple[TodoItem, ...] | None:
    """None for any other call, and for one that failed."""
    if part.tool.strip().lower() != Todo.name or part.outcome != "ok":
        return None
    try:
        _, args = _TODO.decode(part.tool, part.input)
        return read_items(args) if isinstance(args, TodoArgs) else None
    except ToolError:
        return None


def _is_list(items: tuple[TodoItem, ...] | None) -> bool:
    return items is not None


def _calls_backwards(messages: Sequence[Message]) -> Iterable[ToolPart]:
    return (part for message in reversed(messages) for part in reversed(message.calls))
