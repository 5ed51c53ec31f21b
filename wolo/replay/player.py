"""Replays a session: the real loop, guard and tools in a copy of the workspace, with a model that repeats its answers.

Stops at the first difference. Contacts no model, network or user.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from wolo.agent.agent import AgentLoop
from wolo.agent.agent_services import AgentServices, MessageHistory
from wolo.agent.budget import Account, Limits
from wolo.agent.compaction.compactor import CompactionSettings, Compactor
from wolo.agent.events import AnswerEnded, ApprovalAsked, ApprovalGiven, CallEnded, CallStarted, Event, MessageAdded
from wolo.agent.hook_calls import APPROVED_INPUT, AgentHooks
from wolo.agent.prompt_prefix import PromptPrefix
from wolo.agent.tool_calls import ToolCalls
from wolo.agent.tool_execution import DENIED_BY_PERSON, NO_REASON, NOT_ANSWERED
from wolo.config import layers
from wolo.config.cli_options import Flags
from wolo.config.schema import Config
from wolo.conversation.project_checks import recorded_verify
from wolo.conversation.resources.request_prefix import NestedGiven, PromptOptions, build_prefix, saved_options
from wolo.conversation.resources.secrets import make_secrets
from wolo.conversation.resources.tool_environment import jobs_folder, new_shell, sandbox_profile
from wolo.conversation.resources.user_files import UserFiles, own_folders
from wolo.errors import UsageError
from wolo.guard.intents import CallIntent, FetchIntent, WriteIntent
from wolo.guard.judge import Judge
from wolo.guard.modes import effective
from wolo.guard.sandbox.selection import find
from wolo.mcp.mcp_tool import recorded_tools
from wolo.messages.comparison import comparable_call, comparable_result
from wolo.messages.message import Message
from wolo.messages.parts import ToolPart
from wolo.messages.terminal_text import quantity
from wolo.models.replay_model import Divergence, Kind, RecordedModel, ReplayDiverged
from wolo.places import Site, find_places
from wolo.replay import recording
from wolo.replay.workspace_copy import ReplayWorkspace
from wolo.tools.tool import ToolServices
from wolo.tools.tool_values import CallResult
from wolo.tools.toolbox import NEEDS_LANGUAGE_SERVER, NEEDS_SEARCH_SERVICE, NEEDS_SYMBOLS, Toolbox
from wolo.workspace.files.file_reading import FileLedger
from wolo.workspace.processes.command_environment import CommandVariables
from wolo.workspace.root import Workspace, find_site

LEAST_RUN_S = 0.3
MOST_RUN_S = 10.0
"""Limits for a call that was interrupted when recorded."""
NO_SANDBOX = "There is no sandbox on this machine, so the commands of the recording were not run."


class Replayed(Struct, frozen=True, kw_only=True):
    num_steps: int
    """Number of replayed requests, including one that differs."""
    divergence: Divergence | None
    notices: tuple[str, ...] = ()


class ReplayOptions(Struct, frozen=True, kw_only=True):
    """The recording, and the settings to apply."""

    tape: recording.RecordedTurns
    stage: ReplayWorkspace
    model: str
    """`provider/model`, as the session knows it."""
    mode: str
    """The recorded one."""
    flags: Flags
    """Command-line options for the settings."""
    is_foreign: bool = True
    """Not recorded here: its mode, approvals and rules that allow are only compared."""
    is_sandboxed: bool = True
    """Commands run in the sandbox of mode auto, in any mode."""
    is_strict: bool = False
    """Also compare the start of each request."""


class _OpenParts(Struct, frozen=True):
    """Parts of an opened conversation."""

    judge: Judge
    services: ToolServices
    history: MessageHistory
    toolbox: Toolbox
    system: str


async def replay(options_given: ReplayOptions) -> Replayed:
    """Raises WoloError for unusable settings."""
    return await _Replay(options_given).play()


class _Replay:
    def __init__(self, options_given: ReplayOptions) -> None:
        self._options = options_given
        self._tape, self._stage = options_given.tape, options_given.stage
        self._calls = options_given.tape.calls
        self._running: dict[str, ToolPart] = {}
        """Recorded calls that are running, by wire id."""
        self._places = find_places()
        self._config: Config = layers.load(find_site(self._stage.settings_from), options_given.flags)
        self._choice = recording.model_of(self._tape, options_given.model, self._config)
        unfinished = frozenset(id for id, call in self._calls.items() if recording.was_interrupted(call))
        check = recording.preamble_check(self._tape, options_given.model, self._config) if options_given.is_strict else None
        self._model = RecordedModel(
            self._choice,
            of=self._stage.without_changing_values,
            here=self._stage.here,
            stop=self._stop,
            unfinished=unfinished,
            check=check,
            on_replayed=self._mark_answered,
        )
        self._compactor = Compactor(self._config.settings.context, CompactionSettings(auto=False))
        self._parts: _OpenParts | None = None
        self._agent: AgentLoop | None = None
        self._turn: recording.RecordedTurn | None = None

    async def play(self) -> Replayed:
        history: tuple[Message, ...] = ()
        divergence = None
        try:
            for turn in self._tape.turns:
                history = await self._play_turn(turn, (*history, *turn.before))
        except ReplayDiverged as diverged:
            divergence = diverged.divergence
        finally:
            self._close()
        steps = divergence.step if divergence else self._tape.steps
        return Replayed(num_steps=min(steps, self._tape.steps), divergence=divergence, notices=self._stage.notices)

    async def _play_turn(self, turn: recording.RecordedTurn, history: tuple[Message, ...]) -> tuple[Message, ...]:
        self._turn = turn
        if self._parts is None or turn.opened:
            self._close()
            self._parts = self._open(turn)
        self._model.begin(turn.script)
        self._set_cut()
        parts, compactor, services = self._parts, self._compactor, self._parts.services
        secrets, emit = services.secrets, self._on_event
        hooks = AgentHooks(recording.recorded_hooks(turn.new, may_allow=not self._options.is_foreign), emit, secrets)
        instructions = recording.recorded_instructions(turn.new)
        calls = ToolCalls(
            parts.toolbox,
            services,
            parts.judge,
            emit=emit,
            ask_user=self._answer if turn.is_attended else None,
            hooks=hooks,
            add_instructions=NestedGiven(instructions, compactor, parts.history, secrets.hide, emit, hooks).add_to,
        )
        agent = self._agent = AgentLoop(
            AgentServices(
                asker=self._model,
                emit=emit,
                hooks=hooks,
                calls=calls,
                prefix=PromptPrefix(parts.system, parts.toolbox, compactor, secrets),
                compactor=compactor,
                history=parts.history,
                shell=services.shell,
                mode=services.mode,
                account=Account(Limits()),
                verify=recorded_verify(turn.new),
            )
        )
        self._enter_mode(turn.prompt.id)
        self._parts.judge.grants.refused.clear()
        self._steer(turn.user_input.first)
        done = await agent.run(history, turn.prompt)
        upcoming = self._model.upcoming
        if upcoming is not None or len(done.new) != len(turn.new):
            step = upcoming.step if upcoming else self._model.step
            left = f"{quantity(len(turn.script.answers), 'answer')}, {quantity(len(turn.new), 'message')}"
            came = f"The turn ended with {quantity(len(done.new), 'message')}, the last one of role {done.new[-1].role}."
            raise ReplayDiverged(Divergence.of(step, "left over", "the end of the turn", left, came))
        # With the recorded ids, which compactions refer to
        return (*history, *(replace(each, id=known.id) for each, known in zip(done.new, turn.new, strict=True)))

    # The parts, as a conversation is opened

    def _open(self, turn: recording.RecordedTurn) -> _OpenParts:
        """File ledger and shell start anew."""
        stage = self._stage
        options = saved_options(turn.opened)
        config = self._config if options is None else options.apply_to(self._config)
        extra = tuple(stage.added[Path(each)] for each in options.add_dirs if Path(each) in stage.added) if options else ()
        workspace = Workspace(stage.root, extra, stage.cwd_of(turn.opened))
        then = str(turn.opened.get("mode") or self._options.mode) if self._repeats_modes else ""
        mode, _ = effective(then or self._config.settings.mode, sandbox_available=True)
        site = Site(self._places, stage.root, workspace.start, os.environ)
        library = UserFiles(config, site)
        skills, agents = library.skills(self._choice), library.agents(self._choice)
        judge = Judge(
            mode,
            [
                replace(rule, pattern=stage.here(rule.pattern))
                for rule in recording.rules_of(self._tape, config.rules, options, may_allow=not self._options.is_foreign)
            ],
            stage.root,
            extra_roots=workspace.extra,
            cwd=workspace.start,
            own_places=site.places.own,
            free_reads=(*stage.outputs, jobs_folder(stage.scratch)),
            free_folders=own_folders(skills.skills, site.places),
        )
        secrets = make_secrets(site.places, config.settings, (stage.root, *workspace.extra))
        history = MessageHistory(self._compactor)
        services = ToolServices(
            workspace=workspace,
            ledger=FileLedger(stage.scratch / "file-locks"),
            save_output=lambda name, data: stage.save_output(name, secrets.hide_data(data)),
            shell=new_shell(workspace.start, stage.scratch, secrets),
            secrets=secrets,
            shell_timeout_s=config.settings.shell.timeout_s,
            variables=CommandVariables(inherit="core"),  # so that a recording runs alike on every machine
            is_readable=judge.readable,
            recorded_result=self._recorded_result,
            edit_checks=lambda: recording.RecordedChecks(self._running.__getitem__),
            find_skill=library.load_skill,
            agents=agents.offers,
            recall=history.recall,
        )
        services.shell.language_servers = recording.RecordedChecks
        self._confine(judge, services)
        called = [call.tool for call in self._calls.values()]
        preamble = build_prefix(
            config,
            site,
            options.prompts if options else PromptOptions(),
            calls_in_text=self._choice.format == "xml",
            edit_tool=self._choice.edit_tool,
            attended=turn.is_attended,
            skills=skills,
            agents=agents,
            can_search=not NEEDS_SEARCH_SERVICE.isdisjoint(called),
            can_look_up=not NEEDS_LANGUAGE_SERVER.isdisjoint(called),
            has_map=not NEEDS_SYMBOLS.isdisjoint(called),
            more_tools=recorded_tools([call.tool for call in self._calls.values() if call.outcome != "invalid"]),
        )
        return _OpenParts(judge, services, history, preamble.toolbox, stage.there(preamble.system))

    @property
    def _repeats_modes(self) -> bool:
        return not self._options.is_foreign and "mode" not in self._options.flags

    def _confine(self, judge: Judge, services: ToolServices) -> None:
        """Puts all commands into a sandbox that no approval leaves. Raises UsageError where there is none."""
        if not self._options.is_sandboxed:
            return
        workspace = services.workspace
        found = find((workspace.root, *workspace.extra), self._places.state, self._places.cache)
        if found.make is None:
            raise UsageError(NO_SANDBOX, hint="; ".join((*found.tried, "--sandbox off runs them without one")))
        profile = sandbox_profile(judge, workspace, self._places, self._stage.outputs)
        walls = found.make(replace(profile, is_copy=True))
        services.sandbox.made = walls
        services.shell.closing.append(walls.close)
        judge.confine = "always"

    def _close(self) -> None:
        if self._parts is not None:
            self._parts.services.shell.close()

    def _steer(self, messages: Sequence[Message]) -> None:
        """Repeats the user's messages at the same place in the turn."""
        if self._agent is not None:
            for message in messages:
                self._agent.services.steering.add(message)

    def _mark_answered(self, place: int) -> None:
        assert self._turn is not None  # whose answer it is
        self._enter_mode(self._turn.script.answers[place].answer.id)
        self._steer(self._turn.user_input.after_answer.get(place, ()))

    def _enter_mode(self, id: str) -> None:
        """Repeats the user's change of mode, unless a mode was given."""
        mode = self._turn.modes.get(id, "") if self._turn is not None else ""
        if mode and self._parts is not None and self._repeats_modes:
            self._parts.judge.mode, _ = effective(mode, sandbox_available=True)

    def _stop(self) -> None:
        if self._agent is not None:
            self._agent.interrupt()

    async def _on_event(self, event: Event) -> None:
        match event:
            case CallStarted(part=part):
                recorded = self._running[part.wire_id] = self._calls[part.id]
                if recorded.outcome in ("denied_by_rule", "denied_by_person"):
                    raise self._differs("call", recorded, self._outcome(recorded), "It would run now.")
                assert self._parts is not None  # a call runs
                tool, args = self._parts.toolbox.decode(part.tool, part.input)
                written = [intent.path for intent in tool.intents(args, self._parts.services) if isinstance(intent, WriteIntent)]
                roots = self._stage.roots
                if outside := next((str(path) for path in written if not any(map(path.is_relative_to, roots))), ""):
                    raise self._differs(
                        "call",
                        recorded,
                        self._outcome(recorded),
                        f"Not run: a replay writes only inside its copy, and {outside} is outside.",
                    )
                if recorded.outcome == "never_started":
                    self._stop()
                elif recorded.outcome == "interrupted":
                    ran_s = recorded.end_time - recorded.start_time if recorded.start_time and recorded.end_time else 0.0
                    assert self._agent is not None  # whose turn it is: the timer must not stop a later one
                    asyncio.get_running_loop().call_later(min(max(ran_s, LEAST_RUN_S), MOST_RUN_S), self._agent.interrupt)
            case CallEnded(part=part):
                recorded, of = self._calls[part.id], self._stage.without_changing_values
                assert self._turn is not None  # whose call it is
                self._steer(self._turn.user_input.after_call.get(part.id, ()))
                self._enter_mode(part.id)
                if recording.was_interrupted(recorded):
                    self._stop()
                    return
                ran = recorded.outcome not in ("denied_by_rule", "denied_by_person")
                if ran and part.outcome in ("denied_by_rule", "denied_by_person"):
                    raise self._differs("call", recorded, self._outcome(recorded), f"Denied now: {part.output}")
                expected, got = comparable_result(recorded, of), comparable_result(part, of)
                if expected != got:
                    raise self._differs("result", recorded, expected, got)
            case AnswerEnded() | MessageAdded():
                self._set_cut()

    def _set_cut(self) -> None:
        """Compactions happen when they were recorded."""
        upcoming = self._model.upcoming
        if upcoming is not None and self._turn is not None:
            at = self._turn.script.answers.index(upcoming)
            self._compactor.cut = self._turn.cuts[at]

    def _recorded_result(self, call_id: str) -> CallResult | None:
        recorded = self._running[call_id]
        return CallResult(recorded.output, is_error=recorded.is_error, outcome=recorded.outcome)

    async def _answer(self, asked: ApprovalAsked) -> ApprovalGiven:
        """Repeats the user's answer; a yes in a foreign recording only for calls whose result is repeated too."""
        recorded = self._calls[asked.part.id]
        verdict = recorded.metadata.get("verdict")
        granted = isinstance(verdict, dict) and verdict.get("source") == "session"
        if recorded.outcome == "denied_by_person":
            if recorded.output.startswith(NOT_ANSWERED):
                return ApprovalGiven(id=asked.id, allowed=False, is_dismissed=True)
            before, _, after = DENIED_BY_PERSON.partition("{reason}")
            reason = recorded.output.partition("\n\n")[0].removeprefix(before).removesuffix(after)
            return ApprovalGiven(id=asked.id, allowed=False, reason="" if reason == NO_REASON else reason)
        is_repeated = not self._options.is_foreign or all(isinstance(each, FetchIntent | CallIntent) for each in asked.intents)
        if is_repeated and (recorded.metadata.get("decided_by") in recording.DECIDERS or granted):
            return ApprovalGiven(id=asked.id, allowed=True, input=recorded.metadata.get(APPROVED_INPUT))
        if recording.was_interrupted(recorded):
            self._stop()
            await asyncio.Event().wait()  # the interruption ends it
        raise self._differs("call", recorded, self._outcome(recorded), f"It needs an approval now: {asked.reason}")

    def _outcome(self, recorded: ToolPart) -> str:
        if recorded.outcome in ("denied_by_rule", "denied_by_person"):
            return f"It was denied: {recorded.output}"
        return f"It ran without approval ({recorded.outcome})."

    def _differs(self, kind: Kind, recorded: ToolPart, expected: str, got: str) -> ReplayDiverged:
        called = comparable_call(recorded, self._stage.without_changing_values)
        where = f"{called[:200]}…" if len(called) > 200 else called
        return ReplayDiverged(Divergence.of(self._model.step, kind, where, expected, got))
