"""What servers ask of their client, and what they offer beside tools; the server is real and made with the SDK."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.mcp.test_client import FAKES, context, serving, settled
from wolo.errors import ToolError
from wolo.mcp.connection import Completing
from wolo.mcp.server import Server
from wolo.mcp.server_requests import Caller, SampleAnswer, SampleRequest, ServerRequests, default_values, read_fields
from wolo.mcp.servers import Servers
from wolo.mcp.uri_templates import complete_template
from wolo.tools.tool import CallContext
from wolo.tools.tool_values import UNASKED, CallResult, Question, Replies, Reply
from wolo.workspace.root import Workspace


def features(**more: object) -> Server:
    return Server(command=sys.executable, args=(str(FAKES / "mcp_features.py"),), **more)  # type: ignore[arg-type]  # fields


class User:
    """Answers questions with these replies, in order of asking; what is left out is skipped."""

    def __init__(self, *rounds: Sequence[Reply] | None) -> None:
        self.asked: list[list[Question]] = []
        self._rounds = list(rounds)

    async def __call__(self, call_id: str, questions: Sequence[Question]) -> Replies | None:
        assert call_id == "call_1"
        self.asked.append(list(questions))
        replies = self._rounds.pop(0)
        return None if replies is None else tuple(replies)


def pick(*labels: str) -> Reply:
    return Reply(chosen=labels)


def words(text: str) -> Reply:
    return Reply(text=text)


async def ask(servers: Servers, tool: str, user: User | None = None, /, **arguments: object) -> CallResult:
    found = next(each for each in servers.tools if each.name.endswith(tool))
    heard: list[str] = []
    call = context(heard.append)
    with_user = replace(call, services=replace(call.services, ask_user=user)) if user else call
    result: CallResult = await found.run(arguments, with_user)
    return result


SEND, SKIP = pick("Send"), Reply()


async def test_user_fills_a_form_with_defaults_for_gaps() -> None:
    user = User([words("Oslo"), SKIP, pick("plane"), pick("Yes"), SEND])
    async with serving(f=features()) as servers:
        result = await ask(await settled(servers), "book", user)
    assert result.text == 'accept: {"city":"Oslo","days":3,"travel":"plane","insured":true}'
    city, days, travel, insured, consent = user.asked[0]
    assert city.text == "f: City: where to"
    assert "skip for 3" in days.text
    assert [option.label for option in travel.options] == ["train", "plane"]
    assert [option.label for option in insured.options] == ["Yes", "No"]
    assert consent.text == "f asks: Where do you want to go? Send these answers to it?"


async def test_only_what_is_wrong_is_asked_again() -> None:
    user = User([SKIP, words("many"), SKIP, SKIP, SEND], [words("Rome"), words("31"), SEND], [words("7"), SEND])
    async with serving(f=features()) as servers:
        result = await ask(await settled(servers), "book", user)
    assert '"days":7' in result.text
    assert [question.header for question in user.asked[1][:-1]] == ["City", "Days"]
    assert "it is required" in user.asked[1][0].text
    assert "it must be a whole number" in user.asked[1][1].text
    assert "at most 30" in user.asked[2][0].text


@pytest.mark.parametrize(("replies", "action"), [([words("x"), SKIP, SKIP, SKIP, pick("Decline")], "decline"), (None, "cancel")])
async def test_a_form_can_be_declined_and_dismissed(replies: Sequence[Reply] | None, action: str) -> None:
    async with serving(f=features()) as servers:
        assert (await ask(await settled(servers), "book", User(replies))).text == action


@pytest.mark.sweep(every=4)
@pytest.mark.parametrize("tool", ["confirm", "agree", "sign", "book", "pay"])
async def test_without_a_user_everything_is_declined(tool: str) -> None:
    async with serving(f=features()) as servers:
        await settled(servers)
        assert (await ask(servers, tool)).text == "decline"
        assert "declined: no user can be asked" in servers.statuses()[0].log[-1]


@pytest.mark.sweep(every=4)
@pytest.mark.parametrize(
    ("tool", "answer"),
    [("sign", 'accept: {"signature":"me","days":3}'), *((tool, "decline") for tool in ("confirm", "agree", "book", "pay"))],
)
async def test_defaults_of_required_fields_are_sent_by_setting(tool: str, answer: str) -> None:
    async with serving(f=features(elicitation="defaults")) as servers:
        assert (await ask(await settled(servers), tool)).text == answer


_SCHEMAS = st.fixed_dictionaries(
    {"type": st.sampled_from(("string", "integer", "boolean", "array"))},
    optional={
        "default": st.one_of(st.none(), st.text(max_size=3), st.integers(), st.booleans()),
        "enum": st.lists(st.text(max_size=3)),
    },
)
_PROPERTIES = st.dictionaries(st.sampled_from("abcd"), _SCHEMAS)


@given(_PROPERTIES, st.lists(st.sampled_from("abcde")), st.booleans(), st.booleans(), st.sampled_from(("form", "url", None)))
def test_form_missing_required_answers_is_not_accepted(
    properties: dict[str, Any], required: list[str], accepts: bool, attended: bool, mode: str | None
) -> None:
    requests = ServerRequests("f", attended=attended, accepts_defaults=accepts)
    form = {"mode": mode, "message": "?", "url": "https://x", "requestedSchema": {"properties": properties, "required": required}}
    answer = asyncio.run(requests.elicit(form))
    if answer != {"action": "decline"}:
        assert accepts
        assert not attended
        assert mode != "url"
        assert required
        assert {*required} <= {name for name, schema in properties.items() if schema.get("default") is not None}
        assert answer["content"] == {name: properties[name]["default"] for name in answer["content"]}


async def test_field_unseen_in_editors_is_not_sent() -> None:
    user = User([UNASKED, SKIP, SKIP, SKIP, SEND])
    async with serving(f=features()) as servers:
        assert (await ask(await settled(servers), "book", user)).text == "decline"


async def elicited(params: dict[str, Any], user: User) -> tuple[dict[str, Any], ServerRequests]:
    requests = ServerRequests("f", attended=True)
    with requests.working_for(Caller("call_1", lambda text: None, user)):
        return await requests.elicit(params), requests


async def test_a_request_is_shown_whole() -> None:
    message = "y" * 19_000 + "\x1b[8m\u202eend"
    for params in ({"message": message}, {"mode": "url", "url": "https://a/\u200b", "message": message}):
        user = User([pick("Decline")])
        answer, _ = await elicited(params, user)
        assert answer == {"action": "decline"}
        assert "y" * 19_000 + "\\x1b[8m\\u{202e}end" in user.asked[0][0].text
    assert "https://a/\\u{200b} " in user.asked[0][0].text


async def test_a_request_too_long_to_show_is_declined() -> None:
    described = {"properties": {"a": {"type": "string", "description": "x" * 20_001}}}
    for params in (
        {"message": "x" * 20_001},
        {"message": "?", "requestedSchema": described},
        {"mode": "url", "url": f"https://a/{'x' * 20_000}", "message": "?"},
    ):
        user = User()
        answer, requests = await elicited(params, user)
        assert answer == {"action": "decline"}
        assert not user.asked
        assert "too long to be shown" in requests.log[-1]


async def test_a_page_is_opened_after_a_yes_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BROWSER", f'{sys.executable} -c \'open("opened","w").write("%s")\'')
    async with serving(f=features()) as servers:
        await settled(servers)
        user = User([pick("Decline")], [pick("Open in the browser")])
        assert (await ask(servers, "pay", user)).text == "decline"
        assert not Path("opened").exists()
        assert (await ask(servers, "pay", user)).text == "accept"
        with pytest.raises(ToolError, match="it needs a page that was not opened"):
            await ask(servers, "unlock")
        with pytest.raises(ToolError, match="Call it again then"):
            await ask(servers, "unlock", User([pick("Open in the browser")]))
    assert "http://127.0.0.1:9/pay" in user.asked[1][0].text


async def test_call_time_pauses_while_a_question_waits() -> None:
    async def slow(call_id: str, questions: Sequence[Question]) -> Replies | None:
        await asyncio.sleep(3.2)
        return (SKIP, SKIP, SEND)

    async with serving(f=features(tool_timeout_s=3)) as servers:
        await settled(servers)
        assert (await ask(servers, "confirm", slow)).text.startswith("accept")  # type: ignore[arg-type]  # a user


# The model and the folders


async def test_server_uses_the_model_within_its_settings_only() -> None:
    async with serving(f=features()) as servers:
        result = await ask(await settled(servers), "think", question="why?")
    assert result.text == "refused: Sampling not supported"


async def test_sampling_ends_with_its_budget() -> None:
    requests: list[SampleRequest] = []

    async def sample(request: SampleRequest) -> SampleAnswer:
        requests.append(request)
        return SampleAnswer("because", "test/model", 70)

    async with serving(f=features(sampling_tokens=100)) as servers:
        await servers.attach(Workspace(Path.cwd()), sample)
        await settled(servers)
        assert (await ask(servers, "think", question="why?")).text == "test/model says because"
        await ask(servers, "think", question="again?")
        third = await ask(servers, "think", question="once more?")
    assert [each.max_tokens for each in requests] == [50, 30]
    assert requests[0].messages == (("user", "why?"),)
    assert requests[0].system == "You are brief."
    assert "budget of 100 tokens is used up" in third.text


async def test_first_model_use_asks_the_present_user() -> None:
    async def sample(request: SampleRequest) -> SampleAnswer:
        return SampleAnswer("because", "test/model", 1)

    async with serving(True, f=features(sampling_tokens=100)) as servers:
        await servers.attach(Workspace(Path.cwd()), sample)
        await settled(servers)
        user = User([pick("Decline")], [pick("Allow in this session")])
        assert "declined" in (await ask(servers, "think", user, question="why?")).text
        assert "says because" in (await ask(servers, "think", user, question="why?")).text
        assert "says because" in (await ask(servers, "think", user, question="and?")).text
    assert len(user.asked) == 2


async def test_roots_follow_the_workspace_folders() -> None:
    more = Path.cwd() / "more"
    more.mkdir()
    async with serving(f=features()) as servers:
        await settled(servers)
        assert (await ask(servers, "folders")).text == Path.cwd().as_uri()
        await servers.attach(Workspace(Path.cwd(), (more,)), None)
        assert (await ask(servers, "folders")).text == f"{Path.cwd().as_uri()}\n{more.as_uri()}"


async def test_log_messages_are_kept_and_shown_during_calls() -> None:
    async with serving(f=features()) as servers:
        await settled(servers)
        heard: list[str] = []
        await next(each for each in servers.tools if each.name.endswith("talk")).run({}, context(heard.append))
        assert servers.statuses()[0].log == ("warning: station: mind the gap",)
    assert "warning: station: mind the gap\n" in heard
    assert "1/2 half\n" in heard


# Resources and prompts


def named(servers: Servers, name: str) -> object:
    return next(each for each in servers.tools if each.name == name)


async def read(servers: Servers, call: CallContext | None = None, **arguments: str) -> CallResult:
    result: CallResult = await named(servers, "read_resource").run(arguments, call or context())  # type: ignore[attr-defined]
    return result


async def test_resource_tools_list_read_or_stay_absent() -> None:
    plain = Server(command=sys.executable, args=(str(FAKES / "mcp_server.py"),), disabled_tools=("show",))
    async with serving(f=features(), other=plain) as servers:
        await settled(servers)
        assert (await read(servers, server="f")).text == (
            "- note://first: first - the first note\n- city://{name}/info (a template): city"
        )
        assert (await read(servers, server="f", uri="note://first")).text == "[note://first]\nremember the milk"
        assert (await read(servers, server="f", uri="city://rome/info")).text == "[city://rome/info]\nrome is a city"
        with pytest.raises(ToolError, match="refused"):
            await read(servers, server="f", uri="note://none")
        with pytest.raises(ToolError, match="no server `nobody`"):
            await read(servers, server="nobody", uri="note://first")
    async with serving(other=plain) as servers:
        assert "read_resource" not in [each.name for each in (await settled(servers)).tools]


async def test_file_in_a_result_is_saved_and_named() -> None:
    async with serving(f=features()) as servers:
        result = await ask(await settled(servers), "archive")
    assert result.text == "[file:///a/data.zip: application/zip: 8 bytes, saved to data.zip]"
    assert Path("data.zip").read_bytes() == b"PK\3\4rest"


async def test_prompts_are_listed_fetched_and_completed() -> None:
    async with serving(f=features()) as servers:
        await settled(servers)
        (prompt,) = servers.prompts["f"]
        assert [(each.name, each.required) for each in prompt.arguments] == [("city", True), ("days", False)]
        (message,) = await servers.prompt("f", "plan", {"city": "Rome"})
        assert message.items == ("Plan 2 days in Rome.",)
        wanted = Completing("plan", "", "city", "p", {})
        assert await asyncio.to_thread(servers.complete, "f", wanted) == ("paris", "prague", "porto")
        found = await asyncio.to_thread(complete_template, servers, "f", "city://{name}/info", "city://pr")
        assert found == ["city://prague/info"]


async def test_next_run_knows_every_listing_without_start() -> None:
    async with serving(f=features()) as servers:
        await settled(servers)
    async with serving(f=features()) as servers:
        assert [each.state for each in servers.statuses()] == ["known"]
        assert [each.uri for each in servers.resources["f"]] == ["note://first", "city://{name}/info"]
        assert [each.name for each in servers.prompts["f"]] == ["plan"]


async def test_removed_tool_keeps_place_and_refuses_by_name() -> None:
    async with serving(f=features()) as servers:
        await settled(servers)
        before = [each.name for each in servers.tools]
        await ask(servers, "change")
        while len(servers.resources["f"]) < 3 or any(each[0].endswith("talk") for each in servers.statuses()[0].tools):
            await asyncio.sleep(0.05)
        await servers.prepare()
        assert [each.name for each in servers.tools] == before
        assert "MCP server f: it no longer offers talk." in servers.news()
        assert servers.news() == ""
        with pytest.raises(ToolError, match="no longer offers mcp__f__talk"):
            await ask(servers, "talk")
        assert (await read(servers, server="f", uri="note://late")).text == "[note://late]\ncame late"


# Other transports


@contextmanager
def over(transport: str) -> Iterator[str]:
    with subprocess.Popen(
        [sys.executable, str(FAKES / "mcp_features.py"), transport], stdout=subprocess.PIPE, text=True
    ) as server:
        try:
            assert server.stdout is not None
            path = "sse" if transport == "sse" else "mcp"
            yield f"http://127.0.0.1:{server.stdout.readline().strip()}/{path}"
        finally:
            server.kill()


@pytest.mark.parametrize("transport", ["http", "sse"])
async def test_the_same_over_http_and_the_older_sse(transport: str) -> None:
    with over(transport) as url:
        async with serving(f=Server(url=url, transport=transport)) as servers:  # type: ignore[arg-type]  # one of them
            await settled(servers)
            assert (await ask(servers, "confirm")).text == "decline"
            assert (await ask(servers, "confirm", User([SKIP, SKIP, SEND]))).text == 'accept: {"days":3,"insured":true}'
            assert (await read(servers, server="f", uri="note://first")).text == "[note://first]\nremember the milk"


@pytest.mark.parametrize(
    ("schema", "values"),
    [
        ({"properties": {"days": {"type": "integer", "default": 0}}, "required": ["days"]}, {"days": 0}),
        ({"properties": {"days": {"type": "integer", "default": "many"}}, "required": ["days"]}, None),
        (
            {"properties": {"by": {"enum": ["train"], "default": "plane"}, "to": {"default": "x"}}, "required": ["to"]},
            {"to": "x"},
        ),
        ({"properties": {"by": {"default": "train"}}}, None),
        ({}, None),
        ({"properties": {}, "required": ["days"]}, None),
    ],
)
def test_acceptable_defaults_alone_fill_the_form(schema: dict[str, Any], values: dict[str, Any] | None) -> None:
    assert default_values(read_fields(schema)) == values
