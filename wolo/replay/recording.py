"""Extracts turns, requests and user input from a saved session, for a replay."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from wolo.agent.compaction.history_cut import Cut, cut_of
from wolo.agent.hook_calls import HOOKS, ReportSlow, RunHook
from wolo.agent.tool_execution import SKIPPED_FOR_STEERING
from wolo.agent.turn_policy import EMPTY_CUT_OFF
from wolo.config import keys
from wolo.config.schema import Config
from wolo.conversation.resources.request_prefix import COMMAND_LINE, NestedInstructions, RunOptions
from wolo.diagnostics.request_preview import readable
from wolo.errors import ToolError, WoloError
from wolo.formats.format import Format
from wolo.formats.tolerant_json import mapping_at
from wolo.guard.rules import Rule, parse_rule
from wolo.messages.message import (
    BUDGET,
    EMPTY_ANSWER,
    GOAL,
    HOOK_OUTPUT,
    INSTRUCTIONS,
    MCP_INSTRUCTIONS,
    NAMED_MODE,
    NUDGE,
    OPENED,
    SENT_BACK,
    STEERED,
    UNCHECKED,
    Message,
)
from wolo.messages.parts import ToolPart
from wolo.models.format_selection import format_of
from wolo.models.prompt_cache import METADATA, all_blocks, digests_of
from wolo.models.protocol import ModelQuestion, producer_of, request_for
from wolo.models.provider import Model, ModelChoice, Provider
from wolo.models.replay_model import Check, Divergence, RecordedAnswer, ReplayDiverged, Script, before_calls_ran
from wolo.sessions import replay_entries
from wolo.sessions.entries import AnyEntry, CompactionEntry, MessageEntry, PartialEntry, ResultsEntry, SettingEntry
from wolo.tools.tool import DIAGNOSTICS, CallContext
from wolo.tools.tool_values import CallResult, HookReply
from wolo.tools.toolbox import NEEDS_PLANNER, NEEDS_USER
from wolo.workspace.root import find_site

ENDS = ("stop", "length")
STOPPED = ("interrupted", "never_started")
DECIDERS = ("person", "model")
"""A call that asked was approved by one of these."""


class UserInput(Struct, frozen=True, kw_only=True):
    """Messages that the user sent during a turn, by the time of their delivery."""

    first: tuple[Message, ...] = ()
    """Before the first request."""
    after_answer: dict[int, tuple[Message, ...]]
    """By index of the answer in the script; it had no calls."""
    after_call: dict[str, tuple[Message, ...]]
    """By id of the running call; later calls of the answer were skipped."""


class RecordedTurn(Struct, frozen=True, kw_only=True):
    before: tuple[Message, ...]
    """Messages between the previous turn and this one."""
    prompt: Message
    new: tuple[Message, ...]
    """The prompt and all that followed, in their final state."""
    script: Script
    cuts: tuple[Cut, ...]
    """The compaction that applied to each answer of the script."""
    opened: dict[str, Any]
    """Metadata of the conversation that starts with this turn; empty: one continues."""
    is_attended: bool
    """A user could be asked."""
    user_input: UserInput
    modes: dict[str, str]
    """Modes the user changed to, by the id of the message or call that follows."""


class RecordedTurns(Struct, frozen=True, kw_only=True):
    turns: tuple[RecordedTurn, ...]
    messages: tuple[Message, ...]
    """All messages of the final branch."""

    @property
    def steps(self) -> int:
        return sum(len(turn.script.answers) for turn in self.turns)

    @property
    def calls(self) -> dict[str, ToolPart]:
        """Final calls by id."""
        return {part.id: part for message in self.messages for part in message.calls}


def read_recording(entries: Sequence[AnyEntry]) -> RecordedTurns:
    messages = replay_entries.messages(entries)
    # Each message as it was saved first, before its calls ran
    first_saved: dict[str, Message] = {}
    for entry in entries:
        if isinstance(entry, MessageEntry):
            first_saved.setdefault(entry.message.id, entry.message)
    # The compaction in force when each message was saved, by id
    cut = Cut()
    cuts: dict[str, Cut] = {}
    for entry in entries:
        match entry:
            case CompactionEntry():
                cut = cut_of(entry)
            case MessageEntry(message=message):
                cuts.setdefault(message.id, cut)
            case PartialEntry(message_id=message_id):
                cuts.setdefault(message_id, cut)
    # A reopened conversation starts with its own mode
    mode = ""
    modes: dict[str, str] = {}
    for entry in entries:
        match entry:
            case SettingEntry(name="mode", value=value):
                mode = value
            case MessageEntry(message=message):
                mode = "" if OPENED in message.metadata else mode
                modes.setdefault(message.id, mode)
            case ResultsEntry(parts=parts):
                modes.update((part.id, mode) for part in parts)
    chosen = {id: mode for id, mode in modes.items() if mode}
    return RecordedTurns(turns=tuple(_turns(messages, first_saved, cuts, chosen)), messages=messages)


def was_interrupted(call: ToolPart) -> bool:
    """Its output depends on the moment of the interruption."""
    return call.outcome in STOPPED and not was_set_aside(call)


def was_set_aside(call: ToolPart) -> bool:
    """Skipped because of a message from the user."""
    return call.outcome == "never_started" and call.output.startswith(SKIPPED_FOR_STEERING)


def _turns(
    messages: Sequence[Message], first_saved: dict[str, Message], cuts: dict[str, Cut], modes: dict[str, str]
) -> Iterable[RecordedTurn]:
    step, at, before = 1, 0, 0
    attended = False
    while at < len(messages):
        if not messages[at].is_prompt:
            at += 1
            continue
        end = at + 1
        while end < len(messages) and (messages[end].role == "assistant" or NUDGE in messages[end].metadata):
            end += 1
        new = tuple(messages[at:end])
        opened = mapping_at(new[0].metadata, OPENED)
        attended = bool(opened.get("attended", attended)) or any(
            _needed_person(call) for message in new for call in message.calls
        )
        answers = tuple(_answers(messages, at, end, first_saved, cuts, step))
        step += len(answers)
        last = new[-1]
        yield RecordedTurn(
            before=tuple(messages[before:at]),
            prompt=new[0],
            new=new,
            script=Script(
                answers=tuple(answer for answer, _ in answers),
                step=step,
                is_complete=last.role == "assistant" and not last.calls and last.finish_reason in ENDS,
            ),
            cuts=tuple(cut for _, cut in answers),
            opened=opened,
            is_attended=attended,
            user_input=_user_input(messages, at, end),
            modes=modes,
        )
        at = before = end


def _answers(
    messages: Sequence[Message], begin: int, end: int, first_saved: dict[str, Message], cuts: dict[str, Cut], step: int
) -> Iterable[tuple[RecordedAnswer, Cut]]:
    for at in range(begin + 1, end):
        message = messages[at]
        if not _is_answer(messages, at):
            continue
        # The empty answer, which is not saved
        answer = (
            before_calls_ran(first_saved.get(message.id, message))
            if message.role == "assistant"
            else Message(role="assistant", finished=True, finish_reason="length" if message.text == EMPTY_CUT_OFF else "stop")
        )
        cut = cuts.get(message.id, Cut())
        sent = partial(_sent_messages, cut, messages, at)
        yield RecordedAnswer(step=step, sent=sent, answer=answer, stopped=message.finish_reason == "interrupted"), cut
        step += 1


def _is_answer(messages: Sequence[Message], at: int) -> bool:
    """A saved answer, or the nudge that followed an empty one."""
    message = messages[at]
    if message.role == "assistant":
        return True
    before = messages[at - 1]
    is_saved = before.role == "assistant" and before.finish_reason == "tool_calls" and not before.calls
    return message.metadata[NUDGE] == EMPTY_ANSWER and not is_saved


def _user_input(messages: Sequence[Message], begin: int, end: int) -> UserInput:
    first: tuple[Message, ...] = ()
    after_answer: dict[int, tuple[Message, ...]] = {}
    after_call: dict[str, tuple[Message, ...]] = {}
    place, last = -1, messages[begin]
    for at in range(begin + 1, end):
        message = messages[at]
        if _is_answer(messages, at):
            place, last = place + 1, message
        elif message.metadata[NUDGE] not in (
            STEERED,
            BUDGET,
            MCP_INSTRUCTIONS,
            HOOK_OUTPUT,
            INSTRUCTIONS,
            NAMED_MODE,
            UNCHECKED,
            GOAL,
        ):  # nobody is there to say it again
            continue
        elif place < 0:
            first = (*first, message)
        elif last.calls:
            # Id of the call during which the message arrived
            aside = next((place for place, call in enumerate(last.calls) if was_set_aside(call)), len(last.calls))
            response = last.calls[max(aside - 1, 0)].id
            after_call[response] = (*after_call.get(response, ()), message)
        else:
            after_answer[place] = (*after_answer.get(place, ()), message)
    return UserInput(first=first, after_answer=after_answer, after_call=after_call)


def _sent_messages(cut: Cut, messages: Sequence[Message], end: int) -> tuple[Message, ...]:
    return cut.apply(messages[:end])


def _needed_person(call: ToolPart) -> bool:
    decided = mapping_at(call.metadata, "verdict")
    return (
        call.outcome == "denied_by_person"
        or (call.tool in NEEDS_USER | NEEDS_PLANNER and call.outcome != "invalid")
        or call.metadata.get("decided_by") in DECIDERS
        or decided.get("decision") == "ask"
        or decided.get("source") == "session"
    )


class RecordedChecks(Struct, frozen=True):
    """Adds the errors that language servers found when the call was recorded."""

    find: Callable[[str], ToolPart]
    """Returns the recorded call by its id."""

    async def run(self, context: CallContext, call: Callable[[], Awaitable[CallResult]], *, is_edit: bool) -> CallResult:
        result = await call()
        told = self.find(context.call_id).metadata.get(DIAGNOSTICS)
        return replace(result, text=f"{result.text}\n\n{told}") if told else result

    async def look_up(self, path: object, method: str, params: dict[str, Any]) -> Any:
        raise ToolError("A replay asks no language server.")


def recorded_hooks(new: Iterable[Message], *, may_allow: bool) -> RunHook | None:
    """None: no hook output was recorded. Additions to a prompt are part of it. `may_allow`: approvals by hooks count."""
    messages = tuple(new)
    calls: dict[str, Any] = {part.id: part.metadata[HOOKS] for each in messages for part in each.calls if HOOKS in part.metadata}
    sent_back = [each.metadata[HOOKS] for each in messages if each.metadata.get(NUDGE) == SENT_BACK and HOOKS in each.metadata]
    if not calls and not sent_back:
        return None
    left = iter(sent_back)

    async def run(event: str, payload: Mapping[str, Any], slow: ReportSlow) -> HookReply:
        said = next(left, None) if event == "Stop" else calls.get(payload.get("tool_use_id", ""), {}).get(event)
        answer = msgspec.convert(said, HookReply) if said is not None else HookReply()
        return answer if may_allow or answer.decision != "allow" else replace(answer, decision="")

    return run


def recorded_instructions(new: Iterable[Message]) -> NestedInstructions:
    """Repeats the instructions of subfolders that calls were given."""
    calls = {part.id: part.metadata[INSTRUCTIONS] for each in new for part in each.calls if INSTRUCTIONS in part.metadata}

    async def repeat(call_id: str, touched: Sequence[object]) -> tuple[Mapping[str, str], Sequence[str]]:
        return calls.get(call_id, {}), ()

    return repeat


PREAMBLE = ("system", "tools")
"""Labels for the start of a request."""


def model_of(tape: RecordedTurns, label: str, config: Config) -> ModelChoice:
    """From the catalog; an unknown model is replayed anyway."""
    producer = next((message.producer for message in tape.messages if message.producer), None)
    try:
        environ = keys.with_stored_keys(find_site(), config)
        return readable(config, environ, label, producer.format if producer else "")
    except WoloError:
        provider, _, model = label.partition("/")
        format = producer.format if producer else "openai-chat"
        return ModelChoice(Provider(name=provider, label=provider, base_url="", format=format), Model(id=model), "")


def rules_of(tape: RecordedTurns, rules: Iterable[Rule], options: RunOptions | None, *, may_allow: bool) -> tuple[Rule, ...]:
    """Current rules, and those of the recorded command line; without `may_allow`, those that deny or ask.

    For older sessions without options: the rules that decided a call.
    """
    decided = (_given_then(call.metadata.get("verdict")) for call in tape.calls.values())
    given = options.parsed_rules() if options is not None else filter(None, decided)
    return tuple(dict.fromkeys((*rules, *(rule for rule in given if may_allow or rule.decision != "allow"))))


def _given_then(verdict: object) -> Rule | None:
    if not isinstance(verdict, dict) or verdict.get("source") not in COMMAND_LINE or not verdict.get("rule"):
        return None
    source = str(verdict["source"])
    try:
        return parse_rule(str(verdict["rule"]), COMMAND_LINE[source], source)
    except WoloError:
        return None


def preamble_check(tape: RecordedTurns, label: str, config: Config) -> Check:
    """Compares digests of the system prompt and the tools with the recorded ones."""

    def check(recorded: RecordedAnswer, question: ModelQuestion) -> None:
        answer = next((message for message in tape.messages if message.id == recorded.answer.id), None)
        if answer is None or METADATA not in answer.metadata:
            return
        known = digests_of(answer.id, tape.messages)
        for at, (label, digest) in enumerate(blocks_of(answer, question)):
            if label in PREAMBLE and at < len(known) and known[at] != digest:
                raise ReplayDiverged(
                    Divergence(
                        step=recorded.step,
                        kind="preamble",
                        where=label,
                        expected=f"sha {known[at].hex()}",
                        got=f"sha {digest.hex()}",
                    )
                )

    @cache
    def parse_label(label: str) -> tuple[ModelChoice, Format]:
        choice = model_of(tape, label, config)
        return choice, format_of(choice)

    def blocks_of(answer: Message, question: ModelQuestion) -> list[tuple[str, bytes]]:
        producer = answer.producer
        choice, format = parse_label(f"{producer.provider}/{producer.model}" if producer else label)
        format.encode(request_for(choice, producer_of(choice, choice.format), question))
        return [(block.label, block.digest) for block in all_blocks(format.blocks())]

    return check
