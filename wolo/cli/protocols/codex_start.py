"""`wolo exec --experimental-json`: one turn for a program of Codex's SDK."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
from functools import partial
from pathlib import Path

from wolo.cli.crash_log import log_to_file
from wolo.cli.protocols.codex_options import ExecOptions, read_exec_options
from wolo.cli.signals import answer_signals, is_answered
from wolo.errors import UsageError, WoloError
from wolo.frontends.codex_protocol.exec_run import ExecRun, print_failure
from wolo.frontends.codex_protocol.sandboxes import READ_ONLY
from wolo.frontends.streams import OutputLost, print_message, show_error
from wolo.operating_system import EXIT_BY_SIGNAL, on_signal

_KEY, _ORIGINATOR = "CODEX_API_KEY", "CODEX_INTERNAL_ORIGINATOR_OVERRIDE"


def serve(argv: list[str]) -> int:
    """Returns the exit code. A run that cannot begin is reported as an event, too."""
    try:
        return _serve(argv)
    except WoloError as error:
        show_error(error)
        try:
            print_failure(" ".join(filter(None, (error.message, error.hint))))
        except OutputLost as lost:
            return lost.exit_code
        return error.exit_code
    finally:
        answer_signals(signal.SIG_IGN)  # the exit status is final


def _serve(argv: list[str]) -> int:
    options = read_exec_options(argv[1:])
    # The SDK's key goes to its address, else to OpenAI; commands do not get it
    os.environ.pop(_ORIGINATOR, None)
    if key := os.environ.pop(_KEY, ""):
        if "base_url" in options.values:
            options.values["api_key"] = key
        else:
            os.environ["OPENAI_API_KEY"] = key
    if directory := options.values.pop("cd", None):
        try:
            os.chdir(Path(str(directory)).expanduser())
        except OSError as error:
            raise UsageError(f"--cd {directory}: {error.strerror}.") from error
    is_in_repository = any((folder / ".git").exists() for folder in (Path.cwd(), *Path.cwd().parents))
    if options.checks_repository and options.sandbox != "danger-full-access" and not is_in_repository:
        raise UsageError("This is no git repository.", hint="Pass --skip-git-repo-check (skipGitRepoCheck) to work here anyway.")
    text = " ".join(options.words) or sys.stdin.buffer.read().decode("utf-8", "replace")
    if not text.strip():
        raise UsageError("No prompt was given.", hint="It comes as an argument or on stdin.")
    log_to_file()
    gc.enable()
    gc.freeze()
    return asyncio.run(_run(options, text))


async def _run(options: ExecOptions, text: str) -> int:
    from wolo.conversation.factory import open_conversation
    from wolo.conversation.prompt_attachments import must_be_sent, write_prompt
    from wolo.conversation.resources.startup import StartOptions
    from wolo.conversation.structured_output import read_schema

    form = read_schema(options.schema) if options.schema else None
    conversation = await open_conversation(StartOptions(flags=options.values, attended=False, agents=(READ_ONLY,)))
    try:
        files = tuple(options.images)
        prompt = write_prompt(text, conversation, origin="file", notify=print_message, files=files)
        if files:
            prompt = must_be_sent(conversation.choice, prompt)
        run = ExecRun(conversation, form)
        for number in filter(is_answered, EXIT_BY_SIGNAL):
            on_signal(asyncio.get_running_loop(), number, partial(_stop, run, number))
        try:
            return await run.run(prompt)
        except OutputLost as lost:
            return run.stopped_by or lost.exit_code
    finally:
        await conversation.close()


def _stop(run: ExecRun, number: signal.Signals) -> None:
    """The first signal interrupts the turn, the second one ends the process."""
    if run.stopped_by:
        run.kill()
        os._exit(run.stopped_by)
    run.stop(EXIT_BY_SIGNAL[number])
