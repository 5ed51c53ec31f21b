"""Forms of public plugins, skills, commands, agents and hooks, rewritten in short (`README.md` names their sources)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.fakes.command import run_wolo
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import call, text
from tests.fakes.repositories import repository

SCRIPT = '#!/bin/sh\ncat > /dev/null\ntouch "$CLAUDE_PROJECT_DIR/$(basename "$0")-ran"\n'
HOOKS = {
    "description": "Checks what is run.",
    "hooks": {
        "PreToolUse": [
            {
                "matcher": "Bash",
                "hooks": [{"type": "command", "command": '"${CLAUDE_PLUGIN_ROOT}"/scripts/check.sh', "timeout": 30}],
            }
        ],
        "UserPromptSubmit": [
            {"hooks": [{"type": "command", "command": 'sh "${CLAUDE_PLUGIN_ROOT}/scripts/prompt.sh"', "timeout": 5000}]}
        ],
        "ConfigChange": [{"hooks": [{"type": "command", "command": "sh ${CLAUDE_PLUGIN_ROOT}/scripts/check.sh", "timeout": 10}]}],
    },
}
JAPANESE = "請求書を作る。【請求書】月額: 消費税10%。「作成」で起動。"
MARKETPLACE: dict[str, Any] = {
    "$schema": "https://anthropic.com/claude-code/marketplace.schema.json",
    "name": "media",
    "owner": {"name": "Media", "email": "media@example.org"},
    "metadata": {"description": "Skills for media.", "version": "1.0.9", "pluginRoot": "."},
    "plugins": [
        {"name": "audio", "description": "Write prompts for audio.", "version": "1.0.9", "source": "./skills/guides/audio"},
        {
            "name": "git-tools",
            "description": "提交与分支",
            "source": "./plugins/git",
            "keywords": ["提交"],
            "category": "development-tools",
        },
    ],
}


def test_hook_plugin_is_named_then_runs_after_consent(provider: ProviderServer, tmp_path: Path) -> None:
    folder = repository(
        tmp_path / "guard",
        {
            ".claude-plugin/plugin.json": {"name": "guard", "author": {"name": "Acme"}},
            "hooks/hooks.json": HOOKS,
            "scripts/check.sh": SCRIPT,
            "scripts/prompt.sh": SCRIPT,
        },
    )
    added = run_wolo("plugin", "add", str(folder))
    assert "ConfigChange, PreToolUse, UserPromptSubmit" in added.stdout
    assert run_wolo("plugin", "allow", "guard").exit_code == 0
    provider.script(text("Done."))
    assert run_wolo("-p", *provider.flags, "go").exit_code == 0
    assert Path("prompt.sh-ran").exists()


def test_marketplace_has_single_skills_and_plugins_without_manifest(tmp_path: Path) -> None:
    folder = repository(
        tmp_path / "media",
        {
            ".claude-plugin/marketplace.json": MARKETPLACE,
            "skills/guides/audio/SKILL.md": "---\nname: audio\ndescription: Write prompts for audio.\n---\nWrite them.",
            "plugins/git/commands/push.md": "Push $ARGUMENTS.",
        },
    )
    assert run_wolo("plugin", "marketplace", "add", str(folder)).exit_code == 0
    assert {row["name"] for row in run_wolo("plugin", "search", "提交", "--json").json} == {"git-tools"}
    for name in ("audio", "git-tools"):
        assert run_wolo("plugin", "add", name).exit_code == 0
    assert "audio" in run_wolo("skills", "list").stdout


def test_an_extension_of_gemini_has_servers_and_settings(tmp_path: Path) -> None:
    manifest = {
        "name": "memory",
        "version": "1.2.0",
        "contextFileName": "GEMINI.md",
        "permissions": {"env": ["MEMORY_KEY"]},
        "settings": [{"name": "Key", "description": "The key.", "envVar": "MEMORY_KEY"}],
        "mcpServers": {"memory": {"command": "memory-server", "args": ["mcp"]}},
    }
    folder = repository(tmp_path / "memory", {"gemini-extension.json": manifest, "GEMINI.md": "Remember."})
    added = run_wolo("plugin", "add", str(folder))
    assert "MCP servers  memory" in added.stdout
    assert "contextFileName" not in added.stdout + added.stderr


def test_extension_of_gemini_instructs_and_denies(provider: ProviderServer, tmp_path: Path) -> None:
    manifest = {"name": "careful", "version": "1.0.0", "excludeTools": ["run_shell_command(touch)"]}
    folder = repository(tmp_path / "careful", {"gemini-extension.json": manifest, "GEMINI.md": "Say ahoy."})
    added = run_wolo("plugin", "add", str(folder))
    assert "  instructions GEMINI.md\n  denies       run_shell_command(touch)\n" in added.stdout
    provider.script(call("shell", {"command": "touch made"}), text("Done."))
    done = run_wolo("-p", *provider.flags, "--mode", "auto", "go")
    assert done.stdout == "Done.\n"
    assert "# Instructions from GEMINI.md of the plugin careful\n\nSay ahoy." in provider.requests[0].messages[0]["content"]
    assert not Path("made").exists()
    assert run_wolo("plugin", "remove", "careful").exit_code == 0
    provider.forget_prefix()
    provider.script(call("shell", {"command": "touch made"}), text("Done."))
    run_wolo("-p", *provider.flags, "--mode", "auto", "go")
    assert Path("made").exists()


def test_marketplace_of_copilot_is_read(tmp_path: Path) -> None:
    content = {
        ".github/plugin/marketplace.json": {**MARKETPLACE, "plugins": [{"name": "git-tools", "source": "./plugins/git"}]},
        "plugins/git/.github/plugin/plugin.json": {"name": "git-tools", "commands": "commands/*.md"},
        "plugins/git/commands/push.md": "Push $ARGUMENTS.",
    }
    folder = repository(tmp_path / "media", content)
    assert run_wolo("plugin", "marketplace", "add", str(folder)).exit_code == 0
    assert "git-tools" in run_wolo("plugin", "add", "git-tools").stdout


def test_agents_and_commands_of_a_trusted_project(provider: ProviderServer) -> None:
    files = {
        ".claude/agents/code-reviewer.md": (
            "---\nname: code-reviewer\ndescription: Reviews changes across correctness, readability, and API design.\n"
            "model: opus\neffort: max\ntools: Read, Grep, Glob, Bash\nmaxTurns: 15\n---\n# Reviewer\n\nStart with `git diff`.\n"
        ),
        ".opencode/command/ship.md": "---\ndescription: Commit\nagent: build\nsubtask: false\n---\nCommit. Hint: $ARGUMENTS",
        ".opencode/command/group.md": (
            "---\ndescription: Commits - one or several\nagpm:\n  templating: true\ndependencies:\n  snippets:\n"
            "      - name: base\n        install: false\n---\nGroup $ARGUMENTS"
        ),
        ".claude/skills/billing/SKILL.md": f"---\nname: billing\ndescription: {JAPANESE}\n---\n# Billing",
    }
    for name, content in files.items():
        path = Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    provider.script(text("Done."))
    assert run_wolo("-p", "--trust", *provider.flags, "/ship fix: it").exit_code == 0
    asked = str(provider.requests[0].json)
    assert "Commit. Hint: fix: it" in asked
    assert "code-reviewer: Reviews changes" in asked
    assert JAPANESE in asked
    provider.forget_prefix()
    provider.script(text("Done."))
    assert run_wolo("-p", "--trust", *provider.flags, "/group --multi=3").exit_code == 0
    assert "Group --multi=3" in str(provider.requests[1].json)
