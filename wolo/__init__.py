"""Wolo, a terminal coding agent. Its public names are loaded when they are first used."""

__version__ = "0.2.0"

TYPE_CHECKING = False
if TYPE_CHECKING:
    from wolo.api.agent import Agent
    from wolo.api.function_tools import tool
    from wolo.api.run_context import RunContext, ToolContext
    from wolo.api.run_events import PartialOutput, RunError, RunEvent, RunResult, TypedResult
    from wolo.conversation.structured_output import OutputError
    from wolo.formats.encoding.cached_blocks import format_conversation_for_cache, is_cached_block, without_embedded_results
    from wolo.formats.openai_chat import to_llm_messages
    from wolo.formats.xml_tools.call_blocks import validate_message, validate_tool_call
    from wolo.messages.message import Message, Usage, UsageCost
    from wolo.messages.parts import AudioPart, FilePart, ImagePart, Part, TextPart, ThinkingPart, ToolPart
    from wolo.messages.roles import (
        AgentMessage,
        AssistantMessage,
        BaseMessage,
        BranchSummaryMessage,
        CompactionSummaryMessage,
        CustomMessage,
        LLMMessage,
        SystemMessage,
        ToolMessage,
        ToolResult,
        UserMessage,
        by_role,
        to_messages,
    )
    from wolo.models.tokens import ConversationMemory, estimate_message

_ROOMS = {
    "api.agent": ("Agent",),
    "api.function_tools": ("tool",),
    "api.run_context": ("RunContext", "ToolContext"),
    "api.run_events": ("PartialOutput", "RunError", "RunEvent", "RunResult", "TypedResult"),
    "conversation.structured_output": ("OutputError",),
    "formats.encoding.cached_blocks": ("format_conversation_for_cache", "is_cached_block", "without_embedded_results"),
    "formats.openai_chat": ("to_llm_messages",),
    "formats.xml_tools.call_blocks": ("validate_message", "validate_tool_call"),
    "messages.message": ("Message", "Usage", "UsageCost"),
    "messages.parts": ("AudioPart", "FilePart", "ImagePart", "Part", "TextPart", "ThinkingPart", "ToolPart"),
    "messages.roles": (
        *("AgentMessage", "AssistantMessage", "BaseMessage", "BranchSummaryMessage", "CompactionSummaryMessage", "CustomMessage"),
        *("LLMMessage", "SystemMessage", "ToolMessage", "ToolResult", "UserMessage", "by_role", "to_messages"),
    ),
    "models.tokens": ("ConversationMemory", "estimate_message"),
}

__all__ = [
    "Agent",
    "AgentMessage",
    "AssistantMessage",
    "AudioPart",
    "BaseMessage",
    "BranchSummaryMessage",
    "CompactionSummaryMessage",
    "ConversationMemory",
    "CustomMessage",
    "FilePart",
    "ImagePart",
    "LLMMessage",
    "Message",
    "OutputError",
    "Part",
    "PartialOutput",
    "RunContext",
    "RunError",
    "RunEvent",
    "RunResult",
    "SystemMessage",
    "TextPart",
    "ThinkingPart",
    "ToolContext",
    "ToolMessage",
    "ToolPart",
    "ToolResult",
    "TypedResult",
    "Usage",
    "UsageCost",
    "UserMessage",
    "by_role",
    "estimate_message",
    "format_conversation_for_cache",
    "is_cached_block",
    "to_llm_messages",
    "to_messages",
    "tool",
    "validate_message",
    "validate_tool_call",
    "without_embedded_results",
]


def _complete(module: str) -> None:
    """Adds the types that annotations name and that the module does not import, for `typing.get_type_hints`."""
    import sys  # noqa: PLC0415  # `wolo --version` needs none of it

    from wolo.messages import roles  # noqa: PLC0415  # the same

    vars(sys.modules[module]).update(AgentMessage=roles.AgentMessage, UserMessage=roles.UserMessage)


def __getattr__(name: str) -> object:
    for room, names in _ROOMS.items():
        if name in names:
            from importlib import import_module  # noqa: PLC0415  # `wolo --version` needs none of it

            value = getattr(import_module(f"wolo.{room}"), name)
            if hasattr(value, "__annotations__"):
                _complete(value.__module__)
            return value
    raise AttributeError(f"module 'wolo' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
