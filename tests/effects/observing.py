"""Runs wolo with and without one setting or option, and says what was different."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from tests.fakes.command import run_wolo
from tests.fakes.provider_server import ProviderServer, Script
from tests.fakes.replies import call, error, text, usage

BASE = """
[providers.here]
base_url = "{url}"
models = [{{id = "m", price = {{input = 1.0, output = 1.0}}}}, {{id = "other"}}]
"""
GO = ("-p", "-m", "here/m", "go")
PAGE = ("models", "show", "here/m", "--json")
_CHANGING = (
    (re.compile(r"\b(session|msg|part|call|prompt|ses|usr|user)_[0-9A-Za-z_]+"), "ID"),
    (re.compile(r'("(?:duration_ms|duration_api_ms|duration_s|time|start_time|end_time)": ?)[0-9.]+'), r"\g<1>0"),
    (re.compile(r"\b\d+(\.\d+)? ?(ms|s)\b"), "TIME"),
)


def fine() -> Script:
    return text("fine", usage=usage(1_000, 1_000))


def writes() -> Script:
    return call("write", {"path": "written.txt", "content": "x\n"})


def reads() -> Script:
    return call("read", {"path": "../beside/outside.txt"})


def runs(command: str) -> Script:
    return call("shell", {"command": command})


class Effect(NamedTuple):
    """What is different with it: on stdout and stderr, in the exit status, in the requests, or among the files."""

    given: str | tuple[str, ...]
    """Text for config.toml, or arguments."""
    base: str = ""
    """What config.toml says in both runs."""
    args: tuple[str, ...] = GO
    script: tuple[Callable[[], Script], ...] = (fine,)
    before: tuple[str, ...] = ()
    """A run that comes first, in both."""
    files: tuple[tuple[str, bytes], ...] = ()


class Elsewhere(NamedTuple):
    """The test that shows the effect where it takes more than a run to see it."""

    path: str
    name: str


def observe(effect: Effect, folder: Path, *, with_it: bool) -> str:
    """All that can be seen of a run, without what differs from run to run."""
    work, home = folder / "work", folder / "wolo"
    work.mkdir(parents=True)
    (folder / "beside").mkdir()
    (folder / "beside" / "outside.txt").write_text("outside\n")
    for name, data in effect.files:
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_bytes(data)
    with ProviderServer(*(make() for make in effect.script)) as server:
        server.linted = False
        server.otherwise = fine()
        (home / "config").mkdir(parents=True)
        (home / "config" / "config.toml").write_text(_written(effect, with_it=with_it).format(url=server.base_url))
        env = {"WOLO_HOME": str(home), "SHELL_MARK": "seen", "SHELL_MARK_TOKEN": "seen-by-a-command"}
        if effect.before:
            run_wolo(*(each.format(url=server.base_url) for each in effect.before), env=env, cwd=work)
        given = effect.given if with_it and isinstance(effect.given, tuple) else ()
        args = [each.format(url=server.base_url) for each in (*given, *effect.args)]
        done = run_wolo(*args, env=env, cwd=work)
        requests = [
            f"{asked.path} {sorted((name, value) for name, value in asked.headers.items() if name != 'content-length')}"
            f" {asked.body.decode('utf-8', 'replace')}"
            for asked in (*server.looked_up, *server.requests)
        ]
        listed = run_wolo("sessions", "list", "--all", "--json", env=env, cwd=work).json
        address = server.base_url.removesuffix("/v1")
    files = sorted(str(path.relative_to(folder)) for path in (*work.rglob("*"), *(folder / "beside").rglob("*")))
    seen = [done.exit_code, done.stdout, done.stderr, *requests, *files, [(row["turns"], row["name"]) for row in listed]]
    said = "\n".join(map(str, seen)).replace(str(folder), "FOLDER").replace(address, "SERVER").replace(address[7:], "SERVER")
    for pattern, stand_in in _CHANGING:
        said = pattern.sub(stand_in, said)
    return said


def _written(effect: Effect, *, with_it: bool) -> str:
    """What is given counts instead of a base that says something about the same table."""
    more = effect.given if with_it and isinstance(effect.given, str) else ""
    base = "" if more.startswith("[") and effect.base.startswith(more.partition("]")[0]) else effect.base
    table = "" if "[providers.here]" in base + more else BASE
    lines = [each for each in (base, more, table) if each]
    return "\n".join(sorted(lines, key=lambda each: each.startswith("[") or each is table))


def broken() -> Script:
    return error(500, {"error": {"message": "oops"}})
