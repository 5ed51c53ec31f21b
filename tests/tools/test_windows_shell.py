"""The shells of Windows and the files from which they read a line. cmd.exe runs in `tests/end_to_end/test_windows.py`."""

from __future__ import annotations

from pathlib import Path

import pytest

from wolo.tools.windows_shell import describe_shell, write_script


@pytest.mark.parametrize(
    ("variable", "place", "name"),
    [
        ("PROGRAMFILES", r"PowerShell\7\pwsh.exe", "PowerShell 7"),
        ("SYSTEMROOT", r"System32\WindowsPowerShell\v1.0\powershell.exe", "Windows PowerShell 5.1"),
    ],
)
def test_powershell_reads_the_line_of_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str, place: str, name: str
) -> None:
    (tmp_path / "it's").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "it's"))
    monkeypatch.setenv(variable, str(tmp_path))
    (tmp_path / place).touch()
    assert name in describe_shell()
    line = "Write-Output 'é'; exit 3\n" * 5000
    script = write_script(line)
    assert script.argv[:-1] == (str(tmp_path / place), "-NoLogo", "-NoProfile", "-NonInteractive", "-Command")
    assert str(script.folder).replace("'", "''") + "\\line.ps1'" in script.argv[-1]
    assert (script.folder / "line.ps1").read_text(encoding="utf-8") == line
    (script.folder / "end").write_text(str(tmp_path))
    assert script.read() == (tmp_path, False)
    script.remove()
    assert script.read() == (None, False)
    assert not script.folder.exists()


def test_cmd_reads_a_line_without_powershell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SYSTEMROOT", r"D:\Windows")
    script = write_script("echo one\necho two")
    program, *options, file = script.argv
    assert (program, options) == ("D:\\Windows/System32/cmd.exe", ["/d", "/c"])
    assert b"echo one\r\necho two\r\n" in Path(file).read_bytes()
    assert "cmd.exe" in describe_shell()
    script.remove()
