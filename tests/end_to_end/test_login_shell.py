"""`shell.snapshot`: commands know the functions, aliases and PATH of the user's login shell."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.fakes.command import run_wolo
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import call, text
from tests.guard.sandbox_setup import land

SNAPSHOT = ("--set", "shell.snapshot=true")
PROFILE = """
echo "a profile that prints"
greet() { echo "hello $1"; }
_helper() { true; }
cd() { echo hijacked; }
with_secret() { echo correct-horse9; }
push_hard() { git push --tags; }
alias ll='ls -l' say='echo "it is"' wipe='rm -rf ~' test=false
export PATH="$PATH:/opt/of-the-profile/bin:relative/bin:$WORK/bin"
export FROM_PROFILE=1
[ "$PWD" = / ] || touch ran-here
"""


@pytest.fixture(autouse=True)
def _bash(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHELL", "/bin/bash")
    write_profile(".bash_profile", PROFILE)


def write_profile(name: str, code: str) -> None:
    (Path.home() / name).write_text(code.replace("$WORK", str(Path.cwd())))


def result_of(provider: ProviderServer, command: str, *flags: str, cwd: Path | None = None) -> str:
    provider.script(call("shell", {"command": command}), text("ok"))
    done = run_wolo("-p", *SNAPSHOT, *(flags or ("--yolo",)), *provider.flags, "go", cwd=cwd)
    assert done.exit_code == 0, done.stderr
    return str(provider.requests[1].results[0])


def test_functions_aliases_and_path_reach_commands(provider: ProviderServer) -> None:
    result = result_of(provider, 'greet you; say so; echo "$PATH"; echo ${FROM_PROFILE-unset}')
    path = f"{os.environ['PATH']}:/opt/of-the-profile/bin"
    assert result == f"hello you\nit is so\n{path}\nunset\n[exit 0]\n"


def test_they_reach_commands_in_the_sandbox(provider: ProviderServer) -> None:
    with land() as folder:
        assert result_of(provider, "greet you; say so", "--mode", "auto", cwd=folder) == "hello you\nit is so\n[exit 0]\n"


def test_they_reach_jobs_and_leave_no_descriptor(provider: ProviderServer) -> None:
    provider.script(call("shell", {"command": "greet you; ls /dev/fd/", "background": True}), text("ok"))
    run_wolo("-p", *SNAPSHOT, "--yolo", *provider.flags, "go")
    (result,) = provider.requests[1].results
    assert "hello you" in result
    assert not [line for line in result.splitlines() if line.isdigit() and int(line) >= 200]


@pytest.mark.parametrize("name", ["_helper", "with_secret", "wipe", "push_hard"])
def test_definition_passing_a_rule_or_secret_is_missing(provider: ProviderServer, name: str) -> None:
    Path(".env").write_text("SERVICE_PASSWORD=correct-horse9\n")
    flags = ("--yolo", "--set", 'permissions.deny=["shell:git push *"]')
    assert "[exit 1]" in result_of(provider, f"type {name}", *flags)


def test_builtins_mean_what_they_do(provider: ProviderServer) -> None:
    Path("sub").mkdir()
    assert (
        result_of(provider, "cd sub && test 1 && pwd")
        == f"{Path.cwd()}/sub\n[exit 0]\n[the next command runs in {Path.cwd()}/sub]\n"
    )


def test_safe_command_has_no_aliases(provider: ProviderServer) -> None:
    write_profile(".bash_profile", "alias cat='echo not cat'\nls() { echo not ls; }\n")
    Path("a").write_text("text\n")
    assert result_of(provider, "cat a; ls a", "--mode", "ask") == "text\na\n[exit 0]\n"


def test_profile_runs_outside_of_the_project(provider: ProviderServer) -> None:
    (Path.cwd() / "bin").mkdir()
    for name in ("touch", "ls"):
        program = Path.cwd() / "bin" / name
        program.write_text("#!/bin/sh\necho run >> $HOME/hijacked\n")
        program.chmod(0o755)
    write_profile(".bash_profile", "ls / >/dev/null; pwd > $HOME/place; echo ${MY_TOKEN-none} >> $HOME/place\n")
    provider.script(text("ok"))
    path = f"{Path.cwd()}/bin:bin:{os.environ['PATH']}"
    run_wolo("-p", *SNAPSHOT, *provider.flags, "go", env={"PATH": path, "MY_TOKEN": "hunter2-hunter2", "BASH_ENV": "bin/ls"})
    assert (Path.home() / "place").read_text() == "/\nnone\n"
    assert not (Path.home() / "hijacked").exists()


@pytest.mark.sweep(every=3)
@pytest.mark.parametrize(
    ("shell", "profile", "reason"),
    [
        ("/bin/bash", "sleep 60", "/bin/bash took longer than 5 s to start"),
        ("/bin/bash", "exit 3", "/bin/bash ended before it listed its definitions"),
        ("/bin/bash", "yes | head -c 3000000", "/bin/bash prints and defines more than 512 KiB"),
        (
            "/bin/bash",
            'x=$(head -c 1100000 /dev/zero | tr "\\0" x); eval "big() { : $x; }"',
            "/bin/bash prints and defines more than 512 KiB",
        ),
        ("/bin/nowhere", "", "SHELL names /bin/nowhere, which is no program outside of the workspace"),
        ("bin/sh", "", "SHELL names bin/sh, which is no program outside of the workspace"),
    ],
)
def test_shell_that_cannot_be_read_costs_a_notice(
    provider: ProviderServer, monkeypatch: pytest.MonkeyPatch, shell: str, profile: str, reason: str
) -> None:
    monkeypatch.setenv("SHELL", shell)
    write_profile(".bash_profile", profile)
    provider.script(call("shell", {"command": "echo ran"}), text("ok"))
    done = run_wolo("-p", *SNAPSHOT, "--yolo", *provider.flags, "go")
    assert (done.exit_code, provider.requests[1].results) == (0, ["ran\n[exit 0]\n"])
    assert f"shell.snapshot has no effect: {reason}" in done.stderr


@pytest.mark.skipif(not Path("/usr/bin/zsh").exists(), reason="needs zsh")
def test_zsh_gives_what_bash_can_read(provider: ProviderServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHELL", "/usr/bin/zsh")
    write_profile(
        ".zshrc", 'greet() { echo "hello $1" }\nodd() { print -l ${(k)x} =(ls) }\nalias say=\'echo "it is"\'\npath+=(/opt/z)\n'
    )
    result = result_of(provider, 'greet you; say so; type odd >/dev/null 2>&1 || echo none; echo "${PATH##*:}"')
    assert result == "hello you\nit is so\nnone\n/opt/z\n[exit 0]\n"


@pytest.mark.skipif(not Path("/usr/bin/fish").exists(), reason="needs fish")
def test_fish_gives_its_path(provider: ProviderServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHELL", "/usr/bin/fish")
    (Path(os.environ["XDG_CONFIG_HOME"]) / "fish").mkdir(parents=True)
    (Path.home() / ".config" / "fish").mkdir(parents=True)
    (Path.home() / ".config" / "fish" / "config.fish").write_text("set -gx PATH $PATH /opt/f\n")
    assert result_of(provider, 'echo "${PATH##*:}"') == "/opt/f\n[exit 0]\n"
