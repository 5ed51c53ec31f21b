"""`wolo import-config`: what is taken over from each agent, what is not, and that nothing of the user's is lost."""

from __future__ import annotations

import json
import stat
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.command import run_wolo
from wolo.config.imports.agents import AGENTS, findings
from wolo.config.imports.plan import ImportPlan, make_plan
from wolo.config.layers import check_user_file
from wolo.config.schema import Config
from wolo.conversation.resources.user_files import UserFiles
from wolo.places import find_home, find_places
from wolo.workspace.root import find_site


def put(path: Path, text: str | dict[str, Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text if isinstance(text, str) else json.dumps(text))
    return path


def home(name: str, text: str | dict[str, Any]) -> Path:
    return put(find_home() / name, text)


def planned(*names: str) -> ImportPlan:
    found = [each for agent in AGENTS if not names or agent.name in names for each in findings(agent, Path.cwd())]
    return make_plan(find_places(), Path.cwd(), found)


def lines(*names: str) -> list[str]:
    return [str(step) for step in planned(*names).steps]


def settings() -> dict[str, Any]:
    path = find_places().config / "config.toml"
    check_user_file(path.read_bytes(), path)
    return tomllib.loads(path.read_text())


CLAUDE = {
    "model": "claude-sonnet-4-5",
    "permissions": {
        "allow": [
            "Bash(npm run test:*)",
            "Bash(git diff *)",
            "Read(~/.zshrc)",
            "mcp__github__get_issue",
            "Bash",
            "Bash(npm * build)",
        ],
        "deny": ["Bash(curl:*)", "Read(./.env)", "Write(*.lock)", "Bash(rm*)", "Frob(x)", "WebFetch"],
        "ask": ["Bash(git push:*)"],
        "defaultMode": "acceptEdits",
    },
    "env": {"TOKEN": "sk-secret-value"},
    "hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "/usr/bin/check", "timeout": 5}]}]},
    "statusLine": {"type": "command"},
}


def test_claude_code() -> None:
    home(".claude/settings.json", CLAUDE)
    home(".claude.json", {"mcpServers": {"fs": {"command": "npx", "args": ["fs"]}, "bad": {"type": "frob"}}, "numStartups": 3})
    found = lines("claude")
    for line in (
        *('+ model = "anthropic/claude-sonnet-4-5"', '+ mode = "edit"', "+ MCP server fs", "+ hook PreToolUse `/usr/bin/check`"),
        *("+ allow shell:npm run test *", "+ allow shell:git diff *", "+ allow read:~/.zshrc", "+ allow mcp:github/get_issue"),
        *("+ deny shell:curl *", "+ deny read:.env", "+ deny write:**/*.lock", "+ deny shell:rm* *", "+ deny fetch:*"),
        "+ ask shell:git push *",
    ):
        assert line in found, line
    refused = "\n".join(line for line in found if line.startswith("-"))
    for name in ("allow Bash: ", "npm * build", "Frob(x)", "env TOKEN", "statusLine", "MCP server bad"):
        assert name in refused
    assert "NOT denied" in refused
    assert "sk-secret" not in "\n".join(found)


def test_codex() -> None:
    home(
        ".codex/config.toml",
        'model = "gpt-5.2-codex"\nmodel_reasoning_effort = "high"\napproval_policy = "untrusted"\n'
        'sandbox_mode = "workspace-write"\n'
        '[mcp_servers.remote]\nurl = "https://x.example.com/mcp"\nbearer_token_env_var = "TOK"\n[tui]\nnotifications = true\n',
    )
    home(
        ".codex/rules/default.rules",
        '# from the terminal\nprefix_rule(pattern=["gh", "pr", ["view", "list"]], decision="allow", justification="x")\n'
        'prefix_rule(pattern=["rm", "-rf"], decision="forbidden")\nprefix_rule(pattern=["git", "push"], decision="prompt")\n',
    )
    assert lines("codex") == [
        *('+ model = "openai/gpt-5.2-codex"', '+ thinking = "high"', '+ mode = "ask"', "+ MCP server remote"),
        *("- tui: no equivalent in wolo", "+ allow shell:gh pr view *", "+ allow shell:gh pr list *"),
        *("+ deny shell:rm -rf *", "+ ask shell:git push *"),
    ]
    planned("codex").apply(find_places())
    assert settings()["mcp_servers"]["remote"]["headers"] == {"Authorization": "Bearer ${TOK}"}


def test_opencode_gemini_kimi_and_pi() -> None:
    home(
        ".config/opencode/opencode.jsonc",
        '{ // mine\n "model": "anthropic/claude-x", "permission": {"edit": "ask",'
        ' "bash": {"*": "ask", "ls *": "allow", "sudo *": "deny"}},'
        ' "mcp": {"local": {"type": "local", "command": ["bun", "s"], "environment": {"K": "{env:KK}"}},'
        ' "file": {"type": "remote", "url": "https://a.example/", "headers": {"X": "{file:~/.k}"}}},'
        ' "instructions": ["A.md"],\n}',
    )
    home(
        ".gemini/settings.json",
        {
            "general": {"defaultApprovalMode": "auto_edit"},
            "model": {"maxSessionTurns": 50},
            "tools": {"allowed": ["run_shell_command(git status)", "write_file"], "exclude": ["run_shell_command(rm)"]},
            "mcpServers": {"g": {"httpUrl": "https://g.example/mcp", "timeout": 5000, "trust": True, "excludeTools": ["x"]}},
        },
    )
    home(
        ".kimi/config.toml",
        'default_model = "k"\ndefault_yolo = true\n[providers.p]\nbase_url = "https://api.moonshot.ai/v1"\n'
        'api_key = "sk-secret"\n'
        '[models.k]\nprovider = "p"\nmodel = "kimi-k2"\n[[permission.rules]]\ndecision = "deny"\npattern = "Bash(rm -rf*)"\n'
        '[[hooks]]\nevent = "PreToolUse"\nmatcher = "Bash"\ncommand = "chk"\ntimeout = 5\n',
    )
    home(
        ".pi/agent/settings.json", {"defaultProvider": "anthropic", "defaultModel": "claude-y", "defaultThinkingLevel": "medium"}
    )
    found = lines()
    for line in (
        *('+ model = "anthropic/claude-x"', "+ allow shell:ls *", "+ deny shell:sudo *", "+ MCP server local", "+ MCP server g"),
        *('+ mode = "ask"', "- mode edit: another agent asks more: ask", "+ limits.max_turns = 50"),
        *("+ allow shell:git status *", "+ deny shell:rm *"),
        *("+ deny shell:rm -rf* *", "+ hook PreToolUse `chk`", '+ thinking = "medium"'),
    ):
        assert line in found, line
    text = "\n".join(found)
    for words in ("- MCP server file", "- mode yolo", "- trust of MCP server g", "- allow write_file", "API keys of p"):
        assert words in text
    assert "sk-secret" not in text
    assert '~ model = "moonshot/kimi-k2": "anthropic/claude-x" is taken from' in text
    planned().apply(find_places())
    assert settings()["mcp_servers"]["local"]["env"] == {"K": "${KK}"}
    assert settings()["mcp_servers"]["g"]["tool_timeout_s"] == 5


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        (".claude/settings.json", '{"permissions": {"defaultMode": "bypassPermissions"}}', "- mode bypassPermissions"),
        (
            ".codex/config.toml",
            'sandbox_mode = "danger-full-access"\napproval_policy = "never"',
            "- sandbox_mode danger-full-access",
        ),
        (".config/opencode/opencode.json", '{"permission": "allow"}', "- permission = allow"),
        (".gemini/settings.json", '{"general": {"defaultApprovalMode": "yolo"}}', "- mode yolo"),
        (".kimi/config.toml", 'default_permission_mode = "yolo"', "- mode yolo"),
    ],
)
def test_a_bypass_is_not_taken_over(name: str, text: str, line: str) -> None:
    home(name, text)
    (found,) = lines()
    assert found.startswith(line)


OPENCODE, CODEX, GEMINI = ".config/opencode/opencode.json", ".codex/config.toml", ".gemini/settings.json"


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        (OPENCODE, {"permission": {"edit": "ask"}}, ['+ mode = "ask"']),
        (OPENCODE, {"permission": {"bash": "ask"}}, ['+ mode = "ask"']),
        (OPENCODE, {"permission": "ask"}, ['+ mode = "ask"']),
        (OPENCODE, {"permission": {"*": "ask"}}, ['+ mode = "ask"']),
        (OPENCODE, {"permission": {"bash": {"*": "ask", "ls *": "allow"}}}, ['+ mode = "ask"', "+ allow shell:ls *"]),
        (OPENCODE, {"permission": {"bash": {"git push *": "ask"}}}, ["+ ask shell:git push *"]),
        (OPENCODE, {"permission": {"read": "ask", "task": "ask"}}, ["+ ask read:**", "+ ask task:*"]),
        (OPENCODE, {"permission": {"bash": "deny"}}, ["+ deny shell:*"]),
        (OPENCODE, {"permission": {"jira_*": "deny"}}, ["+ deny mcp:jira/*"]),
        (
            OPENCODE,
            {"permission": {"external_directory": "deny"}},
            ["- deny external_directory(*): wolo has no such tool. Calls that it forbids are NOT denied."],
        ),
        (OPENCODE, {"permission": {"codesearch": "allow"}}, ["- allow codesearch *: no equivalent in wolo"]),
        (OPENCODE, {"tools": {"bash": False, "read": True}}, ["+ deny shell:*"]),
        (CODEX, 'approval_policy = "untrusted"', ['+ mode = "ask"']),
        (CODEX, 'approval_policy = "untrusted"\nsandbox_mode = "workspace-write"', ['+ mode = "ask"']),
        (CODEX, 'sandbox_mode = "frob"', ['+ mode = "ask": wolo has no mode frob']),
        (CODEX, "[approval_policy.granular]\nrules = true", ['+ mode = "ask"']),
        (GEMINI, {"approvalMode": "default"}, ['+ mode = "ask"']),
        (GEMINI, {"general": {"defaultApprovalMode": "frob"}}, ['+ mode = "ask": wolo has no mode frob']),
        (
            GEMINI,
            {"tools": {"core": ["ReadFileTool", "run_shell_command(ls)"]}},
            ["+ ask shell:*", "+ deny write:**", "+ deny fetch:*"],
        ),
        (GEMINI, {"tools": {"confirmationRequired": ["write_file"]}}, ["+ ask write:**"]),
        (GEMINI, {"mcp": {"excluded": ["jira"]}}, ["+ deny mcp:jira/*"]),
        (
            GEMINI,
            {"mcp": {"allowed": []}, "mcpServers": {"j": {"command": "j"}}},
            ["- MCP server j: it is not among the allowed ones"],
        ),
        (".claude/settings.json", {"permissions": {"defaultMode": "dontAsk"}}, ['+ mode = "ask"']),
        (".kimi/config.toml", 'default_permission_mode = "frob"', ['+ mode = "ask": wolo has no mode frob']),
    ],
)
def test_checks_of_other_agents_stay(name: str, text: str | dict[str, Any], expected: list[str]) -> None:
    home(name, text)
    assert lines() == expected


def test_surplus_denials_are_named() -> None:
    words = json.dumps([[*map(str, range(9))], [*map(str, range(9))]])
    home(
        ".codex/rules/x.rules", f'prefix_rule(pattern={words}, decision="forbidden")\nnetwork_rule(host="a.org", decision="deny")'
    )
    found = lines()
    assert len(found) == 2
    assert all("NOT denied" in each for each in found)


def test_of_several_modes_the_strictest_is_taken() -> None:
    home(".codex/config.toml", 'sandbox_mode = "workspace-write"')
    home(".gemini/settings.json", {"general": {"defaultApprovalMode": "auto_edit"}})
    assert lines() == ["- mode auto: another agent asks more: edit", '+ mode = "edit"']


def test_a_broken_file_costs_itself_only() -> None:
    home(".claude/settings.json", "{broken")
    home(".codex/config.toml", "model = ")
    home(".codex/rules/x.rules", "prefix_rule(")
    home(".gemini/settings.json", "[1]")
    home(".kimi/mcp.json", {"mcpServers": {"k": {"command": "k"}}})
    home(".pi/agent/settings.json", {"compaction": 7, "theme": "dark"})
    found = lines()
    assert sum("cannot be read" in line for line in found) == 5
    assert "+ MCP server k" in found


def test_user_files_stay_unchanged_and_repetition_adds_nothing() -> None:
    config = put(find_places().config / "config.toml", '# mine\nmodel = "zai/glm-5.2"\n[mcp_servers.fs]\ncommand = "own"\n')
    config.parent.chmod(0o700)
    home(".claude/settings.json", CLAUDE)
    home(".claude.json", {"mcpServers": {"fs": {"command": "npx"}}})
    plan = planned()
    assert '~ model: yours stays ("zai/glm-5.2"); theirs is "anthropic/claude-sonnet-4-5"' in map(str, plan.steps)
    assert "~ MCP server fs: yours stays" in map(str, plan.steps)
    plan.apply(find_places())
    assert config.read_text().startswith('# mine\nmodel = "zai/glm-5.2"\n')
    assert settings()["mcp_servers"]["fs"] == {"command": "own"}
    assert stat.S_IMODE(config.stat().st_mode) == 0o600
    before = config.read_text()
    again = planned()
    assert again.is_empty
    again.apply(find_places())
    assert config.read_text() == before


def test_project_only_tightens_and_its_servers_await_consent(isolated: Path) -> None:
    put(Path(".claude/settings.json"), {"model": "claude-x", "permissions": {"allow": ["Bash(ls:*)"], "deny": ["Read(.env)"]}})
    put(Path(".gemini/settings.json"), {"mcpServers": {"g": {"command": "x"}}})
    put(Path("opencode.json"), {"permission": {"webfetch": "deny", "bash": "ask"}})
    put(Path(".codex/rules/a.rules"), 'prefix_rule(pattern = ["rm"], decision = "forbidden")')
    plan = planned()
    text = "\n".join(map(str, plan.steps))
    assert "- allow Bash(ls:*): a project cannot allow anything" in text
    assert "= deny read:**/.env: holds where it is, once the folder is trusted" in text
    assert "- model = anthropic/claude-x: a project does not set this for you" in text
    plan.apply(find_places())
    assert tomllib.loads(Path(".wolo/config.toml").read_text()) == {"permissions": {"deny": ["shell:rm *"]}}
    assert "= deny fetch:*: holds where it is, once the folder is trusted" in text
    assert "= mode: holds where it is, once the folder is trusted" in text
    assert "= MCP server g: offered where it is, after your consent" in text
    assert not Path(".wolo/mcp.json").exists()
    assert not (find_places().config / "config.toml").exists()
    Path(".wolo/config.toml").unlink()
    Path(".wolo/config.toml").symlink_to(isolated / "elsewhere")
    linked = planned()
    assert linked.is_empty
    assert any("is or contains a link" in str(step) for step in linked.steps)


def test_instructions_are_imported_unless_read_in_place() -> None:
    home(".claude/CLAUDE.md", "claude")
    assert lines() == ["= instructions: read from ~/.claude/CLAUDE.md"]
    home(".gemini/GEMINI.md", "gemini")
    planned().apply(find_places())
    assert (find_places().config / "AGENTS.md").read_text() == "@~/.claude/CLAUDE.md\n@~/.gemini/GEMINI.md\n"
    assert planned().is_empty


def test_agents_commands_and_providers_become_user_settings() -> None:
    home(".config/opencode/p.txt", "Review it.")
    home(
        ".config/opencode/opencode.json",
        {
            "model": "lab/m1",
            "provider": {
                "lab": {
                    "npm": "@ai-sdk/openai-compatible",
                    "options": {"baseURL": "http://lab.example/v1", "apiKey": "{env:LAB_KEY}"},
                },
                "other": {"npm": "@ai-sdk/frob", "options": {"apiKey": "sk-secret"}},
            },
            "agent": {"rev": {"description": "Reviews", "prompt": "{file:./p.txt}", "tools": {"write": False}}},
            "command": {"t": {"template": "Test $1.", "description": "a: b"}, "../x": {"template": "x"}, "e": {"template": ""}},
        },
    )
    home(
        ".codex/config.toml",
        '[model_providers.corp]\nbase_url = "https://c.example/v1"\nenv_key = "CORP"\nwire_api = "responses"',
    )
    text = "\n".join(lines())
    for words in ("- provider other", "- command ../x: its name", "- command e: it has no template"):
        assert words in text
    planned().apply(find_places())
    assert settings() == {
        "model": "lab/m1",
        "providers": {
            "corp": {"base_url": "https://c.example/v1", "api": "openai-responses", "api_key": "$CORP"},
            "lab": {"base_url": "http://lab.example/v1", "api": "openai-chat", "api_key": "$LAB_KEY"},
        },
    }
    files = UserFiles(Config(), find_site())
    (agent,) = (each for each in files.all_agents().profiles if each.name == "rev")
    assert (agent.description, agent.prompt, "write" in agent.without) == ("Reviews", "Review it.", True)
    assert [(each.name, each.description) for each in files.commands().commands] == [("t", "a: b")]
    assert planned().is_empty


@pytest.mark.parametrize(
    "permission",
    [
        {"bash": {"git *": "allow", "*": "ask"}},
        {"bash": {"git *": "allow"}, "*": "ask"},
        {"bash": {"git *": "allow", "*": "deny"}},
    ],
)
def test_overridden_allow_entry_is_not_allowed(permission: dict[str, Any]) -> None:
    home(".config/opencode/opencode.json", {"permission": permission})
    home(".claude/settings.json", {"permissions": {"allow": ["mcp__*", "mcp__a*__b"]}})
    assert not [line for line in lines() if line.startswith("+ allow")]


def test_part_of_wrong_kind_costs_only_itself() -> None:
    home(".gemini/settings.json", {"mcpServers": [1], "tools": 5, "general": [], "model": {"maxSessionTurns": 9}})
    home(".claude/settings.json", {"model": {"a": 1}, "permissions": {"deny": "x", "ask": {}, "allow": ["Bash(ls)"]}, "env": []})
    found = lines("gemini", "claude")
    assert {"+ limits.max_turns = 9", "+ allow shell:ls"} <= {*found}
    assert not any("cannot be read" in line for line in found)


def test_the_command_shows_first_and_writes_with_yes() -> None:
    home(".codex/config.toml", 'model_reasoning_effort = "high"\n')
    shown = run_wolo("import-config", "--from", "codex")
    assert shown.exit_code == 0, shown.stderr
    assert '  + thinking = "high"' in shown.stdout
    assert "Nothing was written" in shown.stdout
    assert not (find_places().config / "config.toml").exists()
    assert run_wolo("import-config", "--yes").exit_code == 0
    assert settings() == {"thinking": "high"}
    assert "nothing is new" in run_wolo("import-config").stdout
    assert run_wolo("import-config", "--from", "frob").exit_code == 2


LOSES_NOTHING: dict[str, tuple[str, str | dict[str, Any], list[str]]] = {
    "claude": (
        ".claude/settings.json",
        {
            "enabledPlugins": {"fmt@tools": True, "off@tools": False},
            "extraKnownMarketplaces": {"tools": {"source": {"source": "github", "repo": "acme/tools"}}},
            "apiKeyHelper": "x",
            "outputStyle": "Explanatory",
            "statusLine": {},
        },
        [
            "- plugin fmt@tools: `wolo plugin marketplace add acme/tools`, then `wolo plugin add fmt`",
            '- apiKeyHelper: providers.anthropic.api_key = "!COMMAND" does the same',
            "- outputStyle Explanatory: /output-style NAME chooses a style of your files",
            "- statusLine: no equivalent in wolo",
            "= rules: read from ~/.claude/rules",
            "= output-styles: read from ~/.claude/output-styles",
            "- keybindings (~/.claude/keybindings.json): /keys lists wolo's keys; they are fixed",
        ],
    ),
    "codex": (
        ".codex/config.toml",
        'notify = ["x"]\nweb_search = "live"\n[profiles.fast]\nmodel = "a"\n[history]\npersistence = "none"\n',
        [
            "- profile fast: ",
            "- notify: a Stop or Notification hook",
            "- web_search: it needs a search service",
            "- history: no equivalent in wolo",
            "+ hook PreToolUse `./check`",
            "= commands: read from ~/.codex/prompts",
        ],
    ),
    "opencode": (
        ".config/opencode/opencode.json",
        {"default_agent": "plan", "plugin": ["x"], "tools": {"bash": False}, "share": "auto"},
        ['+ agent = "plan"', "- plugins x: they are JavaScript", "+ deny shell:*", "- share: no equivalent in wolo"],
    ),
    "gemini": (
        ".gemini/settings.json",
        {"ui": {}},
        [
            "+ deny shell:rm *",
            "+ ask write:",
            "- policy deny *: wolo has no rule for it. These calls are NOT denied.",
            "- policy deny run_shell_command: wolo cannot compare commandRegex: deny holds for all these calls",
            "- extensions (~/.gemini/extensions): `wolo plugin add FOLDER` installs one",
        ],
    ),
    "pi": (
        ".pi/agent/settings.json",
        {"theme": "dark"},
        ["+ providers.mine = ", "- extensions (~/.pi/agent/extensions): they are TypeScript"],
    ),
}
POLICIES = """
[[rule]]
toolName = "run_shell_command"
commandPrefix = ["rm", "git push"]
decision = "deny"
priority = 100
[[rule]]
toolName = "write_file"
decision = "ask_user"
[[rule]]
toolName = "*"
decision = "deny"
[[rule]]
toolName = "run_shell_command"
commandRegex = "curl.*"
decision = "deny"
"""


@pytest.mark.parametrize("agent", LOSES_NOTHING)
def test_each_place_and_setting_has_a_line(agent: str) -> None:
    name, content, wanted = LOSES_NOTHING[agent]
    home(name, content)
    home(".claude/rules/a.md", "x")
    home(".claude/output-styles/a.md", "x")
    home(".claude/keybindings.json", {})
    home(".codex/hooks.json", {"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "./check"}]}]}})
    home(".codex/prompts/a.md", "x")
    home(".gemini/policies/a.toml", POLICIES)
    home(".gemini/policies/b.toml", "rule = [")
    home(".gemini/extensions/a/gemini-extension.json", {})
    home(".pi/agent/models.json", {"providers": {"mine": {"baseUrl": "http://h/v1", "api": "openai-completions", "apiKey": "K"}}})
    home(".pi/agent/extensions/a.ts", "x")
    shown = lines(agent)
    assert [each for each in wanted if not any(line.startswith(each) for line in shown)] == [], shown


BAD = [
    b"{",
    b"\xff\xfe\0\0",
    b'{"a":' * 60_000,
    b"[]",
    b"/*" * 200_000,
    b'{"hooks": 3, "mcpServers": 3, "permissions": 3, "rule": 3}',
    b"",
]


@pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.name)
@pytest.mark.parametrize("bad", BAD)
def test_bad_settings_cost_themselves_only(agent: Any, bad: bytes) -> None:
    for name in agent.own:
        path = find_home() / name
        path = path / "a.toml" if path.name in ("policies", "rules") else path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(bad)
    home(agent.memory, "Say ahoy.")
    assert any(agent.memory in line for line in lines(agent.name))
