"""What each way of starting wolo imports, as a set: a library that sneaks in is seen, whatever the machine's speed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import text

HEAVY = {"rich", "prompt_toolkit", "pydantic", "mcp", "acp", "typer", "pygments", "keyring", "PIL", "rapidfuzz", "tomlkit"}
HEAVY_AT_HELP = HEAVY - {"typer"} | {"httpx2", "msgspec"}

PROBE = """
import runpy, sys
sys.argv = ["wolo", *{argv!r}]
try:
    runpy.run_module("wolo", run_name="__main__")
except SystemExit as done:
    assert not done.code, done.code
finally:
    print("MODULES", *sorted({{name.partition(".")[0] for name in sys.modules}}), file=sys.stderr)
"""


def imported_by(*argv: str) -> set[str]:
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
    assert "httpx2" in modules
    assert not modules & HEAVY


def test_the_version_in_the_package_is_the_one_of_the_distribution() -> None:
    from importlib.metadata import version

    from wolo import __version__

    assert version("wolo-cli") == __version__
