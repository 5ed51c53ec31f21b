"""Resolves everything a conversation starts with: settings, sandbox, models and session."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from wolo.agent.compaction.history_cut import Cut
from wolo.config import keys, layers, project
from wolo.config.cli_options import Flags, directories, many, text
from wolo.config.schema import Config, Endpoint, WebSearchSettings
from wolo.conversation.local_context import LocalContext
from wolo.conversation.resources import model_selection
from wolo.conversation.resources.persistence import Branch, SavedSession, SessionProperties, SessionSink, UnsavedSession
from wolo.conversation.resources.tool_environment import SandboxPlan, plan_sandbox
from wolo.conversation.resources.user_files import ProgramFiles, as_agent, find_main_agent, model_notice, read_output_style
from wolo.errors import SessionError, UsageError
from wolo.extensions.agent_files import AgentProfile
from wolo.mcp.servers import Servers
from wolo.messages.message import Message
from wolo.models.capabilities import always_on_notice, no_effect_notice
from wolo.models.provider import ModelChoice
from wolo.places import Places, Site, make_private
from wolo.sessions.entries import CustomEntry
from wolo.sessions.listing import SessionInfo
from wolo.sessions.store import Store
from wolo.tools.tool import Editor, ExternalTool, ShellState
from wolo.workspace.root import Workspace, find_site

if TYPE_CHECKING:
    from wolo.agent.events import Event
    from wolo.agent.goal import Goal
    from wolo.conversation.hook_functions import HookFunction
    from wolo.extensions.hooks.hook_runner import ProgramHook
    from wolo.mcp.hosted.hosted_server import Exchange
    from wolo.models.http.transport import Transport
    from wolo.tools.web.search_backends import SearchService

OWN_ADDRESS = "own_address"
"""Option: ignore the base URL that was given for this run."""


class HookProgress(Struct, frozen=True):
    """Effects of hooks in earlier conversations of the same session."""

    has_begun: bool = False
    """SessionStart hooks have run."""
    variables: Mapping[str, str] = {}
    """Set for commands."""
    ran: frozenset[str] = frozenset()
    """Hooks that run only once."""
    source: str = ""
    """For SessionStart hooks; empty: as the session is found."""


NO_HOOKS = HookProgress()


class HookSessionStart(Struct, frozen=True, kw_only=True):
    """What hooks are told about the conversation that begins."""

    places: Places
    facts: Callable[[], Mapping[str, Any]]
    """Sent with every event."""
    instructions: Sequence[Path]
    is_resumed: bool
    is_attended: bool
    agent: str
    """That of the conversation; empty: none."""


class StartOptions(Struct, frozen=True, kw_only=True):
    """Selects the conversation to open."""

    flags: Flags
    """Command-line options by name."""
    attended: bool
    """A user can be asked."""
    change: ConversationChange | None = None
    """Set if another conversation of this process precedes."""
    first_provider: str = ""
    """Provider of the first conversation of the process; empty: this is the first."""
    history: tuple[Message, ...] = ()
    """Messages of an unsaved session that continues."""
    unsaved_id: str = ""
    """Id of that session, or of one that has no entries yet."""
    shell: ShellState | None = None
    """Handed over with its running commands."""
    servers: Servers | None = None
    """Handed over; reused if they are still the same."""
    cut: Cut | None = None
    """Compaction of an unsaved session."""
    goal: Goal | None = None
    """The goal of an unsaved session."""
    hooks: HookProgress = NO_HOOKS
    progress: Callable[[int, int], None] | None = None
    """Gets loaded and total bytes of the embedded model, from any thread."""
    cwd: Path | None = None
    """Directory of the conversation; None: the current one."""
    answers_approvals: bool = False
    """A program answers approvals although no user is present."""
    answers_questions: bool = False
    owns_loop: bool = False
    """The event loop draws nothing and serves nobody else, so it may wait for the disk: a thread takes longer than a commit."""
    transport: Transport | None = None
    """Carries the requests; None: the network."""
    tools: tuple[ExternalTool, ...] = ()
    """Tools of the embedding program."""
    files: ProgramFiles | None = None
    """Files of skills and agents of the embedding program."""
    editor: Editor | None = None
    """The editor that shows the files."""
    hook_functions: Mapping[str, HookFunction] = {}
    """Hooks of the embedding program, by event."""
    hook_callbacks: tuple[ProgramHook, ...] = ()
    """Hooks of a program that speaks Claude Code's protocol."""
    hosted_servers: Mapping[str, Exchange] = {}
    """MCP servers inside the embedding program, by name."""
    on_task_event: Callable[[Event, str], None] | None = None
    """Gets each event of a subagent, with the id of its `task` call; must not raise."""
    agents: tuple[AgentProfile, ...] = ()
    """Agents that the embedding program defines; they come before those of files."""
    local_context: LocalContext | None = None
    """Has begun to look around in the directory of the first conversation; None: begins with the conversation."""
    sends_local_context: bool = True
    """False: a program writes the prompts, which are sent as they are."""

    @property
    def asks_approvals(self) -> bool:
        return self.attended or self.answers_approvals

    @property
    def asks_questions(self) -> bool:
        return self.attended or self.answers_questions

    @property
    def was_asked(self) -> bool:
        """The user has just answered for everything the project brings along."""
        return self.attended and self.change is None


class ConversationChange(Struct, frozen=True, kw_only=True):
    """Differences between the next conversation and this one."""

    model: str = ""
    """Empty: the same."""
    session: str | None = ""
    """Id, name or title; empty: the same; None: a new one."""
    at_own_address: bool = False
    """Use the provider's own base URL instead of the one given for this run."""
    fork: bool = False
    """Continue in a copy of the session."""
    directories: tuple[str, ...] = ()
    """Added to the workspace of all following conversations."""
    cwd: Path | None = None
    """Directory of all following conversations; None: the same."""
    after_entry: int | None = None
    """Branch after this entry of the session; 0: before the first."""
    summary: Message | None = None
    """Tells the model about the abandoned branch."""
    record: CustomEntry | None = None
    """Saved with the branch."""
    history: tuple[Message, ...] | None = None
    """History of an unsaved session from now on; None: unchanged."""


class StartupState(Struct, frozen=True, kw_only=True):
    """Everything that is resolved before the parts of a conversation are wired."""

    options: StartOptions
    config: Config
    site: Site
    workspace: Workspace
    sandbox_plan: SandboxPlan
    choice: ModelChoice
    fallbacks: tuple[ModelChoice, ...]
    small: ModelChoice | None = None
    """The setting `small_model`."""
    agent: AgentProfile | None
    """The agent selected by `--agent`."""
    style: str = ""
    """Part of the system prompt that the setting `output_style` names."""
    web_search: SearchService | ModelChoice | None
    """A model: its provider searches."""
    """None: the web cannot be searched."""
    local_context: LocalContext | None = None
    """None: prompts are sent without."""
    sink: SessionSink
    notices: tuple[str, ...]

    @property
    def flags(self) -> Flags:
        return self.options.flags


class StartEnvironment:
    """What a start finds: settings, folders, keys, and the agent and style that were chosen."""

    def __init__(self, options: Flags, directory: Path | None, agents: Sequence[AgentProfile]) -> None:
        site = self.site = find_site(directory)
        config = layers.load(site, options, many(options, "set"))
        if options.get(OWN_ADDRESS):
            config = replace(config, endpoint=Endpoint())
        site.notices.extend(config.notices)
        self.environ = keys.with_stored_keys(site, config)
        self.workspace = Workspace(site.root, directories(options, "add_dir"), site.cwd)
        self.agent: AgentProfile | None = None
        if config.settings.agent.strip():
            self.agent = find_main_agent(config, site, agents)
            config = as_agent(config, self.agent)
            site.notices.extend(filter(None, [model_notice(self.agent, config)]))
        self.config = config
        self.sandbox_plan = plan_sandbox(config, self.workspace, site.places)
        self.style = read_output_style(config, site)


class ChosenModels(Struct, frozen=True):
    config: Config
    """As it applies to the provider of `choice`."""
    choice: ModelChoice
    fallbacks: tuple[ModelChoice, ...]
    small: ModelChoice | None
    notice: str


def check_start(options: StartOptions) -> None:
    """Raises WoloError if the conversation could not be opened. Looks its session up without locking it."""
    environment = StartEnvironment(options.flags, options.cwd, options.agents)
    session, change = None, options.change and replace(options.change, fork=False)
    if not options.flags.get("no_session"):
        with Store.open(environment.site.places.data) as store:
            session = find_session(store, options.flags, change, environment.site.cwd)
    models = _choose_models(options, environment, session)
    model_selection.check_reachable(models.choice, models.fallbacks, environment.site.places)


def prepare_start(options: StartOptions) -> StartupState:
    """Raises WoloError for the user; then nothing has been sent or saved."""
    given_options, environment = options.flags, StartEnvironment(options.flags, options.cwd, options.agents)
    site, plan = environment.site, environment.sandbox_plan
    places, cwd = site.places, site.cwd
    store = None if given_options.get("no_session") else Store.share(places.data)
    try:
        if store is not None and environment.config.settings.sessions.retention_days is not None:
            _expire_sessions(store, environment.config.settings.sessions.retention_days)
        session = find_session(store, given_options, options.change, cwd) if store else None
        named = options.change.model if options.change else ""
        local_context = options.local_context if options.change is None else None
        if local_context is None and options.sends_local_context and environment.config.settings.context.local:
            local_context = LocalContext(site.real_cwd)
            if session is None and not options.history:
                local_context.begin()  # looks around beside the rest of the start
        models = _choose_models(options, environment, session)
        config, choice, fallbacks = models.config, models.choice, models.fallbacks
        web_search = None
        if config.settings.web_search != WebSearchSettings():
            from wolo.conversation.resources.web_search import find_search_service  # noqa: PLC0415  # most users have none

            searchers = filter(None, (models.small, choice))
            web_search = find_search_service(config, environment.environ, site.notices, searchers)
        ad_hoc = bool(config.endpoint.base_url)
        name = None if options.change else text(given_options, "session") or None
        origin = SessionProperties(cwd=cwd, model=choice.label, mode=plan.mode.name, name=name, is_ad_hoc=ad_hoc)
        sink = _open_sink(store, session, origin, places, options)
    except BaseException:
        if store:
            store.close()
        raise
    model_notices = (
        models.notice,
        always_on_notice(choice),
        no_effect_notice(choice) if choice.thinking is not None else "",
        "" if named or not session else model_selection.gone_notice(config, choice, session.model),
    )
    return StartupState(
        options=options,
        config=config,
        site=site,
        workspace=environment.workspace,
        sandbox_plan=plan,
        choice=choice,
        fallbacks=fallbacks,
        small=models.small,
        agent=environment.agent,
        style=environment.style,
        web_search=web_search,
        local_context=None if choice.provider.name == "local" or not config.settings.context.local else local_context,
        sink=sink,
        notices=(
            *site.notices,
            *show_once(places, plan.notice),
            *filter(None, model_notices),
            *sink.notices,
            *_place_notices(site, session),
        ),
    )


def _place_notices(site: Site, session: SessionInfo | None) -> Iterator[str]:
    """A session that was elsewhere before, and files of other agents that nothing reads, each once in a folder."""
    if session is not None and os.path.realpath(session.cwd) != os.path.realpath(site.cwd):
        gone = "" if Path(session.cwd).is_dir() else ", which is gone"
        yield f"This session was started in {session.cwd}{gone}; it continues in {site.cwd}."
    if unread := project.find_unread(site.root, site.real_cwd):
        from wolo.config.unread_places import name_once  # noqa: PLC0415  # few projects have any

        yield from name_once(site.places, site.root, unread)


def _expire_sessions(store: Store, retention_days: float) -> None:
    """Deletes sessions that were not used for so long and are not open."""
    before = time.time() - retention_days * 86400
    for info in store.list():
        if info.updated < before and not info.live:
            with suppress(SessionError):  # another process has opened or deleted it
                store.delete(info.id, "expired")


def _choose_models(options: StartOptions, environment: StartEnvironment, session: SessionInfo | None) -> ChosenModels:
    environ, named = environment.environ, options.change.model if options.change else ""
    config = model_selection.for_provider_of(environment.config, environ, named, options.first_provider)
    choice = model_selection.choose(config, environ, named=named, last=session.model if session else "")
    if environment.agent is not None and choice.provider.name == "local":
        raise UsageError(
            f"The embedded model cannot work as the agent {environment.agent.name}.", hint="Leave --agent out, or use -m."
        )
    if environment.agent is not None and environment.agent.temperature is not None:
        choice = replace(choice, temperature=environment.agent.temperature)
    fallbacks = model_selection.choose_fallbacks(config, environ, choice)
    small, notice = model_selection.choose_small(config, environ, choice)
    model_selection.check_prices(config, choice, *fallbacks, small)
    return ChosenModels(config, choice, fallbacks, small, notice)


def _open_sink(
    store: Store | None, session: SessionInfo | None, origin: SessionProperties, places: Places, options: StartOptions
) -> SessionSink:
    if store is None:
        return UnsavedSession(places.state, time.time(), options.history, options.unsaved_id)
    change, branch = options.change, None
    if change is not None and change.after_entry is not None:
        branch = Branch(after_entry=change.after_entry, summary=change.summary, record=change.record)
    return SavedSession(store, session, origin, time.time(), branch, options.unsaved_id, updates_index=options.attended)


def show_once(places: Places, notice: str) -> tuple[str, ...]:
    """The notice, unless it was shown before on this machine."""
    shown = places.state / "told-no-sandbox"
    if not notice or shown.exists():
        return ()
    try:
        make_private(places.state)
        shown.touch(mode=0o600)
    except OSError:
        pass  # then it is shown again
    return (notice,)


def find_session(store: Store, options: Flags, change: ConversationChange | None, cwd: Path) -> SessionInfo | None:
    """None: a new session. Raises SessionError for an unknown one."""
    if change is not None:
        named = store.find(change.session, cwd) if change.session else None
        return store.fork(named.id) if named and change.fork else named
    ways = [f"--{name}" for name in ("continue", "resume", "session") if name in options]
    if len(ways) > 1:
        raise UsageError(f"{' and '.join(ways)} select two sessions; use one of them.")
    if options.get("fork") and not ways:
        raise UsageError("--fork needs a session to copy.", hint="Name it with -c, -r or -s.")
    session: SessionInfo | None = None
    if "resume" in options:
        if not options["resume"]:
            raise UsageError("-r needs the id, name or title of a session here.", hint="`wolo sessions list` shows them.")
        session = store.find(text(options, "resume"), cwd)
    elif options.get("continue"):
        if (session := store.latest(cwd)) is None:
            raise SessionError(
                "There is no session of this directory to continue.", hint="`wolo sessions list --all` shows others."
            )
    elif name := text(options, "session"):
        session = store.exactly(name)
    return store.fork(session.id) if session and options.get("fork") else session
