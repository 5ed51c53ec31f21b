"""The thinking level and its display, from the command line to the request and the screen."""

from __future__ import annotations

import json
import re

import pytest

from tests.fakes.command import run_wolo
from tests.fakes.provider_server import KEY, ProviderServer
from tests.fakes.replies import Hold, call, delta, finish, sse, text, usage
from tests.fakes.screen import pty_wolo

THOUGHT = "First I look at it.\nThen I decide what is best.\n"


def glm(provider: ProviderServer, model: str) -> tuple[str, ...]:
    return ("--base-url", provider.base_url, "--api-key", KEY, "-m", f"zai/{model}")


@pytest.mark.parametrize(
    ("model", "flags", "sent"),
    [
        ("glm-5.3", ("--thinking", "max"), {"type": "enabled", "clear_thinking": False, "effort": "max"}),
        ("glm-5.3:medium", (), {"type": "enabled", "clear_thinking": False, "effort": "high"}),
        ("glm-5.2:high", ("--thinking", "low"), {"type": "enabled", "clear_thinking": False, "effort": "high"}),
        ("glm-5.2", ("--effort", "off"), {"type": "disabled", "clear_thinking": False, "effort": None}),
        ("glm-4.7", ("--set", "thinking=low"), {"type": "enabled", "clear_thinking": False, "effort": None}),
        ("glm-5.2", (), {"type": "enabled", "clear_thinking": False, "effort": None}),
    ],
)
def test_a_level_reaches_the_wire(provider: ProviderServer, model: str, flags: tuple[str, ...], sent: dict[str, object]) -> None:
    provider.script(text("Done."))
    assert run_wolo("-p", *glm(provider, model), *flags, "go").exit_code == 0
    body = provider.requests[0].json
    assert {**body["thinking"], "effort": body.get("reasoning_effort")} == sent


def test_always_thinking_model_is_reported_once(provider: ProviderServer) -> None:
    provider.script(text("Done."))
    done = run_wolo("-p", *glm(provider, "glm-5.3"), "--thinking", "off", "go")
    assert done.stdout == "Done.\n"
    assert done.stderr.count("always thinks") == 1
    assert provider.requests[0].json["thinking"] == {"clear_thinking": False}
    assert provider.requests[0].json["reasoning_effort"] == "low"


def test_an_unknown_level_is_a_usage_error(provider: ProviderServer) -> None:
    assert run_wolo("-p", *glm(provider, "glm-5.2"), "--thinking", "much", "go").exit_code == 2
    assert not provider.requests


def test_scripts_get_thinking_as_blocks_never_text(provider: ProviderServer) -> None:
    provider.script(*(text("Done.", reasoning=THOUGHT) for _ in range(2)))
    assert run_wolo("-p", *provider.flags, "go").stdout == "Done.\n"
    done = run_wolo("-p", "--output-format", "stream-json", "--include-partial-messages", *provider.flags, "go")
    content = next(line for line in done.lines if line["type"] == "assistant")["message"]["content"]
    assert content == [{"type": "thinking", "thinking": THOUGHT}, {"type": "text", "text": "Done."}]
    deltas = [line["event"] for line in done.lines if line["type"] == "stream_event"]
    assert "".join(each["thinking"] for each in deltas if each["type"] == "thinking_delta") == THOUGHT
    assert json.loads(done.stdout.splitlines()[-1])["result"] == "Done."


def test_thinking_passes_by_and_leaves_one_line(provider: ProviderServer) -> None:
    hold = Hold()
    thinking = [delta(reasoning_content=THOUGHT), hold, delta("All "), delta("done."), finish("stop", usage())]
    provider.script(sse(*thinking))
    with pty_wolo(*provider.flags, "go") as terminal:
        terminal.wait_for("thinking" if terminal.is_narrow else "Then I decide what is best.")
        hold.release()
        assert terminal.wait_for_exit() == 0
    lines = [line for line in terminal.text.split("\n") if line]
    assert re.match(r"Thought (?:briefly|for \d+ s)\s\(~12\stokens\)\n", terminal.text.lstrip())
    assert "All done." in lines
    assert not terminal.shows("I look at it")
    assert not terminal.shows("Ctrl-O")  # nobody reads keys here


def test_ctrl_o_shows_all_that_was_thought_last(provider: ProviderServer) -> None:
    provider.script(
        call("glob", {"pattern": "*"}, reasoning="Look around first."), text("Done.", reasoning=THOUGHT), text("Ready.")
    )
    with pty_wolo(*provider.flags) as terminal:
        terminal.wait_for_prompt()
        terminal.child.send(b"\x0f")
        terminal.wait_for("Nothing to expand.")
        terminal.wait_for_prompt()
        terminal.enter("go")
        terminal.wait_for("Done.")
        terminal.wait_until(lambda: terminal.times("Ctrl-O expands") == 2)
        terminal.wait_for_prompt()
        terminal.child.send(b"\x0f")
        terminal.wait_for("First I look at it.")
        terminal.wait_for("Then I decide what is best.")
        terminal.type("q")
        terminal.wait_for_prompt()
        terminal.enter("more")
        terminal.wait_for("Ready.")
        terminal.press("ctrl-d")
        assert terminal.wait_for_exit() == 0


def test_a_level_can_be_changed_between_prompts(provider: ProviderServer) -> None:
    provider.script(text("One."), text("Two."), text("Three."))
    with pty_wolo(*glm(provider, "glm-5.3:low"), columns=120) as terminal:
        terminal.wait_for_prompt()
        terminal.enter("first")
        terminal.wait_for("One.")
        terminal.enter("/thinking")
        terminal.wait_for("/thinking LEVEL changes it")
        terminal.enter("/thinking off")
        terminal.wait_for("Thinking level low from the next request on; zai/glm-5.3 does not support off.")
        terminal.enter("/thinking")
        terminal.wait_for("low; zai/glm-5.3 does not support off")
        terminal.enter("/thinking medium")
        terminal.wait_for("Thinking level high from the next request on; zai/glm-5.3 does not support medium.")
        terminal.enter("second")
        terminal.wait_for("Two.")
        terminal.enter("/thinking much")
        terminal.wait_for("Unknown thinking level: much.")
        terminal.enter("/new")
        terminal.wait_until(lambda: terminal.times("wolo · zai/glm-5.3") == 2)
        terminal.enter("third")
        terminal.wait_for("Three.")
        terminal.press("ctrl-d")
        assert terminal.wait_for_exit() == 0
    assert [asked.json["reasoning_effort"] for asked in provider.requests] == ["low", "high", "high"]
