"""Tools with pydantic arguments and typed answers over each wire format, checked by the linter of its requests."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from tests.fakes import replies, replies_anthropic, replies_gemini, replies_responses
from tests.fakes.provider_server import ProviderServer
from wolo import Agent


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
