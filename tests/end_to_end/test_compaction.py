"""A conversation that is summed up, seen from outside: it is kept, goes on in other processes, and a person has a say in it."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from tests.fakes import replies_anthropic, replies_gemini, replies_ollama, replies_responses
from tests.fakes.command import Completed, run_wolo, start_wolo
from tests.fakes.provider_server import KEY, Asked, ProviderServer
from tests.fakes.replies import Reply, call, sse, text, usage
from tests.fakes.screen import pty_wolo
from tests.sessions.samples import said, tool_turn
from wolo.messages.message import Message, user
from wolo.messages.parts import TextPart, ToolPart
from wolo.places import find_places
from wolo.sessions.entries import MessageEntry
from wolo.sessions.loading import LOAD_LIMIT_BYTES
from wolo.sessions.store import Store

SUMMARY = "## Goal\nTell long stories. SENTINEL-S\n## Next steps\nGo on."
STORY = "".join(f"Once upon a time there was word {number:03}. " for number in range(780))
"""Some 7,500 tokens, and no passage twice."""
WINDOW = "context.window=30000"


def talk(provider: ProviderServer, prompt: str, *options: str) -> Completed:
    done = run_wolo("-p", "-s", "long", "--set", WINDOW, *options, *provider.flags, prompt)
    assert done.exit_code == 0, done.stderr
    return done


def fill(provider: ProviderServer) -> None:
    """A session whose next prompt no longer fits."""
    provider.otherwise = text(STORY, size=4_000)
    for number in range(4):
        talk(provider, f"story {number}, SENTINEL-B{number}")
    assert not any(asked.is_summary for asked in provider.requests)


def asked_since(provider: ProviderServer, count: int) -> list[Asked]:
    return [asked for asked in provider.requests[count:] if not asked.is_summary]


def test_summed_session_keeps_its_bytes_in_every_process(provider: ProviderServer) -> None:
    fill(provider)
    provider.summary = text(SUMMARY)
    provider.otherwise = text("And so on.")
    count = len(provider.requests)
    for number in range(4):
        talk(provider, f"more {number}")
    assert sum(asked.is_summary for asked in provider.requests) == 1
    requests = asked_since(provider, count)
    first = requests[0]
    assert "SENTINEL-S" in str(first.messages)
    assert all(f"SENTINEL-B{number}" in str(first.messages) for number in range(4))
    for before, after in pairwise(requests):
        assert after.messages[: len(before.messages)] == before.messages
        assert after.json["tools"] == before.json["tools"]
    shown = run_wolo("sessions", "show", "long").stdout
    assert all(f"story {number}" in shown for number in range(4))
    wire = run_wolo("sessions", "wire", "long", "--as", "openai-chat").stdout
    assert "SENTINEL-S" in wire
    fork = run_wolo("-p", "--fork", "-c", "--set", WINDOW, *provider.flags, "aside")
    assert fork.exit_code == 0, fork.stderr
    assert "SENTINEL-S" in str(provider.requests[-1].messages)


def test_scripts_hear_of_it_and_it_counts(provider: ProviderServer) -> None:
    fill(provider)
    provider.summary = text(SUMMARY, usage=usage(20_000, 50))
    provider.otherwise = text("And so on.", usage=usage(9_000, 5))
    done = talk(provider, "more", "--output-format", "stream-json")
    (said,) = [line for line in done.lines if line.get("subtype") == "compaction"]
    assert (said["reason"], said["is_summarised"]) == ("window", True)
    assert said["tokens_after"] < said["tokens_before"]
    assert "summed up" in done.stderr
    (session,) = run_wolo("sessions", "list", "--json").json
    assert session["tokens"] == 4 * 110 + 20_050 + 9_005
    result = done.lines[-1]
    assert (result["num_turns"], result["usage"]["input_tokens"], result["usage"]["output_tokens"]) == (1, 29_000, 55)


def test_kill_during_a_summary_loses_and_changes_nothing(provider: ProviderServer) -> None:
    fill(provider)
    provider.otherwise = text("And so on.")
    for number, status in ((signal.SIGKILL, -9), (signal.SIGINT, 130)):
        provider.summary = sse(ending="stall", done=False)
        count = len(provider.requests)
        with start_wolo("-p", "-s", "long", "--set", WINDOW, *provider.flags, f"ended by {number}") as process:
            provider.wait_for_requests(count + 1)
            assert provider.requests[-1].is_summary
            process.send_signal(number)
            process.communicate(timeout=20)
            assert process.returncode == status
        assert "[compaction" not in run_wolo("sessions", "show", "long").stdout
    provider.summary = text(SUMMARY)
    talk(provider, "once more")
    assert "SENTINEL-S" in str(provider.requests[-1].messages)
    shown = run_wolo("sessions", "show", "long").stdout
    assert all(words in shown for words in ("story 0", "ended by 9", "ended by 2", "once more"))


def test_instructions_that_changed_meanwhile_hold_from_then_on(provider: ProviderServer) -> None:
    Path("AGENTS.md").write_text("Rule: SENTINEL-A1.", encoding="utf-8")
    written: list[int] = []

    def story(asked: Asked) -> Reply:
        written.append(len(asked.body))
        if len(written) == 2:
            Path("AGENTS.md").write_text("Rule: SENTINEL-A2.", encoding="utf-8")
        number = len(written)
        tale = " ".join(f"word{number}.{at:04}" for at in range(2_500))
        return call("read", {"path": "story.txt", "limit": number}, content=tale) if number < 6 else text("The end.")

    Path("story.txt").write_text("short", encoding="utf-8")
    provider.otherwise, provider.summary = story, text("useless")
    talk(provider, "tell it all: SENTINEL-B")
    asked = asked_since(provider, 0)
    systems = [request.messages[0]["content"] for request in asked]
    assert "SENTINEL-A1" in systems[1]
    assert "SENTINEL-A2" in systems[-1]
    assert all("SENTINEL-B" in str(request.messages[1:]) for request in asked)


def test_omitted_output_can_be_fetched_back(provider: ProviderServer) -> None:
    fill(provider)
    provider.summary = text(SUMMARY)

    def by_query(asked: Asked) -> Reply:
        return call("expand_message", {"query": "SENTINEL-B1"})

    def by_id(asked: Asked) -> Reply:
        found = re.search(r"\[(msg_\w+), line", asked.results[-1])
        assert found, asked.results[-1]
        return call("expand_message", {"id": found[1]})

    provider.script(by_query, by_id, text("Found."))
    talk(provider, "what did I say?")
    assert provider.requests[-1].results[-1] == "story 1, SENTINEL-B1"


ANSWERS: dict[str, Callable[[str], Reply]] = {
    "openai-chat": text,
    "xml": text,
    "anthropic": replies_anthropic.text,
    "gemini": replies_gemini.text,
    "ollama": replies_ollama.text,
    "openai-responses": lambda said: replies_responses.answer(replies_responses.message(said)),
}


@pytest.mark.parametrize("format", ANSWERS)
def test_summary_request_is_valid_in_every_format(provider: ProviderServer, format: str) -> None:
    history = [message for number in range(4) for message in (user(f"story {number}"), told(number))]
    with Store.open(find_places().data) as store:
        session = store.create(Path.cwd())
        store.append(session.id, [MessageEntry(message=message) for message in history])
    address = provider.base_url if format in ("openai-chat", "xml", "openai-responses") else provider.origin
    flags = ("--api", format, "--base-url", address, "--api-key", KEY, "-m", "custom/m", "--set", WINDOW)
    provider.summary, provider.otherwise = ANSWERS[format](SUMMARY), ANSWERS[format]("And so on.")
    for prompt in ("go on", "and on"):
        done = run_wolo("-p", "-r", session.id, *flags, prompt)
        assert (done.exit_code, done.stdout) == (0, "And so on.\n"), done.stderr
    summary, first, second = provider.requests
    assert summary.is_summary
    assert not first.is_summary
    assert b"SENTINEL-S" in first.body
    assert b"SENTINEL-S" in second.body
    assert b"expand_message" in first.body
    assert b"word3 word3" in first.body
    assert b"word0 word0" not in first.body


def told(number: int) -> Message:
    """A call with its result, and some 7,500 tokens."""
    part = ToolPart(tool="read", input={"path": "story.txt"}, status="completed", outcome="ok", output="short")
    return Message(role="assistant", parts=(TextPart(text=f"word{number} " * 5_000), part), finished=True)


def test_large_session_resumes_from_its_last_compaction(provider: ProviderServer) -> None:
    with Store.open(find_places().data) as store:
        session = store.create(Path.cwd(), name="long").id
        for number in range(40):
            store.append(session, [said(f"prompt {number} of the start {STORY[:10_000]}"), *tool_turn(number)])
    provider.summary, provider.otherwise = text(SUMMARY), text("And so on.")
    for number in range(2):
        talk(provider, f"more {number}")
    first, second = asked_since(provider, 0)
    assert second.messages[: len(first.messages)] == first.messages
    with Store.open(find_places().data) as store:
        assert store.load(session, most_bytes=LOAD_LIMIT_BYTES).unread
    with pty_wolo("-s", "long", "--set", "context.window=500000", *provider.flags, columns=140, rows=50) as terminal:
        terminal.say("/cost", "42 answers and 1 compaction in this session")
        terminal.say("/uncompact", "is sent again")
        terminal.say("/cost", "42 answers and 1 compaction in this session")
        terminal.say("/context", "84 messages sent")
        terminal.press("ctrl-d")
        assert terminal.wait_for_exit() == 0


# At the keyboard


def test_person_can_preview_compact_and_undo_it(provider: ProviderServer) -> None:
    fill(provider)
    provider.summary = text(SUMMARY, usage=usage(20_000, 50))
    with pty_wolo("-s", "long", *provider.flags, columns=140, rows=50) as terminal:
        terminal.say("/context", "8 messages sent")
        terminal.say("/compact --preview", "Nothing was changed; /compact does it.")
        assert not any(asked.is_summary for asked in provider.requests)
        terminal.say("/compact the words", "Compacted: ")
        (asked,) = [asked for asked in provider.requests if asked.is_summary]
        assert "the words" in asked.messages[-1]["content"]
        terminal.say("/cost", "and 1 compaction in this session")
        terminal.say("/context", "summary of omitted messages")
        terminal.say("/uncompact", "is sent again")
        terminal.say("/compact --nonsense", "no option --nonsense")
        terminal.press("ctrl-d")
        assert terminal.wait_for_exit() == 0
    assert "SENTINEL-S" not in run_wolo("sessions", "wire", "long", "--as", "openai-chat").stdout


def test_fully_shown_answer_stays_valid_after_compaction(provider: ProviderServer) -> None:
    fill(provider)
    provider.summary = text(SUMMARY, usage=usage(20_000, 50))
    provider.script(text("Well."))
    with pty_wolo("-s", "long", *provider.flags, columns=140, rows=50) as terminal:
        terminal.say("/compact", "Compacted: ")
        terminal.say("and now?", "Well.")
        terminal.say("/uncompact", "is sent again")
        assert not terminal.shows("Discard the answer")
        terminal.press("ctrl-d")
        assert terminal.wait_for_exit() == 0


def test_ctrl_c_stops_a_summary_and_nothing_else(provider: ProviderServer) -> None:
    fill(provider)
    provider.summary = sse(ending="stall", done=False)
    with pty_wolo("-s", "long", *provider.flags, columns=140) as terminal:
        terminal.wait_for_prompt()
        terminal.enter("/compact")
        terminal.wait_for("summing up the conversation")
        terminal.press("ctrl-c")
        terminal.wait_for("nothing was changed")
        terminal.say("/context", "8 messages sent")
        terminal.press("ctrl-d")
        assert terminal.wait_for_exit() == 0
