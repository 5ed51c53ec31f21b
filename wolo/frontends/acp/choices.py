"""Modes, models and thinking levels that a client may choose from."""

from __future__ import annotations

import os
from typing import Any, get_args

from wolo.conversation.conversation import Conversation
from wolo.conversation.resources.startup import ConversationChange
from wolo.errors import UsageError
from wolo.formats.format import ThinkingLevel
from wolo.frontends.acp.acp_sdk import schema
from wolo.guard.modes import MODES, find_mode

MOST_MODELS = 100
_ORDER = tuple(MODES)


def modes_of(conversation: Conversation) -> tuple[str, ...]:
    """Modes that a client may choose: as far as the project's settings allow, and yolo only where wolo was started in it."""
    most = "auto"
    config, root = conversation.permissions.config, conversation.info.root
    of_project = (f"{root}{os.sep}", f"{os.path.realpath(root)}{os.sep}", ".wolo/")
    if config.settings.mode == "yolo" or config.sources.get("mode", "").startswith(of_project):
        most = config.settings.mode
    allowed = config.settings.managed.modes
    return tuple(name for name in _ORDER if _ORDER.index(name) <= _ORDER.index(most) and allowed.has(name))


def set_mode(conversation: Conversation, name: str) -> str:
    """Returns a notice if another mode applies. Raises UsageError for one that the client may not choose."""
    allowed = modes_of(conversation)
    mode = find_mode(name).name
    if mode == "yolo" and mode not in allowed:
        raise UsageError("Mode yolo can only be chosen on the command line.", hint="Start `wolo acp --yolo`.")
    if mode not in allowed:
        raise UsageError(f"This project or this machine allows no mode beyond {allowed[-1]}, so {mode} was not chosen.")
    return conversation.set_mode(mode)


def mode_state(conversation: Conversation) -> Any:
    modes = [schema.SessionMode(id=name, name=name.title(), description=MODES[name].about) for name in modes_of(conversation)]
    return schema.SessionModeState(current_mode_id=conversation.info.mode, available_modes=modes)


def config_options(conversation: Conversation) -> list[Any]:
    """Blocks: models are looked up."""
    from wolo.diagnostics.model_info import usable_in_brief  # noqa: PLC0415  # not before a session is opened

    info = conversation.info
    modes = [(name, name.title(), MODES[name].about) for name in modes_of(conversation)]
    level = conversation.choice.thinking or "default"
    levels = [(each, each, "") for each in ((level,) if level == "default" else ()) + get_args(ThinkingLevel)]
    about = usable_in_brief(conversation.permissions.config, info.model, MOST_MODELS)
    return [
        _select("mode", "Mode", "mode", info.mode, modes),
        _select("model", "Model", "model", info.model, [(label, label, brief) for label, brief in about.items()]),
        _select("thinking", "Thinking", "thought_level", level, levels),
    ]


def _select(id: str, name: str, category: Any, current: str, values: list[tuple[str, str, str]]) -> Any:
    options = [
        schema.SessionConfigSelectOption(value=value, name=label, description=about or None) for value, label, about in values
    ]
    return schema.SessionConfigOptionSelect(
        type="select", id=id, name=name, category=category, current_value=current, options=options
    )


async def choose_model(conversation: Conversation, model: str) -> Conversation:
    """Raises WoloError, and the conversation continues as it was."""
    if not model.strip():
        raise UsageError("The model is empty.", hint="The option model lists some.")
    return conversation if model == conversation.info.model else await conversation.reopen(ConversationChange(model=model))


def choose_thinking(conversation: Conversation, level: str) -> None:
    """Raises UsageError."""
    for known in get_args(ThinkingLevel):
        if level == known:
            conversation.think(known)
            return
    if level != "default" or conversation.choice.thinking is not None:
        raise UsageError(f"Unknown thinking level: {level}.", hint=f"There are: {', '.join(get_args(ThinkingLevel))}.")
