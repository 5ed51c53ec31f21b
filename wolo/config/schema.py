"""Defines all settings with their defaults."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from wolo.agent import budget, verification
from wolo.agent.compaction.compactor import CompactionSettings, Context
from wolo.config.managed import ManagedSettings
from wolo.extensions.hooks import definitions
from wolo.formats.format import ThinkingLevel
from wolo.guard.rules import Rule, RuleWithExamples
from wolo.mcp.server import Server
from wolo.models import headers, provider, retry
from wolo.workspace.processes.command_environment import Inherit

ModeName = Literal["plan", "ask", "edit", "auto", "yolo"]


class Permissions(Struct, frozen=True, forbid_unknown_fields=True):
    """Rules as written, of all sources; `Config.rules` has each with its source.

    A rule is a string, or a table `{rule, match, no_match}` whose examples are checked at every start.
    """

    allow: tuple[str | RuleWithExamples, ...] = ()
    """Rules such as `shell:pytest *` whose matches run without asking."""
    ask: tuple[str | RuleWithExamples, ...] = ()
    """Rules whose matches ask in every mode."""
    deny: tuple[str | RuleWithExamples, ...] = ()
    """Rules whose matches are always denied."""


class SandboxSettings(Struct, frozen=True, forbid_unknown_fields=True):
    backend: Literal["auto", "required", "off"] = "auto"
    """`required`: commands never run outside the sandbox, and wolo does not start without one. `off`: `auto` works like
    `edit`."""
    allowed_domains: tuple[str, ...] = ()
    """Hosts that commands in the sandbox may connect to, over HTTP and HTTPS: `packages.example.com`, `*.example.org`,
    `10.0.0.7:8443`. Needs bubblewrap or namespaces."""
    denied_domains: tuple[str, ...] = ()
    """Hosts that they never reach, whatever is allowed; nobody is asked. A project may add to it."""


class ShellSettings(Struct, frozen=True, forbid_unknown_fields=True):
    timeout_s: Annotated[float, Meta(gt=0)] = 120.0
    """Default timeout of a command."""
    inherit: Inherit = "all"
    """Variables of yours that commands get: `all` but those hidden by rule, `core` for the language, the time zone, paths and
    your name, or `none`."""
    env: tuple[str, ...] = ()
    """Names of variables that commands get beside those, also of one that is hidden by rule (`GITHUB_TOKEN`). Patterns
    (`CARGO_*`) pass only others."""
    hide: tuple[str, ...] = ()
    """Names and patterns of variables that commands do not get. A project may add to it."""
    snapshot: bool = False
    """Commands get the functions, aliases and PATH of your login shell, read once a session."""
    wake: bool = True
    """A line of a background job that the model watches for starts a turn when nothing runs: 4 a minute at most, and 20 without
    a prompt of yours."""


class BatchSettings(Struct, frozen=True, forbid_unknown_fields=True):
    lease_s: Annotated[float, Meta(ge=1)] = 60.0
    """Time after which a worker on another machine that does not answer has lost its task."""
    requests_per_minute: Annotated[float, Meta(gt=0)] | None = None
    """Limit of all workers of a batch with one key; none: as the provider says when it refuses."""
    tokens_per_minute: Annotated[float, Meta(gt=0)] | None = None
    """The same for tokens, of prompts and answers."""
    container: str = ""
    """Program that runs images of tasks: `docker`, `podman` or a path; empty: the first of the two that answers."""
    wolo_folder: str = ""
    """Self-contained folder of wolo that containers get; empty: the one that runs, or else the image has wolo itself."""


class SessionSettings(Struct, frozen=True, forbid_unknown_fields=True):
    retention_days: Annotated[float, Meta(gt=0)] | None = None
    """Sessions that were not used for so long are deleted at the start of another one, also named ones; none: they stay."""


class Tools(Struct, frozen=True, forbid_unknown_fields=True):
    offer: tuple[str, ...] | None = None
    """Offer only these tools; an empty list offers none."""
    hide: tuple[str, ...] = ()
    """Hide these tools."""
    repo_map: bool = False
    """Offer the tool `repo_map`: an overview of a folder by its most used symbols. Needs `wolo-cli[repo-map]`."""


SearchName = Literal["provider", "brave", "tavily", "exa", "searxng", "zai"]


class WebSearchSettings(Struct, frozen=True, forbid_unknown_fields=True):
    backend: SearchName | Literal[""] | tuple[SearchName, ...] = ""
    """Search service of the tool `web_search`, or a list of which the first that can be used counts; empty: the tool is not
    offered. `provider`: the model's provider searches, where it can (Anthropic, OpenAI, Gemini, Z.ai)."""
    url: str = ""
    """Address of the service, if it is not its usual one; for SearXNG, if it does not run on this machine."""
    api_key: str = ""
    """API key, `$VARIABLE` or `!program`; if empty, taken from the variable of the service, such as `BRAVE_API_KEY`."""


class LanguageServer(Struct, frozen=True, forbid_unknown_fields=True):
    command: tuple[str, ...] = ()
    """Program and arguments; empty: as wolo knows the server of this name."""
    extensions: tuple[str, ...] = ()
    """File types such as `.py`; empty: as wolo knows them."""
    enabled: bool = True
    """`false`: this server is not used."""


class Lsp(Struct, frozen=True, forbid_unknown_fields=True):
    enabled: bool = True
    """Tell the model about errors that its edits make, as installed language servers see them."""
    tool: bool = False
    """Offer the tool `lsp` where a server is installed: definitions, references, symbols, and the preview of a rename."""
    servers: Mapping[str, LanguageServer] = field(default_factory=dict)


class TaskSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """Limits of a subagent task, within what is left of `limits`."""

    timeout_s: Annotated[float, Meta(gt=0)] = 600.0
    """Wall time; paused while an approval is pending."""
    max_turns: Annotated[int, Meta(gt=0)] = 60
    """Maximum number of responses, unless the agent file sets another."""


Fact = Literal["dir", "branch", "model", "mode", "context", "cache", "cost", "jobs"]


class ApprovalSettings(Struct, frozen=True, forbid_unknown_fields=True):
    reviewer: Literal["user", "model"] = "user"
    """`model`: the small model looks at what would ask you, and may approve what can be undone and stays in the workspace;
    everything else still asks you."""


class FinishSettings(Struct, frozen=True, forbid_unknown_fields=True):
    check: bool = True
    """When the model stops with files changed and no check run since, with a failing one, or with open tasks, it is asked once;
    the last line of the turn says which check ran."""


class Memory(Struct, frozen=True, forbid_unknown_fields=True):
    learn: bool = True
    """The model may propose notes for later conversations; they wait in `/memory inbox` until you accept them."""


class UpdateSettings(Struct, frozen=True, forbid_unknown_fields=True):
    signers: tuple[Annotated[str, Meta(pattern=r"^[a-z][a-z0-9@.-]+ [A-Za-z0-9+/=]+( [^\n]*)?$")], ...] = ()
    """Public SSH keys (`ssh-ed25519 AAAA…`), one of which must have signed what `wolo update` puts in the place of a
    self-contained folder; empty: the key that the folder was built with, if any."""


class ServerSettings(Struct, frozen=True, forbid_unknown_fields=True):
    cors: tuple[Annotated[str, Meta(pattern=r"^https?://[^\s/*?#@]+$")], ...] = ()
    """Sites such as `https://app.example.com` whose pages may use the API of `wolo serve`, with its token."""


class TelemetrySettings(Struct, frozen=True, forbid_unknown_fields=True):
    content: bool = False
    """Also export prompts, answers, and arguments and results of calls; otherwise only names, counts and durations."""
    endpoint: Annotated[str, Meta(pattern=r"^(https?://[^\s/?#]+(/[^\s?#]*)?)?$")] = ""
    """Collector for OpenTelemetry, before the endpoints that `OTEL_*` variables name; empty: theirs, if any."""


THEMES = ("auto", "dark", "light", "dark-colorblind", "light-colorblind", "high-contrast", "ansi")
"""Besides the user's own."""


class Ui(Struct, frozen=True, forbid_unknown_fields=True):
    theme: str = "auto"
    """`auto`: ask the terminal for its background (OSC 11); without an answer within two seconds by COLORFGBG, otherwise dark.
    Or `dark`, `light`, `dark-colorblind`, `light-colorblind`, `high-contrast`, `ansi`, or the name of a file in `themes`."""
    status: tuple[Fact, ...] = ("dir", "branch", "model", "mode", "context", "cache", "cost", "jobs")
    """Items of the status bar, in this order; narrow windows drop the least important."""
    status_command: tuple[str, ...] = ()
    """Custom program and arguments that print the status bar; gets the facts as JSON on stdin. Runs without a shell, next to your
    `config.toml`, for two seconds at most."""
    keys: Literal["emacs", "vi"] = "emacs"
    """Editing keys of the prompt."""
    keymap: Mapping[str, str | tuple[str, ...]] = field(default_factory=dict)
    """Custom key bindings: `editor = "ctrl-x ctrl-e"`. `/keys` lists names and keys."""
    plain: bool = False
    """For screen readers: whole lines in order, no colours, no repainting."""
    title: bool = True
    """Show the state in the window title."""
    progress: bool = True
    """Show running work in the taskbar or tab (OSC 9;4), where the terminal is known to do so."""
    prompt_marks: bool = True
    """Mark prompts and output (OSC 133), so that the terminal can jump between prompts."""
    notify: bool = True
    """Notify when a long turn ends or a question is pending while the window is not focused."""
    notify_after_s: Annotated[float, Meta(ge=0)] = 10.0
    """Minimum duration of a turn for a notification. If the terminal does not report focus, pressing keys also prevents it."""
    notify_command: tuple[str, ...] = ()
    """Custom program and arguments for notifications, with the text in `WOLO_NOTIFICATION`. Runs without a shell, next to your
    `config.toml`."""


class Settings(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    model: str = ""
    """`PROVIDER/MODEL[:LEVEL]`; if empty, chosen by the API keys in the environment."""
    fallback_model: str | tuple[str, ...] = ""
    """Used for the rest of the turn if the model cannot be reached after all retries; of a list, the first that can be."""
    small_model: str = ""
    """`PROVIDER/MODEL` for summaries and for exploring agents; the model itself answers where it fails."""
    model_aliases: Mapping[str, str] = field(default_factory=dict)
    """Models for the names in agent files: `sonnet = "provider/model"`."""
    agent: str = ""
    """Name of the agent file that wolo runs as; empty for none."""
    output_style: str = ""
    """Name of a Markdown file in `output-styles/` whose text is added to the system prompt; empty or `default` for none."""
    mode: ModeName = "auto"
    """How much runs without asking. `yolo` can only be set on the command line."""
    thinking: ThinkingLevel | None = None
    """Thinking level, unless the model name has one; none: provider default."""
    context: Context = Context()
    compaction: CompactionSettings = CompactionSettings()
    limits: budget.Limits = budget.Limits()
    retry: retry.RetrySettings = retry.RetrySettings()
    headers: headers.HeaderSettings = headers.HeaderSettings()
    permissions: Permissions = Permissions()
    approvals: ApprovalSettings = ApprovalSettings()
    sandbox: SandboxSettings = SandboxSettings()
    shell: ShellSettings = ShellSettings()
    tools: Tools = Tools()
    web_search: WebSearchSettings = WebSearchSettings()
    lsp: Lsp = Lsp()
    tasks: TaskSettings = TaskSettings()
    batch: BatchSettings = BatchSettings()
    sessions: SessionSettings = SessionSettings()
    verify: verification.VerificationSettings = verification.VerificationSettings()
    finish: FinishSettings = FinishSettings()
    memory: Memory = Memory()
    telemetry: TelemetrySettings = TelemetrySettings()
    update: UpdateSettings = UpdateSettings()
    server: ServerSettings = ServerSettings()
    ui: Ui = Ui()
    providers: Mapping[str, provider.ProviderSettings] = field(default_factory=dict)
    mcp_servers: Mapping[str, Server] = field(default_factory=dict)
    hooks: definitions.HookSettings = definitions.HookSettings()
    managed: ManagedSettings = ManagedSettings()


class Endpoint(Struct, frozen=True, forbid_unknown_fields=True):
    """API endpoint given for this run, on the command line or in the environment."""

    base_url: str = ""
    api_key: str = ""
    api: str = ""
    """API format; empty: openai-chat."""
    drive: str = ""
    """Driving mode; empty: the provider's, or chosen by what the model can do."""
    account: str = ""
    """Saved key to use, of each provider that has one of this name."""


class Config(Struct, frozen=True, kw_only=True):
    settings: Settings = Settings()
    endpoint: Endpoint = Endpoint()
    rules: tuple[Rule, ...] = ()
    sources: Mapping[str, str] = field(default_factory=dict)
    """Source of each value by dotted key (`limits.max_turns`); missing keys have defaults."""
    notices: tuple[str, ...] = ()
    """Shown to the user once."""
    given_servers: Mapping[str, Server] | None = None
    """MCP servers of `--mcp-config`."""
    only_given_servers: bool = False
    """No other MCP server is used."""
    trusts_project: bool = False
    """Whether project files (`config.project`) may be read."""
    is_safe: bool = False
    """Nothing that extends wolo is used, of the user or a project; only managed files may have hooks and servers."""
