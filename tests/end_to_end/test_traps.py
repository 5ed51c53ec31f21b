"""Known odd answers of providers through the whole program: the next request, and the result."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.fakes.command import run_wolo
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import Piece, Reply, call, calls, delta, error, finish, sse, text, whole

A, B = '{"path":"a.txt"}', '{"path":"b.txt"}'
AAA, BBB = "1→AAA\n[1 line.]", "1→BBB\n[1 line.]"
WRITE = json.dumps({"path": "new.txt", "content": "x" * 80})
QUICK = ("--set", "retry.tries=2")
CALLED, STOPPED = finish("tool_calls"), finish("stop")


@pytest.fixture(autouse=True)
def files(isolated: Path) -> None:
    Path("a.txt").write_text("AAA")
    Path("b.txt").write_text("BBB")


def part(name: str | None = None, arguments: Any = None, **more: Any) -> dict[str, Any]:
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    return {**more, "function": function}


def fragments(*parts: dict[str, Any]) -> dict[str, Any]:
    return delta(tool_calls=list(parts))


# Calls, however they are numbered, cut and named

CALLS: dict[str, tuple[Reply, list[str]]] = {
    "T1 no index": (sse(fragments(part("read", "{", id="c1")), fragments(part(None, A[1:])), CALLED), [AAA]),
    "T2 no index, two chunks": (
        sse(fragments(part("read", A, id="c1")), fragments(part("read", B, id="c2")), CALLED),
        [AAA, BBB],
    ),
    "T3 no index, one chunk": (sse(fragments(part("read", A, id="c1"), part("read", B, id="c2")), CALLED), [AAA, BBB]),
    "T4 second without index": (
        sse(fragments(part("read", A, index=0, id="c1")), fragments(part("read", B, id="c2")), CALLED),
        [AAA, BBB],
    ),
    "T5 new id on the same index": (
        sse(fragments(part("read", A, index=0, id="c1")), fragments(part("read", B, index=0, id="c2")), CALLED),
        [AAA, BBB],
    ),
    "T6 interleaved": (
        sse(
            fragments(part("read", "", index=0, id="c1")),
            fragments(part("read", "", index=1, id="c2")),
            fragments(part(None, A[:5], index=0)),
            fragments(part(None, B[:7], index=1)),
            fragments(part(None, A[5:], index=0)),
            fragments(part(None, B[7:], index=1)),
            CALLED,
        ),
        [AAA, BBB],
    ),
    "T7 sent twice": (sse(*[fragments(part("read", A, index=0, id="c1"))] * 2, CALLED), [AAA]),
    "T9 empty means absent": (
        sse(fragments(part("read", A[:5], index=0, id="c1")), fragments(part("", A[5:], index=0, id="")), CALLED),
        [AAA],
    ),
    "T11 no id": (sse(fragments(part("read", A, index=0)), fragments(part("read", B, index=1)), CALLED), [AAA, BBB]),
    "T17 markup": (
        sse(delta("<function=read><parameter=path>a.txt</para"), delta("meter></function>"), STOPPED),
        [AAA],
    ),
    "T17 beside a real call": (
        sse(
            delta('<tool_call>{"name":"read","arguments":{"path":"a.txt"}}</tool_call>'),
            fragments(part("read", A, id="c1")),
            CALLED,
        ),
        [AAA],
    ),
    "T25 stop beside calls": (call("read", A, finish_reason="stop"), [AAA]),
    "one document": (
        whole(
            {
                "choices": [
                    {
                        "message": {"content": None, "tool_calls": [part("read", A, id="c1", type="function")]},
                        "finish_reason": "stop",
                    }
                ]
            }
        ),
        [AAA],
    ),
}


@pytest.mark.sweep(every=3)
@pytest.mark.parametrize("row", CALLS)
def test_meant_calls_run_once_in_order(provider: ProviderServer, row: str) -> None:
    reply, results = CALLS[row]
    provider.script(reply, text("done"))
    done = run_wolo("-p", *provider.flags, "go")
    assert (done.exit_code, done.stdout) == (0, "done\n"), done.stderr
    assert provider.requests[1].results == results


@pytest.mark.parametrize("size_bytes", [1, 7])
def test_cuts_of_the_bytes_change_nothing(provider: ProviderServer, size_bytes: int) -> None:
    provider.script(
        calls(("read", A), ("read", B), reasoning="你好🙂", size=3).split(size_bytes), text("é🙂", size=1).split(size_bytes)
    )
    done = run_wolo("-p", *provider.flags, "go")
    assert (done.exit_code, done.stdout) == (0, "é🙂\n")
    assert provider.requests[1].results == [AAA, BBB]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ('{"command":"touch X", description":"y"}', "not valid JSON"),
        ('{"path":"a.txt"}}', "Extra data"),
        ('{"path":"a.txt"}{"path":"a.txt"}', "Extra data"),
        ('{"path":"a.txt","path":"b.txt"}', "is duplicated"),
        ('{"path":"a.txt","limit":NaN}', "NaN is not a JSON number"),
        ('{"path":' + "[" * 10_000 + "]" * 10_000 + "}", "nested"),
        ("", "`path` is missing"),
        (" ", "`path` is missing"),
        ("null", "`path` is missing"),
    ],
    ids=["T13 quotes", "T13 brace", "T13 doubled", "double key", "NaN", "deep", "T12 empty", "T12 blank", "T12 null"],
)
def test_senseless_arguments_return_with_a_reason(provider: ProviderServer, arguments: str, said: str) -> None:
    provider.script(calls(("read", arguments), ("read", B)), text("done"))
    assert run_wolo("-p", *provider.flags, "go").exit_code == 0
    bad, good = provider.requests[1].results
    assert said in bad
    assert good == BBB


def test_reused_id_is_another_call_after_resume_too(provider: ProviderServer) -> None:
    provider.script(
        call("read", A, id="read:0"), call("read", B, id="read:0"), text("done"), call("read", A, id="read:0"), text("done")
    )
    for _ in range(2):
        assert run_wolo("-p", *provider.flags, "-s", "mine", "go").exit_code == 0
    assert provider.requests[-1].results == [AAA, BBB, AAA]


# What no attempt may leave behind


class Broken(NamedTuple):
    events: list[dict[str, Any] | Piece]
    done: bool = False


BROKEN = {
    "T28 text": Broken([delta("half of")]),
    "T28 call": Broken([fragments(part("write", WRITE, index=0, id="c"))]),
    "T28 half a call, done": Broken([fragments(part("write", WRITE[:40], index=0, id="c"))], done=True),
    "T28 nothing": Broken([]),
    "T24 network_error": Broken([delta("half of"), finish("network_error")], done=True),
    "T31 error in the stream": Broken(
        [delta("half of"), {"choices": [], "error": {"code": 502, "message": "upstream"}}], done=True
    ),
    "T30 error event": Broken([delta("half of"), b'event: error\ndata: {"message": "overloaded"}\n\n']),
}


@pytest.mark.sweep(every=3)
@pytest.mark.parametrize("row", BROKEN)
@pytest.mark.parametrize("ending", ["clean", "reset"])
def test_a_broken_attempt_is_taken_back_whole(provider: ProviderServer, row: str, ending: Any) -> None:
    broken = BROKEN[row]
    provider.script(sse(*broken.events, done=broken.done, ending=ending), text("all of it"))
    done = run_wolo("-p", *QUICK, *provider.flags, "go")
    assert (done.exit_code, done.stdout) == (0, "all of it\n"), done.stderr
    assert len(provider.requests) == 2
    assert not Path("new.txt").exists()


@pytest.mark.parametrize("arguments", [WRITE, WRITE[:40], '{"path": "new.txt"}'], ids=["whole", "cut", "without content"])
def test_cut_answer_runs_no_call(provider: ProviderServer, arguments: str) -> None:
    provider.script(*[call("write", arguments, finish_reason="length")] * 3)
    done = run_wolo("-p", *provider.flags, "go")
    assert (done.exit_code, len(provider.requests)) == (1, 3)
    assert all("cut off" in result for result in provider.requests[-1].results)
    assert not Path("new.txt").exists()


@pytest.mark.parametrize("word", ["sensitive", "content_filter", "refusal"])
def test_no_call_of_a_refused_answer_is_run(provider: ProviderServer, word: str) -> None:
    provider.script(call("write", WRITE, finish_reason=word))
    done = run_wolo("--json", *provider.flags, "go")
    assert (done.exit_code, done.json["error"]["kind"]) == (1, "content_refused")
    assert not Path("new.txt").exists()


# Calls that are only quoted

WRITTEN = f'<tool_call>{{"name":"write","arguments":{WRITE}}}</tool_call>'


def test_answer_explaining_tool_calls_calls_none(provider: ProviderServer) -> None:
    explained = f"They write\n\n```\n{WRITTEN}\n```\n\nor `{WRITTEN}` in one line."
    provider.script(text(explained))
    done = run_wolo("-p", "--yolo", *provider.flags, "how do Hermes models call tools?")
    assert (done.exit_code, done.stdout) == (0, f"{explained}\n")
    assert not Path("new.txt").exists()


def test_fenced_call_at_the_end_needs_a_person(provider: ProviderServer) -> None:
    provider.script(text(f"They write so:\n```\n{WRITTEN}\n```"), text("That was an example."))
    done = run_wolo("--json", "--yolo", *provider.flags, "how do Hermes models call tools?")
    assert done.exit_code == 4
    assert [denial["tool"] for denial in done.json["permission_denials"]] == ["write"]
    provider.script(text(f"They write so:\n```\n{WRITTEN}\n```"), text("That was an example."))
    done = run_wolo("-p", "--yolo", *provider.flags, "how do Hermes models call tools?")
    assert "needs your approval" in done.stderr
    assert "--allow" not in done.stderr
    assert not Path("new.txt").exists()


# How an answer ends

CALL_IN_THOUGHT = delta(reasoning_content=f'<tool_call>{{"name":"read","arguments":{A}}}</tool_call>')
LINES = Reply(pieces=(json.dumps(delta("Hi")).encode() + b"\n" + json.dumps(STOPPED).encode(),))
PAGE = error(200, "<html><h1>Sign in</h1></html>", {"content-type": "text/html"})
FILTERED = error(500, {"error": {"message": "flagged by the content filter"}})

ENDS: dict[str, tuple[list[Reply], int, int, str | None]] = {
    "T18 a call while thinking": ([sse(CALL_IN_THOUGHT, STOPPED)] * 2, 2, 1, "bad_answer"),
    "T24 full window": ([sse(delta("Hi"), finish("model_context_window_exceeded"))], 1, 1, "context_overflow"),
    "T24 unknown word": ([sse(delta("Hi"), finish("eos"))], 1, 0, None),
    "T26 calls announced": ([sse(delta("I will"), CALLED)] * 2, 2, 1, "bad_answer"),
    "T27 only thinking": ([sse(delta(reasoning_content="hm"), STOPPED)] * 2, 2, 1, "bad_answer"),
    "a refusal without a word": ([sse(finish("content_filter"))], 1, 1, "content_refused"),
    "T30 quota in the stream": ([sse({"error": {"message": "quota exceeded"}})], 1, 1, "quota"),
    "T33 page": ([PAGE], 1, 1, "bad_answer"),
    "T33 empty": ([error(200, "")] * 2, 2, 75, "unavailable"),
    "lines of JSON": ([LINES], 1, 1, "bad_answer"),
    "T34 wait too long": ([error(429, "slow down", {"retry-after": "86400"})], 1, 75, "quota"),
    "T35 business code in the stream": ([sse({"error": {"code": 1302, "message": "busy"}}), text("Hi")], 2, 0, None),
    "T36 bad parameter": ([error(400, {"error": {"code": "1210", "message": "bad parameter"}})], 1, 1, "bad_request"),
    "T37 overflow": ([error(400, {"error": {"message": "maximum context length is 8192 tokens"}})], 1, 1, "context_overflow"),
    "T38 filter as a server error": ([FILTERED], 1, 1, "content_refused"),
    "complete, but never closed": ([sse(delta("Hi"), STOPPED, done=False, ending="cut")], 1, 0, None),
}


@pytest.mark.sweep(every=3)
@pytest.mark.parametrize("row", ENDS)
def test_every_end_has_its_requests_status_and_kind(provider: ProviderServer, row: str) -> None:
    replies, requests, exit_code, kind = ENDS[row]
    provider.script(*replies)
    done = run_wolo("--json", *QUICK, "--set", "retry.total_s=3", *provider.flags, "go")
    assert (len(provider.requests), done.exit_code) == (requests, exit_code), done.stderr
    assert (done.json["error"] or {"kind": None})["kind"] == kind
    assert done.json["result"] == ("Hi" if exit_code == 0 else done.json["result"])
    assert done.json["exit_code"] == exit_code
