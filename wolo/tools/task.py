"""The tools `task`, which delegates to a subagent, and `task_completion`, which ends the turn of models that call tools in
text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar

from msgspec import Meta, Struct

from wolo.errors import ToolError
from wolo.guard.intents import CallIntent, Intent
from wolo.messages.parts import ToolKind
from wolo.tools.tool import CallContext, ToolServices
from wolo.tools.tool_values import DEFAULT, CallResult, SubagentOffer, TaskRequest


class TaskArgs(Struct, frozen=True):
    prompt: str
    agent: Annotated[str, Meta(description="one of those above")] = DEFAULT
    background: Annotated[bool, Meta(description="return at once; the result comes later as a message")] = False
    resume: Annotated[str, Meta(description="id of an ended task to continue")] = ""


class Task:
    """Delegate a task to a subagent. It starts with your prompt only, works in the same directory under the same rules, and
    returns only its final answer: say in the prompt what the answer must contain. Several calls in one answer to agents that
    only read run in parallel. Never poll a task in the background: go on with other work, or end your turn."""

    name: ClassVar[str] = "task"
    Args: ClassVar[type[Struct]] = TaskArgs
    aliases: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(("subagent_type", "agent_type", "subagent", "agent_name"), "agent"),
        **dict.fromkeys(("task", "instructions"), "prompt"),
        "run_in_background": "background",
        **dict.fromkeys(("task_id", "resume_id"), "resume"),
        **dict.fromkeys(("title", "model"), ""),
    }
    reads_only: ClassVar[bool] = False
    kind: ClassVar[ToolKind] = "other"

    def intents(self, args: TaskArgs, services: ToolServices) -> Sequence[Intent]:
        if not args.prompt.strip():
            raise ToolError("task: the prompt is empty.")
        offer = find(_agent(args, services), services.agents)
        return (CallIntent(f"task:{offer.name}", only_reads=offer.only_reads),)

    async def run(self, args: TaskArgs, call: CallContext) -> CallResult:
        if recorded := call.services.recorded_result(call.call_id):
            return recorded
        if call.services.delegate is None:
            raise ToolError("No subagent is available here; do it yourself.")
        agent = find(_agent(args, call.services), call.services.agents).name
        request = TaskRequest(agent=agent, prompt=args.prompt, background=args.background, resume=args.resume.strip())
        return await call.services.delegate(request, call)


def _agent(args: TaskArgs, services: ToolServices) -> str:
    """A resumed task keeps its agent. Raises ToolError."""
    if not args.resume.strip():
        return args.agent
    if services.find_task is None:
        raise ToolError("No task can be resumed here; start a new one.")
    return services.find_task(args.resume.strip())


def find(name: str, offers: Sequence[SubagentOffer]) -> SubagentOffer:
    """Ignores case. Raises ToolError with the known names."""
    agent_name = name.strip() or DEFAULT
    for offer in offers:
        if offer.name == agent_name:
            return offer
    for offer in offers:
        if offer.name.lower() == agent_name.lower():
            return offer
    if agent_name.lower() in ("general-purpose", "general_purpose"):  # as another agent calls it
        return find(DEFAULT, offers)
    known = ", ".join(sorted(offer.name for offer in offers if not offer.is_hidden))
    raise ToolError(f"task: there is no agent `{name}`. The agents are: {known}.")


class TaskCompletionArgs(Struct, frozen=True):
    result: Annotated[str, Meta(description="your final message to the user: what was done, and what the user should know")]


class TaskCompletion:
    """End the task. Call it alone, when everything is done and checked."""

    name: ClassVar[str] = "task_completion"
    Args: ClassVar[type[Struct]] = TaskCompletionArgs
    aliases: ClassVar[Mapping[str, str]] = {"answer": "result", "summary": "result", "message": "result", "output": "result"}
    reads_only: ClassVar[bool] = False
    kind: ClassVar[ToolKind] = "other"

    def intents(self, args: TaskCompletionArgs, services: ToolServices) -> Sequence[Intent]:
        return ()

    async def run(self, args: TaskCompletionArgs, call: CallContext) -> CallResult:
        if not args.result.strip():
            raise ToolError("task_completion: the `result` is empty. Tell the user what was done.")
        return CallResult(text=args.result, terminate=True)
