"""Writes one file with a tiny model, or changes one place of a long one: asks for code, checks it, asks again."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from wolo.errors import BadAnswer
from wolo.messages.deltas import CallDelta
from wolo.messages.message import Message
from wolo.messages.parts import new_id
from wolo.models.local import simple_texts as texts
from wolo.models.local.checks import code_check, edited_place, versions
from wolo.models.local.checks.asked_parts import EQUATION, asked_parts, means, mentioned_names, missing_parts, repeat_count
from wolo.models.local.checks.kept_content import lost_content, restore_definitions, restore_lines
from wolo.models.local.local_chat import Completion, Sampling, Turn
from wolo.models.local.moves import moved_text
from wolo.models.local.simple_context import FILE_TOKENS, SimpleStep, named_files
from wolo.models.local.simple_runs import error_of, is_fix, is_library, is_test
from wolo.models.protocol import Listener

PROSE_TOKENS: Final = 400
"""Tiny models repeat themselves beyond this."""
TRIES: Final = 3
SECOND_ATTEMPT: Final = 3
"""Seed of the second version; with a temperature at which it may be another one."""
BEGUN_TOKENS: Final = 480
"""For code whose first line is given: one function or class."""
DOCSTRING_TOKENS: Final = 60
MOST_DOCSTRINGS: Final = 12
ADDED_TOKENS: Final = 160
AROUND_LINES: Final = 12
"""Shown before a place where lines are added."""
SHORTEST_ORDER: Final = 8
"""Characters from which a line that begins the request as well is no content."""
SHORT_LINES: Final = 24
"""A file up to this length is shown and written as a whole."""
BEGINNING_LINES: Final = 16
END_TOKENS: Final = 120
MAIN_GUARD: Final = 'if __name__ == "__main__":'
OTHER_MODEL: Final = "Ask for something smaller, or use a larger model with --model."


async def write_file(step: SimpleStep, path: str, old: str | None = None, problem: str = "") -> Message:
    """A `write` call. `old`: current content, None for a new file. Raises BadAnswer if every attempt failed."""
    written = [str(call.input.get("path")) for call in step.turn.written]
    if (moved := await asyncio.to_thread(moved_text, step.question, step.names, written, path, old or "")) is not None:
        return await step.response.call("write", {"path": path, "content": moved})
    order = await _order_for(step, path, old, problem)
    if old is not None and not order.error:
        edited, rest = edited_place.edit_places(path, old, step.request)
        of_path = [each for each in rest.splitlines() if PurePath(path).name in each or not named_files(each, step.names)]
        rest = "\n".join(of_path) if edited != old else rest
        if edited != old and not code_check.syntax_problem(path, edited) and not lost_content(path, old, edited, step.request):
            if not rest and not _missing(step, path, edited, old):
                return await step.response.call("write", {"path": path, "content": edited})
            order = replace(order, old=edited, request=rest or order.request)
        if names := edited_place.functions_without_docstring(order.old or "", order.request) if path.endswith(".py") else []:
            text = await _with_docstrings(step, order, names)
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
    raise BadAnswer(f"{step.response.label} could not write {path}: {fault.rstrip('.')}. {_state(step)}", hint=OTHER_MODEL)


async def comparison(step: SimpleStep, path: str, text: str) -> str:
    """Command that compares what was just written with further versions; empty if there is no need or nothing to compare.

    The model is asked for a second version, and for a third if that one is not the same code.
    """
    turn = step.turn
    read = next((call for call in turn.calls if call.tool == "read" and call.input.get("path") == path), None)
    old = texts.file_text(read.output).text if read else None
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
    is_stated = bool(old) and text == edited_place.edit_place(path, old or "", step.request)
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


def _state(step: SimpleStep) -> str:
    return "Its last text stays." if step.turn.written else "Nothing was written."


MAX_CHANGED_LINES: Final = 200
MAX_CHANGED_CHARS: Final = 4_000
"""Maximum size of what is written again; more would take minutes and lose content."""
MAX_OTHER_CHARS: Final = 2_000
"""The same for other files than Python, which are never shown in part."""


def is_writable(step: SimpleStep, path: str, file: texts.FileText) -> bool:
    """Check whether the file is written as a whole: its change needs no model, or what the model has to write is short."""
    if not file.is_whole:
        return False
    if edited_place.edit_place(path, file.text, step.request) not in (None, file.text):
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


class FileRequest(Struct, frozen=True, kw_only=True):
    path: str
    request: str
    old: str | None = None
    """Current content; None: a new file."""
    error: str = ""
    """Output of a command that fails because of the file."""
    is_draft: bool = False
    """Written in this turn: where a repair fails, a new text is as good."""
    others: Mapping[str, str] = {}
    """Files that the request names or this turn wrote: what they define is imported, not begun here."""
    around: str = ""
    """Excerpts of files that a new one may read or use."""
    fault: str = ""
    """Reason why the last attempt was refused."""
    first_attempt: int = 1
    """Seed of the first attempt, so that a repair does not repeat the text."""

    @property
    def language(self) -> str:
        return texts.language_of(self.path)

    @property
    def is_prose(self) -> bool:
        return self.language in texts.PROSE

    @property
    def fence(self) -> str:
        return texts.fence_of(self.language)


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
    begin = edited_place.begin_of(order.request, f"{order.old or ''}\n{other_text}") if continues and is_code else ""
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
            if edited_place.asked_definitions(so_far, order.request):
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
        elif is_test(order.path) and (whole := edited_place.whole_lines(text)):  # a list of assertions without an end
            text = whole
        elif not (
            text := (edited_place.asked_definitions(text, order.request) or edited_place.whole_definitions(text)) if begin else ""
        ):
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
        text = edited_place.keep_bodies(order.old, text, order.request)
    elif order.old is not None and (means(order.request, "add") or not order.is_prose):
        text = restore_lines(order.path, order.old, text, order.request)
        if text.strip() == order.old.strip():
            return text, "nothing in it was changed"
    if order.path.endswith("Makefile"):
        text = re.sub(r"(?m)^ {2,8}(?=\S)", "\t", text)
    text = edited_place.exact_texts(text, order.request)
    if order.language == "python":
        text = code_check.complete_python(code_check.import_own(text, order.path, order.others))
        text = code_check.print_dropped(text) if means(order.request, "output") else text
        text = edited_place.without_demo(text) if order.old is None and is_library(order.request) else text
    fault = code_check.syntax_problem(order.path, text)
    if not fault and order.language == "python":
        fault = edited_place.annotation_problem(text, order.request)
    fresh = [line.strip("-*+# .") for line in text.splitlines() if line not in (order.old or "")]
    if order.is_prose and any(len(line) >= SHORTEST_ORDER and order.request.startswith(line) for line in fresh):
        fault = "it repeats the request instead of doing it"
    if (
        not fault
        and order.old is not None
        and not order.is_draft
        and (lost := lost_content(order.path, order.old, text, order.request))
    ):
        fault = f"it lost {lost}"
    return text, fault


async def _with_docstrings(step: SimpleStep, order: FileRequest, names: Sequence[str]) -> str:
    """The file with a docstring for each of the functions: the model writes a sentence, and changes no code."""
    old, sentences = order.old or "", dict[str, str]()
    for name in names[:MOST_DOCSTRINGS]:
        turns = texts.docstring(order.request, name, edited_place.shown_part(old, name))
        sampling = Sampling(max_tokens=DOCSTRING_TOKENS, stop=("\n", '"""'))
        answer = (await step.write(order.path, turns, sampling, whole=False)).text
        sentences[name] = answer.strip().strip("\"'`").replace("\\", "").strip() or f"{name.replace('_', ' ').capitalize()}."
    return edited_place.with_docstrings(old, sentences)


def is_addition(path: str, old: str, request: str) -> bool:
    """Tells whether words are added to prose that exists: the model writes them, and wolo finds their place."""
    changes = any(means(request, sense) for sense in ("remove", "rename", "rewrite", "move"))
    return (
        PurePath(path).suffix.lower() in (".md", ".txt", ".rst") and bool(old.strip()) and means(request, "add") and not changes
    )


async def added_lines(step: SimpleStep, order: FileRequest) -> str:
    """The file with what the model adds at the place that the request means; empty if it adds nothing of use."""
    lines = (order.old or "").splitlines()
    at, begin = edited_place.place_of_addition(order.old or "", order.request)
    begin = begin or edited_place.asked_heading(order.old or "", order.request)
    turns = texts.addition(order.request, order.path, "\n".join(lines[:at][-AROUND_LINES:]), begin)
    stated = [each for each in asked_parts(order.request).quoted if each not in (order.old or "") and each not in begin]
    gap = [] if begin.lstrip()[:1] not in ("", "#") or not lines[at - 1 : at] or not lines[at - 1].strip() else [""]
    added = stated[0].lstrip("-*+ ") if len(stated) == 1 else ""
    for attempt in () if added else (1, 2):
        sampling = Sampling(
            max_tokens=ADDED_TOKENS, stop=("\n\n\n", "\n#") if gap else ("\n\n",), shun_repeats=True, attempt=attempt
        )
        answer = (await step.write(order.path, turns, sampling, whole=False)).text.removeprefix(begin).strip()
        added = edited_place.exact_texts(answer if gap else answer.partition("\n")[0], order.request)
        if edited_place.is_about(added, order.request, order.old or ""):
            break
        added = edited_place.stated_sentence(order.request, order.path)
        if attempt > 1 and not added:
            return ""
    return "\n".join([*lines[:at], *gap, f"{begin}{added}", *lines[at:]]).rstrip("\n") + "\n"


def _visible_part(order: FileRequest) -> str:
    """The part of an existing file that the model sees: of a longer Python file what the request is about."""
    old = order.old or ""
    if order.language != "python" or order.error or old.count("\n") <= SHORT_LINES:
        return old
    if (begin := edited_place.begin_of(order.request, old)) and begin.splitlines()[0] not in old:
        return "\n".join([*old.splitlines()[:BEGINNING_LINES], *edited_place.related_classes(old, order.request)]) + "\n"
    return edited_place.shown_part(old, order.request)


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


def code_in(answer: str, prefill: str, fence: str) -> str:
    """The code of an answer: after the given start, inside its first block, or all of it."""
    text = answer.removeprefix(prefill)
    lines = text.split("\n")
    mark = fence[:3]
    begins = next((at for at, line in enumerate(lines) if line.startswith(mark)), None)
    if len(text) == len(answer) and begins is not None and begins < len(lines) - 1:
        ends = next((at for at in range(begins + 1, len(lines)) if lines[at].startswith(mark)), len(lines))
        if begins == 0 or ends < len(lines):
            return "\n".join(lines[begins + 1 : ends]).strip("\n")
    return text.removesuffix(fence).strip("\n")


class CallStream:
    """Streams code as arguments of a `write` call, without the given start."""

    def __init__(self, listener: Listener, call_id: str, path: str, prefill: str) -> None:
        self._listener = listener
        self._call_id = call_id
        self._path = path
        self._prefill = prefill
        self._waiting = ""
        self._begun = False

    async def add(self, text: str) -> None:
        if self._begun:
            await self._send(CallDelta(slot=0, arguments=_inside(text)))
            return
        self._waiting += text
        if len(self._waiting) < len(self._prefill) and self._prefill.startswith(self._waiting):
            return
        self._begun = True
        head = json.dumps({"path": self._path}, ensure_ascii=False)[:-1] + ', "content": "'
        code = self._waiting.removeprefix(self._prefill)
        await self._send(
            CallDelta(slot=0, call_id=self._call_id, tool="write", arguments=head + _inside(code), part_id=self._call_id)
        )

    async def end(self) -> None:
        if self._begun:
            await self._send(CallDelta(slot=0, arguments='"}'))

    async def _send(self, delta: CallDelta) -> None:
        await self._listener.on_deltas((delta,))


def _inside(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]


def whole_paragraphs(text: str) -> str:
    """Truncate prose after the last complete sentence or line."""
    end = max(text.rfind(mark) + len(mark.rstrip()) for mark in (".\n", ". ", "!\n", "?\n", "\n\n"))
    return text[:end].rstrip() if end > len(text) // 2 else text.rpartition("\n")[0].rstrip() or text


BLOCK_TOKENS: Final = 500
EXCERPT_CHARS: Final = 5_000
WINDOW_LINES: Final = 40
"""Lines shown on each side of the place that the request is most likely about."""
SEARCH, MIDDLE, REPLACE = "<<<<<<< SEARCH\n", "\n=======\n", "\n>>>>>>> REPLACE"
_EXAMPLE: Final = "def limit():\n    return 10\n\n\ndef name():\n    return 'a'\n"


async def change_place(step: SimpleStep, path: str, text: str, error: str) -> Message:
    """An `edit` call for a file that is not to be written again. Raises BadAnswer if no attempt names lines of the file."""
    excerpt, request = excerpt_about(text, f"{step.request} {error}"), step.request
    failure = f"Running it fails:\n~~~\n{error}\n~~~\n" if error else ""
    turns = [
        ("system", "You change a file with one block: the lines to replace, copied exactly, and the new lines."),
        ("user", f"a.py:\n~~~\n{_EXAMPLE}~~~\nMake the limit 20."),
        ("assistant", f"{SEARCH}    return 10{MIDDLE}    return 20{REPLACE}"),
        ("user", f"{path}:\n~~~\n{excerpt}\n~~~\n{failure}{request}"),
        ("assistant", SEARCH),
    ]
    fault = ""
    for attempt in range(1, TRIES + 1):
        if fault and step.is_late(path):
            break
        sampling = Sampling(max_tokens=BLOCK_TOKENS, stop=(REPLACE.strip(),), attempt=attempt)
        replacement = _find_block(text, (await step.write(path, turns, sampling, whole=False)).text)
        if replacement is None:
            fault = "it names lines that are not in the file"
            continue
        old, new = replacement
        changed = text.replace(old, new, 1)
        fault = code_check.syntax_problem(path, changed)
        if lost := lost_content(path, text, changed, request):
            fault = f"it lost {lost}"
        elif missing := missing_parts(step.question, path, changed, text):
            fault = f"it has no {', '.join(missing)}"
        if old == new:
            fault = "nothing in it was changed"
        if not fault:
            return await step.call("edit", {"path": path, "old": old, "new": new})
    raise BadAnswer(f"{step.response.label} could not change {path}: {fault.rstrip('.')}. {_state(step)}", hint=OTHER_MODEL)


def excerpt_about(text: str, request: str) -> str:
    """The part of the file that shares most words with the request."""
    if len(text) <= EXCERPT_CHARS:
        return text.rstrip()
    words = {word.lower() for word in re.findall(r"\w{3,}", request)}
    lines = text.splitlines()
    score = [len(words & {word.lower() for word in re.findall(r"\w{3,}", line)}) for line in lines]
    best = max(range(len(lines)), key=lambda at: sum(score[max(0, at - 3) : at + 4]) + 2 * score[at])
    return "\n".join(lines[max(0, best - WINDOW_LINES) : best + WINDOW_LINES])[:EXCERPT_CHARS]


def _find_block(text: str, answer: str) -> tuple[str, str] | None:
    """The lines of the file that the block of an answer means, and the new ones; None if they are not there exactly once."""
    block = answer.partition(SEARCH)[2] if SEARCH in answer else answer
    old, middle, new = block.partition(MIDDLE)
    if not middle:
        return None
    new = new.partition(REPLACE)[0].rstrip("\n")
    exact = old.strip("\n")
    if exact.strip() and text.count(exact) == 1:
        return exact, new
    lines, stripped = text.splitlines(), [line.strip() for line in exact.splitlines()]
    places = [at for at in range(len(lines)) if [line.strip() for line in lines[at : at + len(stripped)]] == stripped]
    if not any(stripped) or len(places) != 1:
        return None
    real = lines[places[0] : places[0] + len(stripped)]  # the same lines with other indentation
    shift = _indentation(real)[: max(0, len(_indentation(real)) - len(_indentation(new.splitlines())))]
    indented = "\n".join(f"{shift}{line}" if line.strip() else line for line in new.splitlines())
    whole = "\n".join(real)
    return (whole, indented) if text.count(whole) == 1 else None


def _indentation(lines: Sequence[str]) -> str:
    first = next((line for line in lines if line.strip()), "")
    return first[: len(first) - len(first.lstrip())]
