"""One session of wolo that is ended again and again, and what of it must be there afterwards.

*Acknowledged* is what the provider has seen in a request, or what stood on a line of stdout. The scripted model reads a file,
edits it, makes another, runs two commands that leave marks, and says a few words; it takes every conversation up where it was
broken off.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.durability.tally import Tally
from tests.fakes.provider_server import Asked, ProviderServer
from tests.fakes.replies import Pause, Reply, call, calls, delta, finish, sse, usage
from wolo.sessions.entries import MessageEntry
from wolo.sessions.replay_entries import messages
from wolo.sessions.store import Store

DEADLINE_S = 30.0
LINES = "".join(f"line {number} of a file that is replaced whole\n" for number in range(600))
PARTIAL_WORDS = 8
STAGES = ("ready", "edit", "tool", "stream")


class Scene:
    """`otherwise` of the provider is the scene's own; the provider's linter watches the pairing and the prefix."""

    def __init__(
        self, root: Path, provider: ProviderServer, tally: Tally, *, home: Path | None = None, lingers: bool = True
    ) -> None:
        self.home = home or root / "wolo"
        self.work = root.resolve() / "work"
        self.work.mkdir(parents=True, exist_ok=True)
        self.tally = tally
        self.session = "s0"
        self.stages = {name: threading.Event() for name in STAGES}
        self._provider = provider
        self._lingering = "setsid sleep 300 >/dev/null 2>&1 </dev/null & " if lingers else ""
        """What a command leaves running, out of its group: to be ended, by the next wolo if need be."""
        self._lock = threading.Lock()
        self._numbers = Counter[str]()
        self._seen: dict[str, None] = {}
        """Texts of prompts, answers and results that were in a request; in order."""
        self._printed: dict[str, None] = {}
        """Ids of answers, and results, that stood on stdout."""
        self._failures: list[str] = []
        self._marks_seen: set[str] = set()
        self._mark_of: dict[str, str] = {}
        self._versions = (b"", b"")
        self._begun = 0.0
        self._pid = 0
        self._said = ""
        self._slow_mark = ""
        provider.otherwise = self._answer
        (self.work / "notes.txt").write_text(f"version 0\n{LINES}")

    # Running and ending

    def start(self, *, before: Sequence[str] = (), env: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
        """A run that goes on with the session; it leads a process group of its own."""
        for stage in self.stages.values():
            stage.clear()
        self._numbers["prompt"] += 1
        prompt = f"prompt {self._numbers['prompt']}"
        argv = [sys.executable, "-m", "wolo", "-p", "--yolo", "--output-format", "stream-json", *self._provider.flags]
        self._begun = time.monotonic() if not before else 0.0
        process = subprocess.Popen(
            [*before, *argv, "-s", self.session, prompt],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "WOLO_HOME": str(self.home), **(env or {})},
            cwd=self.work,
            start_new_session=True,
        )
        self._pid = 0 if before else process.pid
        return process

    def reach(self, process: subprocess.Popen[bytes], stage: str) -> bool:
        """Waits for that stage of the run; False when the run was over before."""
        deadline = time.monotonic() + DEADLINE_S
        while not self.stages[stage].wait(0.005) or (stage == "tool" and self._slow_mark not in self._marks()):
            if process.poll() is not None:
                return False
            time.sleep(0.002)
            assert time.monotonic() < deadline, f"the stage {stage!r} was not reached"
        return True

    def finish(self, process: subprocess.Popen[bytes]) -> int:
        """Takes down what was printed; returns the status."""
        printed, errors = process.communicate(timeout=DEADLINE_S)
        whole = printed.decode().rpartition("\n")[0]
        waiting: dict[str, str] = {}
        for line in map(json.loads, whole.splitlines()):
            if line["type"] == "assistant":
                calls = [part for part in line["message"]["content"] if part["type"] == "tool_use"]
                if [part["name"] for part in calls] == ["read"]:  # on disk with its result
                    waiting[calls[0]["id"]] = line["message"]["id"]
                else:
                    self._printed[line["message"]["id"]] = None
            elif line["type"] == "user":
                call_id = line["message"]["content"][0]["tool_use_id"]
                self._printed |= dict.fromkeys((call_id, *filter(None, [waiting.pop(call_id, "")])))
        self._said = errors.decode()
        if re.search("Traceback|damaged|could not be read|may be lost|broke", self._said):
            self._failures.append(self._said)
        assert not self._failures, self._failures
        return process.returncode

    def run_through(self) -> None:
        """A run that nobody ends, and a look at everything."""
        with self.start() as process:
            status = self.finish(process)
        assert status == 0, f"a run that nobody ended exited with {status}: {self._said}"
        self.check(self.home / "data")
        leftovers = [*self.work.rglob(".wolo-*.tmp"), *(self.home / "state" / "file-locks").glob("*"), *self._strays()]
        assert leftovers == [], f"left behind: {leftovers}"
        self._expect_no_children()

    def begin_another_session(self) -> None:
        self.session = f"s{int(self.session[1:]) + 1}"
        self._seen.clear()
        self._printed.clear()

    # Looking

    def check(self, data: Path, *, session: str = "") -> None:
        """Every acknowledged word is in the store, the rows have no gaps, the database is sound, nothing ran twice."""
        with Store.open(data) as store:
            assert store.warnings == (), store.warnings
            info = store.exactly(session or self.session)
            if info is None:
                assert not self._seen, f"the session is gone, with {list(self._seen)}"
                return
            loaded = store.load(info.id)
            assert loaded.skipped == 0
            with store._database.reading() as connection:
                assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
                gaps = "SELECT session FROM entries GROUP BY session HAVING count(*) <> max(seq)"
                assert connection.execute(gaps).fetchall() == []
        kept = messages(loaded.entries)
        texts = {message.text for message in kept} | {part.output for message in kept for part in message.calls}
        ids = {message.id for message in kept} | {part.id for message in kept for part in message.calls}
        self.tally.lost += len([text for text in self._seen if text not in texts]) + len(self._printed.keys() - ids)
        self.tally.acknowledged += len(self._seen) + len(self._printed)
        assert [text for text in self._seen if text not in texts] == [], "seen by the provider, and lost"
        assert self._printed.keys() - ids == set(), "printed, and lost"
        assert any(isinstance(entry, MessageEntry) for entry in loaded.entries)
        self._check_marks()

    def _check_marks(self) -> None:
        there = Counter(self._marks())
        twice = [mark for mark, times in there.items() if times > 1]
        assert twice == [], f"commands that ran twice: {twice}"
        assert set(there) >= self._marks_seen, "a command that was reported done left no mark"

    def _marks(self) -> list[str]:
        marks = self.work / "marks"
        return marks.read_text().split() if marks.exists() else []

    def _strays(self) -> list[Path]:
        data = self.home / "data"
        return [*data.glob("*.new*"), *data.glob("blobs/.*"), *data.glob("backups/unfinished*"), *data.glob("locks/*")]

    def _expect_no_children(self) -> None:
        deadline = time.monotonic() + 30
        while alive := self.children():
            assert time.monotonic() < deadline, f"still running: {alive}"
            time.sleep(0.02)

    def children(self) -> list[str]:
        """Everything that runs in the workspace; a command gets no environment by which one could know it."""
        found = []
        for place in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if (place / "cwd").readlink() == self.work:
                    found.append(f"{place.name} {(place / 'cmdline').read_bytes()!r}")
        return found

    # The model

    def _answer(self, asked: Asked) -> Reply:
        with self._lock:
            if self._begun and self._pid:
                self.tally.starts_s.append(asked.arrived - self._begun)
                self.tally.starts_cpu_s.append(cpu_s(self._pid))
                self._begun = 0.0
            self.stages["ready"].set()
            self._compare(asked)
            last_prompt = max(at for at, message in enumerate(asked.messages) if message["role"] == "user")
            done = [message for message in asked.messages[last_prompt:] if message["role"] == "tool"]
            steps = {0: self._read, 1: self._change, 3: self._command, 4: self._slow_command}
            return steps.get(len(done), self._words)()

    def _compare(self, asked: Asked) -> None:
        """What was in a request is in every later one, unless it was the unfinished end of an answer."""
        said = [self._text_of(message) for message in asked.messages if message["role"] != "system"]
        missing = [text for text in self._seen if text not in said]
        if missing:
            self.tally.lost += len(missing)
            self._failures.append(f"not in the next request: {missing}")
        self._seen.update(dict.fromkeys(filter(None, said)))
        for message in asked.messages:
            mark = self._mark_of.get(message.get("tool_call_id", ""))
            if mark and "[exit 0]" in message["content"]:
                self._marks_seen.add(mark)
        content = (self.work / "notes.txt").read_bytes()
        if self._versions[0] and content not in self._versions:
            self._failures.append(f"notes.txt is neither old nor new: {content[:50]!r}, {len(content)} bytes")

        torn = [path.name for path in self.work.glob("new-*.txt") if path.read_text() != LINES]
        if torn:
            self._failures.append(f"half written: {torn}")

    def _text_of(self, message: dict[str, Any]) -> str:
        content = message.get("content") or ""
        text = content if isinstance(content, str) else "".join(part.get("text", "") for part in content)
        # What wolo says of a call that has no result is made for the request, and the end of an answer may have been cut.
        made_up = message["role"] == "tool" and re.search("interrupted|never|not run", text)
        return "" if made_up or message["role"] == "assistant" else text

    def _read(self) -> Reply:
        return call("read", {"path": "notes.txt", "limit": 3})

    def _change(self) -> Reply:
        """A file that is there gets another first line; one that is not is made."""
        old = (self.work / "notes.txt").read_bytes()
        self._numbers["version"] += 1
        number = self._numbers["version"]
        before, after = old.split(b"\n", 1)[0].decode(), f"version {number}"
        self._versions = (old, old.replace(before.encode(), after.encode(), 1))
        self.stages["edit"].set()
        return calls(
            ("edit", {"path": "notes.txt", "old": f"{before}\n", "new": f"{after}\n"}),
            ("write", {"path": f"new-{number}.txt", "content": LINES}),
        )

    def _command(self) -> Reply:
        return self._marking("echo {mark} >> marks")

    def _slow_command(self) -> Reply:
        reply = self._marking(f"echo {{mark}} >> marks; {self._lingering}sleep 0.2")
        self._slow_mark = f"mark{self._numbers['mark']}"
        self.stages["tool"].set()
        return reply

    def _marking(self, command: str) -> Reply:
        self._numbers["mark"] += 1
        mark = f"mark{self._numbers['mark']}"
        call_id = f"call_{mark}"
        self._mark_of[call_id] = mark
        return call("shell", {"command": command.format(mark=mark)}, id=call_id)

    def _words(self) -> Reply:
        self.stages["stream"].set()
        pieces = [piece for word in range(PARTIAL_WORDS) for piece in (delta(f"word {word} "), Pause(0.01))]
        return sse(*pieces, finish("stop", usage()))


def cpu_s(pid: int) -> float:
    """What a process has used so far; nothing when it is gone."""
    with suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return 0.0


def kill(process: subprocess.Popen[bytes]) -> None:
    """Wolo alone, not what it runs: that is for the next wolo to end."""
    if process.poll() is None:
        os.kill(process.pid, signal.SIGKILL)
