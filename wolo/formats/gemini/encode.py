"""Encode messages as Gemini contents: user and model alternate, and all results of a response are one content."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from wolo.formats.encoding.attachments import MEDIA_BELOW, ONLY_ATTACHMENT, base64_text, not_sent, read_data_url
from wolo.formats.encoding.encoder import CONTINUE, Item, Layout, MessageLayout
from wolo.formats.encoding.thinking_levels import nearest_level
from wolo.formats.encoding.wire_forms import LEGAL_IDS, arguments_object, outcome_of, result_text, wire_name
from wolo.formats.format import ThinkingLevel
from wolo.messages.media import audio_type, image_type
from wolo.messages.message import Message, Producer
from wolo.messages.parts import AudioPart, FilePart, ImagePart, MediaPart, TextPart, ThinkingPart, ToolPart
from wolo.messages.unicode import clean

GENERATION = re.compile(r"gemini-(\d+)(?:[.-](\d)(?!\d))?", re.IGNORECASE)
NEWEST = (3, 0)
"""Generation assumed for names without a number, such as `gemini-flash-latest`."""


class GeminiDialect(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`auto` follows the generation in the model name."""

    models_path: str = "/v1beta/models"
    """Path of models below the base URL; differs on Vertex AI."""
    thinking_style: Literal["auto", "budget", "level", "none"] = "auto"
    """Thinking is set in tokens (2.5) or in levels (since 3)."""
    thinking_levels: tuple[ThinkingLevel, ...] = ("low", "medium", "high")
    """Supported levels; others map to the next higher level, or the highest."""
    thinking_budgets: tuple[int, int] = (0, 24_576)
    """Minimum and maximum thinking tokens; a minimum of 0 means thinking can be disabled."""

    signatures: Literal["auto", "required", "optional"] = "auto"
    """`required`: the first call of each response must carry a thought signature or its placeholder."""
    result_media: Literal["auto", "native", "after"] = "auto"
    """Images of a result go into its function response, or after all responses of the batch."""
    call_ids: bool = True
    """Send back call ids that the server assigned."""
    system_instruction: bool = True
    """False: the system prompt becomes the first user message."""

    schema_field: Literal["parametersJsonSchema", "parameters"] = "parametersJsonSchema"
    """Field for tool schemas: JSON Schema, or the OpenAPI subset that all servers support."""
    tool_mode: Literal["AUTO", "VALIDATED", ""] = "AUTO"
    """Function calling mode; empty: omitted."""
    json_beside_tools: Literal["auto", "yes", "no"] = "auto"
    """A response schema may be combined with tools."""
    sampling: Literal["open", "fixed"] = "open"
    """`fixed`: temperature and topP are refused or ignored."""

    web_search: bool = False
    """Searches the web with its own tool `google_search`."""

    images: bool = True
    audio: bool = True
    files: bool = True
    """PDF, text and video."""
    file_addresses: bool = True
    """The server fetches file URLs."""


def resolve_dialect(dialect: GeminiDialect, model: str) -> GeminiDialect:
    """Replace every `auto`."""
    # `gemini-2.5-pro` is (2, 5); open Gemma models are (0, 0).
    if "gemma" in model.lower():
        generation = (0, 0)
    else:
        found = GENERATION.search(model)
        generation = (int(found[1]), int(found[2] or 0)) if found else NEWEST
    is_new = generation >= NEWEST
    thinking = "level" if is_new else "budget" if generation >= (2, 5) else "none"
    settled: dict[str, str] = {
        "thinking_style": thinking,
        "signatures": "required" if is_new else "optional",
        "result_media": "native" if is_new else "after",
        "json_beside_tools": "yes" if is_new else "no",
    }
    return replace(dialect, **{name: value for name, value in settled.items() if getattr(dialect, name) == "auto"})


BUDGETS: dict[ThinkingLevel, int] = {"off": 0, "minimal": 512, "low": 2_048, "medium": 8_192, "high": 16_384, "xhigh": 24_576}
"""Clamped to the model's limits; `max` means its maximum."""


def thinking_config(dialect: GeminiDialect, level: ThinkingLevel | None) -> dict[str, Any]:
    """Request thoughts unless thinking is off. Without a level the model's default applies."""
    if dialect.thinking_style == "none":
        return {}
    if level is None:
        return {"includeThoughts": True}
    if dialect.thinking_style == "level":
        known = nearest_level(level, dialect.thinking_levels)
        return {"includeThoughts": level != "off", "thinkingLevel": known.upper()}
    fewest, most = dialect.thinking_budgets
    budget = min(max(BUDGETS.get(level, most), fewest), most)
    return {"includeThoughts": True, "thinkingBudget": budget} if budget and level != "off" else {"thinkingBudget": budget}


NAME = "gemini"
THOUGHT_SIGNATURE = "gemini.thoughtSignature"
"""Blob kind, stored on the text, thought or call that the signature came with."""
NO_SIGNATURE = "skip_thought_signature_validator"
"""Placeholder that Google documents for calls made by other models."""

_BASE64 = re.compile(r"[A-Za-z0-9+/_-]+={0,2}")

WirePart = dict[str, Any]


class GeminiLayout(Layout):
    user_roles = ("user",)

    def __init__(self, dialect: GeminiDialect, producer: Producer, withheld: Collection[str] = ()) -> None:
        """`dialect` must be resolved; `withheld` names fields the server has refused."""
        super().__init__()
        self._dialect, self._producer, self._withheld = dialect, producer, withheld
        self._nests_media = dialect.result_media == "native" and "functionResponse.parts" not in withheld
        self._sends_ids = dialect.call_ids and "id" not in withheld

    def opening_items(self, system: str) -> list[Item]:
        """Used only when the server has no field for system prompts."""
        if not system.strip():
            return []
        self.role = "user"
        return [self.user_item(clean(system))]

    def user_item(self, text: str) -> Item:
        return {"role": "user", "parts": [{"text": text}]}

    def _between(self, role: str) -> list[Item]:
        if role == "model" and self.role != "user":
            return [self.user_item(CONTINUE)]
        if role == self.role == "user":
            return [{"role": "model", "parts": [{"text": self.no_answer}]}]
        return []

    def _items(self, message: Message, layout_step: MessageLayout) -> Iterator[Item]:
        if message.role != "assistant":
            parts: list[WirePart] = []
            for part in message.parts:
                if isinstance(part, TextPart):
                    parts += [{"text": clean(part.text)}] if part.text.strip() else []
                elif not isinstance(part, ThinkingPart | ToolPart):
                    item = media_part(part, self._dialect)
                    parts.append({"text": item} if isinstance(item, str) else item)
            yield {"role": "user", "parts": parts}
            return
        calls = message.calls
        ids = {call.id: self._id(call, message, layout_step) for call in calls}
        yield {"role": "model", "parts": self._model_parts(message, ids)}
        if calls:
            yield {"role": "user", "parts": self._results(calls, ids)}

    # Model contents

    def _model_parts(self, message: Message, ids: dict[str, str]) -> list[WirePart]:
        own = message.producer == self._producer and "thoughtSignature" not in self._withheld
        parts: list[WirePart] = []
        is_first = True
        for part in message.parts:
            signatures = [each.data for each in part.blobs if own and each.kind == THOUGHT_SIGNATURE and is_signature(each.data)]
            signed = {"thoughtSignature": signatures[0]} if signatures else {}
            match part:
                case TextPart():
                    parts += [{"text": clean(part.text), **signed}] if signed or part.text.strip() else []
                case ThinkingPart():  # replayed only to carry a signature
                    parts += [{"text": clean(part.text), "thought": True, **signed}] if signed else []
                case ToolPart():
                    if is_first and not signed and self._dialect.signatures == "required":
                        signed = {"thoughtSignature": NO_SIGNATURE}
                    wire = {"id": ids[part.id]} if ids[part.id] else {}
                    call = {**wire, "name": gemini_name(part.tool), "args": arguments_object(part)}
                    parts.append({"functionCall": call, **signed})
                    is_first = False
        return parts or [{"text": ONLY_ATTACHMENT}]

    def _id(self, call: ToolPart, message: Message, layout_step: MessageLayout) -> str:
        """An id assigned by a server of this format; never one from another format."""
        came = message.producer is not None and message.producer.format == NAME
        own = call.call_id
        if not (came and self._sends_ids and re.fullmatch(LEGAL_IDS["opaque"], own)) or own in self._used_ids:
            return ""
        return self.wire_id(call, layout_step)

    # Function responses

    def _results(self, calls: tuple[ToolPart, ...], ids: dict[str, str]) -> list[WirePart]:
        responses: list[WirePart] = []
        following: list[WirePart] = []
        for call in calls:
            media = [media_part(part, self._dialect) for part in call.output_parts]
            items = [item for item in media if isinstance(item, dict)]
            nested = [
                item
                for item in items
                if self._nests_media and "inlineData" in item and item["inlineData"]["mimeType"] in IN_RESPONSES
            ]
            following += [item for item in items if item not in nested]
            notes = [item for item in media if isinstance(item, str)]
            told = "output" if outcome_of(call) == "ok" else "error"
            response = {
                **({"id": ids[call.id]} if ids[call.id] else {}),
                "name": gemini_name(call.tool),
                "response": {told: result_text(call, notes)},
                **({"parts": nested} if nested else {}),
            }
            responses.append({"functionResponse": response})
        return [*responses, {"text": MEDIA_BELOW}, *following] if following else responses


def is_signature(text: str) -> bool:
    """The server refuses a signature that is not valid base64."""
    return _BASE64.fullmatch(text) is not None and len(text.rstrip("=")) % 4 != 1


IMAGE_TYPES = frozenset({"image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"})
IN_RESPONSES = IMAGE_TYPES | {"application/pdf", "text/plain"}
"""Media types allowed inside function responses."""
OTHER_NAMES = {
    "image/jpg": "image/jpeg",
    "audio/mpeg": "audio/mp3",
    "audio/x-wav": "audio/wav",
    "audio/wave": "audio/wav",
    "audio/x-m4a": "audio/aac",
    "audio/x-flac": "audio/flac",
    "audio/x-aiff": "audio/aiff",
}
"""Media types with a different name in Gemini."""
PDF = "application/pdf"


def media_part(part: MediaPart, dialect: GeminiDialect) -> WirePart | str:
    """A content part, or a note for the model about what was not sent."""
    match part:
        case ImagePart():
            if not dialect.images:
                return not_sent(part)
            kind, data = _type_name(part.media_type or image_type(part.data) or "image/png"), part.data
            if not data and part.url.startswith("data:"):
                kind, data = read_data_url(part.url)
                kind = _type_name(kind)
            if data:
                return (
                    _inline(kind, data) if kind in IMAGE_TYPES else f"[image, not sent: this model does not take {kind or 'it'}]"
                )
            return _by_address(part.url, part.media_type, dialect) if part.url else "[empty image]"
        case AudioPart():
            kind = _type_name(part.media_type or audio_type(part.data) or "audio/wav")
            return _inline(kind, part.data) if dialect.audio and part.data and kind.startswith("audio/") else not_sent(part)
        case FilePart():
            if not dialect.files:
                return not_sent(part)
            kind, data = _type_name(part.media_type), part.data
            if not data and part.url.startswith("data:"):
                kind, data = read_data_url(part.url)
                kind = _type_name(kind)
            if not data:
                return _by_address(part.url, part.media_type, dialect) if part.url else f"[{clean(part.name) or 'file'}, empty]"
            kind = kind or (PDF if data.startswith(b"%PDF") else "text/plain" if _is_text(data) else "")
            takes = kind == PDF or kind in IMAGE_TYPES or kind.startswith(("text/", "video/", "audio/"))
            return _inline(kind, data) if takes else not_sent(part)


def _by_address(url: str, media_type: str, dialect: GeminiDialect) -> WirePart | str:
    address = clean(url)
    if not dialect.file_addresses or url.startswith("data:"):
        return f"[attachment, not sent: this server takes no addresses: {address[:200]}]"
    kind = {"mimeType": _type_name(media_type)} if media_type else {}
    return {"fileData": {**kind, "fileUri": address}}


def _inline(kind: str, data: bytes) -> WirePart:
    return {"inlineData": {"mimeType": kind, "data": base64_text(data)}}


def _type_name(media_type: str) -> str:
    plain = clean(media_type).partition(";")[0].strip().lower()
    return OTHER_NAMES.get(plain, plain)


def _is_text(data: bytes) -> bool:
    try:
        return "\0" not in data.decode()
    except UnicodeDecodeError:
        return False


NAMESPACE = "default_api"
"""Namespace that models sometimes put in front of a tool name."""


def gemini_name(name: str) -> str:
    """Names must start with a letter or an underscore."""
    wire = wire_name(name)
    if wire[0].isalpha() or wire[0] == "_":
        return wire
    return wire_name(f"_{name}", (f"_{name}",))


def own_names(tools: Iterable[str]) -> dict[str, str]:
    """Map wire names to our tool names."""
    return {gemini_name(tool): tool for tool in tools}


def own_name(wire: str, names: Mapping[str, str]) -> str:
    """Resolve the tool a call refers to."""
    if wire in names:
        return names[wire]
    bare = wire.removeprefix(NAMESPACE)
    return names.get(bare[1:], wire) if bare != wire and bare[:1] in (".", ":") else wire
