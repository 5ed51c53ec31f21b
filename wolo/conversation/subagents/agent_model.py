"""Chooses the model of a subagent, and connects to it."""

from __future__ import annotations

from msgspec.structs import replace

from wolo.config import keys
from wolo.conversation.resources import model_selection
from wolo.conversation.resources.startup import StartupState
from wolo.errors import ConfigError
from wolo.extensions.agent_files import AgentProfile
from wolo.models.protocol import ModelClient
from wolo.models.provider import ModelChoice


def choose_model(state: StartupState, own: ModelChoice, profile: AgentProfile) -> tuple[ModelChoice, str]:
    """The model, and a notice if it is not the one that the profile names; `own` is the conversation's. Raises WoloError."""
    if not profile.model:
        explores = profile.path is None and profile.only_reads
        return (state.small or own) if explores else own, ""
    named = model_selection.resolve_alias(state.config.settings, profile.model, own.provider.name)
    if named is None:
        return own, model_selection.alias_notice(profile.name, profile.model)
    environ = keys.with_stored_keys(state.site, state.config)
    first = state.options.first_provider or state.choice.provider.name
    instead = f"the agent {profile.name} uses {own.label}."
    try:
        choice = model_selection.find(model_selection.for_provider_of(state.config, environ, named, first), environ, named)
    except ConfigError as error:
        return own, f"{error.message} So {instead}"
    if choice.provider.name == "local":
        return own, f"The embedded model cannot run tasks, so {instead}"
    names_it = profile.is_projects and named == profile.model  # an alias is the choice of the user
    if names_it and (choice.provider.name, choice.base_url) != (own.provider.name, own.base_url):
        return own, f"A project's agent cannot select another provider ({choice.label}), so {instead}"
    model_selection.check_prices(state.config, choice)
    return replace(choice, thinking=choice.thinking or own.thinking), ""


def open_asker(
    access: model_selection.ModelAccess, state: StartupState, profile: AgentProfile, choice: ModelChoice
) -> ModelClient:
    """The small model falls back to the model of the conversation."""
    choice = replace(choice, thinking=profile.thinking or choice.thinking, temperature=profile.temperature)
    if state.small is not None and choice.label == state.small.label != state.choice.label:
        return model_selection.make_asker(access, choice, (state.choice,), after_any_error=True)
    return model_selection.make_asker(access, choice, state.fallbacks if not profile.model else ())
