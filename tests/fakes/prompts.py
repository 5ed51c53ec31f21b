"""Prompts as a person types them."""

from __future__ import annotations

from wolo.messages.message import UserPrompt, user


def typed(text: str) -> UserPrompt:
    return UserPrompt.from_message(user(text), "keyboard")
