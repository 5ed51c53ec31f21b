"""Runs the command of `--verify` in the workspace, sandboxed if commands are."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import msgspec

from wolo.agent.events import Check
from wolo.agent.verification import CHECKS, UNVERIFIED, VerificationSettings, Verify
from wolo.guard.command_judge import Confine
from wolo.guard.sandbox_contract import MOST_TRIES
from wolo.messages.message import NUDGE, Message
from wolo.tools.clipping import clean
from wolo.tools.tool import CallContext, ToolServices
from wolo.workspace.processes.command_environment import find_program
from wolo.workspace.processes.output_capture import CapturedOutput

_KEPT_BYTES = 2 << 20
"""Length of each end of the output."""
_SHOWN_CHARS = 8000


def make_verify(settings: VerificationSettings, services: ToolServices, confine: Confine) -> Verify:
    """It is sandboxed because it runs code that the model wrote."""
    confined = services.sandbox.walls is not None and confine != "never"
    return Verify(
        command=settings.command,
        run=partial(check, settings.command, settings.timeout_s, services, confined=confined),
        max_rounds=settings.rounds,
    )


def recorded_verify(new: Iterable[Message]) -> Verify | None:
    """Returns recorded results in a replay. None: the model got none."""
    recorded = [message.metadata[CHECKS] for message in new if message.metadata.get(NUDGE) == UNVERIFIED]
    if not recorded:
        return None
    checks = iter([recorded[0]["before"], *(each["after"] for each in recorded)])

    async def run() -> Check:
        seen = next(checks, None)
        return msgspec.convert(seen, Check) if seen is not None else Check(exit_code=0)

    return Verify(command=recorded[0]["command"], run=run, max_rounds=len(recorded))


async def check(command: str, timeout_s: float, services: ToolServices, *, confined: bool) -> Check:
    """Does not raise for a failing command; cancellation ends all its processes."""
    from wolo.agent.verification import failures  # noqa: PLC0415  # its many forms are compiled when it is loaded

    place = services.workspace.start
    shell = find_program("bash", services.workspace) or "/bin/sh"
    options = ("--noprofile", "--norc") if shell.endswith("bash") else ()
    call = CallContext(services, confined=confined)
    await call.prepare()
    for _ in range(MOST_TRIES):
        printed = CapturedOutput(_KEPT_BYTES)
        enclosed = call.enclose([shell, *options, "-c", command], place, proxy=call.open_proxy())
        finished = await services.shell.processes.run(
            enclosed.argv,
            cwd=place,
            env=call.environment(),
            timeout_s=timeout_s,
            printed=printed,
            pass_fds=enclosed.pass_fds,
            cleanup=enclosed.cleanup,
            why_ended=enclosed.why_ended,
            is_alone=enclosed.is_alone,
        )
        if finished.cause != "exited" or enclosed.has_begun():
            break
    output = "".join(b"".join(clean(end)).decode() for end in printed.take())
    if why := enclosed.why_ended():
        output += f"[the sandbox ended it: {why}]\n"
    output = services.secrets.hide(output)
    notes = call.explain_hidden(f"{command}\n{output}") if finished.exit_code else ()
    return Check(
        exit_code=None if finished.timed_out else finished.exit_code,
        failures=() if finished.exit_code == 0 else failures(output),
        output="".join((output, *(f"[{note}]\n" for note in notes)))[-_SHOWN_CHARS:],
        duration_s=finished.elapsed_s,
        timed_out=finished.timed_out,
    )
