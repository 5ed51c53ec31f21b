"""The interface of tools, and the services and context their calls get."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, runtime_checkable

from msgspec import Struct, field
from msgspec.structs import FieldInfo, fields, replace

from wolo.errors import ToolError
from wolo.formats.format import ToolSpec
from wolo.guard.intents import Intent, ReadIntent, WriteIntent
from wolo.guard.modes import MODES
from wolo.guard.sandbox_contract import Sandbox, SandboxedCommand
from wolo.guard.secrets.redactor import Secrets
from wolo.messages.message import Message
from wolo.messages.parts import ToolKind
from wolo.tools.tool_values import BUILTIN as BUILTIN_SUBAGENTS
from wolo.tools.tool_values import AskQuestions, CallResult, Diff, Location, SubagentOffer, TaskRequest, View
from wolo.workspace.processes.command_environment import CommandVariables
from wolo.workspace.processes.process_runner import Processes
from wolo.workspace.root import Resolved, Workspace

if TYPE_CHECKING:
    from wolo.tools.background.background_jobs import BackgroundJobs
    from wolo.tools.web.command_proxy import AskHost, CommandNetwork, CommandProxy
    from wolo.tools.web.search_backends import ProviderSearch, SearchService
    from wolo.workspace.checkpoints.tracker import FileTracker
    from wolo.workspace.files.atomic_write import PendingChange
    from wolo.workspace.files.file_reading import FileLedger
    from wolo.workspace.processes.login_shell import LoginShell

UNOFFERED = "x-unoffered"
"""Schema key of an argument that is accepted but not shown to the model."""
DIAGNOSTICS = "diagnostics"
"""Key of the errors that an edit made, in the metadata of its call."""
FIND_TOOLS = "find_tools"
"""Name of the tool that finds deferred tools."""
READ_RESOURCE = "read_resource"
"""Name of the tool that reads resources of MCP servers."""


class OfferedSkill(Struct, frozen=True):
    """A skill that the model may load."""

    path: Path
    """Real path of the file."""
    tell: Callable[[], str]
    """Returns the text and the list of files next to it. May block; raises ToolError."""


class UserRun(Struct, frozen=True, kw_only=True):
    """A command that the user ran."""

    command: str
    exit_code: int | None
    ended_at: float


class ShellState(Struct):
    """State shared by all commands of a conversation."""

    cwd: Path
    """Working directory of the next command; `cd` changes it."""
    processes: Processes = field(default_factory=Processes)
    """Processes started by commands."""
    jobs: BackgroundJobs | None = None
    """Background jobs; None: not available."""
    closing: list[Callable[[], None]] = field(default_factory=list)
    """Clean-up functions, called by `close`."""
    language_servers: object = None
    """Servers that check edits; None: none was started."""
    user_runs: list[UserRun] = field(default_factory=list)
    """Commands of the user, oldest first."""
    login_shell: LoginShell | None = None
    """What commands know of the user's login shell; None: nothing."""

    def go_on(self, cwd: Path) -> ShellState:
        """State for the next conversation of the same session; running processes continue."""
        return ShellState(cwd, self.processes, self.jobs, self.closing, self.language_servers, self.user_runs, self.login_shell)

    def close(self) -> None:
        """Ends everything except detached jobs. May be called again."""
        self.processes.close_all()
        if self.jobs is not None:
            self.jobs.close()
        while self.closing:
            self.closing.pop()()


class CommandSandbox(Struct):
    """The sandbox that commands run in; shared by a conversation and its subagents."""

    make: Callable[[], Sandbox] | None = None
    """None: no sandbox. Set when a mode is entered that needs one."""
    made: Sandbox | None = None

    def prepare(self) -> None:
        """Makes the sandbox. Called before each call: none of them changes what commands will see."""
        if self.made is None and self.make is not None:
            self.made = self.make()

    @property
    def walls(self) -> Sandbox | None:
        self.prepare()
        return self.made


class ModeSwitch(Struct):
    """The permission mode of a conversation, for its agent and for the tool that ends plan mode."""

    in_force: str
    """The mode of the conversation, or the ceiling where that is stricter; `enter` changes it."""
    ceiling: str = ""
    """The least strict mode that the agent file allows; empty: any."""
    change: Callable[[str, str], None] = lambda name, plan_file: None
    """Enters a mode for the plan in that file, or the nearest one where there is no sandbox for it."""

    def __post_init__(self) -> None:
        self.enter(self.in_force)

    def enter(self, name: str) -> None:
        self.in_force = min(name, self.ceiling or name, key=list(MODES).index)


class EditChecks(Protocol):
    async def run(self, context: CallContext, call: Callable[[], Awaitable[CallResult]], *, is_edit: bool) -> CallResult:
        """Runs a call, and adds the errors that it makes to its result, or those of earlier edits that were not known in time."""

    async def look_up(self, path: Path, method: str, params: dict[str, Any]) -> Any:
        """Asks the language server of a file. Raises ToolError."""


class Editor(Protocol):
    """The user's editor, where files may be open with changes that are not saved."""

    @property
    def is_late(self) -> bool:
        """It has not answered a request in time; until it does, it gets no other."""

    async def text(self, path: Path) -> str | None:
        """None: it does not have the file."""

    async def write(self, path: Path, text: str) -> None:
        """Shows the new text of a file that was changed on disk."""


class ToolServices(Struct, frozen=True, kw_only=True):
    """Everything that the tools of one agent share; complete before its first call."""

    workspace: Workspace
    ledger: FileLedger
    """Files this session has read and written, by content hash."""
    save_output: Callable[[str, bytes], Path]
    """Stores a large output under a name and returns the file, which the model can page with `read`."""
    shell: ShellState
    secrets: Secrets = field(default_factory=Secrets)
    """Results are redacted after the call; a tool redacts only text that it cuts or saves itself."""
    shell_timeout_s: float = 120.0
    variables: CommandVariables = field(default_factory=CommandVariables)
    """Of the user, as far as commands get them."""
    session_env: Mapping[str, str] = field(default_factory=dict)
    """Variables that the user's hooks set for commands."""
    environment: Mapping[str, str] | None = None
    """The complete environment of commands; None: `variables` and `session_env`."""
    may_fetch: Callable[[str], bool] = lambda url: False
    """True for a redirect target that may be fetched without approval."""
    web_search: SearchService | ProviderSearch | None = None
    """None: the web cannot be searched."""
    is_readable: Callable[[Path], bool] = lambda path: True
    """False for files that searches must leave out. Takes a resolved, absolute path."""
    all_readable: Callable[[Path, Sequence[str]], bool] = lambda folder, names: False
    """A quick check: True if `is_readable` is for every file of these names in the folder; False says nothing."""
    ask_user: AskQuestions | None = None
    """None: no user can be asked."""
    agents: Sequence[SubagentOffer] = BUILTIN_SUBAGENTS
    """Subagents that a task can be given to."""
    delegate: Delegate | None = None
    """None: no subagent can run."""
    find_task: Callable[[str], str] | None = None
    """The agent of an ended task by its id. Raises ToolError for an unknown one; None: no task can be resumed."""
    works_for: str = ""
    """Call id in the parent conversation of a subagent; its changes are attributed to that call."""
    find_skill: Callable[[str], OfferedSkill] | None = None
    """Raises ToolError for an unknown name; None: there are no skills."""
    propose_note: Callable[[str, bool], str] | None = None
    """Puts a note into the user's inbox, for all projects if true; returns the result. Raises ToolError."""
    recorded_result: Callable[[str], CallResult | None] = lambda call_id: None
    """In a replay, the recorded result of a call that would ask the network or the user."""
    recall: Callable[[], Sequence[Message]] = tuple
    """The whole conversation so far, including messages that are no longer sent."""
    mode: ModeSwitch | None = None
    """None: for a subagent, and in a replay."""
    sandbox: CommandSandbox = field(default_factory=CommandSandbox)
    network: Callable[[], CommandNetwork] | None = None
    """Loads what commands in the sandbox may reach; None: nothing."""
    has_domains: bool = False
    """Some hosts may be reached unasked."""
    tracker: Callable[[], FileTracker] | None = None
    """Detects changes of the workspace by commands; None: such changes are not tracked."""
    edit_checks: Callable[[], EditChecks] | None = None
    """Loads what checks edits; None: they are not checked."""
    editor: Editor | None = None
    """None: wolo was not started by an editor that shows its files."""
    record_change: Callable[[str, PendingChange], None] = lambda call_id, change: None
    """Called with the call's id right before a tool changes a file; an exception prevents the change."""

    def for_call(
        self,
        call_id: str,
        progress: Callable[[str], None],
        judged: Sequence[Intent] | None = None,
        *,
        confined: bool = False,
        only_reads: bool = False,
        part_id: str = "",
    ) -> CallContext:
        return CallContext(self, call_id, part_id, progress, judged, confined, only_reads)


class CallContext(Struct, frozen=True):
    """A running call, and the services it may use."""

    services: ToolServices
    call_id: str = ""
    part_id: str = ""
    """Identifies the call in events."""
    progress: Callable[[str], None] = lambda text: None
    """Takes live output for the front end, which may skip some of it."""
    judged: Sequence[Intent] | None = None
    """The intents that were allowed."""
    confined: bool = False
    """The call is allowed inside the sandbox only."""
    only_reads: bool = False
    """The call is known to change nothing."""
    ask_host: AskHost | None = None
    """None: no user can be asked about hosts that a command connects to."""
    unsaved: Mapping[Path, bytes] = {}
    """Content of files that differs in the user's editor."""

    def note_change(self, change: PendingChange) -> None:
        """Pass this to `write_atomic` and its like as `note`: every change by the model must be recorded."""
        if self.services.sandbox.made is not None:
            self.services.sandbox.made.give_way(str(change.path))
        self.services.record_change(self.services.works_for or self.call_id, change)

    async def prepare(self) -> None:
        """Does the slow part of `enclose` in a thread; await it first. Raises ToolError."""
        walls = self.services.sandbox.walls
        if self.confined and walls is not None and not self.only_reads:
            await asyncio.to_thread(walls.prepare)

    def open_proxy(self, *, in_background: bool = False) -> CommandProxy | None:
        """The way of a command of this call to allowed hosts. None: it needs none, or may reach nothing."""
        services, walls = self.services, self.services.sandbox.walls
        if services.network is None or not self.confined or self.only_reads or walls is None or not walls.has_proxy:
            return None
        if not services.has_domains and self.ask_host is None:
            return None
        from wolo.tools.web.command_proxy import CommandProxy  # noqa: PLC0415  # most commands have no network

        return CommandProxy(services.network(), self.ask_host, is_job=in_background)

    def enclose(
        self, argv: Sequence[str], cwd: Path, *, in_background: bool = False, proxy: CommandProxy | None = None
    ) -> SandboxedCommand:
        """The command line as this call may run it; `in_background`: it continues after the call. The end of the command closes
        the proxy.

        Raises ToolError when the call needs a sandbox and there is none.
        """
        if not self.confined:
            return SandboxedCommand(tuple(argv))
        if (walls := self.services.sandbox.walls) is None:
            raise ToolError("This command may run inside the sandbox only, and there is none; it was not run.")
        inside = () if self.services.environment is not None else self.services.variables.set_inside()
        if proxy is None:
            return walls.wrap((*inside, *argv), cwd, only_reads=self.only_reads, in_background=in_background)
        try:
            enclosed = walls.wrap((*inside, *argv), cwd, in_background=in_background, proxy_fd=proxy.fd)
        except BaseException:
            proxy.close()
            raise

        def clean_up() -> None:
            proxy.close()
            enclosed.cleanup()

        return replace(enclosed, cleanup=clean_up)

    @property
    def is_outside(self) -> bool:
        """It runs without a sandbox, and not only because it is known to be safe."""
        return not self.confined and not self.only_reads

    def environment(self) -> Mapping[str, str]:
        """Variables of a command that this call starts."""
        services = self.services
        if services.environment is not None:
            return services.environment
        return services.variables.select(is_outside=self.is_outside, more=services.session_env)

    def explain_hidden(self, text: str) -> list[str]:
        """Notes about variables that a failed command of this call lacked; `text` is its own and what it printed."""
        services = self.services
        if services.environment is not None or self.only_reads:  # a safe command expands no variable
            return []
        return services.variables.explain(text, is_outside=self.is_outside, more=services.session_env)

    def judged_path(self, path: str) -> Resolved:
        """The path that was judged, for a tool that opens it without following links. Raises ToolError as `resolve` does."""
        for intent in self.judged or ():
            if isinstance(intent, ReadIntent) and intent.given == path:
                return Resolved(intent.path, path, intent.inside)
        return self.resolve(path)

    def resolve(self, path: str) -> Resolved:
        """Resolves a path for a running call. Raises ToolError when a link has changed since the call was judged."""
        resolved = self.services.workspace.resolve(path)
        paths = [intent.path for intent in self.judged or () if isinstance(intent, ReadIntent | WriteIntent)]
        if self.judged is not None and resolved.path not in paths:
            raise ToolError(f"`{path}` resolves to another file than when this call was judged; nothing was done.")
        return resolved


Delegate = Callable[[TaskRequest, CallContext], Awaitable[CallResult]]
"""Runs a task for the given call. Raises ToolError when it cannot start."""


def kind_of(tool: Tool) -> ToolKind:
    """Returns the kind shown by user interfaces; `other` for a tool without one."""
    kind: ToolKind = getattr(tool, "kind", "other")
    return kind


def call_kind(tool: Tool, args: Any) -> ToolKind:
    """Like `kind_of`, for a call: a patch may only delete or move files."""
    of_call: Callable[[Any], ToolKind] | None = getattr(tool, "kind_of_call", None)
    return of_call(args) if of_call else kind_of(tool)


def preview(tool: Tool, args: Any, services: ToolServices) -> View | None:
    """The view that a call would have, as far as it is known before; None: unknown. May block; changes nothing."""
    of_call: Callable[[Any, ToolServices], View | None] | None = getattr(tool, "preview", None)
    if of_call is None:
        return None
    try:
        return of_call(args, replace(services, ledger=services.ledger.copy()))
    except (ToolError, OSError):
        return None  # the call itself reports it


def locations_of(args: Any, intents: Sequence[Intent], view: View | None = None) -> tuple[Location, ...]:
    """Places of a call: of the changes if they are known, else the files it was judged for."""
    if isinstance(view, Diff) and view.changes:
        return tuple(Location(each.path, each.line) for each in view.changes)
    first = getattr(args, "offset", None)
    line = first if isinstance(first, int) and first > 0 else None
    paths = dict.fromkeys(str(each.path) for each in intents if isinstance(each, ReadIntent | WriteIntent))
    return tuple(Location(path, line) for path in paths)


class Tool(Protocol):
    """A built-in tool, or one with its own schema."""

    @property
    def name(self) -> str: ...

    @property
    def reads_only(self) -> bool:
        """True: calls may run in parallel."""

    def intents(self, args: Any, services: ToolServices) -> Sequence[Intent]:
        """Returns the effects the call would have, without side effects. Raises ToolError for invalid arguments."""

    async def run(self, args: Any, call: CallContext) -> CallResult:
        """Raises ToolError, whose message becomes the result.

        CancelledError passes through after clean-up, as `Interrupted` if there is a partial result.
        """


class BuiltinTool(Tool, Protocol):
    """A tool with typed arguments. The model reads the docstring of its class."""

    Args: ClassVar[type[Struct]]
    aliases: ClassVar[Mapping[str, str]]
    """Other argument names that models use, mapped to ours; "" drops an argument without effect."""


@cache
def argument_fields(kind: type[Struct]) -> tuple[FieldInfo, ...]:
    """Returns the fields of arguments; msgspec alone would evaluate their annotations for every call."""
    return fields(kind)


@runtime_checkable
class ExternalTool(Tool, Protocol):
    """A tool with its own JSON schema. It gets the arguments unchanged."""

    @property
    def spec(self) -> ToolSpec: ...
