"""Runs the hooks of an event outside of a conversation, and shows each answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from wolo.agent.budget import Account
from wolo.config import layers
from wolo.config.cli_options import Flags
from wolo.conversation.resources.conversation_hooks import HookSet, component_hooks, environment, find_hooks, register_hooks
from wolo.conversation.resources.hook_model import ask_for_hook
from wolo.conversation.resources.hook_session import HookRecords
from wolo.conversation.resources.model_selection import ModelAccess, choose_now, make_asker
from wolo.conversation.resources.user_files import UserFiles
from wolo.errors import UsageError
from wolo.extensions.hooks.claude_calls import CLAUDE_NAMES, ClaudeCall, to_wolo_arguments
from wolo.extensions.hooks.definitions import ABOUT_TOOLS, EVENTS, FILE_CHANGED
from wolo.extensions.hooks.hook_runner import HookEnvironment, HookRunner, RegisteredHook
from wolo.extensions.hooks.response import combine, when_late
from wolo.guard.secrets.redactor import Secrets
from wolo.places import Site, find_places
from wolo.tools.tool_values import HookReply
from wolo.workspace.processes.command_environment import find_program
from wolo.workspace.processes.process_runner import Processes
from wolo.workspace.root import Workspace, find_root, find_site

_WOLO_NAMES = {name: ours for ours, name in CLAUDE_NAMES.items()}


class HookTrial(Struct, frozen=True):
    placed: RegisteredHook
    answer: HookReply


def hooks_here(flags: Flags, site: Site) -> tuple[HookSet, ...]:
    """All hooks of a run in this directory, with those of skills and agents. Raises ConfigError."""
    config = layers.load(site, flags)
    site.notices.extend(config.notices)
    sets = find_hooks(config, site)
    files = UserFiles(config, site)
    return (*sets, *component_hooks(files.skills().skills, files.all_agents().profiles, site))


async def try_hooks(
    sets: Sequence[HookSet], event: str, tool: str, arguments: Mapping[str, Any], mode: str
) -> tuple[list[HookTrial], HookReply]:
    """The answer of each matching hook that may run, as if its skill or agent were active, and their combined answer.

    `tool` and its arguments in `given` may use Claude Code's names; for other events `given` is merged into the payload.
    Raises UsageError for an unknown event.
    """
    if event not in EVENTS:
        raise UsageError(f"Unknown event: {event}.", hint=f"Events: {', '.join(EVENTS)}.")
    places, cwd = find_places(), Path.cwd()
    processes = Processes()
    records = HookRecords(places.state, "session_test", cwd)
    workspace = Workspace(find_root(), (), cwd)
    shell = find_program("bash", workspace) or "/bin/sh"
    ground = HookEnvironment(
        processes=processes,
        shell=shell,
        cwd=workspace.start,
        environ=partial(environment, workspace.root),
        ask_model=_ask,
        ask_agent=_ask,
    )
    common = {"session_id": "session_test", "cwd": str(cwd), "permission_mode": mode, "transcript_path": str(records.transcript)}
    payload = {**common, **(_call(event, tool, arguments) if event in ABOUT_TOOLS else {**_sample(event, cwd), **arguments})}
    more = {"CLAUDE_ENV_FILE": str(records.env_file)} if event in ("SessionStart", "Setup", FILE_CHANGED) else {}
    trials = []
    try:
        for each in register_hooks(sets):
            waited = replace(each, hook=replace(each.hook, in_background=False))
            hooks = HookRunner([waited], ground)
            hooks.active.update(each.active_with)
            facts = {**_agent(each, event), **payload}
            if hooks.select(event, facts):
                answer = await hooks.run(event, facts, _nobody, environ=more)
                trials.append(HookTrial(each, when_late(answer) if each.hook.in_background else answer))
    finally:
        processes.close_all()
        records.close()
    return trials, combine([each.answer for each in trials])


def _call(event: str, tool: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Translates to wolo's own names."""
    ours = _WOLO_NAMES.get(tool, tool)
    arguments = to_wolo_arguments(ours, {}, ClaudeCall(name=tool, input={}), values)
    call: dict[str, Any] = {
        "tool_name": ours,
        "tool_input": values if arguments is None else arguments,
        "tool_use_id": "call_test",
    }
    if event.startswith("PostToolUse"):
        is_error = event == "PostToolUseFailure"
        call["tool_response"] = {"output": "", "is_error": is_error, "files_changed": [], "view": None, "duration_ms": 0}
    return call


_SAMPLES: Mapping[str, Mapping[str, Any]] = {
    "Setup": {"trigger": "init"},
    "SessionStart": {"source": "startup"},
    "SessionEnd": {"reason": "other"},
    "StopFailure": {"error": "server_error", "error_details": "", "last_assistant_message": ""},
    "ConfigChange": {"source": "user_settings"},
    "InstructionsLoaded": {"file_path": "AGENTS.md", "memory_type": "Project", "load_reason": "session_start"},
    "FileChanged": {"file_path": ".env", "event": "change"},
}


def _agent(hook: RegisteredHook, event: str) -> dict[str, str]:
    """The agent of the hook, whose end is the sample of SubagentStop."""
    agents = [each.removeprefix("agent ") for each in hook.active_with if each.startswith("agent ")]
    return {"agent_type": agents[0]} if agents and event == "SubagentStop" else {}


def _sample(event: str, cwd: Path) -> dict[str, Any]:
    sample = dict(_SAMPLES.get(event, {}))
    return {**sample, "file_path": str(cwd / sample["file_path"])} if "file_path" in sample else sample


async def _ask(prompt: str, model: str) -> str:
    """Raises WoloError."""
    site = find_site()
    config = layers.load(site)
    choice = choose_now()
    access = ModelAccess(
        settings=config.settings, places=site.places, project=site.cwd.name, cwd=site.cwd, secrets=Secrets(), attended=False
    )
    asker = make_asker(access, choice)
    try:
        return await ask_for_hook(access, config, asker, None, Account(config.settings.limits), prompt, model)
    finally:
        await asker.close()


async def _nobody(commands: Sequence[str]) -> None:
    pass
