"""A call of a custom tool, in the process of its file."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from tests.end_to_end.test_stopping import is_alive
from wolo.extensions.custom_tools.custom_tool import CustomTool, FileProcess
from wolo.extensions.custom_tools.tool_listing import ToolFile, ToolListing, list_tools
from wolo.tools.tool import CallContext, ShellState, ToolServices
from wolo.tools.tool_values import Interrupted
from wolo.workspace.files.file_reading import FileLedger
from wolo.workspace.processes.process_runner import Processes
from wolo.workspace.root import Workspace

SOURCE = '''
import os, subprocess
def begin(pipe: str) -> None:
    """Never end."""
    child = subprocess.Popen(["sleep", "600"])
    with open(pipe, "w") as file:
        file.write(f"{os.getpid()} {child.pid}")
    child.wait()

def swallow(text: str) -> int:
    """Count."""
    return len(text + subprocess.run(["cat"], capture_output=True, text=True).stdout)

def fork() -> str:
    """Return twice."""
    child = os.fork()
    if child:
        os.waitpid(child, 0)
    return "parent" if child else "child"

def halve() -> str:
    """Half of a character."""
    return "a\\ud800b"
'''


async def tools_of(folder: Path) -> tuple[dict[str, CustomTool], CallContext]:
    processes = Processes()
    file = ToolFile(str(folder / "tools.py"), "digest", "tools.py", SOURCE)
    listing = await list_tools(file, folder / "cache", processes, dict(os.environ), folder, form=ToolListing)
    process = FileProcess(file, processes)
    services = ToolServices(
        workspace=Workspace(folder, (), folder),
        ledger=FileLedger(folder / "locks"),
        save_output=lambda name, data: folder / name,
        shell=ShellState(folder),
    )
    return {each.name: CustomTool(each, listing, process) for each in listing.tools}, CallContext(services)


async def test_cancelled_call_ends_its_processes_and_next_works(tmp_path: Path) -> None:
    tools, call = await tools_of(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    running = asyncio.create_task(tools["begin"].run({"pipe": str(tmp_path / "pipe")}, call))
    pids = (await asyncio.to_thread((tmp_path / "pipe").read_text)).split()
    running.cancel()
    with pytest.raises(Interrupted):
        await running
    assert not any(is_alive(int(pid)) for pid in pids)
    try:
        assert (await tools["swallow"].run({"text": "x" * 300_000}, call)).text.strip() == "300000"
    finally:
        call.services.shell.close()


async def test_subprocess_of_a_tool_reads_no_requests(tmp_path: Path) -> None:
    tools, call = await tools_of(tmp_path)
    try:
        results = [(await tools["swallow"].run({"text": "ab"}, call)).text.strip() for _ in range(2)]
    finally:
        call.services.shell.close()
    assert results == ["2", "2"]


async def test_a_forked_child_that_returns_answers_nothing(tmp_path: Path) -> None:
    tools, call = await tools_of(tmp_path)
    try:
        first = await tools["fork"].run({}, call)
        second = await tools["swallow"].run({"text": "abc"}, call)
    finally:
        call.services.shell.close()
    assert (first.text.strip(), second.text.strip()) == ("parent", "3")


async def test_a_lone_surrogate_in_a_result_is_replaced(tmp_path: Path) -> None:
    tools, call = await tools_of(tmp_path)
    try:
        result = await tools["halve"].run({}, call)
    finally:
        call.services.shell.close()
    assert (result.is_error, result.text.strip()) == (False, "a?b")
