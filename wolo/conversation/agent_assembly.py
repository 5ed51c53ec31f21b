"""Assembles an agent from its parts, for conversations, subagents and replays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct, field

from wolo.agent.agent import AgentLoop
from wolo.agent.agent_services import AgentServices, BackgroundWork, MessageHistory
from wolo.agent.approvals import AskUser
from wolo.agent.budget import Account, BudgetNotices, Limits
from wolo.agent.compaction.compactor import Compactor
from wolo.agent.hook_calls import AgentHooks
from wolo.agent.prompt_prefix import ChangedInstructions, LateTools, PromptPrefix
from wolo.agent.tool_calls import AddInstructions, ToolCalls
from wolo.agent.tool_execution import Emit
from wolo.agent.verification import Verify
from wolo.guard.intents import Intent, ReadIntent, WriteIntent
from wolo.guard.judge import Judge
from wolo.messages.message import INSTRUCTIONS
from wolo.messages.parts import ToolPart
from wolo.models.protocol import ModelClient
from wolo.tools.tool import ToolServices
from wolo.tools.toolbox import Toolbox

if TYPE_CHECKING:
    from wolo.agent.finish.finish_check import FinishCheck
    from wolo.conversation.resources.nested_instructions import NestedGiven, NestedInstructions


class AgentParts(Struct, frozen=True, kw_only=True):
    asker: ModelClient
    emit: Emit
    hooks: AgentHooks
    judge: Judge
    services: ToolServices
    toolbox: Toolbox
    system: str
    compactor: Compactor
    history: MessageHistory
    account: Account
    """A subagent shares its parent's."""
    ask_user: AskUser | None = None
    """None: calls that need an approval are denied."""
    limits: Limits = field(default_factory=Limits)
    session_id: str = ""
    verify: Verify | None = None
    finish: Callable[[], FinishCheck] | None = None
    open_small: Callable[[], ModelClient] | None = None
    """Opens the model for summaries; None: the asker."""
    late_tools: LateTools | None = None
    reread: Callable[[], str] | None = None
    """Builds the system prompt again from the files on disk."""
    changed_instructions: ChangedInstructions | None = None
    nested: NestedInstructions | None = None
    """Reads instructions of subfolders; None: they are not given."""
    tasks: BackgroundWork | None = None
    is_subagent: bool = False


def _instruction_adder(parts: AgentParts, read: NestedInstructions) -> AddInstructions:
    tracker: NestedGiven | None = None

    async def add(part: ToolPart, message_id: str, intents: Sequence[Intent]) -> ToolPart:
        nonlocal tracker
        if tracker is None:
            from wolo.conversation.resources.nested_instructions import NestedGiven  # noqa: PLC0415  # not before the first call

            compactor, history = parts.compactor, parts.history
            tracker = NestedGiven(read, lambda: compactor.apply_cut(history.messages), parts.services.secrets.hide, parts.emit)
        added = await tracker.add_to(part, message_id, intents)
        if added is not part and parts.hooks.is_active:
            touched = next((str(each.path) for each in intents if isinstance(each, ReadIntent | WriteIntent)), "")
            for name in added.metadata[INSTRUCTIONS]:
                facts = {"file_path": name, "load_reason": "nested_traversal", "trigger_file_path": touched}
                await parts.hooks.run("InstructionsLoaded", **facts)
        return added

    return add


def assemble(parts: AgentParts) -> AgentLoop:
    services, toolbox, emit = parts.services, parts.toolbox, parts.emit
    calls = ToolCalls(
        toolbox,
        services,
        parts.judge,
        emit=emit,
        ask_user=parts.ask_user,
        hooks=parts.hooks,
        add_instructions=_instruction_adder(parts, parts.nested) if parts.nested else None,
    )
    prefix = PromptPrefix(
        parts.system,
        toolbox,
        parts.compactor,
        services.secrets,
        late_tools=parts.late_tools,
        reread=parts.reread,
        changed_instructions=parts.changed_instructions,
    )
    return AgentLoop(
        AgentServices(
            asker=parts.asker,
            emit=emit,
            hooks=parts.hooks,
            calls=calls,
            prefix=prefix,
            compactor=parts.compactor,
            history=parts.history,
            shell=services.shell,
            mode=services.mode,
            account=parts.account,
            limits=parts.limits,
            budget=None if parts.limits == parts.account.limits == Limits() else BudgetNotices(),
            session_id=parts.session_id,
            verify=parts.verify,
            finish=parts.finish,
            open_small=parts.open_small,
            tasks=parts.tasks,
            is_subagent=parts.is_subagent,
        )
    )
