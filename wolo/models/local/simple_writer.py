"""Writes one file with a tiny model, or changes one place of a long one: asks for code, checks it, asks again."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from pathlib import PurePath
from typing import Final

from msgspec.structs import replace

from wolo.errors import BadAnswer
from wolo.messages.message import Message
from wolo.messages.parts import new_id
from wolo.models.local import simple_texts as texts
from wolo.models.local.checks import code_check, versions
from wolo.models.local.checks.begun_code import (
    asked_definitions,
    begin_of,
    related_classes,
    shown_part,
    whole_definitions,
    whole_lines,
)
from wolo.models.local.checks.edited_place import edit_place, edit_places, exact_texts
from wolo.models.local.checks.edited_python import annotation_problem, functions_without_docstring, keep_bodies, without_demo
from wolo.models.local.checks.kept_content import lost_content, restore_definitions, restore_lines
from wolo.models.local.checks.marks import mentioned_names
from wolo.models.local.checks.missing_parts import missing_parts
from wolo.models.local.checks.sections import repeats
from wolo.models.local.checks.senses import means
from wolo.models.local.checks.stated_results import EQUATION, repeat_count
from wolo.models.local.file_request import OTHER_MODEL, TRIES, CallStream, FileRequest, code_in, state_of, whole_paragraphs
from wolo.models.local.local_chat import Completion, Sampling, Turn
from wolo.models.local.moves import asked_file_moves, moved_text, with_references
from wolo.models.local.simple_context import FILE_TOKENS, SimpleStep, named_files
from wolo.models.local.simple_places import added_lines, is_addition, write_docstrings
from wolo.models.local.simple_reports import FileText, file_text
from wolo.models.local.simple_runs import error_of, is_fix, is_library, is_test

PROSE_TOKENS: Final = 400
"""Tiny models repeat themselves beyond this."""
SECOND_ATTEMPT: Final = 3
"""Seed of the second version; with a temperature at which it may be another one."""
BEGUN_TOKENS: Final = 480
"""For code whose first line is given: one function or class."""
SHORTEST_ORDER: Final = 8
"""Characters from which a line that begins the request as well is no content."""
SHORT_LINES: Final = 24
"""A file up to this length is shown and written as a whole."""
BEGINNING_LINES: Final = 16
END_TOKENS: Final = 120
MAIN_GUARD: Final = 'if __name__ == "__main__":'


async def write_file(step: SimpleStep, path: str, old: str | None = None, problem: str = "") -> Message:
    """A `write` call. `old`: current content, None for a new file. Raises BadAnswer if every attempt failed."""
    written = [str(call.input.get("path")) for call in step.turn.written]
    if (moved := await asyncio.to_thread(moved_text, step.question, step.names, written, path, old or "")) is not None:
        return await step.response.call("write", {"path": path, "content": moved})
    if old is not None and (moves := await asyncio.to_thread(asked_file_moves, step.question, step.names)):
        return await step.response.call("write", {"path": path, "content": with_references(moves, path, old)})
    order = await _order_for(step, path, old, problem)
    if old is not None and not order.error:
        edited, rest = edit_places(path, old, step.request)
        of_path = [each for each in rest.splitlines() if PurePath(path).name in each or not named_files(each, step.names)]
        rest = "\n".join(of_path) if edited != old else rest
        if edited != old and not code_check.syntax_problem(path, edited) and not lost_content(path, old, edited, step.request):
            if not rest and not _missing(step, path, edited, old):
                return await step.response.call("write", {"path": path, "content": edited})
            order = replace(order, old=edited, request=rest or order.request)
        if names := functions_without_docstring(order.old or "", order.request) if path.endswith(".py") else []:
            text = await write_docstrings(step, order, names)
            if not code_check.syntax_problem(path, text) and not lost_content(path, old, text, step.request):
                return await step.response.call("write", {"path": path, "content": text})
        if is_addition(path, order.old or "", order.request):
            text = await added_lines(step, order)
            if text and not lost_content(path, old, text, step.request) and not _missing(step, path, text, old):
                return await step.response.call("write", {"path": path, "content": text})
    fault = ""
    for attempt in range(1, TRIES + 1):
        if fault:
            error = BadAnswer(f"{step.response.label} wrote a {path} that cannot be used ({fault}).", hint=OTHER_MODEL)
            await step.response.listener.on_attempt_failed(error, attempt - 1, TRIES, 0.0)
            await step.announce_attempt(attempt)
        call_id = new_id("call")
        text, fault = await _write_once(step, replace(order, fault=fault), call_id, order.first_attempt + attempt - 1)
        if not fault and order.language == "python":
            fault = code_check.name_problem(text)
        if not fault and (missing := _missing(step, path, text, old or "")):
            fault = f"it has no {', '.join(missing)}"
        if not fault:
            return step.response.call_message("write", {"path": path, "content": text}, call_id)
        if order.is_draft:  # written anew, with the reason why the draft is wrong
            order, fault = replace(order, old=None), order.error or fault
        if step.is_late(path) or not step.may_write(path):
            break
    raise BadAnswer(f"{step.response.label} could not write {path}: {fault.rstrip('.')}. {state_of(step)}", hint=OTHER_MODEL)


async def comparison(step: SimpleStep, path: str, text: str) -> str:
    """Command that compares what was just written with further versions; empty if there is no need or nothing to compare.

    The model is asked for a second version, and for a third if that one is not the same code.
    """
    turn = step.turn
    read = next((call for call in turn.calls if call.tool == "read" and call.input.get("path") == path), None)
    old = file_text(read.output).text if read else None
    names = mentioned_names(step.question)
    functions = {
        name: kinds
        for name, kinds in versions.compared_functions(text, old or "").items()
        if name in names or is_fix(step.question)
    }
    is_program = (
        read is None
        and means(step.question, "output")
        and not (repeat_count(step.question) or EQUATION.search(step.question))
        and versions.prints_results(text)
    )
    is_stated = bool(old) and text == edit_place(path, old or "", step.request)
    if len(turn.written) > 1 or not (functions or is_program) or is_stated:
        return ""
    order, others, examples = await _order_for(step, path, old), list[str](), versions.asked_examples(step.question, functions)
    for attempt in (SECOND_ATTEMPT, SECOND_ATTEMPT + 1):
        if step.is_late(path) or (others and versions.is_same_code(text, others[-1], [*functions])):
            break
        other, fault = await _write_once(step, order, "", attempt)
        if not fault and all(re.search(rf"(?m)^def {name}\b", other) for name in functions):
            others.append(other)
    is_repair = (
        bool(functions) and is_fix(step.question) and all(re.search(rf"(?m)^def {name}\b", old or "") for name in functions)
    )
    return versions.comparison_command([text, *others], functions, examples, (old or "") if is_repair else "")


async def _order_for(step: SimpleStep, path: str, old: str | None, problem: str = "") -> FileRequest:
    turn = step.turn
    failed = turn.failed_run
    return FileRequest(
        path=path,
        request=step.request,
        old=old,
        error=problem
        or (error_of(failed) if failed is not None and (failed.is_error or turn.plan == "check") and old is not None else ""),
        around="" if old is not None else await asyncio.to_thread(_excerpts_around, step, path),
        others={
            **{name: step.names.beginning(name) for name in named_files(step.question, step.names) if name != path},
            **{str(call.input["path"]): str(call.input["content"]) for call in turn.written if "content" in call.input},
        },
        is_draft=any(call.input.get("path") == path for call in turn.written)
        and not any(call.tool == "read" for call in turn.calls),
        first_attempt=1 + len(turn.written),
    )


def _missing(step: SimpleStep, path: str, text: str, old: str) -> list[str]:
    """Parts of the request that its only file lacks."""
    return missing_parts(step.question, path, text, old) if len(named_files(step.question, step.names)) < 2 else []


MAX_CHANGED_LINES: Final = 200
MAX_CHANGED_CHARS: Final = 4_000
"""Maximum size of what is written again; more would take minutes and lose content."""
MAX_OTHER_CHARS: Final = 2_000
"""The same for other files than Python, which are never shown in part."""


def is_writable(step: SimpleStep, path: str, file: FileText) -> bool:
    """Check whether the file is written as a whole: its change needs no model, or what the model has to write is short."""
    if not file.is_whole:
        return False
    if edit_place(path, file.text, step.request) not in (None, file.text) or asked_file_moves(step.question, step.names):
        return True
    shown = _visible_part(FileRequest(path=path, request=step.request, old=file.text))
    return (
        step.may_write(path)
        and len(shown) <= (MAX_CHANGED_CHARS if path.endswith(".py") else MAX_OTHER_CHARS)
        and shown.count("\n") <= MAX_CHANGED_LINES
    )


def _excerpts_around(step: SimpleStep, path: str) -> str:
    written = {str(call.input.get("path")): str(call.input.get("content")) for call in step.turn.written}
    excerpts = [texts.excerpt(name, text) for name, text in written.items()]
    for name in named_files(step.question, step.names)[:2]:
        if name not in (path, *written) and step.names.exists(name):
            excerpts.append(texts.excerpt(name, step.names.beginning(name)))
    return "".join(excerpts)


class _Complete(Exception):
    """The model goes on, although the code that was asked for has come to its end."""


async def _write_once(step: SimpleStep, order: FileRequest, call_id: str, attempt: int) -> tuple[str, str]:
    """The text and what is wrong with it. `call_id`: of the call that streams it; empty: it is only compared."""
    is_new = order.old is None
    request = f"{order.request}\nThe last answer was refused: {order.fault}." if order.fault else order.request
    turns = (
        texts.new_file(request, order.path, order.language, order.fence, order.around)
        if order.old is None
        else texts.changed_file(request, order.path, _visible_part(order), order.language, order.fence, order.error)
    )
    prefill = turns[-1][1]
    continues = step.response.chat.server.continues
    is_code = order.language == "python" and not order.error and not is_test(order.path)
    other_text = "\n".join(text for path, text in order.others.items() if path != order.path)
    begin = begin_of(order.request, f"{order.old or ''}\n{other_text}") if continues and is_code else ""
    turns[-1] = ("assistant", prefill + begin)
    stream = CallStream(step.response.listener, call_id, order.path, prefill)
    is_new_prose = order.is_prose and is_new
    sampling = Sampling(
        max_tokens=min(
            step.max_tokens, PROSE_TOKENS if is_new_prose else BEGUN_TOKENS if begin or is_test(order.path) else FILE_TOKENS
        ),
        stop=(f"\n{order.fence}",),
        attempt=attempt,
        shun_repeats=order.is_prose,
    )
    pieces: list[str] = []

    async def take(piece: str) -> None:
        pieces.append(piece)
        if continues and call_id:
            await stream.add(piece)
        if begin and "\n" in piece:
            so_far = "".join((begin, *pieces)).replace(begin + prefill, "", 1)
            if asked_definitions(so_far, order.request):
                raise _Complete

    try:
        completion = await step.write(order.path, turns, sampling, take)
    except _Complete:
        completion = Completion(text="".join(pieces), cut_off=True)
    text = code_in(completion.text, prefill, order.fence)
    if begin and not completion.text.startswith(prefill):
        text = begin + text
    if not continues and call_id:
        await stream.add(f"{prefill}{text}")
    await stream.end()
    if completion.cut_off:
        if is_new_prose:
            text = whole_paragraphs(text)
        elif is_test(order.path) and (whole := whole_lines(text)):  # a list of assertions without an end
            text = whole
        elif not (text := (asked_definitions(text, order.request) or whole_definitions(text)) if begin else ""):
            return text, "it did not come to an end"
    text = f"{text}\n" if text else ""
    shows_nothing = begin or is_test(order.path) or is_library(order.request)
    if continues and is_new and order.language == "python" and not shows_nothing:
        text = await _with_effect(step, [*turns[:-1], ("assistant", prefill)], text)
    return _fit(order, text)


def _fit(order: FileRequest, text: str) -> tuple[str, str]:
    if is_test(order.path):
        text = code_check.without_copies(text, order.others)
    if order.language == "python":
        text = (
            restore_definitions(order.old, text, order.request)
            if order.old is not None
            else code_check.apply_asked_name(text, "" if order.others else order.request)
        )
    if order.old is not None and text.strip() == order.old.strip():
        return text, "nothing in it was changed"
    if order.old is not None and order.language == "python":
        text = keep_bodies(order.old, text, order.request)
    elif order.old is not None and (means(order.request, "add") or not order.is_prose):
        text = restore_lines(order.path, order.old, text, order.request)
        if text.strip() == order.old.strip():
            return text, "nothing in it was changed"
    if order.path.endswith("Makefile"):
        text = re.sub(r"(?m)^ {2,8}(?=\S)", "\t", text)
    text = exact_texts(text, order.request)
    if order.language == "python":
        text = code_check.complete_python(code_check.import_own(text, order.path, order.others))
        text = code_check.print_dropped(text) if means(order.request, "output") else text
        text = without_demo(text) if order.old is None and is_library(order.request) else text
    fault = code_check.syntax_problem(order.path, text)
    if not fault and order.language == "python":
        fault = annotation_problem(text, order.request)
    fresh = [line.strip("-*+# .") for line in text.splitlines() if line not in (order.old or "")]
    if order.is_prose and any(len(line) >= SHORTEST_ORDER and repeats(order.request, line) for line in fresh):
        fault = "it repeats the request instead of doing it"
    if (
        not fault
        and order.old is not None
        and not order.is_draft
        and (lost := lost_content(order.path, order.old, text, order.request))
    ):
        fault = f"it lost {lost}"
    return text, fault


def _visible_part(order: FileRequest) -> str:
    """The part of an existing file that the model sees: of a longer Python file what the request is about."""
    old = order.old or ""
    if order.language != "python" or order.error or old.count("\n") <= SHORT_LINES:
        return old
    if (begin := begin_of(order.request, old)) and begin.splitlines()[0] not in old:
        return "\n".join([*old.splitlines()[:BEGINNING_LINES], *related_classes(old, order.request)]) + "\n"
    return shown_part(old, order.request)


async def _with_effect(step: SimpleStep, turns: Sequence[Turn], text: str) -> str:
    """Let the model end a program that only defines functions, so that it does something when run."""
    text = code_check.complete_python(text)
    if not code_check.does_nothing(text):
        return text
    begun = f"{text.rstrip()}\n\n\n{MAIN_GUARD}\n   "
    sampling = Sampling(max_tokens=END_TOKENS, stop=("\n```", "\n\n\n"))
    turns = [*turns[:-1], ("assistant", f"{turns[-1][1]}{begun}")]
    try:
        completion = await step.response.complete(turns, sampling)
    except BadAnswer:
        return text
    ending = completion.text.removeprefix(turns[-1][1]).rstrip()
    whole = f"{begun}{ending}\n"
    return text if completion.cut_off or not ending or code_check.syntax_problem("a.py", whole) else whole
