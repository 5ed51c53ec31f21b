"""Runs a custom tool outside of a conversation."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from wolo.errors import ToolError
from wolo.extensions.custom_tools.custom_tool import CustomTool
from wolo.tools.tool import CallContext, ShellState, ToolServices
from wolo.tools.tool_values import CallResult
from wolo.workspace.files.file_reading import FileLedger
from wolo.workspace.root import Workspace, find_root


async def try_tool(tool: CustomTool, arguments: Mapping[str, Any]) -> CallResult:
    """Outside of the sandbox: the user started it."""
    shell = ShellState(Path.cwd())
    with TemporaryDirectory() as folder:
        services = ToolServices(
            workspace=Workspace(find_root(), (), Path.cwd()),
            ledger=FileLedger(Path(folder)),
            save_output=lambda name, data: _save(Path(folder) / name, data),
            shell=shell,
        )
        try:
            return await tool.run(arguments, CallContext(services))
        except ToolError as error:
            return CallResult(error.message, is_error=True)
        finally:
            shell.close()


def _save(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path
