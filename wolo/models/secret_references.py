"""Resolves references in settings: environment variables, and programs that print a key."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Mapping
from typing import Final

from wolo.errors import ConfigError
from wolo.places import settings_folder

COMMAND: Final = "!"
COMMAND_S: Final = 10.0
"""Timeout of a key program, which may wait for input that cannot be given."""
VARIABLE: Final = r"\$\{(?P<braced>[A-Za-z_]\w*)\}|^\$(?P<whole>[A-Za-z_]\w*)$"
"""`$NAME` as the whole value, `${NAME}` anywhere."""


def is_reference(value: str) -> bool:
    """Check that the value contains no secret itself."""
    return re.fullmatch(VARIABLE, value.strip()) is not None


def is_there(value: str, environ: Mapping[str, str]) -> bool:
    """Check that the reference can be resolved, without running programs."""
    return bool(value.strip()) and not _missing(value.strip(), environ)


def resolve(value: str, environ: Mapping[str, str], *, setting: str) -> str:
    """Expand variables. Raises ConfigError for unset ones."""
    value = value.strip()
    if missing := _missing(value, environ):
        raise ConfigError(f"{setting} refers to ${missing}, which is not set.", hint=f"export {missing}=…")
    return re.sub(VARIABLE, lambda found: environ[found["braced"] or found["whole"]].strip(), value)


def resolve_key(value: str, environ: Mapping[str, str], *, setting: str) -> str:
    """Like `resolve`, and run `!program arguments` without a shell. Its output is never shown."""
    if not value.strip().startswith(COMMAND):
        return resolve(value, environ, setting=setting)
    import shlex  # noqa: PLC0415  # rarely needed

    try:
        words = shlex.split(value.strip().removeprefix(COMMAND))
    except ValueError as error:
        raise ConfigError(f"{setting} is not a command: {str(error).lower()}.", hint="Look at its quotes.") from None
    if not words:
        raise ConfigError(f"{setting} names no program.", hint='It looks like "!pass show zai".')
    try:
        with subprocess.Popen(
            words,
            cwd=settings_folder(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            process_group=0,
        ) as process:
            output = _read_output(process, words[0], setting)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise ConfigError(f"{setting}: `{words[0]}` cannot be run: {why}.", hint="It is run as it is, without a shell.") from None
    if process.returncode:
        raise ConfigError(f"{setting}: `{words[0]}` failed with status {process.returncode}.", hint="Run it by hand to see why.")
    if not (key := output.decode("utf-8", "replace").lstrip().partition("\n")[0].strip()):
        raise ConfigError(f"{setting}: `{words[0]}` printed no key.", hint="The first line it prints must be the key.")
    return key


def _missing(value: str, environ: Mapping[str, str]) -> str:
    if value.startswith(COMMAND):
        return ""
    names = (found["braced"] or found["whole"] for found in re.finditer(VARIABLE, value))
    return next((name for name in names if not environ.get(name, "").strip()), "")


def _read_output(process: subprocess.Popen[bytes], program: str, setting: str) -> bytes:
    """Output of the program; it and its children are killed after the timeout."""
    try:
        return process.communicate(timeout=COMMAND_S)[0]
    except subprocess.TimeoutExpired:
        raise ConfigError(
            f"{setting}: `{program}` did not end within {COMMAND_S:.0f} s.", hint="It must print the key without asking anything."
        ) from None
    finally:
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
