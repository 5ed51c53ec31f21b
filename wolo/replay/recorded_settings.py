"""What held when a session was recorded, as far as it tells, for a replay under the settings of today."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from functools import cache

from msgspec.structs import replace

from wolo.config import keys
from wolo.config.schema import Config
from wolo.conversation.resources.run_options import COMMAND_LINE, RunOptions
from wolo.diagnostics.request_preview import readable
from wolo.errors import WoloError
from wolo.formats.format import Format
from wolo.guard.rules import Rule, parse_rule
from wolo.messages.message import Message
from wolo.models.format_selection import format_of
from wolo.models.prompt_cache import METADATA, digests_of
from wolo.models.protocol import Question, producer_of, request_for
from wolo.models.provider import Choice, Model, Provider
from wolo.models.replay_model import Check, Diverged, Divergence, Recorded
from wolo.places import find_places
from wolo.replay.recording import RecordedTurns

PREAMBLE = ("system", "tools")
"""Labels of the blocks that requests begin with."""


def model_of(tape: RecordedTurns, label: str, config: Config) -> Choice:
    """As the catalogue knows it; a model that nobody knows any more is replayed all the same."""
    producer = next((message.producer for message in tape.messages if message.producer), None)
    try:
        environ = keys.with_stored_keys(os.environ, find_places(), [], config.settings.providers)
        return readable(config, environ, label, producer.format if producer else "")
    except WoloError:
        provider, _, model = label.partition("/")
        format = producer.format if producer else "openai-chat"
        return Choice(Provider(name=provider, label=provider, base_url="", format=format), Model(id=model), "")


def rules_of(
    tape: RecordedTurns, rules: Iterable[Rule], options: RunOptions | None, here: Callable[[str], str]
) -> tuple[Rule, ...]:
    """Those of today, and those of the run's command line; they are about the copy.

    Of a session that does not tell its options, those that decided anything are known.
    """
    decided = (_given_then(call.metadata.get("verdict")) for call in tape.calls.values())
    given = options.parsed_rules() if options is not None else filter(None, decided)
    every = dict.fromkeys((*rules, *given))
    return tuple(replace(rule, pattern=here(rule.pattern)) for rule in every)


def _given_then(verdict: object) -> Rule | None:
    if not isinstance(verdict, dict) or verdict.get("source") not in COMMAND_LINE or not verdict.get("rule"):
        return None
    source = str(verdict["source"])
    try:
        return parse_rule(str(verdict["rule"]), COMMAND_LINE[source], source)
    except WoloError:
        return None


def preamble_check(tape: RecordedTurns, label: str, config: Config) -> Check:
    """Compares the system prompt and the tools of a request with what the session keeps of them: their digests."""

    def check(recorded: Recorded, question: Question) -> None:
        answer = next((message for message in tape.messages if message.id == recorded.answer.id), None)
        if answer is None or METADATA not in answer.metadata:
            return
        known = digests_of(answer.id, tape.messages)
        for at, (label, digest) in enumerate(blocks_of(answer, question)):
            if label in PREAMBLE and at < len(known) and known[at] != digest:
                raise Diverged(
                    Divergence(
                        step=recorded.step,
                        kind="preamble",
                        where=label,
                        expected=f"sha {known[at].hex()}",
                        got=f"sha {digest.hex()}",
                    )
                )

    @cache
    def asked_in(label: str) -> tuple[Choice, Format]:
        choice = model_of(tape, label, config)
        return choice, format_of(choice)

    def blocks_of(answer: Message, question: Question) -> list[tuple[str, bytes]]:
        producer = answer.producer
        choice, format = asked_in(f"{producer.provider}/{producer.model}" if producer else label)
        format.encode(request_for(choice, producer_of(choice, choice.format), question))
        return [(block.label, block.digest) for block in format.blocks()]

    return check
