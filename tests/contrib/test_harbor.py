"""Harbor's agent: its commands run as in a container; the class itself where Harbor is installed (Python 3.12)."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path, PurePosixPath
from types import SimpleNamespace
from typing import Any

import pytest

from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import calls, text
from tests.sessions.exchange.test_atif_schema import broken_rules
from wolo.contrib import harbor
from wolo.errors import ExtensionError

HAS_HARBOR = importlib.util.find_spec("harbor") is not None
PROMPT = "it's a $(touch owned) `task`\n--yolo"


class Container:
    """This machine, as an environment of Harbor."""

    default_user = None

    def __init__(self, answer: str = "") -> None:
        self.commands: list[str] = []
        self.uploaded: list[tuple[str, str]] = []
        self.answer = answer
        """In place of a run, what a failed one prints."""

    async def upload_file(self, source: str, target: str) -> None:
        self.uploaded.append((source, target))

    async def exec(self, command: str, env: dict[str, str] | None = None, **_: Any) -> Any:
        self.commands.append(command)
        if self.answer:
            return SimpleNamespace(return_code=1, stdout="", stderr=self.answer)
        if "uv tool install" in command or "chmod" in command:
            return SimpleNamespace(return_code=0, stdout="", stderr="")
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(
            ["bash", "-c", command], env={**os.environ, "PATH": path, **(env or {})}, capture_output=True, text=True, check=False
        )
        return SimpleNamespace(return_code=done.returncode, stdout=done.stdout, stderr=done.stderr)


async def test_run_leaves_its_result_and_valid_trajectory(provider: ProviderServer, tmp_path: Path) -> None:
    provider.script(calls(("write", {"path": "a.txt", "content": "1\n"})), text("Done."))
    command = harbor.run_command(PROMPT, PurePosixPath(tmp_path), "--mode", "yolo", *provider.flags)
    done = await Container().exec(command)
    assert (done.return_code, done.stdout, done.stderr) == (0, "", "")
    assert provider.requests[0].messages[-1]["content"].endswith(PROMPT)
    assert (Path("a.txt").exists(), Path("owned").exists()) == (True, False)
    used = harbor.read_usage(tmp_path)
    assert used is not None
    assert used.input_tokens > used.cached_tokens
    trajectory = json.loads((tmp_path / harbor.TRAJECTORY).read_text())
    assert trajectory["session_id"] == used.session_id
    assert broken_rules(trajectory) == []


async def test_budget_end_succeeds_and_wrong_model_fails(provider: ProviderServer, tmp_path: Path) -> None:
    provider.script(calls(("glob", {"pattern": "*"})))
    budget = harbor.run_command("go", PurePosixPath(tmp_path), "--max-turns", "1", *provider.flags)
    assert (await Container().exec(budget)).return_code == 0
    assert (used := harbor.read_usage(tmp_path)) is not None
    assert used.exit_code == 5
    failed = await Container().exec(harbor.run_command("go", PurePosixPath(tmp_path), "--model", "nobody/nothing"))
    assert failed.return_code == 2
    assert "nobody" in failed.stderr


def test_only_keys_of_the_model_provider_are_passed() -> None:
    environ = {"ANTHROPIC_API_KEY": "a", "OPENAI_API_KEY": "o", "WOLO_BASE_URL": "http://x", "HOME": "/root"}
    named = harbor.model_variables("anthropic/claude-sonnet-5", environ)
    assert named == {"ANTHROPIC_API_KEY": "a", "WOLO_BASE_URL": "http://x"}


def test_task_servers_become_run_servers() -> None:
    local = SimpleNamespace(name="files", transport="stdio", command="serve", args=["-x"])
    remote = SimpleNamespace(name="web", transport="streamable-http", url="http://x/mcp", headers={})
    option, told = harbor.server_options([local, remote])
    assert option == "--mcp-config"
    assert json.loads(told)["mcpServers"] == {
        "files": {"command": "serve", "args": ["-x"]},
        "web": {"type": "http", "url": "http://x/mcp", "headers": {}},
    }


@pytest.mark.skipif(HAS_HARBOR, reason="Harbor is installed")
def test_without_harbor_the_class_says_what_to_install() -> None:
    with pytest.raises(ExtensionError, match="not installed"):
        _ = harbor.WoloAgent


@pytest.mark.skipif(not HAS_HARBOR, reason="Harbor is not installed (it needs Python 3.12)")
@pytest.mark.filterwarnings("ignore")  # of its libraries
async def test_the_agent_works_within_harbor(provider: ProviderServer, tmp_path: Path) -> None:
    from harbor.agents.factory import AgentFactory
    from harbor.models.agent.context import AgentContext
    from harbor.models.trajectories import Trajectory
    from harbor.models.trial.config import AgentConfig

    config = AgentConfig(name="wolo.contrib.harbor:WoloAgent", model_name="custom/m", kwargs={"max_turns": 3})
    AgentFactory.run_preflight(config)
    agent = AgentFactory.create_agent_from_config(config, logs_dir=tmp_path, environment_logs_dir=PurePosixPath(tmp_path))
    agent._extra_env = {"WOLO_BASE_URL": provider.base_url, "WOLO_API_KEY": "k"}
    provider.script(text("Done."))
    context, container = AgentContext(), Container()
    await agent.run(PROMPT, container, context)
    agent.populate_context_post_run(context)
    assert "--mode yolo --max-turns 3" in container.commands[-1]
    assert context.n_output_tokens is not None
    assert context.metadata is not None
    assert context.metadata["exit_code"] == 0
    Trajectory.model_validate_json((tmp_path / "trajectory.json").read_text())
    assert agent.parse_version("wolo 0.1.0\n") == "0.1.0"


NEEDS_HARBOR = pytest.mark.skipif(not HAS_HARBOR, reason="Harbor is not installed (it needs Python 3.12)")


def agent_of(folder: Path, **options: Any) -> Any:
    from harbor.agents.factory import AgentFactory
    from harbor.models.trial.config import AgentConfig

    config = AgentConfig(name="wolo.contrib.harbor:WoloAgent", model_name="custom/m", kwargs=options)
    return AgentFactory.create_agent_from_config(config, logs_dir=folder, environment_logs_dir=PurePosixPath(folder))


@NEEDS_HARBOR
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "options",
    [
        {"turns": 3},
        {"thinking": "high", "reasoning_effort": "low"},
        {"wheel": "/nowhere/wolo.whl"},
        {"max_turns": "many"},
        {"config": {"a": 1}},
    ],
)
def test_options_without_effect_are_refused(tmp_path: Path, options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"kwargs|not support"):
        agent_of(tmp_path, **options)


@NEEDS_HARBOR
@pytest.mark.filterwarnings("ignore")
def test_refused_address_names_its_variable() -> None:
    from harbor.agents.factory import AgentFactory
    from harbor.models.trial.config import AgentConfig

    config = AgentConfig(name="wolo.contrib.harbor:WoloAgent", model_name="custom/m", base_url="http://x/v1")
    with pytest.raises(ValueError, match="--ae WOLO_BASE_URL=http://x/v1"):
        AgentFactory.run_preflight(config)


@NEEDS_HARBOR
@pytest.mark.filterwarnings("ignore")
async def test_options_reach_the_command(tmp_path: Path) -> None:
    agent = agent_of(tmp_path, reasoning_effort="high", disable_web_search=True, max_cost=0.5)
    container = Container("{}")
    with pytest.raises(RuntimeError):
        await agent.run("go", container, None)
    for words in ("--thinking high", "tools.hide", "--max-cost 0.5", "--model custom/m"):
        assert words in container.commands[-1]


@NEEDS_HARBOR
@pytest.mark.filterwarnings("ignore")
async def test_local_wheel_is_installed(tmp_path: Path) -> None:
    wheel = tmp_path / "wolo_cli-0.2.0-py3-none-any.whl"
    wheel.touch()
    container = Container()
    await agent_of(tmp_path, wheel=str(wheel)).install(container)
    assert container.uploaded == [(str(wheel), f"/tmp/{wheel.name}")]
    assert f"--python 3.13 /tmp/{wheel.name}" in container.commands[-1]


@NEEDS_HARBOR
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("error", "name"),
    [
        ({"kind": "auth"}, "AgentAuthenticationError"),
        ({"kind": "quota"}, "ApiUsageLimitError"),
        ({"kind": "rate_limited"}, "ApiRateLimitError"),
        ({"kind": "unavailable"}, "ApiOverloadedError"),
        ({"kind": "context_overflow"}, "ContextWindowExceededError"),
        ({"kind": "content_refused"}, "AgentSafetyRefusalError"),
        ({"kind": "bad_request", "code": "model_not_found"}, "ModelNotFoundError"),
        ({"kind": "max_turns"}, "NonZeroAgentExitCodeError"),
    ],
)
async def test_error_of_a_run_has_its_class(tmp_path: Path, error: dict[str, str], name: str) -> None:
    printed = "a log that speaks of a rate limit\n" + json.dumps({"type": "result", "error": error})
    with pytest.raises(RuntimeError) as raised:
        await agent_of(tmp_path).run("go", Container(printed), None)
    assert type(raised.value).__name__ == name
