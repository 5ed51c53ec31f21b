"""Runs one turn in this process and prints as JSON which files of wolo it entered, and the moves between them.

A move is a call or a resume of a function (coroutines and generators are resumed at each step) in another file than the one
that the same thread entered before. Bodies of modules and classes do not count: loading is a matter of start-up.

`python -m tests.architecture.hop_probe` prints the files and the moves of both ways, the most frequent moves first.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = str(Path(__file__).parents[2] / "wolo") + os.sep
BEFORE, TURN, AFTER = "before", "turn", "after"


class Hops:
    """Files entered and moves between them, in each phase of a run."""

    def __init__(self) -> None:
        self.phase = BEFORE
        self.files: dict[str, Counter[str]] = {BEFORE: Counter(), TURN: Counter(), AFTER: Counter()}
        """Calls and resumes of each file."""
        self.moves: dict[str, Counter[tuple[str, str]]] = {BEFORE: Counter(), TURN: Counter(), AFTER: Counter()}
        self._thread = threading.local()

    def trace(self, frame: FrameType, event: str, _: object) -> None:
        path = frame.f_code.co_filename
        if event != "call" or not path.startswith(ROOT) or not frame.f_code.co_flags & inspect.CO_OPTIMIZED:
            return  # neither a module nor a class body is a function
        path = path.removeprefix(ROOT)
        last, self._thread.last = getattr(self._thread, "last", ""), path
        self.files[self.phase][path] += 1
        if last != path:
            self.moves[self.phase][last, path] += 1


async def run_turn(given: dict[str, Any], hops: Hops) -> None:
    from wolo.conversation.factory import open_conversation
    from wolo.conversation.resources.startup import StartOptions
    from wolo.messages.message import UserPrompt, user

    conversation = await open_conversation(StartOptions(flags=given, attended=False))
    prompt = UserPrompt.from_message(user("hi"), "keyboard")
    hops.phase = TURN
    async for _ in conversation.prompt(prompt):
        pass
    hops.phase = AFTER
    await conversation.close()


def probe(base_url: str, mode: str) -> dict[str, Any]:
    """The trace of a turn in a new process. The first one in a directory also creates the database and tries the sandbox."""
    given = {"base_url": base_url, "api_key": "k", "model": "custom/test-model", "mode": mode}
    command = [sys.executable, "-m", "tests.architecture.hop_probe", json.dumps(given)]
    environ = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(command, env=environ, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def print_ways() -> None:
    from tests.fakes.provider_server import ProviderServer
    from tests.fakes.replies import call, text

    plain = text("Hello.").split(100_000)
    shell = call("shell", {"command": "echo hi"}).split(100_000)
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update(HOME=folder, WOLO_HOME=f"{folder}/wolo", GIT_CONFIG_NOSYSTEM="1")
        os.chdir(folder)
        with ProviderServer(plain, plain, shell, plain) as provider:
            probe(provider.base_url, "auto")
            ways = {"prompt": probe(provider.base_url, "auto")}
            provider.forget_prefix()
            ways["shell call"] = probe(provider.base_url, "auto")
    for way, result in ways.items():
        for phase in (TURN, BEFORE):
            files, moves = result[phase]["files"], result[phase]["moves"]
            print(f"\n== {way}, {phase}: {len(files)} files, {sum(num for *_, num in moves)} moves")
            incoming = Counter[str]()
            for _, to, num in moves:
                incoming[to] += num
            rooms = Counter[str]()
            for path, num in incoming.items():
                rooms[path.partition("/")[0]] += num
            print("-- rooms: moves into them:", ", ".join(f"{room} {num}" for room, num in rooms.most_common()))
            print("-- files: moves into it, calls and resumes")
            for path in sorted(files, key=lambda path: -incoming[path]):
                print(f"{incoming[path]:5} {files[path]:5}  {path}")
            if phase == TURN:
                print("-- moves")
                for start, to, num in moves:
                    print(f"{num:5}  {start} -> {to}")


if __name__ == "__main__":
    if len(sys.argv) == 1:
        print_ways()
    else:
        hops = Hops()
        threading.setprofile(hops.trace)
        sys.setprofile(hops.trace)
        asyncio.run(run_turn(json.loads(sys.argv[1]), hops))
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]  # ends it
        phases = {
            phase: {"files": hops.files[phase], "moves": [(*pair, num) for pair, num in hops.moves[phase].most_common()]}
            for phase in (BEFORE, TURN, AFTER)
        }
        print(json.dumps(phases))
