"""Models that were trained on patches are offered them; whoever calls, a patch changes all of its files, or none."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.fakes.command import run_wolo
from tests.fakes.provider_server import KEY, ProviderServer
from tests.fakes.replies import call, text
from tests.workspace.checkpoints.harness import picture

PATCH = """*** Begin Patch
*** Update File: a.txt
@@
-one
+1
*** Add File: sub/new.txt
+new
*** Delete File: gone.txt
*** Update File: old.txt
*** Move to: moved.txt
*** End Patch"""


def flags(provider: ProviderServer, model: str) -> tuple[str, ...]:
    return ("--api", "openai-chat", "--base-url", provider.base_url, "--api-key", KEY, "--model", model)


def offered(provider: ProviderServer, request: int = -1) -> set[str]:
    return {tool["function"]["name"] for tool in provider.requests[request].json["tools"]} & {"edit", "apply_patch"}


def lay_out() -> None:
    Path("a.txt").write_text("one\ntwo\n")
    Path("gone.txt").write_text("gone\n")
    Path("old.txt").write_text("old\n")
    Path("old.txt").chmod(0o750)


@pytest.mark.parametrize(
    ("model", "form"),
    [
        ("openai/gpt-5.4", "apply_patch"),
        ("openai/gpt-5.3-codex", "apply_patch"),
        ("openai/gpt-4o", "edit"),
        ("openrouter/openai/gpt-5.4-mini", "apply_patch"),
        ("zai/glm-5.2", "edit"),
        ("custom/gpt-5", "edit"),
    ],
)
def test_model_gets_its_trained_form_and_either_works(provider: ProviderServer, model: str, form: str) -> None:
    if not model.startswith("openrouter/"):  # beside an address this is a name like any other
        lay_out()
        edit = call("edit", {"path": "a.txt", "old": "two", "new": "2"})
        provider.script(edit, call("apply_patch", {"input": PATCH}), text("ok"))
        assert run_wolo("-p", *flags(provider, model), "go").exit_code == 0
        assert [offered(provider, number) for number in range(3)] == [{form}] * 3
        assert Path("a.txt").read_text() == "1\n2\n"
    shown = json.loads(run_wolo("models", "show", model, "--json").stdout)
    assert shown["edit_tool"] == form


def test_settings_or_another_model_choose_another_form(provider: ProviderServer) -> None:
    provider.otherwise = text("ok")
    own = ("--set", "providers.custom.edit_tool=apply_patch")
    assert run_wolo("-p", *own, *flags(provider, "custom/m"), "-s", "mine", "one").stderr == ""
    run_wolo("-p", *own, *flags(provider, "custom/m"), "-s", "mine", "two")
    assert provider.requests[0].json["tools"] == provider.requests[1].json["tools"]
    assert offered(provider) == {"apply_patch"}
    provider.forget_prefix()
    run_wolo("-p", *flags(provider, "zai/glm-5.2"), "-s", "mine", "three")
    assert offered(provider) == {"edit"}


def test_a_patch_is_undone_as_one(provider: ProviderServer) -> None:
    lay_out()
    before = picture(Path().resolve())
    provider.script(call("apply_patch", {"patch": PATCH}), text("ok"))
    done = run_wolo("--json", "--mode", "edit", *provider.flags, "go")
    assert done.json["files_changed"] == ["a.txt", "gone.txt", "moved.txt", "old.txt", "sub/new.txt"]
    assert Path("moved.txt").stat().st_mode & 0o777 == 0o750
    assert run_wolo("undo").exit_code == 0
    assert picture(Path().resolve()) == before


def test_file_needing_approval_stops_the_whole_patch(provider: ProviderServer, isolated: Path) -> None:
    lay_out()
    before = picture(isolated / "work")
    for more in ("*** Add File: ../outside.txt\n+x", "*** Add File: .git/hooks/pre-commit\n+x", "*** Delete File: .env"):
        provider.forget_prefix()
        provider.script(call("apply_patch", {"patch": PATCH.replace("*** End", f"{more}\n*** End")}), text("ok"))
        done = run_wolo("--json", "--mode", "edit", *provider.flags, "go")
        assert done.exit_code == 4
        assert provider.requests[-1].results[0].startswith("Denied")
        assert picture(isolated / "work") == before
    assert not (isolated / "outside.txt").exists()


@contextmanager
def closed(folder: Path) -> Iterator[None]:
    """No file can be made in it, not even by root."""
    if os.getuid() != 0:
        folder.chmod(0o555)
        yield
        return
    if subprocess.run(["chattr", "+i", str(folder)], capture_output=True, check=False).returncode:
        pytest.skip("folders cannot be made immutable here")
    try:
        yield
    finally:
        subprocess.run(["chattr", "-i", str(folder)], check=True)


def test_unwritable_third_file_leaves_everything_unchanged(provider: ProviderServer) -> None:
    lay_out()
    Path("closed").mkdir()
    provider.script(call("apply_patch", {"patch": PATCH.replace("sub/new.txt", "closed/new.txt")}), text("ok"))
    with closed(Path("closed")):
        assert run_wolo("-p", "--yolo", *provider.flags, "go").exit_code == 0
    assert Path("a.txt").read_text() == "one\ntwo\n"
    assert sorted(path.name for path in Path().iterdir()) == ["a.txt", "closed", "gone.txt", "old.txt"]
    head, reason, put_back = provider.requests[-1].results[0].splitlines()
    assert head == "Nothing was changed: one of the files could not be written."
    assert reason.startswith("`closed/new.txt`: `closed/new.txt` cannot be ")
    assert put_back == "Written before it and restored: `a.txt`."
