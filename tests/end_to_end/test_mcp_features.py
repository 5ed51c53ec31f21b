"""MCP servers from outside, beyond their tools: what a prompt brings along, 400 tools in every format, and bad company."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.test_mcp import FAKES, is_alive, plain, set_up, wait_until_ready
from tests.end_to_end.test_panels import visible
from tests.end_to_end.test_repl import leave, repl
from tests.fakes import replies, replies_anthropic, replies_gemini, replies_responses
from tests.fakes.command import run_wolo
from tests.fakes.provider_server import KEY, Asked, ProviderServer
from tests.fakes.replies import Reply

FEATURES = {"command": sys.executable, "args": [str(FAKES / "mcp_features.py")]}
YES = ("--mode", "yolo")


def prompt_of(asked: Asked) -> str:
    return str(next(message["content"] for message in asked.messages if message["role"] == "user"))


def test_resource_and_prompt_work_without_a_terminal(provider: ProviderServer) -> None:
    set_up(lib=FEATURES)
    provider.script(replies.text("One."), replies.text("Two."), replies.text("Three."))
    assert run_wolo("-p", *provider.flags, "Read @lib:note://first, and @lib:city://oslo/info!", timeout=120).exit_code == 0
    said = prompt_of(provider.requests[0])
    assert said.startswith("Read @lib:note://first, and @lib:city://oslo/info!\n\n<resource ")
    assert "remember the milk" in said
    assert "oslo is a city" in said
    assert run_wolo("-p", *provider.flags, "/mcp__lib__plan Paris days=5").exit_code == 0
    assert prompt_of(provider.requests[1]) == "Plan 5 days in Paris."
    missing = run_wolo("-p", *provider.flags, "/mcp__lib__plan")
    assert (missing.exit_code, "plan needs city" in missing.stderr) == (2, True)
    lost = run_wolo("-p", *provider.flags, "Read @lib:note://none and @nobody:note://first.")
    assert lost.exit_code == 0
    assert "@lib:note://none is not attached" in lost.stderr
    assert prompt_of(provider.requests[2]) == "Read @lib:note://none and @nobody:note://first."


def test_resource_reading_follows_server_rules_and_replays_alone(provider: ProviderServer) -> None:
    set_up(lib=FEATURES)
    wanted = {"server": "lib", "uri": "note://first"}
    provider.script(replies.call("read_resource", wanted), replies.text("Done."))
    done = run_wolo("--json", *provider.flags, "--allow", "mcp:lib/read_resource", "go", timeout=120)
    assert provider.requests[1].results == ["[note://first]\nremember the milk"]
    assert run_wolo("replay", done.json["session_id"], timeout=120).exit_code == 0
    provider.script(replies.call("read_resource", wanted), replies.text("Denied."))
    assert run_wolo("-p", *provider.flags, "go").exit_code == 4


def test_a_server_asks_in_the_panel_of_questions(provider: ProviderServer) -> None:
    set_up(lib=FEATURES)
    provider.script(replies.call("mcp__lib__book", {}), replies.text("Booked."))
    with repl(provider, *YES) as terminal:
        wait_until_ready(terminal, "lib")
        terminal.enter("go")
        terminal.wait_until(lambda: "Enter next" in visible(terminal))
        assert "lib: City: where to" in visible(terminal)
        terminal.enter("Oslo")
        for asked in ("lib: Days (skip for 3", "lib: Travel", "lib: Insured"):
            terminal.wait_for(asked)
            terminal.press("enter")
        terminal.wait_for("Send these answers to it?")
        terminal.type("1")
        terminal.wait_for("1 ● Send")
        terminal.press("enter")
        terminal.wait_until(lambda: bool(re.search(r"^Enter send( · |$)", visible(terminal), re.MULTILINE)))
        terminal.press("enter")
        terminal.wait_for("Booked.")
        assert leave(terminal) == 0
    assert '"city":"Oslo","days":3' in provider.requests[1].results[0]


def test_resources_templates_and_arguments_are_completed(provider: ProviderServer) -> None:
    set_up(lib=FEATURES)
    with repl(provider, *YES, columns=100) as terminal:
        wait_until_ready(terminal, "lib")
        for typed, shown in (
            ("see @li", "resources of an MCP server"),
            ("see @lib:no", "note://first"),
            ("see @lib:city://pra", "city://prague/info"),
            ("/mcp__lib__pl", "Plan a trip."),
            ("/mcp__lib__plan por", "porto"),
        ):
            terminal.type(typed)
            terminal.wait_for(shown)
            terminal.press("escape")
            terminal.type("\x15")  # deletes the line
            terminal.wait_until(lambda typed=typed: typed not in visible(terminal))  # type: ignore[misc]  # the loop's own
        assert leave(terminal) == 0


# 400 tools

Made = Callable[[str, Mapping[str, Any]], Reply]
SAY, FIND = "mcp__big__say", "find_tools"
FORMATS: dict[str, tuple[str, Made, Callable[[str], Reply]]] = {
    "openai-chat": ("/v1", replies.call, replies.text),
    "openai-responses": (
        "/v1",
        lambda name, args: replies_responses.answer(replies_responses.call(name, args)),
        lambda said: replies_responses.answer(replies_responses.message(said)),
    ),
    "anthropic": ("", replies_anthropic.call, replies_anthropic.text),
    "gemini": (
        "",
        lambda name, args: replies_gemini.calls(replies_gemini.called(name, args)),
        replies_gemini.text,
    ),
}


def offered(asked: Asked) -> list[str]:
    tools = asked.json.get("tools", ())
    rows = [row for tool in tools for row in tool.get("functionDeclarations", [tool])]
    return [row.get("name") or row["function"]["name"] for row in rows]


@pytest.mark.parametrize("format", FORMATS)
def test_four_hundred_tools_are_found_with_requests_stable(provider: ProviderServer, format: str) -> None:
    at, call, text = FORMATS[format]
    set_up(big=plain("many-400"))
    provider.script(call(FIND, {"query": "say"}), call(SAY, {"text": "hi"}), text("Done."))
    flags = ("--api", format, "--base-url", provider.origin + at, "--api-key", KEY, "-m", "custom/test-model")
    done = run_wolo("-p", *flags, *YES, "--set", "context.window=32000", "go", timeout=120)
    assert (done.exit_code, done.stdout) == (0, "Done.\n"), done.stderr
    first, second, third = map(offered, provider.requests)
    assert [name for name in first if name.startswith("mcp__") or name == FIND] == [FIND]
    assert second[: len(first)] == first
    assert SAY in second[len(first) :]
    assert third == second


# Good, slow, silent, dying, and printing garbage


def test_bad_company_costs_the_good_server_nothing(provider: ProviderServer) -> None:
    modes = {"good": "good", "garbage": "garbage", "slow": "slow", "silent": "silent", "dying": "dies"}
    logs = {name: Path(f"{name}.log").absolute() for name in modes}
    set_up(**{name: plain(mode, "--log", str(logs[name])) for name, mode in modes.items()})
    provider.script(replies.call("mcp__good__say", {"text": "hi"}), replies.text("Done."))
    with repl(provider, *YES) as terminal:
        wait_until_ready(terminal, "good")
        terminal.enter("go")
        terminal.wait_for("Done.")
        terminal.wait_for("dying: it ended")
        assert leave(terminal) == 0
    assert provider.requests[1].results == ['say: {"text": "hi"}']
    pids = [json.loads(log.read_text().splitlines()[0])["pid"] for log in logs.values()]
    assert not [pid for pid in pids if is_alive(pid)]
