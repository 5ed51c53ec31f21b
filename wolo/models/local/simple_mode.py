"""Simple mode: drives models too small for tools with small questions, and makes the calls itself.

A request becomes an action (by grammar), a file name (by grammar), and the file (fenced code with a given start, then checked).
The results are ordinary messages with ordinary calls, so permissions, tools, events and session work as usual. A turn reads a
file, writes it and reports, at most.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from wolo.errors import BadAnswer
from wolo.formats.format import ThinkingLevel
from wolo.messages.message import Message
from wolo.messages.parts import ToolPart
from wolo.models.local import simple_texts as texts
from wolo.models.local.local_chat import LocalChat, Sampling, sentence
from wolo.models.local.simple_context import (
    free_name,
    list_names,
    meant_file,
    named_files,
    read_turn,
)
from wolo.models.local.simple_response import SimpleResponse, json_text
from wolo.models.local.simple_runs import (
    RUN_S,
    RUNNERS,
    about_file,
    about_new_file,
    error_of,
    example_command,
    file_to_fix,
    find_command,
    is_fix,
    needs_input,
    next_change,
    next_file,
    printed_nothing,
    run_command,
    shows_something,
    takes_arguments,
    wants_run,
)
from wolo.models.local.simple_texts import (
    Action,
    describe_failure,
    describe_output,
    describe_success,
    file_text,
    fulfilling,
    listing_of,
)
from wolo.models.local.simple_writer import OTHER_MODEL, FileRequest, FileWriter
from wolo.models.protocol import Listener, ModelQuestion
from wolo.models.provider import ModelChoice

ACTION_TOKENS: Final = 8
PATH_TOKENS: Final = 24
COMMAND_TOKENS: Final = 80
MAX_NAMES_SAID: Final = 8
REPAIRS: Final = 3
"""Writes in one turn after which a failing program is reported."""
MAX_CHANGED_LINES: Final = 200
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

    def __init__(self, chat: LocalChat, choice: ModelChoice, cwd: Path) -> None:
        self._chat = chat
        self._choice = choice
        self._cwd = cwd

    @property
    def choice(self) -> ModelChoice:
        return self._choice

    def think(self, level: ThinkingLevel) -> None:
        """Small models are not made to think."""

    async def close(self) -> None:
        """The owner of the chat closes the connection."""

    async def ask(self, question: ModelQuestion, listener: Listener) -> Message:
        """Next step of the turn: a message with one call, or the final text. Raises ProviderError."""
        turn = read_turn(question.messages)
        names = await asyncio.to_thread(list_names, self._cwd)
        step = _SimpleStep(self._chat, self._choice, turn, names, question, listener)
        await step.announce()
        return await (step.follow_up(turn.calls[-1]) if turn.calls else step.start())


class _SimpleStep(SimpleResponse):
    """One response: several questions to the model, one message."""

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
        if is_fix(self._question) and find_command(self._question) and "write" in self._tools and (tried := await self._fix()):
            return tried
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
        wanted = fulfilling(self._question)
        named = named_files(self._question, self._names)
        if "read" in possible and any(map(self._names.exists, named)):
            wanted = about_file(self._question, wanted)
        elif named:
            wanted = about_new_file(self._question, wanted)
        possible = [action for action in possible if action in wanted] or possible
        if len(possible) == 1:
            return possible[0]
        chosen = await self._choose(texts.action(self._question), possible, ACTION_TOKENS)
        return next((action for action in possible if action == chosen), possible[0] if "answer" not in possible else "answer")

    async def _create(self) -> Message:
        named = named_files(self._question, self._names)
        path = next((name for name in named if not self._names.exists(name)), "")
        if not path:
            path = await self._name_new_file()
            if path in named and self._names.exists(path) and "read" in self._tools:
                return await self._call("read", {"path": path}, plan="change")
            path = free_name(path, self._names)
        return await self._write(path)

    async def _fix(self) -> Message | None:
        """Run the command that fails, or the program with the bug; None: there is none to run."""
        if not is_fix(self._question) or "shell" not in self._tools or self._turn.calls:
            return None
        command = find_command(self._question)
        if not command and (path := self._known_file(named_files(self._question, self._names))):
            command = run_command(path, self._names.beginning(path))
        return await self._call("shell", {"command": command, "timeout_s": RUN_S}, plan="try") if command else None

    async def _change(self) -> Message:
        if tried := await self._fix():
            return tried
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
        return json_text(completion.text) or "program.py"

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
        return await self._say_open(f"There is no {name} in this folder. {there}", "Repeat the request with the right name.")

    async def _ask_which(self) -> Message:
        """Ask instead of changing the wrong file."""
        return await self._say_open(
            f"Which file do you mean? There are {self._some_names()}.", "Repeat the request with the name of the file."
        )

    async def _say_open(self, text: str, hint: str) -> Message:
        """Nothing can be done before the user says more: a question to somebody who can answer, otherwise an error."""
        if "ask" in self._tools:
            return await self._say(f"{text} {hint}")
        raise BadAnswer(text, hint=hint)

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
            case "read" if self._turn.plan in ("change", "repair") and "write" in self._tools:
                return await self._rewrite(str(call.input.get("path", "")), call.output)
            case "read":
                excerpt = texts.shorten(file_text(call.output).text, texts.MAX_EXCERPT_CHARS)
                return await self._answer(texts.about(self._request, str(call.input.get("path", "The file")), excerpt))
            case "glob" if self._turn.plan == "project" and listing_of(call.output):
                names = "\n".join(listing_of(call.output)[:40])
                return await self._answer(texts.about(self._request, "The files of the project", names))
            case "shell" if self._turn.plan == "try":
                return await self._change()
            case "shell" if self._turn.plan == "check":
                is_silent = printed_nothing(call) and shows_something(self._question) and len(self._turn.written) < REPAIRS
                return await (self._after_failed_run(call) if is_silent else self._say_written(call))
            case "glob" | "shell":
                return await self._say(describe_output(call))
            case "write" | "edit":
                return await self._after_write(call)
            case _:
                return await self._say(describe_success(call))

    async def _after_write(self, call: ToolPart) -> Message:
        """Write the next file, run what was written, or report it."""
        written = [str(each.input.get("path")) for each in self._turn.written]
        if name := next_file(self._question, self._names, written):
            return await self._write(name)
        if "read" in self._tools and (name := next_change(self._question, self._names, written)):
            return await self._call("read", {"path": name}, plan="change")
        command = ""
        if "shell" in self._tools:
            tried = next((each for each in self._turn.calls if each.tool == "shell"), None)
            path, asked = str(call.input.get("path", "")), wants_run(self._question)
            text = str(call.input.get("content") or self._names.beginning(path))
            command = str(tried.input["command"]) if tried else run_command(path, text, asked=asked)
            if not command and takes_arguments(text):
                command = await self._example_command(path)
        if command:
            return await self._call("shell", {"command": command, "timeout_s": RUN_S}, plan="check")
        return await self._say_written()

    async def _after_failed_run(self, call: ToolPart) -> Message:
        """Let the model see why a program fails, and write it again."""
        if needs_input(call) and self._turn.plan == "check":
            return await self._say_written()
        written = self._turn.written
        path = file_to_fix(call, self._question, self._names) or (str(written[-1].input["path"]) if written else "")
        if len(written) >= REPAIRS or not path:
            return await self._say_failing(call)
        last = next((each for each in reversed(written) if each.input.get("path") == path), None)
        if last is None or last.tool == "edit":
            return await self._call("read", {"path": path}, plan="repair")
        return await self._write(path, str(last.input["content"]))

    async def _example_command(self, path: str) -> str:
        runner = RUNNERS.get(Path(path).suffix.lower(), "")
        if not runner or not self._chat.server.continues:
            return ""
        turns = texts.example_run(path, runner, self._question)
        completion = await self._complete(turns, Sampling(max_tokens=COMMAND_TOKENS, stop=("\n",)))
        return example_command(path, runner, completion.text)

    async def _say_written(self, run: ToolPart | None = None) -> Message:
        by_path = {call.input.get("path"): call for call in self._turn.written}
        lines = [describe_success(call, is_run=run is not None) for call in by_path.values()]
        return await self._say("\n".join(lines) + (f"\n\n{describe_output(run)}" if run and not printed_nothing(run) else ""))

    async def _say_failing(self, call: ToolPart) -> Message:
        """End without success: the work that was asked for does not run."""
        by_path = dict.fromkeys(str(call.input.get("path")) for call in self._turn.written)
        begin = f"{', '.join(by_path)} {'was' if len(by_path) == 1 else 'were'} written, but " if by_path else ""
        raise BadAnswer(f"{begin}{describe_failure(call)}", hint=OTHER_MODEL)

    async def _after_failure(self, call: ToolPart) -> Message:
        """Repair after a failed run; read an unexpected existing file once; report other failures."""
        if call.tool == "shell" and self._turn.plan in ("try", "check"):
            if call.outcome == "error" and "write" in self._tools:
                return await self._after_failed_run(call)
            if self._turn.written:
                return await self._say_written()
        has_read = any(earlier.tool == "read" for earlier in self._turn.calls)
        if call.tool == "write" and call.outcome == "error" and not has_read and "read" in self._tools:
            path = str(call.input.get("path", ""))
            if self._names.exists(path) and not self._names.is_folder(path):
                return await self._call("read", {"path": path}, plan="change")
        if (call.tool in ("write", "edit") and call.outcome == "error") or (self._turn.plan == "change" and call.tool == "read"):
            raise BadAnswer(describe_failure(call), hint=OTHER_MODEL)
        return await self._say(describe_failure(call))

    async def _rewrite(self, path: str, output: str) -> Message:
        file = file_text(output)
        is_long = not file.is_whole or len(file.text) > MAX_CHANGED_CHARS or file.text.count("\n") > MAX_CHANGED_LINES
        if is_long and "edit" in self._tools:
            from wolo.models.local.simple_edits import ask_replacement  # noqa: PLC0415  # few files are long

            failed = self._turn.failed_run
            error = error_of(failed) if failed is not None else ""
            found = await ask_replacement(self._complete, self._chat.server, path, file.text, self._request, error)
            return await self._call("edit", {"path": path, "old": found.old, "new": found.new})
        if is_long:
            raise BadAnswer(f"{path} is too long for this small model to change.", hint=OTHER_MODEL)
        return await self._write(path, file.text)

    async def _write(self, path: str, old: str | None = None) -> Message:
        failed = self._turn.failed_run
        error = error_of(failed) if failed is not None and old is not None else ""
        drafts = [call for call in self._turn.written if call.input.get("path") == path]
        is_draft = bool(drafts) and not any(call.tool == "read" for call in self._turn.calls)
        around = "" if old is not None else await asyncio.to_thread(self._around, path)
        order = FileRequest(
            path=path,
            request=self._request,
            old=old,
            error=error,
            around=around,
            is_draft=is_draft,
            first_attempt=1 + len(self._turn.written),
        )
        writer = FileWriter(self._complete, self._announce_attempt, self._listener, self._max_tokens, self._chat.server)
        call_id, text = await writer.write(order)
        return self._calling("write", {"path": path, "content": text}, call_id)

    def _around(self, path: str) -> str:
        """Beginnings of the files that the request names, and of those written in this turn."""
        written = {str(call.input.get("path")): str(call.input.get("content")) for call in self._turn.written}
        excerpts = [texts.excerpt(name, text) for name, text in written.items()]
        for name in named_files(self._question, self._names)[:2]:
            if name not in (path, *written) and self._names.exists(name):
                excerpts.append(texts.excerpt(name, self._names.beginning(name)))
        return "".join(excerpts)
