"""Messages sent while wolo works: delivered between calls and saved with the session."""

from __future__ import annotations

import json
import time
from collections import Counter
from pathlib import Path

from tests.end_to_end.test_hooks import hook, write_settings
from tests.end_to_end.test_repl import leave, prompts, repl, shown, wait_for_prompt
from tests.fakes.command import run_wolo
from tests.fakes.prompts import typed
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import Hold, call, calls, delta, finish, sse, text, usage
from tests.fakes.screen import Terminal
from wolo.agent.events import CallStarted, RequestStarted
from wolo.conversation.factory import open_conversation
from wolo.conversation.resources.startup import StartOptions

WAIT = "for i in 1 2 3 4 5 6 7 8; do [ -e go ] || sleep 0.5; done; echo gone on"
"""A replay does not wait for what a person does for ever."""


def replayed() -> dict[str, object]:
    done = run_wolo("replay", "--json")
    return dict(json.loads(done.stdout))


def assert_replays() -> None:
    found = replayed()
    assert found["same"], found


def steer(terminal: Terminal, words: str) -> None:
    terminal.enter(words)
    terminal.wait_for(f"↪ {words}")


def test_word_during_a_call_is_heard_afterwards(provider: ProviderServer) -> None:
    provider.script(
        calls(("shell", {"command": WAIT}), ("shell", {"command": "touch not-run"}), ("write", {"path": "b", "content": "b"})),
        text("I have stopped there."),
        text("More."),
    )
    with repl(provider) as terminal:
        terminal.enter("do three things")
        terminal.wait_for("shell for")
        steer(terminal, "stop after the first")
        Path("go").touch()
        terminal.wait_for("I have stopped there.")
        wait_for_prompt(terminal)
        assert terminal.times("stop after the first") == 1
        terminal.enter("go on")
        terminal.wait_for("More.")
        wait_for_prompt(terminal)
        terminal.enter("/tree")
        terminal.wait_for("/rewind N")
        terminal.wait_for("      ↪ stop after the first")
        wait_for_prompt(terminal)
        leave(terminal)
    assert not Path("not-run").exists()
    results = provider.requests[1].results
    assert "gone on" in results[0]
    assert all("Not run: the user said something" in result for result in results[1:])
    assert provider.requests[1].messages[-1]["content"] == "stop after the first"
    assert_replays()
    found = json.loads(run_wolo("sessions", "search", "--json", "stop after the first").stdout)
    assert "stop after the first" in json.dumps(found)
    exported = run_wolo("sessions", "export", "--format", "markdown")
    assert "stop after the first" in exported.stdout


def test_word_during_an_answer_continues_the_turn(provider: ProviderServer) -> None:
    hold = Hold()
    provider.script(sse(delta("Some words.\n"), hold, delta("And done."), finish("stop", usage())), text("Heard you."))
    with repl(provider) as terminal:
        terminal.enter("talk")
        terminal.wait_for("writing ·")
        steer(terminal, "and greet me")
        hold.release()
        terminal.wait_for("Heard you.")
        wait_for_prompt(terminal)
        leave(terminal)
    assert prompts(provider)[1] == "and greet me"
    assert_replays()


def test_a_word_with_a_file_carries_the_file(provider: ProviderServer) -> None:
    Path("notes.txt").write_text("the file itself\n")
    provider.script(call("shell", {"command": WAIT}), text("Read it."))
    with repl(provider) as terminal:
        terminal.enter("begin")
        terminal.wait_for("shell for")
        terminal.enter("see @notes.txt too ")
        terminal.wait_for("↪ see @notes.txt too")
        Path("go").touch()
        terminal.wait_for("Read it.")
        wait_for_prompt(terminal)
        assert not terminal.shows("the file itself")
        leave(terminal)
    assert "the file itself" in provider.requests[1].messages[-1]["content"]
    assert_replays()


def test_reading_commands_run_at_once_others_wait(provider: ProviderServer) -> None:
    provider.script(call("shell", {"command": WAIT}), text("Done."))
    with repl(provider) as terminal:
        terminal.enter("begin")
        terminal.wait_for("shell for")
        terminal.enter("/cost")
        terminal.wait_for("in this session")
        for command in ("/new", "!touch by-hand"):
            terminal.enter(command)
            terminal.wait_for(f"⧗ {command}")
        assert not Path("by-hand").exists()
        terminal.press("up")
        terminal.wait_for("› !touch by-hand")
        terminal.press("ctrl-c")
        Path("go").touch()
        terminal.wait_for("Done.")
        terminal.wait_until(lambda: terminal.times("wolo · custom") == 2)
        wait_for_prompt(terminal)
        leave(terminal)


def test_mode_changed_midway_is_replayed(provider: ProviderServer) -> None:
    write = {"path": "a.txt", "content": "x\n"}
    provider.script(call("write", write), text("Written."), call("write", write), text("Not written."))
    with repl(provider, "--mode", "edit") as terminal:
        terminal.enter("write it")
        terminal.wait_for("Written.")
        wait_for_prompt(terminal)
        terminal.press("shift-tab", "shift-tab")
        terminal.wait_until(lambda: "plan" in shown(terminal)[-1].split())
        terminal.enter("once more")
        terminal.wait_for("Not written.")
        wait_for_prompt(terminal)
        leave(terminal)
    assert_replays()


def test_long_paste_enters_the_turn_folded(provider: ProviderServer) -> None:
    provider.script(call("shell", {"command": WAIT}), text("Read."))
    pasted = "\n".join(f"line {number}" for number in range(5000))
    with repl(provider) as terminal:
        terminal.enter("begin")
        terminal.wait_for("shell for")
        terminal.paste(pasted)
        terminal.press("enter")
        terminal.wait_for("↪ [Pasted #1: 5,000 lines]")
        terminal.press("up")
        terminal.wait_until(lambda: not terminal.shows("↪"))
        terminal.press("enter")
        terminal.wait_for("↪ [Pasted #1: 5,000 lines]")
        Path("go").touch()
        terminal.wait_for("Read.")
        wait_for_prompt(terminal)
        time.sleep(0.1)
        assert not terminal.shows("line 4999")
        leave(terminal)
    assert provider.requests[1].messages[-1]["content"] == pasted


async def test_words_anywhere_in_a_turn_are_replayed(provider: ProviderServer) -> None:
    """Before the first request, in the middle of calls that run side by side, two at once, and at an empty answer."""
    for name in ("a", "b", "c"):
        Path(name).write_text(name)
    reads = calls(("read", {"path": "a"}), ("read", {"path": "b"}), ("shell", {"command": "touch no"}), ("read", {"path": "c"}))
    provider.script(reads, text(""), text("Enough."), text("Well."))
    given = {"base_url": provider.base_url, "model": "test-model", "api_key": "key", "mode": "auto"}
    conversation = await open_conversation(StartOptions(flags=given, attended=True))
    conversation.steer(typed("before all"))
    started = Counter[type]()
    async for event in conversation.prompt(typed("go")):
        started[type(event)] += 1
        if isinstance(event, CallStarted) and started[CallStarted] == 1:
            conversation.steer(typed("in the middle"))
            conversation.steer(typed("and twice"))
        elif isinstance(event, RequestStarted) and started[RequestStarted] == 2:
            conversation.steer(typed("while it says nothing"))
    await conversation.close()
    said = [message["content"] for message in provider.requests[-1].messages if message["role"] == "user"]
    assert said[:4] == ["go", "before all", "in the middle", "and twice"]
    assert "while it says nothing" in said
    assert not Path("no").exists()
    assert_replays()


def test_text_said_while_another_opens_belongs_there(provider: ProviderServer) -> None:
    provider.script(text("One."), text("Two."))
    gate = Path("gate").resolve()
    write_settings(*hook("SessionEnd", f"until test -e {gate}; do sleep 0.01; done"))
    with repl(provider) as terminal:
        terminal.say("first", "One.")
        terminal.enter("/new")
        terminal.wait_for("› /new")
        terminal.enter("second words")
        terminal.wait_for("↪ second words")
        gate.touch()
        terminal.wait_for("Two.")
        wait_for_prompt(terminal)
        gate.touch()
        leave(terminal)
    assert prompts(provider) == ["first", "second words"]
