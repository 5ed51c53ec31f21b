"""/model: shows the model, or switches to another."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from wolo.commands.command import Command, CommandContext, Outcome, ShowText, SwitchConversation
from wolo.config import keys
from wolo.config.schema import Config
from wolo.conversation.resources.model_selection import find
from wolo.conversation.resources.startup import ConversationChange
from wolo.diagnostics.model_info import in_brief, models_here
from wolo.errors import ConfigError, UsageError
from wolo.messages.terminal_text import clean_line
from wolo.models.capabilities import LOCAL
from wolo.models.catalog import MAX_SHOWN, Catalog
from wolo.models.catalog_files import did_you_mean
from wolo.models.http.server_lookup import served_models
from wolo.workspace.root import find_site


async def _run(context: CommandContext, rest: str) -> Outcome:
    conversation = context.conversation
    if not rest:
        return ShowText(f"{conversation.info.model}\n/model PROVIDER/MODEL switches; `wolo models list` lists the models.")
    await asyncio.to_thread(refuse_unknown, conversation.permissions.config, rest, conversation.info.model)
    return SwitchConversation(await conversation.reopen(ConversationChange(model=rest)))


def _arguments(context: CommandContext) -> list[tuple[str, str]]:
    """Models with a key."""
    return [(each.label, in_brief(each)) for each in models_here(context.conversation.permissions.config) if each.has_key]


def refuse_unknown(config: Config, spec: str, current: str) -> None:
    """Raises UsageError, with the nearest names, for a model that its server does not list.

    If the server lists none, any name with a provider is accepted. Blocks.
    """
    environ = keys.with_stored_keys(find_site(), config)
    choice = find(config, environ, spec, follows_card=False)
    model_id = choice.model.id
    if choice.label == current or choice.model in choice.provider.models or choice.provider.name == LOCAL:
        return
    if served := served_models(choice):
        if not any(name.lower() in (model_id.lower(), f"{model_id.lower()}:latest") for name in served):
            more_models = " …" if len(served) > MAX_SHOWN else ""
            more = f"It lists {clean_line(', '.join(served[:MAX_SHOWN]))}{more_models}."
            raise UsageError(
                f"{choice.provider.label} does not list the model {clean_line(model_id)}.",
                hint=did_you_mean(model_id, served, more),
            )
    elif "/" not in spec and not _is_known(spec, environ, config):
        raise UsageError(
            f"Unknown model: {clean_line(spec)}.",
            hint=did_you_mean(
                model_id,
                [
                    current,
                    *(each.id for each in choice.provider.models),
                    *(each.label for each in models_here(config) if each.model),
                ],
                f"{choice.provider.name}/{clean_line(model_id)} requests it anyway.",
            ),
        )


def _is_known(spec: str, environ: Mapping[str, str], config: Config) -> bool:
    try:
        Catalog(environ, config.settings.providers).look_up(spec)
    except ConfigError:
        return False
    return True


COMMANDS = (
    Command(
        "model",
        "show the model, or switch to another",
        _run,
        doing="switching the model",
        usage="[PROVIDER/MODEL[:LEVEL]]",
        group="Model",
        arguments=_arguments,
    ),
)
