"""`make bench`: the interactive session: time until it is ready, latency of keys, bytes on the screen, memory.

Nothing here passes or fails. The provider is the scripted one of the tests.
"""

from __future__ import annotations

import os
import random
import re
import select
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pexpect
from counts import COLLECTED
from runs import Table

from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import Pause, Piece, Reply, call, delta, finish, sse, text, usage
from tests.fakes.screen import Terminal, pty_wolo
from wolo.frontends.terminal.live.live_region import PAINT_S

FLOOD = "while :; do seq 1 200; sleep 0.02; done"
DELTAS_PER_S = 200
STREAM_S = 15
KEYS = 100
TURNS = 200
LINES = "".join(f"This is line {number} of an answer with many words.\n" for number in range(400))
PARAGRAPH = "Every message is saved to disk before it is shown, so that nothing is lost when the machine crashes at once. "
PARAGRAPHS = (PARAGRAPH * 4 + "\n\n") * 50
MOST_BYTES_S = 10
TOKENS_PER_S, MINUTE_S = 100, 60
LOWEST_OF = 3
"""A session that waits longer repaints its clock more often."""
SLOWER, VALGRIND_S = 8, 600.0
"""Valgrind makes a program fifty times slower; a session that hardly works needs no clock that is as slow."""
FOLDERS, FILES = 300, 100
SEQUENCE = re.compile(rb"\x1b\[[0-9;?]*[a-zA-Z]")
TABLE = Table("Terminal, 24×80", "", "wolo", "budget")
FLOOR = Path(__file__).parent / "prompt_floor.py"
COMPILED = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(FLOOR.parent.parent / "build/bytecode")}
"""Compiled to bytecode, as in an installation."""


def main() -> None:
    start()
    idle()
    keystrokes("200 deltas/s stream in", streaming(text="0123456789 " * 2))
    keystrokes("a tool floods its output", call("shell", {"command": FLOOD}), "--mode", "yolo", "--sandbox", "off")
    mentions()
    share_of_a_core()
    if shutil.which("valgrind"):
        run_counted(words(5), 1 / TOKENS_PER_S)  # the first one compiles what it imports
        instructions("a token in a frame of its own", PAINT_S, 20, "≤ 4.6 M")
        instructions(f"a token of {TOKENS_PER_S}/s", 1 / TOKENS_PER_S, 200, "≤ 0.3 M")
    for per_s in (100, 320, 1200):
        written(f"lines, {per_s:,} characters/s", LINES, per_s)
    written("paragraphs, 320 characters/s", PARAGRAPHS, 320)
    turns()
    TABLE.save()


def start() -> None:
    """CPU until the composer is shown, in a home directory that was used before."""
    home = Path(tempfile.mkdtemp(prefix="wolo-bench-"))
    try:
        spent = [ready_ms(home) for _ in range(8)][1:]
        floor = [floor_ms() for _ in range(8)][1:]
        TABLE.row("ready to type", f"{statistics.median(spent):,.0f} ms CPU (floor {statistics.median(floor):,.0f})", "≤ 150")
    finally:
        shutil.rmtree(home, ignore_errors=True)


def ready_ms(home: Path) -> float:
    with conversation(folder=home) as (terminal, _):
        return cpu_s(terminal.child.pid) * 1000


def floor_ms() -> float:
    """CPU of a program that only shows a prompt."""
    child = pexpect.spawn(sys.executable, [str(FLOOR)], env={**os.environ, **COMPILED, "TERM": "xterm-256color"})
    child.expect("›".encode())
    spent = cpu_s(child.pid) * 1000
    child.close(force=True)
    return spent


def idle() -> None:
    with conversation() as (terminal, _):
        drain(terminal, 1.0)
        before = cpu_s(terminal.child.pid), switches(terminal.child.pid)
        written = drain(terminal, 5.0)
        spent = cpu_s(terminal.child.pid) - before[0]
        TABLE.row(
            "5 s idle", f"{spent * 1000:,.0f} ms CPU, {switches(terminal.child.pid) - before[1]} wake-ups, {written} bytes", "0"
        )


def streaming(text: str) -> Reply:
    pieces: list[Piece | dict[str, object]] = []
    for number in range(DELTAS_PER_S * STREAM_S):
        pieces += [Pause(1 / DELTAS_PER_S), delta(text + ("\n" if number % 4 == 3 else ""))]
    return sse(*pieces, finish("stop", usage()))


def keystrokes(while_: str, reply: Reply, *flags: str) -> None:
    with conversation(*flags) as (terminal, provider):
        provider.script(reply)
        terminal.enter("0")
        drain(terminal, 1.5)
        waits = [keystroke_s(terminal, "qwxyz"[number % 5]) * 1000 for number in range(KEYS)]
        middle, slow = statistics.median(waits), statistics.quantiles(waits, n=20)[-1]
        TABLE.row(f"key to echo while {while_}", f"p50 {middle:.1f} ms, p95 {slow:.1f} ms", "p95 ≤ 16")


def keystroke_s(terminal: Terminal, key: str) -> float:
    """Seconds until the key is echoed."""
    drain(terminal, 0.037)
    began = time.monotonic()
    os.write(terminal.child.child_fd, key.encode())
    while key.encode() not in SEQUENCE.sub(b"", read(terminal, 5.0)):
        assert time.monotonic() - began < 5, "the key was not echoed"
    return time.monotonic() - began


def mentions() -> None:
    """Latency of keys while the menu of files behind an `@` searches."""
    folder = Path(tempfile.mkdtemp(prefix="wolo-bench-"))
    for number in range(FOLDERS):
        (folder / f"folder_{number}").mkdir()
        for file in range(FILES):
            (folder / f"folder_{number}/module_{file}.py").touch()
    try:
        with conversation(folder=folder) as (terminal, _):
            os.write(terminal.child.child_fd, b"see @")
            waits = [wait for _ in range(KEYS // 6) for wait in one_mention(terminal)]
            middle, slow = statistics.median(waits), statistics.quantiles(waits, n=20)[-1]
            TABLE.row(f"key to echo, @ over {FOLDERS * FILES:,} files", f"p50 {middle:.1f} ms, p95 {slow:.1f} ms", "p95 ≤ 16")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def one_mention(terminal: Terminal) -> list[float]:
    """Types capitals: no file name contains them, so they appear in the composer only."""
    waits = [keystroke_s(terminal, key) * 1000 for key in "MODULE"]
    os.write(terminal.child.child_fd, b"\x7f" * len(waits))
    drain(terminal, 0.2)
    return waits


def written(what: str, answer: str, per_s: int) -> None:
    """Bytes written for an answer that comes in deltas of twenty characters."""
    answer = answer[: per_s * MOST_BYTES_S]
    pieces = [each for at in range(0, len(answer), 20) for each in (Pause(20 / per_s), delta(answer[at : at + 20]))]
    with conversation() as (terminal, provider):
        provider.script(sse(*pieces, finish("stop", usage())))
        drain(terminal, 0.5)
        terminal.enter("0")
        size = drain(terminal, MOST_BYTES_S + 2.0)
        TABLE.row(f"bytes of {what}", f"{size / len(answer):.1f} × text", "≤ 3")


def words(num: int) -> list[str]:
    """Paragraphs, lists and code, a word or two at a time."""
    chance = random.Random(1)  # text that repeats would be stopped
    words: list[str] = []
    while len(words) < num:
        words += [f"{word} " for word in chance.choices(PARAGRAPH.split(), k=60)]
        words += ["\n\n- ", f"`{chance.random()}` ", "in a list\n\n", "```python\n", f"print({chance.random()})\n", "```\n\n"]
    return words[:num]


def streamed(words: list[str], every_s: float) -> Reply:
    return sse(*(each for word in words for each in (Pause(every_s), delta(word))), finish("stop", usage()))


def share_of_a_core() -> None:
    """CPU of a minute of text."""
    with conversation() as (terminal, provider):
        provider.script(streamed(words(TOKENS_PER_S * MINUTE_S), 1 / TOKENS_PER_S))
        drain(terminal, 0.5)
        terminal.enter("0")
        drain(terminal, 2.0)
        before = cpu_s(terminal.child.pid)
        drain(terminal, MINUTE_S - 4.0)
        share = (cpu_s(terminal.child.pid) - before) / (MINUTE_S - 4.0)
        TABLE.row(f"{TOKENS_PER_S} tokens/s stream for a minute", f"{share:.1%} of a core", "≤ 2 %")


def instructions(what: str, every_s: float, tokens: int, budget: str) -> None:
    """What each token of a longer answer adds, from its arrival to the screen: the same on a machine that does other things."""
    few, many = (min(run_counted(words(num), every_s) for _ in range(LOWEST_OF)) for num in (tokens, 3 * tokens))
    TABLE.row(f"instructions of {what}", f"{(many - few) / (2 * tokens) / 1e6:.2f} M", budget)


def run_counted(words: list[str], every_s: float) -> int:
    """Instructions of a session with one answer."""
    with tempfile.TemporaryDirectory(prefix="wolo-bench-") as home, ProviderServer() as provider:
        provider.script(streamed(words, every_s * SLOWER))
        argv = ["--tool=callgrind", "--callgrind-out-file=/dev/null", f"--log-file={home}/log.%p", sys.executable]
        env = {
            **os.environ,
            **COMPILED,
            "HOME": home,
            "WOLO_HOME": f"{home}/.wolo",
            "TERM": "xterm-256color",
            "PYTHONHASHSEED": "0",
        }
        argv += [str(FLOOR.with_name("slow_clock.py")), str(SLOWER), *provider.flags]
        child = pexpect.spawn("valgrind", argv, env=env, cwd=home, dimensions=(24, 80))
        terminal = Terminal(child, 24, 80)
        terminal.wait_until(lambda: terminal.is_idle, VALGRIND_S)
        terminal.enter("0")
        terminal.wait_until(lambda: not terminal.is_idle, VALGRIND_S)
        terminal.wait_until(lambda: terminal.is_idle, VALGRIND_S)
        terminal.enter("/exit")
        terminal.wait_for_exit(VALGRIND_S)
        found = COLLECTED.search(Path(f"{home}/log.{child.pid}").read_text())
        assert found, "valgrind printed no count"
        return int(found[1])


def turns() -> None:
    with conversation() as (terminal, provider):
        sizes = {}
        for number in range(TURNS):
            provider.script(text(f"Answer {number}.\n" + "Some more words of it.\n" * 20))
            terminal.enter(f"turn {number}")
            wait_for(terminal, f"Answer {number}.".encode())
            drain(terminal, 0.1)
            sizes[number + 1] = rss_mb(terminal.child.pid)
        TABLE.row(f"RSS after 20 and {TURNS} turns", f"{sizes[20]:.1f} MB, {sizes[TURNS]:.1f} MB", "flat")


@contextmanager
def conversation(*flags: str, folder: Path | None = None) -> Iterator[tuple[Terminal, ProviderServer]]:
    """An interactive session in this folder, or in a temporary one."""
    cwd = folder or Path(tempfile.mkdtemp(prefix="wolo-bench-"))
    env = {**COMPILED, "HOME": str(cwd), "WOLO_HOME": str(cwd / ".wolo")}
    try:
        with ProviderServer() as provider, pty_wolo(*provider.flags, *flags, env=env, cwd=cwd) as terminal:
            wait_for(terminal, "›".encode())
            yield terminal, provider
    finally:
        if folder is None:
            shutil.rmtree(cwd, ignore_errors=True)


def wait_for(terminal: Terminal, wanted: bytes) -> None:
    seen, due = b"", time.monotonic() + 30
    while wanted not in seen:
        assert time.monotonic() < due, f"{wanted!r} did not appear"
        seen = seen[-1000:] + read(terminal, 1.0)


def drain(terminal: Terminal, seconds: float) -> int:
    """Reads for this time; returns the number of bytes."""
    due, size = time.monotonic() + seconds, 0
    while (left_s := due - time.monotonic()) > 0:
        size += len(read(terminal, left_s))
    return size


def read(terminal: Terminal, within_s: float) -> bytes:
    ready, _, _ = select.select([terminal.child.child_fd], [], [], within_s)
    return os.read(terminal.child.child_fd, 65_536) if ready else b""


def cpu_s(pid: int) -> float:
    """CPU time of another process: Linux derives its clock from the process ID."""
    return time.clock_gettime((~pid << 3) | 2)


def switches(pid: int) -> int:
    """Voluntary context switches of all threads."""
    lines = "\n".join(task.read_text() for task in Path(f"/proc/{pid}/task").glob("*/status")).splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("voluntary_ctxt"))


def rss_mb(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


if __name__ == "__main__":
    main()
