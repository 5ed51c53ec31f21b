"""The web search of a model's own provider, in the four formats that have one."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, get_type_hints

import pytest
from anthropic.types import WebSearchTool20250305Param
from google.genai.types import Tool
from openai.types.responses import WebSearchToolParam
from pydantic import TypeAdapter

from tests.fakes import replies, replies_anthropic, replies_gemini, replies_responses
from tests.fakes.command import Completed, run_wolo
from tests.fakes.provider_server import KEY, ProviderServer
from tests.fakes.replies import Reply
from wolo.places import find_places

PAGE, TITLE, SAYS = "https://a.example/x", "A page", "Version 3 came on 4 May."
ASKS = {"query": "newest version of it"}


def _anthropic(*, failed: str = "") -> Reply:
    page = {"type": "web_search_result", "url": PAGE, "title": TITLE, "encrypted_content": "Eo", "page_age": "2 days"}
    result: Any = {"type": "web_search_tool_result_error", "error_code": failed} if failed else [page]
    cited = {"type": "web_search_result_location", "url": PAGE, "title": TITLE, "encrypted_index": "Eo", "cited_text": "of 4 May"}
    return replies_anthropic.sse(
        replies_anthropic.start(),
        replies_anthropic.begin(0, {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}),
        replies_anthropic.grow(0, "input_json_delta", partial_json='{"query": "it"}'),
        replies_anthropic.stop(0),
        replies_anthropic.begin(1, {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": result}),
        replies_anthropic.stop(1),
        replies_anthropic.begin(2, {"type": "text", "text": "", "citations": []}),
        replies_anthropic.grow(2, "text_delta", text="I cannot tell." if failed else SAYS),
        *([] if failed else [replies_anthropic.grow(2, "citations_delta", citation=cited)]),
        replies_anthropic.stop(2),
        replies_anthropic.end("end_turn", {"output_tokens": 10, "server_tool_use": {"web_search_requests": 1}}),
        replies_anthropic.LAST,
    )


def _responses() -> Reply:
    action = {"type": "search", "query": "it", "sources": [{"type": "url", "url": "https://b.example/"}]}
    cites = {"type": "url_citation", "start_index": 0, "end_index": 7, "url": PAGE, "title": TITLE}
    content = [{"type": "output_text", "text": SAYS, "annotations": [cites], "logprobs": []}]
    searched = {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": action}
    return replies_responses.answer(searched, replies_responses.message(SAYS, content=content))


def _gemini() -> Reply:
    grounding = {
        "webSearchQueries": ["it"],
        "searchEntryPoint": {"renderedContent": "<div/>"},
        "groundingChunks": [{"web": {"uri": PAGE, "title": TITLE}}],
        "groundingSupports": [{"segment": {"endIndex": 7}, "groundingChunkIndices": [0]}],
    }
    ended = replies_gemini.said(replies_gemini.word(SAYS), finish="STOP")
    ended["candidates"][0]["groundingMetadata"] = grounding
    return replies_gemini.stream(ended)


def _zai() -> Reply:
    page = {"title": TITLE, "link": PAGE, "content": "of 4 May", "media": "A", "icon": "", "refer": "ref_1", "publish_date": ""}
    first = replies.chunk({"role": "assistant", "content": SAYS}, web_search=[page])
    return replies.sse(first, replies.finish("stop", replies.usage()))


class Side(NamedTuple):
    """One provider: how it is asked, how it answers, and what a search costs."""

    model: str
    path: str
    call: Callable[..., Reply]
    text: Callable[[str], Reply]
    found: Callable[[], Reply]
    tool: Mapping[str, Any]
    fee: float


SIDES = {
    "anthropic": Side(
        "anthropic/claude-sonnet-5-5",
        "",
        replies_anthropic.call,
        replies_anthropic.text,
        _anthropic,
        {"type": "web_search_20250305", "name": "web_search", "max_uses": 3},
        0.01,
    ),
    "openai": Side(
        "openai/gpt-5.4",
        "/v1",
        lambda name, arguments: replies_responses.answer(replies_responses.call(name, arguments)),
        lambda text: replies_responses.answer(replies_responses.message(text)),
        _responses,
        {"type": "web_search"},
        0.01,
    ),
    "gemini": Side(
        "gemini/gemini-3.8-flash",
        "",
        lambda name, arguments: replies_gemini.calls(replies_gemini.called(name, arguments, "c2ln")),
        replies_gemini.text,
        _gemini,
        {"google_search": {}},
        0.014,
    ),
    "zai": Side(
        "zai/glm-5.2",
        "/v1",
        replies.call,
        replies.text,
        _zai,
        {"type": "web_search", "web_search": {"enable": True, "search_engine": "search-prime", "search_result": True}},
        0.01,
    ),
}
every_side = pytest.mark.parametrize("name", SIDES)


def run(provider: ProviderServer, name: str, *options: str, backend: str = '"provider"') -> Completed:
    path = find_places().config / "config.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    address = f'base_url = "{provider.origin}{SIDES[name].path}"\napi_key = "{KEY}"\n'
    path.write_text(f"[web_search]\nbackend = {backend}\n[providers.{name}]\n{address}")
    return run_wolo("--json", "-m", SIDES[name].model, *options, "go")


def allow(provider: ProviderServer) -> tuple[str, str]:
    return "--allow", f"fetch:127.0.0.1:{provider.port}"


@every_side
def test_one_request_of_its_own_searches(provider: ProviderServer, name: str) -> None:
    side = SIDES[name]
    provider.script(side.call("web_search", ASKS), side.found(), side.text("It is 3."))
    done = run(provider, name, *allow(provider))
    assert (done.exit_code, done.json["result"]) == (0, "It is 3."), done.stderr
    first, searched, last = provider.requests
    assert searched.is_search
    assert searched.json["tools"] == [side.tool]
    assert ASKS["query"] in searched.body.decode()
    assert "go" not in json.dumps(searched.json.get("messages", searched.json.get("input", searched.json.get("contents"))))
    assert first.json["tools"] == last.json["tools"]
    told = last.body.decode()
    assert all(words in told for words in (PAGE, TITLE, SAYS, "web search, "))
    plain = done.json["total_cost_usd"] - side.fee
    assert 0 < plain < side.fee, "the fee of one search, and the tokens of three requests"


@pytest.mark.parametrize(
    ("name", "kind"), [("anthropic", WebSearchTool20250305Param), ("openai", WebSearchToolParam), ("gemini", Tool)]
)
def test_tool_is_one_of_the_vendors_library(name: str, kind: Any) -> None:
    tool = dict(SIDES[name].tool)
    TypeAdapter(kind).validate_python(tool)
    known = set(get_type_hints(kind)) if isinstance(kind, type) and not issubclass(kind, Tool) else set(Tool.model_fields)
    assert known.issuperset(tool)


@every_side
def test_search_is_denied_without_a_rule(provider: ProviderServer, name: str) -> None:
    side = SIDES[name]
    provider.script(side.call("web_search", ASKS), side.text("Denied."))
    done = run(provider, name)
    assert (done.exit_code, len(provider.requests)) == (4, 2)
    provider.script(side.call("web_search", ASKS), side.text("Denied."))
    assert run(provider, name, "--yolo", "--deny", "fetch:*").json["result"] == "Denied."
    assert not any(each.is_search for each in provider.requests)


def test_failed_search_is_a_sentence(provider: ProviderServer) -> None:
    side = SIDES["anthropic"]
    provider.script(side.call("web_search", ASKS), _anthropic(failed="too_many_requests"), side.text("No."))
    assert run(provider, "anthropic", *allow(provider)).exit_code == 0
    assert "Anthropic did not search the web (too_many_requests)" in provider.requests[2].body.decode()
    refused = replies_anthropic.error(400, "invalid_request_error", "Web search is not enabled for this organization.")
    provider.script(side.call("web_search", ASKS), refused, side.text("No."))
    assert run(provider, "anthropic", *allow(provider)).exit_code == 0
    assert "The search of Anthropic failed: Web search is not enabled" in provider.requests[-1].body.decode()


def saved_cost() -> float:
    (newest, *_) = json.loads(run_wolo("sessions", "list", "--json").stdout)
    return float(newest["cost_usd"])


def test_failed_search_is_in_the_session_cost(provider: ProviderServer) -> None:
    side = SIDES["anthropic"]
    provider.script(side.call("web_search", ASKS), _anthropic(failed="too_many_requests"), side.text("No."))
    done = run(provider, "anthropic", *allow(provider))
    assert saved_cost() == pytest.approx(done.json["total_cost_usd"])


def test_subagent_search_is_in_the_session_cost(provider: ProviderServer) -> None:
    side = SIDES["anthropic"]
    asks = {"agent": "general", "prompt": "search"}
    provider.script(
        side.call("task", asks), side.call("web_search", ASKS), side.found(), side.text("It is 3."), side.text("Three.")
    )
    done = run(provider, "anthropic", *allow(provider))
    assert done.json["result"] == "Three."
    assert saved_cost() == pytest.approx(done.json["total_cost_usd"])


def test_answer_without_pages_is_no_search(provider: ProviderServer) -> None:
    side = SIDES["zai"]
    unsearched = replies.chunk({"role": "assistant", "content": "I know it.", "tool_calls": []}, web_search=None)
    provider.script(side.call("web_search", ASKS), replies.sse(unsearched, replies.finish("stop")), side.text("No."))
    assert run(provider, "zai", *allow(provider)).exit_code == 0
    assert "did not search the web" in provider.requests[-1].body.decode()


def test_message_without_a_list_of_pieces_is_read(provider: ProviderServer) -> None:
    side = SIDES["openai"]
    events = replies_responses.events(replies_responses.message(SAYS))
    odd = [{**each, "item": {**each["item"], "content": 5}} if "item" in each else each for each in events]
    provider.script(side.call("web_search", ASKS), replies_responses.stream(*odd), side.text("No."))
    assert run(provider, "openai", *allow(provider)).exit_code == 0
    assert "did not search the web" in provider.requests[-1].body.decode()


def test_first_usable_service_of_a_list_searches(provider: ProviderServer) -> None:
    side = SIDES["anthropic"]
    provider.script(side.call("web_search", ASKS), side.found(), side.text("It is 3."))
    done = run(provider, "anthropic", *allow(provider), backend='["brave", "provider"]')
    assert (done.json["result"], done.stderr) == ("It is 3.", "")
    assert provider.requests[1].is_search


def test_provider_without_search_offers_no_tool(provider: ProviderServer) -> None:
    provider.script(replies.text("Hello."))
    done = run_wolo("-p", "--set", "web_search.backend=provider", *provider.flags, "go")
    assert "has no web search of its own" in done.stderr
    assert b'"web_search"' not in provider.requests[0].body


def test_search_stops_at_the_budget(provider: ProviderServer) -> None:
    side = SIDES["anthropic"]
    provider.script(side.call("web_search", ASKS))
    done = run(provider, "anthropic", *allow(provider), "--max-tokens", "50")
    assert (done.exit_code, len(provider.requests)) == (5, 1)
