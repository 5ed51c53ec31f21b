"""The gate from outside: what a model asks for, what is done, and what everybody is told of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fakes.command import run_wolo
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import call, calls, text
from tests.fakes.screen import pty_wolo
from tests.guard.command_tables import HOSTILE_LINES, MARKER

READERS = ("ls -la", "cat a.txt", "head -1 a.txt", "wc -l a.txt", "grep -n hello a.txt", "pwd", "stat a.txt", "ls src | wc -l")
WRITERS = r"""
touch M
echo x > M
cat <<EOF > M
python3 -c 'open("M","w")'
tee M
git commit --amend -m x
git log
sed -i s/hello/bye/ a.txt
cp a.txt M
ln -s a.txt M
mkdir M
dd if=a.txt of=M
find . -exec touch M +
xargs touch M
perl -e 'open F, ">M"'
bash -c 'touch M'
rm a.txt
truncate -s 0 a.txt
mv a.txt M
cd src && touch ../M
"""


@pytest.fixture
def root() -> Path:
    Path("src").mkdir()
    Path("a.txt").write_text("hello\nworld\n")
    return Path.cwd()


def shell(*commands: str) -> tuple[tuple[str, dict[str, object]], ...]:
    return tuple(("shell", {"command": command}) for command in commands)


@pytest.mark.parametrize("mode", ["ask", "edit"])
def test_hostile_lines_are_denied_and_listed_without_person(provider: ProviderServer, root: Path, mode: str) -> None:
    provider.script(calls(*shell(*HOSTILE_LINES, "cat a.txt")), text("ok"))
    done = run_wolo("--json", "--mode", mode, "--allow", "shell:ls *", *provider.flags, "go", stdin="y\n" * 500, timeout=120)
    *refused, ran = provider.requests[1].results
    assert [line for line, result in zip(HOSTILE_LINES, refused, strict=True) if not result.startswith("Denied")] == []
    assert ran.startswith("hello\nworld\n")
    assert not Path(MARKER).exists()
    assert (done.exit_code, done.json["subtype"]) == (4, "error_denied")
    assert [denial["input"]["command"] for denial in done.json["permission_denials"]] == HOSTILE_LINES


def test_plan_lets_readers_run_and_nothing_else(provider: ProviderServer, root: Path) -> None:
    writers = [line.replace("<<EOF > M", "<<EOF > M\nx\nEOF") for line in WRITERS.strip().split("\n")]
    provider.script(calls(*shell(*READERS, *writers)), text("ok"))
    done = run_wolo("--json", "--mode", "plan", "--allow", "shell:*", *provider.flags, "go", timeout=60)
    results = provider.requests[1].results
    assert [line for line, result in zip(READERS, results, strict=False) if "[exit 0]" not in result] == []
    assert all(result.startswith("Denied") for result in results[len(READERS) :])
    assert sorted(path.name for path in root.iterdir()) == ["a.txt", "src"]
    assert Path("a.txt").read_text() == "hello\nworld\n"
    assert (done.exit_code, done.json["permission_denials"]) == (0, [])


def test_allowed_chain_runs_but_leaving_the_workspace_fails(provider: ProviderServer, root: Path) -> None:
    provider.script(calls(*shell("cd src && printf hi | head -3", "cd ../.. && printf hi")), text("ok"))
    rules = ("--allow", "shell:cd *", "--allow", "shell:printf *")
    done = run_wolo("--json", "--mode", "ask", *rules, *provider.flags, "go")
    ran, refused = provider.requests[1].results
    assert ran.startswith("hi")
    assert "leave the workspace" in refused
    assert done.exit_code == 4


def test_irreversible_command_is_refused_without_a_person(provider: ProviderServer, root: Path) -> None:
    provider.script(calls(*shell("rm -rf src", "> a.txt", "git reset --hard", "find . -delete")), text("ok"))
    done = run_wolo("--json", *provider.flags, "go")
    assert all("cannot be undone" in result for result in provider.requests[1].results)
    assert Path("src").is_dir()
    assert Path("a.txt").read_text() == "hello\nworld\n"
    assert done.exit_code == 4


def test_yolo_does_what_is_asked_of_it(provider: ProviderServer, root: Path) -> None:
    """The same as above without the gate: it was the gate that held."""
    provider.script(calls(*shell("rm -rf src", "> a.txt")), text("ok"))
    assert run_wolo("--json", "--yolo", *provider.flags, "go").exit_code == 0
    assert not Path("src").exists()
    assert Path("a.txt").read_text() == ""


def test_a_deny_holds_under_yolo(provider: ProviderServer, root: Path) -> None:
    provider.script(calls(*shell("touch M", "env touch M", "x=1; touch M > y", "ls")), text("ok"))
    done = run_wolo("--json", "--yolo", "--deny", "shell:touch *", *provider.flags, "go")
    *refused, ran = provider.requests[1].results
    assert all(result.startswith("Denied") for result in refused)
    assert "a.txt" in ran
    assert "wolo: denied: shell env touch M: " in done.stderr
    assert done.exit_code == 4
    assert not Path(MARKER).exists()


def test_denied_file_is_attached_by_no_prompt(provider: ProviderServer, root: Path) -> None:
    (root / "notes").mkdir()
    (root / "notes" / "x.md").write_text("CANARY")
    (root / "link.md").symlink_to("notes/x.md")
    provider.script(text("never asked"))
    for words in (["see @notes/x.md"], ["see @link.md:1-2"], [f"see @{root}/src/../notes/x.md"], ["-f", "link.md", "see"]):
        done = run_wolo("-p", "--yolo", "--deny", "read:notes/**", *provider.flags, *words)
        assert done.exit_code == 2, words
        assert "the rule read:notes/** (--deny) denies reading it" in " ".join(done.stderr.split())
    assert provider.requests == []
    assert run_wolo("-p", "--deny", "read:notes/**", *provider.flags, "see @a.txt").exit_code == 0


def test_person_sees_the_losses_and_enter_denies(provider: ProviderServer, root: Path) -> None:
    (root / "src" / "b.py").touch()
    provider.script(call("shell", {"command": "rm -r src"}), text("I see."))
    with pty_wolo(*provider.flags, "go on", columns=120) as terminal:
        terminal.wait_for("or type why not ›")
        terminal.wait_for("`rm` cannot be undone: src: 1 file")
        terminal.press("enter")
        assert terminal.wait_for_exit() == 0
    assert (root / "src" / "b.py").exists()


def test_a_no_is_not_asked_for_twice(provider: ProviderServer, root: Path) -> None:
    provider.script(*(call("shell", {"command": "touch M"}) for _ in range(3)), text("I see."))
    with pty_wolo("--mode", "ask", *provider.flags, "go on") as terminal:
        terminal.wait_for("or type why not ›")
        terminal.enter("not here")
        terminal.wait_for_exit()
        assert terminal.times("or type why not ›") == 1
    assert all("not here" in request.results[-1] for request in provider.requests[1:4])
    assert not Path(MARKER).exists()
