"""Managed settings: what the administrator of a machine fixes holds at every door."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.end_to_end.test_repl import leave, wait_for_prompt
from tests.fakes.command import Completed, run_wolo
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import call, text
from tests.fakes.screen import pty_wolo
from wolo.config.layers import load
from wolo.config.managed import Allowed, ManagedSettings, find_managed_files
from wolo.errors import ConfigError, UsageError
from wolo.places import find_places
from wolo.workspace.root import find_site

Write = Callable[..., Path]


@pytest.fixture
def managed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Writes a managed file."""
    folder = tmp_path / "managed-settings"
    (folder / "managed.d").mkdir(parents=True)
    monkeypatch.setenv("WOLO_MANAGED_DIR", str(folder))

    def write(content: str, name: str = "managed.toml") -> Path:
        (folder / name).write_text(content, "utf-8")
        return folder / name

    return write


def ask(provider: ProviderServer, *args: str) -> Completed:
    return run_wolo("-p", *provider.flags, *args, "hello")


def test_fixed_setting_beats_every_layer(provider: ProviderServer, managed: Write) -> None:
    path = managed("limits.max_turns = 1\n")
    provider.script(call("read", {"path": "x"}), text("never asked"))
    done = ask(provider, "--max-turns", "9")
    assert done.exit_code == 5
    assert f"limits.max_turns of --max-turns has no effect: {path} sets it." in done.stderr
    rows = {row["key"]: row for row in run_wolo("config", "show", "--json").json}
    assert rows["limits.max_turns"]["value"] == 1
    assert rows["limits.max_turns"]["source"] == f"managed ({path})"
    assert str(path) in run_wolo("config", "path").stdout


def test_later_files_win_and_denials_add_up(managed: Write) -> None:
    managed('thinking = "low"\npermissions.deny = ["read:a/**"]\n')
    managed('thinking = "high"\npermissions.deny = ["read:b/**"]\n', "managed.d/20-more.toml")
    managed('thinking = "off"\n', "managed.d/.hidden.toml")
    config = load(find_site(), {"deny": ["read:c/**"]})
    assert config.settings.thinking == "high"
    assert [rule.pattern for rule in config.rules] == ["c/**", "a/**", "b/**"]
    assert config.settings.permissions.deny == ("read:c/**", "read:a/**", "read:b/**")


def test_denied_command_stays_denied_in_any_mode(provider: ProviderServer, managed: Write) -> None:
    managed('permissions.deny = ["shell:touch *"]\n')
    provider.script(call("shell", {"command": "touch made"}), text("done"))
    ask(provider, "--yolo", "--allow", "shell:touch *")
    assert not Path("made").exists()


@pytest.mark.parametrize(
    ("content", "named"),
    [
        ("limits.max_turn = 1\n", "there is no setting limits.max_turn"),
        ("managed.models.alow = []\n", "there is no setting managed.models.alow"),
        ("limits.max_turns = ]\n", "line 1"),
        ('mode = "yolo"\n', "mode yolo cannot be set in a file"),
        ("managed.models.allow = 3\n", "managed.models.allow"),
        ("managed = 3\n", "group of settings"),
        ("\udc80\n".encode("utf-8", "surrogateescape").decode("latin-1"), "line 1"),
    ],
)
def test_wrong_managed_file_starts_nothing(provider: ProviderServer, managed: Write, content: str, named: str) -> None:
    path = managed(content)
    done = ask(provider)
    assert done.exit_code == 2
    assert str(path) in done.stderr
    assert named in done.stderr
    assert not provider.requests


def test_unreadable_managed_file_starts_nothing(provider: ProviderServer, managed: Write) -> None:
    path = managed("")
    path.unlink()
    path.mkdir()
    done = ask(provider)
    assert done.exit_code == 2
    assert f"{path} cannot be read" in done.stderr
    path.rmdir()
    path.symlink_to("/nowhere/at/all")
    assert ask(provider).exit_code == 2
    path.unlink()
    path.touch(0o666)
    path.chmod(0o666)
    done = ask(provider)
    assert done.exit_code == 2
    assert "can be written by every user" in done.stderr
    assert not provider.requests


def test_missing_named_folder_starts_nothing(provider: ProviderServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WOLO_MANAGED_DIR", "/nowhere/at/all")
    done = ask(provider)
    assert done.exit_code == 2
    assert "WOLO_MANAGED_DIR" in done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="gives a folder to another user")
def test_folder_of_another_user_is_refused(managed: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    os.chown(managed("").parent, 12345, -1)
    with pytest.raises(ConfigError, match="belongs to another user"):
        find_managed_files(os.environ)


def test_system_folder_goes_before_the_variable(managed: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    managed("limits.max_turns = 1\n")
    system = tmp_path / "system"
    system.mkdir()
    monkeypatch.setattr("wolo.config.managed.FOLDERS", {"linux": str(system), "darwin": str(system)})
    assert [path.parent.name for path in find_managed_files(os.environ)] == ["managed-settings"]
    (system / "managed.toml").touch()
    assert find_managed_files(os.environ) == (system / "managed.toml",)


def test_user_cannot_set_managed_keys(provider: ProviderServer) -> None:
    done = ask(provider, "--set", 'managed.models.allow=["*"]')
    assert done.exit_code == 2
    assert "can only be set in managed files" in done.stderr


@pytest.mark.parametrize(
    ("content", "named"),
    [
        ('managed.models.allow = ["anthropic/*"]\n', "The model custom/test is not allowed"),
        ('managed.providers.allow = ["anthropic"]\n', "The provider custom is not allowed"),
        ('managed.base_urls.allow = ["https://llm.example.com/*"]\n', "is not allowed on this machine"),
    ],
)
def test_other_models_are_never_asked(provider: ProviderServer, managed: Write, content: str, named: str) -> None:
    managed(content)
    done = run_wolo("-p", "--base-url", provider.base_url, "-m", "test", "hello")
    assert done.exit_code == 2
    assert named in done.stderr
    assert not provider.requests


def test_model_list_is_not_asked_elsewhere(provider: ProviderServer, managed: Write) -> None:
    managed('managed.base_urls.allow = ["https://llm.example.com/*"]\n')
    assert run_wolo("-p", "--base-url", provider.base_url, "hello").exit_code == 2
    assert not provider.requests


def test_forbidden_address_is_not_probed(provider: ProviderServer, managed: Write) -> None:
    managed('managed.base_urls.allow = ["https://llm.example.com/*"]\n')
    done = run_wolo("models", "probe", provider.base_url)
    assert done.exit_code == 2
    assert f"The address {provider.base_url} is not allowed on this machine." in done.stderr
    assert not provider.requests


def test_allowed_address_is_used(provider: ProviderServer, managed: Write) -> None:
    managed(f'managed.base_urls.allow = ["{provider.base_url}"]\nmanaged.models.allow = ["custom/*"]\n')
    provider.script(text("hi"))
    assert ask(provider).stdout == "hi\n"


def test_modes_are_limited_at_every_door(provider: ProviderServer, managed: Write) -> None:
    managed('managed.modes.allow = ["plan", "ask"]\n')
    done = ask(provider, "--yolo")
    assert done.exit_code == 2
    assert "Mode yolo is not allowed on this machine.\n      Allowed are: plan, ask." in done.stderr
    assert load(find_site()).settings.mode == "ask"
    with pty_wolo(*provider.flags) as terminal:
        wait_for_prompt(terminal)
        terminal.enter("/mode auto")
        terminal.wait_for("Mode auto is not allowed")
        for mode in ("plan", "ask", "plan"):
            terminal.press("shift-tab")
            terminal.wait_for(f"· {mode} ")
        leave(terminal)


def test_lowered_mode_is_not_looser() -> None:
    managed = ManagedSettings()
    assert managed.lower_mode("auto") == "auto"
    with pytest.raises(UsageError):
        type(managed)(modes=type(managed.modes)(("auto",))).lower_mode("edit")


def test_other_servers_are_left_out(provider: ProviderServer, managed: Write) -> None:
    managed('managed.mcp.allow = ["known", "command:trusted *"]\n')
    servers = {"known": {"command": "true"}, "other": {"command": "trusted", "args": ["-x"]}, "bad": {"command": "sh"}}
    Path("servers.json").write_text(json.dumps({"mcpServers": servers}))
    provider.script(text("hi"))
    done = ask(provider, "--mcp-config", "servers.json")
    assert "the MCP server bad is not allowed on this machine" in done.stderr
    assert done.stderr.count("is not allowed") == 1


def test_forbidden_plugin_is_not_installed(managed: Write) -> None:
    managed('managed.plugins.allow = ["corp-*"]\n')
    skill = Path("pack/skills/one")
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: one\ndescription: one\n---\n")
    Path("pack/.claude-plugin").mkdir()
    Path("pack/.claude-plugin/plugin.json").write_text('{"name": "pack"}')
    done = run_wolo("plugin", "add", str(Path("pack").resolve()), "--yes")
    assert done.exit_code == 2
    assert "The plugin pack is not allowed on this machine." in done.stderr
    managed('managed.plugins.allow = ["pack"]\n')
    assert run_wolo("plugin", "add", str(Path("pack").resolve()), "--yes").exit_code == 0
    managed('managed.plugins.allow = ["corp-*"]\n')
    done = run_wolo("skills", "list")
    assert "one" not in done.stdout


def test_forbidden_marketplace_is_not_added(managed: Write) -> None:
    managed('managed.marketplaces.allow = ["corp"]\n')
    folder = Path("market/.claude-plugin")
    folder.mkdir(parents=True)
    plugins = '[{"name": "one", "source": "./one"}]'
    (folder / "marketplace.json").write_text(f'{{"name": "open", "owner": {{"name": "x"}}, "plugins": {plugins}}}')
    add = ("plugin", "marketplace", "add", str(Path("market").resolve()))
    done = run_wolo(*add)
    assert done.exit_code == 2
    assert "The marketplace open is not allowed on this machine." in done.stderr
    managed('managed.marketplaces.allow = ["open"]\n')
    assert run_wolo(*add).exit_code == 0
    assert "one" in run_wolo("plugin", "search", "one").stdout
    managed('managed.marketplaces.allow = ["corp"]\n')
    done = run_wolo("plugin", "search", "one")
    assert "one" not in done.stdout.split()
    assert "The marketplace open is not allowed on this machine." in done.stderr
    assert run_wolo("plugin", "add", "one@open", "--yes").exit_code != 0


def test_python_programs_obey_too(provider: ProviderServer, managed: Write) -> None:
    managed('managed.providers.allow = ["anthropic"]\n')
    code = f"""
import asyncio, wolo, wolo.errors
try:
    asyncio.run(wolo.Agent("custom/test", base_url={provider.base_url!r}).run("hello"))
except wolo.errors.WoloError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert "The provider custom is not allowed" in done.stdout, done.stderr
    assert not provider.requests


@pytest.mark.parametrize(
    ("url", "pattern", "allowed"),
    [
        ("https://llm.example.com/v1", "https://*.example.com/*", True),
        ("https://evil.example/.example.com/", "https://*.example.com/*", False),
        ("https://evil.example?.example.com/", "https://*.example.com/*", False),
        ("https://evil.example\\.example.com/", "https://*.example.com/*", False),
        ("https://llm.example.com@evil.example/", "https://llm.example.com*/*", False),
        ("https://me:key@llm.example.com/v1", "https://llm.example.com/*", True),
        ("https://llm.example.com/a/../b", "https://llm.example.com/a/*", False),
        ("http://llm.example.com/v1", "https://llm.example.com/*", False),
        ("http://[::1]:8000/v1", "http://[::1]:8000/*", True),
        ("http://1:8000/v1", "http://[1]:8000/*", False),
        ("https://llm.example.com/v1", "*", True),
        ("https://llm.example.com/v1", "*://llm.example.com/*", True),
        ("command:npx @example/a", "command:npx @example/*", True),
        ("command:https://x/", "https://x/*", False),
    ],
)
def test_patterns_of_urls_keep_to_the_host(url: str, pattern: str, allowed: bool) -> None:
    assert Allowed((pattern,)).has(url) is allowed


@pytest.mark.parametrize("option", [("--base-url", "URL"), ("--api-key", "other"), ("--api", "openai-responses")])
def test_fixed_provider_is_not_redirected(provider: ProviderServer, managed: Write, option: tuple[str, str]) -> None:
    managed(
        f'providers.corp = {{base_url = "{provider.base_url}", api_key = "k", api = "openai-chat"}}\n'
        'providers.other.base_url = "http://127.0.0.1:9/v1"\n'
    )
    done = run_wolo("-p", "-m", "corp/test", *(provider.base_url if word == "URL" else word for word in option), "hello")
    assert done.exit_code == 2
    assert f"{option[0]} has no effect here: providers.corp.{option[0][2:].replace('-', '_')} is fixed" in done.stderr
    assert not provider.requests


def test_fixed_provider_is_not_redirected_by_a_variable(
    provider: ProviderServer, managed: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    managed('providers.corp.base_url = "http://127.0.0.1:9/v1"\nproviders.corp.api = "openai-chat"\n')
    monkeypatch.setenv("WOLO_BASE_URL", provider.base_url)
    done = run_wolo("-p", "-m", "corp/test", "hello")
    assert done.exit_code == 2
    assert "WOLO_BASE_URL has no effect here" in done.stderr
    assert not provider.requests


def test_fixed_settings_stay_in_a_session(provider: ProviderServer, managed: Write) -> None:
    managed('mode = "edit"\nmodel = "custom/test-model"\nthinking = "low"\n')
    with pty_wolo("--base-url", provider.base_url) as terminal:
        wait_for_prompt(terminal)
        terminal.enter("/mode auto")
        terminal.wait_for("Mode auto is not allowed")
        terminal.enter("/mode plan")
        terminal.wait_for("· plan ")
        terminal.enter("/model custom/other")
        terminal.wait_for("The model is fixed on this machine: custom/test-model")
        terminal.enter("/model custom/test-model:high")
        terminal.wait_for("The thinking level is fixed on this machine: low")
        leave(terminal)


def test_agent_keeps_the_fixed_model(provider: ProviderServer, managed: Write) -> None:
    corp = f'providers.corp = {{base_url = "{provider.base_url}", api_key = "key", api = "openai-chat"}}\n'
    managed(corp + 'model = "corp/test-model"\nthinking = "low"\n')
    agents = find_places().config / "agents"
    agents.mkdir(parents=True)
    (agents / "own.md").write_text("---\nname: own\ndescription: own\nmodel: corp/other\nthinking: high\n---\nbody\n")
    provider.script(text("hi"), text("again"))
    done = run_wolo("-p", "--agent", "own", "hello")
    assert done.exit_code == 0, done.stderr
    managed(corp + 'model = "corp/third"\n')
    assert run_wolo("-p", "-c", "--agent", "own", "hello").exit_code == 0
    assert [each.json["model"] for each in provider.requests] == ["test-model", "third"]


@pytest.mark.parametrize("content", ["file", "link"])
def test_unreadable_folder_of_managed_files_starts_nothing(provider: ProviderServer, managed: Write, content: str) -> None:
    folder = managed("").with_name("managed.d")
    folder.rmdir()
    if content == "file":
        folder.write_text("x")
    else:
        folder.symlink_to("/nowhere/at/all")
    done = ask(provider)
    assert done.exit_code == 2
    assert f"{folder} cannot be read" in done.stderr
    assert not provider.requests
