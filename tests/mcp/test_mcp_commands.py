"""`wolo mcp add` and its neighbours: every spelling, where servers are saved, and what is shown of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from wolo.cli.options import parse
from wolo.cli.subcommands import run_subcommand
from wolo.config import layers
from wolo.config.configured_servers import wanted_servers
from wolo.config.consents import save_trust
from wolo.errors import ConfigError, UsageError
from wolo.mcp.server import ConfiguredServer, OAuth, Server
from wolo.places import find_places
from wolo.workspace.root import find_root, find_site

NPX = Server(command="npx", args=("-y", "srv"))
WEB = Server(url="https://h/mcp")


def mcp(*words: str) -> int:
    return run_subcommand([*parse(["mcp", *words]).subcommand])


def servers(**flags: Any) -> dict[str, ConfiguredServer]:
    given = {"trust": str(find_root()), **flags}
    site = find_site()
    found = wanted_servers(layers.load(site, given), site)
    return {each.name: each for each in found}


@pytest.mark.parametrize(
    ("words", "server"),
    [
        ("x -- npx -y srv", NPX),
        ("x npx -y srv", NPX),
        ("-s user x -- npx -y srv", NPX),
        ("x --scope user npx -y srv", NPX),
        ("x npx -y srv -s user", NPX),
        ("-t stdio x -- npx -y srv", NPX),
        ("x npx srv -p 8080 --json", Server(command="npx", args=("srv", "-p", "8080", "--json"))),
        ("x -s user -- npx srv -s local", Server(command="npx", args=("srv", "-s", "local"))),
        ("-e A=1 -e B=2 x -- npx -y srv", Server(command="npx", args=("-y", "srv"), env={"A": "1", "B": "2"})),
        ("x --env A=1 B=2 -- npx -y srv", Server(command="npx", args=("-y", "srv"), env={"A": "1", "B": "2"})),
        ("x docker run -e K=V img", Server(command="docker", args=("run", "-e", "K=V", "img"))),
        ("x https://h/mcp", WEB),
        ("-t http x https://h/mcp", WEB),
        ("--transport http x --scope user https://h/mcp", WEB),
        ("x --url https://h/mcp", WEB),
        ("--url=https://h/mcp x", WEB),
        (
            "x https://h/mcp --client-id me --client-secret --callback-port 80",
            Server(
                url="https://h/mcp",
                oauth=OAuth(client_id="me", client_secret="${MCP_CLIENT_SECRET}", redirect_uri="http://localhost:80/callback"),
            ),
        ),
        ("-t sse x https://h/mcp", Server(url="https://h/mcp", transport="sse")),
        ("-t http x ${BASE}/mcp", Server(url="${BASE}/mcp")),
        ("x --url https://h/mcp --bearer-token-env-var T", Server(url="https://h/mcp", headers={"Authorization": "Bearer ${T}"})),
        ("x https://h/mcp -H X-A:b -H Y:c", Server(url="https://h/mcp", headers={"X-A": "b", "Y": "c"})),
        (
            "x https://h/mcp --client-id me --client-secret ${S} --callback-port 80 --grant client_credentials --oauth-scope a",
            Server(
                url="https://h/mcp",
                oauth=OAuth(
                    client_id="me",
                    client_secret="${S}",
                    redirect_uri="http://localhost:80/callback",
                    grant="client_credentials",
                    scopes=("a",),
                ),
            ),
        ),
    ],
)
def test_every_spelling_of_add(words: str, server: Server) -> None:
    assert mcp("add", *words.split()) == 0
    assert servers()["x"].server == server
    assert '= ""' not in (find_places().config / "config.toml").read_text()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("x", "What is the server"),
        ("a/b npx", "only letters"),
        ("x https://h --scope team", "There is no scope team"),
        ("x -t pigeon https://h", "There is no transport pigeon"),
        ("x https://h -e A=1", "A URL takes headers"),
        ("-H A:1 -t stdio x npx", "A program takes variables"),
        ("-t stdio x https://h/mcp", "An address does not speak stdio"),
        ("-e A x npx", "A is not NAME=VALUE"),
        ("--grant magic x https://h", "There is no grant magic"),
        ("--client-secret s x https://h", "needs oauth.client_id"),
        ("--client-id i --client-secret s -s project x https://h", "would be in .mcp.json"),
        ("--client-metadata-url http://h/c x https://h", "must begin with https://"),
    ],
)
def test_a_line_that_makes_no_server_says_why(words: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        mcp("add", *words.split())
    assert servers() == {}


@pytest.mark.parametrize(
    ("entry", "server"),
    [
        ({"command": "npx", "args": ["-y", "srv"]}, NPX),
        ({"type": "local", "command": ["npx", "-y", "srv"]}, Server(command="npx", args=("-y", "srv"), transport="stdio")),
        ({"mcpServers": {"other": {"command": "npx", "args": ["-y", "srv"]}}}, NPX),
        ({"x": {"command": "npx", "args": ["-y", "srv"]}}, NPX),
        ({"type": "streamableHttp", "serverUrl": "https://h/mcp"}, Server(url="https://h/mcp", transport="http")),
        ({"httpUrl": "https://h/mcp", "timeout": 5000}, Server(url="https://h/mcp", tool_timeout_s=5)),
        ({"url": "https://h/mcp", "headers": {"A": "{env:B}"}}, Server(url="https://h/mcp", headers={"A": "${B}"})),
        (
            {"url": "https://h/mcp", "oauth": {"clientId": "i", "callbackPort": 9, "scope": "a b"}},
            Server(
                url="https://h/mcp",
                oauth=OAuth(client_id="i", redirect_uri="http://localhost:9/callback", scopes=("a", "b")),
            ),
        ),
    ],
)
def test_json_of_every_program_is_added(entry: Any, server: Server) -> None:
    assert mcp("add-json", "x", json.dumps(entry)) == 0
    assert servers()["x"].server == server


@pytest.mark.parametrize("text", ["{", "[]", '{"a": 1}', '{"command": 3}', '{"url": "https://h", "command": "x"}'])
def test_json_without_server_is_a_usage_error(text: str) -> None:
    with pytest.raises(UsageError):
        mcp("add-json", "x", text)
    assert servers() == {}


def test_scopes_are_kept_apart(capfd: pytest.CaptureFixture[str]) -> None:
    for scope in ("user", "local", "project"):
        mcp("add", "-s", scope, "x", "--", "run", scope)
        mcp("add", "-s", scope, f"of-{scope}", "--", "run", scope)
    assert json.loads(Path(".mcp.json").read_text())["mcpServers"]["x"]["args"] == ["project"]
    assert {name: each.scope for name, each in servers().items()} == {
        "x": "local",
        "of-user": "user",
        "of-local": "local",
        "of-project": "project",
    }
    assert servers()["of-project"].is_allowed, "what the user wrote needs no second consent"
    assert not (Path.cwd() / ".wolo").exists()
    with pytest.raises(UsageError, match="several scopes: local, user, project"):
        mcp("remove", "x")
    mcp("remove", "x", "-s", "local")
    assert servers()["x"].server.args == ("user",)
    mcp("remove", "x", "-s", "user")
    assert servers()["x"].server.args == ("project",)
    mcp("remove", "x")
    assert "x" not in servers()


def test_another_project_has_not_the_local_ones(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    mcp("add", "-s", "local", "x", "--", "run")
    monkeypatch.chdir(tmp_path)
    assert servers() == {}


def test_the_rest_of_a_shared_file_is_kept() -> None:
    Path(".mcp.json").write_text('{"$schema": "s", "mcpServers": {"a": {"command": "é", "odd": 1}}}')
    Path(".mcp.json").chmod(0o640)
    mcp("add", "-s", "project", "b", "run")
    found = json.loads(Path(".mcp.json").read_text())
    assert found["$schema"] == "s"
    assert found["mcpServers"]["a"] == {"command": "é", "odd": 1}
    assert Path(".mcp.json").stat().st_mode & 0o777 == 0o640
    Path(".mcp.json").write_text("{oops")
    with pytest.raises(ConfigError, match="is no JSON, so it is not changed"):
        mcp("add", "-s", "project", "c", "run")
    assert Path(".mcp.json").read_text() == "{oops"


@pytest.mark.parametrize("scope", ["user", "local", "project"])
def test_a_server_is_switched_off_and_on(scope: str) -> None:
    mcp("add", "-s", scope, "x", "run")
    before = Path(".mcp.json").read_text() if scope == "project" else ""
    mcp("disable", "x")
    assert not servers()["x"].server.enabled
    mcp("enable", "x")
    assert servers()["x"].server.enabled
    if before:
        assert Path(".mcp.json").read_text() == before
    with pytest.raises(UsageError, match="There is no MCP server y"):
        mcp("disable", "y")


def test_secrets_are_hidden(capfd: pytest.CaptureFixture[str]) -> None:
    secret = "hunter2hunter2"
    mcp("add", "-e", f"API_KEY={secret}", "-e", "PORT=3000", "-e", "REF=${A_TOKEN}", "x", "--", "run", "--token", secret)
    mcp("add", "y", f"https://u:{secret}@h/mcp?key={secret}", "-H", f"Authorization: Bearer {secret}")
    mcp("add", "z", "https://h/mcp", "--client-id", "me", "--client-secret", secret)
    for words in (("list",), ("list", "--json"), *((name, "--json") for name in "xyz"), *((name,) for name in "xyz")):
        mcp(*(words if words[0] == "list" else ("get", *words)))
    said = capfd.readouterr().out
    assert secret not in said
    assert "3000" in said
    assert "${A_TOKEN}" in said


def test_the_settings_hide_the_secret_of_a_client(capfd: pytest.CaptureFixture[str]) -> None:
    mcp("add", "z", "https://h/mcp", "--client-id", "me", "--client-secret", "hunter2hunter2")
    run_subcommand(["config", "show"])
    said = capfd.readouterr().out
    assert "mcp_servers.z.oauth.client_secret" in said
    assert "hunter2hunter2" not in said


def test_the_command_line_wins_and_may_be_alone() -> None:
    mcp("add", "x", "mine")
    mcp("add", "y", "mine")
    Path("more.json").write_text('{"mcpServers": {"x": {"command": "given"}}}')
    given = {"mcp_config": ["more.json", '{"mcpServers": {"z": {"url": "https://h"}}}']}
    found = servers(**given)
    assert {name: each.server.command for name, each in found.items()} == {"x": "given", "y": "mine", "z": ""}
    assert set(servers(**given, strict_mcp_config=True)) == {"x", "z"}
    assert servers(mcp_config=['{"mcpServers": {}}'], strict_mcp_config=True) == {}


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("no-such-file", "no-such-file cannot be read: No such file"),
        ("{", "--mcp-config is no JSON"),
        ('{"x": {"command": "y"}}', "has no MCP server"),
        ('{"mcpServers": {"x": {"command": 3}}}', "Expected `str`, got `int`"),
    ],
)
def test_a_wrong_mcp_config_ends_the_run(value: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        servers(mcp_config=[value])


FOREIGN = {
    ".codex/config.toml": """
[mcp_servers.codex]
command = "npx"
env_vars = ["T"]
[mcp_servers.codex-web]
url = "https://h/mcp"
bearer_token_env_var = "T"
required = true
""",
    ".claude.json": """{"mcpServers": {"claude user": {"type": "stdio", "command": "run"}},
        "projects": {"HERE": {"mcpServers": {"claude-here": {"type": "http", "url": "https://h/mcp"}}}}}""",
    ".config/opencode/opencode.jsonc": """{ // comment
        "mcp": {"open": {"type": "local", "command": ["run", "//x"], "environment": {"A": "{env:B}"}, "enabled": false},}}""",
    ".gemini/settings.json": """{"mcpServers": {"old": {"url": "https://h/sse"},
        "new": {"httpUrl": "https://h/mcp", "trust": true}}}""",
    ".cursor/mcp.json": """{"mcpServers": {"cursor": {"command": "${userHome}/run"}, "bad": {"command": 3}}}""",
    ".config/Code/User/mcp.json": """{"servers": {"asks": {"url": "https://h", "headers": {"A": "${input:key}"}}}}""",
    ".config/Claude/claude_desktop_config.json": "{broken",
}


def test_servers_of_other_agents_are_imported(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    home = tmp_path / "home"
    monkeypatch.setenv("HOME", str(home))
    for name in ("XDG_CONFIG_HOME", "CODEX_HOME", "CLAUDE_CONFIG_DIR"):
        monkeypatch.delenv(name, raising=False)
    for place, text in FOREIGN.items():
        (home / place).parent.mkdir(parents=True, exist_ok=True)
        (home / place).write_text(text.replace("HERE", str(find_root())))
    mcp("add", "cursor", "mine")
    mcp("import", "--yes")
    found = servers()
    assert found["codex"].server == Server(command="npx", env={"T": "${T}"})
    assert found["codex-web"].server.headers == {"Authorization": "Bearer ${T}"}
    assert (found["claude-user"].scope, found["claude-here"].scope) == ("user", "local")
    assert found["open"].server.args == ("//x",)
    assert not found["open"].server.enabled
    assert (found["old"].server.transport, found["new"].server.transport) == ("sse", "")
    assert found["cursor"].server.command == "mine"
    assert not {"bad", "asks"} & found.keys()
    said = capfd.readouterr().err
    for notice in ("codex-web: ignored: required", "new: ignored: trust", "cursor is skipped", "asks for input (key)", "desktop"):
        assert notice in said
    with pytest.raises(UsageError, match="There is no agent and no file nobody"):
        mcp("import", "nobody")


def test_unknown_fields_of_a_project_are_named() -> None:
    Path(".mcp.json").write_text('{"mcpServers": {"x": {"command": "y", "autoApprove": ["a"], "description": "d", "_note": 1}}}')
    save_trust(find_places(), find_root(), "trusted")
    site = find_site()
    wanted_servers(layers.load(site), site)
    assert list(site.notices) == [".mcp.json: the MCP server x: ignored: autoApprove."]
