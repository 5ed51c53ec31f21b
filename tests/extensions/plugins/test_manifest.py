"""Layouts of plugins as they are published: with and without a manifest, with paths, inline tables and other agents' files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.repositories import files, skill_text
from wolo.errors import ExtensionError
from wolo.extensions.plugins.manifest import Contents, PluginComponent, read_plugin

HOOKS = {"Stop": [{"hooks": [{"type": "command", "command": "true"}]}]}
MANIFEST = ".claude-plugin/plugin.json"


def read(content: dict[str, Any], entry: dict[str, Any] | None = None) -> Contents:
    return read_plugin(files(Path("tools"), content), "tools", entry)


def servers(contents: Contents) -> dict[str, Any]:
    return json.loads(contents.servers)["mcpServers"] if contents.servers else {}


def test_default_folders_need_no_manifest() -> None:
    contents = read(
        {
            "skills/pdf/SKILL.md": skill_text("pdf"),
            "commands/fix.md": "Fix it.",
            "agents/reviewer.md": "Review.",
            "hooks/hooks.json": {"hooks": HOOKS, "description": "Stops."},
            ".mcp.json": {"mcpServers": {"echo": {"command": "echo"}}},
            "README.md": "Not a part.",
        }
    )
    assert contents.name == "tools"
    assert (contents.skills, contents.commands, contents.agents) == tuple(
        (PluginComponent(each),) for each in ("skills", "commands", "agents")
    )
    assert [json.loads(each) for each in contents.hooks] == [{"hooks": HOOKS}]
    assert servers(contents) == {"echo": {"command": "echo"}}


def test_a_manifest_names_the_plugin_and_its_parts() -> None:
    contents = read(
        {
            MANIFEST: {
                "name": "acme",
                "version": "1.2.0",
                "description": "Tools\nof all kinds.",
                "author": {"name": "Acme"},
                "commands": ["./custom/one.md", "./more/"],
                "agents": "./custom/agents/",
                "skills": "./extra-skills/",
                "hooks": "./config/hooks.json",
                "mcpServers": "./config/mcp.json",
            },
            "commands/two.md": "Two.",
            "custom/one.md": "One.",
            "more/three.md": "Three.",
            "custom/agents/a.md": "A.",
            "skills/pdf/SKILL.md": skill_text("pdf"),
            "extra-skills/doc/SKILL.md": skill_text("doc"),
            "config/hooks.json": {"hooks": HOOKS},
            "config/mcp.json": {"echo": {"command": "echo"}},
        }
    )
    assert (contents.name, contents.version) == ("acme", "1.2.0")
    assert "\n" not in contents.description
    assert contents.commands == (PluginComponent("commands"), PluginComponent("custom", ("one.md",)), PluginComponent("more"))
    assert contents.agents == (PluginComponent("custom/agents"),)
    assert contents.skills == (PluginComponent("skills"), PluginComponent("extra-skills"))
    assert len(contents.hooks) == 1
    assert servers(contents) == {"echo": {"command": "echo"}}  # without the word around it


def test_path_inside_a_default_folder_selects_from_it() -> None:
    contents = read(
        {
            MANIFEST: {"name": "acme", "skills": ["./skills/pdf"], "commands": ["${CLAUDE_PLUGIN_ROOT}/commands/fix.md"]},
            "skills/pdf/SKILL.md": skill_text("pdf"),
            "skills/other/SKILL.md": skill_text("other"),
            "commands/fix.md": "Fix.",
            "commands/other.md": "Other.",
        }
    )
    assert contents.skills == (PluginComponent("skills", ("pdf",)),)
    assert contents.commands == (PluginComponent("commands", ("fix.md",)),)


def test_hooks_and_servers_may_be_in_the_manifest() -> None:
    inline = {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "guard"}]}]}
    contents = read(
        {
            MANIFEST: {"name": "acme", "hooks": [inline, "./hooks/hooks.json"], "mcpServers": {"a": {"command": "a"}}},
            "hooks/hooks.json": {"hooks": HOOKS},
            ".mcp.json": {"mcpServers": {"b": {"url": "https://host.example/mcp"}}},
        }
    )
    assert [json.loads(each)["hooks"] for each in contents.hooks] == [inline, HOOKS]
    assert set(servers(contents)) == {"a", "b"}


@pytest.mark.parametrize("hooks", [[{"matcher": "Bash", "hooks": []}], {"hooks": [1]}, [[1]], 5])
def test_hook_list_is_named_as_unused(hooks: object) -> None:
    contents = read({MANIFEST: {"name": "acme", "hooks": hooks}, "skills/a/SKILL.md": skill_text("a")})
    assert [*contents.hooks] == [] or json.loads(contents.hooks[0]) == {"hooks": hooks[0]}  # type: ignore[index]  # a list
    assert "hooks that are no table of events" in contents.unused


def test_marketplace_lists_parts_of_plugins_sharing_a_folder() -> None:
    content = {f"skills/{name}/SKILL.md": skill_text(name) for name in ("pdf", "word")}
    contents = read(content, {"name": "office", "strict": False, "skills": ["./skills/pdf"], "source": "./"})
    assert (contents.name, contents.skills) == ("office", (PluginComponent("skills", ("pdf",)),))


def test_a_plugin_may_be_a_single_skill() -> None:
    assert read({"SKILL.md": skill_text("pdf")}).skills == (PluginComponent(".", ("SKILL.md",)),)
    listed = {"name": "acme", "skills": ["./"]}
    assert read({MANIFEST: listed, "SKILL.md": skill_text("pdf")}).skills == (PluginComponent(".", ("SKILL.md",)),)


def test_an_extension_of_gemini_cli_is_a_plugin() -> None:
    contents = read(
        {
            "gemini-extension.json": {
                "name": "acme",
                "version": "1.0.0",
                "mcpServers": {"echo": {"command": "node", "args": ["${extensionPath}/run.js"]}},
                "contextFileName": ["GEMINI.md", "${extensionPath}${/}docs/more.md", "missing.md"],
                "excludeTools": ["run_shell_command(rm -rf)"],
            },
            "GEMINI.md": "Say ahoy.",
            "docs/more.md": "More.",
            "commands/fix.toml": "prompt = 'Fix {{args}}'",
        }
    )
    assert (contents.context, contents.denied) == (("GEMINI.md", "docs/more.md"), ("run_shell_command(rm -rf)",))
    assert (contents.name, contents.commands) == ("acme", (PluginComponent("commands"),))
    assert set(servers(contents)) == {"echo"}
    assert contents.unused == ()


@pytest.mark.parametrize("manifest", [{"contextFileName": "../x"}, {"excludeTools": "shell"}, {"excludeTools": [1]}])
def test_context_outside_and_odd_denials_are_errors(manifest: dict[str, Any]) -> None:
    with pytest.raises(ExtensionError):
        read({"gemini-extension.json": {"name": "a", **manifest}, "commands/x.md": "x"})


def test_pattern_selects_commands() -> None:
    manifest = {"name": "a", "commands": ["./cmds/*.md"], "agents": "./roles/[a-b].md"}
    contents = read({MANIFEST: manifest, **{f"cmds/{name}": "x" for name in ("b.md", "a.md", "c.txt")}, "roles/a.md": "x"})
    assert contents.commands == (PluginComponent("cmds", ("a.md",)), PluginComponent("cmds", ("b.md",)))
    assert contents.agents == (PluginComponent("roles", ("a.md",)),)
    with pytest.raises(ExtensionError, match="does not exist"):
        read({MANIFEST: {"name": "b", "commands": "./none/*.md"}})


def test_output_styles_come_from_folder_and_manifest() -> None:
    contents = read({MANIFEST: {"name": "a", "outputStyles": "./tone/"}, "tone/x.md": "X.", "output-styles/y.md": "Y."})
    assert contents.output_styles == (PluginComponent("output-styles"), PluginComponent("tone"))
    assert (contents.is_empty, contents.runs_something, contents.unused) == (False, False, ())


def test_language_servers_come_from_file_and_manifest() -> None:
    mapped = {"command": "./bin/x", "extensionToLanguage": {".X": "x"}, "settings": {"a": 1}, "maxRestarts": 3}
    wrapped = {"lspServers": {"go": {"command": "gopls", "args": ["serve"], "fileExtensions": {".go": "go"}}}}
    contents = read({MANIFEST: {"name": "a", "lspServers": [{"x": mapped}, "./lsp/servers.json"]}, "lsp/servers.json": wrapped})
    first, second = json.loads(contents.language_servers)
    assert (first["command"], first["extensions"], first["settings"]) == (["${CLAUDE_PLUGIN_ROOT}/bin/x"], [".x"], {"a": 1})
    assert (second["name"], second["command"], second["languages"]) == ("go", ["gopls", "serve"], {".go": "go"})
    assert contents.runs_something
    assert contents.unused == ("maxRestarts of the language server x",)


@pytest.mark.parametrize(
    "server",
    [
        {"command": "x"},
        {"command": ["x"], "extensionToLanguage": {".x": "x"}},
        {"command": "x", "args": "y", "extensionToLanguage": {".x": "x"}},
        {"command": "x", "env": ["A"], "extensionToLanguage": {".x": "x"}},
        {"command": "x", "extensionToLanguage": [".x"]},
        {"command": "x", "transport": "socket", "extensionToLanguage": {".x": "x"}},
    ],
)
def test_unusable_language_server_is_named(server: dict[str, Any]) -> None:
    contents = read({MANIFEST: {"name": "b"}, ".lsp.json": {"x": server}})
    assert (contents.language_servers, contents.is_empty) == ("", True)
    assert contents.unused[0].startswith("the language server x (it needs `command` and `extensionToLanguage`")


def test_parts_that_are_not_used_are_named() -> None:
    contents = read({MANIFEST: {"name": "a", "themes": "./.app.json"}, "monitors/x.json": {}, ".app.json": {}})
    assert contents.is_empty
    assert contents.unused == ("themes", "monitors", ".app.json")


def test_policies_of_a_gemini_extension_are_named() -> None:
    contents = read({"gemini-extension.json": {"name": "a"}, "policies/a.toml": {}})
    assert contents.unused == ("policies (calls that they forbid are NOT denied)",)


@pytest.mark.parametrize(
    ("manifest", "said"),
    [
        ({"name": "a", "commands": "../other"}, "which is outside of it"),
        ({"name": "a", "hooks": "/etc/hooks.json"}, "which is outside of it"),
        ({"name": "a", "agents": ["./gone"]}, "names gone for its agents, which does not exist"),
        ({"name": "a", "mcpServers": "./gone.json"}, "names gone.json, which does not exist"),
        ({"name": "a", "skills": [1]}, "must be a path"),
        ({"name": "!!"}, "no usable name"),
        ([], "not a JSON object"),
        ("{", "cannot be read"),
    ],
)
def test_a_broken_manifest_is_an_error(manifest: Any, said: str) -> None:
    with pytest.raises(ExtensionError, match=said):
        read({MANIFEST: manifest})


def test_a_name_is_made_usable() -> None:
    assert read({MANIFEST: {"name": "Acme Tools!"}}).name == "acme-tools"
