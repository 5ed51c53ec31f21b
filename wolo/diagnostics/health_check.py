"""Checks this installation, for `wolo doctor` and `/doctor`."""

from __future__ import annotations

import asyncio
import os
import platform
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from wolo import __version__
from wolo.config import keys, layers
from wolo.config.schema import Config, WebSearchSettings
from wolo.conversation.resources import conversation_hooks, edit_checks, file_tracking, mcp_servers, model_selection, web_search
from wolo.conversation.resources.secrets import make_secrets
from wolo.conversation.resources.tool_environment import command_variables
from wolo.diagnostics import hook_trial, installation, model_info
from wolo.errors import ConfigError, SessionError, WoloError
from wolo.guard.sandbox.selection import SandboxSelection, find
from wolo.messages.terminal_text import clean_line
from wolo.models.http.server_lookup import find_servers
from wolo.models.provider import ModelChoice
from wolo.places import Notices, Site, find_places
from wolo.sessions import database_file, migrations, salvage
from wolo.sessions.store import Store
from wolo.workspace.processes.command_environment import IN_THE_SANDBOX, rule_against
from wolo.workspace.root import Workspace, find_site

Report = Mapping[str, Any]
"""Schema of `wolo doctor --json`."""

WITHOUT_MODEL = "No model is set up: `wolo login` saves an API key, and `wolo` in a terminal offers other ways."


def examine(*, online: bool = False, model: str = "") -> dict[str, Any]:
    """Blocks until local model servers answer or time out. `online` asks the model once. `model`: the one that is in use."""
    problems = Notices()
    site = replace(find_site(), notices=problems)
    try:
        config = layers.load(site)
    except WoloError:
        config = None  # whoever looks for the model says why
    return {
        "version": __version__,
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.release()} {platform.machine()}",
        "keys": _keys(site, config),
        "model": model or _model(problems),
        "answer": _answer(problems) if online else None,
        "sqlite": _sqlite(problems),
        "checkpoints": _checkpoints(),
        "sandbox": _sandbox(site, config),
        "environment": _environment(site, config),
        "servers": [  # of models, on this machine; used only if the user chooses one
            f"{server.label} at {server.base_url}: try -m {next(iter(server.models), f'{server.provider}/MODEL')}"
            for server in find_servers(os.environ)
        ],
        "mcp_servers": _mcp_servers(problems),
        "hooks": _hooks(problems),
        "web_search": _web_search(problems),
        "language_servers": _language_servers(site, config),
        "problems": [*problems, *installation.changed_packages()],
    }


def lines(report: Report) -> Iterator[str]:
    """A row each, with a mark: `ok`, `note`, `warn` or `fail`; further rows of one have none."""
    for line in _rows(report):
        word = line.split(maxsplit=1)[0] if not line.startswith(" ") else ""
        mark = _MARKS.get(word, "") or ("ok" if word else "")
        if word in _DEPENDING:
            mark = "ok" if _DEPENDING[word](report) else "warn"
        if word == "mcp" and ": failed" in line:
            mark = "warn"
        yield f"{mark:<4}  {line}"


_MARKS = {
    **dict.fromkeys(("hidden", "hooks", "mcp", "search", "lsp", "found", "backups"), "note"),
    **dict.fromkeys(("set", "warning"), "warn"),
    "problem": "fail",
}
"""By the first word of a row; the others are `ok`."""
_DEPENDING: Mapping[str, Callable[[Report], bool]] = {
    "model": lambda report: bool(report["model"]),
    "keys": lambda report: bool(report["keys"]) or bool(report["model"]),
    "answer": lambda report: bool(report["answer"]["works"]),
    "sessions": lambda report: report["sqlite"]["integrity"] in ("ok", "not made yet"),
    "sandbox": lambda report: bool(report["sandbox"]["whole"]),
}


def _rows(report: Report) -> Iterator[str]:
    sqlite, sandbox = report["sqlite"], report["sandbox"]
    yield f"wolo      {report['version']}, Python {report['python']} on {report['platform']}"
    yield f"model     {report['model'] or 'none yet'}"
    if report["answer"] is not None:
        yield f"answer    {report['answer']['message']}"
    yield f"keys      {_by_origin(report['keys']) or 'none'}"
    yield f"sessions  SQLite {sqlite['version']}, {sqlite['path']}: {sqlite['integrity']}, {sqlite['bytes'] / 1e6:,.1f} MB"
    for damaged in sqlite["quarantine"]:
        yield f"set aside {damaged['path']}: {damaged['report']}"
    if sqlite["backups"]:
        yield f"backups   {', '.join(sqlite['backups'])}"
    undo = report["checkpoints"]
    many = "1 workspace" if undo["workspaces"] == 1 else f"{undo['workspaces']} workspaces"
    yield f"undo      {undo['bytes'] / 1e6:,.1f} MB for {many} in {undo['path']}"
    for damaged in undo["damaged"]:
        yield f"set aside {damaged}"
    is_partial = not sandbox["whole"] and sandbox["covers"]
    backend = f"{sandbox['backend']}, partial: not" if is_partial else f"{sandbox['backend']}; not"
    yield f"sandbox   {backend} covered: {', '.join(sandbox['not_covered'])}"
    if sandbox["covers"]:
        yield f"          covered: {', '.join(sandbox['covers'])}"
    for why in sandbox["tried"]:
        yield f"          {why}"
    hidden = sorted(report["environment"]["hidden"], key=lambda each: each["reason"])
    for reason, group in groupby(hidden, key=lambda each: each["reason"]):
        where = "in the sandbox" if reason in IN_THE_SANDBOX else "from commands"
        yield f"hidden    {where} ({reason}): {', '.join(each['name'] for each in group)}"
    for warning in report["environment"]["warnings"]:
        yield f"warning   {warning}"
    for each in report["hooks"]:
        active = "".join(f", with the {name}" for name in each["active_with"])
        yield f"hooks     {each['hooks']} in {each['source']}: {each['standing']}{active}"
    yield f"search    {report['web_search'] or 'no web search; web_search.backend turns it on'}"
    yield f"lsp       {', '.join(report['language_servers']) or 'no language server checks edits'}"
    for server in report["servers"]:
        yield f"found     {server}"
    for server in report["mcp_servers"]:
        yield f"mcp       {server['name']}: {server['state']}, from {server['source']}"
    for problem in report["problems"]:
        yield f"problem   {' '.join(problem.split())}"


def _by_origin(sources: Mapping[str, str]) -> str:
    """`from keys.toml: groq, zai; from $OPENAI_API_KEY: openai`."""
    names: dict[str, list[str]] = {}
    for name, origin in sources.items():
        names.setdefault(origin, []).append(name)
    return "; ".join(f"from {origin}: {', '.join(each)}" for origin, each in names.items())


def _answer(problems: Notices) -> dict[str, Any] | None:
    """Asks the model once. None: there is none."""
    from wolo.diagnostics.provider_login import check_model  # noqa: PLC0415  # an HTTP client with it

    try:
        choice = model_selection.choose_now()
    except WoloError:
        return None  # whoever looks for the model says why
    try:
        check = asyncio.run(check_model(choice))
    except ConfigError as error:
        problems.add(f"{error.message} {error.hint}".strip())
        return {"model": choice.label, "works": False, "message": error.message}
    if check.verdict != "works":
        problems.add(f"{check.message} {check.hint}".strip())
    return {"model": choice.label, "works": check.verdict == "works", "message": check.message}


def _mcp_servers(problems: Notices) -> list[dict[str, Any]]:
    """Reports the last known state; starts no server."""
    site = find_site()
    try:
        servers = mcp_servers.servers_here({}, site)
    except WoloError as error:
        problems.add(error.message)
        return []
    problems.extend([notice for notice in site.notices if notice not in problems])
    rows = [(each, mcp_servers.last_known(each)) for each in servers]
    problems.extend(
        f"The MCP server {each.name} failed last time: {clean_line(known.why) or 'unknown reason'}."
        f" `wolo mcp test {each.name}` tries again."
        for each, known in rows
        if known.state == "failed last time"
    )
    return [{"name": each.name, "state": known.state, "source": clean_line(each.source)} for each, known in rows]


def _sandbox(site: Site, config: Config | None) -> dict[str, Any]:
    """Tests the sandbox of this machine, without cached results."""
    if config is not None and config.settings.sandbox.backend == "off":
        selection = SandboxSelection(tried=("Disabled in the settings (sandbox.backend).",))
    else:
        selection = find((site.root,), site.places.state, None)
    return {
        "backend": selection.backend,
        "whole": selection.make is not None and selection.is_whole,
        "covers": list(selection.covers),
        "not_covered": list(selection.not_covered),
        "tried": list(selection.tried),
    }


def _environment(site: Site, config: Config | None) -> dict[str, list[Any]]:
    """Variables of the user that commands do not get here, and those that the user lets pass although a rule hides them."""
    if config is None:
        return {"hidden": [], "warnings": []}
    secrets = make_secrets(site.places, config.settings, (site.root,))
    try:
        variables = command_variables(config, secrets)
    except WoloError as error:
        site.notices.add(error.message)
        return {"hidden": [], "warnings": []}
    return {
        "hidden": [{"name": clean_line(each.name), "reason": each.reason} for each in variables.list_hidden()],
        "warnings": [
            f"shell.env passes {name} to every command, which is hidden otherwise ({rule})."
            for name in config.settings.shell.env
            if (rule := rule_against(name))
        ]
        + [
            f"shell.env has the pattern {name}, which has no effect: everything that a pattern may pass is passed already."
            for name in config.settings.shell.env
            if "*" in name and config.settings.shell.inherit == "all"
        ],
    }


def _checkpoints() -> dict[str, Any]:
    """Undo data, and damaged parts that were set aside."""
    folder = file_tracking.checkpoints_folder(find_places())
    sizes = {}
    with suppress(OSError):
        for path in folder.iterdir():
            with suppress(OSError):
                sizes[path] = path.stat().st_size
    return {
        "path": str(folder),
        "bytes": sum(sizes.values()),
        "workspaces": sum(path.suffix == ".db" for path in sizes),
        "damaged": sorted(str(path) for path in sizes if path.suffix == ".damaged"),
    }


def _size(*paths: Path) -> int:
    total = 0
    for path in paths:
        with suppress(OSError):
            total += path.stat().st_size
    return total


def _sqlite(problems: Notices) -> dict[str, Any]:
    path = find_places().data / "wolo.db"
    integrity = "not made yet"
    may_look = os.access(path.parent, os.R_OK | os.X_OK)
    if may_look and (path.exists() or database_file.quarantine_path(path).exists()):
        try:
            with Store.open_to_read(path.parent) as store:
                integrity = store.check()
                problems.extend(store.warnings)
                if missing := store.missing_files():
                    words = "file of a long output is" if missing == 1 else "files of long outputs are"
                    problems.add(f"{missing} {words} missing in {store.blobs_dir}.")
        except SessionError as error:
            integrity = error.message
        if integrity != "ok":
            problems.add(f"The session store is damaged: {integrity}")
    return {
        "version": sqlite3.sqlite_version,
        "path": str(path),
        "bytes": _size(path, path.with_name("wolo.db-wal"), *path.parent.glob("blobs/*")),
        "integrity": integrity,
        "quarantine": [
            {"path": str(folder), "report": report} for folder, report in (salvage.set_aside(path) if may_look else ())
        ],
        "backups": [str(backup) for backup in (migrations.backups(path) if may_look else ())],
    }


def _keys(site: Site, config: Config | None) -> dict[str, str]:
    """Providers with a key, in order of preference, with its source."""
    if config is None:
        return {}
    try:
        environ = keys.with_stored_keys(site, config)
    except WoloError:
        return {}  # whoever looks for the model says why
    site.notices.extend(config.notices)
    return model_info.sources_of_keys(environ, config.settings.providers)


def _model(problems: Notices) -> str | None:
    try:
        return model_selection.choose_now().label
    except WoloError as error:
        problems.add(WITHOUT_MODEL if error.message == model_selection.NO_MODEL else f"{error.message} {error.hint}".strip())
        return None


def _hooks(problems: Notices) -> list[dict[str, Any]]:
    """Each file with hooks, whether they run, and with which skill or agent."""
    site = find_site()
    try:
        sets = hook_trial.hooks_here({}, site)
    except WoloError as error:
        problems.add(error.message)
        return []
    problems.extend([each for each in (*site.notices, *conversation_hooks.find_problems(sets, site.cwd)) if each not in problems])
    return [
        {"source": each.source, "hooks": len(each.hooks), "standing": each.consent, "active_with": list(each.active_with)}
        for each in sets
    ]


def _web_search(problems: Notices) -> str | None:
    """The search service and its host, if it can be used."""
    site = find_site()
    try:
        config = layers.load(site)
        if config.settings.web_search == WebSearchSettings():
            return None
        environ = keys.with_stored_keys(site, config)
        asks_model = web_search.PROVIDER in config.settings.web_search.backend
        service = web_search.find_search_service(config, environ, problems, (model_selection.choose_now(),) if asks_model else ())
    except WoloError as error:
        problems.add(f"{error.message} {error.hint}".strip())
        return None
    if isinstance(service, ModelChoice):
        return f"{service.provider.label}, through {service.label}"
    return f"{service.backend.label} at {service.host}" if service else None


def _language_servers(site: Site, config: Config | None) -> list[str]:
    """Installed servers, unless they are switched off; starts none."""
    if config is None or not config.settings.lsp.enabled:
        return []
    workspace = Workspace(site.root, (), site.cwd)
    return [each.name for each in edit_checks.find_installed(config, workspace, site.places, site.notices)]
