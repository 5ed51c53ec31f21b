"""Packages whose code changed after their installation."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path

import pytest

from tests.fakes.command import run_wolo
from wolo.diagnostics.installation import changed_packages

CODE = b"answer = 42\n"


@pytest.fixture
def msgspec_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package of a name that wolo needs, found before the real one."""
    site = tmp_path / "site"
    info = site / "msgspec-9.9.dist-info"
    info.mkdir(parents=True)
    hashed = base64.urlsafe_b64encode(hashlib.sha256(CODE).digest()).rstrip(b"=").decode()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: msgspec\nVersion: 9.9\n")
    (info / "RECORD").write_text(f"mod.py,sha256={hashed},12\ndata.pem,sha256={hashed},12\n{info.name}/METADATA,,\n")
    (site / "mod.py").write_bytes(CODE)
    (site / "data.pem").write_bytes(b"a certificate of the company\n")
    monkeypatch.syspath_prepend(site)
    return site


def of_copy() -> list[str]:
    return [line for line in changed_packages() if "msgspec" in line]


def test_untouched_code_is_no_problem(msgspec_copy: Path) -> None:
    assert of_copy() == []


@pytest.mark.parametrize("content", [CODE + b"import os\n", None])
def test_changed_code_is_named(msgspec_copy: Path, content: bytes | None) -> None:
    path = msgspec_copy / "mod.py"
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    assert of_copy() == [f"The package msgspec 9.9 was changed after it was installed: {path}. Install it again."]


def test_packages_that_need_each_other_are_checked_once(msgspec_copy: Path) -> None:
    with (msgspec_copy / "msgspec-9.9.dist-info" / "METADATA").open("a") as metadata:
        metadata.write("Requires-Dist: wolo-cli\n")
    (msgspec_copy / "mod.py").unlink()
    assert len(of_copy()) == 1


def test_doctor_names_a_changed_package(msgspec_copy: Path) -> None:
    (msgspec_copy / "mod.py").write_bytes(b"")
    done = run_wolo("doctor", "--json", env={"PYTHONPATH": str(msgspec_copy)}, forked=False)
    assert any("msgspec 9.9 was changed" in line for line in done.json["problems"])
