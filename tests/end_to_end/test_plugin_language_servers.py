"""Language servers of plugins: they check edits once the plugin is allowed, and the user's own settings count more."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.command import run_wolo
from tests.fakes.constants import set_constants
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import call, text
from tests.fakes.repositories import files
from wolo.places import find_places

FAKE = Path(__file__).parents[1] / "fakes" / "language_server.py"
LAUNCHER = f'#!/bin/sh\nexec "{sys.executable}" "$CLAUDE_PLUGIN_ROOT/server.py" "$@"\n'
SERVER: dict[str, Any] = {
    "command": "./run/serve",
    "args": ["well"],
    "extensionToLanguage": {".X": "exotic"},
    "env": {"LEVEL": "3", "LOGS": "${CLAUDE_PLUGIN_DATA}/logs", "LD_PRELOAD": "/evil.so"},
    "initializationOptions": {"root": "${CLAUDE_PLUGIN_ROOT}"},
    "settings": {"exotic": {"lint": True}},
    "startupTimeout": 9000,
}


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    constants = {f"wolo.lsp.language_servers.{name}": 60.0 for name in ("COLD_S", "WARM_S")}
    set_constants(monkeypatch, tmp_path / "constants", constants)
    content = {
        ".claude-plugin/plugin.json": {"name": "acme", "lspServers": {"exotic": SERVER}},
        "server.py": FAKE.read_text(),
        "run/serve": LAUNCHER,
    }
    return files(tmp_path / "acme", content)


def edit(provider: ProviderServer, *flags: str) -> tuple[str, str]:
    """The result of an edit with an error in it, and stderr."""
    provider.forget_prefix()
    provider.script(call("write", {"path": "a.x", "content": "BAD idea\n"}), text("Done."))
    done = run_wolo("-p", *flags, *provider.flags, "go")
    assert done.exit_code == 0, done.stderr
    Path("a.x").unlink()
    return provider.requests[-1].results[0], done.stderr


def test_language_server_of_plugin_checks_edits_once_allowed(provider: ProviderServer, plugin: Path) -> None:
    added = run_wolo("plugin", "add", str(plugin), "--yes").stdout
    for line in ("LSP servers  exotic", "not used     LD_PRELOAD of the language server exotic, startupTimeout of the"):
        assert line in added
    result, errors = edit(provider)
    assert result == "Created a.x (1 line)."
    assert "wolo plugin allow acme" in errors
    allowed = run_wolo("plugin", "allow", "acme").stdout
    root = next(find_places().data.glob("plugins/store/acme-*"))
    for line in ("LSP server   exotic (.x)", f"{root}/run/serve well", "LEVEL=3"):
        assert line in allowed
    result, errors = edit(provider)
    assert result.endswith("[exotic: 1 new error after this edit]\na.x:1:1: BAD idea (E1)")
    assert "wolo plugin allow" not in errors
    assert "exotic" in run_wolo("doctor", "--json").json["language_servers"]
    (root / "run/serve").write_text(LAUNCHER + "# changed\n")
    result, errors = edit(provider)
    assert (result, "wolo plugin allow acme" in errors) == ("Created a.x (1 line).", True)


def test_settings_count_more_than_a_plugin(provider: ProviderServer, plugin: Path) -> None:
    run_wolo("plugin", "add", str(plugin), "--yes")
    run_wolo("plugin", "allow", "acme")
    assert edit(provider, "--set", "lsp.servers.exotic.enabled=false")[0] == "Created a.x (1 line)."
    Path("server.py").write_bytes(FAKE.read_bytes())
    own = f"lsp.servers.mine.command=[{sys.executable!r}, {str(Path('server.py').absolute())!r}, 'well']"
    assert "[mine: 1 new error" in edit(provider, "--set", own, "--set", "lsp.servers.mine.extensions=['.x']")[0]
    assert edit(provider, "--safe-mode")[0] == "Created a.x (1 line)."


def test_absent_program_of_a_plugin_is_named(provider: ProviderServer, plugin: Path) -> None:
    files(plugin, {".claude-plugin/plugin.json": {"name": "acme", "lspServers": {"none": {**SERVER, "command": "no-such-one"}}}})
    run_wolo("plugin", "add", str(plugin), "--yes")
    run_wolo("plugin", "allow", "acme")
    result, errors = edit(provider)
    assert result == "Created a.x (1 line)."
    assert "The language server none of a plugin is not used: there is no program no-such-one." in errors
