"""A line that the model watches for starts a turn while nothing runs: at the keyboard and through the server."""

from __future__ import annotations

from pathlib import Path

from tests.fakes.command import run_wolo
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import Hold, Reply, call, error, sse, text
from tests.fakes.screen import Terminal, pty_wolo
from tests.frontends.server.running_server import running
from wolo.conversation.resources.tool_environment import jobs_folder
from wolo.places import find_places
from wolo.tools.background.background_jobs import WOKEN_BY_LINES

COMMAND = "for n in one two three; do while [ ! -e $n ]; do sleep 0.05; done; echo ERROR $n; echo ERROR again $n; done; sleep 60"
BEGINS = (
    call("shell", {"command": COMMAND, "background": True}),
    call("jobs", {"action": "watch", "id": 1, "pattern": "ERROR"}),
    text("I watch it."),
)


def words(provider: ProviderServer) -> str:
    """The last user message."""
    return str(next(each["content"] for each in reversed(provider.requests[-1].messages) if each["role"] == "user"))


def begin(terminal: Terminal, provider: ProviderServer, *replies: Reply) -> None:
    provider.script(*BEGINS, *replies)
    terminal.wait_for_prompt()
    terminal.say("watch it", "I watch it.")


def print_line(terminal: Terminal, name: str) -> None:
    """Lets the job print, until its lines are in its output file: then they were looked at."""
    Path(name).touch()
    folder = jobs_folder(find_places().state)
    terminal.wait_until(lambda: any(f"again {name}\n" in path.read_text() for path in folder.glob("*-job-1.txt")))


def test_matching_line_starts_turn_at_the_keyboard(provider: ProviderServer) -> None:
    with pty_wolo("--yolo", *provider.flags) as terminal:
        begin(terminal, provider, text("I look at one."), text("I look at two."))
        Path("one").touch()
        terminal.wait_for("I look at one.")
        assert words(provider).startswith(WOKEN_BY_LINES)
        assert words(provider).endswith("ERROR one\n" + words(provider).splitlines()[-1])
        assert words(provider).splitlines()[-1].endswith("] ERROR again one")
        terminal.wait_for_prompt()
        terminal.type("not yet sent")
        Path("two").touch()
        terminal.wait_for("I look at two.")
        assert "ERROR one" not in words(provider)
        terminal.wait_for("not yet sent")
        assert not terminal.shows("the user wrote nothing")  # that is for the model
        assert terminal.shows("] ERROR again two")


def test_interrupted_turn_waits_for_next_prompt(provider: ProviderServer) -> None:
    hold = Hold()
    with pty_wolo("--yolo", *provider.flags) as terminal:
        begin(terminal, provider, sse(hold), text("Yes."), text("I look at three."))
        Path("one").touch()
        hold.wait_until_reached()
        terminal.press("escape")
        terminal.wait_for("Interrupted.")
        print_line(terminal, "two")
        terminal.say("still there?", "Yes.")
        assert "ERROR two" in words(provider)
        assert len(provider.requests) == 5
        Path("three").touch()
        terminal.wait_for("I look at three.")


def test_turn_that_fails_makes_later_lines_wait(provider: ProviderServer) -> None:
    waits = "while [ ! -e {0} ]; do sleep 0.05; done; echo ERROR {0}; "
    begins = (call("shell", {"command": f"{waits.format('one')}{waits.format('two')}sleep 2", "background": True}), *BEGINS[1:])
    refused = error(401, {"error": {"message": "This key has expired."}})
    with pty_wolo("--yolo", *provider.flags) as terminal:
        provider.script(*begins, refused, text("Yes."))
        terminal.say("watch it", "I watch it.")
        Path("one").touch()
        terminal.wait_for("This key has expired.")
        Path("two").touch()
        terminal.wait_for("has ended: exit 0")
        assert len(provider.requests) == 4
        terminal.say("still there?", "Yes.")
        assert "ERROR two" in words(provider)


def test_setting_keeps_lines_for_next_prompt(provider: ProviderServer) -> None:
    with pty_wolo("--yolo", "--set", "shell.wake=false", *provider.flags) as terminal:
        begin(terminal, provider, text("Yes."))
        print_line(terminal, "one")
        terminal.say("/jobs", "runs")
        terminal.say("anything?", "Yes.")
        assert [line.rpartition("] ")[2] for line in words(provider).splitlines() if "] " in line]
        assert len(provider.requests) == 4


def test_matching_line_starts_turn_in_server(provider: ProviderServer) -> None:
    with running(provider, "--yolo") as server:
        session = server.new(mode="yolo")
        events = server.events(session)
        provider.script(*BEGINS, text("I look at one."))
        server.prompt(session, "watch it")
        assert events.result()["result"] == "I watch it."
        seen = len(events.lines)
        Path("one").touch()
        assert events.result(after=seen)["result"] == "I look at one."
        prompts = [line["message"]["content"] for line in events.of("user") if "tool_result" not in str(line)]
        assert len(prompts) == 1
        assert "ERROR one" in next(line["text"] for line in events.of("notice"))
        listed = server.get(f"/v1/sessions/{session}")
        assert "ERROR one" not in str(listed.get("title"))


def test_words_of_a_job_are_no_prompt(provider: ProviderServer) -> None:
    with pty_wolo("--yolo", *provider.flags) as terminal:
        begin(terminal, provider, text("I look at one."), text("No."), text("I look at two."), text("Yes."))
        Path("one").touch()
        terminal.wait_for("I look at one.")
        terminal.wait_for_prompt()
        terminal.enter("/retry")
        terminal.wait_for("no words of yours")
        terminal.wait_for_prompt()
        provider.forget_prefix()
        terminal.say("/rewind 2", "Back to before: Lines of background jobs")
        terminal.say("draft is empty?", "No.")
        assert words(provider).startswith("draft is empty?")
        Path("two").touch()
        terminal.wait_for("I look at two.")
        terminal.say("/undo", "no files change")
        provider.forget_prefix()
        terminal.say("and now?", "Yes.")
        assert words(provider).startswith("and now?")
        assert len(provider.requests) == 7


def test_matching_line_starts_turn_after_model_was_changed(provider: ProviderServer) -> None:
    with running(provider, "--yolo") as server:
        session = server.new(mode="yolo")
        events = server.events(session)
        provider.script(text("Hello."), *BEGINS, text("I look at one."))
        server.prompt(session, "hello")
        assert events.result()["result"] == "Hello."
        server.post(f"/v1/sessions/{session}/change", model="custom/other-model")
        provider.forget_prefix()
        seen = len(events.lines)
        server.prompt(session, "watch it")
        assert events.result(after=seen)["result"] == "I watch it."
        seen = len(events.lines)
        Path("one").touch()
        assert events.result(after=seen)["result"] == "I look at one."


def test_resumed_session_has_lines_but_no_job(provider: ProviderServer) -> None:
    with pty_wolo("--yolo", *provider.flags) as terminal:
        begin(terminal, provider, text("I look at one."))
        Path("one").touch()
        terminal.wait_for("I look at one.")
        terminal.wait_for_prompt()
        terminal.enter("/exit")
        terminal.wait_for_exit()
    Path("two").touch()
    provider.forget_prefix()
    provider.script(text("It is over."))
    done = run_wolo("-p", "-c", *provider.flags, "and now?")
    assert (done.exit_code, done.stdout) == (0, "It is over.\n")
    assert "ERROR one" in str(provider.requests[-1].messages)
    assert "ERROR two" not in str(provider.requests[-1].messages)
