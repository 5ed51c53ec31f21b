"""Plugins from an npm registry: fetched by hash, shown, run only after consent, updated and removed like others."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.command import run_wolo
from tests.fakes.npm_registry import NpmRegistry, npm_registry
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import text
from tests.fakes.repositories import files, skill_text
from wolo.places import find_places

SERVER = Path(__file__).parents[1] / "fakes/mcp_plain.py"
PLUGIN: dict[str, Any] = {
    ".claude-plugin/plugin.json": {"name": "acme"},
    "package.json": {
        "name": "@acme/tools",
        "version": "1.0.0",
        "description": "Tools.",
        "scripts": {"preinstall": "touch ran-it", "postinstall": "touch ran-it"},
        "dependencies": {"left-pad": "1"},
    },
    "skills/deploy/SKILL.md": skill_text("deploy"),
    "hooks/say.sh": "#!/bin/sh\ntouch hook-ran\n",
    "hooks/hooks.json": {"hooks": {"UserPromptSubmit": [{"hooks": [{"command": "${CLAUDE_PLUGIN_ROOT}/hooks/say.sh"}]}]}},
    ".mcp.json": {"mcpServers": {"plain": {"command": sys.executable, "args": [str(SERVER), "good"]}}},
}


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[NpmRegistry]:
    with npm_registry() as served:
        monkeypatch.setenv("NPM_CONFIG_REGISTRY", f"{served.url}/")
        served.publish("@acme/tools", "1.0.0", PLUGIN)
        yield served


def listed() -> dict[str, Any]:
    return {row["name"]: row for row in run_wolo("plugin", "list", "--json").json}


def test_npm_plugin_runs_once_it_is_allowed(provider: ProviderServer, registry: NpmRegistry) -> None:
    added = run_wolo("plugin", "add", "npm:@acme/tools", "--yes")
    assert added.exit_code == 0, added.stderr
    for line in (
        "acme 1.0.0, from npm:@acme/tools",
        "hooks        UserPromptSubmit",
        "not used     dependencies, which are not installed: left-pad",
        "To allow them: wolo plugin allow acme",
    ):
        assert line in added.stdout
    provider.otherwise = text("Done.")
    run_wolo("-p", "hi", *provider.flags)
    assert not Path("hook-ran").exists()
    assert run_wolo("plugin", "allow", "acme").exit_code == 0
    provider.forget_prefix()
    run_wolo("-p", "hi", *provider.flags)
    assert Path("hook-ran").exists()
    assert list(Path.cwd().rglob("ran-it")) == list(find_places().data.rglob("ran-it")) == []
    assert [path for path, _ in registry.requests] == ["/@acme/tools", "/@acme/tools/-/1.0.0.tgz"]


def test_npm_plugin_is_updated_pinned_and_removed(registry: NpmRegistry) -> None:
    run_wolo("plugin", "add", "npm:@acme/tools")
    run_wolo("plugin", "allow", "acme")
    first = listed()["acme"]["commit"]
    assert first.startswith("sha256:")
    assert "up to date" in run_wolo("plugin", "update").stdout
    package = {**PLUGIN["package.json"], "version": "2.0.0"}
    registry.publish("@acme/tools", "2.0.0", {**PLUGIN, "package.json": package, "commands/new.md": "New."})
    updated = run_wolo("plugin", "update", "acme")
    assert "acme: 1.0.0 → 2.0.0" in updated.stdout
    assert "+ commands/new.md" in updated.stdout
    row = listed()["acme"]
    assert (row["version"], row["allowed"], row["commit"] != first) == ("2.0.0", False, True)
    run_wolo("plugin", "remove", "acme")
    assert list(find_places().data.glob("plugins/*/*")) == []
    assert run_wolo("plugin", "add", "npm:@acme/tools@1.0.0").exit_code == 0
    assert "up to date" in run_wolo("plugin", "update").stdout
    assert listed()["acme"]["commit"] == first


def test_npm_package_is_named_by_a_marketplace(registry: NpmRegistry, tmp_path: Path) -> None:
    entries = [
        {"name": "acme", "source": {"source": "npm", "package": "@acme/tools", "version": "1.0.0", "registry": registry.url}},
        {"name": "ranged", "source": {"source": "npm", "package": "@acme/tools", "version": "^1.0.0"}},
    ]
    files(tmp_path / "market", {"marketplace.json": {"name": "market", "plugins": entries}})
    run_wolo("plugin", "marketplace", "add", str(tmp_path / "market"))
    added = run_wolo("plugin", "add", "acme@market")
    assert f"from npm:{registry.url}/@acme/tools@1.0.0" in added.stdout
    assert listed()["acme"]["marketplace"] == "market"
    ranged = run_wolo("plugin", "add", "ranged@market")
    assert (ranged.exit_code, "a version or a tag, no range" in ranged.stderr) == (2, True)


def test_skills_of_a_package_are_added(registry: NpmRegistry) -> None:
    assert run_wolo("skills", "add", "npm:@acme/tools", "--yes").exit_code == 0
    assert [row["name"] for row in run_wolo("skills", "list", "--json").json] == ["deploy"]


def test_managed_files_allow_npm_sources(registry: NpmRegistry, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(
        "WOLO_MANAGED_DIR", str(files(tmp_path / "managed", {"managed.toml": 'managed.plugins.allow = ["npm:@other/*"]'}))
    )
    refused = run_wolo("plugin", "add", "npm:@acme/tools")
    assert (refused.exit_code, "not allowed on this machine" in refused.stderr) == (2, True)
    assert listed() == {}
