"""Select the wire format of a model, and redact its key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import msgspec

from wolo.errors import ConfigError, ProviderError
from wolo.formats.format import Format
from wolo.messages.secret_values import ValueRedactor, encoded_forms
from wolo.models.address import is_loopback, origin
from wolo.models.catalog_files import PROVIDERS, did_you_mean
from wolo.models.provider import FACTS, ModelChoice, OtherApi

FORMATS = ("openai-chat", "xml", "openai-responses", "ollama", "anthropic", "gemini")
"""Names used by `--api` and `format` in provider files."""
API_NAMES = {
    "openai-chat": "Chat Completions",
    "xml": "Chat Completions",
    "openai-responses": "OpenAI Responses",
    "ollama": "Ollama",
    "anthropic": "Anthropic Messages",
    "gemini": "Gemini",
}
"""As their users know them."""
SHOWN_CHARS = 4
LEAST_CHARS = 16
"""Shorter texts are no keys; nothing of them is shown."""
WRITTEN_CALLS = "leaked_calls"
"""Dialect flag that accepts calls written as text; off for hosted services."""

D = TypeVar("D", bound=msgspec.Struct)


def format_of(choice: ModelChoice) -> Format:
    """Create the wire format for a model. Raises ConfigError."""
    match format := choice.format:
        case "openai-chat":
            from wolo.formats.chat_dialect import ChatDialect
            from wolo.formats.openai_chat import OpenAIChat

            return OpenAIChat(_dialect(choice, format, ChatDialect), provider_hint=choice.provider.hint)
        case "ollama":
            from wolo.formats.ollama import Ollama, OllamaDialect

            return Ollama(_dialect(choice, format, OllamaDialect), provider_hint=choice.provider.hint)
        case "anthropic":
            from wolo.formats.anthropic import Anthropic, AnthropicDialect

            return Anthropic(_dialect(choice, format, AnthropicDialect), provider_hint=choice.provider.hint)
        case "openai-responses":
            from wolo.formats.openai_responses import OpenAIResponses, ResponsesDialect

            return OpenAIResponses(_dialect(choice, format, ResponsesDialect), provider_hint=choice.provider.hint)
        case "xml":
            from wolo.formats.openai_chat import OpenAIChat
            from wolo.formats.xml_tools import XmlDialect, XmlTools, carrier_dialect

            xml = _dialect(choice, format, XmlDialect)
            return XmlTools(OpenAIChat(carrier_dialect(xml), provider_hint=choice.provider.hint), xml)
        case "gemini":
            from wolo.formats.gemini import Gemini, GeminiDialect

            return Gemini(_dialect(choice, format, GeminiDialect), provider_hint=choice.provider.hint)
        case unknown:
            raise unknown_format(unknown)


def dialect_of(choice: ModelChoice) -> msgspec.Struct:
    """Effective dialect of a model. Raises ConfigError."""
    return _dialect(choice, choice.format, dialect_type(type(format_of(choice))))


def dialect_type(format: type[Format]) -> type[msgspec.Struct]:
    """The dialect class of a format."""
    bases: Sequence[Any] = getattr(format, "__orig_bases__", ())  # `BaseFormat[Dialect]`
    kinds = get_args(bases[0]) if bases else get_type_hints(format.__init__).values()
    return next(kind for kind in kinds if isinstance(kind, type) and issubclass(kind, msgspec.Struct))


def unknown_format(name: str) -> ConfigError:
    return ConfigError(f"There is no wire format `{name}`.", hint=f"Known are {', '.join(FORMATS)}.")


def redact(error: ProviderError, choice: ModelChoice) -> None:
    """Remove the key from an error but for its masked end, since servers repeat it."""
    key = ValueRedactor(encoded_forms(choice.api_key), lambda found: f"[key {mask_key(choice.api_key)}]".replace(" …]", "]"))
    error.message, error.hint = key.text(error.message), key.text(error.hint)
    error.args = (error.message,)


def mask_key(key: str) -> str:
    """The last characters, which tell keys apart; none of a short key."""
    return f"…{key[-SHOWN_CHARS:]}" if len(key) >= LEAST_CHARS and key.isprintable() else "…"


def key_of(choice: ModelChoice) -> ValueRedactor:
    """Redactor for the key."""
    return ValueRedactor(encoded_forms(choice.api_key), lambda found: "[key]")


def _dialect(choice: ModelChoice, format: str, kind: type[D]) -> D:
    provider = choice.provider
    shared = provider.dialect if format == provider.format else provider.also.get(format, OtherApi()).dialect
    known = {*kind.__struct_fields__}
    own = {name: value for name, value in choice.model.dialect.items() if name in known or name not in FACTS}
    flags = {**shared, **own}
    # Hosted is a catalogue provider at its own address; local or moved servers may be anything.
    address = origin(choice.base_url)
    is_hosted = provider.name in PROVIDERS and address == origin(provider.base_url)
    if WRITTEN_CALLS in known and is_hosted and not (provider.loopback or is_loopback(address[1])):
        flags = {WRITTEN_CALLS: False, **flags}
    try:
        return msgspec.convert(flags, kind)
    except msgspec.ValidationError as error:
        raise _wrong_flag(choice, flags, kind, str(error)) from error


def _takes(kind: Any) -> str:
    if words := get_args(kind) if get_origin(kind) is Literal else ():
        return f"one of {', '.join(map(str, words))}"
    if get_origin(kind) is tuple:
        return f"a list, each {_takes(get_args(kind)[0])}"
    return {bool: "true or false", int: "a whole number", float: "a number", str: "text"}.get(kind, "something else")


def _wrong_flag(choice: ModelChoice, flags: Mapping[str, object], kind: type[msgspec.Struct], message: str) -> ConfigError:
    setting = f"providers.{choice.provider.name}.dialect"
    known = [*kind.__struct_fields__]
    unknown = next((name for name in flags if name not in known), None)
    if unknown is None:
        name = message.rpartition("`$.")[2].partition("`")[0].partition("[")[0]
        takes = next((_takes(each.type) for each in msgspec.structs.fields(kind) if each.name == name), "")
        value = msgspec.json.encode(flags.get(name)).decode()
        return ConfigError(
            f"The flag `{name}` of {choice.label} cannot be {value}: it takes {takes}.", hint=f"It is set in {setting}."
        )
    more = f"Its flags are {', '.join(known)}; they are set in {setting}."
    return ConfigError(f"The format {choice.format} has no flag `{unknown}`.", hint=did_you_mean(unknown, known, more))
