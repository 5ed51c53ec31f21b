"""Settings in, conversation out: the one file that knows every room. A list of joints, kept flat."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from wolo.agent.calls import AskPerson, Emit
from wolo.agent.events import ApprovalAsked, ApprovalGiven
from wolo.agent.loop import Agent
from wolo.agent.prompt import build_system_prompt
from wolo.config import keys, layers
from wolo.config.schema import Config
from wolo.conversation.choosing import choose, find
from wolo.conversation.conversation import Change, Conversation, Facts, Joints
from wolo.conversation.keeping import Kept, KeptInStore, KeptNowhere, Origin
from wolo.conversation.recorder import Recorder
from wolo.errors import SessionError, UsageError
from wolo.extensions.instructions import read_instructions
from wolo.guard.judge import Judge
from wolo.guard.modes import Mode, effective
from wolo.models import price
from wolo.models.ask import Asker
from wolo.models.provider import Choice
from wolo.places import Places, find_places
from wolo.sessions.listing import SessionInfo
from wolo.sessions.store import Store
from wolo.tools.tool import ShellState, ToolContext
from wolo.tools.toolbox import Toolbox
from wolo.workspace.files import FileLedger
from wolo.workspace.root import Workspace, find_root

Given = Mapping[str, "str | bool | list[str]"]


class Opening(Struct, frozen=True, kw_only=True):
    """Which conversation to open, and how."""

    given: Given
    """The options of the command line, by name."""
    attended: bool
    """A person is there to be asked."""
    change: Change | None = None
    """Set when it follows another one in the same process."""


async def open_conversation(opening: Opening) -> Conversation:
    """Raises WoloError for what a person must mend; nothing has been sent or kept then."""
    given, places, cwd = opening.given, find_places(), Path.cwd()
    config = layers.load(places, os.environ, given, _many(given, "set"), cwd)
    notices = [*config.notices]
    environ = keys.with_kept_keys(os.environ, places, notices)
    _check_sandbox(config)
    mode, mode_notice = effective(config.settings.mode)
    workspace = Workspace(find_root(cwd), tuple(map(_directory, _many(given, "add_dir"))), cwd)
    store = None if given.get("no_session") else Store.open(places.data)
    try:
        session = _find_session(store, opening, cwd) if store else None
        choice = choose(
            config, environ, named=opening.change.model if opening.change else "", last=session.model if session else ""
        )
        if config.settings.limits.max_cost is not None and not price.is_known(choice.model.price):
            raise UsageError(f"--max-cost cannot be kept: the price of {choice.label} is not known.")
        kept = _keep(store, session, Origin(cwd=cwd, model=choice.label, mode=mode.name, name=_new_name(opening)), places)
    except BaseException:
        if store:
            store.close()
        raise
    return _tie(
        opening,
        config,
        choice,
        kept,
        workspace,
        mode,
        (*notices, *_said_once(places, mode_notice), *kept.notices, *_moved(session, cwd)),
    )


def _tie(
    opening: Opening,
    config: Config,
    choice: Choice,
    kept: Kept,
    workspace: Workspace,
    mode: Mode,
    notices: tuple[str, ...],
) -> Conversation:
    given, settings, places, cwd = opening.given, config.settings, find_places(), Path.cwd()
    judge = Judge(
        mode,
        config.rules,
        workspace.root,
        extra_roots=workspace.extra,
        cwd=cwd,
        own_places=(places.config, places.data, places.state),
        free_reads=(places.data / "blobs",),
    )
    context = ToolContext(
        workspace=workspace,
        ledger=FileLedger(places.state / "file-locks"),
        keep=kept.keep,
        shell=ShellState(cwd),
        secrets=keys.secrets(os.environ, (choice.api_key,)),
        shell_timeout_s=settings.shell.timeout_s,
        readable=judge.readable,
    )
    toolbox = Toolbox().offer(settings.tools.offer, settings.tools.hide)
    instructions = read_instructions(workspace.root, Path(os.path.realpath(cwd)), places.config)
    system = build_system_prompt(
        cwd,
        instructions=instructions.text,
        display_name=_text(given, "name") or "Wolo",
        replacement=_text_or_file(given, "system_prompt") or None,
        appendix=_text_or_file(given, "append_system_prompt"),
    )
    asker = _make_asker(config, choice, cwd, places, _text(given, "debug_wire"))
    recorder = Recorder(kept, kept.session_id)

    def make_agent(emit: Emit, ask_person: AskPerson | None) -> Agent:
        return Agent(
            asker,
            toolbox,
            context,
            judge,
            emit=emit,
            ask_person=ask_person,
            system=system,
            session_id=kept.session_id,
            limits=settings.limits,
        )

    def decided(asked: ApprovalAsked, answer: ApprovalGiven) -> None:
        if answer.allowed and answer.scope == "always" and asked.rule:
            from wolo.config.change import remember_rule

            remember_rule(places, workspace.root, asked.rule)

    async def close() -> None:
        await asker.close()
        context.shell.processes.close_all()
        recorder.close()
        kept.close()

    async def reopen(change: Change) -> Conversation:
        following = Opening(given=given, attended=opening.attended, change=_following(change, kept.session_id, choice))
        _check_following(config, following)
        await conversation.close()
        return await open_conversation(following)

    def sessions() -> list[SessionInfo]:
        with Store.open(places.data) as store:
            return store.list(cwd)

    facts = Facts(
        session_id=kept.session_id,
        model=choice.label,
        cwd=cwd,
        root=workspace.root,
        mode=mode.name,
        tool_names=toolbox.names,
        keeps_session=isinstance(kept, KeptInStore),
        notices=tuple(filter(None, (*notices, *instructions.notices))),
    )
    joints = Joints(make_agent, decided, close, context.shell.processes.close_all, reopen, sessions)
    conversation = Conversation(facts, joints, recorder, kept.history, attended=opening.attended)
    return conversation


# The model


def _make_asker(config: Config, choice: Choice, cwd: Path, places: Places, wire_log: str) -> Asker:
    from wolo.models.http import HttpTransport
    from wolo.models.stream import ModelStream, Surroundings, make_format

    around = Surroundings(
        headers=config.settings.headers,
        retries=config.settings.retry,
        project=cwd.name,
        wire_log=Path(wire_log) if wire_log else None,
    )
    if choice.provider.name == "local":
        from wolo.models.embedded import EmbeddedModel

        return EmbeddedModel(choice, places)
    return ModelStream(choice, make_format(choice), HttpTransport(), around)


# The session


def _find_session(store: Store, opening: Opening, cwd: Path) -> SessionInfo | None:
    """None: a new one. Raises SessionError when the one that was named is not there."""
    given, change = opening.given, opening.change
    if change is not None:
        return store.find(change.session, cwd) if change.session else None
    session: SessionInfo | None = None
    if "resume" in given:
        if not given["resume"]:
            raise UsageError("-r needs the id, name or title of a session here.", hint="`wolo sessions list` shows them.")
        session = store.find(_text(given, "resume"), cwd)
    elif given.get("continue"):
        session = store.latest(cwd)
        if session is None:
            raise SessionError(
                "There is no session of this directory to go on with.", hint="`wolo sessions list --all` shows others."
            )
    elif name := _text(given, "session"):
        session = store.named(name)
    return store.fork(session.id) if session and given.get("fork") else session


def _new_name(opening: Opening) -> str | None:
    """The name a session gets if it has to be made."""
    return None if opening.change else _text(opening.given, "session") or None


def _keep(store: Store | None, session: SessionInfo | None, origin: Origin, places: Places) -> Kept:
    if store is None:
        return KeptNowhere(places.state, time.time())
    return KeptInStore(store, session, origin, time.time())


def _moved(session: SessionInfo | None, cwd: Path) -> tuple[str, ...]:
    if session is None or os.path.realpath(session.cwd) == os.path.realpath(cwd):
        return ()
    return (f"This session was begun in {session.cwd}; it goes on in {cwd}.",)


def _following(change: Change, session_id: str, choice: Choice) -> Change:
    session = session_id if change.session == "" else change.session
    return Change(model=change.model or choice.label, session=session)


def _check_following(config: Config, following: Opening) -> None:
    """Whatever can fail fails here, while the conversation at hand still lives."""
    assert following.change is not None
    find(config, keys.with_kept_keys(os.environ, find_places(), []), following.change.model)
    if following.change.session:
        with Store.open(find_places().data) as store:
            store.find(following.change.session, Path.cwd())


# The command line


def _said_once(places: Places, notice: str) -> tuple[str, ...]:
    """A notice that a person needs to read once, not every day."""
    told = places.state / "told-no-sandbox"
    if not notice or told.exists():
        return ()
    try:
        places.state.mkdir(mode=0o700, parents=True, exist_ok=True)
        told.touch(mode=0o600)
    except OSError:
        pass  # then it is said again
    return (notice,)


def _check_sandbox(config: Config) -> None:
    if config.settings.sandbox.backend == "required":
        raise UsageError("--sandbox required: there is no sandbox on this machine that wolo can use.")


def _text(given: Given, name: str) -> str:
    value = given.get(name, "")
    return value if isinstance(value, str) else ""


def _many(given: Given, name: str) -> list[str]:
    value = given.get(name, [])
    return value if isinstance(value, list) else []


def _text_or_file(given: Given, name: str) -> str:
    text = _text(given, name)
    if not text.startswith("@"):
        return text
    try:
        return Path(text[1:]).expanduser().read_text(encoding="utf-8", errors="replace")
    except (OSError, ValueError) as error:
        raise UsageError(f"--{name.replace('_', '-')}: {text[1:]} cannot be read: {error}.") from error


def _directory(name: str) -> Path:
    path = Path(name).expanduser()
    if not path.is_dir():
        raise UsageError(f"--add-dir: there is no directory {name}.")
    return path.absolute()
