"""Properties of every wire format over any conversation."""

from __future__ import annotations

import copy
import json
from typing import Any, NamedTuple, get_args

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.formats.histories import OWN, TOOLS, histories
from tests.formats.oracles import complaints
from wolo.formats.format import Format, Request, ThinkingLevel
from wolo.formats.lint.linters import LINTERS
from wolo.messages.message import MESSAGES, Message, Producer, user
from wolo.messages.parts import Blob, TextPart, ThinkingPart, ToolPart
from wolo.models.catalog import Catalog
from wolo.models.catalog_files import PROVIDERS, load
from wolo.models.format_selection import FORMATS, format_of

EXAMPLES = settings(max_examples=max(2, settings().max_examples // 3))
PAIR_EXAMPLES = settings(max_examples=max(1, settings().max_examples // 10))
"""`make soak` tries ten times as many."""
MODELS = {"openai-responses": "gpt-5.5", "anthropic": "claude-sonnet-5-5", "gemini": "gemini-3-pro", "ollama": "qwen3"}
"""A name on the wire that means something to the format; any will do."""
LISTS = {"openai-responses": "input", "gemini": "contents"}
"""Where the messages of a request are; elsewhere `messages`."""
ORACLE = {"xml": "openai-chat"}
MARKS = {
    "anthropic": "anthropic.signature",
    "gemini": "gemini.thoughtSignature",
    "openai-responses": "openai.encrypted",
    "openai-chat": "openrouter.reasoning_details",
}
"""The blob in which each format keeps what only its producer can read."""


EVERY_KEY = {key: "k" for name in PROVIDERS for key in load(name).key_env} | {"AZURE_OPENAI_ENDPOINT": "https://x.example.com"}


class Side(NamedTuple):
    """One provider that speaks one format."""

    name: str

    @property
    def producer(self) -> Producer:
        return Producer(provider=f"p-{self.name}", format=self.name, model=self.model)

    @property
    def model(self) -> str:
        return MODELS.get(self.name, "m-1")

    def format(self) -> Format:
        return format_of(Catalog({}).find(f"custom/{self.model}", base_url="http://h/v1", api_key="k", api=self.name))

    def request(self, history: tuple[Message, ...], **more: Any) -> Request:
        asked: dict[str, Any] = {"system": "You are Wolo.", "tools": TOOLS, "max_output": 8192} | more
        return Request(model=self.model, producer=self.producer, messages=history, **asked)

    def encode(self, history: tuple[Message, ...], **more: Any) -> bytes:
        return self.format().encode(self.request(history, **more))


SIDES = [Side(name) for name in FORMATS]
sides = pytest.mark.parametrize("side", SIDES, ids=[side.name for side in SIDES])
handed_over = pytest.mark.parametrize(
    ("before", "after"), [(a, b) for a in SIDES for b in SIDES if a != b], ids=lambda side: side.name
)


def own_turns(history: tuple[Message, ...], side: Side) -> tuple[Message, ...]:
    """The same conversation, as this side has answered it."""
    return tuple(
        msgspec.structs.replace(message, producer=side.producer) if message.producer == OWN else message for message in history
    )


def check(side: Side, body: bytes, previous: Any = None) -> dict[str, Any]:
    parsed: dict[str, Any] = json.loads(body, parse_constant=_refuse)
    body.decode("utf-8")
    assert LINTERS[side.name](parsed, previous) == []
    assert complaints(ORACLE.get(side.name, side.name), parsed) == []
    return parsed


def _refuse(name: str) -> None:
    raise AssertionError(f"{name} is not JSON")


@sides
@EXAMPLES
@given(history=histories)
def test_every_conversation_becomes_a_vendor_valid_request(side: Side, history: tuple[Message, ...]) -> None:
    kept = copy.deepcopy(history)
    body = side.encode(own_turns(history, side))
    check(side, body)
    assert history == kept
    assert side.encode(own_turns(history, side)) == body


@sides
@EXAMPLES
@given(history=histories, more=st.lists(histories, max_size=2))
def test_a_longer_conversation_begins_with_the_shorter_one(
    side: Side, history: tuple[Message, ...], more: list[tuple[Message, ...]]
) -> None:
    format = side.format()
    history = (*own_turns((user("begin"), *history), side), user("go on"))
    previous = check(side, format.encode(side.request(history)))
    for further in more:
        history = (*history, *own_turns(further, side), user("go on"))
        body = format.encode(side.request(history))
        assert body == side.encode(history), "what was remembered differs from what is encoded anew"
        previous = check(side, body, previous)


@sides
@EXAMPLES
@given(history=histories)
def test_a_conversation_from_disk_makes_the_same_bytes(side: Side, history: tuple[Message, ...]) -> None:
    kept = own_turns(history, side)
    reloaded = tuple(MESSAGES.decode(MESSAGES.encode(message)) for message in kept)
    again = tuple(MESSAGES.decode(MESSAGES.encode(message)) for message in reloaded)
    assert side.encode(reloaded) == side.encode(again)


@pytest.mark.sweep(every=7)
@handed_over
@PAIR_EXAMPLES
@given(history=histories)
def test_any_conversation_goes_on_with_any_other_format(before: Side, after: Side, history: tuple[Message, ...]) -> None:
    format = after.format()
    history = (*own_turns((user("begin"), *history), before), user("go on"))
    previous = check(after, format.encode(after.request(history)))
    answer = Message(role="assistant", parts=(TextPart(text="Done."),), producer=after.producer, finished=True)
    check(after, format.encode(after.request((*history, answer, user("and now?")))), previous)


@handed_over
def test_producer_only_data_stays_behind(before: Side, after: Side) -> None:
    secret = "c2VjcmV0LW9wYXF1ZS1kYXRhLW9mLXRoZS1wcm9kdWNlcg=="
    blobs = tuple(Blob(kind, f'["{secret}"]' if "details" in kind else secret) for kind in MARKS.values())
    call = ToolPart(
        tool="read", input={"path": "a"}, call_id="call_1", item_id="fc_1", status="completed", output="x", blobs=blobs
    )
    thought = ThinkingPart(text="I had better not say this aloud.", item_id="rs_1", blobs=blobs)
    said = TextPart(text="Reading.", item_id="msg_1", blobs=blobs)
    answer = Message(role="assistant", parts=(thought, said, call), producer=before.producer, finished=True)
    body = after.encode((user("go"), answer, user("on"))).decode()
    assert secret not in body
    assert thought.text not in body
    for item_id in ("rs_1", "msg_1", "fc_1"):
        assert item_id not in body


@sides
def test_three_results_of_one_round_stay_together(side: Side) -> None:
    calls = [
        ToolPart(
            tool="read", input={"path": name}, call_id=f"call_{name}", status="completed", outcome="ok", output=f"text of {name}"
        )
        for name in "abc"
    ]
    answer = Message(role="assistant", parts=calls, producer=side.producer, finished=True)
    body = json.loads(side.encode((user("go"), answer, user("and?"))))
    items = body[LISTS.get(side.name, "messages")]
    holding = [at for at, item in enumerate(items) if "text of " in json.dumps(item)]
    assert all(f"text of {name}" in json.dumps(items) for name in "abc")
    together = side.name in ("anthropic", "gemini", "xml")
    assert len(holding) == (1 if together else 3)
    assert holding == list(range(holding[0], holding[0] + len(holding)))


@sides
def test_own_data_is_never_sent(side: Side) -> None:
    """That a result ends the turn, when things happened, and what hooks and views keep beside them."""
    own = {"note": "for-wolo-alone"}
    call = ToolPart(
        tool="read", input={"path": "a"}, status="completed", outcome="ok", output="text", terminate=True, metadata=own
    )
    call = msgspec.structs.replace(call, start_time=1234567.0, end_time=7654321.0)
    answer = Message(role="assistant", parts=[call], producer=side.producer, finished=True, metadata=own)
    custom = Message(role="custom", custom_type="for-wolo-alone", parts=[TextPart(text="for-wolo-alone")], finished=True)
    body = side.encode((msgspec.structs.replace(user("go"), metadata=own), answer, custom, user("and?"))).decode()
    assert "text" in body
    for secret in ("for-wolo-alone", "terminate", "metadata", "1234567", "7654321", answer.id):
        assert secret not in body


@pytest.mark.sweep(every=3)
@pytest.mark.parametrize("provider", [name for name in PROVIDERS if load(name).models])
@settings(max_examples=8)
@given(history=histories, data=st.data())
def test_every_catalogue_model_is_sent_its_format_fields(
    provider: str, history: tuple[Message, ...], data: st.DataObject
) -> None:
    model = data.draw(st.sampled_from(load(provider).models), label="model")
    level = data.draw(st.sampled_from((None, *get_args(ThinkingLevel))), label="level")
    choice = Catalog(EVERY_KEY).find(f"{provider}/{model.id}")
    producer = Producer(provider=provider, format=choice.format, model=model.id)
    more: dict[str, Any] = {"thinking": level, "max_output": model.max_output, "context": model.context}
    format = format_of(choice)
    own = tuple(
        msgspec.structs.replace(message, producer=producer) if message.producer == OWN else message for message in history
    )
    asked = Request(model=model.id, producer=producer, messages=own, system="You are Wolo.", tools=TOOLS, session_id="s", **more)
    body = json.loads(format.encode(asked))
    assert LINTERS[choice.format](body) == []
    for item in body["messages"] if choice.format == "openai-chat" else ():
        if item["role"] == "tool":
            item.pop("name", None)  # asked for by a flag; OpenAI does not know it
    assert complaints(choice.format, body) == []


@EXAMPLES
@given(history=histories)
def test_mistral_validator_accepts_every_conversation(history: tuple[Message, ...]) -> None:
    choice = Catalog({"MISTRAL_API_KEY": "k"}).find("mistral/mistral-medium-latest")
    producer = Producer(provider="mistral", format="openai-chat", model=choice.model.id)
    body = format_of(choice).encode(
        Request(model=choice.model.id, producer=producer, messages=(user("begin"), *history), system="You are Wolo.", tools=TOOLS)
    )
    assert LINTERS["openai-chat"](json.loads(body)) == []
    assert complaints("mistral", json.loads(body)) == []


@pytest.mark.parametrize("side", [side for side in SIDES if side.name != "xml"], ids=lambda side: side.name)
def test_the_judges_notice_a_key_that_nobody_knows(side: Side) -> None:
    body = json.loads(side.encode((user("hi"),)))
    for place in (body, body[LISTS.get(side.name, "messages")][-1]):
        place["bogus"] = 1
        with pytest.raises(AssertionError):
            assert complaints(side.name, body) == []
        del place["bogus"]
    assert complaints(side.name, body) == []
