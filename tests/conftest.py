"""Every test lives alone: its own HOME and WOLO_HOME, an empty directory to work in, no keys, no network but loopback."""

from __future__ import annotations

import ipaddress
import os
import signal
import socket
import urllib.request
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.clock import Clock, has_a_limit
from tests.fakes.provider_server import ProviderServer
from tests.fakes.screen import KINDS, Conditions
from tests.fakes.users import drives_a_terminal
from tests.workers import Workers, compile_from_the_last

FOREIGN = (
    "WOLO_",
    "XDG_",
    "OLLAMA_",
    "AWS_",
    "GOOGLE_",
    "AZURE_",
    "GIT_",
    "OTEL_",
    "TRACEPARENT",
    "PYTHONUNBUFFERED",
    "MAKE",
    "MFLAGS",
)
"""Beginnings of environment names that must not reach a test from outside."""
FOREIGN_ENDS = ("_API_KEY", "_PROXY", "_TOKEN", "_BASE_URL")
WITH_PROCESSES = {
    *("architecture", "conformance", "durability", "effects", "end_to_end", "fleet", "frontends/server", "guard/sandbox"),
    *("lsp", "mcp", "models/local", "replay", "tools/background", "tools/shell", "workspace/processes"),
}
"""Folders in which many tests start processes, or wolo does for them; and those that `make check` runs."""
STARTERS = {
    *("subprocess", "pty", "multiprocessing", "tests.components", "tests.unprivileged", "tests.fakes.command"),
    *(
        "tests.fakes.fork_server",
        "tests.fakes.repositories",
        "tests.fakes.screen",
        "tests.fakes.tmux",
        "tests.guard.sandbox_setup",
    ),
}
"""Modules with which a test starts a process."""

settings.register_profile(
    "soak", deadline=None, max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
settings.register_profile("test", settings.get_profile("soak"), max_examples=5, derandomize=True)
settings.load_profile("test")
"""`test` tries the same few examples each time; `make soak` tries many random ones, whose failures are kept as `@example`."""


HEAVY = {
    "api": "examples many_agents",
    "cli": "accounts audit bundle doctor",
    "contrib": "harbor",
    "diagnostics": "package_check",
    "durability": "*",
    "end_to_end": "action compaction composer custom_tools dist escape fetch full_window hands hostile_checkout masked_outputs "
    "mcp mcp_features meanwhile panels pickers pictures pipeline_snippets plugins read_turn repl_screen replay sandbox "
    "extensions habits killed_work managed reviewer safe_mode searching_files showing_work steering terminal_hygiene "
    "server_inputs typed_commands worktrees allowed_domains windows extension_logins hooks first_run "
    "moving_sessions skills origins subagents patches",
    "effects": "every_option",
    "fleet": "attempts worktree_pool batch batch_from_outside containers eval faults grading phases race run_origin simulation",
    "fleet/engines": "empty_node ray_engine warm_parent",
    "frontends/acp": "acp edges",
    "extensions": "damaged_places public_examples",
    "frontends/claude_protocol": "*",
    "frontends/codex_protocol": "*",
    "frontends/mcp_server": "mcp_server",
    "frontends/server": "absent_user attach background generated_clients load page_approvals page_day server_api version_1 "
    "web_page",
    "frontends/terminal": "captures",
    "frontends/terminal/panels": "choice_panels",
    "guard": "protected_places safe_list",
    "mcp": "client features oauth",
    "models/http": "direct_connection",
    "replay": "player",
    "sessions": "database",
    "tools": "pdf",
    "tools/shell": "job_terminals",
    "workspace": "worktrees",
    "workspace/processes": "runner",
}
"""Files whose tests need more than a seventh of a second of processor time each: `make test-heavy` runs them, not `make test`."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--terminal", choices=[*KINDS], default="usual", help="what the terminals of the tests are like")
    parser.addoption("--fast", action="store_true", help="leave out what may start a process or drive a terminal")
    parser.addoption("--clock", action="store_true", help="only the tests with a limit of processor time, which holds then")
    parser.addoption("--workers", type=int, default=0, help="run the tests in so many forked processes")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "unfit(terminal, reason): cannot be so in terminals of this kind")
    Conditions.kind = KINDS[config.getoption("--terminal")]
    Clock.counts = config.getoption("--clock")
    for ended_by in (signal.SIGHUP, signal.SIGINT):
        if signal.getsignal(ended_by) is signal.SIG_IGN:  # started by `nohup`, or in the background
            signal.signal(ended_by, lambda *_: None)  # still ignored here; a program that a test starts does not inherit it
    if config.getoption("--workers") and (pid := compile_from_the_last(config)):
        config.add_cleanup(lambda: os.waitpid(pid, 0))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    is_slow = collection_path.is_dir() and collection_path.relative_to(Path(__file__).parent).as_posix() in WITH_PROCESSES
    return True if config.getoption("--fast") and is_slow else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Long tests begin first, or all wait for them. In a terminal of another kind only those tests are run that have one."""
    items.sort(key=lambda item: item.get_closest_marker("long") is None)
    _mark_heavy(items)
    if "not soak" in config.option.markexpr:
        _leave_swept_cases_to_soak(config, items)
    if config.getoption("--fast"):
        modules = {item.module for item in items if isinstance(item, pytest.Function)}
        slow = {module for module in modules if _may_start_a_process(module)}
        config.hook.pytest_deselected(items=[item for item in items if getattr(item, "module", None) in slow])
        items[:] = [item for item in items if getattr(item, "module", None) not in slow]
    if config.getoption("--clock"):
        timed = {item for item in items if isinstance(item, pytest.Function) and has_a_limit(item)}
        config.hook.pytest_deselected(items=[item for item in items if item not in timed])
        items[:] = [item for item in items if item in timed]
    kind = config.getoption("--terminal")
    if kind == "usual":
        return
    chosen = [item for item in items if isinstance(item, pytest.Function) and drives_a_terminal(item)]
    config.hook.pytest_deselected(items=[item for item in items if item not in set(chosen)])
    items[:] = chosen
    for item in items:
        for unfit in item.iter_markers("unfit"):
            if kind == unfit.args[0]:
                item.add_marker(pytest.mark.skip(reason=unfit.kwargs["reason"]))


def _mark_heavy(items: list[pytest.Item]) -> None:
    tests = Path(__file__).parent
    files = {
        path for folder, names in HEAVY.items() for name in names.split() for path in (tests / folder).glob(f"test_{name}.py")
    }
    for item in items:
        if item.path in files:
            item.add_marker("heavy")


def _leave_swept_cases_to_soak(config: pytest.Config, items: list[pytest.Item]) -> None:
    """One in `every` cases of a test marked `sweep` stays; `every`, coprime to inner parameters, meets each of their values."""
    num_seen: Counter[str] = Counter()
    left_out = []
    for item in items:
        sweep = item.get_closest_marker("sweep")
        if sweep is None:
            continue
        test = item.nodeid.partition("[")[0]
        if num_seen[test] % sweep.kwargs["every"]:
            left_out.append(item)
        num_seen[test] += 1
    config.hook.pytest_deselected(items=left_out)
    dropped = set(left_out)
    items[:] = [item for item in items if item not in dropped]


def _may_start_a_process(module: ModuleType) -> bool:
    """Something in its namespace does, or comes from a module that does."""
    return any(
        (each.__name__ if isinstance(each, ModuleType) else getattr(each, "__module__", None)) in STARTERS
        for each in vars(module).values()
    )


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    num_workers = session.config.getoption("--workers")
    if not num_workers or session.config.option.collectonly or session.testsfailed:
        return None
    Workers(session, num_workers).run()
    return True


@pytest.fixture(autouse=True)
def isolated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of the test: `home` and `wolo` lie in it beside `work`, where it runs."""
    for name in list(os.environ):
        if name.upper().startswith(FOREIGN) or name.upper().endswith(FOREIGN_ENDS):
            monkeypatch.delenv(name)
    home, work = tmp_path / "home", tmp_path / "work"
    home.mkdir()
    work.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("WOLO_HOME", str(tmp_path / "wolo"))
    for name in ("CONFIG", "DATA", "CACHE", "STATE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(home / name.lower()))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setattr(urllib.request, "_opener", None)  # `urlopen` keeps the proxies of its first call
    monkeypatch.chdir(work)
    return tmp_path


@pytest.fixture
def provider() -> Iterator[ProviderServer]:
    """A scripted provider; what it was asked must be valid, from the first request to the last."""
    with ProviderServer() as server:
        yield server
    server.check()


def _is_loopback(host: object) -> bool:
    if host in ("localhost", "", None):
        return True
    try:
        return ipaddress.ip_address(str(host).split("%")[0]).is_loopback
    except ValueError:
        return False


@pytest.fixture(scope="session", autouse=True)
def closed_network() -> Iterator[None]:
    """Connecting or looking up anything but this machine fails the test that tries."""
    connect, connect_ex, getaddrinfo = socket.socket.connect, socket.socket.connect_ex, socket.getaddrinfo

    def refuse(family: int, address: Any) -> None:
        if family in (socket.AF_INET, socket.AF_INET6) and not _is_loopback(address[0]):
            raise ConnectionRefusedError(f"tests reach this machine only, not {address[0]}")

    def guarded_connect(self: socket.socket, address: Any) -> None:
        refuse(self.family, address)
        connect(self, address)

    def guarded_connect_ex(self: socket.socket, address: Any) -> int:
        refuse(self.family, address)
        return connect_ex(self, address)

    def guarded_getaddrinfo(host: Any, *args: Any, **kwargs: Any) -> Any:
        if not _is_loopback(host.decode() if isinstance(host, bytes) else host):
            raise socket.gaierror(socket.EAI_NONAME, f"tests reach this machine only, not {host}")
        return getaddrinfo(host, *args, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", guarded_connect)
        patch.setattr(socket.socket, "connect_ex", guarded_connect_ex)
        patch.setattr(socket, "getaddrinfo", guarded_getaddrinfo)
        yield
