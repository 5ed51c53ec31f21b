"""Constrained mode: each step is one JSON object that the server enforces; contents of files follow as text.

For models that follow a plan but fail with the calls of an API. The steps are ordinary messages with ordinary calls, so
permissions, undo, events and session work as usual.
"""

from __future__ import annotations

import asyncio
from typing import Final

from wolo.errors import BadAnswer
from wolo.formats.format import default_prompt
from wolo.messages.message import Message
from wolo.models.local import constrained_texts as texts
from wolo.models.local.checks.code_check import syntax_problem
from wolo.models.local.checks.kept_content import lost_content, restore_definitions
from wolo.models.local.checks.missing_parts import PLACEHOLDER
from wolo.models.local.checks.requested_work import asks_for_files, was_done
from wolo.models.local.constrained_texts import CHARS_PER_TOKEN, StepAnswer, as_json, fit_window, known_file
from wolo.models.local.file_request import code_in
from wolo.models.local.local_chat import WINDOW_TOKENS, Sampling, Turn
from wolo.models.local.local_response import EFFECTS, IgnoresSchema, LocalResponse
from wolo.models.local.simple_context import ProjectNames
from wolo.models.local.simple_reports import FileText
from wolo.models.local.simple_texts import fence_of, language_of, one_of, shorten
from wolo.models.provider import DriveMode
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
OTHER_WAYS: Final = "Try --drive simple, a smaller step, or a larger model with --model."


class ConstrainedMode:
    """Remembers only how often the turn at hand was pushed, and what was notified."""

    mode: DriveMode = "constrained"

    def __init__(self) -> None:
        self._pushed = ("", 0)
        """Prompt id, and ends without effect so far."""
        self._noted: set[str] = set()

    async def next_step(self, response: LocalResponse, names: ProjectNames) -> Message:
        step, question = _ConstrainedStep(response, names), response.question
        if not question.tools:
            return await step.talk()
        if step.num_answers >= MAX_STEPS:
            raise BadAnswer(f"{response.label} did not finish in {MAX_STEPS} steps.", hint=OTHER_WAYS)
        await step.begin(self._noted)
        answer = await step.choose_new()
        while answer.tool == "" and await step.is_unfinished():
            prompt_id, times = self._pushed
            times = times + 1 if prompt_id == question.prompt_id else 1
            self._pushed = (question.prompt_id, times)
            if times > MAX_PUSHES:
                raise BadAnswer(f"{response.label} says that it is done, but did nothing: no file was changed.", hint=OTHER_WAYS)
            answer = await step.choose(push=True)
        return await step.carry_out(answer)


class _ConstrainedStep:
    """One response: a request for the step, and often one for a content."""

    def __init__(self, response: LocalResponse, names: ProjectNames) -> None:
        question, server = response.question, response.chat.server
        self._response = response
        self._label = response.label
        self._names = names
        self._question = question
        useless = () if names.files else (*texts.ON_FILES, "grep")
        self._tools = [tool.name for tool in question.tools if tool.name in texts.ARGUMENTS and tool.name not in useless]
        begins = max((at for at, message in enumerate(question.messages) if message.is_prompt), default=0)
        self._request = question.messages[begins].text if question.messages else ""
        self._since = [message for message in question.messages[begins + 1 :] if message.role == "assistant"]
        self._turns: list[Turn] = []
        own = response.choice.model.context or WINDOW_TOKENS
        known = min(server.facts.context or own, MAX_WINDOW)
        self._window = min(known, WINDOW_TOKENS) if server.facts.kind == "ollama" else known
        self._content_tokens = min(CONTENT_TOKENS, self._window // 3, question.max_tokens or CONTENT_TOKENS)
        self._reserved = self._content_tokens + STEP_TOKENS // 2

    @property
    def num_answers(self) -> int:
        return len(self._since)

    async def begin(self, noted: set[str]) -> None:
        prose, _, rest = self._question.system.partition("\n\n# Here\n\n")
        own = "" if prose.strip() == default_prompt().strip() else prose.strip()
        instructions = "\n\n".join(part for part in (own, rest.partition("\n\n")[2].strip()) if part)
        system = texts.system_prompt(self._tools, self._names.files[:MAX_NAMES], instructions[:INSTRUCTION_CHARS])
        fitted = fit_window(self._question.messages, system, self._window, self._reserved)
        self._turns = fitted.turns
        if self._since:
            self._add(texts.GO_ON.format(request=shorten(self._request, 600)))
        listener = self._response.listener
        await listener.on_request(1, sum(estimate_text(text) for _, text in self._turns))
        if len(instructions) > INSTRUCTION_CHARS and "instructions" not in noted:
            noted.add("instructions")
            await listener.on_notice(f"The instructions are too long for {self._label}; it sees their beginning only.")
        if fitted.num_omitted and self._question.prompt_id not in noted:
            noted.add(self._question.prompt_id)
            await listener.on_notice(
                f"The window of {self._label} ({self._window} tokens) is full; its oldest results are omitted."
            )

    async def talk(self) -> Message:
        """Free text for questions without tools, such as summaries."""
        system = shorten(self._question.system, self._window * CHARS_PER_TOKEN // 4)
        self._turns = fit_window(self._question.messages, system, self._window, self._reserved).turns
        await self._response.listener.on_request(1, sum(estimate_text(text) for _, text in self._turns))
        completion = await self._response.complete(self._turns, Sampling(max_tokens=self._content_tokens))
        return await self._response.reply(completion.text.strip(), "length" if completion.cut_off else "stop")

    # The step

    async def choose(self, *, push: bool = False) -> StepAnswer:
        """The next step, a call in any case if the model has to be pushed. Raises IgnoresSchema."""
        if push:
            self._add(texts.NOTHING_DONE)
        turns, files = self._turns, self._names.files if len(self._names.files) < MAX_NAMES else ()
        schema = texts.schema(self._tools, files, may_end=not push)
        fault = ""
        for attempt in range(1, TRIES + 1):
            await self._report_retry(fault, attempt)
            sampling = Sampling(max_tokens=STEP_TOKENS, schema=schema, attempt=attempt)
            completion = await self._response.complete(turns, sampling)
            answer = texts.read_answer(completion.text, self._tools)
            if answer is not None and (answer.tool or answer.say.strip()):
                return answer
            if not self._response.chat.takes_schema or (answer is None and not completion.cut_off):
                raise IgnoresSchema
            fault = "its step did not come to an end" if completion.cut_off else "it said nothing"
        raise BadAnswer(f"{self._label} made no step that can be used in {TRIES} tries: {fault}.", hint=OTHER_WAYS)

    async def choose_new(self) -> StepAnswer:
        """A step that is not the repetition of a call whose result is known."""
        answer = await self.choose()
        while answer.tool and self._repeats(answer):
            self._tools = [tool for tool in self._tools if tool != answer.tool] if not self._has_effect() else []
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

    def _has_effect(self) -> bool:
        return any(call.tool in EFFECTS for message in self._since for call in message.calls)

    async def is_unfinished(self) -> bool:
        """Tells whether work was asked for and nothing was even tried."""
        if not EFFECTS.intersection(self._tools):
            return False
        if work := asks_for_files(self._request):
            return not was_done(work, [call for message in self._since for call in message.calls])
        if self._has_effect():
            return False
        turns: list[Turn] = [("system", texts.IS_WORK), ("user", shorten(self._request, 1_000))]
        completion = await self._response.complete(turns, Sampling(max_tokens=8, schema=one_of(("yes", "no"))))
        return "yes" in completion.text

    async def carry_out(self, answer: StepAnswer) -> Message:
        if not answer.tool and answer.say.strip() == PLACEHOLDER:  # the model has no words: name the calls of this turn
            calls = [call for message in self._since for call in message.calls if call.tool in EFFECTS and not call.is_error]
            done = dict.fromkeys(str(call.input.get("path") or call.input.get("command")) for call in calls)
            return await self._response.reply(f"Done: {', '.join(done)}." if done else "There is nothing to do.")
        if not answer.tool:
            return await self._response.reply(answer.say)
        path = str(answer.arguments.get("path", ""))
        match answer.tool:
            case "write" | "edit":
                known = known_file(self._question.messages, path)
                if known is None and "read" in self._tools and await asyncio.to_thread((self._names.folder / path).is_file):
                    return await self._response.call("read", {"path": path})
                return await self._change(answer, path, known)
            case "read" if answer.arguments.get("offset", 1) <= 1:
                return await self._response.call("read", {"path": path})
            case _:
                return await self._response.call(answer.tool, answer.arguments)

    # Contents

    async def _change(self, answer: StepAnswer, path: str, known: FileText | None) -> Message:
        """Lines of a long file, otherwise the whole file: an existing one is shown, and keeps what is not meant."""
        lines = known.text.count("\n") if known else 0
        is_small = (self._response.chat.server.facts.parameters or 0) < PRECISE or lines <= SHORT_FILE
        can_edit = "edit" in self._tools and known is not None and bool(known.text.strip())
        fits = len(known.text) // CHARS_PER_TOKEN < self._content_tokens if known else True
        if can_edit and not (known and known.is_whole and is_small and lines <= LARGEST_REWRITE and fits):
            return await self._replace(answer, path)
        language = language_of(path)
        fence = fence_of(language)
        old = known.text if known and known.is_whole else ""
        asked = texts.CONTENT.format(path=path)
        if old.strip():
            request = shorten(self._request, 1_000)
            asked = texts.CHANGED.format(path=path, fence=fence, language=language, text=old.rstrip(), request=request)
        start = f"{fence}{language}\n"
        turns: list[Turn] = [*self._turns, ("assistant", as_json({"call": answer.tool, "path": path})), ("user", asked)]
        fault = ""
        for attempt in range(1, TRIES + 1):
            await self._report_retry(fault, attempt)
            sampling = Sampling(max_tokens=self._content_tokens, stop=(f"\n{fence}",), attempt=attempt)
            completion = await self._response.complete([*turns, ("assistant", start)], sampling)
            code = code_in(completion.text, start, fence)
            text = f"{code}\n" if code else ""
            fault = "it did not come to an end" if completion.cut_off else ""
            if not fault and old.strip():
                if path.endswith(".py"):
                    text = restore_definitions(old, text, self._request)
                if lost := lost_content(path, old, text, self._request):
                    fault = f"it lost {lost}"
                is_same = text.strip() == old.strip()
                if is_same and self._has_effect():  # the model sees nothing left to do in a file: another step, or the end
                    unchanged = texts.UNCHANGED.format(path=path)
                    self._turns += [("assistant", as_json({"call": answer.tool, "path": path})), ("user", unchanged)]
                    self._tools = [each for each in self._tools if each not in ("write", "edit")]
                    return await self.carry_out(await self.choose_new())
                fault = fault or ("nothing was changed" if is_same else "")
            fault = fault or syntax_problem(path, text)
            if not fault:
                return await self._response.call("write", {"path": path, "content": text})
        raise BadAnswer(f"{self._label} could not write {path}: {fault}. Nothing was written.", hint=OTHER_WAYS)

    async def _replace(self, answer: StepAnswer, path: str) -> Message:
        turns: list[Turn] = [
            *self._turns,
            ("assistant", as_json({"call": answer.tool, "path": path})),
            ("user", texts.BLOCK.format(path=path)),
            ("assistant", texts.OLD),
        ]
        for attempt in range(1, TRIES + 1):
            await self._report_retry("the change cannot be read" if attempt > 1 else "", attempt)
            sampling = Sampling(max_tokens=self._content_tokens, stop=(texts.NEW_END,), attempt=attempt)
            completion = await self._response.complete(turns, sampling)
            block = completion.text.partition(texts.OLD)[2] if texts.OLD in completion.text else completion.text
            old, mark, new = block.partition("\n=======")
            if mark and old.strip() and not completion.cut_off:
                new = new.partition(texts.NEW_END)[0].removeprefix("\n")
                return await self._response.call("edit", {"path": path, "old": old, "new": new})
        raise BadAnswer(f"{self._label} gave no readable change of {path}. Nothing was written.", hint=OTHER_WAYS)

    async def _report_retry(self, fault: str, attempt: int) -> None:
        if fault:
            error = BadAnswer(f"{self._label} gave an answer that cannot be used ({fault}).", hint=OTHER_WAYS)
            await self._response.listener.on_attempt_failed(error, attempt - 1, TRIES, 0.0)
            await self._response.listener.on_request(attempt, sum(estimate_text(text) for _, text in self._turns))
