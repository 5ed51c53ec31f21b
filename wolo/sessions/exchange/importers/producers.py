"""Who wrote an answer, in the names that wolo has for providers and formats: what is opaque goes back to the same only."""

from __future__ import annotations

from collections.abc import Mapping

from wolo.messages.message import Message, Producer

KNOWN: Mapping[str, tuple[str, str]] = {
    "anthropic": ("anthropic", "anthropic"),
    "openai": ("openai", "openai-responses"),
    "google": ("gemini", "gemini"),
    "zai": ("zai", "openai-chat"),
    "zai-coding-plan": ("zai-coding", "openai-chat"),
    "zhipuai": ("zhipuai", "openai-chat"),
    "moonshotai": ("moonshot", "openai-chat"),
    "deepseek": ("deepseek", "openai-chat"),
    "openrouter": ("openrouter", "openai-chat"),
    "groq": ("groq", "openai-chat"),
    "cerebras": ("cerebras", "openai-chat"),
    "xai": ("xai", "openai-chat"),
    "mistral": ("mistral", "openai-chat"),
    "togetherai": ("together", "openai-chat"),
    "fireworks-ai": ("fireworks", "openai-chat"),
    "minimax": ("minimax", "anthropic"),
    "nvidia": ("nvidia", "openai-chat"),
    "ollama": ("ollama", "ollama"),
    "lmstudio": ("lmstudio", "openai-chat"),
    "github-models": ("github-models", "openai-chat"),
}
"""What other agents call a provider → what wolo calls it, and the format it is asked in."""


def producer(provider: str, model: str) -> Producer:
    """One that wolo does not know keeps its own name and has no format, so nothing opaque ever goes anywhere."""
    name, format = KNOWN.get(provider, (provider, ""))
    return Producer(provider=name, format=format, model=model)


def last_model(messages: tuple[Message, ...]) -> str:
    """As wolo spells a model, `provider/model`; empty when nobody wolo knows answered last."""
    for message in reversed(messages):
        wrote = message.producer
        if wrote and wrote.model:
            return f"{wrote.provider}/{wrote.model}" if wrote.format else ""
    return ""
