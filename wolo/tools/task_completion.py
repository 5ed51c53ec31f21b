"""The tool that ends a task, for models that call tools in their text: elsewhere an answer without a call does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar

from msgspec import Meta, Struct

from wolo.errors import ToolError
from wolo.guard.intents import Intent
from wolo.messages.parts import ToolKind
from wolo.tools.tool import CallContext, Result, ToolServices


class TaskCompletionArgs(Struct, frozen=True):
    result: Annotated[str, Meta(description="your last word to the user: what was done, and what the user should know")]


class TaskCompletion:
    """End the task. Call it alone, when everything is done and checked."""

    name: ClassVar[str] = "task_completion"
    Args: ClassVar[type[Struct]] = TaskCompletionArgs
    aliases: ClassVar[Mapping[str, str]] = {"answer": "result", "summary": "result", "message": "result", "output": "result"}
    reads_only: ClassVar[bool] = False
    kind: ClassVar[ToolKind] = "other"

    def intents(self, args: TaskCompletionArgs, services: ToolServices) -> Sequence[Intent]:
        return ()

    async def run(self, args: TaskCompletionArgs, call: CallContext) -> Result:
        if not args.result.strip():
            raise ToolError("task_completion: the `result` is empty. Tell the user what was done.")
        return Result(text=args.result, terminate=True)
