"""Assembles an agent from its parts, for conversations, subagents and replays."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import Struct, field

from wolo.agent.agent import AgentLoop
from wolo.agent.agent_services import AgentServices, BackgroundWork, MessageHistory
from wolo.agent.approvals import AskUser, CallReviewer
from wolo.agent.budget import Account, BudgetNotices, Limits
from wolo.agent.compaction.compactor import Compactor
from wolo.agent.hook_calls import AgentHooks
from wolo.agent.prompt_prefix import ChangedInstructions, LateTools, PromptPrefix
from wolo.agent.tool_calls import ToolCalls
from wolo.agent.tool_execution import Emit
from wolo.agent.verification import Verify
from wolo.conversation.resources.nested_instructions import NestedGiven, NestedInstructions
from wolo.guard.judge import Judge
from wolo.models.protocol import ModelClient
from wolo.tools.tool import ToolServices
from wolo.tools.toolbox import Toolbox

if TYPE_CHECKING:
    from wolo.agent.finish.finish_check import FinishCheck


MakeReviewer = Callable[[Judge, ToolServices, Emit], CallReviewer]


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
    reviewer: MakeReviewer | None = None
    """None: the user alone decides."""
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


def assemble(parts: AgentParts) -> AgentLoop:
    services, toolbox, emit = parts.services, parts.toolbox, parts.emit
    nested = (
        NestedGiven(parts.nested, parts.compactor, parts.history, services.secrets.hide, emit, parts.hooks)
        if parts.nested
        else None
    )
    calls = ToolCalls(
        toolbox,
        services,
        parts.judge,
        emit=emit,
        ask_user=parts.ask_user,
        hooks=parts.hooks,
        reviewer=parts.reviewer(parts.judge, services, emit) if parts.reviewer else None,
        add_instructions=nested.add_to if nested else None,
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
