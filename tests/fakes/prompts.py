"""Prompts as a person types them."""

from __future__ import annotations

from wolo.messages.message import Prompt, user


def typed(text: str) -> Prompt:
    return Prompt.from_message(user(text), "keyboard")
