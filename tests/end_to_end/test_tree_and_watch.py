"""Looking at a session from another process: its tree, and its work while it goes on."""

from __future__ import annotations

import json
import subprocess
import threading
from pathlib import Path

from tests.fakes.command import run_wolo, start_wolo
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import Hold, call, delta, finish, sse, text


def listen(watcher: subprocess.Popen[bytes], lines: list[str], seen: threading.Event) -> None:
    assert watcher.stdout
    for line in watcher.stdout:
        lines.append(line.decode())
        if b"apples" in line:
            seen.set()


def test_session_is_followed_from_another_process(provider: ProviderServer) -> None:
    hold = Hold()
    provider.script(call("read", {"path": "a.txt"}), sse(delta("The file "), hold, delta("holds apples."), finish("stop")))
    Path("a.txt").write_text("apples\n")
    lines: list[str] = []
    seen = threading.Event()
    with start_wolo("-p", "what is in a.txt?", *provider.flags) as worker:
        hold.wait_until_reached()
        with start_wolo("sessions", "watch", "--from-start") as watcher:
            listener = threading.Thread(target=listen, args=(watcher, lines, seen))
            listener.start()
            came = seen.wait(60)
            hold.release()
            assert came, lines
            assert worker.wait(60) == 0
            assert watcher.wait(60) == 0
            listener.join()
    told = "".join(lines)
    assert "› what is in a.txt?" in told
    assert "● read" in told
    assert told.count("The file holds apples.") == 1


def test_idle_session_is_reported_at_once(provider: ProviderServer) -> None:
    provider.script(text("Hello."))
    assert run_wolo("-p", "hi", *provider.flags).exit_code == 0
    followed = run_wolo("sessions", "watch", "--from-start", "--json")
    assert followed.exit_code == 0
    assert [json.loads(line)["type"] for line in followed.stdout.splitlines()] == ["prompt", "text"]
    assert run_wolo("sessions", "watch", "no-such").exit_code == 3


def test_the_tree_is_drawn_and_told_as_json(provider: ProviderServer) -> None:
    provider.script(text("One."), text("Two."))
    run_wolo("-p", "one", *provider.flags)
    run_wolo("-p", "two", "-c", *provider.flags)
    drawn = run_wolo("sessions", "tree").stdout
    assert "  1 ● one\n  2 ● two  ← here\n" in drawn
    places = json.loads(run_wolo("sessions", "tree", "--json").stdout)
    assert [(place["number"], place["text"], place["parent"]) for place in places] == [(1, "one", 0), (2, "two", 1)]
    assert run_wolo("sessions", "tree", "no-such").exit_code == 3
