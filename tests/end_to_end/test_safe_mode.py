"""`--safe-mode`: a start without anything that extends wolo."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fakes.command import run_wolo
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import call, text
from wolo.config.layers import load
from wolo.places import find_places
from wolo.workspace.root import find_site

SKILL = "---\nname: {name}\ndescription: SKILL-MARK\n---\nbody\n"


@pytest.fixture
def extended() -> Path:
    """Extensions of the user and of a trusted project; each leaves its mark."""
    config = find_places().config
    (config / "skills/mine").mkdir(parents=True)
    (config / "skills/mine/SKILL.md").write_text(SKILL.format(name="mine"))
    (config / "AGENTS.md").write_text("USER-MARK")
    hook = '[[hooks.SessionStart]]\ncommand = "touch hooked"\n'
    server = '[mcp_servers.here]\ncommand = "touch"\nargs = ["served"]\n'
    (config / "config.toml").write_text(f'thinking = "low"\n{hook}{server}')
    (config / "tools").mkdir()
    (config / "tools/mine.py").write_text('def mark() -> str:\n    """TOOL-MARK"""\n    return "x"\n')
    Path("AGENTS.md").write_text("PROJECT-MARK")
    Path("sub").mkdir()
    Path("sub/AGENTS.md").write_text("NESTED-MARK")
    Path("sub/file").write_text("content")
    Path(".wolo/skills/its").mkdir(parents=True)
    Path(".wolo/skills/its/SKILL.md").write_text(SKILL.format(name="its"))
    Path(".wolo/config.toml").write_text('permissions.deny = ["read:sub/**"]\n')
    return Path.cwd()


def test_safe_mode_uses_nothing_of_user_or_project(provider: ProviderServer, extended: Path) -> None:
    provider.script(call("read", {"path": "sub/file"}), text("done"))
    done = run_wolo("-p", *provider.flags, "--safe-mode", "hello")
    assert done.exit_code == 0
    assert "Safe mode" in done.stderr
    sent = str([each.json for each in provider.requests])
    assert "-MARK" not in sent
    assert "content" in sent
    assert not Path("hooked").exists()
    assert not Path("served").exists()


def test_usual_mode_uses_them_all(provider: ProviderServer, extended: Path) -> None:
    provider.script(call("read", {"path": "sub/file"}), text("done"))
    assert run_wolo("-p", *provider.flags, "--trust", "hello").exit_code == 4
    sent = str([each.json for each in provider.requests])
    assert [mark for mark in ("SKILL", "USER", "TOOL", "PROJECT") if f"{mark}-MARK" not in sent] == []
    assert Path("hooked").exists()
    assert "denied" in provider.requests[1].results[0].lower()


def test_managed_hooks_run_in_safe_mode(
    provider: ProviderServer, extended: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "managed-settings"
    folder.mkdir()
    (folder / "managed.toml").write_text('[[hooks.SessionStart]]\ncommand = "touch managed-ran"\n')
    monkeypatch.setenv("WOLO_MANAGED_DIR", str(folder))
    provider.script(text("done"))
    assert run_wolo("-p", *provider.flags, "--safe-mode", "hello").exit_code == 0
    assert not Path("hooked").exists()
    assert [*tmp_path.rglob("managed-ran")]


def test_programs_of_settings_are_left_out(extended: Path) -> None:
    (find_places().config / "config.toml").write_text(
        'verify.command = "touch verified"\nshell.snapshot = true\nlsp.servers.own = {command = ["x"], extensions = [".x"]}\n'
        'ui = {status_command = ["x"], notify_command = ["x"], theme = "light"}\n'
    )
    config = load(find_site(), {"safe_mode": True})
    settings = config.settings
    assert (settings.verify.command, settings.shell.snapshot, settings.lsp.enabled, dict(settings.lsp.servers)) == (
        "",
        False,
        False,
        {},
    )
    assert (settings.ui.status_command, settings.ui.notify_command, settings.ui.theme) == ((), (), "light")
    named = load(find_site(), {"safe_mode": True, "verify": "true"}).settings
    assert named.verify.command == "true"


@pytest.mark.parametrize("option", [("--agent", "explore"), ("--mcp-config", "x.json"), ("--trust",)])
def test_options_that_need_extensions_are_refused(option: tuple[str, ...]) -> None:
    done = run_wolo("-p", "--safe-mode", *option, "hello")
    assert done.exit_code == 2
    assert f"--safe-mode does not go with {option[0]}." in done.stderr
