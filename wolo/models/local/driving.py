"""Settles how to drive a model by what its server says about it, once, before its first request."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from wolo.errors import BadAnswer, ConfigError, WoloError
from wolo.formats.tolerant_json import list_at, mapping_at
from wolo.messages.message import EMPTY_ANSWER, Message, named_mode, nudge
from wolo.models import capabilities, catalog_files, probe_cache, protocol
from wolo.models.address import is_near, join_url
from wolo.models.headers import request_headers
from wolo.models.http.transport import HttpCall, HttpStatusError, Transport
from wolo.models.probe_cache import ServerFacts, ServerKind
from wolo.models.provider import DRIVE_MODES, DRIVEN, DriveMode, ModelChoice

LOOK_UP_S: Final = 2.0
"""Limit of the whole look-up; a server that is busy answers it meanwhile."""
RECENT_S: Final = 10.0
"""Conversations of a process that begin so soon after an answer do not look up again."""
LEAST_FOR_CALLS: Final = 3e9
"""Parameters; smaller models are driven with small questions."""
LEAST_FOR_NATIVE: Final = 6.5e9
"""Parameters from which calls of the API are relied on where the server supports them."""
MOST_FOR_CONSTRAINED: Final = 15e9
LONGEST_ANSWER: Final = 4_096
"""Tokens of an answer of a model that is small enough to never come to an end; twice as many where it thinks."""
NOTHING_DONE: Final = "Nothing was done yet: no file was changed. Make the call that does what was asked."
OTHER_WAYS: Final = "Try --drive simple or --drive constrained, or a larger model with --model."
PARAMETERS: Final = r"(?<![a-z0-9.])(?:(\d+)x)?e?(\d+(?:\.\d+)?)(b|m)(?![a-z0-9])"
"""Parameter count in a model name: `0.5b`, `8x7B`, `270m`."""
CARRIERS: Final = ("openai-chat", "ollama", "xml")
"""Formats of servers that also take prompts of other modes."""

_KINDS: Final[Mapping[str, ServerKind]] = {
    "llama-cpp": "llama.cpp",
    "llamacpp": "llama.cpp",
    "ollama": "ollama",
    "library": "ollama",
    "lmstudio": "lmstudio",
    "organization_owner": "lmstudio",
    "vllm": "vllm",
}
"""Kinds by provider name, and by the owner that model lists name."""


class Decision(Struct, frozen=True):
    mode: DriveMode
    reason: str


def decide(choice: ModelChoice, facts: ServerFacts) -> Decision:
    """Choose the mode for a model. A finished probe has set `choice.drive` and the format already."""
    parameters = facts.parameters or parameters_in(choice.model.id)
    has_tools = facts.tools is not False and "tools" in choice.model.abilities and choice.format != "xml"
    if parameters is None:
        return Decision("native", "size unknown") if has_tools else Decision("written", "no calls in its API")
    size = f"{parameters / 1e9:.1f}B" if parameters >= 950_000_000 else f"{parameters / 1e6:.0f}M"
    if parameters < LEAST_FOR_CALLS:
        return Decision("simple", f"{size} parameters")
    if parameters >= LEAST_FOR_NATIVE and has_tools:
        return Decision("native", f"{size} parameters, calls in its API")
    if parameters < MOST_FOR_CONSTRAINED and facts.kind != "other":
        return Decision("constrained", f"{size} parameters")
    return Decision("native" if has_tools else "written", f"{size} parameters")


def parameters_in(name: str) -> int | None:
    """Number of parameters that a model name states, such as `qwen2.5-coder:0.5b`."""
    found = [
        float(count) * float(experts or 1) * (1e9 if unit == "b" else 1e6)
        for experts, count, unit in re.findall(PARAMETERS, name.lower().replace("_", "-"))
    ]
    return int(max(found)) if found else None


def as_mode(name: str) -> DriveMode:
    """Raises ConfigError for an unknown mode."""
    mode = next((mode for mode in DRIVE_MODES if mode == name), None)
    if mode is None:
        raise ConfigError(f"There is no driving mode `{name}`.", hint=f"They are {', '.join(DRIVE_MODES)}.")
    return mode


def force_mode(choice: ModelChoice, mode: DriveMode) -> ModelChoice:
    """The choice in a mode of the user. Raises ConfigError where its server cannot be driven so."""
    if choice.format not in CARRIERS and mode != "native":
        raise ConfigError(
            f"{choice.label} cannot be driven in {mode} mode: its API is {choice.format}.",
            hint="Other modes than native need Chat Completions or Ollama.",
        )
    return replace(as_written(choice) if mode == "written" else choice, drive=mode)


def as_written(choice: ModelChoice) -> ModelChoice:
    """The choice in the text protocol."""
    if choice.format == "xml":
        return choice
    provider = catalog_files.in_format(choice.provider, "xml")
    path = "/v1" if choice.format == "ollama" else ""
    return replace(
        choice,
        provider=provider,
        model=replace(choice.model, format="xml"),
        base_url=choice.base_url.rstrip("/").removesuffix(path) + path if path else choice.base_url,
    )


def may_differ(choice: ModelChoice) -> bool:
    """Tells whether another mode than native may be right for this model, or its answers need a limit.

    At another machine only its name and its provider count: nothing is looked up there.
    """
    if choice.format not in CARRIERS:
        return False
    if choice.drive in DRIVEN or is_near(choice.base_url):
        return True
    is_self_hosted = choice.provider.loopback or choice.provider.name == "custom"
    count = parameters_in(choice.model.id) if is_self_hosted and choice.drive is None else None
    return count is not None and count < LEAST_FOR_CALLS


def _left_undone(question: protocol.ModelQuestion) -> bool:
    """Tells whether the prompt asks for changed files or a command, which this turn did not bring."""
    from wolo.models.local.checks.requested_work import asks_for_files, calls_since_prompt, was_done  # noqa: PLC0415  # small models only

    if named_mode(question.messages) == "plan":
        return False
    prompt = next((message.text for message in reversed(question.messages) if message.is_prompt), "")
    work = asks_for_files(prompt) if any(tool.name == "write" for tool in question.tools) else ""
    return bool(work) and not was_done(work, calls_since_prompt(question.messages))


OpenDriver = Callable[[ModelChoice, ServerFacts], protocol.ModelClient]
"""Opens the client of the mode that was settled, `choice.drive`."""


class DrivenModelClient(protocol.LazyModelClient):
    """Settles the mode at the first question, and passes every question to the client of that mode."""

    def __init__(self, choice: ModelChoice, transport: Transport, cache: Path, open_driver: OpenDriver) -> None:
        super().__init__(choice, open_driver)
        self._place, self._transport, self._cache = (choice.provider.name, choice.base_url, choice.model.id), transport, cache
        self._looking: asyncio.Task[ServerFacts] | None = None
        self._facts: ServerFacts | None = None
        """Just looked up, for a first question that has no answer yet."""
        self._nudged = ""
        """Id of the prompt whose work was asked for again."""
        self._longest: int | None = None
        """Limit of an answer that has no other; None: a large model."""

    def look_ahead(self) -> None:
        """Looks up before the first question."""
        self._looking = asyncio.create_task(self._look_up())

    async def ask(self, question: protocol.ModelQuestion, listener: protocol.Listener) -> Message:
        if self._client is None:
            choice, looking, self._looking = self._choice, self._looking, None
            facts = await (looking or self._look_up())
            if choice.drive is None:
                decision = decide(choice, facts)
                choice = replace(choice, drive=decision.mode)
                if decision.mode != "native":
                    await listener.on_notice(f"{choice.label} runs in {decision.mode} mode ({decision.reason}).", "info")
            if choice.drive in DRIVEN or (facts.parameters or MOST_FOR_CONSTRAINED) < MOST_FOR_CONSTRAINED:
                self._longest = LONGEST_ANSWER * (2 if facts.thinks else 1)
            self._client = self._open(choice, facts)
        if self._longest and question.max_tokens is None and self.choice.drive != "simple":
            question = replace(question, max_tokens=self._longest)
        answer = await self._client.ask(question, listener)
        if self._facts is not None:  # its server is there and takes the key
            _recent[self._place], self._facts = (time.monotonic() + RECENT_S, self._facts), None
        checks_itself = not self._longest or self.choice.drive in DRIVEN  # constrained mode may have become written mode
        if checks_itself or answer.calls or answer.finish_reason != "stop" or not _left_undone(question):
            return answer
        error = BadAnswer(f"{self.choice.label} was asked for work and did nothing.", hint=OTHER_WAYS)
        if self._nudged and self._nudged == question.prompt_id:
            raise error
        self._nudged = question.prompt_id
        await listener.on_attempt_failed(error, 1, 2, 0.0)
        note = nudge(NOTHING_DONE, EMPTY_ANSWER)
        answer = await self._client.ask(replace(question, messages=(*question.messages, answer, note)), listener)
        if answer.calls:
            return answer
        raise error

    async def _look_up(self) -> ServerFacts:
        valid_until_s, facts = _recent.get(self._place, (0.0, None))
        if facts is None or time.monotonic() >= valid_until_s:
            facts = self._facts = await known_facts(self._transport, self._choice, self._cache)
        return facts

    async def close(self) -> None:
        if self._looking:
            self._looking.cancel()
        await super().close()
        await self._transport.close()


# Looking up

_recent: dict[tuple[str, str, str], tuple[float, ServerFacts]] = {}
"""Facts about models that have answered, and until when they are valid."""


def facts_by_name(choice: ModelChoice) -> ServerFacts:
    return ServerFacts(kind=_KINDS.get(choice.provider.name, "other"), parameters=parameters_in(choice.model.id))


def predict_mode(choice: ModelChoice, cache: Path) -> Decision:
    """The mode that a run would settle on, from what its server said last, else from its name; asks nobody."""
    if choice.drive:
        return Decision(choice.drive, "probed or set")
    if choice.provider.name == capabilities.LOCAL:
        return Decision("simple", "embedded")
    if not may_differ(choice):
        return Decision("native", "")
    known = probe_cache.remember(cache, choice, None)
    decision = decide(choice, known or facts_by_name(choice))
    return decision if known else Decision(decision.mode, f"{decision.reason}; its server was not asked yet")


async def known_facts(transport: Transport, choice: ModelChoice, cache: Path, *, elsewhere: bool = False) -> ServerFacts:
    """Facts from the server if it is on this machine, else those it said last, else what the name says.

    `elsewhere`: also ask a server on another machine.
    """
    from_name = facts_by_name(choice)
    if not (is_near(choice.base_url) or elsewhere):
        return from_name
    found = await look_up(transport, choice)
    if found == from_name:
        return from_name
    return probe_cache.remember(cache, choice, found) or from_name


async def look_up(transport: Transport, choice: ModelChoice) -> ServerFacts | None:
    """Facts about a model, in one to three small requests; None: the server does not answer in time."""
    try:
        async with asyncio.timeout(LOOK_UP_S):
            root = root_of(choice.base_url)
            listing = await _get(transport, choice, join_url(f"{root}/v1", "/models", choice.provider.query))
            rows = [row for row in list_at(listing, "data", dict) if isinstance(row.get("id"), str)]
            named = [row for row in rows if row["id"] == choice.model.id]
            row: dict[str, Any] = next(iter(named or (rows if len(rows) == 1 else [])), {})
            owner = str(row.get("owned_by", ""))
            kind = _KINDS.get(owner, _KINDS.get(choice.provider.name, "other"))
            names = (choice.model.id, str(row.get("id", "")), str(row.get("root", "")))
            counted = next((count for name in names if (count := parameters_in(Path(name).name))), None)
            match kind:
                case "llama.cpp":
                    props = await _get(transport, choice, f"{root}/props")
                    return None if listing is None and props is None else _of_llama_cpp(row, props or {}, counted)
                case "ollama":
                    body = msgspec.json.encode({"model": choice.model.id})
                    shown = await _get(transport, choice, f"{root}/api/show", body)
                    return None if shown is None else _of_ollama(shown, counted)
                case "other" if owner and f"{owner}/" in str(row.get("id", "")):  # Ollama names a model's namespace as its owner
                    shown = await _get(transport, choice, f"{root}/api/show", msgspec.json.encode({"model": choice.model.id}))
                    return (
                        _of_ollama(shown, counted)
                        if shown
                        else ServerFacts(parameters=counted, context=_int(row.get("max_model_len")))
                    )
                case "lmstudio":
                    shown = await _get(transport, choice, f"{root}/api/v0/models/{choice.model.id}") or {}
                    context = _int(shown.get("loaded_context_length")) or _int(shown.get("max_context_length"))
                    tools = "tool_use" in shown["capabilities"] if isinstance(shown.get("capabilities"), list) else None
                    named_kind = str(shown.get("quantization", ""))
                    return ServerFacts(kind=kind, parameters=counted, tools=tools, context=context, quantization=named_kind)
                case _:
                    if listing is None:
                        return None
                    return ServerFacts(kind=kind, parameters=counted, context=_int(row.get("max_model_len")))
    except TimeoutError:
        return None


def _of_llama_cpp(row: Mapping[str, Any], props: Mapping[str, Any], counted: int | None) -> ServerFacts:
    meta, caps, settings = (
        mapping_at(row, "meta"),
        mapping_at(props, "chat_template_caps"),
        mapping_at(props, "default_generation_settings"),
    )
    template = props.get("chat_template")
    tools = caps.get("supports_tools", "tools" in template if isinstance(template, str) else None)
    return ServerFacts(
        kind="llama.cpp",
        parameters=_int(meta.get("n_params")) or counted or parameters_in(Path(str(props.get("model_path", ""))).name),
        tools=tools if isinstance(tools, bool) else None,
        thinks=isinstance(template, str) and "enable_thinking" in template,
        context=_int(settings.get("n_ctx")) or _int(meta.get("n_ctx")),
        quantization=str(meta.get("ftype") or props.get("model_ftype") or ""),
    )


def _of_ollama(shown: Mapping[str, Any], counted: int | None) -> ServerFacts:
    details, info = mapping_at(shown, "details"), mapping_at(shown, "model_info")
    can = shown.get("capabilities")
    return ServerFacts(
        kind="ollama",
        parameters=_int(info.get("general.parameter_count")) or parameters_in(str(details.get("parameter_size", ""))) or counted,
        tools="tools" in can if isinstance(can, list) else None,
        thinks=isinstance(can, list) and "thinking" in can,
        context=next((_int(value) for name, value in info.items() if name.endswith(".context_length")), None),
        quantization=str(details.get("quantization_level", "")),
    )


def root_of(base_url: str) -> str:
    """Address of the server without the path of its API."""
    return base_url.rstrip("/").removesuffix("/v1")


async def _get(transport: Transport, choice: ModelChoice, url: str, body: bytes = b"") -> Mapping[str, Any] | None:
    headers = {**request_headers(choice), "accept": "application/json"}
    method: Literal["POST", "GET"] = "POST" if body else "GET"
    call = HttpCall(
        url=url, body=body, headers=headers, first_byte_s=LOOK_UP_S, idle_s=LOOK_UP_S, method=method, is_alone=True
    )  # a request on a connection that is kept may be sent twice
    document: Any = None
    try:
        async for batch in transport.send(call):
            document = msgspec.json.decode(batch.whole) if batch.whole is not None else document
    except (WoloError, HttpStatusError, msgspec.DecodeError, UnicodeDecodeError):
        return None
    return document if isinstance(document, dict) else None


def _int(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
