"""A turn without calls loads nothing that only a call, a compaction or the user's commands need."""

from __future__ import annotations

from pathlib import Path

from tests.architecture.test_start_up import modules_of
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import text

FIRST_USE = (
    *("wolo.agent.compaction.summary_text", "wolo.agent.compaction_run"),
    *("wolo.agent.sandbox_escape", "wolo.agent.side_question", "wolo.conversation.user_command"),
    *("wolo.conversation.subagents.subagent_run", "wolo.workspace.checkpoints.tracker", "wolo.tools.tool_arguments"),
)


def test_plain_turn_loads_no_late_module(provider: ProviderServer) -> None:
    provider.script(text("Hello."))
    modules = modules_of("-p", "--base-url", provider.base_url, "--api-key", "k", "-m", "test-model", "hi")
    tools = {name for name in modules if name.startswith("wolo.tools.") and _is_loaded_by_a_call(name)}
    assert tools | modules & set(FIRST_USE) == set()


def test_late_names_are_those_of_modules() -> None:
    root = Path(__file__).parents[2]
    assert [name for name in FIRST_USE if not (root / f"{name.replace('.', '/')}.py").exists()] == []


def _is_loaded_by_a_call(name: str) -> bool:
    return name.removeprefix("wolo.tools.") not in (
        "tool",
        "tool_values",
        "toolbox",
        "background",
        "background.background_jobs",
        "clipping",
    )
