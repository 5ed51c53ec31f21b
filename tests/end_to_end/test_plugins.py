"""Plugins as their users have them: added from a repository, used under their name, allowed, updated, removed."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from tests.fakes.command import run_wolo
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import call, text
from tests.fakes.repositories import commit, files, git, repository, skill_text
from wolo.places import find_places

SERVER = Path(__file__).parents[1] / "fakes/mcp_plain.py"
HOOK = '#!/bin/sh\ncat > /dev/null\necho "$CLAUDE_PLUGIN_ROOT" > "$CLAUDE_PROJECT_DIR/hook-ran"\n'
PLUGIN: dict[str, Any] = {
    ".claude-plugin/plugin.json": {"name": "acme", "version": "1.0.0", "description": "Tools."},
    "skills/deploy/SKILL.md": skill_text("deploy", body="Read ${CLAUDE_PLUGIN_ROOT}/notes.md."),
    "notes.md": "The notes of the plugin.",
    "commands/git/squash.md": "Squash $1 with ${CLAUDE_PLUGIN_ROOT}/notes.md.",
    "agents/checker.md": "---\nname: checker\ndescription: Checks it all.\n---\nCheck.",
    "hooks/hooks.json": {"hooks": {"UserPromptSubmit": [{"hooks": [{"command": "${CLAUDE_PLUGIN_ROOT}/hooks/say.sh"}]}]}},
    "hooks/say.sh": HOOK,
    ".mcp.json": {"mcpServers": {"plain": {"command": sys.executable, "args": [str(SERVER), "good"]}}},
}


@pytest.fixture
def plugin(tmp_path: Path) -> Path:
    return repository(tmp_path / "acme-plugin", PLUGIN)


def tools(provider: ProviderServer) -> list[str]:
    return [tool["function"]["name"] for tool in provider.requests[-1].json["tools"]]


def system_prompt(provider: ProviderServer) -> str:
    return json.dumps(provider.requests[-1].messages[0]["content"])


def listed() -> dict[str, Any]:
    return {row["name"]: row for row in run_wolo("plugin", "list", "--json").json}


def test_skills_and_commands_carry_the_plugin_name(provider: ProviderServer, plugin: Path) -> None:
    added = run_wolo("plugin", "add", str(plugin))
    assert added.exit_code == 0
    for said in ("hooks        UserPromptSubmit", "MCP servers  plain", "Installed the plugin acme."):
        assert said in added.stdout
    assert listed()["acme"]["commit"] == git(plugin, "rev-parse", "HEAD")
    root = next(find_places().data.glob("plugins/store/acme-*"))
    provider.script(call("skill", {"name": "deploy"}), call("read", {"path": f"{root}/notes.md"}), text("Done."))
    done = run_wolo("-p", "--json", "/squash three", *provider.flags)
    assert done.json["permission_denials"] == []
    assert "acme:deploy" in system_prompt(provider)
    assert f"Squash three with {root}/notes.md." in json.dumps(provider.requests[0].messages)
    loaded, notes = provider.requests[-1].results
    assert f"Read {root}/notes.md." in loaded
    assert "The notes of the plugin." in notes
    provider.forget_prefix()
    provider.script(text("Done."))
    assert run_wolo("-p", "/acme:git:squash four", *provider.flags).exit_code == 0


def test_hooks_and_servers_need_consent_for_each_version(provider: ProviderServer, plugin: Path) -> None:
    run_wolo("plugin", "add", str(plugin), "--yes")
    provider.script(text("Hello."))
    before = run_wolo("-p", "hi", *provider.flags)
    assert not Path("hook-ran").exists()
    assert not any(name.startswith("mcp__") for name in tools(provider))
    assert before.stderr.count("wolo plugin allow acme") == 2  # hooks, servers
    allowed = run_wolo("plugin", "allow", "acme")
    assert "hooks/say.sh" in allowed.stdout
    assert str(SERVER) in allowed.stdout
    provider.forget_prefix()
    provider.script(text("Hello."))
    after = run_wolo("-p", "hi", *provider.flags)
    assert "wolo plugin allow" not in after.stderr
    root = next(find_places().data.glob("plugins/store/acme-*"))
    assert Path("hook-ran").read_text() == f"{root}\n"
    assert any(name.startswith("mcp__plain__") for name in tools(provider))
    Path("hook-ran").unlink()
    (root / "hooks/say.sh").write_text(HOOK + "# changed\n")
    provider.forget_prefix()
    provider.script(text("Hello."))
    changed = run_wolo("-p", "hi", *provider.flags)
    assert "wolo plugin allow acme" in changed.stderr
    assert not Path("hook-ran").exists()


def test_an_update_shows_what_changes_and_asks_again(plugin: Path) -> None:
    run_wolo("plugin", "add", str(plugin))
    run_wolo("plugin", "allow", "acme")
    assert "up to date" in run_wolo("plugin", "update").stdout
    assert listed()["acme"]["allowed"] is True
    (plugin / "notes.md").unlink()
    last = commit(plugin, {"commands/new.md": "New.", "hooks/say.sh": HOOK + "# more\n"})
    updated = run_wolo("plugin", "update", "acme")
    for line in ("+ commands/new.md", "~ hooks/say.sh", "- notes.md", "To allow them: wolo plugin allow acme"):
        assert line in updated.stdout
    assert (listed()["acme"]["commit"], listed()["acme"]["allowed"]) == (last, False)
    assert len(list(find_places().data.glob("plugins/store/*"))) == 1


def test_disabled_plugin_is_silent_removed_one_leaves_nothing(provider: ProviderServer, plugin: Path) -> None:
    run_wolo("plugin", "add", str(plugin))
    run_wolo("plugin", "disable", "acme")
    provider.script(text("Hello."))
    done = run_wolo("-p", "hi", *provider.flags)
    assert "acme" not in system_prompt(provider) + done.stderr
    run_wolo("plugin", "enable", "acme")
    assert "acme:deploy" in run_wolo("skills", "list").stdout
    run_wolo("plugin", "remove", "acme")
    assert listed() == {}
    assert list(find_places().data.glob("plugins/*/*")) == []
    assert run_wolo("plugin", "remove", "acme").exit_code == 2


def test_plugin_is_added_once(plugin: Path, tmp_path: Path) -> None:
    run_wolo("plugin", "add", str(plugin))
    again = run_wolo("plugin", "add", str(plugin))
    assert (again.exit_code, "already installed" in again.stderr) == (2, True)
    files(tmp_path / "other", {"README.md": "x"})
    none = run_wolo("plugin", "add", str(tmp_path / "other"))
    assert (none.exit_code, "is no plugin" in none.stderr) == (2, True)
    files(tmp_path / "other", {"marketplace.json": {"name": "other", "plugins": []}})
    assert "wolo plugin marketplace add" in run_wolo("plugin", "add", str(tmp_path / "other")).stderr
    assert len(list(find_places().data.glob("plugins/store/*"))) == 1


def test_an_addition_that_is_killed_leaves_nothing_half(plugin: Path, tmp_path: Path) -> None:
    slow = files(tmp_path / "bin", {"git": '#!/bin/sh\necho here > "$SIGNAL"\nexec sleep 60\n'})
    fifo = tmp_path / "signal"
    os.mkfifo(fifo)
    environ = {**os.environ, "PATH": f"{slow}:{os.environ['PATH']}", "SIGNAL": str(fifo)}
    adding = subprocess.Popen([sys.executable, "-m", "wolo", "plugin", "add", str(plugin)], env=environ, start_new_session=True)
    assert fifo.read_text() == "here\n"
    store = find_places().data / "plugins/store"
    assert len(list(store.iterdir())) == 1
    os.killpg(adding.pid, signal.SIGKILL)
    adding.wait()
    assert listed() == {}
    run_wolo("plugin", "add", str(plugin))
    assert [path.name.partition("-")[0] for path in store.iterdir()] == ["acme"]


def test_a_damaged_index_costs_the_plugins_only(provider: ProviderServer, plugin: Path) -> None:
    run_wolo("plugin", "add", str(plugin))
    shown = run_wolo("plugin", "show", "acme", "--json").json
    assert (shown["name"], "hooks" in shown["contents"]) == ("acme", True)
    find_places().plugin_index.write_text("{")
    provider.script(text("Hello."))
    done = run_wolo("-p", "hi", *provider.flags)
    assert (done.exit_code, done.stdout) == (0, "Hello.\n")
    assert "Plugins are not used" in done.stderr
    assert run_wolo("plugin", "list").exit_code == 2
    assert any("Plugins are not used" in each for each in run_wolo("doctor", "--json").json["problems"])


def test_missing_source_is_named_by_update(tmp_path: Path) -> None:
    source = files(tmp_path / "local", {"commands/x.md": "X."})
    run_wolo("plugin", "add", str(source))
    shutil.rmtree(source)
    done = run_wolo("plugin", "update")
    assert (done.exit_code, f"There is nothing at {source} any more." in done.stderr) == (1, True)


def test_shell_commands_of_a_plugin_pass_the_gate(provider: ProviderServer, plugin: Path) -> None:
    commit(plugin, {"commands/state.md": "---\nmodel: zai/glm-5.2\n---\nNow: !`touch ran-it`."})
    run_wolo("plugin", "add", str(plugin))
    provider.script(text("Done."))
    done = run_wolo("-p", "/state", "--mode", "ask", *provider.flags)
    assert done.stdout == "Done.\n"
    assert "Not run, sent as text: !`touch ran-it`" in done.stderr
    assert not Path("ran-it").exists()


def test_model_runs_plugin_parts_without_changing_them(provider: ProviderServer, plugin: Path) -> None:
    commit(plugin, {"scripts/sub/count.sh": "#!/bin/sh\necho counted\n"})
    run_wolo("plugin", "add", str(plugin))
    root = next(find_places().data.glob("plugins/store/acme-*"))
    provider.script(
        call("shell", {"command": f"cd {root} && ls {root}/ && sh {root}/scripts/sub/count.sh"}),
        call("shell", {"command": f"cat {root}/scripts/../../../installed.json"}),
        call("write", {"path": f"{root}/notes.md", "content": "x"}),
        call("shell", {"command": "wolo plugin allow acme"}),
        text("Done."),
    )
    run_wolo("-p", "go", *provider.flags)
    ran, index, written, allowed = provider.requests[-1].results
    assert "counted" in ran
    assert "notes.md" in ran
    assert "names wolo's own files" in index
    assert "belongs to wolo itself" in written
    assert "which only the user may do" in allowed


# Marketplaces


@pytest.fixture
def market(tmp_path: Path, plugin: Path) -> Path:
    entries = [
        {"name": "fmt", "source": "./plugins/fmt", "description": "Formats code", "keywords": ["style"]},
        {"name": "inner", "source": "inner", "version": "2.0"},
        {"name": "acme", "source": {"source": "url", "url": plugin.as_uri()}, "description": "From elsewhere"},
        {"name": "sub", "source": {"source": "git-subdir", "url": plugin.as_uri(), "path": "skills/deploy"}},
        {"name": "office", "source": "./", "strict": False, "skills": ["./plugins/fmt/skills/fmt"]},
        {"name": "gone", "source": {"source": "svn", "url": "https://host.example/gone"}},
        {"source": "./nameless"},
    ]
    content = {
        ".claude-plugin/marketplace.json": {"name": "acme-market", "metadata": {"pluginRoot": "./plugins"}, "plugins": entries},
        "plugins/fmt/skills/fmt/SKILL.md": skill_text("fmt"),
        "plugins/inner/commands/in.md": "In.",
    }
    return repository(tmp_path / "market", content)


def test_a_marketplace_is_added_searched_and_installed_from(market: Path) -> None:
    assert "acme-market" in run_wolo("plugin", "marketplace", "add", str(market)).stdout
    assert [row["name"] for row in run_wolo("plugin", "marketplace", "list", "--json").json] == ["acme-market"]
    for words, names in (("format", ["fmt"]), ("STYLE code", ["fmt"]), ("nothing", []), ("sub", ["sub"])):
        found = run_wolo("plugin", "search", *words.split(), "--json").json
        assert [row["name"] for row in found] == names, words
    for name in ("fmt", "inner@acme-market", "acme", "sub"):
        assert run_wolo("plugin", "add", name).exit_code == 0, name
    assert set(listed()) == {"fmt", "inner", "acme", "sub"}
    assert listed()["inner"]["marketplace"] == "acme-market"
    skills = {row["name"] for row in run_wolo("skills", "list", "--json").json}
    assert skills == {"fmt:fmt", "acme:deploy", "sub:deploy"}
    last = commit(market, {"plugins/inner/commands/more.md": "More."})
    run_wolo("plugin", "update", "inner")
    assert listed()["inner"]["commit"] == last
    refused = run_wolo("plugin", "add", "gone")
    assert (refused.exit_code, "comes from svn" in refused.stderr) == (2, True)
    run_wolo("plugin", "marketplace", "remove", "acme-market")
    assert run_wolo("plugin", "search", "--json").json == []
    assert "inner" in listed()


def test_marketplace_entry_is_the_whole_plugin(market: Path) -> None:
    run_wolo("plugin", "marketplace", "add", str(market))
    run_wolo("plugin", "add", "office")
    assert [row["name"] for row in run_wolo("skills", "list", "--json").json] == ["office:fmt"]


def test_repository_without_plugin_list_is_no_marketplace(plugin: Path) -> None:
    refused = run_wolo("plugin", "marketplace", "add", str(plugin))
    assert (refused.exit_code, "This is no marketplace" in refused.stderr) == (2, True)


EXTENSION = """
from wolo.extension import Extension

def extend(ext: Extension) -> None:
    @ext.tool()
    def greet() -> str:
        "Greet."
        return "hello from the package"
"""


def build_wheel(folder: Path, extension: str = EXTENSION) -> None:
    metadata = "Metadata-Version: 2.1\nName: greeting-wolo\nVersion: 1.0\nSummary: Greets.\nRequires-Dist: rich\n\nText"
    with ZipFile(folder / "greeting_wolo-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("greeting_wolo.py", extension)
        wheel.writestr("greeting_wolo-1.0.dist-info/METADATA", metadata)
        wheel.writestr("greeting_wolo-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr("greeting_wolo-1.0.dist-info/entry_points.txt", "[wolo.extensions]\ngreeting = greeting_wolo:extend\n")
        wheel.writestr("greeting_wolo-1.0.dist-info/RECORD", "")


def test_extension_from_an_index_runs_once_allowed(
    provider: ProviderServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    build_wheel(tmp_path)
    missing = run_wolo("plugin", "add", "pypi:none-such")
    assert (missing.exit_code, "cannot be fetched" in missing.stderr) == (2, True)
    assert run_wolo("plugin", "add", "pypi:../x").exit_code == 2
    added = run_wolo("plugin", "add", "pypi:greeting-wolo", "--yes")
    assert added.exit_code == 0, added.stderr
    for line in ("greeting-wolo 1.0, from pypi:greeting-wolo", "extensions   greeting=greeting_wolo:extend", "rich"):
        assert line in added.stdout
    provider.otherwise = text("Done.")
    ran = run_wolo("-p", *provider.flags, "go")
    assert "`wolo plugin allow greeting-wolo` shows and allows what it runs" in " ".join(ran.stderr.split())
    assert "greet" not in tools(provider)
    assert run_wolo("plugin", "allow", "greeting-wolo").exit_code == 0
    provider.script(call("greet", {}), text("Done."))
    assert run_wolo("-p", *provider.flags, "--yolo", "go").exit_code == 0
    assert provider.requests[-1].results == ["hello from the package"]
    assert [row["standing"] for row in run_wolo("extensions", "list", "--json").json] == ["allowed"]
    code = next(find_places().data.glob("plugins/store/greeting-wolo-*/greeting_wolo.py"))
    code.write_text(EXTENSION.replace("hello", "changed"))
    assert run_wolo("-p", *provider.flags, "--yolo", "go").exit_code == 0
    assert "greet" not in tools(provider)
