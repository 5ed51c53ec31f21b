"""A turn late in a session runs as many bytecodes as one at its beginning, whatever the provider says about its cache.

As a program it runs the turns: `python -m tests.architecture.test_growth SETTINGS` prints the bytecodes of the turns looked at.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from types import FrameType
from typing import Any

from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import call, text, usage

PACKAGE = str(Path(__file__).parents[2] / "wolo")
EARLY, LATE = range(50, 55), range(400, 405)
MOST_GROWTH = 1.02


def test_late_turn_runs_no_more_bytecodes(provider: ProviderServer) -> None:
    Path("notes").write_text("".join(f"line {number}\n" for number in range(LATE.stop + 1)))
    reads = ({"path": "notes", "offset": number + 1, "limit": 1} for number in range(LATE.stop + 1))
    long_prompt = usage(6_000)  # long enough to be cached, and the answers name nothing cached
    provider.script(*(call("read", each, usage=long_prompt).split(100_000) for each in reads), text("Done."))
    flags = {"base_url": provider.base_url, "api_key": "k", "model": "custom/test-model", "mode": "auto", "max_steps": 1_000}
    command = [sys.executable, "-m", "tests.architecture.test_growth", json.dumps(flags)]
    environ = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(command, env=environ, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=120)
    assert done.returncode == 0, done.stderr
    counts = json.loads(done.stdout)
    early, late = (min(counts[str(turn)] for turn in turns) for turns in (EARLY, LATE))  # the calmest of each
    assert late <= early * MOST_GROWTH


class Bytecodes:
    """Counts the bytecodes of wolo in all threads, while it is on; those of the event loop depend on the machine's load."""

    def __init__(self) -> None:
        self.count = 0

    def turn_on(self, on: bool) -> None:
        threading.settrace(self._trace if on else None)
        sys.settrace(self._trace if on else None)

    def _trace(self, frame: FrameType, event: str, _: object) -> Any:
        if not frame.f_code.co_filename.startswith(PACKAGE):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return self._step

    def _step(self, _frame: FrameType, event: str, _: object) -> Any:
        self.count += event == "opcode"
        return self._step


async def run_turns(flags: dict[str, Any]) -> dict[int, int]:
    from wolo.conversation.factory import open_conversation
    from wolo.conversation.resources.startup import StartOptions
    from wolo.messages.message import UserPrompt, user

    conversation = await open_conversation(StartOptions(flags=flags, attended=False))
    bytecodes, counts, turn = Bytecodes(), dict[int, int](), 0
    async for event in conversation.prompt(UserPrompt.from_message(user("read"), "keyboard")):
        if event.__struct_config__.tag == "call_ended":
            bytecodes.turn_on(False)
            counts[turn], bytecodes.count, turn = bytecodes.count, 0, turn + 1
            bytecodes.turn_on(turn in EARLY or turn in LATE)
    bytecodes.turn_on(False)
    await conversation.close()
    return counts


if __name__ == "__main__":
    print(json.dumps(asyncio.run(run_turns(json.loads(sys.argv[1])))))
