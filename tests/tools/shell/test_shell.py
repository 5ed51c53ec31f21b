"""The shell runs a command without a keyboard, remembers where it is, and says plainly how it ended."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.components import PACKAGES, require
from tests.tools.harness import ToolHarness
from tests.workspace.living import alive, gone, unique_seconds
from wolo.errors import ToolError
from wolo.guard.intents import RunIntent
from wolo.guard.sandbox_contract import SandboxedCommand
from wolo.tools.shell import ShellArgs
from wolo.tools.tool_values import CallResult, Interrupted, Output
from wolo.workspace.directory_copy import remove_tree
from wolo.workspace.processes.command_environment import CommandVariables


async def test_command_gives_output_and_exit_code(harness: ToolHarness) -> None:
    result = await harness.call("shell", command="echo out; echo err >&2")
    assert (result.text, result.is_error) == ("out\nerr\n[exit 0]\n", False)
    assert isinstance(result.view, Output)
    assert (result.view.command, result.view.text, result.view.exit_code) == ("echo out; echo err >&2", "out\nerr\n", 0)


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("exit 3", "(no output)\n[exit 3]\n"),
        ("printf 'no line end'; false", "no line end\n[exit 1]\n"),
        ("nosuchprogram", "bash: line 1: nosuchprogram: command not found\n[exit 127]\n"),
        ("echo $# $0; (exit 4)", "0 bash\n[exit 4]\n"),
        ("set -euo pipefail; echo a; false | true; echo never", "a\n[exit 1]\n"),
        ("set -x; cd / 2>/dev/null; cd - >/dev/null; false", "++ cd /\n++ cd -\n++ false\n[exit 1]\n"),
        ("return 5 2>/dev/null || exit 6", "(no output)\n[exit 6]\n"),
    ],
)
async def test_failure_is_an_error_with_its_code(harness: ToolHarness, command: str, text: str) -> None:
    result = await harness.call("shell", command=command)
    assert (result.text, result.is_error) == (text, True)


@pytest.mark.parametrize(
    ("command", "code", "said"),
    [
        ("kill -9 $$", 137, "[exit 137: ended by SIGKILL]"),
        ("kill -TERM $$", 143, "[exit 143: ended by SIGTERM]"),
        ("bash -c 'kill -9 $$'", 137, "[exit 137"),
        ("true; bash -c 'kill -9 $$'; exit $?", 137, "[exit 137]"),
    ],
)
async def test_killed_command_has_the_shell_exit_code(harness: ToolHarness, command: str, code: int, said: str) -> None:
    result = await harness.call("shell", command=command)
    assert isinstance(result.view, Output)
    assert (result.view.exit_code, result.is_error) == (code, True)
    assert said in result.text


async def test_multiline_command_with_heredoc_runs_unchanged(harness: ToolHarness) -> None:
    result = await harness.call(
        "shell", command="cat <<'X'\n$HOME \"two\" 'one' `no` \\\nX\nfor i in 1 2\ndo echo $i\ndone\n# end"
    )
    assert result.text == "$HOME \"two\" 'one' `no` \\\n1\n2\n[exit 0]\n"


async def test_syntax_error_speaks_only_of_the_command(harness: ToolHarness) -> None:
    text = (await harness.call("shell", command="echo (")).text
    assert "syntax error" in text
    assert "wolo" not in text
    assert "trap" not in text


async def test_the_directory_lasts_and_variables_do_not(harness: ToolHarness) -> None:
    moved = await harness.call("shell", command="mkdir -p 'a b/c'; cd 'a b/c'; X=1; export Y=1")
    assert moved.text == f"(no output)\n[exit 0]\n[the next command runs in {harness.root}/a b/c]\n"
    there = await harness.call("shell", command="pwd; echo x$X$Y")
    assert there.text == f"{harness.root}/a b/c\nx\n[exit 0]\n[the next command runs in {harness.root}/a b/c]\n"
    back = await harness.call("shell", command="cd ../..; exit 2")
    assert back.text == f"(no output)\n[exit 2]\n[the next command runs in {harness.root}]\n"
    assert (await harness.call("shell", command="pwd")).text == f"{harness.root}\n[exit 0]\n"


@pytest.mark.parametrize("name", ["line\nbreak", "käse", "ends in newline\n", "-dash", "$(touch owned)"])
async def test_a_directory_with_a_strange_name_is_remembered(harness: ToolHarness, name: str) -> None:
    (harness.root / name).mkdir()
    harness.services.shell.cwd = harness.root / name
    await harness.call("shell", command="cd .")
    assert harness.services.shell.cwd == harness.root / name
    assert (await harness.call("shell", command="touch here")).is_error is False
    assert (harness.root / name / "here").exists()


async def test_all_calls_share_the_directory(harness: ToolHarness) -> None:
    (harness.root / "sub").mkdir()
    first = harness.services.for_call("call_1", print)
    second = harness.services.for_call("call_2", print)
    tool, args = harness.toolbox.decode("shell", {"command": "cd sub"})
    await tool.run(args, first)
    assert tool.intents(ShellArgs("ls"), second.services) == (RunIntent("ls", harness.root / "sub"),)


async def test_vanished_directory_is_reported_with_its_replacement(harness: ToolHarness) -> None:
    await harness.call("shell", command="mkdir sub; cd sub")
    (harness.root / "sub").rmdir()
    assert harness.toolbox.decode("shell", {"command": "pwd"})[0].intents(ShellArgs("pwd"), harness.services) == (
        RunIntent("pwd", harness.root),
    )
    text = (await harness.call("shell", command="pwd")).text
    assert text == (
        f"[{harness.root}/sub no longer exists; this ran in {harness.root}]\n{harness.root}\n[exit 0]\n"
        f"[the next command runs in {harness.root}]\n"
    )
    assert (await harness.call("shell", command="pwd")).text == f"{harness.root}\n[exit 0]\n"


async def test_directory_with_an_overlong_path_is_left(harness: ToolHarness) -> None:
    deep = "d=$(printf 'd/%.0s' {1..1500}); mkdir -p $d; cd -P $d; mkdir -p $d; cd -P $d; echo there"
    assert (await harness.call("shell", command=deep)).text.startswith("there\n[exit 0]\n")
    assert (await harness.call("shell", command="pwd")).text == f"{harness.root}\n[exit 0]\n"
    remove_tree(harness.root / "d")


async def test_removed_own_directory_is_noticed_next_time(harness: ToolHarness) -> None:
    await harness.call("shell", command="mkdir sub; cd sub")
    assert (await harness.call("shell", command="rm -r ../sub")).text == "(no output)\n[exit 0]\n"
    assert "no longer exists" in (await harness.call("shell", command="true")).text


async def test_when_the_whole_workspace_is_gone_nothing_runs(harness: ToolHarness) -> None:
    harness.root.rmdir()
    with pytest.raises(ToolError, match="no longer exists"):
        await harness.call("shell", command="pwd")


@pytest.mark.parametrize("command", ["cd sub; exec true", "cd sub; trap 'true' EXIT", "cd sub; kill -9 $$"])
async def test_unknown_shell_directory_states_the_next_one(harness: ToolHarness, command: str) -> None:
    (harness.root / "sub").mkdir()
    assert f"[the next command runs in {harness.root}]" in (await harness.call("shell", command=command)).text


async def test_start_files_aliases_and_functions_change_nothing(
    harness: ToolHarness, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    trap = tmp_path / "trap.sh"
    trap.write_text("alias cd=false\ncd() { false; }\necho hijacked\n")
    for name in (".bashrc", ".bash_profile", ".profile"):
        (tmp_path / "home" / name).write_text(trap.read_text())
    monkeypatch.setenv("BASH_ENV", str(trap))
    monkeypatch.setenv("ENV", str(trap))
    monkeypatch.setenv("BASH_FUNC_cd%%", "() { echo hijacked; }")
    monkeypatch.setenv("SHELLOPTS", "noexec")
    result = await harness.call("shell", command="mkdir sub && cd sub && pwd")
    assert result.text.startswith(f"{harness.root}/sub\n[exit 0]\n")


async def test_secrets_and_hooks_stay_out_virtual_environment_in(harness: ToolHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    hidden = ["OPENAI_API_KEY", "MY_TOKEN", "DB_PASSWORD", "SSH_AUTH_SOCK", "LD_PRELOAD", "PYTHONPATH", "NODE_OPTIONS"]
    hidden += [
        "GIT_EXTERNAL_DIFF",
        "DYLD_INSERT_LIBRARIES",
        "SOME_OTHER",
        "LC_SECRET",
        "WOLO_API_KEY",
        "aws_secret_access_key",
        "PLAIN",
    ]
    for name in hidden:
        monkeypatch.setenv(name, "canary" if name != "LD_PRELOAD" else "/canary.so")
    monkeypatch.setenv("PATH", f"/venv/bin:{os.environ['PATH']}")
    monkeypatch.setenv("LC_TIME", "C")
    harness.services = replace(harness.services, variables=CommandVariables("core", passed=("SOME_*",)))
    lines = (await harness.call("shell", command="env; env | grep -c canary")).text.splitlines()
    seen = dict(line.split("=", 1) for line in lines if "=" in line)
    assert seen["SOME_OTHER"] == "canary"
    assert [name for name in hidden if name in seen] == ["SOME_OTHER"]
    assert seen["PATH"].startswith("/venv/bin:")
    assert (seen["LC_TIME"], seen["TERM"], seen["GIT_TERMINAL_PROMPT"]) == ("C", "dumb", "0")


BACKGROUND = ["sleep {n} &", "setsid sleep {n} &", "nohup sleep {n} &", "(setsid sleep {n} &) &", "sleep {n} >/dev/null 2>&1 &"]


@pytest.mark.parametrize("command", BACKGROUND)
async def test_background_process_is_listed_and_delays_nothing(harness: ToolHarness, command: str) -> None:
    n = unique_seconds()
    result = await harness.call("shell", command=f"echo up\n{command.format(n=n)}")
    assert re.fullmatch(
        r"up\n\[exit 0\]\n\[still running in the background until this conversation ends: \d+ .*\]\n", result.text
    )
    await until(lambda: alive(n))
    harness.services.shell.processes.close_all()
    assert gone(n)


class Sandbox:
    """As those in which everything ends with the command."""

    backend = "bubblewrap"
    covers: tuple[str, ...] = ()
    not_covered: tuple[str, ...] = ()

    def wrap(self, argv: Sequence[str], cwd: Path, *, only_reads: bool = False, in_background: bool = False) -> SandboxedCommand:
        return SandboxedCommand((require("bwrap"), "--dev-bind", "/", "/", "--unshare-pid", "--die-with-parent", "--", *argv))

    def prepare(self) -> None: ...

    def hides(self, path: str) -> bool:
        return False

    def give_way(self, path: str) -> None: ...

    def take_restored(self) -> None: ...

    def close(self) -> None: ...


@pytest.mark.parametrize("command", ["sleep 60 & echo up", "(sleep 60 & wait) & echo up"])
async def test_end_with_the_sandbox_is_reported(harness: ToolHarness, command: str) -> None:
    harness.services.sandbox.made = Sandbox()
    harness.confined = True
    result = await harness.call("shell", command=command)
    assert result.text.startswith("up\n[exit 0]\n[the sandbox ended the processes that it left running with &;")
    assert (await harness.call("shell", command="sleep 0.1 & wait; cd /; pwd")).text.startswith(
        "/\n[exit 0]\n[the next command runs in /]"
    )


async def test_server_of_one_command_answers_the_next(harness: ToolHarness) -> None:
    await harness.call("shell", command=f"{sys.executable} -u -m http.server 0 --bind 127.0.0.1 >log 2>&1 &")
    await until(lambda: "port" in (harness.root / "log").read_text())
    port = re.search(r"port (\d+)", (harness.root / "log").read_text())
    assert port
    fetch = f"import urllib.request as r; print(r.urlopen('http://127.0.0.1:{port[1]}/log').status)"
    assert (await harness.call("shell", command=f'{sys.executable} -c "{fetch}"')).text.startswith("200\n")


KEYBOARD = {
    "commit": "echo x > new; git add new; git commit",
    "rebase": "git rebase -i HEAD~2",
    "read": "read x",
    "input": "python3 -c 'input()'",
    "ssh": "ssh -o ConnectTimeout=1 nobody@127.0.0.1 -p 1",
    "editor": "$EDITOR file",
    "vi on the terminal": "vi file </dev/tty",
    "vi": "vi file",
    "vi with a swap file": "touch .file.swp; vi file",
    "passwd": "python3 -c 'import getpass; getpass.getpass()'",
    "tty": "read x </dev/tty",
    "credentials": "git clone http://127.0.0.1:1/private.git",
    "select": "select x in a b; do break; done",
}


@pytest.mark.parametrize("command", KEYBOARD.values(), ids=KEYBOARD)
async def test_keyboard_wait_ends_at_once_visibly_failing(harness: ToolHarness, command: str) -> None:
    program = command.split()[0]
    if program in PACKAGES:
        require(program)
    repository(harness)
    head = (harness.root / ".git/HEAD").read_text(), git(harness, "rev-parse", "HEAD")
    result = await harness.call("shell", command=command, timeout_s=60)
    assert result.is_error
    assert "timed out" not in result.text
    assert ((harness.root / ".git/HEAD").read_text(), git(harness, "rev-parse", "HEAD")) == head


@pytest.mark.parametrize(
    "command", ["less file", "git log", "git diff HEAD~1", "more file", "ssh-keygen -f key", "man bash", "top"]
)
async def test_pagers_and_stubborn_programs_come_to_an_end(harness: ToolHarness, command: str) -> None:
    repository(harness)
    result = await harness.call("shell", command=f"{command} || true", timeout_s=60)
    assert "timed out" not in result.text


async def test_a_rebase_goes_on_without_an_editor(harness: ToolHarness) -> None:
    repository(harness)
    git(harness, "checkout", "-q", "-b", "side", "HEAD~1")
    harness.put("file", "side\n")
    git(harness, "commit", "-qam", "side")
    branch = git(harness, "rev-parse", "--abbrev-ref", "@{-1}")
    result = await harness.call(
        "shell", command=f"git rebase {branch}; echo both > file; git add file; git rebase --continue", timeout_s=60
    )
    assert result.text.endswith("[exit 0]\n")
    assert git(harness, "log", "-1", "--format=%s") == "side"


async def test_time_limit_ends_everything_keeping_the_output(harness: ToolHarness) -> None:
    n = unique_seconds()
    result = await harness.call("shell", command=f"trap '' TERM; (sleep {n}) & echo before; sleep {n}", timeout_s=1)
    assert result.text.startswith("before\n[timed out after 1 s: the command and everything it started were ended]\n")
    assert result.is_error
    assert gone(n)


async def test_settings_time_limit_holds_without_an_own_one(harness: ToolHarness) -> None:
    harness.services = replace(harness.services, shell_timeout_s=0.3)
    assert "timed out after 0.3 s" in (await harness.call("shell", command="sleep 60")).text


async def test_interrupted_command_ends_and_reports_its_work(harness: ToolHarness) -> None:
    n = unique_seconds()
    task = asyncio.create_task(harness.call("shell", command=f"touch made; cd /tmp; echo part; (setsid sleep {n} &) ; sleep {n}"))
    await until(lambda: alive(n))
    task.cancel()
    with pytest.raises(Interrupted) as stopped:
        await task
    result = stopped.value.result
    assert isinstance(result, CallResult)
    assert stopped.value.result.text.startswith("part\n[interrupted: the command and everything it started were ended")
    assert (result.outcome, result.is_error, result.files_changed) == ("interrupted", True, (f"{harness.root}/made",))
    assert gone(n)
    assert (await harness.call("shell", command="echo on")).text.startswith("on\n[exit 0]\n")


FLOOD = """
import asyncio, resource, sys
from msgspec.structs import replace
from pathlib import Path
from tests.tools.harness import ToolHarness
async def main():
    folder = Path(sys.argv[1])
    harness = ToolHarness(folder)
    def keep(name, data):
        (folder / "kept").write_bytes(data)
        return folder / "kept"
    harness.services = replace(harness.services, save_output=keep)
    await harness.call("shell", command="echo warm")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    result = await harness.call("shell", command=sys.argv[2])
    print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024, len(result.text), result.is_error)
    print(result.text[-300:])
asyncio.run(main())
"""


@pytest.mark.parametrize(
    "command",
    [
        "yes | head -c 700M",
        pytest.param("yes | head -c 4G", marks=[pytest.mark.soak, pytest.mark.timeout(600)]),
        "head -c 50M /dev/zero | tr '\\0' a",
        "yes 😀é | head -c 100M",
        "head -c 50M /dev/urandom",
        "head -c 50M /dev/zero | tr '\\0' '\\377'",
        "head -c 50M /dev/zero | tr '\\0' '\\r'",
    ],
)
def test_a_flood_costs_neither_memory_nor_context(tmp_path: Path, command: str) -> None:
    root = Path(__file__).parents[3]
    done = subprocess.run(
        [sys.executable, "-c", FLOOD, str(tmp_path), command],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        check=True,
    )
    growth_mb, length, is_error = done.stdout.splitlines()[0].split()
    assert int(growth_mb) < 50
    assert int(length) < 35_000
    assert is_error == "False"
    assert done.stdout.rstrip().endswith("[exit 0]")


async def test_long_output_is_cut_and_kept_in_file(harness: ToolHarness) -> None:
    text = (await harness.call("shell", command="seq 1 300000")).text
    assert text.startswith("1\n2\n3\n")
    assert "299999\n300000\n[Whole output, 300,000 lines: " in text
    kept = re.search(r"lines: (\S+) — page", text)
    assert kept
    assert Path(kept[1]).read_text() == "".join(f"{number}\n" for number in range(1, 300_001))


async def test_output_beyond_the_bound_says_so_twice(harness: ToolHarness, tmp_path: Path) -> None:
    text = (await harness.call("shell", command="seq 1 3000000")).text
    assert re.search(r"\[Beginning and end of the output without [\d.]+ MB between, ", text)
    kept = next(tmp_path.glob("shell-*.txt")).read_text()
    assert kept.startswith("1\n2\n")
    assert kept.endswith("2999999\n3000000\n")
    assert re.search(r"\n\[… [\d,]+ bytes in the middle were not saved …\]\n", kept)


async def test_binary_output_shows_without_control_codes(harness: ToolHarness) -> None:
    result = await harness.call(
        "shell", command=r"printf 'caf\351 \000\033[31mred\033[0m 10%%\r100%%\n'; head -c 20000 /dev/urandom"
    )
    assert "\x1b" not in result.text
    assert "\x00" not in result.text
    assert "100%\n" in result.text


async def test_running_output_shows_without_line_end_too(harness: ToolHarness) -> None:
    shown: list[str] = []
    context = harness.services.for_call("call_1", shown.append)
    tool, args = harness.toolbox.decode("shell", {"command": "printf waiting; while [ ! -e go ]; do sleep 0.05; done; echo done"})
    task = asyncio.ensure_future(tool.run(args, context))
    await until(lambda: "".join(shown) == "waiting")
    assert not task.done()
    harness.put("go", "")
    assert (await task).text.startswith("waitingdone\n")
    assert "".join(shown) == "waitingdone\n"


async def test_progress_bar_shows_its_newest_state(harness: ToolHarness) -> None:
    shown: list[str] = []
    harness.progress = shown.append
    await harness.call("shell", command=r"for n in 1 2 3; do printf '\r%d0 percent' $n; sleep 0.3; done; printf '\r\nend\r\n'")
    assert "".join(shown).split() == ["10", "percent", "20", "percent", "30", "percent", "end"]
    assert "percent\n20" in "".join(shown)


async def test_flood_shows_a_few_times_a_second(harness: ToolHarness) -> None:
    shown: list[str] = []
    tool, args = harness.toolbox.decode("shell", {"command": "timeout 1 yes || true"})
    await tool.run(args, harness.services.for_call("call_1", shown.append))
    assert 2 <= len(shown) <= 15
    assert max(map(len, shown)) <= 4096


async def test_files_touched_by_a_command_are_named(harness: ToolHarness) -> None:
    harness.put("same", "x")
    harness.put("changed", "x")
    harness.put("removed", "x")
    harness.put(".gitignore", "*.log\n")
    result = await harness.call(
        "shell", command="touch made out.log; echo y >> changed; rm removed; cat same; mkdir d; mv made d/moved"
    )
    assert [os.path.relpath(path, harness.root) for path in result.files_changed] == ["changed", "d/moved", "removed"]
    assert (await harness.call("shell", command="ls")).files_changed == ()


async def test_overlarge_workspace_costs_nothing_but_the_list(harness: ToolHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wolo.workspace.checkpoints.scan.MAX_ENTRIES", 50)
    for number in range(60):
        (harness.root / f"f{number}").touch()
    result = await harness.call("shell", command="echo x > f1")
    assert (result.is_error, result.files_changed) == (False, ())


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"command": ""}, "empty"),
        ({"command": " \n\t"}, "empty"),
        ({"command": "echo \0"}, "NUL"),
        ({"command": "echo \ud800"}, "surrogate"),
        ({"command": f"echo {'x' * 130_000}"}, "more than the system accepts"),
        ({"command": "ls", "timeout_s": 0}, "timeout_s"),
        ({"command": "ls", "timeout_s": -1}, "timeout_s"),
        ({"command": "ls", "timeout_s": 1e9}, "timeout_s"),
        ({"command": "ls", "timeout_s": float("nan")}, "timeout_s"),
    ],
)
async def test_senseless_arguments_are_refused_with_the_reason(
    harness: ToolHarness, arguments: dict[str, object], problem: str
) -> None:
    with pytest.raises(ToolError, match=problem):
        await harness.call("shell", **arguments)


async def test_variables_larger_than_the_system_takes_are_named(harness: ToolHarness) -> None:
    environ = {f"LONG_{number}": "x" * 100_000 for number in range(80)}
    harness.services = replace(harness.services, variables=CommandVariables(environ=environ))
    with pytest.raises(ToolError, match=r"larger than the system accepts.*shell\.hide"):
        await harness.call("shell", command="true")


async def test_the_longest_command_that_is_taken_runs(harness: ToolHarness) -> None:
    command = "echo " + "x" * (120_000 - 5)
    assert (await harness.call("shell", command=command)).is_error is False


async def test_without_bash_the_command_runs_in_sh(harness: ToolHarness, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    few = tmp_path / "few"
    few.mkdir()
    for name in ("mkdir", "sleep"):
        found = shutil.which(name)
        assert found
        (few / name).symlink_to(found)
    monkeypatch.setenv("PATH", str(few))
    result = await harness.call("shell", command="mkdir sub; cd sub; echo $0 $#; exit 3")
    assert result.text == f"sh 0\n[exit 3]\n[the next command runs in {harness.root}/sub]\n"


def repository(harness: ToolHarness) -> None:
    git(harness, "init", "-q")
    for name in ("name", "email"):
        git(harness, "config", f"user.{name}", "nobody@example.org")
    for number in range(3):
        harness.put("file", f"{number}\n")
        git(harness, "add", "file")
        git(harness, "commit", "-qm", f"commit {number}")


def git(harness: ToolHarness, *words: str) -> str:
    return subprocess.run(["git", "-C", str(harness.root), *words], check=True, capture_output=True, text=True).stdout.strip()


async def until(is_so: Callable[[], object], limit_s: float = 5) -> None:
    async with asyncio.timeout(limit_s):
        while not is_so():
            await asyncio.sleep(0.01)
