"""Prints the events of a served session as plain text; everything that came from afar is spelled."""

from __future__ import annotations

import time
from collections import Counter
from datetime import datetime
from typing import Any

import msgspec

from wolo.frontends.streams import visible, write
from wolo.messages.terminal_text import label

SHOWN_LINES = 40
"""Of a result without a diff."""
SHOWN_CHARACTERS = 200
"""Of the arguments of a call that needs no decision."""
MARKS = {"completed": "x", "in_progress": ">", "cancelled": "-"}


class LinePrinter:
    def __init__(self, *, is_terminal: bool) -> None:
        self._is_terminal = is_terminal
        self._streamed = ""
        """Text of the answer that has been printed before it was complete."""
        self._at_start = True
        self._shown: Counter[str] = Counter()
        self._again: Counter[str] = Counter()
        """Messages that have been printed and come once more, because the server began its log anew."""
        self.own: Counter[str] = Counter()
        """Prompts that were typed here and stand on the screen already."""

    def line(self, text: str = "", *, before: str = "") -> None:
        """Prints lines of their own, each behind `before`."""
        write(("" if self._at_start else "\n") + "".join(f"{before}{each}\n" for each in visible(text).split("\n")))
        self._at_start, self._streamed = True, ""

    def ask(self, text: str) -> None:
        """Leaves the cursor of a terminal behind the text."""
        if not self._is_terminal:
            self.line(text.rstrip())
            return
        write(("" if self._at_start else "\n") + visible(text))
        self._at_start = False

    def note_enter(self) -> None:
        """The user has typed Enter, which began a new line of a terminal."""
        self._at_start = self._at_start or self._is_terminal

    def on_line(self, line: dict[str, Any]) -> None:
        match line.get("subtype") if line.get("type") == "system" else line.get("type"):
            case "init":
                self._again, self._shown = self._shown, Counter()
                if not self._again:
                    self.line(f"Session {line['session_id']}: {line['model']}, {line['mode']}, in {line['cwd']}")
                self._streamed = ""
            case "status":
                self._again.clear()
            case "request" if self._streamed:
                self.line("(The answer begins again.)")
            case "stream_event":
                event = line["event"]
                if event["type"] == "text_delta" and event["text"]:
                    text = str(event["text"])
                    write(("" if self._streamed or self._at_start else "\n") + visible(text))
                    self._streamed += text
                    self._at_start = text.endswith("\n")
            case "assistant":
                self._answer(line["message"])
            case "user":
                self._message(line)
            case "todo" if not self._again:
                self.line(
                    "\n".join(f"[{MARKS.get(each['status'], ' ')}] {each['text']}" for each in line["items"]), before="    "
                )
            case "mode":
                self.line(f"({line['text']})")
            case "notice":
                if not self._is_again(f"notice {line['text']}"):
                    self.line(f"({line['text']})")
            case "reverted":
                is_undo = line["kind"] == "undo"
                self.line(f"({'Undone' if is_undo else 'Redone'}.{' /redo takes it back.' if is_undo else ''})")
                for what in ("restored", "removed", "conflicts"):
                    for path in line[what]:
                        self.line(f"{'not changed' if what == 'conflicts' else what} {path}", before="    ")
            case "activity":
                self.line(f"({line['text']} …)")
            case "denied" | "retry" | "fallback" | "compaction" as subtype:
                from wolo.conversation.phrasing import describe  # noqa: PLC0415  # the agent, which nothing else here needs
                from wolo.frontends.stream_json import event_of_line  # noqa: PLC0415

                sentence = describe(event_of_line(_as_of_now(line)))
                self.line(sentence if subtype == "denied" else f"({sentence})", before="    " if subtype == "denied" else "")
            case "result":
                if line["is_error"]:
                    error = line.get("error") or {}
                    words = [str(error.get("message") or line["subtype"]), str(error.get("hint") or "")]
                    self.line(f"({' '.join(filter(None, words))})")
                if work := (line.get("verification") or {}).get("line"):
                    self.line(f"({work})")

    def _is_again(self, key: str) -> bool:
        self._shown[key] += 1
        if self._again[key] > 0:
            self._again[key] -= 1
            return True
        return False

    def _answer(self, message: dict[str, Any]) -> None:
        if self._is_again(f"assistant {message['id']}"):
            return
        text = "".join(each["text"] for each in message["content"] if each["type"] == "text")
        if text.startswith(self._streamed):
            write(visible(text[len(self._streamed) :]))
            self._at_start = self._at_start if text == self._streamed else text.endswith("\n")
        else:
            self.line(text)
        if not self._at_start:
            write("\n")
        self._streamed, self._at_start = "", True
        for each in message["content"]:
            if each["type"] == "tool_use":
                self.line(f"* {each['name']} {_short(each['input'])}")

    def _message(self, line: dict[str, Any]) -> None:
        message = line["message"]
        for each in message["content"]:
            if each["type"] == "tool_result":
                if not self._is_again(f"result {each['tool_use_id']}"):
                    self._result(each, line.get("view"))
                continue
            if each["type"] == "image":
                each = {"text": f"[{each['media_type']}, {each['size_bytes']} bytes]"}
            text = str(each["text"])
            if self._is_again(f"user {message.get('id')} {text}"):
                continue
            if self.own[text] > 0:
                self.own[text] -= 1
            else:
                self.line(text, before="> ")

    def _result(self, block: dict[str, Any], view: Any) -> None:
        view = view if isinstance(view, dict) else {}
        if not self._view(view):
            content = block["content"]
            text = content if isinstance(content, str) else "\n".join(str(each.get("text", each["type"])) for each in content)
            self._excerpt(("failed: " if block.get("is_error") else "") + text)

    def _view(self, view: dict[str, Any]) -> bool:
        if view.get("type") == "diff":
            self.line(f"{view['path']} +{view['added']} -{view['removed']}\n{str(view['text']).rstrip()}", before="    ")
        elif view.get("type") == "output":
            ended = "" if view["exit_code"] is None else f"(exit code {view['exit_code']})"
            text = "\n".join(filter(None, (str(view["text"]).rstrip(), ended)))
            if not text:  # a job was started, which the text for the model says
                return False
            self._excerpt(text)
        return view.get("type") in ("diff", "output", "todo_list")

    def _excerpt(self, text: str) -> None:
        lines = text.rstrip().split("\n")
        self.line("\n".join(lines[:SHOWN_LINES]), before="    ")
        if len(lines) > SHOWN_LINES:
            self.line(f"… {len(lines) - SHOWN_LINES} more lines", before="    ")

    def approval(self, line: dict[str, Any]) -> None:
        who = f" ({line['agent']})" if line.get("agent") else ""
        self.line(f"? {line['name']}{who}")
        view = line["view"] if isinstance(line.get("view"), dict) else {}
        is_drawn = view.get("type") == "diff" and self._view(view)
        for each in line["arguments"]:
            if not (is_drawn and each["is_in_view"]):
                self.line(label(str(each["name"]), str(each["text"])), before="    ")
        if line.get("reason"):
            self.line(str(line["reason"]), before="    ")
        for path in line.get("outside") or ():
            self.line(f"outside the workspace: {path}", before="    ")
        if line.get("rule"):
            self.line(f"“always” adds the rule {line['rule']}", before="    ")

    def question(self, question: dict[str, Any]) -> None:
        self.line(f"? {question['text']}")
        for at, option in enumerate(question.get("options") or (), 1):
            self.line(
                f"{at}. {option['label']}" + (f": {option['description']}" if option.get("description") else ""), before="    "
            )


def _as_of_now(line: dict[str, Any]) -> dict[str, Any]:
    """A limit may have been met long before a client came."""
    end = (line.get("error") or {}).get("resets_at") if line.get("is_limit") else None
    if end is None:
        return line
    left_s = datetime.fromisoformat(str(end)).timestamp() - time.time()
    return {**line, "delay_s": max(min(left_s, line["delay_s"]), 0.0)}


def _short(value: Any) -> str:
    if isinstance(value, dict) and len(value) == 1:
        (value,) = value.values()
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    text = " ".join(text.split())
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}…"
