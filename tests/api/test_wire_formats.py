"""Tools with pydantic arguments and typed answers over each wire format, checked by the linter of its requests."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, NotRequired

import msgspec
import pytest
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from tests.fakes import replies, replies_anthropic, replies_gemini, replies_ollama, replies_responses
from tests.fakes.provider_server import ProviderServer
from wolo import Agent, RunError


class Cash(BaseModel):
    kind: Literal["cash"]


class Card(BaseModel):
    kind: Literal["card"]
    digits: Annotated[str, Field(pattern=r"^\d{4}$")]


class Line(BaseModel):
    """A line of an invoice, which may have lines of its own."""

    text: str = Field(alias="label", min_length=1)
    amount: float | None = None
    parts: list[Line] = []


class Invoice(BaseModel):
    lines: list[Line]
    paid_by: Cash | Card | None = Field(default=None, discriminator="kind")
    notes: dict[str, int] = {}


INVOICE = {"lines": [{"label": "work", "amount": None, "parts": [{"label": "hour", "amount": 2.5}]}], "paid_by": {"kind": "cash"}}
ARGUMENTS = {"invoice": INVOICE, "other": {"kind": "card", "digits": "1234"}}
Say = Callable[[str], Any]
Call = Callable[[str, dict[str, Any]], Any]


@pytest.mark.parametrize(
    ("api", "path", "say", "call"),
    [
        ("openai-chat", "/v1", replies.text, replies.call),
        (
            "openai-responses",
            "/v1",
            lambda text: replies_responses.answer(replies_responses.message(text)),
            lambda name, given: replies_responses.answer(replies_responses.call(name, given)),
        ),
        ("anthropic", "", replies_anthropic.text, replies_anthropic.call),
        ("gemini", "", replies_gemini.text, lambda name, given: replies_gemini.calls(replies_gemini.called(name, given))),
    ],
    ids=("openai-chat", "openai-responses", "anthropic", "gemini"),
)
async def test_models_are_arguments_and_answers(provider: ProviderServer, api: str, path: str, say: Say, call: Call) -> None:
    booked: list[Any] = []

    def book(invoice: Invoice, other: Cash | Card, before: Invoice | None = None) -> str:
        """Book an invoice."""
        booked.append((invoice, other, before))
        return "Booked."

    provider.script(call("book", ARGUMENTS), say("It is this."), say(json.dumps(INVOICE)))
    ours = Agent("custom/m", tools=[book], session="memory", base_url=provider.origin + path, api_key="k", api=api)
    async with ours:
        typed = await ours.run_for("book invoice.txt", Invoice)
    assert typed.output == Invoice.model_validate(INVOICE)
    assert booked == [(Invoice.model_validate(INVOICE), Card(kind="card", digits="1234"), None)]
    assert len(provider.requests) == 3


async def test_small_model_sees_the_folder_of_its_conversation(provider: ProviderServer, tmp_path: Path) -> None:
    provider.linted = False  # its questions are not those of an agent
    (folder := tmp_path / "elsewhere").mkdir()
    (folder / "two.py").write_text("print(3)\n")
    provider.script(replies.text('"change"'), replies.text("```python\nprint(2)"))
    model, settings = "custom/coder-0.5b", {"providers.custom.drive": "simple"}
    async with Agent(model, base_url=provider.base_url, api_key="k", cwd=folder, mode="yolo", settings=settings) as ours:
        await ours.run("change two.py so that it prints two")
    assert (folder / "two.py").read_text() == "print(2)\n"


class Place(BaseModel):
    name: str = Field(min_length=1)
    floor: int = 0


@dataclass
class Spot:
    name: str
    floor: int = 0


class Corner(TypedDict):
    name: str
    floor: NotRequired[int]


class Room(msgspec.Struct):
    name: str
    floor: int = 0


KINDS: list[tuple[Any, Any, Any]] = [
    (Place, {"name": "hall", "floor": None}, Place(name="hall")),
    (Spot, {"name": "hall", "floor": None}, Spot("hall")),
    (Corner, {"name": "hall", "floor": None}, {"name": "hall"}),
    (Room, {"name": "hall", "floor": None}, Room("hall")),
    (Cash | Place, {"value": {"name": "hall", "floor": 2}}, Place(name="hall", floor=2)),
    (list[Spot], {"value": [{"name": "hall", "floor": 1}]}, [Spot("hall", 1)]),
]
"""A type, an answer as a server that enforces it gives it, and its value."""
SAY: dict[str, Say] = {
    "openai-chat": replies.text,
    "openai-responses": lambda text: replies_responses.answer(replies_responses.message(text)),
    "anthropic": replies_anthropic.text,
    "gemini": replies_gemini.text,
    "ollama": replies_ollama.text,
    "xml": replies.text,
}
FORMS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "openai-chat": lambda body: body.get("response_format", {}).get("json_schema", {}).get("schema"),
    "openai-responses": lambda body: body.get("text", {}).get("format", {}).get("schema"),
    "anthropic": lambda body: body.get("output_config", {}).get("format", {}).get("schema"),
    "gemini": lambda body: body.get("generationConfig", {}).get("responseJsonSchema"),
    "ollama": lambda body: body.get("format"),
    "xml": lambda body: body.get("response_format", {}).get("json_schema", {}).get("schema"),
}
"""The schema that a request has the server enforce."""


def agent_of(provider: ProviderServer, api: str, **options: Any) -> Agent:
    path = "/v1" if api in ("openai-chat", "openai-responses", "xml") else ""
    return Agent("custom/m", session="memory", base_url=provider.origin + path, api_key="k", api=api, **options)


@pytest.mark.parametrize("api", SAY)
@pytest.mark.parametrize(
    ("kind", "answer", "value"), KINDS, ids=("pydantic", "dataclass", "TypedDict", "Struct", "union", "list")
)
async def test_answers_are_enforced_by_the_server(provider: ProviderServer, api: str, kind: Any, answer: Any, value: Any) -> None:
    provider.script(SAY[api](json.dumps(answer)))
    async with agent_of(provider, api, tools=[]) as ours:
        assert (await ours.run_for("where?", kind)).output == value
    form = FORMS[api](provider.requests[0].whole)
    assert form["type"] == "object"
    assert set(form["properties"]) == ({"value"} if "value" in answer else {"name", "floor"})


@pytest.mark.parametrize("api", SAY)
async def test_last_request_beside_tools_is_enforced(provider: ProviderServer, api: str) -> None:
    def look(place: str) -> str:
        """Look around."""
        return place

    provider.script(SAY[api]("In the hall."), SAY[api]('{"value": ["hall"]}'), SAY[api]("Done."))
    async with agent_of(provider, api, tools=[look]) as ours:
        typed = await ours.run_for("where?", list[str])
        await ours.run("thanks")
    assert typed.output == ["hall"]
    forms = [FORMS[api](each.whole) for each in provider.requests]
    assert forms[0] is None is forms[2]
    assert forms[1]["properties"]["value"]["type"] == "array"


async def test_last_request_to_old_gemini_has_no_tools(provider: ProviderServer) -> None:
    provider.script(replies_gemini.text("In the hall."), replies_gemini.text('{"value": ["hall"]}'), replies_gemini.text("Done."))
    async with Agent("gemini/gemini-2.5-flash", session="memory", base_url=provider.origin, api_key="k") as ours:
        assert (await ours.run_for("where?", list[str])).output == ["hall"]
        await ours.run("thanks")
    assert ["tools" in each.whole for each in provider.requests] == [True, False, True]


REFUSALS: dict[str, Any] = {
    "openai-chat": replies.error(400, {"error": {"message": "response_format: unsupported", "param": "response_format"}}),
    "openai-responses": replies.error(400, {"error": {"message": "Invalid schema", "param": "text.format.schema"}}),
    "anthropic": replies_anthropic.error(400, "invalid_request_error", "output_config.format: Extra inputs are not permitted"),
    "gemini": replies_gemini.refused(400, "INVALID_ARGUMENT", "Unknown name \"responseJsonSchema\" at 'generation_config'"),
    "ollama": replies.error(400, {"error": "invalid JSON schema in format"}),
    "xml": replies.error(400, {"error": {"message": "failed to parse grammar"}}),
}


@pytest.mark.parametrize("api", SAY)
async def test_refused_schema_is_asked_for_in_words(provider: ProviderServer, api: str) -> None:
    provider.script(REFUSALS[api], SAY[api]("Hm."), SAY[api]('{"name": "hall"}'))
    async with agent_of(provider, api, tools=[]) as ours:
        events = [event async for event in ours.run_stream_for("where?", Place)]
    assert events[-1].result.output == Place(name="hall")  # type: ignore[attr-defined]  # the last one is the result
    assert [FORMS[api](each.whole) is None for each in provider.requests] == [False, True, True]
    assert len([event for event in events if event.type == "notice" and "refuses" in event.text]) == 1  # type: ignore[attr-defined]  # of a Notice
    assert "JSON schema" in json.dumps(provider.requests[1].whole)


async def test_bad_request_of_another_kind_still_fails(provider: ProviderServer) -> None:
    refused = replies.error(400, {"error": {"message": "no such thing"}})
    provider.script(refused, refused)
    async with agent_of(provider, "openai-chat", tools=[]) as ours:
        with pytest.raises(RunError, match="no such thing"):
            await ours.run_for("where?", Place)
