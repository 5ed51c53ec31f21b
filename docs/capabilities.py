"""Tables of what formats and providers support, derived from requests that are encoded for each of them."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator, Mapping
from itertools import product
from typing import Any, Literal, get_args, get_origin

import msgspec

from wolo.errors import ConfigError
from wolo.formats.format import Request, ToolSpec
from wolo.messages.message import Message, Producer
from wolo.messages.parts import AudioPart, Blob, FilePart, ImagePart, TextPart, ThinkingPart, ToolPart
from wolo.models.catalog_files import PROVIDERS, load
from wolo.models.format_selection import dialect_of, dialect_type, format_of
from wolo.models.headers import AUTH
from wolo.models.provider import Model, ModelChoice, Provider

MARK = "marker-of-this-probe"
ADDRESS = f"https://example.com/{MARK}.png"
PICTURE = b"\x89PNG\r\n\x1a\n" + MARK.encode() * 3
SOUND = b"RIFF\0\0\0\0WAVE" + MARK.encode() * 3
PAGES = b"%PDF-1.7\n" + MARK.encode() * 3
TOOL = ToolSpec(name="look", description="", parameters={"type": "object", "properties": {"at": {"type": "string"}}})
BLOB_KINDS = (
    "anthropic.signature",
    "anthropic.redacted",
    "openai.encrypted",
    "gemini.thoughtSignature",
    "openrouter.reasoning_details",
)
SCHEMA = {"type": "object", "properties": {MARK: {"type": "string"}}, "required": [MARK], "additionalProperties": False}

Probe = Callable[[Producer], Request]


def _request(producer: Producer, *messages: Message, **more: Any) -> Request:
    asked = Message(role="user", parts=(TextPart(text="go"),))
    return Request(model="m", producer=producer, messages=(asked, *messages), max_tokens=4096, **more)


def _said(producer: Producer, *parts: Any) -> Message:
    return Message(role="assistant", parts=parts, producer=producer)


def _shown(part: Any) -> Probe:
    return lambda producer: _request(producer, Message(role="user", parts=(part,)))


def _result(*media: Any, blobs: tuple[Blob, ...] = ()) -> ToolPart:
    return ToolPart(
        tool="look",
        call_id="call_1",
        item_id="fc_1",
        blobs=blobs,
        input={"at": "x"},
        status="completed",
        outcome="ok",
        output="seen",
        output_parts=media,
    )


PROBES: Mapping[str, tuple[Probe, bytes]] = {
    "images": (_shown(ImagePart(media_type="image/png", data=PICTURE)), base64.b64encode(PICTURE)),
    "addresses of images": (_shown(ImagePart(url=ADDRESS)), f'"{ADDRESS}"'.encode()),
    "audio": (_shown(AudioPart(media_type="audio/wav", data=SOUND)), base64.b64encode(SOUND)),
    "PDF": (_shown(FilePart(name="a.pdf", media_type="application/pdf", data=PAGES)), base64.b64encode(PAGES)),
    "images in results": (
        lambda who: _request(who, _said(who, _result(ImagePart(media_type="image/png", data=PICTURE))), tools=(TOOL,)),
        base64.b64encode(PICTURE),
    ),
    "reasoning as text": (
        lambda who: _request(who, _said(who, ThinkingPart(text=MARK, item_id="rs_1"), _result()), tools=(TOOL,)),
        MARK.encode(),
    ),
    "JSON schema": (lambda who: _request(who, json_schema=SCHEMA), MARK.encode()),
    "stop": (lambda who: _request(who, stop=(MARK,)), MARK.encode()),
    "temperature": (lambda who: _request(who, temperature=0.125), b"0.125"),
    "cache marks": (lambda who: _request(who, system="s"), b"cache_control"),
    "conversation's id": (lambda who: _request(who, session_id=MARK), MARK.encode()),
}


def capability_rows(formats: tuple[str, ...]) -> Iterator[str]:
    """Table of the request fields that each format sends; a flag's name means: when it is set so."""
    yield f"| | {' | '.join(f'`{name}`' for name in formats)} |"
    yield "|---|" + "---|" * len(formats)
    yield f"| tools | {' | '.join(map(_offers, formats))} |"
    for title, (probe, sign) in PROBES.items():
        cells = [_carries(name, lambda body, sign=sign: sign in body, probe) for name in formats]
        yield f"| {title} | {' | '.join(cells)} |"
    for title, read in {
        "signed or sealed reasoning": _seals,
        "levels of thinking": _thinks,
        "results of one round": _rounds,
    }.items():
        yield f"| {title} | {' | '.join(read(name) for name in formats)} |"


def _encode(format: str, probe: Probe, flags: Mapping[str, Any]) -> bytes:
    choice = ModelChoice(Provider("p", "", "", format=format, dialect=flags), Model(id="m"), "")
    encoder = format_of(choice)
    return encoder.encode(probe(Producer(provider="p", format=encoder.name, model="m")))


def _carries(format: str, holds: Callable[[bytes], bool], probe: Probe) -> str:
    if holds(_encode(format, probe, {})):
        return "yes"
    for flag, value in _single_flags(format):
        try:
            if holds(_encode(format, probe, {flag: value})):
                return f"`{flag}`"
        except ConfigError:
            continue
    return "no"


def _single_flags(format: str) -> Iterator[tuple[str, Any]]:
    """Every flag with few values, set to each value but its default."""
    for field in msgspec.structs.fields(_type(format)):
        values = (True, False) if field.type is bool else get_args(field.type) if get_origin(field.type) is Literal else ()
        yield from ((field.name, value) for value in values if value != field.default)


def _type(format: str) -> type[msgspec.Struct]:
    return dialect_type(type(format_of(ModelChoice(Provider("p", "", "", format=format), Model(id="m"), ""))))


def _offers(format: str) -> str:
    body = json.loads(_encode(format, lambda who: _request(who, tools=(TOOL,)), {}))
    return "yes" if body.get("tools") else "in the prompt" if TOOL.name in json.dumps(body) else "no"


def _seals(format: str) -> str:
    """Checks the signature on the reasoning, or on the call after it."""
    sealed = base64.b64encode(MARK.encode()).decode()
    for kind, data in product(BLOB_KINDS, (sealed, json.dumps([{"type": "reasoning.text", "data": sealed}]))):
        seals = (Blob(kind=kind, data=data),)
        parts = (ThinkingPart(text="thought", item_id="rs_1", blobs=seals), _result(blobs=seals))
        body = _encode(format, lambda who, parts=parts: _request(who, _said(who, *parts), tools=(TOOL,)), {})
        if sealed.encode() in body:
            return "yes"
    return "no"


def _thinks(format: str) -> str:
    def says(level: Any) -> Probe:
        return lambda who: _request(who, thinking=level, max_output=65_536)

    for flag, value in ((None, None), *_single_flags(format)):
        flags = {flag: value} if flag else {}
        if _encode(format, says("high"), flags) != _encode(format, says("low"), flags):
            return f"`{flag}`" if flag else "yes"
    return "no"


def _rounds(format: str) -> str:
    """The number of messages that carry the results of three calls."""

    def round_of(count: int) -> Probe:
        calls = [
            ToolPart(tool="look", call_id=f"call_{n}", input={}, status="completed", outcome="ok", output="x")
            for n in range(count)
        ]
        return lambda who: _request(who, _said(who, *calls), tools=(TOOL,))

    one, three = (_count(json.loads(_encode(format, round_of(count), {}))) for count in (1, 3))
    return "one message" if three == one else "a message each"


def _count(body: Mapping[str, Any]) -> int:
    """The number of messages in a body; the name of their list depends on the format."""
    return max(len(body.get(name, ())) for name in ("messages", "contents", "input"))


def provider_rows() -> Iterator[str]:
    """Table of how requests to each provider differ, by the flags of its default model."""
    yield "| Provider | Name | Format | Key | Reasoning | goes back | Ids | Limit |"
    yield "|---|---|---|---|---|---|---|---|"
    for name in PROVIDERS:
        provider = load(name)
        model = next((model for model in provider.models if model.id == provider.default_model), Model(id="any"))
        choice = ModelChoice(provider, model, provider.base_url)
        dialect = dialect_of(choice)
        cells = (
            provider.label,
            f"`{name}`",
            f"`{choice.format}`",
            provider.auth or AUTH.get(choice.format, "bearer") if provider.key_env else "none",
            _flag(dialect, "thinking_param_style", "thinking_style", "think", "effort"),
            _flag(dialect, "reasoning_replay", "thinking_replay"),
            _flag(dialect, "id_policy"),
            _flag(dialect, "max_tokens_field"),
        )
        yield f"| {' | '.join(cells)} |"


def _flag(dialect: msgspec.Struct, *names: str) -> str:
    """The value of the flag that this format has; a dash when it has none of them."""
    value = next((getattr(dialect, name) for name in names if hasattr(dialect, name)), "–")
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)
