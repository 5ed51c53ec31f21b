"""The scripted provider, seen by a plain client: what is scripted is what comes over the wire, and nothing bad passes unseen."""

from __future__ import annotations

import http.client
import json
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import Hold, call, calls, error, raw, sse, text


@pytest.fixture
def server() -> Iterator[ProviderServer]:
    """Not the fixture that checks itself: these tests look at the problems."""
    with ProviderServer() as running:
        yield running


def ask(server: ProviderServer, *messages: dict[str, Any], path: str = "/v1/chat/completions") -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    try:
        said = list(messages) or [{"role": "user", "content": "hi"}]
        connection.request("POST", path, json.dumps({"model": "m", "messages": said}), {"content-type": "application/json"})
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def events(body: bytes) -> list[dict[str, Any]]:
    return [json.loads(line[6:]) for line in body.decode().split("\n\n") if line.startswith("data: {")]


def test_scripted_answer_streams_and_request_is_kept(server: ProviderServer) -> None:
    server.script(text("Hello there, this is a longer answer."))
    status, body = ask(server)
    assert status == 200
    assert (
        "".join(each["choices"][0]["delta"].get("content", "") for each in events(body))
        == "Hello there, this is a longer answer."
    )
    assert body.endswith(b"data: [DONE]\n\n")
    assert [asked.json["messages"][0]["content"] for asked in server.requests] == ["hi"]
    assert server.problems == []


def test_call_ids_are_distinct_and_arguments_fragmented(server: ProviderServer) -> None:
    server.script(calls(("read", {"path": "a" * 100}), ("read", {"path": "b"})))
    _, body = ask(server)
    fragments = [each for event in events(body) for each in event["choices"][0]["delta"].get("tool_calls", [])]
    assert len({each["id"] for each in fragments if "id" in each}) == 2
    assert len([each for each in fragments if each["index"] == 0]) > 3


def test_one_connection_serves_several_requests(server: ProviderServer) -> None:
    server.script(text("one"), text("two"))
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    body = json.dumps({"messages": [{"role": "user", "content": "hi"}]})
    for _ in range(2):
        connection.request("POST", "/v1/chat/completions", body)
        connection.getresponse().read()
    connection.close()
    assert [asked.connection for asked in server.requests] == [1, 1]


def test_a_cut_stream_ends_without_its_terminator(server: ProviderServer) -> None:
    server.script(text("never finished").cut_at(40))
    with pytest.raises(http.client.IncompleteRead):
        ask(server)


def test_a_reset_tears_the_connection_down(server: ProviderServer) -> None:
    server.script(text("torn").ends("reset"))
    with pytest.raises((ConnectionResetError, http.client.IncompleteRead)):
        ask(server)


def test_a_server_that_says_nothing_can_be_scripted(server: ProviderServer) -> None:
    server.script(raw())
    with pytest.raises(http.client.RemoteDisconnected):
        ask(server)


def test_a_body_can_be_torn_at_every_byte(server: ProviderServer) -> None:
    server.script(text("你好🙂é").split(1))
    _, body = ask(server)
    assert body == text("你好🙂é").body


def test_an_error_has_its_status_headers_and_body(server: ProviderServer) -> None:
    server.script(error(429, {"error": {"code": "1302"}}, {"retry-after": "2"}))
    status, body = ask(server)
    assert (status, json.loads(body)) == (429, {"error": {"code": "1302"}})


def test_a_reply_can_be_made_from_the_request(server: ProviderServer) -> None:
    server.script(lambda asked: text(asked.messages[-1]["content"].upper()))
    _, body = ask(server, {"role": "user", "content": "shout"})
    assert b"SHOUT" in body


def test_hold_lets_the_test_continue_the_stream(server: ProviderServer) -> None:
    hold = Hold()
    server.script(sse({"a": 1}, hold, {"b": 2}))
    answers: list[bytes] = []
    client = threading.Thread(target=lambda: answers.append(ask(server)[1]))
    client.start()
    hold.wait_until_reached()
    assert answers == []
    hold.release()
    client.join(timeout=10)
    assert answers[0].count(b"data:") == 3


def test_client_hanging_up_during_a_stall_is_noticed(server: ProviderServer) -> None:
    server.script(sse({"a": 1}, done=False, ending="stall"))
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    connection.request("POST", "/v1/chat/completions", json.dumps({"messages": [{"role": "user", "content": "hi"}]}))
    response = connection.getresponse()
    response.readline()
    response.close()
    connection.close()
    assert server.wait_for_requests(1)[0].client_gone.wait(10)


def test_a_request_nobody_scripted_is_a_problem(server: ProviderServer) -> None:
    status, _ = ask(server)
    assert status == 400
    with pytest.raises(AssertionError, match="the script has run out"):
        server.check()


def test_an_invalid_request_is_a_problem(server: ProviderServer) -> None:
    server.script(text("fine"))
    ask(server, {"role": "user", "content": "hi"}, {"role": "tool", "tool_call_id": "call_9", "content": "an orphan"})
    with pytest.raises(AssertionError, match="bad requests"):
        server.check()


def test_rewritten_history_is_a_problem_unless_announced(server: ProviderServer) -> None:
    server.script(text("a"), text("b"), text("c"))
    ask(server, {"role": "user", "content": "first"})
    server.forget_prefix()
    ask(server, {"role": "user", "content": "second"})
    assert server.problems == []
    ask(server, {"role": "user", "content": "third"})
    assert server.problems


def test_an_expected_problem_must_appear(server: ProviderServer) -> None:
    server.expect_problem("ran on the rocks")
    with pytest.raises(AssertionError, match="did not appear"):
        server.check()


def test_model_lists_are_not_found_unless_scripted(server: ProviderServer) -> None:
    server.pages["/v1/models"] = error(200, {"data": [{"id": "m"}]})
    for path, status in (("/v1/models", 200), ("/v1/other", 404)):
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
        connection.request("GET", path)
        response = connection.getresponse()
        response.read()
        connection.close()
        assert response.status == status
    assert len(server.looked_up) == 2


def test_the_network_ends_at_this_machine() -> None:
    with pytest.raises(OSError, match="this machine only"):
        socket.create_connection(("192.0.2.1", 80), timeout=1)
    with pytest.raises(OSError, match="this machine only"):
        socket.create_connection(("example.org", 80), timeout=1)


def test_a_call_helper_may_carry_broken_arguments(server: ProviderServer) -> None:
    server.script(call("shell", '{"command":"touch X", description":"y"}'))
    _, body = ask(server)
    written = "".join(
        each["function"]["arguments"] for event in events(body) for each in event["choices"][0]["delta"].get("tool_calls", [])
    )
    assert written == '{"command":"touch X", description":"y"}'
