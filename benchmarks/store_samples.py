"""Generates sessions for the benchmarks: as large as real ones get, the same every time."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

from msgspec.structs import replace

from wolo.messages.message import Message, Producer, Usage, UsageCost, user
from wolo.messages.parts import TextPart, ToolPart
from wolo.sessions.entries import AnyEntry, CompactionEntry, MessageEntry, ResultsEntry
from wolo.sessions.store import Store

HUGE_ENTRIES = 50_000
HUGE_BYTES = 200_000_000
SESSIONS = 1_000
BATCH = 500

_WORDS = Path(__file__).parent.parent / "wolo"


class Samples:
    """Text as in real sessions: code and prose about it."""

    def __init__(self) -> None:
        self._random = random.Random(7)
        self._text = "\n".join(path.read_text() for path in sorted(_WORDS.rglob("*.py")))

    def text(self, chars: int) -> str:
        begin = self._random.randrange(len(self._text) - chars)
        return self._text[begin : begin + chars]

    def turn(self, number: int, calls: int, output_chars: int) -> Iterator[AnyEntry]:
        """A prompt, an answer for each call with its result, and a final answer."""
        yield MessageEntry(message=user(f"Request {number}: {self.text(120)}"))
        for at in range(calls):
            tool, arguments = (("shell", {"command": f"pytest tests/test_{at}.py"}), ("read", {"path": f"src/part_{at}.py"}))[
                at % 2
            ]
            call = ToolPart(tool=tool, input=arguments, call_id=f"call_{number}_{at}")
            yield MessageEntry(message=self._answer(f"Step {at}: {self.text(150)}", call))
            done = replace(call, status="completed", outcome="ok", output=self.text(output_chars))
            yield ResultsEntry(message_id=self._answer_id, parts=(done,))
        yield MessageEntry(message=self._answer(f"Done with {number}. {self.text(300)}"))

    def _answer(self, text: str, *calls: ToolPart) -> Message:
        usage = Usage(input_tokens=900, cache_read_tokens=30_000, output_tokens=150, cost=UsageCost(total=0.002))
        wrote = Producer("custom", "openai-chat", "text")
        message = Message(role="assistant", parts=(TextPart(text=text), *calls), usage=usage, producer=wrote, finished=True)
        self._answer_id = message.id
        return message


def make_huge(store: Store, cwd: Path, entries: int = HUGE_ENTRIES, size_bytes: int = HUGE_BYTES) -> str:
    """A session of HUGE_ENTRIES entries and about HUGE_BYTES bytes."""
    samples, session = Samples(), store.create(cwd, model="custom/text", name="huge")
    calls = 20
    per_turn = 2 * calls + 2
    output_chars = size_bytes * per_turn // entries // calls - 1_200
    waiting: list[AnyEntry] = []
    for number in range(-(-entries // per_turn)):
        waiting += samples.turn(number, calls, output_chars)
        if len(waiting) >= BATCH:
            store.append(session.id, waiting)
            waiting.clear()
    store.append(session.id, waiting)
    return session.id


def make_turns(store: Store, cwd: Path, turns: int) -> None:
    """A session `turns` of so many turns with one call each."""
    samples, session = Samples(), store.create(cwd, model="custom/text", name="turns")
    store.append(session.id, [entry for number in range(turns) for entry in samples.turn(number, 1, 1_500)])


def make_compacted(store: Store, cwd: Path, entries: int) -> None:
    """A session `compacted` of so many entries, 200 MB in all; after every twelve turns the last two are still sent."""
    samples, session = Samples(), store.create(cwd, model="custom/text", name="compacted")
    left_out: list[str] = []
    sent: list[list[str]] = []
    for number in range(entries // 42):
        turn = list(samples.turn(number, 20, 3_000))
        sent.append([entry.message.id for entry in turn if isinstance(entry, MessageEntry)])
        if number % 12 == 11:
            left_out += [id for ids in sent[:-2] for id in ids]
            sent = sent[-2:]
            lead = Message(role="compaction_summary", parts=(TextPart(text=samples.text(6_000)),), finished=True)
            turn.append(CompactionEntry(summary=lead, left_out=tuple(left_out), sent_from=sent[0][0], reason="window"))
        store.append(session.id, turn)


def make_many(store: Store, cwd: Path, count: int = SESSIONS) -> None:
    """Ordinary sessions, in ten directories."""
    samples = Samples()
    for number in range(count):
        session = store.create(cwd / f"project-{number % 10}" if number % 10 else cwd, model="custom/text")
        store.append(session.id, [entry for turn in range(2) for entry in samples.turn(number * 2 + turn, 4, 1_500)])
