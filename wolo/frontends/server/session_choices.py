"""Models, modes and slash commands that a client may choose from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from msgspec.structs import replace

from wolo.commands.table import load_commands
from wolo.commands.user_commands import load_user_commands
from wolo.config import layers
from wolo.conversation.conversation import Conversation
from wolo.diagnostics.model_info import in_brief, models_here
from wolo.guard.modes import MODES
from wolo.places import Places
from wolo.workspace.root import find_site

MOST_MODELS = 200


def choices_in(cwd: Path, places: Places) -> dict[str, Any]:
    """The folder's defaults, the modes and the usable models. Raises ConfigError."""
    config = layers.load(replace(find_site(cwd), places=places))
    usable = [each for each in models_here(config) if each.has_key and each.model is not None][:MOST_MODELS]
    return {
        "cwd": str(cwd),
        "model": config.settings.model,
        "mode": config.settings.mode,
        "modes": [{"name": mode.name, "about": mode.about} for mode in MODES.values()],
        "models": [{"name": each.label, "about": " ".join(in_brief(each).split())} for each in usable],
    }


def commands_of(conversation: Conversation) -> list[dict[str, str]]:
    builtin = load_commands()
    return [
        {"name": each.name, "usage": each.usage, "about": each.help}
        for each in (*builtin, *load_user_commands(conversation, builtin))
        if each.makes_prompt
    ]
