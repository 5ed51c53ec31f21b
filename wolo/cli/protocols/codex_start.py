"""`wolo exec --experimental-json`: one turn for a program of Codex's SDK."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
import tomllib
from pathlib import Path
from typing import Any

from msgspec import field

from wolo.cli.crash_log import log_to_file
from wolo.cli.signals import answer_signals, stop_on_signals
from wolo.errors import UsageError, WoloError
from wolo.frontends.codex_protocol.codex_settings import READ_ONLY, CodexSettings, check_sandbox, set_key
from wolo.frontends.codex_protocol.exec_run import ExecRun, print_failure
from wolo.frontends.streams import OutputLost, error_text, print_message, show_error

_KEY, _ORIGINATOR = "CODEX_API_KEY", "CODEX_INTERNAL_ORIGINATOR_OVERRIDE"


def serve(argv: list[str]) -> int:
    """Returns the exit code. A run that cannot begin is reported as an event, too."""
    try:
        return _serve(argv)
    except WoloError as error:
        show_error(error)
        try:
            print_failure(error_text(error))
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
        stop_on_signals(run)
        try:
            return await run.run(prompt)
        except OutputLost as lost:
            return run.stopped_by or lost.exit_code
    finally:
        await conversation.close()


FLAG = "--experimental-json"


class ExecOptions(CodexSettings, kw_only=True):
    """One run of `exec`."""

    words: list[str] = field(default_factory=list)
    """The prompt, or none: it comes from stdin."""
    images: list[Path] = field(default_factory=list)
    schema: str = ""
    """File with the JSON schema of the answer; empty: none."""
    checks_repository: bool = True


def read_exec_options(argv: list[str]) -> ExecOptions:
    """`argv` without `exec`. Raises UsageError that names an option or setting which wolo does not have."""
    options, rest = ExecOptions(sandbox="read-only", policy="never"), list(argv)
    settings: dict[str, Any] = {}
    while rest:
        token = rest.pop(0)
        name, equals, value = token.partition("=")
        if token == "--":
            options.words += rest
            break
        if token in _SHORT:
            name, equals = _SHORT[token], ""
        if not token.startswith("-") or token == "-":
            if token == "resume" and not options.words and "resume" not in options.values and rest:
                id = rest.pop(0)
                options.values |= {"continue": True} if id == "--last" else {"resume": id}
            elif token != "-":
                options.words.append(token)
            continue
        if name in (FLAG, "--skip-git-repo-check"):
            options.checks_repository = options.checks_repository and name == FLAG
            continue
        if name not in _VALUES:
            raise UsageError(f"wolo does not have the option {name} of Codex.", hint="Leave it out of the SDK's options.")
        if not equals:
            if not rest:
                raise UsageError(f"{name} needs a value.")
            value = rest.pop(0)
        _take(options, settings, name, value)
    options.apply(settings)
    options.choose_mode(asks=False)
    return options


_SHORT = {"-c": "--config", "-m": "--model", "-s": "--sandbox", "-C": "--cd", "-i": "--image"}
_VALUES = frozenset(("--config", "--model", "--sandbox", "--cd", "--add-dir", "--output-schema", "--image", "--thread-source"))


def _take(options: ExecOptions, settings: dict[str, Any], name: str, value: str) -> None:
    match name:
        case "--config":
            parse_setting(settings, value)
        case "--model":
            options.values["model"] = value
        case "--sandbox":
            options.sandbox = check_sandbox(value)
        case "--cd":
            options.values["cd"] = value
        case "--add-dir":
            held = options.values.setdefault("add_dir", [])
            assert isinstance(held, list)
            held.append(value)
        case "--output-schema":
            options.schema = value
        case "--image":
            options.images += map(Path, value.split(","))
        case "--thread-source":
            pass  # a label for the vendor's statistics


def parse_setting(settings: dict[str, Any], text: str) -> None:
    """Adds `KEY=VALUE`. Raises UsageError."""
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise UsageError(f"--config {text}: it is no KEY=VALUE.")
    set_key(settings, key.strip(), _toml(value))


def _toml(text: str) -> Any:
    """As Codex reads it: a TOML value, else the text itself."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (tomllib.TOMLDecodeError, RecursionError):
        return text.strip().strip("\"'")
