"""What is settled before the rooms of a conversation are tied together: settings, walls, the models, the session."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from wolo.agent.compaction.history_cut import Cut
from wolo.config import keys, layers
from wolo.config.cli_options import Given, directories, many, text
from wolo.config.schema import Config, Endpoint, Ui
from wolo.conversation.resources.model_selection import (
    check_prices,
    check_reachable,
    choose,
    choose_fallback,
    for_provider_of,
    gone_notice,
)
from wolo.conversation.resources.persistence import Branch, Origin, SavedSession, SessionSink, UnsavedSession
from wolo.conversation.resources.tool_environment import SandboxPlan, plan_sandbox
from wolo.errors import SessionError, UsageError
from wolo.extensions.agent_files import Profile
from wolo.mcp.servers import Servers
from wolo.messages.message import Message
from wolo.models.capabilities import always_on_notice
from wolo.models.provider import Choice
from wolo.places import Places, find_places, make_private
from wolo.sessions.entries import CustomEntry
from wolo.sessions.listing import SessionInfo
from wolo.sessions.store import Store
from wolo.tools.tool import ShellState
from wolo.workspace.root import Workspace, find_root

OWN_ADDRESS = "own_address"
"""Among the options of a conversation: the address that was given for this run does not count any more."""


class StartOptions(Struct, frozen=True, kw_only=True):
    """Which conversation to open, and how."""

    given: Given
    """The options of the command line, by name."""
    attended: bool
    """A person is there to be asked."""
    change: Change | None = None
    """Set when it follows another one in the same process."""
    first_provider: str = ""
    """Of the first conversation of the process; empty: this is it."""
    said: tuple[Message, ...] = ()
    """What was said so far, where no session keeps it."""
    unkept_id: str = ""
    """By which that conversation is known."""
    shell: ShellState | None = None
    """What of its commands runs on."""
    servers: Servers | None = None
    """Those of it, which go on if they are the same."""
    cut: Cut | None = None
    """What of it is not sent."""
    hooks_have_begun: bool = False
    """They have heard of the beginning of this session."""
    hook_variables: Mapping[str, str] = {}
    """Those that they have set for commands then."""
    progress: Callable[[int, int], None] | None = None
    """Hears how many bytes of the embedded model's weights are ready, and of how many; from any thread."""

    @property
    def was_asked(self) -> bool:
        """The person has just answered for all that a project brings along."""
        return self.attended and self.change is None


class StartupState(Struct, frozen=True, kw_only=True):
    """What is settled before the rooms are tied together."""

    opening: StartOptions
    config: Config
    places: Places
    cwd: Path
    workspace: Workspace
    enclosure: SandboxPlan
    choice: Choice
    fallback: Choice | None
    agent: Profile | None
    """The one that it works as."""
    kept: SessionSink
    notices: tuple[str, ...]

    @property
    def given(self) -> Given:
        return self.opening.given


class StartEnvironment(Struct, frozen=True, kw_only=True):
    """What a conversation is opened on: the settings, the directories and the sandbox."""

    config: Config
    places: Places
    cwd: Path
    workspace: Workspace
    enclosure: SandboxPlan
    environ: Mapping[str, str]
    """With the keys that wolo keeps."""
    agent: Profile | None
    """The one that the conversation works as."""
    notices: tuple[str, ...]


class ChosenModels(Struct, frozen=True):
    config: Config
    """As it holds for the provider that is asked."""
    choice: Choice
    fallback: Choice | None


def check_start(opening: StartOptions) -> None:
    """Raises WoloError where the conversation of this `opening` could not be opened. Its session is looked up, not locked."""
    grounds = _prepare_grounds(opening.given)
    session, change = None, opening.change and replace(opening.change, fork=False)
    if not opening.given.get("no_session"):
        with Store.open(grounds.places.data) as store:
            session = find_session(store, opening.given, change, grounds.cwd)
    models = _choose_models(opening, grounds, session)
    check_reachable(models.choice, models.fallback, grounds.places)


def prepare_start(opening: StartOptions) -> StartupState:
    """Raises WoloError for what a person must mend; nothing has been sent or kept then."""
    given, grounds = opening.given, _prepare_grounds(opening.given)
    places, cwd, enclosure = grounds.places, grounds.cwd, grounds.enclosure
    store = None if given.get("no_session") else Store.open(places.data)
    try:
        session = find_session(store, given, opening.change, cwd) if store else None
        named = opening.change.model if opening.change else ""
        models = _choose_models(opening, grounds, session)
        config, choice, fallback = models.config, models.choice, models.fallback
        ad_hoc = bool(config.endpoint.base_url)
        origin = Origin(cwd=cwd, model=choice.label, mode=enclosure.mode.name, name=_new_name(opening), is_ad_hoc=ad_hoc)
        kept = _keep(store, session, origin, places, opening)
    except BaseException:
        if store:
            store.close()
        raise
    return StartupState(
        opening=opening,
        config=config,
        places=places,
        cwd=cwd,
        workspace=grounds.workspace,
        enclosure=enclosure,
        choice=choice,
        fallback=fallback,
        agent=grounds.agent,
        kept=kept,
        notices=(
            *grounds.notices,
            *show_once(places, enclosure.notice),
            *filter(
                None,
                [
                    always_on_notice(choice),
                    _no_effect_notice(choice),
                    "" if named or not session else gone_notice(config, choice, session.model),
                ],
            ),
            *kept.notices,
            *moved_notice(session, cwd),
        ),
    )


def _prepare_grounds(given: Given) -> StartEnvironment:
    places, cwd = find_places(), Path.cwd()
    config = layers.load(places, os.environ, given, many(given, "set"), cwd)
    if given.get(OWN_ADDRESS):
        config = replace(config, endpoint=Endpoint())
    notices = [*config.notices]
    environ = keys.with_stored_keys(os.environ, places, notices, config.settings.providers)
    workspace = Workspace(find_root(cwd), directories(given, "add_dir"), cwd)
    agent = None
    if config.settings.agent.strip():
        from wolo.conversation.resources.user_files import as_agent, find_main_agent, model_notice  # noqa: PLC0415  # rarely named

        agent = find_main_agent(config, places, workspace.root, cwd)
        config = as_agent(config, agent)
        notices += filter(None, [model_notice(agent)])
    return StartEnvironment(
        config=config,
        places=places,
        cwd=cwd,
        workspace=workspace,
        enclosure=plan_sandbox(config, workspace, places),
        environ=environ,
        agent=agent,
        notices=tuple(notices),
    )


def _choose_models(opening: StartOptions, grounds: StartEnvironment, session: SessionInfo | None) -> ChosenModels:
    environ, named = grounds.environ, opening.change.model if opening.change else ""
    config = for_provider_of(grounds.config, environ, named, opening.first_provider)
    choice = choose(config, environ, named=named, last=session.model if session else "")
    if grounds.agent is not None and choice.provider.name == "local":
        raise UsageError(
            f"The embedded model cannot work as the agent {grounds.agent.name}.", hint="Leave --agent out, or use -m."
        )
    fallback = choose_fallback(config, environ, choice)
    check_prices(config, choice, fallback)
    return ChosenModels(config, choice, fallback)


def _no_effect_notice(choice: Choice) -> str:
    if choice.thinking is None:
        return ""
    from wolo.models.capabilities import no_effect_notice  # noqa: PLC0415  # loads the wire format

    return no_effect_notice(choice)


def _new_name(opening: StartOptions) -> str | None:
    """The name a session gets if it has to be made."""
    return None if opening.change else text(opening.given, "session") or None


def _keep(store: Store | None, session: SessionInfo | None, origin: Origin, places: Places, opening: StartOptions) -> SessionSink:
    if store is None:
        return UnsavedSession(places.state, time.time(), opening.said, opening.unkept_id)
    change, branch = opening.change, None
    if change is not None and change.behind is not None:
        branch = Branch(behind=change.behind, summary=change.summary, why=change.why)
    return SavedSession(store, session, origin, time.time(), branch)


def show_once(places: Places, notice: str) -> tuple[str, ...]:
    """The notice, if nobody has read it yet on this machine."""
    told = places.state / "told-no-sandbox"
    if not notice or told.exists():
        return ()
    try:
        make_private(places.state)
        told.touch(mode=0o600)
    except OSError:
        pass  # then it is said again
    return (notice,)


class ConversationInfo(Struct, frozen=True, kw_only=True):
    """What a front end may show about a conversation; only `set_mode` changes some of it while the conversation lives."""

    session_id: str
    model: str
    """`provider/model`."""
    cwd: Path
    root: Path
    """The directory that counts as inside; the repository's, when there is one."""
    mode: str
    sandbox: str = ""
    """The backend that holds commands; empty: none does."""
    tool_names: tuple[str, ...]
    ui: Ui = Ui()
    """How the settings want it to look and to be typed in."""
    keeps_session: bool = True
    begun_in: str = ""
    """The directory of the session that goes on; empty for a new one."""
    notices: tuple[str, ...] = ()
    """Said once, with the first prompt."""


class EnteredMode(Struct, frozen=True, kw_only=True):
    """Which mode holds once another one was asked for."""

    name: str
    sandbox: str
    """The backend that holds commands in it; empty: none does."""
    notice: str
    """For a person, when it is not the mode that was asked for."""


class Change(Struct, frozen=True, kw_only=True):
    """How the next conversation differs from this one."""

    model: str = ""
    """Empty: the same."""
    session: str | None = ""
    """Another one by id, name or title; empty: the same one; None: a new one."""
    at_own_address: bool = False
    """The model is asked at its provider's address from now on, whatever address was given for this run."""
    fork: bool = False
    """Continue in a copy of that session."""
    directories: tuple[str, ...] = ()
    """Added to the workspace, for all conversations of this process that follow."""
    behind: int | None = None
    """Go on behind this entry of the same session, on a new branch; 0: before the first."""
    summary: Message | None = None
    """What the model is told of the branch that is left."""
    why: CustomEntry | None = None
    """Kept with it."""
    said: tuple[Message, ...] | None = None
    """What counts as said from now on, where no session keeps it; None: all that was."""


def find_session(store: Store, given: Given, change: Change | None, cwd: Path) -> SessionInfo | None:
    """None: a new one. Raises SessionError when the one that was named is not there."""
    if change is not None:
        named = store.find(change.session, cwd) if change.session else None
        return store.fork(named.id) if named and change.fork else named
    ways = [f"--{name}" for name in ("continue", "resume", "session") if name in given]
    if len(ways) > 1:
        raise UsageError(f"{' and '.join(ways)} name two sessions; there can be one.")
    if given.get("fork") and not ways:
        raise UsageError("--fork needs a session to copy.", hint="Name it with -c, -r or -s.")
    session: SessionInfo | None = None
    if "resume" in given:
        if not given["resume"]:
            raise UsageError("-r needs the id, name or title of a session here.", hint="`wolo sessions list` shows them.")
        session = store.find(text(given, "resume"), cwd)
    elif given.get("continue"):
        session = store.latest(cwd)
        if session is None:
            raise SessionError(
                "There is no session of this directory to go on with.", hint="`wolo sessions list --all` shows others."
            )
    elif name := text(given, "session"):
        session = store.named(name)
    return store.fork(session.id) if session and given.get("fork") else session


def moved_notice(session: SessionInfo | None, cwd: Path) -> tuple[str, ...]:
    if session is None or os.path.realpath(session.cwd) == os.path.realpath(cwd):
        return ()
    gone = "" if Path(session.cwd).is_dir() else ", which is gone"
    return (f"This session was begun in {session.cwd}{gone}; it goes on in {cwd}.",)
