"""Simple mode: drives models too small for tools with small questions, and makes the calls itself.

A request becomes an action (by grammar), a file name (by grammar), and the file (fenced code with a given start, then checked).
The results are ordinary messages with ordinary calls, so permissions, tools, events and session work as usual. A turn reads a
file, writes it and reports, at most.

    no call yet          start              choose an action: create, change, read, list, run or talk
    a call has ended     continue_turn      rewrite what was read, try what was written, repair what fails, or report
    a file is written    simple_writer.py   ask for the code, check it, ask again
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from wolo.errors import BadAnswer
from wolo.messages.message import Message
from wolo.messages.parts import ToolPart
from wolo.models.local import simple_runs, simple_texts
from wolo.models.local import simple_texts as texts
from wolo.models.local.checks import run_check, versions
from wolo.models.local.checks.asked_changes import asked_rename
from wolo.models.local.checks.asked_parts import asked_folder, asked_names, asked_parts
from wolo.models.local.checks.edited_place import edit_places
from wolo.models.local.checks.evidence import unshown_part
from wolo.models.local.checks.marks import num_of
from wolo.models.local.checks.missing_parts import missing_texts
from wolo.models.local.checks.requested_work import asks_for, is_about_words, is_harmless, wants_answer
from wolo.models.local.checks.senses import means
from wolo.models.local.checks.stated_results import asked_sum, expected_values
from wolo.models.local.file_request import OTHER_MODEL
from wolo.models.local.local_chat import Sampling
from wolo.models.local.local_response import PLAN_NOTICE, LocalResponse
from wolo.models.local.moves import asked_file_moves, next_moved, next_reference
from wolo.models.local.simple_context import (
    Effort,
    ProjectNames,
    SimpleStep,
    code_names,
    defining_file,
    free_name,
    meant_file,
    named_files,
    searched_name,
)
from wolo.models.local.simple_places import change_place, excerpt_about
from wolo.models.local.simple_reports import (
    FileText,
    describe_checks,
    describe_failure,
    describe_output,
    describe_success,
    file_text,
    listing_of,
    quote_source,
)
from wolo.models.local.simple_writer import comparison, is_writable, write_file
from wolo.models.provider import DriveMode

ACTION_TOKENS: Final = 8
PATH_TOKENS: Final = 24
MAX_NAMES_SHOWN: Final = 8
MAX_LINES_FOUND: Final = 20
LONGEST_LINE: Final = 160
OTHER_WAY: Final = "Rename or remove the files that are there."
COUNT: Final = 'Name what to count: how many lines of a.log have "ERROR"?'
LOOK: Final = "Look at it, or state an example of a result, such as add(1, 2) -> 3."

_TOOLS_OF: Final[dict[simple_texts.Action, tuple[str, ...]]] = {
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
    """Remembers only what the turn at hand has taken."""

    mode: DriveMode = "simple"

    def __init__(self) -> None:
        self._effort = Effort()

    async def next_step(self, response: LocalResponse, names: ProjectNames) -> Message:
        prompt_id = response.question.prompt_id
        if self._effort.prompt_id != prompt_id or not prompt_id:
            self._effort = Effort(prompt_id)
        step = SimpleStep(response, names, self._effort)
        turn, listener = step.turn, response.listener
        await step.announce_attempt(1)
        if not turn.calls:
            if turn.has_media:
                await listener.on_notice(f"{response.label} reads text only; other attachments are omitted.")
            if len(step.request) < len(turn.request):
                label = response.chat.server.label
                await listener.on_notice(f"The prompt is too long for {label}; it sees only the beginning and the end.")
            return await start(step)
        last = turn.calls[-1]
        if last.tool == "shell" and turn.plan == "try" and not last.is_error:
            return await _change(step)
        return await continue_turn(step, last)


async def start(step: SimpleStep) -> Message:
    """The first step of a turn."""
    if not re.search(r"\w", step.turn.request):
        return await step.response.reply("Say in a few words what to make or change, such as: create a calculator")
    if (
        simple_runs.is_fix(step.question)
        and simple_runs.find_command(step.question)
        and "write" in step.tools
        and (tried := await _try_failing(step))
    ):
        return tried
    if moved := await _move_files(step):
        return moved
    if (name := searched_name(step.question, step.names)) and "grep" in step.tools and not step.turn.has_attachment:
        pattern = re.escape(name) if name != name.lower() else f"(?i){re.escape(name)}"
        return await step.call("grep", {"pattern": pattern, "path": asked_folder(step.question) or "."}, plan="find")
    match await _choose_action(step):
        case "create":
            return await _create(step)
        case "change":
            return await _change(step)
        case "read":
            return await _read(step)
        case "list":
            words = re.findall(r"[\w./-]+", step.question)
            folder = next((word for word in words if word.strip("./") and step.names.is_folder(word)), "")
            return await step.call("glob", {"pattern": "*", "path": folder} if folder else {"pattern": "*"})
        case "shell":
            request = step.question
            if step.turn.recent_path and not named_files(request, step.names):
                request = f"{request} ({step.turn.recent_path})"
            sampling = Sampling(max_tokens=simple_runs.COMMAND_TOKENS, stop=("\n",))
            command = (await step.response.complete(texts.command(request), sampling)).text.strip().strip("`").strip()
            may_run = command and (
                is_harmless(command) or not wants_answer(request) or simple_runs.find_command(request) == command
            )
            return await (step.call("shell", {"command": command}) if may_run else _talk(step))
        case _:
            return await _talk(step)


async def _choose_action(step: SimpleStep) -> simple_texts.Action:
    possible = [action for action, tools in _TOOLS_OF.items() if step.tools.issuperset(tools)]
    if step.turn.has_attachment:
        possible = [action for action in possible if action not in ("read", "list")]  # the content is already attached
    if not step.turn.question or len(possible) == 1:
        return "answer"
    actions = texts.fulfilling(step.question)
    named = named_files(step.question, step.names)
    if wants_answer(step.question):
        is_of_folder = named or not is_about_words(step.question)
        actions = ("read", "list", "shell", "answer") if is_of_folder else ("read", "answer")
    elif named and {"create", "change"} <= {*actions}:
        existing = [step.names.exists(name) for name in named]
        if all(existing):
            actions = ("change", "shell") if "shell" in actions and simple_runs.find_command(step.question) else ("change",)
        elif simple_runs.unchanged_files(step.question, step.names, ()):
            actions = ("change",)
        elif asks_for(step.question) == "change" and not any(existing) and not simple_runs.is_fix(step.question):
            actions = ("create",)
    if named:
        is_there = "read" in possible and any(map(step.names.exists, named))
        actions = simple_runs.about_named_file(step.question, actions, is_there=is_there)
    others: list[simple_texts.Action] = ["answer"] if step.response.is_planning else possible  # work is planned in words
    possible = [action for action in possible if action in actions] or others
    if len(possible) == 1:
        return possible[0]
    sampling = Sampling(max_tokens=ACTION_TOKENS, schema=texts.one_of(possible))
    answer = (await step.response.complete(texts.action(step.question), sampling)).text
    chosen = texts.json_text(answer) or next((action for action in possible if action in answer.lower()), "")
    return next((action for action in possible if action == chosen), possible[0] if "answer" not in possible else "answer")


async def _create(step: SimpleStep) -> Message:
    named = named_files(step.question, step.names)
    path = next((name for name in named if not step.names.exists(name)), "")
    if not path:
        sampling = Sampling(max_tokens=PATH_TOKENS, schema={"type": "string", "pattern": texts.PATH_PATTERN})
        completion = await step.response.complete(texts.new_path(step.question), sampling)
        name = re.search(texts.PATH_PATTERN.strip("^$"), completion.text)  # a server may ignore the schema
        path = texts.json_text(completion.text) or (name[0] if name else "program.py")
        if path in named and step.names.exists(path) and "read" in step.tools:
            return await step.call("read", {"path": path}, plan="change")
        path = free_name(path, step.names)
    return await write_file(step, path)


async def _change(step: SimpleStep) -> Message:
    if tried := await _try_failing(step):
        return tried
    named = named_files(step.question, step.names)
    missing = [name for name in named if not step.names.exists(name)]
    if name := next_moved(step.question, step.names, ()):
        return await (step.call("read", {"path": name}, plan="change") if step.names.exists(name) else write_file(step, name))
    if name := _rename_place(step):
        return await step.call("read", {"path": name}, plan="change")
    if missing and _MAKING.search(step.question):
        return await write_file(step, missing[0])
    if path := _known_file(step, named):
        return await step.call("read", {"path": path}, plan="change")
    if missing:
        return await _reply_missing(step, missing[0])
    return await (_ask_which(step) if step.names.files else _create(step))


async def _move_files(step: SimpleStep, written: Sequence[str] = ()) -> Message | None:
    """Mend what refers to a file that the request renames, then move it; None where the request moves none."""
    if wants_answer(step.question) or not {"shell", "read", "write"} <= step.tools:
        return None
    if not (moves := await asyncio.to_thread(asked_file_moves, step.question, step.names)):
        return None
    if name := next_reference(moves, step.names, written):
        return await step.call("read", {"path": name}, plan="change")
    return await step.call("shell", {"command": moves.command}, plan="move")


def _rename_place(step: SimpleStep, written: Sequence[str] = ()) -> str:
    """The next file, of those that the request names and of those that only use it, with a name which is renamed."""
    named = named_files(step.question, step.names)
    for name in (each for each in dict.fromkeys((*named, *step.names.files)) if each not in written):
        rename = asked_rename(step.question, text := step.names.beginning(name))
        source = rename and named and re.search(rf"(?m)^from \.*([\w.]+) import .*\b{rename[0]}\b", text)
        if (
            source
            and name not in named
            and source[1].rpartition(".")[2] not in {Path(each).stem for each in named}
            and not step.names.is_folder(source[1].replace(".", "/"))
        ):
            continue  # the same name of another module
        if rename and (name in named or not (named and re.search(rf"\b(?:def|class) {rename[0]}\b", text))):
            return name
    return ""


async def _try_failing(step: SimpleStep) -> Message | None:
    has_call = bool(asked_parts(step.question).calls)
    if not (simple_runs.is_fix(step.question) or has_call) or "shell" not in step.tools or step.turn.calls:
        return None
    command = simple_runs.find_command(step.question)
    if not command and (path := _known_file(step, named_files(step.question, step.names))):
        command = run_check.probe_command(path, await asyncio.to_thread(step.names.whole, path), step.question)
        command = command or (
            simple_runs.run_command(path, step.names.beginning(path)) if simple_runs.is_fix(step.question) else ""
        )
    return await step.call("shell", {"command": command, "timeout_s": simple_runs.RUN_S}, plan="try") if command else None


async def _read(step: SimpleStep) -> Message:
    """Read only if a file is meant: "explain recursion" refers to none."""
    named = named_files(step.question, step.names)
    if not named and _ABOUT_PROJECT.search(step.question):
        if readme := step.names.readme:
            return await step.call("read", {"path": readme})
        if "glob" in step.tools:
            return await step.call("glob", {"pattern": "*"}, plan="project")
    points = _POINTING.search(step.question)
    is_meant = named or points or meant_file(step.question, step.names)
    if is_meant and (path := _known_file(step, named)):
        return await step.call("read", {"path": path})
    if named:
        return await _reply_missing(step, named[0])
    return await (_ask_which(step) if points and step.names.files else _talk(step))


async def _talk(step: SimpleStep) -> Message:
    request, value = step.request or "Hello", asked_sum(step.question)
    if step.response.is_planning:
        request = f"{request}\n\n{PLAN_NOTICE}"
    request = f"{value}.\n\n{request}" if value else request  # small models cannot calculate
    return await step.answer(
        texts.talk(request, step.turn.earlier), lambda answer: "" if value.rpartition(" ")[2] in answer else f"> {value}"
    )


def _known_file(step: SimpleStep, named: Sequence[str]) -> str:
    names = step.names
    if named:
        return next((name for name in named if names.exists(name)), "")
    if path := meant_file(step.question, names) or defining_file(step.question, names):
        return path
    if step.turn.recent_path and names.exists(step.turn.recent_path):
        return step.turn.recent_path
    return next((files[0] for files in (names.programs, names.files) if len(files) == 1), "")


async def _reply_missing(step: SimpleStep, name: str) -> Message:
    there = f"It holds {_some_names(step)}." if step.names.files else "It is empty."
    return await _reply_open(step, f"There is no {name} in this folder. {there}", "Repeat the request with the right name.")


async def _ask_which(step: SimpleStep) -> Message:
    """Ask instead of changing the wrong file."""
    hint = "Repeat the request with the name of the file."
    return await _reply_open(step, f"Which file do you mean? There are {_some_names(step)}.", hint)


async def _reply_open(step: SimpleStep, text: str, hint: str) -> Message:
    """Nothing can be done before the user says more: a question to somebody who can answer, otherwise an error."""
    if "ask" in step.tools:
        return await step.response.reply(f"{text} {hint}")
    raise BadAnswer(text, hint=hint)


def _some_names(step: SimpleStep) -> str:
    more = len(step.names.files) - MAX_NAMES_SHOWN
    return ", ".join(step.names.files[:MAX_NAMES_SHOWN]) + (f" and {more} more" if more > 0 else "")


REPAIRS: Final = 3
"""Writes in one turn after which a failing program is reported."""


async def continue_turn(step: SimpleStep, call: ToolPart) -> Message:
    """The step after a call that has ended."""
    turn = step.turn
    if call.is_error:
        return await _after_failure(step, call)
    match call.tool:
        case "read" if turn.plan in ("change", "repair") and "write" in step.tools:
            path = str(call.input.get("path", ""))
            file = file_text(call.output)
            if is_writable(step, path, file):
                return await write_file(step, path, file.text)
            if "edit" not in step.tools:
                raise BadAnswer(f"{path} is too long for this small model to change.", hint=OTHER_MODEL)
            failed = step.turn.failed_run
            return await change_place(step, path, file.text, simple_runs.error_of(failed) if failed is not None else "")
        case "read":
            path, text = str(call.input.get("path", "The file")), file_text(call.output).text
            if means(step.question, "count"):
                return await _count(step, path, file_text(call.output))
            excerpt = texts.shorten(excerpt_about(text, step.question), texts.MAX_EXCERPT_CHARS)
            return await step.answer(
                texts.about(step.request, path, excerpt), lambda answer: quote_source(path, text, step.question, answer)
            )
        case "glob" if turn.plan == "project" and listing_of(call.output):
            names = "\n".join(listing_of(call.output)[:40])
            return await step.answer(texts.about(step.request, "The files of the project", names))
        case "grep" if turn.plan == "find":
            return await _answer_from(step, call)
        case "shell" if turn.plan == "move":
            if await asyncio.to_thread(asked_file_moves, step.question, step.names):
                raise BadAnswer(
                    f"`{call.input.get('command')}` left files where they were: their names are taken.", hint=OTHER_WAY
                )
            done = [f"Ran `{call.input.get('command')}`.", *(describe_success(each) for each in turn.written)]
            return await step.response.reply("\n".join(done))
        case "shell" if turn.plan == "check":
            earlier = next((each for each in turn.calls if each.tool == "shell" and each is not call), None)
            if problem := run_check.run_problem(call, earlier, step.question):
                return await _after_failed_run(step, call, problem)
            is_silent = (
                simple_runs.printed_nothing(call)
                and not run_check.is_probe(call)
                and means(step.question, "output")
                and len(turn.written) < REPAIRS
            )
            return await (_after_failed_run(step, call) if is_silent else _reply_written(step, call))
        case "glob" | "shell":
            return await step.response.reply(describe_output(call))
        case "write" if turn.plan == "restore":
            if not (run := turn.failed_run):
                raise BadAnswer(
                    f"{call.input.get('path')} is as it was: its change did not follow from the request.", hint=OTHER_MODEL
                )
            return await _after_failed_run(step, run, run_check.run_problem(run, None, step.question) if not run.is_error else "")
        case "write" | "edit":
            return await _after_write(step, call)
        case _:
            return await step.response.reply(describe_success(call))


async def _count(step: SimpleStep, path: str, file: FileText) -> Message:
    """Count the lines with the only literal of the question. Raises BadAnswer without one: tiny models cannot count."""
    parts = asked_parts(step.question)
    literals = [
        each
        for each in dict.fromkeys((*parts.quoted, *parts.numbers, *parts.names, *code_names(step.question)))
        if num_of(each, file.text)
    ]
    if len(literals) != 1 or not file.is_whole:
        raise BadAnswer(f"{step.response.label} cannot count: nothing says which lines of {path} to count.", hint=COUNT)
    lines = [line for line in file.text.splitlines() if num_of(literals[0], line)]
    shown = "\n".join(f"> {line[:LONGEST_LINE]}" for line in lines[:MAX_NAMES_SHOWN])
    return await step.response.reply(f"{len(lines)} lines of {path} have {literals[0]}:\n\n{shown}")


async def _answer_from(step: SimpleStep, call: ToolPart) -> Message:
    """Answer a question for a name with the lines that have it, and count them where that is asked for."""
    name = searched_name(step.question, step.names)
    lines = [line for line in call.output.splitlines() if re.match(r"\S[^:]*:\d+:", line)]
    if not lines:
        return await _talk(step)
    shown = "\n".join(f"> {line[:LONGEST_LINE]}" for line in lines[:MAX_NAMES_SHOWN])
    if means(step.question, "count"):
        return await step.response.reply(f"{sum(line.count(name) for line in lines)} × {name}:\n\n{shown}")
    lines.sort(key=lambda line: not re.search(rf":\s*(?:class|def|function|func|struct)\s+{re.escape(name)}\b", line))
    excerpt = texts.shorten("\n".join(lines[:MAX_LINES_FOUND]), texts.MAX_EXCERPT_CHARS)
    return await step.answer(texts.about(step.request, f"Lines with {name}", excerpt), lambda _: f"> {lines[0][:LONGEST_LINE]}")


async def _after_write(step: SimpleStep, call: ToolPart) -> Message:
    written = [str(each.input.get("path")) for each in step.turn.written]
    if moved := await _move_files(step, written):
        return moved
    if name := simple_runs.next_file(step.question, step.names, written):
        return await write_file(step, name)
    name = next_moved(step.question, step.names, written) or simple_runs.next_change(step.question, step.names, written)
    name = name or _rename_place(step, written)
    if "read" in step.tools and name:
        return await step.call("read", {"path": name}, plan="change")
    command = ""
    if "shell" in step.tools:
        path = str(call.input.get("path", ""))
        text = str(call.input.get("content") or await asyncio.to_thread(step.names.whole, path))
        earlier = next((str(each.input["command"]) for each in step.turn.calls if each.tool == "shell"), "")
        command = _check_command(step, path, text)
        if not earlier and run_check.PROBE not in command and path.endswith(".py"):
            command = " && ".join(filter(None, (await comparison(step, path, text), command)))
        command = command or ("" if run_check.COMPARED in earlier else earlier)
        runner = run_check.RUNNERS.get(Path(path).suffix.lower(), "")
        if not command and runner and simple_runs.takes_arguments(text):
            answer, sampling = "", Sampling(max_tokens=simple_runs.COMMAND_TOKENS, stop=("\n",))
            if step.response.chat.server.continues:
                answer = (await step.response.complete(texts.example_run(path, runner, step.question), sampling)).text
            command = simple_runs.example_command(path, runner, answer, text)
    if command:
        return await step.call("shell", {"command": command, "timeout_s": simple_runs.RUN_S}, plan="check")
    return await _reply_written(step)


def _check_command(step: SimpleStep, path: str, text: str) -> str:
    written = {str(call.input.get("path")): str(call.input.get("content", "")) for call in step.turn.written} | {path: text}
    tested = "\n".join(content for name, content in written.items() if simple_runs.is_test(name))
    formula = next(filter(None, (run_check.formula_command(*each, step.question, tested) for each in written.items())), "")
    first = step.turn.calls[0]
    tried = str(first.input["command"]) if first.tool == "shell" else ""
    tests = run_check.PYTEST if re.search(r"\bpytest\b", step.question) and "pytest" not in tried else ""
    by_name = {} if len(written) > 1 or not simple_runs.is_test(path) else _functions_of(step, text)
    results = run_check.call_command(text, by_name)  # a test of what is there already
    probed = written if expected_values(step.question) else {path: text}
    probe = next(filter(None, (run_check.probe_command(*each, step.question) for each in probed.items())), "")
    tests = tests or (run_check.PYTEST if results else "")
    commands = dict.fromkeys(filter(None, (formula, results, tests, tried, probe)))
    return " && ".join(commands) or simple_runs.run_command(path, text, asked=simple_runs.wants_run(step.question))


def _functions_of(step: SimpleStep, test: str) -> dict[str, str]:
    """Functions that a test imports from files of the project, with their modules."""
    imports = re.findall(r"(?m)^from ([\w.]+) import ([\w, ]+)$", test)
    modules = {module: names for module, names in imports if step.names.exists(f"{module.replace('.', '/')}.py")}
    return {name.strip(): module for module, names in modules.items() for name in names.split(",")}


async def _after_failed_run(step: SimpleStep, call: ToolPart, problem: str = "") -> Message:
    """Let the model see why a program fails, and write it again. `problem`: its result is wrong, although it ran."""
    if not problem and simple_runs.needs_input(call) and step.turn.plan == "check":
        return await _reply_written(step)
    written = step.turn.written
    only_tests = bool(written) and all(simple_runs.is_test(str(each.input["path"])) for each in written)
    is_right = only_tests or "asked, " in str(call.input.get("command"))
    for test, text in {str(each.input["path"]): str(each.input.get("content")) for each in written}.items():
        if is_right and simple_runs.is_test(test) and (corrected := run_check.correct_test(call, text)) != text:
            return await step.call("write", {"path": test, "content": corrected})
    if difference := versions.difference(call):
        path, problem = str(written[-1].input["path"]), difference
        if better := versions.right_version(call):
            return await step.call("write", {"path": path, "content": better})
        if difference.startswith("they disagree"):
            raise BadAnswer(
                f"{path} was written, but three versions of it disagree: {difference.partition(', ')[2]}.", hint=OTHER_MODEL
            )
    path = "" if only_tests else simple_runs.file_to_fix(call, step.question, step.names)
    path = path or (str(written[-1].input["path"]) if written else "")
    if (
        len(written) >= REPAIRS or not path or (written and step.is_late(path)) or step.turn.plan == "restore"
    ):  # end without success: the work that was asked for does not run
        paths = dict.fromkeys(str(each.input.get("path")) for each in written)
        if (old := _text_before(step, *paths)) and step.turn.plan != "restore":
            return await step.call("write", {"path": path, "content": old}, plan="restore")
        begin = f"{', '.join(paths)} {'was' if len(paths) == 1 else 'were'} written, but " if paths else ""
        reason = problem or (f"{simple_runs.error_of(call)}." if run_check.is_probe(call) else describe_failure(call))
        end = f" {path} is as it was before." if step.turn.plan == "restore" else ""
        raise BadAnswer(f"{begin}{reason}{end}", hint=OTHER_MODEL)
    last = next((each for each in reversed(written) if each.input.get("path") == path), None)
    if last is None or last.tool == "edit":
        return await step.call("read", {"path": path}, plan="repair")
    if not step.may_write(path) and "edit" in step.tools:
        return await change_place(step, path, str(last.input["content"]), problem or simple_runs.error_of(call))
    try:
        return await write_file(step, path, str(last.input["content"]), problem)
    except BadAnswer:
        if not (old := _text_before(step, path)):
            raise
        return await step.call("write", {"path": path, "content": old}, plan="restore")


def _text_before(step: SimpleStep, *paths: str) -> str:
    """The text of the only file that the turn changed, as it was; empty if it was no file before, or there are several."""
    reads = [file_text(call.output) for call in step.turn.calls if call.tool == "read" and [call.input.get("path")] == [*paths]]
    return reads[0].text if reads and reads[0].is_whole else ""


async def _after_failure(step: SimpleStep, call: ToolPart) -> Message:
    """Repair after a failed run; read an unexpected existing file once; report other failures."""
    turn = step.turn
    if call.tool == "shell" and turn.plan in ("try", "check"):
        if call.outcome == "error" and "write" in step.tools:
            return await _after_failed_run(step, call)
        if turn.written:
            return await _reply_written(step)
    has_read = any(earlier.tool == "read" for earlier in turn.calls)
    if call.tool == "write" and call.outcome == "error" and not has_read and "read" in step.tools:
        path = str(call.input.get("path", ""))
        if step.names.exists(path) and not step.names.is_folder(path):
            return await step.call("read", {"path": path}, plan="change")
    is_unanswered = call.tool == "shell" and wants_answer(step.question)
    if (call.outcome == "error" and (call.tool in ("write", "edit") or is_unanswered)) or (
        turn.plan == "move" or (turn.plan == "change" and call.tool == "read")
    ):
        raise BadAnswer(describe_failure(call), hint=OTHER_MODEL)
    return await step.response.reply(describe_failure(call))


async def _reply_written(step: SimpleStep, run: ToolPart | None = None) -> Message:
    """Report what was written and checked. Raises BadAnswer if a part of the request is not in it."""
    by_path = {str(call.input.get("path")): call for call in step.turn.written}
    contents = {path: await asyncio.to_thread(step.names.whole, path) for path in by_path}
    known = await asyncio.to_thread(lambda: [step.names.whole(name) for name in named_files(step.question, step.names)])
    output = run.output if run else ""
    before = "\n".join(call.output for call in step.turn.calls if call.tool == "read")
    missing = missing_texts(step.question, "\n".join((*contents.values(), *known, output)), before)
    missing += [name for name in asked_names(step.question) if not any(name in text for text in (*contents.values(), *known))]
    missing += [name for name in simple_runs.missing_files(step.question, step.names) if name not in by_path]
    missing += [f"a change of {name}" for name in simple_runs.unchanged_files(step.question, step.names, [*by_path])]
    runs = [call for call in step.turn.calls[step.turn.calls.index(step.turn.written[-1]) :] if call.tool == "shell"]
    was_allowed = "shell" in step.tools and not any(call.outcome in ("denied_by_person", "denied_by_rule") for call in runs)
    if was_allowed:
        missing += [f"a run that shows {name}" for name in run_check.missing_runs(step.question, runs, contents)]
    if missing:
        verb = "was" if len(by_path) == 1 else "were"
        raise BadAnswer(f"{', '.join(by_path)} {verb} written, but this is missing: {', '.join(missing)}.", hint=OTHER_MODEL)
    adopted = [versions.right_version(call) for call in step.turn.calls if call.tool == "shell"]
    is_adopted = any(text and text in adopted for text in contents.values())
    if was_allowed and not is_adopted and (clause := unshown_part(step.question, _changes(step, contents), runs)):
        old = "" if runs else _text_before(step, *by_path)
        if old and old != contents[next(iter(by_path))]:
            return await step.call("write", {"path": next(iter(by_path)), "content": old}, plan="restore")
        verb = "was" if len(by_path) == 1 else "were"
        raise BadAnswer(f"{', '.join(by_path)} {verb} written, but no check shows this: “{clause}”.", hint=LOOK)
    text = "\n".join(describe_success(call, is_run=run is not None) for call in by_path.values())
    text += f"\n\n{describe_output(run)}" if run and not simple_runs.printed_nothing(run) and not run_check.is_probe(run) else ""
    return await step.response.reply(f"{text}\n\n{describe_checks(step.question, contents, run)}")


def _changes(step: SimpleStep, contents: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """The texts before and after of files that a model wrote, not of changes that the request states in full."""
    reads = {
        str(call.input.get("path")): file_text(call.output).text for call in reversed(step.turn.calls) if call.tool == "read"
    }
    changes = {path: (reads.get(path, ""), text) for path, text in contents.items()}
    return {path: pair for path, pair in changes.items() if edit_places(path, pair[0], step.question) != (pair[1], "")}
