"""Tools with pydantic arguments and typed answers over each wire format, checked by the linter of its requests."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
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


async def test_small_model_sees_the_folder_of_its_conversation(provider: ProviderServer, tmp_path: Path) -> None:
    provider.linted = False  # its questions are not those of an agent
    (folder := tmp_path / "elsewhere").mkdir()
    (folder / "two.py").write_text("print(3)\n")
    provider.script(replies.text('"change"'), replies.text("```python\nprint(2)"))
    model, settings = "custom/coder-0.5b", {"providers.custom.drive": "simple"}
    async with Agent(model, base_url=provider.base_url, api_key="k", cwd=folder, mode="yolo", settings=settings) as ours:
        await ours.run("change two.py so that it prints two")
    assert (folder / "two.py").read_text() == "print(2)\n"
