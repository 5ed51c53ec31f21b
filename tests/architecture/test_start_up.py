"""What each way of starting wolo imports, as a set: a library that sneaks in is seen, whatever the machine's speed."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fakes import replies_anthropic
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import text
from tests.fakes.screen import pty_wolo

HEAVY = {
    "rich",
    "prompt_toolkit",
    "pydantic",
    "mcp",
    "acp",
    "typer",
    "pygments",
    "keyring",
    "PIL",
    "rapidfuzz",
    "tomlkit",
    "yaml",
}
PROXIES = {"httpx2", "httpcore2", "anyio"}
"""Loaded for connections through a proxy only."""
DRAWN_LATER = {"pygments", "markdown_it", "httpx2", "httptools", "tree_sitter"}
"""What answers, requests and calls need, and no prompt."""
LATER = {
    "rich.table",
    "wolo.models.client",
    "wolo.models.http.http_transport",
    "wolo.formats.openai_chat",
    "wolo.commands.table",
    "wolo.frontends.terminal.dialogs.first_run",
}
SHARED = {"decoding", "encoding"}
"""What the wire formats have in common."""
HEAVY_AT_HELP = HEAVY - {"typer"} | {"httpx2", "msgspec"}

PROBE = """
import runpy, sys
sys.argv = ["wolo", *{argv!r}]
try:
    runpy.run_module("wolo", run_name="__main__")
except SystemExit as done:
    assert not done.code, done.code
finally:
    print("MODULES", *sorted(sys.modules), file=sys.stderr)
"""


def imported_by(*argv: str) -> set[str]:
    return {name.partition(".")[0] for name in modules_of(*argv)}


def modules_of(*argv: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", PROBE.format(argv=list(argv))],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return set(done.stderr.rpartition("MODULES")[2].split())


def test_version_imports_nothing_at_all() -> None:
    assert not imported_by("--version") & {*HEAVY, "typer", "msgspec", "asyncio", "json", "httpx2"}


@pytest.mark.parametrize("argv", [["--help"], ["sessions", "--help"]])
def test_help_needs_no_rich_and_no_network_library(argv: list[str]) -> None:
    assert not imported_by(*argv) & HEAVY_AT_HELP


def test_a_headless_turn_loads_no_heavy_library(provider: ProviderServer, tmp_path: Path) -> None:
    provider.script(text("Hello."))
    modules = imported_by("-p", "--base-url", provider.base_url, "--api-key", "k", "-m", "test-model", "hi")
    assert "httptools" in modules
    assert not modules & (HEAVY | PROXIES)


def test_a_proxy_loads_the_library_for_it(provider: ProviderServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", provider.origin)
    provider.script(text("Hello."))
    assert imported_by("-p", "--base-url", "http://model.example.com/v1", "--api-key", "k", "-m", "test-model", "hi") >= PROXIES


def test_the_first_prompt_waits_for_nothing_that_only_an_answer_needs(provider: ProviderServer) -> None:
    with pty_wolo(*provider.flags, env={"PYTHONPROFILEIMPORTTIME": "1"}) as terminal:
        terminal.wait_until(lambda: "›".encode() in terminal.raw)
    modules = set(re.findall(r"import time: .*\| +([\w.]+)", terminal.raw.decode(errors="replace")))
    assert "prompt_toolkit.application" in modules
    assert not {name.partition(".")[0] for name in modules} & (HEAVY - {"rich", "prompt_toolkit"} | DRAWN_LATER)
    assert not modules & LATER


def test_servers_whose_tools_are_known_cost_a_run_that_calls_none_no_library(provider: ProviderServer, isolated: Path) -> None:
    server = Path(__file__).parents[1] / "fakes" / "mcp_plain.py"
    config = isolated / "wolo" / "config" / "config.toml"
    config.parent.mkdir(parents=True, mode=0o700)
    config.write_text(f"[mcp_servers.good]\ncommand = {sys.executable!r}\nargs = [{str(server)!r}, 'good']\n")
    config.chmod(0o600)
    provider.script(text("First."), text("Second."))
    given = ("-p", "--base-url", provider.base_url, "--api-key", "k", "-m", "test-model", "hi")
    assert {"mcp", "pydantic"} <= imported_by(*given)
    provider.forget_prefix()
    assert not imported_by(*given) & HEAVY
    first, second = ([tool["function"]["name"] for tool in asked.json["tools"]] for asked in provider.requests)
    assert "mcp__good__say" in first
    assert first == second


def test_without_servers_little_of_their_room_is_loaded(provider: ProviderServer) -> None:
    provider.script(text("Hello."))
    modules = modules_of("-p", "--base-url", provider.base_url, "--api-key", "k", "-m", "test-model", "hi")
    assert not {f"wolo.mcp.{name}" for name in ("sdk", "client", "connection", "stdio_process", "mcp_tool")} & modules


def test_without_hooks_nothing_of_them_is_loaded(provider: ProviderServer) -> None:
    provider.script(text("Hello."))
    modules = modules_of("-p", "--base-url", provider.base_url, "--api-key", "k", "-m", "test-model", "hi")
    of_hooks = {
        name for name in modules if name.startswith("wolo.extensions.hooks.") or name == "wolo.workspace.processes.run_with_input"
    }
    assert of_hooks == {"wolo.extensions.hooks.definitions"}


def test_only_the_wire_format_in_use_is_loaded(provider: ProviderServer) -> None:
    at = ("-p", "--api-key", "k", "-m", "test-model", "hi")
    provider.script(text("Hello."), replies_anthropic.text("Hello."))
    assert packages_of("--base-url", provider.base_url, *at) == SHARED | {"openai_chat", "text_recovery"}
    assert packages_of("--api", "anthropic", "--base-url", provider.origin, *at) == SHARED | {"anthropic"}


def packages_of(*argv: str) -> set[str]:
    """The rooms of `formats/` that a run enters."""
    inside = [name.split(".")[2:] for name in modules_of(*argv) if name.startswith("wolo.formats.")]
    return {first for first, *rest in inside if rest}


def test_the_version_in_the_package_is_the_one_of_the_distribution() -> None:
    from importlib.metadata import version

    from wolo import __version__

    assert version("wolo-cli") == __version__
