"""Progress that the terminal shows during a turn, and what can be expanded afterwards."""

from __future__ import annotations

from pathlib import Path

from tests.end_to_end.test_repl import leave, repl, wait_for_prompt
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import Hold, call, delta, finish, sse, text, usage

CTRL_O = "\x0f"
LOUD = "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do echo out$i; done; while [ ! -e on ]; do sleep 0.05; done; exit 3"


def test_running_command_shows_newest_lines_then_its_end(provider: ProviderServer) -> None:
    provider.script(call("shell", {"command": LOUD}), text("Done."))
    with repl(provider, "--mode", "yolo", "--sandbox", "off") as terminal:
        terminal.enter("do it")
        terminal.wait_until(lambda: any(line.strip(" │") == "out12" for line in terminal.lines), complaint="no newest line")
        assert "out9" not in "\n".join(terminal.lines)
        terminal.wait_until(
            lambda: ("1 s" if terminal.is_narrow else "1 s · Esc stops") in "\n".join(terminal.lines),
            complaint="its seconds stood still",
        )
        Path("on").touch()
        terminal.wait_for("Done.")
        wait_for_prompt(terminal)
        terminal.wait_for("exit 3")
        terminal.wait_for("4 more lines · Ctrl-O expands")
        assert not terminal.shows("  out4\n")
        terminal.type(CTRL_O)
        terminal.wait_for("  out4\n")
        terminal.type("q")
        terminal.wait_until(lambda: not terminal.is_alternate)
        leave(terminal)


def test_unfinished_line_is_readable_while_growing(provider: ProviderServer) -> None:
    hold = Hold()
    provider.script(sse(delta("These are the first "), hold, delta("words.\n"), finish("stop", usage())))
    with repl(provider) as terminal:
        terminal.enter("talk")
        terminal.wait_for("These are the first")
        hold.release()
        terminal.wait_for("These are the first words.")
        wait_for_prompt(terminal)
        leave(terminal)
    assert terminal.times("These are the first") == 1


def test_todo_list_stays_visible_while_something_is_open(provider: ProviderServer) -> None:
    todo = [{"text": "look", "status": "completed"}, {"text": "mend it", "status": "in_progress"}]
    done = [{**item, "status": "completed"} for item in todo]
    provider.script(call("todo", {"items": todo}), text("Begun."), call("todo", {"items": done}), text("All done."))
    with repl(provider, rows=30) as terminal:
        terminal.enter("begin")
        terminal.wait_for("Begun.")
        terminal.wait_until(lambda: "  1 of 2 done" in terminal.lines, complaint="the list was not to be seen")
        terminal.enter("go on")
        terminal.wait_for("All done.")
        wait_for_prompt(terminal)
        terminal.wait_until(lambda: "  1 of 2 done" not in terminal.lines)
        leave(terminal)


def test_a_silent_stream_is_said_to_be_silent(provider: ProviderServer) -> None:
    hold = Hold()
    provider.script(sse(delta("Some words"), hold, finish("stop", usage())))
    with repl(provider) as terminal:
        terminal.enter("talk")
        terminal.wait_for("no data for 6 s")
        hold.release()
        wait_for_prompt(terminal)
        leave(terminal)
