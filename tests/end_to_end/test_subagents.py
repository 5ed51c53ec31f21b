"""Tasks for other agents, as a person sees them: at the terminal, in scripts, stopped, killed, and afterwards."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.test_escape import is_running
from tests.end_to_end.test_panels import READY, scroll_to, visible
from tests.end_to_end.test_repl import leave, repl, wait_for_prompt
from tests.end_to_end.waiting import wait_for
from tests.fakes.command import run_wolo, start_wolo
from tests.fakes.provider_server import Asked, ProviderServer
from tests.fakes.replies import Hold, Reply, call, calls, delta, finish, sse, text, usage
from tests.fakes.screen import Terminal
from wolo.places import find_places
from wolo.sessions.listing import SessionInfo
from wolo.sessions.replay_entries import messages
from wolo.sessions.store import Store

CTRL_O = "\x0f"
SLEEP = f"sleep 7541.{os.getpid()}"
LOOK = {"prompt": "where is it?", "agent": "explore"}


def is_child(asked: Asked) -> bool:
    return "Another agent has given you the task" in asked.messages[0]["content"]


def sessions() -> list[SessionInfo]:
    with Store.open(find_places().data) as store:
        return store.list(with_tasks=True)


def wait_until_asked(terminal: Terminal) -> None:
    terminal.wait_until(lambda: READY in visible(terminal), complaint="nothing was asked")


def test_task_shows_its_work_and_then_its_answer(provider: ProviderServer) -> None:
    hold = Hold()
    said = "\n".join(f"finding {number}" for number in range(9))
    provider.script(
        call("task", LOOK),
        call("glob", {"pattern": "*.nothing"}),
        sse(delta("Let me"), hold, delta(f" say:\n{said}"), finish("stop", usage())),
    )
    provider.script(text("All done."))
    with repl(provider, columns=100) as terminal:
        terminal.enter("find it")
        terminal.wait_until(lambda: any("task where is it? agent=explore" in line and " s" in line for line in terminal.lines))
        terminal.wait_for("writing · 1 call · 110 tokens")
        terminal.enter("/agents")
        terminal.wait_for("explore: writing · 1 call")
        hold.release()
        terminal.wait_for("All done.")
        wait_for_prompt(terminal)
        terminal.wait_for("● explore: where is it? · 1 call · 220 tokens")
        terminal.wait_for("more lines · Ctrl-O expands")
        assert not terminal.shows("finding 8")
        terminal.type(CTRL_O)
        terminal.wait_for("finding 8")
        terminal.wait_for("● glob *.nothing")
        terminal.type("q")
        terminal.wait_until(lambda: not terminal.is_alternate)
        terminal.enter("/cost")
        terminal.wait_for("1 subagent task")
        terminal.wait_for("400 tokens in")
        wait_for_prompt(terminal)
        leave(terminal)


def test_question_comes_up_here_with_its_asker(provider: ProviderServer) -> None:
    provider.script(
        call("task", {"prompt": "run it"}), call("shell", {"command": "echo hello > made"}), text("Ran."), text("Done.")
    )
    with repl(provider, "--mode", "ask", "--sandbox", "off", columns=100) as terminal:
        terminal.enter("do it")
        terminal.wait_for("general: Run this command?")
        wait_until_asked(terminal)
        terminal.type("y")
        terminal.wait_for("Done.")
        wait_for_prompt(terminal)
        leave(terminal)
    assert Path("made").read_text() == "hello\n"


def test_a_no_reaches_the_agent(provider: ProviderServer) -> None:
    provider.script(
        call("task", {"prompt": "run it"}), call("shell", {"command": "echo hello > made"}), text("Not."), text("Done.")
    )
    with repl(provider, "--mode", "ask", "--sandbox", "off") as terminal:
        terminal.enter("do it")
        wait_until_asked(terminal)
        terminal.type("n")
        terminal.wait_for("Done.")
        wait_for_prompt(terminal)
        leave(terminal)
    assert "Denied by the user" in provider.requests[2].results[0]
    assert not Path("made").exists()


def test_its_question_names_it(provider: ProviderServer) -> None:
    question = {"questions": [{"question": "Which one?", "header": "Colour", "options": ["red", "blue"]}]}
    provider.script(call("task", {"prompt": "paint"}), call("ask", question), text("Blue it is."), text("Done."))
    with repl(provider) as terminal:
        terminal.enter("do it")
        terminal.wait_for("general: Colour")
        terminal.wait_for("Which one?")
        terminal.wait_for("Enter next")
        terminal.type("2")
        terminal.wait_for("› 2 ● blue")
        terminal.press("enter")
        terminal.wait_for("Done.")
        wait_for_prompt(terminal)
        leave(terminal)
    assert "→ blue" in provider.requests[2].results[0]


@pytest.mark.parametrize("prompts", [("ask", "end"), ("end", "ask")])
def test_one_task_asks_while_the_other_ends(provider: ProviderServer, tmp_path: Path, prompts: tuple[str, str]) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_text("the secret of the house\n")
    hold = Hold()
    two = calls(*(("task", {"prompt": prompt, "agent": "explore"}) for prompt in prompts))

    def answer(asked: Asked) -> Reply:
        if not is_child(asked):
            return text("Done.") if asked.results else two
        if asked.messages[1]["content"] == "end":
            return sse(hold, delta("Ended."), finish("stop", usage()))
        return text("Read.") if asked.results else call("read", {"path": str(outside)})

    provider.otherwise = answer
    with repl(provider, "--mode", "ask") as terminal:
        terminal.enter("do it")
        terminal.wait_for("explore: Read this file?")
        wait_until_asked(terminal)
        hold.release()
        wait_for(lambda: any(not info.live for info in sessions() if info.title == "end"))
        terminal.wait_until(lambda: READY in visible(terminal))
        terminal.type("y")
        terminal.wait_for("allowed once: explore: read")
        terminal.wait_for("Done.")
        wait_for_prompt(terminal)
        leave(terminal)
    last = provider.requests[-1].results
    assert [result.partition("\n")[0] for result in last] == [{"ask": "Read.", "end": "Ended."}[prompt] for prompt in prompts]


def test_person_asked_about_a_task_sees_all(provider: ProviderServer) -> None:
    prompt = "look here\nand there\nand everywhere"
    provider.script(call("task", {"prompt": prompt, "agent": "explore"}), text("As you like."))
    settings = find_places().config / "config.toml"
    settings.parent.mkdir(parents=True)
    settings.write_text('[permissions]\nask = ["task:explore"]\n')
    with repl(provider) as terminal:
        terminal.enter("do it")
        terminal.wait_for("Start this subagent?")
        wait_until_asked(terminal)
        scroll_to(terminal, "andeverywhere")
        scroll_to(terminal, "task:explore")
        terminal.type("n")
        terminal.wait_for("As you like.")
        wait_for_prompt(terminal)
        leave(terminal)


def stream(provider: ProviderServer) -> None:
    provider.script(sse(delta("Some words.\n"), Hold()))


def silence(provider: ProviderServer) -> None:
    provider.script(sse(Hold()))


def command(provider: ProviderServer) -> None:
    provider.script(call("shell", {"command": SLEEP}))


STATES: dict[str, tuple[Callable[[ProviderServer], None], str]] = {
    "waiting": (silence, "waiting for the"),
    "stream": (stream, "writing"),
    "command": (command, "shell sleep"),
}
"""Each with the first words of what is seen of it."""


@pytest.mark.sweep(every=5)
@pytest.mark.parametrize("key", ["escape", "ctrl-c"])
@pytest.mark.parametrize("state", STATES)
def test_escape_ends_a_task_and_conversation_continues(provider: ProviderServer, state: str, key: str) -> None:
    begin, sign = STATES[state]
    provider.script(call("task", {"prompt": "work"}))
    begin(provider)
    with repl(provider, "--mode", "yolo", "--sandbox", "off") as terminal:
        terminal.enter("go")
        provider.wait_for_requests(2)
        terminal.wait_for(sign)
        if state == "command":
            wait_for(lambda: is_running(SLEEP))
        terminal.press(key)
        terminal.wait_for("Interrupted.", 5.0)
        wait_for(lambda: not is_running(SLEEP))
        wait_for_prompt(terminal)
        provider.script(text("Here again."))
        terminal.enter("hello?")
        terminal.wait_for("Here again.")
        wait_for_prompt(terminal)
        leave(terminal)
    assert "[interrupted after " in provider.requests[-1].results[0]


def test_escape_at_its_question_ends_it_too(provider: ProviderServer) -> None:
    provider.script(call("task", {"prompt": "run it"}), call("shell", {"command": "echo hello > made"}))
    with repl(provider, "--mode", "ask", "--sandbox", "off") as terminal:
        terminal.enter("do it")
        wait_until_asked(terminal)
        terminal.press("escape")
        terminal.wait_for("Interrupted.")
        wait_for_prompt(terminal)
        leave(terminal)
    assert not Path("made").exists()


def test_steering_reaches_the_conversation_not_the_agent(provider: ProviderServer) -> None:
    hold = Hold()
    provider.script(call("task", LOOK), sse(hold, delta("Seen."), finish("stop", usage())), text("I heard you."))
    with repl(provider) as terminal:
        terminal.enter("go")
        terminal.wait_for("waiting for the" if terminal.is_narrow else "waiting for the model · 0 calls")
        terminal.enter("and be brief")
        terminal.wait_for("↪ and be brief")
        hold.release()
        terminal.wait_for("I heard you.")
        wait_for_prompt(terminal)
        leave(terminal)
    assert provider.requests[-1].messages[-1]["content"] == "and be brief"
    assert not any("and be brief" in json.dumps(asked.json) for asked in provider.requests if is_child(asked))


# In scripts


def test_script_sees_begin_and_end_and_pays(provider: ProviderServer) -> None:
    provider.script(call("task", LOOK), text("Here."), text("Done."))
    lines = run_wolo("-p", *provider.flags, "--output-format", "stream-json", "go").lines
    began, ended = [line for line in lines if line.get("subtype") == "task"]
    assert (began["status"], began["agent"], began["prompt"]) == ("started", "explore", "where is it?")
    assert (ended["status"], ended["ended"], ended["num_turns"]) == ("ended", "done", 1)
    assert began["task_session_id"] == ended["task_session_id"] != began["session_id"]
    assert began["tool_use_id"] == lines[1]["message"]["content"][0]["id"]
    result = lines[-1]
    assert (result["num_turns"], result["usage"]["input_tokens"]) == (3, 300)
    assert [line["type"] for line in lines].count("assistant") == 2


def test_unallowable_call_is_listed_with_its_agent(provider: ProviderServer) -> None:
    provider.script(call("task", {"prompt": "run it"}), call("shell", {"command": "make"}), text("No."), text("Done."))
    done = run_wolo("-p", *provider.flags, "--mode", "ask", "--output-format", "json", "go")
    assert done.exit_code == 4
    (denial,) = done.json["permission_denials"]
    assert (denial["agent"], denial["tool"], denial["input"]) == ("general", "shell", {"command": "make"})


def test_stalled_task_does_not_hold_up_a_script(provider: ProviderServer) -> None:
    provider.script(call("task", {"prompt": "look"}), sse(Hold()), text("I go on."))
    done = run_wolo("-p", *provider.flags, "--set", "tasks.timeout_s=0.5", "--output-format", "json", "go")
    assert (done.exit_code, done.json["result"]) == (0, "I go on.")
    assert provider.requests[-1].results[0].startswith("(No answer.)\n[timed out after ")


def test_listings_show_it_only_when_asked_for(provider: ProviderServer) -> None:
    provider.script(call("task", LOOK), text("Here."), text("Done."))
    run_wolo("-p", *provider.flags, "go")
    shown = run_wolo("sessions", "list", "--json").json
    assert [row["title"] for row in shown] == ["go"]
    with_tasks = run_wolo("sessions", "list", "--json", "--tasks").json
    assert {row["title"]: row.get("agent") for row in with_tasks} == {"go": None, "where is it?": "explore"}
    child = next(row for row in with_tasks if row.get("agent"))
    assert child["task_of"] == shown[0]["id"]
    assert "Here." in run_wolo("sessions", "export", child["id"], "--format", "markdown").stdout
    provider.script(text("Still here."))
    run_wolo("-p", *provider.flags, "-c", "and?")
    assert [message["role"] for message in provider.requests[-1].messages] == [
        "system",
        *("user", "assistant", "tool", "assistant"),
        "user",
    ]


def test_kill_midway_leaves_the_conversation_whole(provider: ProviderServer) -> None:
    hold = Hold()
    provider.script(call("task", {"prompt": "write"}), call("write", {"path": "new.txt", "content": "x"}), sse(hold))
    with start_wolo("-p", *provider.flags, "--mode", "yolo", "go") as wolo:
        hold.wait_until_reached()
        wolo.send_signal(signal.SIGKILL)
        wolo.wait()
    hold.release()
    parent, child = sorted(sessions(), key=lambda info: info.agent)
    with Store.open(find_places().data) as store:
        said = messages(store.load(parent.id).entries)
        done = messages(store.load(child.id).entries)
    (part,) = said[-1].calls
    assert part.outcome == "interrupted"
    assert part.metadata["task"] == {"agent": "general", "session": child.id}
    assert done[1].calls[0].outcome == "ok"
    provider.script(text("I look what is there."))
    assert run_wolo("-p", *provider.flags, "-c", "go on").exit_code == 0
    assert "nterrupted" in provider.requests[-1].results[0]
    assert run_wolo("undo", "--yes").exit_code == 0 or Path("new.txt").exists()


def test_session_with_a_task_replays_unasked(provider: ProviderServer) -> None:
    provider.script(call("task", LOOK), text("Here."), text("Done."))
    run_wolo("-p", *provider.flags, "go")
    asked = len(provider.requests)
    replayed = run_wolo("replay")
    assert replayed.exit_code == 0, replayed.stderr
    assert len(provider.requests) == asked


@pytest.mark.parametrize(("name", "there"), [("explore", "read-only"), ("helper", "yours")])
def test_agents_are_listed_and_shown_one_by_one(provider: ProviderServer, name: str, there: str) -> None:
    path = find_places().config / "agents/helper.md"
    path.parent.mkdir(parents=True)
    path.write_text("---\ndescription: helps out\ntools: read, edit\nmodel: here/it\n---\nYou help.\n")
    with repl(provider, columns=120) as terminal:
        terminal.enter("/agents")
        terminal.wait_for("general")
        terminal.wait_until(lambda: any(line.startswith(name) and there in line for line in terminal.text.split("\n")))
        terminal.enter("/agents helper")
        terminal.wait_for("You help.")
        terminal.wait_for("tools        read, edit")
        terminal.enter("/agents nobody")
        terminal.wait_for("Unknown agent: nobody.")
        leave(terminal)


def test_unusable_agent_file_is_one_notice(provider: ProviderServer) -> None:
    path = find_places().config / "agents/bad.md"
    path.parent.mkdir(parents=True)
    path.write_text("---\nname: a b\n---\n")
    provider.script(text("Hello."))
    done = run_wolo("-p", *provider.flags, "hi")
    assert done.exit_code == 0
    assert done.stderr.count("This agent is left out") == 1


def test_agent_offer_is_equal_in_every_request(provider: ProviderServer) -> None:
    folder = find_places().config / "agents"
    folder.mkdir(parents=True)
    for name in ("zeta", "alpha"):
        (folder / f"{name}.md").write_text(f"---\ndescription: about {name}\n---\n")
    provider.script(call("glob", {"pattern": "*"}), text("Done."))
    run_wolo("-p", *provider.flags, "go")
    specs: list[Any] = [asked.json["tools"] for asked in provider.requests]
    assert specs[0] == specs[1]
    described = next(tool["function"]["description"] for tool in specs[0] if tool["function"]["name"] == "task")
    assert described.index("- alpha: about alpha") < described.index("- explore: ") < described.index("- zeta: about zeta")


def test_the_tool_can_be_hidden(provider: ProviderServer) -> None:
    provider.script(text("Hello."))
    run_wolo("-p", *provider.flags, "--set", 'tools.hide=["task"]', "hi")
    assert "task" not in [tool["function"]["name"] for tool in provider.requests[0].json["tools"]]
