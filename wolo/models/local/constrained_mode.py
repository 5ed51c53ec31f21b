"""Constrained mode: each step is one JSON object that the server enforces; contents of files follow as text.

For models that follow a plan but fail with the calls of an API. The steps are ordinary messages with ordinary calls, so
permissions, undo, events and session work as usual.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from wolo.errors import BadAnswer
from wolo.formats.default_prompt import default_prompt
from wolo.formats.format import ThinkingLevel
from wolo.messages.deltas import CallDelta, TextDelta
from wolo.messages.message import Message, Producer, Usage, UsageCost
from wolo.messages.parts import TextPart, ToolPart, new_id
from wolo.models.driving import as_written
from wolo.models.local import constrained_texts as texts
from wolo.models.local.code_check import loses_content, restore_definitions, syntax_problem
from wolo.models.local.constrained_history import (
    CHARS_PER_TOKEN,
    FittedHistory,
    Known,
    StepAnswer,
    as_json,
    conversation,
    fenced_text,
    known_file,
    read_answer,
)
from wolo.models.local.local_chat import WINDOW_TOKENS, Completion, LocalChat, Sampling, Turn, sentence
from wolo.models.local.simple_context import ProjectNames, list_names
from wolo.models.local.simple_texts import one_of, shorten
from wolo.models.protocol import Listener, ModelClient, ModelQuestion
from wolo.models.provider import ModelChoice
from wolo.models.requested_work import asks_for_files, was_done
from wolo.models.tokens import estimate_text

STEP_TOKENS: Final = 600
CONTENT_TOKENS: Final = 2_048
TRIES: Final = 3
MAX_STEPS: Final = 40
"""Answers of one turn; a small model that needs more is lost."""
MAX_PUSHES: Final = 2
"""Ends without any effect that are turned into a call before the turn fails."""
MAX_WINDOW: Final = 32_768
MAX_NAMES: Final = 30
INSTRUCTION_CHARS: Final = 1_500
LARGEST_REWRITE: Final = 200
"""Lines of a file that is rewritten as a whole."""
PRECISE: Final = 6e9
"""Parameters from which a model copies lines well enough to replace them."""
SHORT_FILE: Final = 40
EFFECTS: Final = frozenset(("write", "edit", "shell"))
OTHER_WAYS: Final = "Try --drive simple, a smaller step, or a larger model with --model."


class ConstrainedMode:
    """Remembers only how often the turn at hand was pushed, and a server that ignores schemas."""

    def __init__(self, chat: LocalChat, choice: ModelChoice, cwd: Path, open_plain: Callable[[ModelChoice], ModelClient]) -> None:
        self._chat = chat
        self._choice = choice
        self._cwd = cwd
        self._open_plain = open_plain
        self._written: ModelClient | None = None
        self._pushed = ("", 0)
        """Prompt id, and ends without effect so far."""
        self._noted: set[str] = set()

    @property
    def choice(self) -> ModelChoice:
        return self._written.choice if self._written else self._choice

    def think(self, level: ThinkingLevel) -> None:
        """Steps of a small model leave no room for it."""

    async def close(self) -> None:
        """The owner of the chat closes the connection."""

    async def ask(self, question: ModelQuestion, listener: Listener) -> Message:
        """Next step of the turn. Raises ProviderError."""
        if self._written is None:
            names = await asyncio.to_thread(list_names, self._cwd)
            step = _ConstrainedStep(self._chat, self._choice, names, question, listener)
            try:
                return await self._next(step, question, listener)
            except IgnoresSchema:
                await listener.on_notice(
                    f"The server of {self._chat.server.label} does not enforce JSON schemas; written mode is used instead."
                )
                self._written = self._open_plain(msgspec.structs.replace(as_written(self._choice), drive="written"))
        return await self._written.ask(question, listener)

    async def _next(self, step: _ConstrainedStep, question: ModelQuestion, listener: Listener) -> Message:
        if not question.tools:
            return await step.talk()
        if step.num_answers >= MAX_STEPS:
            raise BadAnswer(f"{step.label} did not finish in {MAX_STEPS} steps.", hint=OTHER_WAYS)
        await step.begin(self._noted)
        answer = await step.choose_new()
        while answer.tool == "" and await step.is_unfinished():
            prompt_id, times = self._pushed
            times = times + 1 if prompt_id == question.prompt_id else 1
            self._pushed = (question.prompt_id, times)
            if times > MAX_PUSHES:
                raise BadAnswer(f"{step.label} says that it is done, but did nothing: no file was changed.", hint=OTHER_WAYS)
            answer = await step.choose(push=True)
        return await step.carry_out(answer)


class IgnoresSchema(Exception):
    """The server answered something that the schema forbids."""


class _ConstrainedStep:
    """One response: a request for the step, and often one for a content."""

    def __init__(
        self, chat: LocalChat, choice: ModelChoice, names: ProjectNames, question: ModelQuestion, listener: Listener
    ) -> None:
        self._chat = chat
        self._choice = choice
        self._names = names
        self._question = question
        self._listener = listener
        useless = () if names.files else (*texts.ON_FILES, "grep")
        self._tools = [tool.name for tool in question.tools if tool.name in texts.ARGUMENTS and tool.name not in useless]
        instructions, self._instructions_cut = _instructions(question.system)
        self._system = texts.system_prompt(self._tools, names.files[:MAX_NAMES], instructions)
        begins = max((at for at, message in enumerate(question.messages) if message.is_prompt), default=0)
        self._request = question.messages[begins].text if question.messages else ""
        self._since = [message for message in question.messages[begins + 1 :] if message.role == "assistant"]
        self._turns: list[Turn] = []
        self._usage = Usage(cost=UsageCost())

    @property
    def label(self) -> str:
        return sentence(self._chat.server.label)

    @property
    def num_answers(self) -> int:
        return len(self._since)

    @property
    def _window(self) -> int:
        facts = self._chat.server.facts
        own = self._choice.model.context or WINDOW_TOKENS
        known = min(facts.context or own, MAX_WINDOW)
        return min(known, WINDOW_TOKENS) if facts.kind == "ollama" else known

    @property
    def _content_tokens(self) -> int:
        return min(CONTENT_TOKENS, self._window // 3, self._question.max_tokens or CONTENT_TOKENS)

    async def begin(self, noted: set[str]) -> None:
        fitted = self._fit(self._system)
        self._turns = fitted.turns
        if self._since:
            self._add(texts.GO_ON.format(request=shorten(self._request, 600)))
        await self._listener.on_request(1, sum(estimate_text(text) for _, text in self._turns))
        if self._instructions_cut and "instructions" not in noted:
            noted.add("instructions")
            await self._listener.on_notice(f"The instructions are too long for {self.label}; it sees their beginning only.")
        if fitted.omitted and self._question.prompt_id not in noted:
            noted.add(self._question.prompt_id)
            await self._listener.on_notice(
                f"The window of {self.label} ({self._window} tokens) is full; its oldest results are omitted."
            )

    def _fit(self, system: str) -> FittedHistory:
        return conversation(self._question.messages, system, self._window, self._content_tokens + STEP_TOKENS // 2)

    async def talk(self) -> Message:
        """Free text for questions without tools, such as summaries."""
        system = shorten(self._question.system, self._window * CHARS_PER_TOKEN // 4)
        self._turns = self._fit(system).turns
        await self._listener.on_request(1, sum(estimate_text(text) for _, text in self._turns))
        completion = await self._complete(self._turns, Sampling(max_tokens=self._content_tokens))
        return await self._end(completion.text.strip(), "length" if completion.cut_off else "stop")

    # The step

    async def choose(self, *, push: bool = False) -> StepAnswer:
        """The next step, a call in any case if the model has to be pushed. Raises IgnoresSchema."""
        if push:
            self._add(texts.NOTHING_DONE)
        turns, files = self._turns, self._names.files if len(self._names.files) < MAX_NAMES else ()
        schema = texts.schema(self._tools, files, may_end=not push)
        fault = ""
        for attempt in range(1, TRIES + 1):
            await self._retrying(fault, attempt)
            completion = await self._complete(turns, Sampling(max_tokens=STEP_TOKENS, schema=schema, attempt=attempt))
            answer = read_answer(completion.text, self._tools)
            if answer is not None and (answer.tool or answer.say.strip()):
                return answer
            if not self._chat.takes_schema or (answer is None and not completion.cut_off):
                raise IgnoresSchema
            fault = "its step did not come to an end" if completion.cut_off else "it said nothing"
        raise BadAnswer(f"{self.label} made no step that can be used in {TRIES} tries: {fault}.", hint=OTHER_WAYS)

    async def choose_new(self) -> StepAnswer:
        """A step that is not the repetition of a call whose result is known."""
        answer = await self.choose()
        while answer.tool and self._repeats(answer):
            self._tools = [tool for tool in self._tools if tool != answer.tool] if not self.has_effect else []
            answer = await self.choose()
        return answer

    def _repeats(self, answer: StepAnswer) -> bool:
        for call in (call for message in reversed(self._since) for call in message.calls):
            if call.tool == answer.tool and (call.tool == "todo" or call.input == answer.arguments):
                return not call.is_error
            if call.tool in ("write", "edit") or call.is_error:
                return False
        return False

    def _add(self, text: str) -> None:
        role, last = self._turns[-1]
        self._turns[-1:] = [("user", f"{last}\n\n{text}")] if role == "user" else [(role, last), ("user", text)]

    @property
    def has_effect(self) -> bool:
        """Something was changed or run, or at least tried."""
        return any(call.tool in EFFECTS for message in self._since for call in message.calls)

    @property
    def _done(self) -> str:
        """The calls of this turn in words, for a model that has none."""
        calls = [call for message in self._since for call in message.calls if call.tool in EFFECTS and not call.is_error]
        said = dict.fromkeys(str(call.input.get("path") or call.input.get("command")) for call in calls)
        return f"Done: {', '.join(said)}." if said else "There is nothing to do."

    async def is_unfinished(self) -> bool:
        """Tells whether work was asked for and nothing was even tried."""
        if not EFFECTS.intersection(self._tools):
            return False
        if work := asks_for_files(self._request):
            return not was_done(work, [call for message in self._since for call in message.calls])
        if self.has_effect:
            return False
        turns: list[Turn] = [("system", texts.IS_WORK), ("user", shorten(self._request, 1_000))]
        completion = await self._complete(turns, Sampling(max_tokens=8, schema=one_of(("yes", "no"))))
        return "yes" in completion.text

    async def carry_out(self, answer: StepAnswer) -> Message:
        if not answer.tool:
            return await self._end(self._done if answer.say.strip() == texts.PLACEHOLDER else answer.say, "stop")
        path = str(answer.arguments.get("path", ""))
        match answer.tool:
            case "write" | "edit":
                known = known_file(self._question.messages, path)
                if known is None and "read" in self._tools and await asyncio.to_thread((self._names.folder / path).is_file):
                    return await self._call("read", {"path": path})
                return await self._change(answer, path, known)
            case "read" if answer.arguments.get("offset", 1) <= 1:
                return await self._call("read", {"path": path})
            case _:
                return await self._call(answer.tool, answer.arguments)

    # Contents

    async def _change(self, answer: StepAnswer, path: str, known: Known | None) -> Message:
        lines = known.text.count("\n") if known else 0
        is_small = (self._chat.server.facts.parameters or 0) < PRECISE or lines <= SHORT_FILE
        can_edit = "edit" in self._tools and known is not None and bool(known.text.strip())
        fits = len(known.text) // CHARS_PER_TOKEN < self._content_tokens if known else True
        if can_edit and not (known and known.is_whole and is_small and lines <= LARGEST_REWRITE and fits):
            return await self._replace(answer, path)
        return await self._rewrite(answer, path, known)

    async def _rewrite(self, answer: StepAnswer, path: str, known: Known | None) -> Message:
        """The whole file; an existing one is shown, and keeps what is not meant."""
        language = texts.language_of(path)
        fence = texts.fence_of(language)
        old = known.text if known and known.is_whole else ""
        asked = texts.CONTENT.format(path=path)
        if old.strip():
            request = shorten(self._request, 1_000)
            asked = texts.CHANGED.format(path=path, fence=fence, language=language, text=old.rstrip(), request=request)
        start = f"{fence}{language}\n"
        turns: list[Turn] = [*self._turns, ("assistant", as_json({"call": answer.tool, "path": path})), ("user", asked)]
        fault = ""
        for attempt in range(1, TRIES + 1):
            await self._retrying(fault, attempt)
            sampling = Sampling(max_tokens=self._content_tokens, stop=(f"\n{fence}",), attempt=attempt)
            completion = await self._complete([*turns, ("assistant", start)], sampling)
            text = fenced_text(completion.text, start, fence)
            fault = "it did not come to an end" if completion.cut_off else ""
            if not fault and old.strip():
                text, fault = _compared(old, text, path, self._request)
                if text.strip() == old.strip() and self.has_effect:
                    return await self._after_no_change(answer.tool, path)
            fault = fault or syntax_problem(path, text)
            if not fault:
                return await self._call("write", {"path": path, "content": text})
        raise BadAnswer(f"{self.label} could not write {path}: {fault}. Nothing was written.", hint=OTHER_WAYS)

    async def _after_no_change(self, tool: str, path: str) -> Message:
        """The model sees nothing left to do in a file: another step, or the end."""
        self._turns += [("assistant", as_json({"call": tool, "path": path})), ("user", texts.UNCHANGED.format(path=path))]
        self._tools = [each for each in self._tools if each not in ("write", "edit")]
        return await self.carry_out(await self.choose_new())

    async def _replace(self, answer: StepAnswer, path: str) -> Message:
        """Lines of a long file."""
        turns: list[Turn] = [
            *self._turns,
            ("assistant", as_json({"call": answer.tool, "path": path})),
            ("user", texts.BLOCK.format(path=path)),
            ("assistant", texts.OLD),
        ]
        for attempt in range(1, TRIES + 1):
            await self._retrying("the change cannot be read" if attempt > 1 else "", attempt)
            sampling = Sampling(max_tokens=self._content_tokens, stop=(texts.NEW_END,), attempt=attempt)
            completion = await self._complete(turns, sampling)
            said = completion.text.partition(texts.OLD)[2] if texts.OLD in completion.text else completion.text
            old, mark, new = said.partition("\n=======")
            if mark and old.strip() and not completion.cut_off:
                new = new.partition(texts.NEW_END)[0].removeprefix("\n")
                return await self._call("edit", {"path": path, "old": old, "new": new})
        raise BadAnswer(f"{self.label} gave no readable change of {path}. Nothing was written.", hint=OTHER_WAYS)

    # Requests and messages

    async def _retrying(self, fault: str, attempt: int) -> None:
        if fault:
            error = BadAnswer(f"{self.label} gave an answer that cannot be used ({fault}).", hint=OTHER_WAYS)
            await self._listener.on_attempt_failed(error, attempt - 1, TRIES, 0.0)
            await self._listener.on_request(attempt, sum(estimate_text(text) for _, text in self._turns))

    async def _complete(self, turns: Sequence[Turn], sampling: Sampling) -> Completion:
        completion = await self._chat.complete(turns, sampling)
        self._usage = msgspec.structs.replace(
            self._usage,
            input_tokens=self._usage.input_tokens + completion.prompt_tokens - completion.cached_tokens,
            cache_read_tokens=self._usage.cache_read_tokens + completion.cached_tokens,
            output_tokens=self._usage.output_tokens + completion.output_tokens,
        )
        return completion

    async def _end(self, text: str, reason: str) -> Message:
        await self._listener.on_deltas((TextDelta(text=text),))
        return self._message(TextPart(text=text), reason)

    async def _call(self, tool: str, input: dict[str, Any]) -> Message:
        raw_input, call_id = json.dumps(input, ensure_ascii=False), new_id("call")
        await self._listener.on_deltas((CallDelta(slot=0, call_id=call_id, tool=tool, arguments=raw_input, part_id=call_id),))
        return self._message(ToolPart(id=call_id, tool=tool, input=input, raw_input=raw_input, call_id=call_id), "tool_calls")

    def _message(self, part: TextPart | ToolPart, reason: Any) -> Message:
        return Message(
            role="assistant",
            parts=(part,),
            finished=True,
            finish_reason=reason,
            usage=self._usage,
            producer=Producer(provider=self._choice.provider.name, format="constrained", model=self._choice.model.id),
        )


def _instructions(system: str) -> tuple[str, bool]:
    """Additions of the user and the project to the built-in prompt, and whether it was too long."""
    prose, _, rest = system.partition("\n\n# Here\n\n")
    own = "" if prose.strip() == default_prompt().strip() else prose.strip()
    added = "\n\n".join(part for part in (own, rest.partition("\n\n")[2].strip()) if part)
    return added[:INSTRUCTION_CHARS], len(added) > INSTRUCTION_CHARS


def _compared(old: str, new: str, path: str, request: str) -> tuple[str, str]:
    """The new text with definitions that were only forgotten, and what is wrong with it."""
    if path.endswith(".py"):
        new = restore_definitions(old, new, request)
    elif loses_content(old, new):
        return new, "most of what was in it would be lost"
    return new, "nothing was changed" if new.strip() == old.strip() else ""
