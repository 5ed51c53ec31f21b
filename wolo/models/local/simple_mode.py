"""Simple mode: drives models too small for tools with small questions, and makes the calls itself.

A request becomes an action (by grammar), a file name (by grammar), and the file (fenced code with a given start, then checked).
The results are ordinary messages with ordinary calls, so permissions, tools, events and session work as usual. A turn reads a
file, writes it and reports, at most.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from wolo.formats.format import ThinkingLevel
from wolo.messages.deltas import CallDelta, TextDelta
from wolo.messages.message import Message, Producer, Usage, UsageCost
from wolo.messages.parts import TextPart, ToolPart, new_id
from wolo.models.local import simple_texts as texts
from wolo.models.local.local_chat import Completion, LocalChat, Sampling, Turn, sentence
from wolo.models.local.simple_context import (
    PLAN_KEY,
    Plan,
    ProjectNames,
    SimpleTurn,
    free_name,
    list_names,
    meant_file,
    named_files,
    read_turn,
)
from wolo.models.local.simple_texts import Action, describe_failure, describe_output, describe_success, file_text, listing_of
from wolo.models.local.simple_writer import FILE_TOKENS, OTHER_MODEL, CallStream, FileRequest, FileWriter
from wolo.models.protocol import Listener, Question
from wolo.models.provider import Choice
from wolo.models.tokens import estimate_text

ACTION_TOKENS: Final = 8
PATH_TOKENS: Final = 24
COMMAND_TOKENS: Final = 80
ANSWER_TOKENS: Final = 300
MAX_NAMES_SAID: Final = 8
PROMPT_TOKENS: Final = 200
"""Estimated tokens of instructions and examples."""
MAX_CHANGED_CHARS: Final = 4_000
"""Maximum size of a file to rewrite; larger ones would take minutes and lose content."""

_TOOLS_OF: Final[dict[Action, tuple[str, ...]]] = {
    "create": ("write",),
    "change": ("read", "write"),
    "read": ("read",),
    "list": ("glob",),
    "shell": ("shell",),
    "answer": (),
}
_ABOUT_PROJECT: Final = re.compile(r"\b(project|repo|repository|codebase|folder|directory)\b", re.IGNORECASE)
_POINTING: Final = re.compile(r"\b(this|that|these|it|its|code|files?|program|script|app|here)\b", re.IGNORECASE)
_MAKING: Final = re.compile(r"\b(new|create|make|write|generate)\b", re.IGNORECASE)


class SimpleMode:
    """A stateless `ModelClient`."""

    def __init__(self, chat: LocalChat, choice: Choice, cwd: Path) -> None:
        self._chat = chat
        self._choice = choice
        self._cwd = cwd

    @property
    def choice(self) -> Choice:
        return self._choice

    def think(self, level: ThinkingLevel) -> None:
        """Small models are not made to think."""

    async def close(self) -> None:
        """The owner of the chat closes the connection."""

    async def ask(self, question: Question, listener: Listener) -> Message:
        """Next step of the turn: a message with one call, or the final text. Raises ProviderError."""
        turn = read_turn(question.messages)
        names = await asyncio.to_thread(list_names, self._cwd)
        step = _Step(self._chat, self._choice, turn, names, question, listener)
        await step.announce()
        return await (step.follow_up(turn.calls[-1]) if turn.calls else step.start())


class _Step:
    """One response: several questions to the model, one message."""

    def __init__(
        self, chat: LocalChat, choice: Choice, turn: SimpleTurn, names: ProjectNames, question: Question, listener: Listener
    ) -> None:
        self._chat = chat
        self._choice = choice
        self._turn = turn
        self._names = names
        self._tools = frozenset(tool.name for tool in question.tools)
        self._max_tokens = question.max_tokens or FILE_TOKENS
        self._listener = listener
        self._request = texts.shorten(turn.request, texts.MAX_REQUEST_CHARS)
        self._question = texts.shorten(turn.question, texts.MAX_QUESTION_CHARS)
        self._usage = Usage(cost=UsageCost())

    async def announce(self) -> None:
        await self._announce_attempt(1)
        if self._turn.calls:
            return
        if self._turn.has_media:
            await self._listener.on_notice(f"{sentence(self._chat.server.label)} reads text only; other attachments are omitted.")
        if len(self._request) < len(self._turn.request):
            await self._listener.on_notice(
                f"The prompt is too long for {self._chat.server.label}; it sees only the beginning and the end."
            )

    # First step

    async def start(self) -> Message:
        if not re.search(r"\w", self._turn.request):
            return await self._say("Say in a few words what to make or change, such as: create a calculator")
        match await self._choose_action():
            case "create":
                return await self._create()
            case "change":
                return await self._change()
            case "read":
                return await self._read()
            case "list":
                return await self._call("glob", self._where_to_list())
            case "shell":
                return await self._run()
            case _:
                return await self._talk()

    async def _choose_action(self) -> Action:
        possible = [action for action, tools in _TOOLS_OF.items() if self._tools.issuperset(tools)]
        if self._turn.has_attachment:
            possible = [action for action in possible if action not in ("read", "list")]  # the content is already attached
        if not self._turn.question or len(possible) == 1:
            return "answer"
        chosen = await self._choose(texts.action(self._question), possible, ACTION_TOKENS)
        return next((action for action in possible if action == chosen), "answer")

    async def _create(self) -> Message:
        named = named_files(self._question, self._names)
        path = next((name for name in named if not self._names.exists(name)), "")
        if not path:
            path = await self._name_new_file()
            if path in named and self._names.exists(path) and "read" in self._tools:
                return await self._call("read", {"path": path}, plan="change")
            path = free_name(path, self._names)
        return await self._write(path)

    async def _change(self) -> Message:
        named = named_files(self._question, self._names)
        missing = [name for name in named if not self._names.exists(name)]
        if missing and _MAKING.search(self._question):
            return await self._write(missing[0])
        if path := self._known_file(named):
            return await self._call("read", {"path": path}, plan="change")
        if missing:
            return await self._say_missing(missing[0])
        return await (self._ask_which() if self._names.files else self._create())

    async def _read(self) -> Message:
        """Read only if a file is meant: "explain recursion" refers to none."""
        named = named_files(self._question, self._names)
        if not named and _ABOUT_PROJECT.search(self._question):
            if readme := self._names.readme:
                return await self._call("read", {"path": readme})
            if "glob" in self._tools:
                return await self._call("glob", {"pattern": "*"}, plan="project")
        points = _POINTING.search(self._question)
        is_meant = named or points or meant_file(self._question, self._names)
        if is_meant and (path := self._known_file(named)):
            return await self._call("read", {"path": path})
        if named:
            return await self._say_missing(named[0])
        return await (self._ask_which() if points and self._names.files else self._talk())

    def _known_file(self, named: Sequence[str]) -> str:
        """The existing file that is meant; empty if none or ambiguous."""
        names = self._names
        if named:
            return next((name for name in named if names.exists(name)), "")
        if path := meant_file(self._question, names):
            return path
        if self._turn.recent_path and names.exists(self._turn.recent_path):
            return self._turn.recent_path
        return next((files[0] for files in (names.programs, names.files) if len(files) == 1), "")

    async def _name_new_file(self) -> str:
        sampling = Sampling(max_tokens=PATH_TOKENS, schema=texts.text_like(texts.PATH_PATTERN))
        completion = await self._complete(texts.new_path(self._question), sampling)
        return _json_text(completion.text) or "program.py"

    def _where_to_list(self) -> dict[str, str]:
        words = re.findall(r"[\w./-]+", self._question)
        folder = next((word for word in words if word.strip("./") and self._names.is_folder(word)), "")
        return {"pattern": "*", "path": folder} if folder else {"pattern": "*"}

    async def _run(self) -> Message:
        asked = self._question
        if self._turn.recent_path and not named_files(asked, self._names):
            asked = f"{asked} ({self._turn.recent_path})"
        sampling = Sampling(max_tokens=COMMAND_TOKENS, stop=("\n",))
        command = (await self._complete(texts.command(asked), sampling)).text.strip().strip("`").strip()
        return await (self._call("shell", {"command": command}) if command else self._talk())

    async def _say_missing(self, name: str) -> Message:
        there = f"It holds {self._some_names()}." if self._names.files else "It is empty."
        return await self._say(f"There is no {name} in this folder. {there}")

    async def _ask_which(self) -> Message:
        """Ask instead of changing the wrong file."""
        return await self._say(f"Which file do you mean? Repeat the request with its name. There are {self._some_names()}.")

    def _some_names(self) -> str:
        more = len(self._names.files) - MAX_NAMES_SAID
        return ", ".join(self._names.files[:MAX_NAMES_SAID]) + (f" and {more} more" if more > 0 else "")

    async def _talk(self) -> Message:
        return await self._answer(texts.talk(self._request or "Hello", self._turn.earlier))

    # Steps after a call

    async def follow_up(self, call: ToolPart) -> Message:
        if call.is_error:
            return await self._after_failure(call)
        match call.tool:
            case "read" if self._turn.plan == "change" and "write" in self._tools:
                return await self._rewrite(str(call.input.get("path", "")), call.output)
            case "read":
                excerpt = texts.shorten(file_text(call.output).text, texts.MAX_EXCERPT_CHARS)
                return await self._answer(texts.about(self._request, str(call.input.get("path", "The file")), excerpt))
            case "glob" if self._turn.plan == "project" and listing_of(call.output):
                names = "\n".join(listing_of(call.output)[:40])
                return await self._answer(texts.about(self._request, "The files of the project", names))
            case "glob" | "shell":
                return await self._say(describe_output(call))
            case _:
                return await self._say(describe_success(call))

    async def _after_failure(self, call: ToolPart) -> Message:
        """Read an unexpected existing file once; report other failures."""
        has_read = any(earlier.tool == "read" for earlier in self._turn.calls)
        if call.tool == "write" and call.outcome == "error" and not has_read and "read" in self._tools:
            path = str(call.input.get("path", ""))
            if self._names.exists(path) and not self._names.is_folder(path):
                return await self._call("read", {"path": path}, plan="change")
        return await self._say(describe_failure(call))

    async def _rewrite(self, path: str, output: str) -> Message:
        file = file_text(output)
        if not file.is_whole or len(file.text) > MAX_CHANGED_CHARS:
            return await self._say(f"{path} is too long for this small model to change. {OTHER_MODEL}")
        return await self._write(path, file.text)

    async def _write(self, path: str, old: str | None = None) -> Message:
        writer = FileWriter(self._complete, self._announce_attempt, self._listener, self._max_tokens, self._chat.server.label)
        call_id, text = await writer.write(FileRequest(path=path, request=self._request, old=old))
        return self._calling("write", {"path": path, "content": text}, call_id)

    # Model requests

    async def _complete(self, turns: Sequence[Turn], sampling: Sampling, stream: CallStream | None = None) -> Completion:
        completion = await self._chat.complete(turns, sampling, stream.add if stream else None)
        self._count(completion)
        return completion

    async def _choose(self, turns: Sequence[Turn], values: Sequence[str], max_tokens: int) -> str:
        completion = await self._complete(turns, Sampling(max_tokens=max_tokens, schema=texts.one_of(values)))
        return _json_text(completion.text)

    async def _answer(self, turns: Sequence[Turn]) -> Message:
        """Stream a free-text answer."""

        async def show(text: str) -> None:
            await self._listener.on_deltas((TextDelta(text=text),))

        sampling = Sampling(max_tokens=min(ANSWER_TOKENS, self._max_tokens), shun_repeats=True)
        completion = await self._chat.complete(turns, sampling, show)
        self._count(completion)
        if not completion.text.strip():
            return await self._say("I have no answer to that. Rephrase it, or use a larger model with --model.")
        if completion.cut_off:
            await show(" …")
        return self._message((TextPart(text=completion.text + (" …" if completion.cut_off else "")),))

    def _count(self, completion: Completion) -> None:
        self._usage = msgspec.structs.replace(
            self._usage,
            input_tokens=self._usage.input_tokens + completion.prompt_tokens - completion.cached_tokens,
            cache_read_tokens=self._usage.cache_read_tokens + completion.cached_tokens,
            output_tokens=self._usage.output_tokens + completion.output_tokens,
        )

    async def _announce_attempt(self, attempt: int) -> None:
        await self._listener.on_request(attempt, PROMPT_TOKENS + estimate_text(self._request))

    # Messages

    async def _say(self, text: str) -> Message:
        await self._listener.on_deltas((TextDelta(text=text),))
        return self._message((TextPart(text=text),))

    async def _call(self, tool: str, input: dict[str, Any], *, plan: Plan = "") -> Message:
        call_id = new_id("call")
        written = json.dumps(input, ensure_ascii=False)
        await self._listener.on_deltas((CallDelta(slot=0, call_id=call_id, tool=tool, arguments=written, part_id=call_id),))
        return self._calling(tool, input, call_id, plan=plan)

    def _calling(self, tool: str, input: dict[str, Any], call_id: str, *, plan: Plan = "") -> Message:
        raw_input = json.dumps(input, ensure_ascii=False)
        part = ToolPart(id=call_id, tool=tool, input=input, raw_input=raw_input, call_id=call_id)
        return self._message((part,), plan=plan)

    def _message(self, parts: tuple[TextPart | ToolPart, ...], *, plan: Plan = "") -> Message:
        return Message(
            role="assistant",
            parts=parts,
            finished=True,
            finish_reason="tool_calls" if any(isinstance(part, ToolPart) for part in parts) else "stop",
            usage=self._usage,
            producer=Producer(provider=self._choice.provider.name, format="simple", model=self._choice.model.id),
            metadata={PLAN_KEY: plan} if plan else {},
        )


def _json_text(text: str) -> str:
    try:
        return msgspec.json.decode(text.encode("utf-8", "replace"), type=str)
    except msgspec.MsgspecError:
        return ""  # cut off before the closing quote
