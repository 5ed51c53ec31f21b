"""`--fallback-model`: another model answers when the first cannot be reached."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.fakes import replies_anthropic
from tests.fakes.command import Completed, run_wolo
from tests.fakes.provider_server import KEY, MODEL, ProviderServer
from tests.fakes.replies import Reply, call, delta, error, raw, sse, text
from tests.fakes.screen import pty_wolo

OTHER_KEY = "other-key-0123456789abcdef"
BUSY = error(503, {"error": {"message": "busy"}})
QUICK = ("--set", "retry.tries=1")


@pytest.fixture
def second() -> Iterator[ProviderServer]:
    with ProviderServer() as server:
        yield server
    server.check()


def to(second: ProviderServer, model: str = "second/other-model") -> tuple[str, ...]:
    settings = {"base_url": second.base_url, "api_key": OTHER_KEY, "any_model": "true"}
    sets = [word for name, value in settings.items() for word in ("--set", f"providers.second.{name}={value}")]
    return (*QUICK, *sets, "--fallback-model", model)


def ask(provider: ProviderServer, second: ProviderServer, *more: str, format: str = "stream-json") -> Completed:
    return run_wolo("-p", "--output-format", format, *provider.flags, *to(second), *more, "go")


@pytest.mark.parametrize(
    "failure",
    [
        BUSY,
        error(429, {"error": {"message": "slow down"}}),
        error(429, {"error": {"code": "1308", "message": "Your limit will reset at 2031-01-02 03:04:05"}}),
        raw(),
        sse(delta("half of it"), done=False),
    ],
    ids=["busy", "limited", "used up", "hung up", "cut off"],
)
def test_the_fallback_answers_what_the_first_cannot(provider: ProviderServer, second: ProviderServer, failure: Reply) -> None:
    provider.script(failure)
    second.script(call("glob", {"pattern": "*"}), text("Here I am."))
    done = ask(provider, second)
    assert done.exit_code == 0, done.stderr
    told = next(line for line in done.lines if line.get("subtype") == "fallback")
    assert told["model"] == "second/other-model"
    assert told["error"]["message"]
    result = done.lines[-1]
    assert (result["result"], result["model"], result["num_turns"]) == ("Here I am.", "second/other-model", 2)
    assert len(provider.requests) == 1  # the rest of the turn is the fallback's
    assert {asked.headers["authorization"] for asked in second.requests} == {f"Bearer {OTHER_KEY}"}
    assert second.requests[0].json["model"] == "other-model"
    assert "second/other-model answers instead" in done.stderr


def test_the_fallback_may_speak_another_language(provider: ProviderServer, second: ProviderServer) -> None:
    """The first model's turn, thinking and call included, goes on in the other's format."""
    provider.script(call("glob", {"pattern": "*"}, reasoning="Look around.", content="I look."), BUSY)
    second.script(replies_anthropic.text("Nothing is here."))
    done = ask(provider, second, "--set", "providers.second.api=anthropic", "--set", f"providers.second.base_url={second.origin}")
    assert done.exit_code == 0, done.stderr
    assert done.lines[-1]["result"] == "Nothing is here."
    assert second.requests[0].path.startswith("/v1/messages")
    kinds = [part["type"] for message in second.requests[0].json["messages"] for part in message["content"]]
    assert kinds == ["text", "text", "tool_use", "tool_result"]


def test_the_next_prompt_tries_the_first_model_again(provider: ProviderServer, second: ProviderServer) -> None:
    provider.script(BUSY, text("I am back."))
    second.script(text("Here I am."))
    with pty_wolo(*provider.flags, *to(second)) as terminal:
        terminal.wait_for_prompt()
        terminal.enter("one")
        terminal.wait_for("Here I am.")
        terminal.wait_for("second/other-model answers instead")
        terminal.enter("two")
        terminal.wait_for("I am back.")
        terminal.press("ctrl-d")
        assert terminal.wait_for_exit() == 0
    assert [message["content"] for message in provider.requests[1].messages[1:]] == ["one", "Here I am.", "two"]


@pytest.mark.parametrize(
    ("failure", "exit_code"),
    [(error(401, {"error": {"message": "bad key"}}), 1), (error(400, {"error": {"message": "bad request"}}), 1)],
    ids=["key", "request"],
)
def test_error_no_other_model_cures_ends_the_turn(
    provider: ProviderServer, second: ProviderServer, failure: Reply, exit_code: int
) -> None:
    provider.script(failure)
    done = ask(provider, second)
    assert done.exit_code == exit_code
    assert not second.requests
    assert done.lines[-1]["model"] == f"custom/{MODEL}"


@pytest.mark.parametrize("failure", [BUSY, error(401, {"error": {"message": "bad key"}})], ids=["busy too", "bad key"])
def test_two_failures_name_both_and_allow_another_try(provider: ProviderServer, second: ProviderServer, failure: Reply) -> None:
    provider.script(BUSY)
    second.script(failure)
    done = ask(provider, second)
    assert done.exit_code == 75
    said = done.lines[-1]["error"]["message"]
    assert said.startswith("busy")
    assert "second/other-model" in said
    assert OTHER_KEY not in done.stdout + done.stderr
    assert KEY not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--fallback-model", "zai/no-such-model"), "no-such-model"),
        (("--fallback-model", "zai/glm-5.2"), "ZAI_API_KEY"),
        (("--max-cost", "1"), "price"),
    ],
)
def test_unusable_fallback_is_reported_before_anything_is_sent(
    provider: ProviderServer, second: ProviderServer, flags: tuple[str, ...], said: str
) -> None:
    done = run_wolo("-p", "--json", *provider.flags, *to(second), *flags, "go")
    assert done.exit_code == 2, done.stdout
    assert said in done.json["error"]["message"] + done.json["error"]["hint"]
    assert not provider.requests


def test_run_key_and_address_belong_to_first_model(provider: ProviderServer, second: ProviderServer) -> None:
    """Another model of the same server is asked there, another provider at its own address with its own key."""
    provider.script(BUSY, text("I am the smaller one."))
    done = run_wolo("-p", *provider.flags, *QUICK, "--fallback-model", "custom/small", "go")
    assert done.stdout == "I am the smaller one.\n"
    assert provider.requests[1].json["model"] == "small"
    assert provider.requests[1].headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize("is_listed", [True, False], ids=["list", "commas"])
def test_second_fallback_answers_if_the_first_cannot(provider: ProviderServer, second: ProviderServer, is_listed: bool) -> None:
    provider.script(BUSY)
    second.script(BUSY, text("I am the third."))
    *sets, _, _ = to(second)
    names = ("second/other-model", "second/third-model")
    option = ("--set", f"fallback_model={json.dumps(names)}") if is_listed else ("--fallback-model", ",".join(names))
    done = run_wolo("-p", "--output-format", "stream-json", *provider.flags, *sets, *option, "go")
    assert done.exit_code == 0, done.stderr
    assert [line["model"] for line in done.lines if line.get("subtype") == "fallback"] == list(names)
    assert (done.lines[-1]["result"], done.lines[-1]["model"]) == ("I am the third.", "second/third-model")


def test_unknown_fallback_of_a_list_is_named(provider: ProviderServer) -> None:
    done = run_wolo("-p", *provider.flags, "--fallback-model", "zai/glm-5.2,zai/nonsense", "go", env={"ZAI_API_KEY": KEY})
    assert done.exit_code == 2
    assert "nonsense" in done.stderr
    assert provider.requests == []
