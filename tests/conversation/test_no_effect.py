"""Nothing is accepted that has no effect: thinking levels, attachments, limits of silence and of the window."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tests.fakes import replies_anthropic, replies_gemini, replies_ollama, replies_responses
from tests.fakes.prompts import typed
from tests.fakes.provider_server import KEY, ProviderServer
from tests.fakes.replies import Reply, call, error, text
from wolo.agent.events import CallEnded, Event, Noticed, TurnEnded
from wolo.config import layers
from wolo.conversation.factory import open_conversation
from wolo.conversation.prompt_attachments import compose, must_be_sent
from wolo.conversation.resources.model_selection import find
from wolo.conversation.resources.startup import StartOptions
from wolo.errors import BadRequest, ProviderError, UsageError
from wolo.formats.encoding.thinking_levels import LEVELS
from wolo.messages.deltas import Delta
from wolo.messages.message import Message, user
from wolo.messages.parts import AudioPart, ImagePart, ToolPart
from wolo.models import catalog
from wolo.models.capabilities import describe_unsupported, no_effect_notice, unsupported_media
from wolo.models.catalog_files import PROVIDERS, load
from wolo.models.client import ClientOptions, HttpModelClient
from wolo.models.format_selection import FORMATS, format_of
from wolo.models.http.transport import Batch, HttpCall
from wolo.models.protocol import ModelQuestion, NoticeLevel, producer_of, request_for
from wolo.models.provider import ModelChoice, ProviderSettings
from wolo.workspace.root import find_site

PNG = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAIAAAACCAIAAAD91JpzAAAAEElEQVR4nGP4z8AARAwQCgAf7gP9i18U1AAAAABJRU5ErkJggg==")
SENT = base64.b64encode(PNG)[:40]
ANSWERS: dict[str, Reply] = {
    "openai-chat": text("fine"),
    "xml": text("fine"),
    "openai-responses": replies_responses.answer(replies_responses.message("fine")),
    "ollama": replies_ollama.text("fine"),
    "anthropic": replies_anthropic.text("fine"),
    "gemini": replies_gemini.text("fine"),
}


def flags(provider: ProviderServer, format: str = "openai-chat") -> dict[str, Any]:
    base = provider.base_url if format in ("openai-chat", "xml", "openai-responses") else provider.origin
    return {"base_url": base, "api_key": KEY, "model": "custom/m", "api": format}


async def events_of(prompt: Message | str, **given: Any) -> list[Event]:
    conversation = await open_conversation(StartOptions(flags=given, attended=False))
    try:
        message = user(prompt) if isinstance(prompt, str) else prompt
        return [event async for event in conversation.prompt(message)]
    finally:
        await conversation.close()


def said(events: list[Event]) -> str:
    ended = events[-1]
    assert isinstance(ended, TurnEnded)
    failure = f"{ended.error.message} {ended.error.hint}" if ended.error else ""
    return "\n".join([*(event.text for event in events if isinstance(event, Noticed)), failure])


# Thinking


@pytest.mark.parametrize("format", FORMATS)
async def test_level_reaches_an_unknown_server(provider: ProviderServer, format: str) -> None:
    provider.linted = False
    bodies = {}
    for level in (None, "low", "high"):
        provider.script(ANSWERS[format])
        given = {**flags(provider, format), **({"thinking": level} if level else {})}
        assert "has no effect" not in said(await events_of("go", no_session=True, **given))
        bodies[level] = provider.requests[-1].body
    assert bodies[None] != bodies["high"]


async def test_refused_level_is_omitted_once_with_a_notice(provider: ProviderServer) -> None:
    provider.linted = False
    refusal = error(400, {"error": {"message": "Unrecognized request argument supplied: reasoning_effort"}})
    provider.script(refusal, text("One."), text("Two."))
    conversation = await open_conversation(StartOptions(flags={**flags(provider), "thinking": "high"}, attended=False))
    events = [event async for event in conversation.prompt(typed("one"))]
    events += [event async for event in conversation.prompt(typed("two"))]
    await conversation.close()
    assert said(events).count("refuses the field `reasoning_effort`") == 1
    assert [b"reasoning_effort" in asked.body for asked in provider.requests] == [True, False, False]


@pytest.mark.sweep(every=3)
@pytest.mark.parametrize("name", [name for name in PROVIDERS if load(name, environ={}).models])
def test_ineffective_level_is_reported_for_every_model(name: str) -> None:
    """Where the requests of all levels are the same, and only there."""
    environ = dict.fromkeys(load(name, environ=os.environ).key_env, "k-0123456789abcdef")
    for model in load(name, environ={}).models:
        try:
            choice = catalog.Catalog(environ).find(f"{name}/{model.id}")
        except Exception:  # it needs an address of its own
            continue
        notices = {level: no_effect_notice(replace(choice, thinking=level)) for level in LEVELS}
        assert len({bool(notice) for notice in notices.values()}) == 1, (choice.label, notices)
        assert not no_effect_notice(choice)


# Attachments


async def choice_of(provider: ProviderServer, format: str) -> ModelChoice:
    conversation = await open_conversation(StartOptions(flags=flags(provider, format), attended=False))
    await conversation.close()
    return conversation.choice


def picture() -> Path:
    Path("dot.png").write_bytes(PNG)
    return Path("dot.png")


@pytest.mark.sweep(every=5)
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("kind", ["image", "audio", "pdf"])
async def test_attachment_is_sent_or_its_omission_reported(provider: ProviderServer, format: str, kind: str) -> None:
    data = {"image": PNG, "audio": b"RIFF\x24\x08\x00\x00WAVEfmt " + b"\0" * 32, "pdf": b"%PDF-1.4\n" + b"x" * 60}[kind]
    Path("attached").write_bytes(data)
    provider.linted = False
    provider.script(ANSWERS[format], ANSWERS[format])
    prompt = compose("look", files=(Path("attached"),), cwd=Path.cwd(), origin="keyboard")
    given = flags(provider, format)
    events = await events_of(prompt, no_session=True, **given)
    is_sent = base64.b64encode(data)[:24] in provider.requests[-1].body.replace(b"\\/", b"/")
    assert ("not sent" in said(events)) != is_sent
    conversation = await open_conversation(StartOptions(flags={**given, "no_session": True}, attended=False))
    choice = conversation.choice
    await conversation.close()
    assert bool(unsupported_media(choice, prompt)) != is_sent
    if is_sent:
        must_be_sent(choice, prompt)
    else:
        with pytest.raises(UsageError) as refused:
            must_be_sent(choice, prompt)
        assert "--ignore-unsupported" in refused.value.hint


async def test_an_attachment_is_told_of_once(provider: ProviderServer) -> None:
    provider.script(text("One."), text("Two."))
    options = {**flags(provider), "set": ['providers.custom.models=[{id = "m", dialect = {images = false}}]']}
    conversation = await open_conversation(StartOptions(flags=options, attended=False))
    first = [event async for event in conversation.prompt(compose("look", files=(picture(),), cwd=Path.cwd(), origin="keyboard"))]
    second = [event async for event in conversation.prompt(typed("and now?"))]
    await conversation.close()
    assert said(first).count("custom/m does not take images: dot.png is not sent.") == 1
    assert "not sent" not in said(second)


async def test_attachment_of_a_result_is_named_with_tool(provider: ProviderServer) -> None:
    picture()
    provider.script(call("read", {"path": "dot.png"}), text("One."))
    options = {**flags(provider), "set": ['providers.custom.models=[{id = "m", dialect = {images = false}}]']}
    events = await events_of(typed("look"), **options)
    assert said(events).count("custom/m does not take images: dot.png (read) is not sent.") == 1


async def test_unsent_part_is_named_by_kind_or_address(provider: ProviderServer) -> None:
    choice = await choice_of(provider, "anthropic")
    bitmap = ImagePart(name="a.bmp", media_type="image/bmp", data=b"BM")
    odd, sound = ImagePart(url="ftp://example.org/b.png"), AudioPart(name="c\x1b.wav", media_type="audio/wav", data=b"RIFF")
    pictures = (ImagePart(name=f"{at}.bmp", media_type="image/bmp", data=b"BM") for at in range(7))
    for parts, words in (
        ((bitmap,), "does not take image/bmp: a.bmp is not sent."),
        ((odd,), "does not take such addresses: ftp://example.org/b.png is not sent."),
        ((bitmap, sound), "does not take image/bmp or audio: a.bmp and c\\x1b.wav are not sent."),
        ((AudioPart(media_type="audio/wav", data=b"RIFF"),), "does not take audio: 1 audio file is not sent."),
        (pictures, "0.bmp, 1.bmp, 2.bmp, 3.bmp, 4.bmp and 2 more are not sent."),
    ):
        assert words in describe_unsupported(unsupported_media(choice, user("look", *parts)), choice.label)


@pytest.mark.parametrize("format", FORMATS)
async def test_the_name_of_an_attachment_is_never_sent(provider: ProviderServer, format: str) -> None:
    choice = await choice_of(provider, format)
    parts = (ImagePart(media_type="image/png", data=PNG), AudioPart(media_type="audio/wav", data=b"RIFF"))
    plain, named = ([replace(part, name=name) for part in parts] for name in ("", "dot.png"))
    result = ToolPart(tool="read", raw_input="{}", status="completed", output="ok", outcome="ok")

    def body(media: Sequence[ImagePart | AudioPart]) -> bytes:
        messages = (user("look", *media), Message(role="assistant", parts=(replace(result, output_parts=tuple(media)),)))
        return format_of(choice).encode(request_for(choice, producer_of(choice, choice.format), ModelQuestion(messages=messages)))

    assert body(plain) == body(named)


async def test_refused_required_attachment_ends_the_turn(provider: ProviderServer) -> None:
    refusal = error(400, {"error": {"message": "Invalid content type. image_url is only supported by certain models."}})
    provider.script(refusal)
    prompt = compose("look", files=(picture(),), cwd=Path.cwd(), origin="keyboard")
    conversation = await open_conversation(StartOptions(flags=flags(provider), attended=False))
    events = [event async for event in conversation.prompt(must_be_sent(conversation.choice, prompt))]
    assert "--ignore-unsupported" in said(events)
    ended = events[-1]
    assert isinstance(ended, TurnEnded)
    assert ended.exit_code == 1
    provider.linted = False
    provider.script(refusal, text("Without it."))
    later = [event async for event in conversation.prompt(typed("then without it"))]
    await conversation.close()
    assert "refuses images" in said(later)
    assert SENT not in provider.requests[-1].body


# Silence, the window, tools


@pytest.mark.parametrize(
    ("settings", "first_byte_s"),
    [
        ([], 120),
        (["retry.idle_s=0"], 0),
        (["retry.idle_s=0", "retry.first_byte_s=7"], 7),
        (["retry.first_byte_s=7"], 7),
        (["retry.first_byte_s=0"], 0),
        (["retry.idle_s=5"], 5),
        (["retry.idle_s=5", "retry.first_byte_s=7"], 7),
    ],
)
async def test_silence_limit_holds_beside_every_other_limit(settings: list[str], first_byte_s: float) -> None:
    config = layers.load(replace(find_site(), environ={}), {"base_url": "http://192.0.2.1/v1", "model": "m"}, settings)
    choice, transport = find(config, {}, "m"), Noting()
    stream = HttpModelClient(choice, format_of(choice), transport, ClientOptions(retries=config.settings.retry))
    with pytest.raises(BadRequest):
        await stream.ask(ModelQuestion(messages=(user("go"),)), Silent())
    assert [call.first_byte_s for call in transport.calls] == [first_byte_s]


class Noting:
    """A transport that reaches nobody and notes what it was to send."""

    def __init__(self) -> None:
        self.calls: list[HttpCall] = []

    async def send(self, call: HttpCall) -> AsyncGenerator[Batch, None]:
        self.calls.append(call)
        raise BadRequest("noted")
        yield  # makes it a generator

    async def close(self) -> None: ...


class Silent:
    """A listener."""

    async def on_request(self, attempt: int, context_tokens: int) -> None: ...

    async def on_deltas(self, deltas: Sequence[Delta]) -> None: ...

    async def on_attempt_failed(self, error: ProviderError, attempt: int, tries: int, delay_s: float) -> None: ...

    async def on_replaced(self, error: ProviderError, model: str) -> None: ...

    async def on_notice(self, text: str, level: NoticeLevel = "warning") -> None: ...


async def test_without_compaction_nothing_beyond_the_window_is_sent(provider: ProviderServer) -> None:
    options = {**flags(provider), "set": ["compaction.auto=false", "context.window=4000"]}
    events = await events_of("word " * 6000, no_session=True, **options)
    ended = events[-1]
    assert isinstance(ended, TurnEnded)
    assert "compaction.auto is off: nothing was sent" in said(events)
    assert ended.exit_code == 1
    assert not provider.requests
    provider.script(text("fine"))
    assert "nothing was sent" not in said(await events_of("a few words", no_session=True, tools="read", **options))


async def test_unoffered_tool_is_not_named_in_errors(provider: ProviderServer) -> None:
    provider.script(call("nonsense", {}), text("fine"))
    events = await events_of("go", tools="read", **flags(provider))
    (told,) = [event.part.output for event in events if isinstance(event, CallEnded)]
    assert "The tools are: read." in told
    offered = [tool["function"]["name"] for tool in json.loads(provider.requests[-1].body)["tools"]]
    assert offered == ["read"]


@pytest.mark.parametrize("spec", ["zai/glm-5.2", "custom/m", "m"])
def test_hint_concerns_the_asked_address(spec: str) -> None:
    choice = catalog.Catalog({}).find(spec, base_url="http://127.0.0.1:9/v1", api_key="k-0123456789abcdef")
    assert choice.provider.hint == "Check --api-key (or WOLO_API_KEY) and --base-url."


def test_a_level_reaches_a_provider_of_the_settings() -> None:
    own = {"mine": ProviderSettings(base_url="http://127.0.0.1:9/v1")}
    choice = catalog.Catalog({}, own).find("mine/m")
    assert not no_effect_notice(replace(choice, thinking="high"))
