"""The `skill` tool: loads the text of a skill; offered only when there are skills."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar

from msgspec import Meta, Struct

from wolo.errors import ToolError
from wolo.guard.intents import Intent, ReadIntent
from wolo.messages.parts import ToolKind
from wolo.tools.tool import CallContext, OfferedSkill, ToolServices
from wolo.tools.tool_values import CallResult


class SkillArgs(Struct, frozen=True):
    name: Annotated[str, Meta(description="as in the list of skills")]


class SkillTool:
    """Load a skill: instructions for particular work, and the location of the files that belong to it."""

    name: ClassVar[str] = "skill"
    Args: ClassVar[type[Struct]] = SkillArgs
    aliases: ClassVar[Mapping[str, str]] = dict.fromkeys(("skill", "skill_name", "command", "id"), "name")
    reads_only: ClassVar[bool] = True
    kind: ClassVar[ToolKind] = "read"

    def intents(self, args: SkillArgs, services: ToolServices) -> Sequence[Intent]:
        path = _find(args, services).path
        return (ReadIntent(path, str(path), services.workspace.holds(path)),)

    async def run(self, args: SkillArgs, call: CallContext) -> CallResult:
        if recorded := call.services.recorded_result(call.call_id):
            return recorded
        found = _find(args, call.services)
        if call.judged is not None and not any(isinstance(each, ReadIntent) and each.path == found.path for each in call.judged):
            raise ToolError(f"The skill `{args.name}` has changed since this call was judged; nothing was done.")
        return CallResult(await asyncio.to_thread(found.tell))


def _find(args: SkillArgs, services: ToolServices) -> OfferedSkill:
    name = args.name.strip().removeprefix("/").removeprefix("skill:")
    if services.find_skill is None:
        raise ToolError("There are no skills here.")
    return services.find_skill(name)
