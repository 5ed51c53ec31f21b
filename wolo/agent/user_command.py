"""A command that a person runs themselves, by their own word, so nobody judges it; or one that a text they send wants run."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from typing import Literal

from wolo.agent.cancellation import Cancellation, Cancelled
from wolo.agent.events import CallEnded, CallStarted
from wolo.agent.tool_calls import Emit, finished, run_guarded
from wolo.agent.tool_outcomes import NEVER_STARTED
from wolo.agent.tool_progress import Progress
from wolo.messages.parts import ToolPart
from wolo.tools.shell.shell import Shell, ShellArgs
from wolo.tools.tool import Result, ToolServices
from wolo.workspace.processes.command_environment import persons_environment

MOST_S = 3600.0


Footing = Literal["person", "model", "confined"]
"""Whose rights a command has: a person's, with all of their environment; those of the model; or these, inside the walls."""


async def run_by_hand(command: str, footing: Footing, services: ToolServices, cancellation: Cancellation, emit: Emit) -> None:
    """Tells its beginning, what it prints, and its end; secrets are hidden as in any call. Whoever calls this has judged it.

    What it changes is the person's own doing: no undo takes it back.
    """
    part = ToolPart(tool=Shell.name, input={"command": command}, status="running", start_time=time.time())
    await emit(CallStarted(message_id="", part=part))
    progress = Progress(part.id, emit, services.secrets.piecewise())
    own = replace(
        services,
        watch=None,
        shell_timeout_s=MOST_S if footing == "person" else services.shell_timeout_s,
        environment=persons_environment(os.environ) if footing == "person" else None,
    )
    call = own.for_call(part.wire_id, progress.tell, confined=footing == "confined")
    try:
        result = await cancellation.run(run_guarded(Shell(), ShellArgs(command=command), call))
    except Cancelled:
        result = Result(NEVER_STARTED, is_error=True, outcome="never_started")
    finally:
        await progress.close()
    ended = services.secrets.hide_part(finished(part, result))
    await emit(CallEnded(message_id="", part=ended, view=result.view and services.secrets.hide_fields(result.view)))
