"""All settings under one roof: each room's own type where it has one, every value with its default."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from wolo.agent import verification
from wolo.agent.budget import Limits
from wolo.agent.compaction.compactor import Compaction
from wolo.agent.compaction.context_window import Context
from wolo.extensions.hooks import definitions
from wolo.formats.format import ThinkingLevel
from wolo.guard.rules import Rule, RuleWithExamples
from wolo.mcp.server import Server
from wolo.models import headers, retry
from wolo.models.provider import ProviderSettings

ModeName = Literal["plan", "ask", "edit", "auto", "yolo"]


class Permissions(Struct, frozen=True, forbid_unknown_fields=True):
    """Rules of all sources, as written; `Config.rules` has them with their sources.

    A rule is a string, or a table `{rule, match, no_match}` whose examples are checked at every start.
    """

    allow: tuple[str | RuleWithExamples, ...] = ()
    """Rules such as `shell:pytest *`: what they match is not asked for."""
    ask: tuple[str | RuleWithExamples, ...] = ()
    """What they match is asked for in every mode."""
    deny: tuple[str | RuleWithExamples, ...] = ()
    """What they match is never done."""


class Sandbox(Struct, frozen=True, forbid_unknown_fields=True):
    backend: Literal["auto", "required", "off"] = "auto"
    """`required`: no command runs outside, and wolo does not start where nothing can hold one. `off`: `auto` works as `edit`."""


class Shell(Struct, frozen=True, forbid_unknown_fields=True):
    timeout_s: Annotated[float, Meta(gt=0)] = 120.0
    """How long a command may take when the model names no time of its own."""
    env: tuple[str, ...] = ()
    """Variables that commands see besides the usual few (`GOPATH`, `CARGO_*`). What looks like a secret never passes."""


class Tools(Struct, frozen=True, forbid_unknown_fields=True):
    offer: tuple[str, ...] | None = None
    """Only these tools; an empty list: none at all."""
    hide: tuple[str, ...] = ()
    """Not these."""


class Tasks(Struct, frozen=True, forbid_unknown_fields=True):
    """What another agent may use for a task that it is given, within what is left of `limits`."""

    timeout_s: Annotated[float, Meta(gt=0)] = 600.0
    """Wall time; while it waits for your approval the clock stands still."""
    max_turns: Annotated[int, Meta(gt=0)] = 60
    """Answers, unless the agent's own file says less or more."""


Fact = Literal["dir", "branch", "model", "mode", "context", "cache", "cost", "jobs"]


class Ui(Struct, frozen=True, forbid_unknown_fields=True):
    theme: Literal["auto", "dark", "light"] = "auto"
    """`auto`: as COLORFGBG says, or else dark. The terminal is never asked."""
    status: tuple[Fact, ...] = ("dir", "branch", "model", "mode", "context", "cache", "cost", "jobs")
    """What the line of facts says, in this order; in a narrow window what matters least is left out."""
    keys: Literal["emacs", "vi"] = "emacs"
    """Whose keys edit what is written."""
    keymap: Mapping[str, str | tuple[str, ...]] = field(default_factory=dict)
    """Other keys for what wolo does with them: `editor = "ctrl-x ctrl-e"`. `/keys` lists the names and the keys."""
    plain: bool = False
    """For screen readers: whole lines one after the other, in turns; no colours, and nothing is painted twice."""
    notify: bool = True
    """Call you when a long turn ends or something asks while you look elsewhere: as your terminal does it, or by the bell."""
    notify_after_s: Annotated[float, Meta(ge=0)] = 10.0
    """A shorter turn calls nobody; where the terminal does not say whether you look, neither does one while you press keys."""
    notify_command: tuple[str, ...] = ()
    """A program of yours and its arguments, instead; it finds the text in `WOLO_NOTIFICATION`. No shell reads it, and it
    runs beside your `config.toml`."""


class Settings(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    model: str = ""
    """`PROVIDER/MODEL[:LEVEL]`; empty: a key found in the environment decides."""
    fallback_model: str = ""
    """Asked when the model cannot be reached after all retries, for the rest of the turn."""
    agent: str = ""
    """The agent that wolo works as: the name of an agent file; empty: none."""
    mode: ModeName = "auto"
    """How much runs without asking. `yolo` counts on the command line only."""
    thinking: ThinkingLevel | None = None
    """How much the model thinks, unless its name carries a level; none: the provider's default."""
    context: Context = Context()
    compaction: Compaction = Compaction()
    limits: Limits = Limits()
    retry: retry.Settings = retry.Settings()
    headers: headers.Settings = headers.Settings()
    permissions: Permissions = Permissions()
    sandbox: Sandbox = Sandbox()
    shell: Shell = Shell()
    tools: Tools = Tools()
    tasks: Tasks = Tasks()
    verify: verification.Settings = verification.Settings()
    ui: Ui = Ui()
    providers: Mapping[str, ProviderSettings] = field(default_factory=dict)
    mcp_servers: Mapping[str, Server] = field(default_factory=dict)
    hooks: definitions.Settings = definitions.Settings()


class Endpoint(Struct, frozen=True, forbid_unknown_fields=True):
    """An address given for this run, by the command line or the environment."""

    base_url: str = ""
    api_key: str = ""
    api: str = ""
    """The wire format; empty: openai-chat."""


class Config(Struct, frozen=True, kw_only=True):
    settings: Settings = Settings()
    endpoint: Endpoint = Endpoint()
    rules: tuple[Rule, ...] = ()
    sources: Mapping[str, str] = field(default_factory=dict)
    """Who set a value, by its dotted key (`limits.max_turns`); what is not in it is the default."""
    notices: tuple[str, ...] = ()
    """For a person, once."""
    trusts_project: bool = False
    """What the project brings along (`config.project`) may be read. Nothing of it is, otherwise."""
