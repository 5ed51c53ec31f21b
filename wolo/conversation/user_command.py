"""Runs a command of the user, without judging it."""

from __future__ import annotations

import time
from typing import Literal

from msgspec.structs import replace

from wolo.agent.cancellation import Cancellation, Cancelled
from wolo.agent.events import CallEnded, CallStarted
from wolo.agent.tool_execution import NEVER_STARTED, Emit, LiveProgress, finish_part, run_guarded
from wolo.messages.parts import EXIT_CODE, ToolPart
from wolo.tools.shell import Shell, ShellArgs
from wolo.tools.tool import ToolServices, UserRun
from wolo.tools.tool_values import CallResult
from wolo.workspace.processes.command_environment import user_environment

MOST_S = 3600.0


CommandRights = Literal["person", "model", "confined"]
"""Rights of a command: the user's, with their whole environment; the model's; or the model's inside the sandbox."""


async def run_user_command(
    command: str, rights: CommandRights, services: ToolServices, cancellation: Cancellation, emit: Emit
) -> None:
    """The caller has judged the command. Emits its start, output and end, with secrets redacted.

    Undo does not cover its changes.
    """
    part = ToolPart(tool=Shell.name, input={"command": command}, status="running", start_time=time.time())
    await emit(CallStarted(message_id="", part=part))
    progress = LiveProgress(part.id, emit, services.secrets.stream())
    own = replace(
        services,
        tracker=None,
        shell_timeout_s=MOST_S if rights == "person" else services.shell_timeout_s,
        environment=user_environment(services.variables.environ) if rights == "person" else None,
    )
    call = own.for_call(part.wire_id, progress.add, confined=rights == "confined")
    try:
        result = await cancellation.run(run_guarded(Shell(), ShellArgs(command=command), call))
    except Cancelled:
        result = CallResult(NEVER_STARTED, is_error=True, outcome="never_started")
    finally:
        await progress.close()
    ended = services.secrets.hide_part(finish_part(part, result))
    run = UserRun(command=ended.input["command"], exit_code=ended.metadata.get(EXIT_CODE), ended_at=ended.end_time)
    services.shell.user_runs.append(run)
    await emit(CallEnded(message_id="", part=ended, view=result.view and services.secrets.hide_fields(result.view)))
