"""`--output-format claude-stream-json`: a session for a program of Claude Code's SDKs."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
from functools import partial

from wolo.cli.crash_log import log_to_file
from wolo.cli.protocols.claude_options import read_claude_options
from wolo.cli.protocols.claude_rules import add_rules
from wolo.cli.protocols.detection import CLAUDE_MARK
from wolo.cli.signals import answer_signals, is_answered
from wolo.errors import WoloError
from wolo.frontends.claude_protocol.claude_session import ClaudeSession
from wolo.frontends.claude_protocol.wire_messages import failure
from wolo.frontends.streams import OutputLost, print_json, show_error
from wolo.operating_system import EXIT_BY_SIGNAL

_MARKS = (CLAUDE_MARK, "CLAUDE_CODE_ENTRYPOINT")
_STATE = "CLAUDE_CODE_SDK_READS_SESSION_STATE"


def serve(argv: list[str]) -> int:
    """Returns the exit code. An unusable command line is reported as a result, too."""
    try:
        options = read_claude_options(argv)
    except WoloError as error:
        show_error(error)
        try:
            print_json(failure(" ".join(filter(None, (error.message, error.hint)))))
        except OutputLost as lost:
            return lost.exit_code
        return error.exit_code
    reports_state = bool(os.environ.get(_STATE))
    for name in (*_MARKS, _STATE):
        os.environ.pop(name, None)  # a wolo that a command starts is driven by nobody
    log_to_file()
    gc.enable()
    gc.freeze()

    async def run() -> int:
        session = ClaudeSession(options, add_rules, reports_state=reports_state)
        for number in filter(is_answered, EXIT_BY_SIGNAL):
            asyncio.get_running_loop().add_signal_handler(number, partial(_stop, session, number))
        return await session.run()

    try:
        return asyncio.run(run())
    finally:
        answer_signals(signal.SIG_IGN)  # the exit status is final


def _stop(session: ClaudeSession, number: signal.Signals) -> None:
    """The first signal interrupts the turn, the second one ends the process."""
    if session.stopped_by:
        session.kill()
        os._exit(session.stopped_by)
    session.stop(EXIT_BY_SIGNAL[number])
