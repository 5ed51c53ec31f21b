"""Follows one session: events are printed, typed lines become prompts, steering, decisions and answers."""

from __future__ import annotations

import asyncio
import codecs
import os
import signal
import threading
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import quote

from wolo.errors import WoloError
from wolo.frontends.attach.line_printer import LinePrinter
from wolo.frontends.attach.server_client import Refused, ServerClient, path_of
from wolo.frontends.streams import print_message, show_error

LEAVING = ("/quit", "/exit")
DECISIONS = {"y": "once", "yes": "once", "s": "session", "a": "always", "n": "no", "no": "no", "v": "never", "never": "never"}
STOP = ("s", "stop")
AT_LIMIT: tuple[list[str], ...] = ([], ["m"], ["model"], *([word] for word in STOP))
"""Beginnings of lines that end the wait for a limit."""
ENDING_LIMITS = ("request", "stream_event", "assistant", "fallback", "result", "init")
NEEDS_APPROVAL = 4
UNREADABLE = (KeyError, TypeError, AttributeError, ValueError, IndexError)


class AttachedSession:
    """With a terminal, lines steer a running turn; from a pipe, each waits until it can be a prompt."""

    def __init__(self, server: ServerClient, session_id: str, *, is_terminal: bool) -> None:
        self._server, self._id, self._is_terminal = server, session_id, is_terminal
        self._printer = LinePrinter(is_terminal=is_terminal)
        self._busy = self._caught_up = self._stopped = False
        self._exit_code = 0
        self._newest = 0
        """Events up to this id are older than what was sent last, or than the start."""
        self._seen = 0
        """Id of the latest event that is printed."""
        self._idle_since = 0
        """Id of the latest event that says no turn runs."""
        self._pending: dict[str, dict[str, Any]] = {}
        """Approvals and questions, by their ids, oldest first."""
        self._replies: list[dict[str, Any]] = []
        self._deciding = ""
        """Id of what was answered here last."""
        self._is_limited = False
        """The turn waits until a limit of its provider ends."""
        self._cwd = ""
        self._answered_elsewhere = False
        """The latest approval was answered by another client, and nothing was typed since."""
        self._changed = asyncio.Event()
        self._left: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def run(self, lines: AsyncIterator[str], exit_codes: Mapping[signal.Signals, int]) -> int:
        """Returns the exit code. Raises WoloError; the session goes on in any case."""
        found = await self._server.ask("GET", path_of(self._id))
        try:
            self._newest, self._busy = int(found["last_event_id"]), bool(found["busy"])
            self._cwd = str(found.get("cwd") or "")
        except UNREADABLE:
            raise Refused(502, "The server's answer cannot be read.", "") from None
        for number, code in exit_codes.items():
            asyncio.get_running_loop().add_signal_handler(number, self._on_signal, number, code)
        tasks = [asyncio.create_task(self._follow()), asyncio.create_task(self._read(lines))]
        for task in tasks:
            task.add_done_callback(self._on_end)
        try:
            return await self._left
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for number in exit_codes:
                asyncio.get_running_loop().remove_signal_handler(number)

    def _leave(self, code: int) -> None:
        if not self._left.done():
            self._left.set_result(code)

    def _on_end(self, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None and not self._left.done():
            self._left.set_exception(error)

    def _on_signal(self, number: signal.Signals, code: int) -> None:
        if number != signal.SIGINT or not self._busy or self._stopped:
            self._leave(0 if number == signal.SIGINT and self._is_terminal else code)
            return
        self._stopped = True
        self._exit_code = code
        print_message("Interrupting. Ctrl-C again leaves; the session stays.")
        self._interrupting = asyncio.create_task(self._send("interrupt", {}))

    async def _follow(self) -> None:
        async for id, line in self._server.events(self._id, lambda: print_message("The connection is lost. Trying again.")):
            try:
                kind = line.get("subtype") if line.get("type") == "system" else line.get("type")
                self._printer.on_line(line)
                if kind == "retry" or kind in ENDING_LIMITS:
                    self._is_limited = kind == "retry" and bool(line.get("is_limit"))
                match kind:
                    case "retry" if self._is_limited and self._caught_up:
                        self._prompt()
                    case "approval" | "questions":
                        if not isinstance(line["arguments" if kind == "approval" else "questions"], list):
                            raise TypeError(kind)
                        self._pending[str(line["approval_id" if kind == "approval" else "question_id"])] = line
                        if self._caught_up and len(self._pending) == 1:
                            self._prompt()
                    case "approval_given" | "questions_answered":
                        settled = str(line["approval_id" if kind == "approval_given" else "question_id"])
                        is_others = self._caught_up and settled in self._pending and settled != self._deciding
                        self._answered_elsewhere = is_others and kind == "approval_given"
                        self._settle(settled)
                    case "init":
                        self._pending.clear()
                        self._replies = []
                    case "status" if id > self._newest:
                        self._busy = bool(line["busy"])
                        if not self._busy:
                            self._idle_since = id
                            self._stopped = False
                            self._pending.clear()
                            self._prompt()
                    case "result" if id > self._newest:
                        self._exit_code = int(line["exit_code"])
            except UNREADABLE:
                print_message("An event of the server cannot be read.")
            self._seen = id
            if not self._caught_up and id >= self._newest:
                self._caught_up = True
                self._prompt()
            self._changed.set()

    def _settle(self, id: str) -> None:
        was_first = next(iter(self._pending), None) == id
        if self._pending.pop(id, None) is not None and was_first:
            self._replies = []
            self._prompt()

    def _prompt(self) -> None:
        if not self._caught_up:
            return
        first = next(iter(self._pending.values()), None)
        if first is None and self._busy and self._is_limited:
            if self._is_terminal:
                self._printer.ask("Enter asks now · m MODEL lets another answer · s stops: ")
        elif first is None:
            if self._is_terminal and not self._busy:
                self._printer.ask("> ")
        elif "questions" in first:
            self._printer.question(first["questions"][len(self._replies)])
            self._printer.ask("Number or words (empty skips): ")
        else:
            if not self._replies:
                self._printer.approval(first)
            letters = {
                "once": "y",
                "session": "s (for this session)",
                "always": "a (always)",
                "no": "n [reason]",
                "never": "v (never)",
            }
            self._printer.ask(f"Approve? {', '.join(letters[each] for each in first['decisions'] if each in letters)}: ")

    async def _read(self, lines: AsyncIterator[str]) -> None:
        await self._until_ready(anything=True)
        async for line in lines:
            self._printer.note_enter()
            if line.strip() in LEAVING:
                self._leave(0)
                return
            await self._until_ready(anything=self._is_terminal)
            try:
                too_late, self._answered_elsewhere = self._answered_elsewhere, False
                if too_late and self._is_terminal and not self._pending and line.strip().lower() in DECISIONS:
                    print_message("The approval was answered elsewhere already; nothing was sent.")
                    self._prompt()
                elif self._pending:
                    id, first = next(iter(self._pending.items()))
                    await (self._answer(id, first, line) if "questions" in first else self._decide(id, first, line))
                elif self._is_limited and self._is_terminal and line.split()[:1] in AT_LIMIT:
                    await self._end_limit(line)
                elif (reverting := _reverting(line)) is not None:
                    reply = await self._send(*reverting)
                    self._newest = max(self._newest, int(reply.get("last_event_id", 0)))
                    self._prompt()
                elif line.strip():
                    if self._is_terminal:
                        self._printer.own[line] += 1
                    await self._send_text(line)
                else:
                    self._prompt()
            except Refused as error:
                show_error(error)
                if error.status == 401:
                    raise
                self._exit_code = error.exit_code
                self._prompt()
        if self._is_terminal:
            self._leave(0)
            return
        await self._until_ready()
        if self._pending:
            print_message("The session waits for an answer.", hint="Attach from a terminal, or open the page.")
            self._exit_code = NEEDS_APPROVAL
        self._leave(self._exit_code)

    async def _until_ready(self, *, anything: bool = False) -> None:
        """Returns when a line can be used: for an answer, or as a prompt."""
        while self._seen < self._newest or not self._caught_up or (self._busy and not self._pending and not anything):
            self._changed.clear()
            await self._changed.wait()

    async def _send_text(self, text: str) -> None:
        """Steers a turn that runs, else begins one; another client may have begun or ended it meanwhile."""
        for attempt in range(2):
            kind = "steer" if self._busy != bool(attempt) else "prompt"
            try:
                reply = await self._send(
                    kind, {"text": text} | ({"typed": True} if kind == "prompt" and self._is_terminal else {})
                )
            except Refused as error:
                if error.status == 409 and not attempt:
                    continue
                self._printer.own[text] = 0
                raise
            if kind == "prompt":
                self._newest = max(self._newest, int(reply.get("last_event_id", 0)))
                self._busy = self._idle_since <= self._newest
            return

    async def _decide(self, id: str, asked: dict[str, Any], line: str) -> None:
        word, _, rest = line.strip().partition(" ")
        decision = DECISIONS.get(word.lower().rstrip(",.:"), "")
        if decision not in asked["decisions"] or (rest and decision not in ("no", "never")):
            self._prompt()
            return
        await self._send_decision("approve", id, {"call_id": id, "decision": decision, "reason": rest.strip()})

    async def _end_limit(self, line: str) -> None:
        word, *models = line.split() or [""]
        if word in STOP:
            await self._send("interrupt", {})
        elif word and not models:
            offers = await self._server.ask("GET", f"/api/choices?cwd={quote(self._cwd, safe='')}")
            self._printer.line("\n".join(f"{each['name']}  {each['about']}" for each in offers["models"]))
            self._prompt()
        else:
            await self._send("resume", {"model": models[0] if models else ""})

    async def _answer(self, id: str, asked: dict[str, Any], line: str) -> None:
        self._replies.append(_reply(asked["questions"][len(self._replies)], line.strip()))
        if len(self._replies) < len(asked["questions"]):
            self._prompt()
            return
        replies, self._replies = self._replies, []
        await self._send_decision("answer", id, {"call_id": id, "answers": replies})

    async def _send_decision(self, what: str, id: str, body: dict[str, Any]) -> None:
        try:
            self._deciding = id
            await self._send(what, body)
        except Refused as error:
            if error.status not in (404, 409):
                raise
            show_error(error)
        self._settle(id)

    async def _send(self, what: str, body: dict[str, Any]) -> dict[str, Any]:
        found = await self._server.ask("POST", path_of(self._id, what), body)
        return found if isinstance(found, dict) else {}


def _reverting(line: str) -> tuple[str, dict[str, Any]] | None:
    """The request for `/undo [N] [--anyway]` and `/redo [--anyway]`."""
    name, *words = line.split() or [""]
    anyway = "--anyway" in words
    rest = [word for word in words if word != "--anyway"]
    if name == "/redo" and not rest:
        return "redo", {"anyway": anyway}
    if name == "/undo" and (not rest or (len(rest) == 1 and rest[0].isascii() and rest[0].isdecimal())):
        return "undo", {"anyway": anyway, "count": int(rest[0]) if rest else 1}
    return None


def _reply(question: dict[str, Any], line: str) -> dict[str, Any]:
    """Numbers or labels of options, else words."""
    labels = [str(option["label"]) for option in question.get("options") or ()]
    given = [each.strip() for each in line.split(",")] if question.get("several") else [line]
    chosen = [labels[int(each) - 1] if each.isdecimal() and 0 < int(each) <= len(labels) else each for each in given]
    return {"chosen": chosen} if line and set(chosen) <= set(labels) else {"text": line}


async def choose_session(server: ServerClient, lines: AsyncIterator[str], *, is_terminal: bool) -> str | None:
    """Lists the sessions and asks for one; None: nobody chose."""
    rows, printer = (await server.ask("GET", "/v1/sessions")), LinePrinter(is_terminal=is_terminal)
    rows = [each for each in rows if isinstance(each, dict)] if isinstance(rows, list) else []
    for at, row in enumerate(rows[:30], 1):
        title = " ".join(str(row.get("name") or row.get("title") or "").split())[:60]
        printer.line(f"{at}. {row.get('id')}  {'busy' if row.get('busy') else 'idle'}  {title}  {row.get('cwd')}")
    if not is_terminal:
        return None
    while True:
        printer.ask("Number or id, n for a new session: ")
        typed = (await anext(lines, "")).strip()
        printer.note_enter()
        if not typed or typed in LEAVING:
            return None
        if typed in ("n", "new"):
            return ""
        if not typed.isdecimal():
            return typed
        if 0 < int(typed) <= len(rows[:30]):
            return str(rows[int(typed) - 1].get("id"))


async def new_session(server: ServerClient, cwd: str) -> str:
    """Raises WoloError."""
    found = await server.ask("POST", "/v1/sessions", {"cwd": cwd})
    if not isinstance(found, dict) or not isinstance(found.get("id"), str):
        raise WoloError("The server's answer cannot be read.")
    return str(found["id"])


async def typed_lines(descriptor: int) -> AsyncIterator[str]:
    """Ends with the input. The thread takes no lock that the end of the process would wait for."""
    loop, queue = asyncio.get_running_loop(), asyncio.Queue[str | None]()

    def put(line: str | None) -> None:
        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(queue.put_nowait, line)

    def read() -> None:
        decoder, rest = codecs.getincrementaldecoder("utf-8")("replace"), ""
        with suppress(OSError):  # the terminal has gone
            while data := os.read(descriptor, 65536):
                *lines, rest = (rest + decoder.decode(data)).split("\n")
                for line in lines:
                    put(line.rstrip("\r"))
        if rest:
            put(rest)
        put(None)

    threading.Thread(target=read, daemon=True, name="typed lines").start()
    while (line := await queue.get()) is not None:
        yield line
