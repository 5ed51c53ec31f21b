"""Finds hooks, checks consent, and runs them for a conversation."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from msgspec import Struct
from msgspec.structs import replace

from wolo.agent.agent_services import MessageHistory
from wolo.agent.hook_calls import RunHook
from wolo.config import consents, files, project
from wolo.config.cli_options import Flags
from wolo.config.schema import Config
from wolo.conversation.resources.startup import HookProgress, HookSessionStart
from wolo.errors import ConfigError, ExtensionError, UsageError, WoloError
from wolo.extensions.hooks.definitions import EVENTS, Hook
from wolo.foreign_places import first_names, present
from wolo.places import Notices, Places, Site
from wolo.tools.tool import ShellState
from wolo.workspace.processes.command_environment import CommandVariables, find_program, user_environment
from wolo.workspace.root import Workspace

if TYPE_CHECKING:
    from wolo.conversation.resources.hook_session import HookSession
    from wolo.conversation.running_extensions import Extensions
    from wolo.extensions.agent_files import AgentProfile
    from wolo.extensions.hooks.hook_runner import AskModel, ProgramHook, RegisteredHook
    from wolo.extensions.skill_files import Skill

FILES = ("hooks.json", "settings.json", "settings.local.json", "config.toml")
_IN_FOLDERS: Mapping[str, tuple[str, ...]] = {
    ".github/hooks": (".json",),
    ".kiro/hooks": (".json", ".hook"),
    **dict.fromkeys((".clinerules/hooks", ".cline/hooks"), ("",)),
}
"""Folders with files of hooks, and how these end."""
_MOST_FILES = 50
"""Of one folder."""
_GUARD = "PreToolUse"
_PROJECT_DIR = r"\"?\$\{?(?:CLAUDE|GEMINI|WOLO|FACTORY|QWEN|CURSOR)_PROJECT_DIR\}?\"?"
_KEYWORDS = frozenset(("if", "for", "while", "until", "case", "select", "function", "time"))
_MEND = "Wolo does not start while a PreToolUse hook, which guards tool calls, is unreadable. Correct or remove it."
Consent = Literal["yours", "allowed", "needs consent", "refused"]
"""`refused`: do not ask again."""


class HookSet(Struct, frozen=True, kw_only=True):
    """The hooks of one file, or of the settings."""

    source: str
    hooks: tuple[tuple[str, Hook], ...] = ()
    """By event."""
    consent: Consent = "yours"
    folder: Path | None = None
    """For project hooks: their working directory and project root."""
    named_in: Path | None = None
    """For user hooks: the base of relative programs."""
    plugin: Path | None = None
    """For hooks of a plugin: its folder."""
    variables: Mapping[str, str] = {}
    """For hooks of a plugin: its folders and settings."""
    digest: str = ""
    """For hooks of a project or plugin: identifies the exact commands."""
    problems: tuple[str, ...] = ()
    active_with: tuple[str, ...] = ()
    """For hooks of a skill or agent: see `RegisteredHook`. The first is its own."""

    @property
    def runs(self) -> bool:
        return self.consent in ("yours", "allowed")


def find_hooks(config: Config, site: Site) -> tuple[HookSet, ...]:
    """Reads nothing of an untrusted project. Raises ConfigError for errors in the user's own files."""
    settings = config.settings.hooks
    hooks = [(event, hook) for event in EVENTS for hook in getattr(settings, event)]
    sets = [HookSet(source="the settings", hooks=tuple(hooks), named_in=site.places.config)] if hooks else []
    if config.is_safe:
        return tuple(sets)
    sets += [*_of_user(site), *_of_plugins(site)]
    if config.trusts_project:
        sets += _of_project_files(site)
    return tuple(sets)


def component_hooks(skills: Iterable[Skill], agents: Iterable[AgentProfile], site: Site) -> list[HookSet]:
    """Hooks in the settings of skills and agents. One whose hooks do not run must not be used; it is named."""
    agents = tuple(agents)
    sets: list[HookSet] = []
    for skill in skills:
        if skill.hooks:
            preloaded = (f"agent {each.name}" for each in agents if skill.name in each.skills)
            own = (f"skill {skill.name}", *preloaded)
            sets.append(_of_component(skill.path, skill.hooks, own, site, is_projects=skill.shelf.project is not None))
    for each in agents:
        if each.hooks and each.path is not None:
            both = (*each.hooks, *(("SubagentStop", hook) for event, hook in each.hooks if event == "Stop"))
            sets.append(_of_component(each.path, both, (f"agent {each.name}",), site, is_projects=each.is_projects))
    for hooks in sets:
        if not hooks.runs:
            why = "need your consent" if hooks.folder else "do not run: its file is in the workspace, where the model writes"
            site.notices.add(f"The {hooks.active_with[0]} is not used, because its hooks {why} ({hooks.source}).")
    return sets


def _of_component(
    path: Path, hooks: tuple[tuple[str, Hook], ...], active_with: tuple[str, ...], site: Site, *, is_projects: bool
) -> HookSet:
    """The user's own run at once, unless the file is where the model writes."""
    real = os.path.realpath(path)
    if not is_projects:
        from wolo.guard.protected_paths import runs_code  # noqa: PLC0415  # few files have hooks

        is_writable = Path(real).is_relative_to(site.root) and not runs_code(real)
        state: Consent = "refused" if is_writable else "yours"
        return HookSet(source=str(path), hooks=hooks, consent=state, named_in=path.parent, active_with=active_with)
    source = str(path.relative_to(site.root))
    digest = digest_of(hooks, site.root)
    state = _STANDINGS[consents.consent_to(site.places, site.root, _consent_key(source, digest), Notices())]
    return HookSet(source=source, hooks=hooks, consent=state, folder=site.root, digest=digest, active_with=active_with)


def _of_user(site: Site) -> list[HookSet]:
    """Errors become problems of the set, except in a guard: its calls must not run unguarded."""
    path = site.places.config / "hooks.json"
    if not os.path.lexists(path):
        return []
    if (data := files.read_own(path, site.notices)) is None:
        return []
    from wolo.extensions.hooks.hook_files import read_hooks  # noqa: PLC0415  # only where there is such a file

    try:
        reading = read_hooks(data, path)
    except ExtensionError as error:
        raise ConfigError(error.message, hint=f"{_MEND} {error.hint}") from error
    if reading.unreadable_guards:
        raise ConfigError(reading.unreadable_guards[0], hint=_MEND)
    return [HookSet(source=str(path), hooks=reading.hooks, named_in=site.places.config, problems=reading.problems)]


def _of_plugins(site: Site) -> list[HookSet]:
    """Only of plugins that the user allowed."""
    if not site.places.plugin_index.exists():
        return []
    from wolo.config.plugins.installed import allowed_hooks  # noqa: PLC0415  # most users have no plugins

    return [
        HookSet(
            source=f"the plugin {each.plugin}",
            hooks=each.hooks,
            consent="allowed",
            plugin=each.root,
            variables=each.variables,
            named_in=each.root,
            digest=digest_of(each.hooks, each.root),
            problems=each.problems,
        )
        for each in allowed_hooks(site.places, site.notices)
    ]


def project_hooks(site: Site) -> list[HookSet]:
    """All hooks that need consent in a trusted folder: of its files, skills and agents."""
    from wolo.extensions.agent_files import find_agents  # noqa: PLC0415  # for questions of consent only
    from wolo.extensions.markdown_files import ExtensionFolder  # noqa: PLC0415
    from wolo.extensions.skill_files import find_skills  # noqa: PLC0415

    folders, read = project.folders(site.root, site.real_cwd)[::-1], partial(project.read_file, root=site.root)

    def shelves(kind: project.Kind) -> list[ExtensionFolder]:
        return [ExtensionFolder(folder / place, read, site.root) for folder in folders for place in kind.places]

    skills, agents = find_skills(shelves(project.SKILLS)).skills, find_agents(shelves(project.AGENTS)).profiles
    return [*_of_project_files(site), *component_hooks(skills, agents, replace(site, notices=Notices()))]


def _of_project_files(site: Site) -> list[HookSet]:
    """Errors become problems of the set."""
    sets = []
    for folder in project.folders(site.root, site.real_cwd):
        for place in present(project.HOOKS.places, first_names(folder)):
            path = folder / place
            if path.name in FILES and os.path.lexists(path):
                sets.append(_of_file(path, folder, site, place))
            elif place in _IN_FOLDERS and os.path.lexists(path):
                sets += _of_folder(path, folder, site, place)
    return [each for each in sets if each.hooks or each.problems]


def _of_folder(path: Path, folder: Path, site: Site, place: str) -> list[HookSet]:
    """A file that is not read is a problem, as it may be a guard."""
    names, problem = list[str](), ""
    try:
        names = sorted(each for each in os.listdir(path) if each.endswith(_IN_FOLDERS[place]))  # noqa: PTH208  # raises for a file, too
        if len(names) > _MOST_FILES:
            problem = f"{path} has more than {_MOST_FILES} files of hooks; the others are NOT run."
    except OSError as error:
        problem = f"{path} is not read: {error.strerror}. Guards in it are NOT run."
    sets = [_of_file(path / each, folder, site, place) for each in names[:_MOST_FILES]]
    source = str(path.relative_to(site.root))
    return [*sets, HookSet(source=source, consent="needs consent", folder=folder, problems=(problem,))] if problem else sets


def _of_file(path: Path, folder: Path, site: Site, place: str) -> HookSet:
    from wolo.extensions.hooks.foreign_hook_files import contract_of, read_foreign_hooks  # noqa: PLC0415  # only where there is such a file
    from wolo.extensions.hooks.hook_files import read_hooks  # noqa: PLC0415  # the same

    source = str(path.relative_to(site.root))
    try:
        data = project.read_file(path, site.root)
        is_claudes = place.startswith((".wolo/", ".claude/"))
        reading = read_hooks(data, path) if is_claudes else read_foreign_hooks(data, path, contract_of(place))
        digest = digest_of(reading.hooks, folder) if reading.hooks else ""
        answer = consents.consent_to(site.places, site.root, _consent_key(source, digest), Notices())
    except WoloError as error:
        return HookSet(source=source, consent="needs consent", folder=folder, problems=(error.message,))
    state = _STANDINGS[answer]
    return HookSet(source=source, hooks=reading.hooks, consent=state, folder=folder, digest=digest, problems=reading.problems)


def digest_of(hooks: Sequence[tuple[str, Hook]], folder: Path) -> str:
    from wolo.extensions.hooks.hook_runner import digest  # noqa: PLC0415  # only where a project brings hooks along

    return digest(hooks, folder)


_STANDINGS: Mapping[consents.Consent | None, Consent] = {"yes": "allowed", "never": "refused", None: "needs consent"}


def _consent_key(source: str, digest: str) -> str:
    return f"hooks {source} {digest}"


def save_consent(places: Places, root: Path, hooks: HookSet, answer: consents.Consent) -> None:
    """Applies only as long as the hooks do not change. Raises ConfigError."""
    consents.save_consent(places, root, _consent_key(hooks.source, hooks.digest), answer)


def awaiting_consent(site: Site, options: Flags) -> list[HookSet]:
    """Hooks of a trusted folder that need consent. Raises ConfigError."""
    if options.get("trust") != str(site.root) and consents.trust_in(site.places, site.root, Notices()) != "trusted":
        return []
    return [each for each in project_hooks(site) if each.consent == "needs consent" and each.hooks]


def find_problems(sets: Sequence[HookSet], cwd: Path) -> list[str]:
    """Reasons why hooks would fail, without running them."""
    problems = [problem for each in sets for problem in each.problems]
    for each in sets:
        for event, hook in each.hooks:
            if wrong := _wrong_program(hook.command, each.folder, each.named_in, cwd):
                checks = ", so calls that it would check are asked about" if event == _GUARD else ""
                problems.append(f"{each.source}: {wrong[0]}, which a {event} hook runs, {wrong[1]}{checks}.")
    return problems


def _wrong_program(command: str, folder: Path | None, named_in: Path | None, cwd: Path) -> tuple[str, str] | None:
    """The program that a command line begins with, and why it cannot be run; None if it can, or if that is unclear."""
    line = re.sub(_PROJECT_DIR, lambda _: str(folder or cwd), command)
    first = line.split()[0] if line.split() else ""
    if re.fullmatch(r"[~\w./+-]*/[\w./+-]+", first):
        path = (folder or named_in or cwd) / os.path.expanduser(first)  # noqa: PTH111  # Path's own may raise
        if not os.access(path, os.X_OK):
            return str(path), "cannot be run" if path.exists() else "is not there"
    elif re.fullmatch(r"[\w.+-]+", first):
        from shutil import which  # noqa: PLC0415  # only where there are hooks

        from wolo.guard.shell.words import BUILTINS  # noqa: PLC0415

        if first not in BUILTINS | _KEYWORDS and not which(first, path=environment(cwd, folder)["PATH"]):
            return first, "is not on the PATH"
    return None


def notices_about(sets: Sequence[HookSet], cwd: Path, *, was_asked: bool) -> list[str]:
    """Says which hooks do not run. `was_asked`: the user was asked for consent to the project's just now."""
    notices = [problem for each in sets for problem in each.problems]
    notices += find_problems([replace(each, problems=()) for each in sets if each.runs], cwd)
    waiting = [each.source for each in sets if each.consent == "needs consent" and each.hooks]
    if waiting and not was_asked:
        notices.append(
            f"Project hooks are not run: {', '.join(waiting)}. They are new or changed and need your"
            " consent: start wolo in a terminal, or run `wolo hooks allow`."
        )
    return notices


class ConversationHooks:
    """Runs the hooks of a conversation; loads nothing if there are none."""

    def __init__(
        self,
        sets: Sequence[HookSet],
        workspace: Workspace,
        shell: ShellState,
        command_variables: CommandVariables,
        history: MessageHistory,
        *,
        before: HookProgress,
        extensions: Extensions | None = None,
        callbacks: Sequence[ProgramHook] = (),
    ) -> None:
        """`history` is for the transcript; `callbacks` are answered by the embedding program."""
        self.extensions = extensions
        self.sets = tuple(sets)
        self._callbacks = tuple(callbacks)
        self._before, self._workspace, self._shell = before, workspace, shell
        self._command_variables, self._history = command_variables, history
        self.ask_agent: AskModel | None = None
        """For hooks of type `agent`; set once the conversation has its tools."""
        self._session: HookSession | None = None
        """None: no hook may run."""
        self.variables = dict(before.variables)
        """Set by hooks for commands."""

    @property
    def progress(self) -> HookProgress:
        return self._session.progress if self._session else self._before

    def programs(self) -> list[Path]:
        """Workspace files that hooks execute; writing one would escape the sandbox."""
        running = [each for each in self.sets if each.runs and each.hooks]
        if not running:
            return []
        from wolo.extensions.referenced_files import find_programs  # noqa: PLC0415  # only where there are hooks

        workspace = self._workspace
        roots = (workspace.root, *workspace.extra)
        paths: list[Path] = []
        for each in running:
            lines = [hook.command for _, hook in each.hooks]
            for folder in filter(None, (each.folder or workspace.start, each.named_in)):
                paths += find_programs(lines, folder, roots)
        return list(dict.fromkeys(paths))

    def start(self, beginning: HookSessionStart, ask_model: AskModel) -> RunHook | None:
        """Returns None if no hook may run. Those of extensions come first."""
        run = self._start(beginning, ask_model)
        if self.extensions is None:
            return run
        self.extensions.begin(beginning.facts, "resume" if beginning.is_resumed else self._before.source or "startup")
        return self.extensions.around(run)

    def _start(self, beginning: HookSessionStart, ask_model: AskModel) -> RunHook | None:
        if not self._callbacks and not any(each.hooks and each.runs for each in self.sets):
            return None
        from wolo.conversation.resources.hook_session import HookSession  # noqa: PLC0415  # only where there are hooks
        from wolo.extensions.hooks.hook_runner import HookEnvironment, RegisteredHook  # noqa: PLC0415  # as above

        around = HookEnvironment(
            processes=self._shell.processes,
            shell=find_program("bash", self._workspace) or "/bin/sh",
            cwd=self._workspace.start,
            environ=partial(environment, self._workspace.root),
            ask_model=ask_model,
            ask_agent=self._ask_agent,
        )
        self._session = HookSession(
            beginning,
            [*map(RegisteredHook.of_program, self._callbacks), *register_hooks(self.sets)],
            around,
            self._workspace,
            self._history,
            before=self._before,
            variables=self.variables,
            plain=self._command_variables.select(is_outside=True),
        )
        return self._session.run

    async def _ask_agent(self, prompt: str, model: str) -> str:
        """Raises WoloError."""
        if self.ask_agent is None:
            raise UsageError("the conversation has no tools yet", hint="")
        return await self.ask_agent(prompt, model)

    async def end(self, reason: str) -> None:
        if self._session is not None:
            await self._session.end(reason)

    async def close(self, *, ends_session: bool) -> None:
        if self.extensions is not None:
            await self.extensions.close(ends_session=ends_session)
        if self._session is not None:
            await self._session.close()


def register_hooks(sets: Sequence[HookSet]) -> list[RegisteredHook]:
    from wolo.extensions.hooks.hook_runner import RegisteredHook  # noqa: PLC0415  # only where there are hooks

    return [
        RegisteredHook(
            event=event,
            hook=hook,
            source=each.source,
            projects=each.folder,
            plugin=each.plugin,
            variables=each.variables,
            named_in=each.named_in,
            active_with=each.active_with,
            is_still_allowed=partial(_is_unchanged, each),
        )
        for each in sets
        if each.runs
        for event, hook in each.hooks
    ]


def _is_unchanged(hooks: HookSet) -> bool:
    owner = hooks.folder or hooks.plugin
    return owner is None or digest_of(hooks.hooks, owner) == hooks.digest


def environment(root: Path, folder: Path | None) -> dict[str, str]:
    """The user's environment, with the project directory under the name that hooks know too.

    Drops relative folders from PATH: they would be inside the checkout.
    """
    project_dir = str(folder or root)
    path = os.pathsep.join(each for each in os.environ.get("PATH", os.defpath).split(os.pathsep) if each.startswith("/"))
    names = ("WOLO_PROJECT_DIR", "CLAUDE_PROJECT_DIR", "GEMINI_PROJECT_DIR", "FACTORY_PROJECT_DIR", "QWEN_PROJECT_DIR")
    more = {"PATH": path, **dict.fromkeys(names, project_dir)}
    return {**user_environment(os.environ), **more}
