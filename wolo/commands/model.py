"""/model, /thinking, /login, /logout: choose the model and its level, and save API keys."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial

from msgspec.structs import replace

from wolo.agent.events import Noticed
from wolo.commands.command import Command, CommandContext, Outcome, RunEvents, ShowText, SwitchConversation
from wolo.config import keys
from wolo.config.schema import Config
from wolo.conversation.conversation import Conversation
from wolo.conversation.resources.model_selection import find
from wolo.conversation.resources.startup import ConversationChange
from wolo.diagnostics import provider_login
from wolo.diagnostics.model_info import in_brief, models_here
from wolo.errors import ConfigError, UsageError
from wolo.extension import LoginStep
from wolo.formats.encoding.thinking_levels import LEVELS
from wolo.formats.format import ThinkingLevel
from wolo.messages.terminal_text import clean, clean_line
from wolo.models.capabilities import LOCAL
from wolo.models.catalog import MAX_SHOWN, Catalog
from wolo.models.catalog_files import did_you_mean
from wolo.models.http.server_lookup import served_models
from wolo.tools.tool_values import UNASKED, AnswerOption, AskQuestions, Question
from wolo.workspace.root import find_site


async def _model(context: CommandContext, rest: str) -> Outcome:
    conversation = context.conversation
    if not rest:
        return ShowText(f"{conversation.info.model}\n/model PROVIDER/MODEL switches; `wolo models list` lists the models.")
    await asyncio.to_thread(refuse_unknown, conversation.permissions.config, rest, conversation.info.model)
    return SwitchConversation(await conversation.reopen(ConversationChange(model=rest)))


def _models(context: CommandContext) -> list[tuple[str, str]]:
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


LEVEL_NAMES = ", ".join(LEVELS)


async def _thinking(context: CommandContext, rest: str) -> Outcome:
    conversation = context.conversation
    if not rest:
        known = conversation.choice.thinking
        now = f"{conversation.thinking_used}{_instead(conversation, known)}" if known else "provider default"
        return ShowText(f"{now}\n/thinking LEVEL changes it: {LEVEL_NAMES}.")
    level = next((each for each in LEVELS if each == rest.lower()), None)
    if level is None:
        raise UsageError(f"Unknown thinking level: {rest}.", hint=f"Levels: {LEVEL_NAMES}.")
    used = conversation.think(level)
    from wolo.models.capabilities import no_effect_notice  # noqa: PLC0415  # only once a level is asked for

    return ShowText(
        no_effect_notice(replace(conversation.choice, thinking=level))
        or f"Thinking level {used} from the next request on{_instead(conversation, level)}."
    )


def _instead(conversation: Conversation, level: ThinkingLevel) -> str:
    return "" if conversation.thinking_used == level else f"; {conversation.info.model} does not support {level}"


def _levels(context: CommandContext) -> list[tuple[str, str]]:
    now = context.conversation.choice.thinking
    return [(level, "current" if level == now else "") for level in LEVELS]


async def _login(context: CommandContext, rest: str) -> Outcome:
    """The terminal replaces this by its own dialog; elsewhere an extension's dialog asks by questions."""
    elsewhere = UsageError("/login needs an interactive terminal.", hint=f"wolo login {rest or 'PROVIDER'} --key-stdin < FILE")
    name, account = provider_login.split_account(rest)
    if not name or account:
        raise elsewhere
    provider, conversation = await asyncio.to_thread(provider_login.find_login_provider, name), context.conversation

    async def work(ask: AskQuestions) -> None:
        secret = await provider_login.secret_of_dialog(provider, partial(_ask_step, ask))
        if secret is None:
            raise elsewhere
        where = await asyncio.to_thread(provider_login.save_key, provider, secret, in_keyring=True)
        text = f"Logged in to {provider.label}; the login is saved in {where}."
        conversation.events.pass_on(Noticed(text=text, level="warning"))  # plain ones are for --verbose

    if (dialog := conversation.run_dialog(work)) is None:
        raise elsewhere
    return RunEvents(dialog)


async def _ask_step(ask: AskQuestions, step: LoginStep) -> str:
    """Raises UsageError when the user skips a step."""
    if not (step.url or step.ask):
        return ""
    text = "\n".join(filter(None, (provider_login.describe_step(step), clean(step.ask))))
    options = () if step.ask else (AnswerOption("Continue", "when you have done so"),)
    replies = await ask("login", [Question(text=text, header="Log in", options=options)])
    if not replies or not (replies[0].chosen or replies[0].text) or replies[0] is UNASKED:
        raise UsageError("The login was cancelled.", hint="Nothing was saved. `wolo login` works in a terminal, too.")
    return replies[0].text


async def _logout(context: CommandContext, rest: str) -> Outcome:
    removed, left = await asyncio.to_thread(provider_login.log_out, *provider_login.split_account(rest))
    return ShowText(
        "\n".join(
            [removed, *left, "This conversation continues with its current key; /model PROVIDER/MODEL switches to another."]
        )
    )


def _saved_keys(context: CommandContext) -> list[tuple[str, str]]:
    return [
        (f"{each.provider} --name {each.account}" if each.account else each.provider, each.source)
        for each in provider_login.found_keys()[0]
        if not each.source.startswith(("$", "providers."))
    ]


COMMANDS = (
    Command(
        "model",
        "show the model, or switch to another",
        _model,
        doing="switching the model",
        usage="[PROVIDER/MODEL[:LEVEL]]",
        group="Model",
        arguments=_models,
    ),
    Command(
        "thinking",
        "show or set the thinking level",
        _thinking,
        usage="[LEVEL]",
        group="Model",
        arguments=_levels,
        while_working=True,
    ),
    Command(
        "login",
        "save the API key of a provider",
        _login,
        usage="[PROVIDER] [--name NAME]",
        more="The key is typed hidden, checked with one tiny request, and saved as by `wolo auth login`.",
        group="Model",
        arguments=lambda _: [(each.name, each.label) for each in provider_login.login_providers()],
        asks=True,
    ),
    Command(
        "logout",
        "remove a saved API key",
        _logout,
        usage="[PROVIDER] [--name NAME]",
        group="Model",
        arguments=_saved_keys,
        while_working=True,
    ),
)
