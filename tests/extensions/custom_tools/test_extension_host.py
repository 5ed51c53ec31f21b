"""One extension and its host, without a conversation."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path
from typing import Any

import pytest

from tests.clock import clock_counts
from wolo.agent.events import TextStreamed, TurnStarted
from wolo.extensions.custom_tools.extension_host import MOST_EVENTS, ExtensionDownError, ExtensionHost, ExtensionLaunch
from wolo.extensions.custom_tools.tool_listing import ExtensionListing, ToolFile, list_tools
from wolo.guard.sandbox_contract import SandboxedCommand
from wolo.messages.message import user
from wolo.workspace.processes.process_runner import Processes

HEAD = "from wolo.extension import *\ndef extend(ext):\n"


async def host_of(folder: Path, body: str, notices: list[str]) -> ExtensionHost:
    processes = Processes()
    file = ToolFile(str(folder / "mine.py"), body, "mine.py", HEAD + body, is_extension=True)
    listing = await list_tools(file, folder / "cache", processes, dict(os.environ), folder, form=ExtensionListing)
    assert not listing.problems
    launch = ExtensionLaunch(
        processes=processes,
        enclose=SandboxedCommand,
        cwd=folder,
        env=lambda: dict(os.environ),
        facts=lambda: {"session_id": "1", "cwd": str(folder), "permission_mode": "auto"},
        hide=lambda value: value,
        notify=notices.append,
    )
    return ExtensionHost("mine", file, listing, launch)


def call(command: str) -> dict[str, Any]:
    return {"tool_name": "shell", "tool_input": {"command": command}, "tool_use_id": "1"}


async def test_handler_costs_less_than_a_millisecond(tmp_path: Path) -> None:
    host = await host_of(tmp_path, "    @ext.on_call()\n    def check(call): ...\n    @ext.on()\n    def see(event): ...\n", [])
    await host.run_hook("PreToolUse", call("ls"))
    num_calls, began_at = 300, time.process_time()
    for _ in range(num_calls):
        await host.run_hook("PreToolUse", call("ls"))
    hook_ms = (time.process_time() - began_at) * 1000 / num_calls
    began_at = time.process_time()
    for _ in range(3_000):
        host.observe(TextStreamed(text="word "))
    await host.close(60, ends_session=False)
    event_ms = (time.process_time() - began_at) * 1000 / 3_000
    limit_ms = 1 if clock_counts() else 10
    assert (hook_ms < limit_ms, event_ms < limit_ms) == (True, True), f"{hook_ms:.3f} ms, {event_ms:.3f} ms"


async def test_extension_loads_once_its_package_is_there(tmp_path: Path) -> None:
    site = tmp_path / "site"
    imports = f"    import sys; sys.path.insert(0, {str(site)!r})\n    import late_package\n"
    body = imports + "    @ext.on_call()\n    def check(call): ...\n"
    file = ToolFile(str(tmp_path / "mine.py"), "same", "mine.py", HEAD + body, is_extension=True)

    async def read() -> ExtensionListing:
        return await list_tools(file, tmp_path / "cache", Processes(), dict(os.environ), tmp_path, form=ExtensionListing)

    assert "No module named 'late_package'" in (await read()).problems[0].message
    site.mkdir()
    (site / "late_package.py").touch()
    assert (await read()).hooks == {"PreToolUse": ()}


async def test_events_arrive_in_batches_before_the_next_hook(tmp_path: Path) -> None:
    body = (
        "    seen = []\n    @ext.on('text_streamed')\n    def see(event): seen.append(event.data['text'])\n"
        "    @ext.on_call()\n    def check(call): call.deny(''.join(seen))\n"
    )
    host = await host_of(tmp_path, body, [])
    host.observe(TurnStarted(prompt=user("not observed")))
    for text in "abc":
        host.observe(TextStreamed(text=text))
    await asyncio.sleep(0)
    assert (await host.run_hook("PreToolUse", call("ls"))).reason == "abc"
    await host.close(60, ends_session=False)


async def test_cancelled_question_costs_no_later_answer(tmp_path: Path) -> None:
    body = (
        "    @ext.on_call()\n    def check(call):\n        if call.arguments['command'] == 'wait': open('pipe').read()\n"
        "        call.deny(call.arguments['command'])\n"
    )
    os.mkfifo(tmp_path / "pipe")
    host = await host_of(tmp_path, body, [])
    work = asyncio.ensure_future(host.run_hook("PreToolUse", call("wait")))
    with await asyncio.to_thread((tmp_path / "pipe").open, "w"):
        work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert (await host.run_hook("PreToolUse", call("next"))).reason == "next"
    await host.close(60, ends_session=False)


async def test_extension_that_falls_behind_is_given_up_once(tmp_path: Path) -> None:
    notices: list[str] = []
    host = await host_of(
        tmp_path, "    @ext.on()\n    def see(event): ...\n    @ext.on_prompt\n    def check(prompt): ...\n", notices
    )
    for _ in range(MOST_EVENTS + 10):
        host.observe(TextStreamed(text="x"))
    assert notices == [
        f"The extension mine is {MOST_EVENTS:,} events behind. Calls and prompts that it checks are not let through."
    ]
    assert (await host.run_hook("UserPromptSubmit", {"prompt": "go"})).decision == "deny"
    with pytest.raises(ExtensionDownError):
        await host.ask("command", name="none", arguments="")
    await host.close(1, ends_session=False)
