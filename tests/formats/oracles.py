"""Validates requests with the vendors' own libraries; unknown keys are errors, except known extensions."""

from __future__ import annotations

import copy
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

Json = dict[str, Any]

CHAT_EXTENSIONS = frozenset(
    {
        "reasoning_content",
        "reasoning",
        "reasoning_text",
        "reasoning_details",
        "thinking",
        "tool_stream",
        "do_sample",
        "enable_thinking",
        "thinking_budget",
        "chat_template_kwargs",
        "cache_control",
        "extra_content",
    }
)
"""Keys that servers of Chat Completions have added to OpenAI's."""


OLLAMA_EXTENSIONS = frozenset({"truncate", "shift", "tool_call_id"})
"""Keys that the server reads and its library has not heard of."""


MISTRAL_ID = re.compile("[A-Za-z0-9]{9}")
"""Older tokenizers of Mistral refuse every other id; their libraries no longer check it."""
SCHEMAS = ("parameters", "options", "arguments")
"""Their keys are names of the caller's own."""


def complaints(format: str, body: Json) -> list[str]:
    """An empty list: the vendor's library would take it."""
    try:
        ORACLES[format](copy.deepcopy(body))
    except ValidationError as error:
        return [f"{'.'.join(str(step) for step in each['loc'])}: {each['msg']}" for each in error.errors()]
    return []


def _openai_chat(body: Json) -> None:
    """Mistral's reasoning is an item of the content list that OpenAI does not have; other servers know the name of a result."""
    for message in body["messages"]:
        if message["role"] == "tool":
            message.pop("name", None)
        if isinstance(message["content"], list):
            message["content"] = [part for part in message["content"] if part["type"] != "thinking"]
    _consume(_chat_adapter().validate_python([_without(body, CHAT_EXTENSIONS)]))


def _openai_responses(body: Json) -> None:
    _consume(_responses_adapter().validate_python([body]))


def _anthropic(body: Json) -> None:
    _consume(_anthropic_adapter().validate_python([body]))


def _gemini(body: Json) -> None:
    from google.genai import types

    known: dict[str, Any] = {
        "contents": TypeAdapter(list[types.Content]),
        "systemInstruction": TypeAdapter(types.Content),
        "tools": TypeAdapter(list[types.Tool]),
        "toolConfig": TypeAdapter(types.ToolConfig),
        "generationConfig": TypeAdapter(types.GenerationConfig),
    }
    _strict_keys("request", body, known)
    for name, adapter in known.items():
        if name in body:
            adapter.validate_python(body[name])


def _ollama(body: Json) -> None:
    from ollama._types import ChatRequest

    for message in body["messages"]:
        if "images" in message:  # the library wraps each, and unwraps it when it sends
            message["images"] = [{"value": image} for image in message["images"]]
    _strict_model(ChatRequest, _without(body, OLLAMA_EXTENSIONS), "request")


def _mistral(body: Json) -> None:
    """mistral-common checks more than shapes: order, ids, what may stand beside a call."""
    from mistral_common.protocol.instruct.request import ChatCompletionRequest
    from mistral_common.protocol.instruct.validator import MistralRequestValidatorV13, ValidationMode

    asked: Any = ChatCompletionRequest.from_openai(body["messages"], body.get("tools"), model=body["model"])
    MistralRequestValidatorV13(ValidationMode.serving).validate_request(asked)
    ids = [call["id"] for message in body["messages"] for call in message.get("tool_calls", ())]
    assert all(MISTRAL_ID.fullmatch(each) for each in ids), ids


ORACLES: Mapping[str, Callable[[Json], None]] = {
    "openai-chat": _openai_chat,
    "openai-responses": _openai_responses,
    "anthropic": _anthropic,
    "gemini": _gemini,
    "ollama": _ollama,
    "mistral": _mistral,
}


@cache
def _chat_adapter() -> TypeAdapter[Any]:
    from openai.types.chat.completion_create_params import CompletionCreateParamsStreaming

    return _strict(CompletionCreateParamsStreaming)


@cache
def _responses_adapter() -> TypeAdapter[Any]:
    from openai.types.responses.response_create_params import ResponseCreateParamsStreaming

    return _strict(ResponseCreateParamsStreaming)


@cache
def _anthropic_adapter() -> TypeAdapter[Any]:
    from anthropic.types.message_create_params import MessageCreateParamsStreaming

    return _strict(MessageCreateParamsStreaming)


def _strict(kind: Any) -> TypeAdapter[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the libraries' own types are not all pydantic would like
        return TypeAdapter(list[kind], config=ConfigDict(extra="forbid", arbitrary_types_allowed=True))


def _consume(value: Any) -> None:
    """The libraries type lists as iterables, which are checked only while they are read."""
    if isinstance(value, Mapping):
        for each in value.values():
            _consume(each)
    elif not isinstance(value, str | bytes) and hasattr(value, "__iter__") and not isinstance(value, BaseModel):
        for each in value:
            _consume(each)


def _without(value: Any, names: frozenset[str]) -> Any:
    if isinstance(value, dict):
        return {name: _without(each, names) for name, each in value.items() if name not in names}
    return [_without(each, names) for each in value] if isinstance(value, list) else value


def _strict_model(kind: type[BaseModel], value: Mapping[str, Any], place: str) -> None:
    """Also where the library itself would read over an unknown key."""
    kind.model_validate(value)
    known = {field.alias or name: field for name, field in kind.model_fields.items()}
    _strict_keys(place, value, known)
    for name, each in value.items():
        if name in SCHEMAS:
            continue
        for inner in _models(known[name].annotation):
            for item in each if isinstance(each, list) else [each]:
                if isinstance(item, dict):
                    _strict_model(inner, item, f"{place}.{name}")


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in getattr(annotation, "__args__", ()):
        yield from _models(inner)


def _strict_keys(place: str, value: Mapping[str, Any], known: Mapping[str, Any]) -> None:
    unknown = [name for name in value if name not in known]
    assert not unknown, f"{place} has keys that the vendor does not know: {unknown}"
