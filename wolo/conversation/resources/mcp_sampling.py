"""Lets MCP servers ask the conversation's model, within the budget of each server."""

from __future__ import annotations

from wolo.agent.agent_services import AgentServices
from wolo.agent.budget import describe, limit_reached
from wolo.agent.side_question import SideQuestionListener
from wolo.errors import UsageError
from wolo.mcp.server_requests import SampleAnswer, SampleRequest
from wolo.messages.message import Message, Usage, user
from wolo.messages.parts import TextPart
from wolo.models.protocol import ModelQuestion


async def ask_model(services: AgentServices, request: SampleRequest) -> SampleAnswer:
    """Sends neither the conversation nor tools. Raises UsageError when the budget of the run is spent, and ProviderError."""
    if limit := limit_reached(services.account.limits, services.account.used, 0):
        raise UsageError(describe(services.account.limits, limit))
    asked = ModelQuestion(
        messages=tuple(
            Message(role="assistant", parts=(TextPart(text=text),), finished=True) if role == "assistant" else user(text)
            for role, text in request.messages
        ),
        system=request.system,
        session_id=services.session_id,
        max_tokens=request.max_tokens,
    )
    answer = await services.asker.ask(asked, SideQuestionListener())
    usage = answer.usage or Usage()
    services.account.use(usage)
    is_cut = answer.finish_reason == "length"
    return SampleAnswer(answer.text, services.asker.choice.label, usage.context_tokens, is_cut=is_cut)
