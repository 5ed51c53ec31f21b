"""Command lines for the shells of Windows, and the directory in which they ended.

A line is a file that the shell reads, so it has no limit of length and needs no quotes.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from msgspec import Struct

CONCERN = "Rules are for command lines of bash, and this one is for another shell."
_POWERSHELLS = (
    ("PROGRAMFILES", r"PowerShell\7\pwsh.exe", "PowerShell 7"),
    ("SYSTEMROOT", r"System32\WindowsPowerShell\v1.0\powershell.exe", "Windows PowerShell 5.1"),
)
"""Only where Windows installs them: a program of that name on the PATH may be the project's."""
_CMD = "cmd.exe, as a batch file"
_BATCH = """@echo off
chcp 65001 >nul
{line}
set "__wolo=%errorlevel%"
cd > "%~dp0end"
exit /b %__wolo%
"""
_SCRIPT = (
    "$ProgressPreference = 'SilentlyContinue'; [Console]::OutputEncoding = $OutputEncoding = [Text.UTF8Encoding]::new($false);"
    " $global:LASTEXITCODE = 0; $failed = 0;"
    " try {{ Invoke-Expression ([IO.File]::ReadAllText('{folder}\\line.ps1')) }}"
    " catch {{ $failed = 1; $_ | Out-String | Write-Host }}"
    " finally {{ [IO.File]::WriteAllText('{folder}\\end', (Get-Location -PSProvider FileSystem).ProviderPath) }};"
    " if ($LASTEXITCODE) {{ exit $LASTEXITCODE }}; exit $failed"
)


class ShellScript(Struct, frozen=True):
    argv: tuple[str, ...]
    folder: Path
    script: str = ""
    fds: tuple[int, ...] = ()

    def read(self) -> tuple[Path | None, bool]:
        """Returns the final directory; that something was left running is not known."""
        try:
            path = Path((self.folder / "end").read_text(encoding="utf-8", errors="replace").strip())
        except OSError:
            return None, False
        return (path if path.is_absolute() and path.is_dir() else None), False

    def remove(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)


def describe_shell() -> str:
    """Added to the description of the tool."""
    return f"On this machine the shell is {_find_shell()[1]}, not bash: use its syntax."


def write_script(command: str) -> ShellScript:
    """Raises OSError."""
    program, name = _find_shell()
    folder = Path(tempfile.mkdtemp(prefix="wolo-shell-"))
    if name != _CMD:
        (folder / "line.ps1").write_text(command, encoding="utf-8")
        script = _SCRIPT.format(folder=str(folder).replace("'", "''"))
        return ShellScript((program, "-NoLogo", "-NoProfile", "-NonInteractive", "-Command", script), folder)
    (folder / "line.cmd").write_text(_BATCH.replace("{line}", command), encoding="utf-8", newline="\r\n")
    return ShellScript((program, "/d", "/c", str(folder / "line.cmd")), folder)


def _find_shell() -> tuple[str, str]:
    for variable, place, name in _POWERSHELLS:
        if (path := Path(os.environ.get(variable, "C:\\"), place)).is_file():
            return str(path), name
    return str(Path(os.environ.get("SYSTEMROOT", r"C:\Windows"), "System32", "cmd.exe")), _CMD
