"""The options of one run that change what the model is told and may do: kept with its first prompt, and played by a replay."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct, ValidationError, convert, to_builtins
from msgspec.structs import replace

from wolo.config.schema import Config, Tools
from wolo.conversation.resources.request_prefix import PromptOptions
from wolo.errors import WoloError
from wolo.guard.rules import Decision, Rule, parse_rule
from wolo.workspace.root import Workspace

OPTIONS = "options"
"""The key among what is kept of how a conversation was opened."""
COMMAND_LINE: Mapping[str, Decision] = {"--allow": "allow", "--deny": "deny"}
"""Sources of rules that belong to one run."""


class RunOptions(Struct, frozen=True, kw_only=True, omit_defaults=True):
    add_dirs: tuple[str, ...] = ()
    tools: tuple[str, ...] | None = None
    hidden_tools: tuple[str, ...] | None = None
    """Of both: None where the settings hold."""
    rules: tuple[tuple[str, str], ...] = ()
    """Source and text of those on the command line."""
    name: str = ""
    system_prompt: str = ""
    append_system_prompt: str = ""

    @property
    def prompts(self) -> PromptOptions:
        return PromptOptions(self.name, self.system_prompt, self.append_system_prompt)

    def applied_to(self, config: Config) -> Config:
        """The settings with the tools of the run."""
        held = config.settings.tools
        offer = held.offer if self.tools is None else self.tools
        hide = held.hide if self.hidden_tools is None else self.hidden_tools
        return replace(config, settings=replace(config.settings, tools=Tools(offer=offer, hide=hide)))

    def parsed_rules(self) -> tuple[Rule, ...]:
        """A rule that this wolo cannot read is left out."""
        found = []
        for source, text in self.rules:
            try:
                found.append(parse_rule(text, COMMAND_LINE[source], source))
            except (WoloError, KeyError):
                continue
        return tuple(found)


def options_of(config: Config, workspace: Workspace, prompts: PromptOptions, hide: Callable[[str], str]) -> dict[str, Any]:
    """The options of a run as they are kept; `hide` takes secrets out."""
    tools = config.settings.tools
    options = RunOptions(
        add_dirs=tuple(map(str, workspace.extra)),
        tools=tools.offer if _is_of_run("tools.offer", config) else None,
        hidden_tools=tools.hide if _is_of_run("tools.hide", config) else None,
        rules=tuple((rule.source, hide(str(rule))) for rule in config.rules if rule.source in COMMAND_LINE),
        name=hide(prompts.name),
        system_prompt=hide(prompts.replacement),
        append_system_prompt=hide(prompts.appendix),
    )
    built: dict[str, Any] = to_builtins(options)
    return built


def _is_of_run(key: str, config: Config) -> bool:
    return config.sources.get(key, "").startswith("--")


def saved_options(opened: Mapping[str, Any]) -> RunOptions | None:
    """None where the session does not tell: an older wolo recorded it."""
    try:
        return convert(opened[OPTIONS], RunOptions)
    except (KeyError, ValidationError):
        return None
