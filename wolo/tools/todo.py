"""The `todo` tool: saves the whole task list with each call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar, get_args

from msgspec import Meta, Struct

from wolo.errors import ToolError
from wolo.guard.intents import Intent
from wolo.messages.message import Message
from wolo.messages.parts import ToolKind, ToolPart
from wolo.tools.tool import CallContext, ToolServices
from wolo.tools.tool_arguments import decode_arguments
from wolo.tools.tool_values import CallResult, TodoItem, TodoList, TodoStatus

MOST_ITEMS = 100
LONGEST_TEXT = 500
MARKS: Mapping[TodoStatus, str] = {"pending": "[ ]", "in_progress": "[>]", "completed": "[x]", "cancelled": "[-]"}

PLAN_FILE, STEPS = "plan_file", "steps"
"""Metadata keys of a call that handed a plan over: the file of the plan, and its steps, which are a new list."""

_STATUSES: tuple[TodoStatus, ...] = get_args(TodoStatus)
_SPELLINGS: Mapping[str, TodoStatus] = {
    **{status: status for status in _STATUSES},
    **dict.fromkeys(("", "todo", "to_do", "open", "not_started", "new", "waiting", "blocked"), "pending"),
    **dict.fromkeys(("doing", "active", "started", "current", "running", "wip"), "in_progress"),
    **dict.fromkeys(("done", "complete", "finished", "closed"), "completed"),
    **dict.fromkeys(("canceled", "dropped", "skipped"), "cancelled"),
}


class GivenItem(Struct, frozen=True):
    text: str
    status: Annotated[str, Meta(extra_json_schema={"enum": list(_STATUSES)})] = "pending"
    """Synonyms are accepted."""


class TodoArgs(Struct, frozen=True):
    items: Annotated[tuple[GivenItem | str, ...], Meta(description="all of them, in order; none clears the list")]


class Todo:
    """Keep a list of steps for a task with several steps. Send the whole list each time: when you start a step, when it is
    done, when the plan changes."""

    name: ClassVar[str] = "todo"
    Args: ClassVar[type[Struct]] = TodoArgs
    aliases: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(("todos", "todo_list", "list", "plan", "tasks", "steps"), "items"),
        **dict.fromkeys(("content", "title", "step", "task", "description", "name"), "text"),
        "state": "status",
    }
    reads_only: ClassVar[bool] = False
    kind: ClassVar[ToolKind] = "think"

    def intents(self, args: TodoArgs, services: ToolServices) -> Sequence[Intent]:
        return ()

    async def run(self, args: TodoArgs, call: CallContext) -> CallResult:
        items = read_items(args)
        return CallResult(as_text(items) or "The list is empty now.", TodoList(items))


def read_items(args: TodoArgs) -> tuple[TodoItem, ...]:
    """Raises ToolError for items without content."""
    if len(args.items) > MOST_ITEMS:
        raise ToolError(f"todo: {len(args.items)} items are too many; {MOST_ITEMS} is the most. Combine small steps.")
    items: list[TodoItem] = []
    for number, given in enumerate(args.items, start=1):
        item = GivenItem(given) if isinstance(given, str) else given
        if not (text := " ".join(item.text.split())):
            raise ToolError(f"todo: item {number} has no text.")
        status = _SPELLINGS.get("_".join(item.status.lower().replace("-", " ").split()))
        if status is None:
            raise ToolError(f"todo: item {number} has the status `{item.status}`. There are: {', '.join(_STATUSES)}.")
        items.append(TodoItem(text if len(text) <= LONGEST_TEXT else f"{text[: LONGEST_TEXT - 1]}…", status))
    return tuple(items)


def as_text(items: Sequence[TodoItem]) -> str:
    """`[x] write the parser`, line by line."""
    return "\n".join(f"{MARKS[item.status]} {item.text}" for item in items)


def latest_todos(messages: Sequence[Message]) -> tuple[TodoItem, ...] | None:
    """None: no list yet; an empty list was cleared."""
    calls = (part for message in reversed(messages) for part in reversed(message.calls))
    return next((items for items in map(todos_of, calls) if items is not None), None)


def todos_of(part: ToolPart) -> tuple[TodoItem, ...] | None:
    """None for other calls and for failed ones."""
    if isinstance(steps := part.metadata.get(STEPS), list | tuple) and part.outcome == "ok":
        return tuple(TodoItem(str(step), "pending") for step in steps)
    if part.tool.strip().lower() != Todo.name or part.outcome != "ok":
        return None
    try:
        args = decode_arguments(Todo(), part.input)
        return read_items(args) if isinstance(args, TodoArgs) else None
    except ToolError:
        return None
