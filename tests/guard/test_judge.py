"""The verdict on a call: rules, modes, protected names and what a person said."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from wolo.guard.intents import CallIntent, FetchIntent, Intent, ReadIntent, RunIntent, WriteIntent
from wolo.guard.judge import Judge
from wolo.guard.modes import MODES
from wolo.guard.rules import Decision, Rule, parse_rule

WORK = "work"
"""The name of the directory a test works in."""


@pytest.fixture
def root() -> Path:
    return Path.cwd()


def rules(*texts: str) -> list[Rule]:
    """`allow shell:ls *`, …"""
    found: list[Rule] = []
    for text in texts:
        word, _, rule = text.partition(" ")
        decision: Decision = "allow" if word == "allow" else "ask" if word == "ask" else "deny"
        found.append(parse_rule(rule, decision, "test"))
    return found


def judge(root: Path, *texts: str, mode: str = "edit", own: tuple[Path, ...] = (), free: tuple[Path, ...] = ()) -> Judge:
    return Judge(MODES[mode], rules(*texts), root, own_places=own, free_reads=free)


def read(given: str | Path) -> ReadIntent:
    """As the workspace resolves it."""
    path = Path(os.path.realpath(given))
    return ReadIntent(path, str(given), inside=path.is_relative_to(os.path.realpath(".")))


def write(given: str | Path) -> WriteIntent:
    path = Path(os.path.realpath(given))
    return WriteIntent(path, str(given), inside=path.is_relative_to(os.path.realpath(".")))


def run(command: str) -> RunIntent:
    return RunIntent(command, Path.cwd())


def decision(judge: Judge, *intents: Intent) -> str:
    return judge.judge("tool", intents).decision


# Commands

RULES = (
    "allow shell:npm test",
    "allow shell:npm run test:*",
    "allow shell:ls *",
    "allow shell:cat *",
    "allow shell:cd *",
    "allow shell:git * status",
    "allow shell:rg * src/a.py",
    "allow shell:rm *",
    "allow shell:git push *",
    "allow shell:printf *",
    "allow shell:sudo *",
    "allow shell:du src/*",
    "allow shell:stat 'a*'",
    "deny shell:shutdown *",
    "deny shell:git push --force *",
    "deny shell:mkfs -t ext4 *",
    "deny shell:dropdb",
    "ask shell:rm -rf *",
    "ask shell:git push *",
)

COMMANDS = r"""
allow | npm test
allow | npm  test
allow |   npm test
allow | npm "test"
ask   | npm testx
ask   | npm tes
ask   | npm
ask   | npm test x
ask   | /usr/bin/npm test
ask   | ./npm test
ask   | npm test; touch M
ask   | npm test;touch M
ask   | npm test > M
ask   | npm test >M
ask   | npm test && touch M
ask   | npm test || touch M
ask   | npm test | tee M
ask   | npm test & touch M
ask   | npm test &
ask   | npm test `touch M`
ask   | npm test $(touch M)
ask   | npm test "$(touch M)"
ask   | npm test <(touch M)
ask   | npm test <<< x
ask   | PAGER='touch M' npm test
ask   | A=1 npm test
ask   | (npm test)
ask   | { npm test; }
ask   | ! npm test
ask   | time npm test
allow | npm run test:unit
allow | npm run test:
ask   | npm run test:unit x
ask   | npm run test:../x
ask   | npm run testunit
allow | ls
allow | ls -la
allow | ls -la src
allow | ls src *.py
ask   | ls ~
ask   | ls $HOME
ask   | lsx
ask   | ls .git
ask   | ls -- .git/hooks
ask   | ls --file=.git/config
allow | cat a.py
ask   | cat .env
ask   | cat ./.env
ask   | cat src/../.env
ask   | cat .e*
ask   | cat .en?
ask   | cat .[d-f]nv
ask   | cat .[^a]nv
ask   | cat */*/*/*
ask   | cat .[[:alpha:]]nv
ask   | cat -n.env
ask   | cat link-to-env
ask   | cat HEAD:.env
ask   | cat "a .env"
allow | cd src
allow | cd ./src/..
ask   | cd ..
ask   | cd
ask   | cd -
ask   | cd src/../..
ask   | cd out
ask   | cd .git
allow | git log status
ask   | git status
ask   | git log --oneline status
allow | rg x src/a.py
allow | rg '*' src/a.py
ask   | rg x src/b.py
allow | du src/a.py
ask   | du src/..
ask   | du src/../../x
ask   | du src/a/b
allow | stat 'a*'
ask   | stat a*
allow | rm a.py
ask   | rm -rf a.py
ask   | rm -fr a.py
ask   | rm -r -f a.py
ask   | rm a.py -rf
ask   | sudo rm -rf a.py
ask   | git push
ask   | git push origin main
deny  | git push --force
deny  | git push --force origin
deny  | git push origin --force
deny  | git -C . push origin --force
deny  | git push --force=yes
ask   | git push --force-with-lease
ask   | git stash push
deny  | shutdown
deny  | shutdown now
deny  | /sbin/shutdown now
deny  | SHUTDOWN now
deny  | sudo shutdown now
deny  | env -i shutdown now
deny  | xargs shutdown
deny  | find . -exec shutdown {} +
deny  | bash -c 'shutdown now'
deny  | bash -c "sudo shut'down' now"
deny  | eval "shut""down now"
deny  | python3 -c 'run(["shutdown", "now"])'
deny  | perl -e 'system("shutdown","now")'
deny  | env bin/shut[d]own now
deny  | env bin/shut?own now
deny  | nice ./b*/shutd* now
deny  | env ./*/*/../bin/sh*n now
ask   | find s*
deny  | ls; shutdown now
deny  | ls && shutdown
deny  | echo $(shutdown now)
deny  | echo `shutdown now`
deny  | A=1 shutdown now
deny  | shut\down now
deny  | sh\
deny  | 's'hutdown now
deny  | shut"down" now
deny  | if true; then shutdown; fi
deny  | cat <<EOF | sh
deny  | mkfs -t ext4 /dev/x
deny  | mkfs -v -t ext4 /dev/x
ask   | mkfs -t xfs /dev/x
deny  | dropdb
deny  | dropdb production
ask   | createdb x
ask   | say dropped
ask   | my-shutdown now
ask   | shutdown-check now
"""


def table() -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for line in COMMANDS.strip("\n").split("\n"):
        expected, _, command = line.partition(" | ")
        if command == "sh\\":
            command = "sh\\\nutdown now"
        if command == "cat <<EOF | sh":
            command = "cat <<EOF | sh\nshutdown now\nEOF"
        found.append((expected.strip(), command))
    return found


@pytest.mark.parametrize(("expected", "command"), table())
def test_a_command_gets_the_verdict_the_rules_say(expected: str, command: str, root: Path) -> None:
    for folder in ("src", ".git"):
        (root / folder).mkdir()
    (root / ".env").write_text("TOKEN=x")
    (root / "link-to-env").symlink_to(".env")
    (root / "out").symlink_to("..")
    (root / "bin").mkdir()
    (root / "bin" / "shutdown").touch()
    verdict = judge(root, *RULES).judge("shell", [run(command)])
    assert verdict.decision == expected, verdict.reason


def test_the_table_has_every_family() -> None:
    assert len(table()) >= 100


def test_hidden_character_is_denied_where_commands_are(root: Path) -> None:
    for command in ("ls\u200b", "ls\xa0x", "echo " + "x" * 20_000, "true;" * 100, "ls \x1b[2J"):
        assert decision(judge(root, "deny shell:rm *", "allow shell:*"), run(command)) == "deny"
        assert decision(judge(root, "allow shell:*"), run(command)) == "ask"


def test_yolo_commands_must_be_plain_under_denials(root: Path) -> None:
    guarded, free = judge(root, "deny shell:rm *", mode="yolo"), judge(root, mode="yolo")
    assert decision(guarded, run("ls > x")) == "deny"
    assert "written as plain words" in guarded.judge("shell", [run("ls > x")]).reason
    assert decision(guarded, run("ls src")) == "allow"
    assert decision(free, run("ls > x")) == "allow"


def test_command_running_elsewhere_is_not_covered_by_rules(root: Path) -> None:
    allowed = judge(root, "allow shell:*")
    (root / ".git").mkdir()
    assert decision(allowed, RunIntent("ls", root)) == "allow"
    assert decision(allowed, RunIntent("ls", root.parent)) == "ask"
    assert decision(allowed, RunIntent("ls", root / ".git")) == "ask"


def test_command_naming_a_denied_path_always_asks(root: Path) -> None:
    (root / "notes").mkdir()
    for mode in ("edit", "yolo"):
        guarded = judge(root, "allow shell:cat *", "deny read:notes/**", mode=mode)
        assert decision(guarded, run("cat notes/a")) == "ask"
        assert decision(guarded, run("cat --show=notes/a")) == "ask"
        assert decision(guarded, run("cat other/a")) == "allow"


@pytest.mark.parametrize(
    "spelling", ["{own}/config.toml", "~/own/config.toml", "$HOME/own/x", '"$HOME"/own/x', "${{HOME}}/own/x", "../home/own/x"]
)
@pytest.mark.parametrize("mode", ["edit", "yolo"])
def test_no_command_may_name_wolos_own_files(root: Path, isolated: Path, spelling: str, mode: str) -> None:
    own = isolated / "home" / "own"
    own.mkdir()
    guarded = judge(root, "allow shell:*", mode=mode, own=(own,), free=(own / "spill",))
    assert decision(guarded, run(f"cat {spelling.format(own=own)}")) == "deny"
    assert decision(guarded, run(f"cat {own}/spill/long.txt")) != "deny"
    assert decision(guarded, run(f"cat {own}-other/x")) != "deny"


# Files


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "command",
    [
        "wolo mcp allow x",
        "wolo hooks allow --trust",
        "yes | /opt/bin/wolo mcp add x -- sh -c y",
        "python3 -m wolo -C . config set mode yolo",
        "env A=1 w'ol'o trust forget",
        'bash -c "cd x; wolo permissions remove shell:ls"',
        "x=$(wolo auth logout)",
    ],
)
def test_no_command_changes_wolos_own_settings(root: Path, command: str, mode: str) -> None:
    assert decision(judge(root, "allow shell:*", mode=mode), run(command)) == "deny"


@pytest.mark.parametrize("command", ["wolo mcp list", "echo wolo-mcp add", 'git commit -m "wolo mcp add is told"', "wolo trust"])
def test_other_commands_of_wolo_are_as_any(root: Path, command: str) -> None:
    assert decision(judge(root, "allow shell:*", mode="yolo"), run(command)) == "allow"


def test_edits_run_inside_the_workspace_and_ask_outside(root: Path) -> None:
    guarded = judge(root)
    assert decision(guarded, write("a.py")) == "allow"
    assert decision(guarded, read("a.py")) == "allow"
    for given in ("../a.py", "/etc/hosts", f"{root}-evil/a.py", "sub/../../a.py"):
        assert decision(guarded, write(given)) == "ask", given
        assert decision(guarded, read(given)) == "ask", given


@pytest.mark.parametrize("unusual", [{"links": 2}, {"in_place": True}])
def test_unreplaceable_file_asks_unless_a_person_spoke(root: Path, unusual: dict[str, Any]) -> None:
    intent = WriteIntent(root / "a.py", "a.py", **unusual)
    assert [decision(judge(root, mode=mode), intent) for mode in ("plan", "ask", "edit", "auto", "yolo")] == [
        *("deny", "ask", "ask", "ask", "allow"),
    ]
    assert decision(judge(root, "allow write:a.py"), intent) == "allow"
    assert judge(root).suggest_rule([intent]) == "write:a.py"
    assert decision(judge(root), WriteIntent(root / "a.py", "a.py")) == "allow"


def test_a_tool_that_says_outside_is_believed(root: Path) -> None:
    assert decision(judge(root), WriteIntent(root / "a.py", "a.py", inside=False)) == "ask"


def test_links_count_as_what_they_lead_to(root: Path, isolated: Path) -> None:
    outside = isolated / "outside"
    outside.mkdir()
    (root / "src").mkdir()
    (root / "dir").symlink_to(outside)
    (root / "file").symlink_to(outside / "x")
    (root / "dangling").symlink_to(outside / "not-there")
    (root / "chain").symlink_to("dir")
    (root / "within").symlink_to("src")
    guarded = judge(root, "allow write:**", "allow read:**")
    for given in ("dir/x", "file", "dangling", "chain/new/deep.txt", "within/../dir/x"):
        assert decision(guarded, write(given)) == "ask", given
        assert decision(guarded, read(given)) == "ask", given
    assert decision(guarded, write("within/a.py")) == "allow"


@pytest.mark.parametrize("pattern", ["notes/**", "notes", f"~/../{WORK}/notes/**", "./notes/", "**/notes/*", "link/**", "link"])
def test_denied_path_is_denied_by_any_name(root: Path, pattern: str) -> None:
    (root / "notes").mkdir()
    (root / "link").symlink_to("notes")
    (root / "chain").symlink_to("link")
    guarded = judge(root, f"deny read:{pattern}", f"deny write:{pattern}", "allow read:**", mode="yolo")
    for given in ("notes/a", "link/a", "chain/a", "sub/../notes/a", f"{root}/notes/a", f"../{WORK}/link/a"):
        assert decision(guarded, read(given)) == "deny", given
        assert decision(guarded, write(given)) == "deny", given
    assert decision(guarded, read("notes2/a")) == "allow"


def test_denied_name_stays_denied_as_later_link(root: Path, isolated: Path) -> None:
    guarded = judge(root, "deny write:out/**", mode="yolo")
    (root / "out").symlink_to(isolated)
    assert decision(guarded, write("out/x")) == "deny"


def test_allow_does_not_follow_a_workspace_link(root: Path, isolated: Path) -> None:
    (root / "out").symlink_to(isolated)
    for pattern in ("out/**", f"{root}/out/**"):
        assert decision(judge(root, f"allow write:{pattern}"), write("out/x")) == "ask"
    assert decision(judge(root, f"allow write:{isolated}/*.txt"), write("out/x.txt")) == "allow"


PROTECTED = """
.git/config .git/hooks/pre-commit sub/.git/config .GIT/config .wolo/config.toml sub/.wolo/x .vscode/tasks.json
.idea/runConfigurations/x.xml .bashrc sub/.zshrc .profile .ssh/authorized_keys .envrc .mcp.json x.code-workspace .git
.config/fish/config.fish .claude/settings.json .gemini/settings.json .codex/config.toml .opencode/agent/x.md opencode.json
.devcontainer.json sub/.devcontainer/devcontainer.json .nvim.lua .pre-commit-config.yaml CLAUDE.md sub/CLAUDE.md claude.local.md
AGENTS.md AGENTS.override.md GEMINI.md .github/copilot-instructions.md .cursorrules .pdbrc .exrc .vimrc .gdbinit .hg/hgrc
new/deep/.git new/deep/.git/config new/.git/HEAD .jj/repo/config.toml .dir-locals.el lefthook.yml
AGENT.md WARP.md .rules .agent/rules/a.md .pi/SYSTEM.md .factory/mcp.json .amp/settings.json .kilocode/rules/a.md
.openhands/setup.sh .mise/config.toml lefthook-local.yml lefthook.toml .overcommit.yml _vimrc .ghci .iex.exs .rdbgrc
.github/chatmodes/a.chatmode.md
"""


@pytest.mark.parametrize("given", PROTECTED.split())
def test_protected_name_write_asks_despite_any_rule(root: Path, given: str) -> None:
    for mode in ("ask", "edit", "auto", "yolo"):
        guarded = judge(root, "allow write:**", f"allow write:{given}", mode=mode)
        verdict = guarded.judge("write", [write(given)])
        assert verdict.decision == "ask", mode
        assert verdict.without_person().decision == "deny", mode
        assert guarded.suggest_rule([write(given)]) == "", mode


@pytest.mark.parametrize("name", ["AGENTS.md", "CLAUDE.md", ".pre-commit-config.yaml", "lefthook.yml"])
def test_obeyed_secretless_file_is_readable_not_writable(root: Path, name: str) -> None:
    (root / name).write_text("text")
    rules = ("allow shell:sed *", "allow shell:diff *", "allow shell:tee *")
    for mode in ("plan", "ask", "edit", "auto"):
        assert decision(judge(root, mode=mode), run(f"cat {name} | grep -n text")) == "allow"
    assert decision(judge(root, *rules), run(f"diff {name} {name}")) == "allow"
    for command in (f"sed -i s/a/b/ {name}", f"echo x | tee {name}"):
        assert decision(judge(root, *rules), run(command)) == "ask"
    confined = Judge(MODES["auto"], [], root, confine="unless_allowed").judge("shell", [run(f"sed -n 1p {name}")])
    assert (confined.decision, confined.confined) == ("allow", True)


@pytest.mark.parametrize("mode", ["edit", "auto", "yolo"])
@pytest.mark.parametrize(
    ("link", "goal", "written"),
    [
        ("CLAUDE.md", "guide.md", "guide.md"),
        ("AGENTS.md", "docs/guide.md", "docs/guide.md"),
        (".claude", "docs/agents", "docs/agents/settings.json"),
        (".husky", "not/there/yet", "not/there/yet/pre-commit"),
        ("pkg/AGENTS.md", "guide.md", "pkg/guide.md"),
    ],
)
def test_writing_what_a_protected_link_leads_to_asks(root: Path, link: str, goal: str, written: str, mode: str) -> None:
    for folder in ("docs/agents", "pkg"):
        (root / folder).mkdir(parents=True)
    (root / link).symlink_to(goal)
    verdict = judge(root, "allow write:**", mode=mode).judge("write", [write(root / written)])
    assert (verdict.decision, "link" in verdict.reason) == ("ask", True)
    assert decision(judge(root, mode=mode), write(root / "docs/other.md")) == "allow"


@pytest.mark.parametrize("name", ["AGENTS.md", "opencode.json", "lefthook.yml", "crush.json"])
def test_rule_creates_no_missing_protected_name(root: Path, name: str) -> None:
    allowed = ("allow shell:tee *", "allow shell:cp *", "allow shell:ls *")
    assert decision(judge(root, *allowed), run(f"tee {name}")) == "ask"
    assert decision(judge(root, *allowed), run(f"cp --target-directory=. a {name}")) == "ask"
    assert decision(judge(root, *allowed), run("tee notes.md")) == "allow"


def test_ignorable_characters_hide_no_protected_name(root: Path) -> None:
    assert decision(judge(root, mode="yolo"), write(".g\u200cit/config")) == "ask"


def test_a_git_directory_is_protected_by_any_name(root: Path, isolated: Path) -> None:
    elsewhere = isolated / "store"
    for folder in (root / "bare.git", elsewhere):
        (folder / "objects").mkdir(parents=True)
        (folder / "HEAD").write_text("ref: refs/heads/main")
    (root / ".git").write_text(f"gitdir: {elsewhere}")
    guarded = judge(root, mode="yolo")
    assert decision(guarded, write("bare.git/hooks/post-checkout")) == "ask"
    assert decision(guarded, write(elsewhere / "config")) == "ask"
    assert decision(guarded, write("other/config")) == "allow"


@pytest.mark.parametrize("last", ["HEAD", "objects/pack/x", "commondir"])
def test_git_directory_cannot_be_assembled_piecewise(root: Path, last: str) -> None:
    """Git obeys the settings in any folder that looks like a repository: whichever piece comes last asks."""
    pieces = {"HEAD": "ref: refs/heads/main", "objects/pack/x": ""}
    folder = root / "innocent"
    for piece, content in pieces.items():
        if piece != last:
            (folder / piece).parent.mkdir(parents=True, exist_ok=True)
            (folder / piece).write_text(content)
    if last == "commondir":
        (folder / "objects" / "pack" / "x").unlink()
        (folder / "objects" / "pack").rmdir()
        (folder / "objects").rmdir()
    assert decision(judge(root, mode="yolo"), write(folder / last)) == "ask"
    assert decision(judge(root, mode="yolo"), write("elsewhere/HEAD")) == "allow"


def test_linked_protected_name_is_protected_too(root: Path) -> None:
    (root / "settings").mkdir()
    (root / ".vscode").symlink_to("settings")
    assert decision(judge(root, mode="yolo"), write(".vscode/tasks.json")) == "ask"


@pytest.mark.parametrize("mode", ["plan", "ask", "edit", "auto", "yolo"])
def test_wolos_own_files_are_written_in_no_mode(root: Path, isolated: Path, mode: str) -> None:
    own = isolated / "wolo" / "config"
    own.mkdir(parents=True)
    (root / "link").symlink_to(own)
    guarded = judge(root, f"allow write:{own}/**", "allow write:**", mode=mode, own=(own,))
    for given in (own / "permissions.toml", "../wolo/config/config.toml", "link/new/deep", own):
        assert decision(guarded, write(given)) == "deny", given
        guarded.remember("write", [write(given)], allowed=True)
        assert decision(guarded, write(given)) == "deny", given
    assert decision(guarded, read(own / "keys.toml")) == "ask"


NAMES_OWN = r"""
cat ~/.config/wolo/keys.toml
cat /HOME/.config/wolo/keys.toml
cat ../.config/./wolo/../wolo/keys.toml
cat ~/.conf*/w?lo/keys.toml
cat ~/.config/{wolo,x}/keys.toml
cat ~/.config/w\olo/keys.toml
cd ~/.config && cat wolo/keys.toml
cd ~/.config; cd wolo; cat keys.toml
cd ..; cat .config/wolo/keys.toml
(cd ~; cd .config; echo x > wolo/config.toml)
D=~/.config; cat $D/wolo/keys.toml
D=wolo; cat ~/.config/$D/keys.toml
tar cf x.tar -C ~/.config wolo
python3 -c 'open("/HOME/.config/wolo/keys.toml")'
rm -rf ~/.config
rm -r ..
cd ~ && rm -rf .config
sudo mv ~/.config ~/.c2
bash -c 'chmod -R 777 ~/.config'
find ~ -name keys.toml -delete
cat ~/.*/*/*
cat /HOME/.conf*/w*/k*
cat /HOME/.[c]onfig/*/*/
cat */*/* ../.config/wolo/keys.toml
rm -rf /HOME/../*/.conf*
find ~/.config -type f -exec rm {} +
rm -rf ~/.*
"""


@pytest.mark.parametrize("command", NAMES_OWN.strip().split("\n"))
@pytest.mark.parametrize("mode", ["auto", "yolo"])
def test_no_command_touches_own_files_in_any_mode(root: Path, isolated: Path, command: str, mode: str) -> None:
    own = isolated / ".config" / "wolo"
    own.mkdir(parents=True)
    (own / "keys.toml").write_text("")
    guarded = Judge(MODES[mode], rules("allow shell:*"), root, own_places=[own], home=isolated, confine="unless_allowed")
    verdict = guarded.judge("shell", [run(command.replace("/HOME", str(isolated)))])
    assert (verdict.decision, "wolo's own files" in verdict.reason) == ("deny", True)


@pytest.mark.parametrize("command", ["cat */*/* notes/a", "cat */*/*", "sed -n 1p src/*/*/n*", "head -1 [[:alpha:]]*/a"])
@pytest.mark.parametrize("rule", ["deny read:notes/**", "ask write:**/*.lock"])
def test_unresolvable_wildcards_hide_no_file_from_rules(root: Path, command: str, rule: str) -> None:
    assert decision(judge(root, rule, mode="yolo"), run(command)) == "ask"
    assert decision(judge(root, mode="yolo"), run(command)) == "allow"


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("sed -n 1p src/*/*/*.py", "allow"),
        ("ruff check src/*/*/*.py tests/*/*/test_*.py", "allow"),
        ("wc -l */*/*", "allow"),
        ("sed -n 1p */*/*", "ask"),
        ("sed -n 1p */*/*/.en*", "ask"),
        ("sed -n 1p */*/*/.??v", "ask"),
        ("sed -n 1p */*/*.pem", "ask"),
        ("sed -n 1p */*/*.p[e]m", "ask"),
        ("sed -n 1p */*/id_*", "ask"),
        ("sed -n 1p */*/.g*/config", "ask"),
        ("sed -n 1p */*/*/.git/config", "ask"),
        ("for f in */*/*/.env*; do sed -n 1p $f; done", "ask"),
        ("for f in src/*/*/*.py; do sed -n 1p $f; done", "allow"),
    ],
)
def test_wildcards_possibly_naming_secrets_ask_inside_sandbox(root: Path, command: str, expected: str) -> None:
    guarded = Judge(MODES["auto"], [], root, confine="unless_allowed")
    assert decision(guarded, run(command)) == expected


@pytest.mark.parametrize(
    "command", ["ls ~", "ls -la ~/.config", "mv x ~/.config", "rm -rf x", "cd ~/.config; rm -rf other", "find ~ -name x"]
)
def test_folder_around_own_files_follows_the_mode(root: Path, isolated: Path, command: str) -> None:
    own = isolated / ".config" / "wolo"
    own.mkdir(parents=True)
    guarded = Judge(MODES["yolo"], [], root, own_places=[own], home=isolated)
    assert decision(guarded, run(command)) == "allow"


def test_text_spilled_for_the_model_is_readable(root: Path, isolated: Path) -> None:
    own = isolated / "wolo" / "data"
    guarded = judge(root, own=(own,), free=(own / "outputs",))
    assert decision(guarded, read(own / "outputs" / "long.txt")) == "allow"
    assert decision(guarded, read(own / "wolo.db")) == "ask"
    assert decision(guarded, write(own / "outputs" / "long.txt")) == "deny"


def test_spills_of_other_sessions_cannot_be_listed(root: Path, isolated: Path) -> None:
    """The name of a spilled output is known to the session that was told it; the folder would tell them all."""
    own = isolated / "wolo" / "data"
    spilled = own / "outputs" / "long.txt"
    spilled.parent.mkdir(parents=True)
    spilled.touch()
    guarded = judge(root, "allow shell:*", mode="yolo", own=(own,), free=(spilled.parent,))
    assert decision(guarded, read(spilled.parent)) == "ask"
    assert decision(guarded, run(f"wc -l {spilled}")) == "allow"
    assert decision(guarded, run(f"head {spilled} | wc -l")) == "allow"
    for command in ("ls {}", "ls {}/", "cat {}/*", "cat {}/l*", "cat {}/l?ng.txt", "grep -r x {} | cat", "cat {}/{{a,b}} | cat"):
        assert decision(guarded, run(command.format(spilled.parent))) == "deny", command


SECRET = """
.env .env.local .env.production sub/.env .envrc id_rsa id_ed25519 sub/id_ecdsa .netrc .npmrc .pypirc server.pem tls.key
.ssh/config .aws/credentials .kube/config .config/gcloud/x.json .git-credentials .docker/config.json .ENV service-account.json
prod.env .env.example.local terraform.tfstate service_account-prod.json client_secret_1.json app-credentials.toml
secrets.prod.yaml application_default_credentials.json kubeconfig .dockercfg
"""


@pytest.mark.parametrize("given", SECRET.split())
def test_secret_reading_asks_unless_a_rule_names_it(root: Path, given: str) -> None:
    for mode in ("plan", "ask", "edit", "auto", "yolo"):
        guarded = judge(root, "allow read:**", "allow read:*", mode=mode)
        assert decision(guarded, read(given)) == "ask", mode
        assert not guarded.readable(root / given)
    assert decision(judge(root, f"allow read:{given}"), read(given)) == "allow"


@pytest.mark.parametrize(
    "given",
    [
        *(".env.example", "example.env", "id_rsa.pub", "environment.py", "monkey.py", "keys.py", "env", "src/envs/a.py"),
        *("credentials.py", "test_secrets.py", "secretary.json", "package.json", "vite-env.d.ts", "docs/credentials.md"),
    ],
)
def test_ordinary_files_are_no_secrets(root: Path, given: str) -> None:
    assert decision(judge(root), read(given)) == "allow"
    assert judge(root).readable(root / given)


def test_a_link_to_a_secret_is_a_secret(root: Path) -> None:
    (root / ".env").write_text("TOKEN=x")
    (root / "notes.txt").symlink_to(".env")
    (root / ".env.local").symlink_to("a.py")
    guarded = judge(root)
    assert decision(guarded, read("notes.txt")) == "ask"
    assert decision(guarded, read(".env.local")) == "ask"
    assert not guarded.readable(root / "notes.txt")


def test_a_search_may_show_what_a_read_may(root: Path, isolated: Path) -> None:
    (root / "out").symlink_to(isolated / "x")
    guarded = judge(root, "deny read:private/**", "ask read:drafts/**")
    assert guarded.readable(root / "src" / "a.py")
    for given in ("private/a", "drafts/a", "out"):
        assert not guarded.readable(root / given)


# Order


ORDER = """
deny shell:x *; allow shell:x *; ask shell:x *  → deny
ask shell:x *; allow shell:x *                  → ask
allow shell:x *                                 → allow
                                                → ask
"""


@pytest.mark.parametrize("line", ORDER.strip("\n").split("\n"))
def test_deny_comes_before_ask_and_ask_before_allow(root: Path, line: str) -> None:
    texts, _, expected = line.partition("→")
    found = [text.strip() for text in texts.split(";") if text.strip()]
    assert decision(judge(root, *found), run("x y")) == expected.strip()
    assert decision(judge(root, *reversed(found)), run("x y")) == expected.strip()


def test_strictest_part_wins_in_any_order(root: Path) -> None:
    guarded = judge(root, "deny write:b.py")
    parts = [write("a.py"), write(".env"), write("b.py")]
    assert decision(guarded, *parts) == "deny"
    assert decision(guarded, *reversed(parts)) == "deny"
    assert decision(guarded, write(".env"), write("a.py")) == "ask"
    assert decision(guarded, write("a.py"), write(".env")) == "ask"
    assert decision(guarded, write("a.py"), read("a.py")) == "allow"


def test_effectless_call_is_allowed_in_every_mode(root: Path) -> None:
    assert decision(judge(root, mode="plan")) == "allow"


MODE_TABLE = """
            plan   ask    edit   auto   yolo
read_in     allow  allow  allow  allow  allow
read_out    ask    ask    ask    ask    allow
write_in    deny   ask    allow  allow  allow
write_out   deny   ask    ask    ask    allow
shell       deny   ask    ask    allow  allow
fetch       ask    ask    ask    ask    allow
mcp         deny   ask    ask    ask    allow
task        deny   allow  allow  allow  allow
task_read   allow  allow  allow  allow  allow
"""


def mode_table() -> list[tuple[str, str, str]]:
    head, *lines = [line.split() for line in MODE_TABLE.strip().split("\n")]
    return [(what, mode, said) for what, *rest in lines for mode, said in zip(head, rest, strict=True)]


@pytest.mark.parametrize(("what", "mode", "expected"), mode_table())
def test_a_mode_decides_where_no_rule_does(root: Path, what: str, mode: str, expected: str) -> None:
    intents: dict[str, Intent] = {
        "read_in": read("a"),
        "read_out": read("/etc/hosts"),
        "write_in": write("a"),
        "write_out": write("/etc/hosts"),
        "shell": run("make"),
        "fetch": FetchIntent("https://docs.python.org/3"),
        "mcp": CallIntent("mcp:github/get_issue"),
        "task": CallIntent("task:general"),
        "task_read": CallIntent("task:explore", only_reads=True),
    }
    assert decision(judge(root, mode=mode), intents[what]) == expected


def test_no_rule_lifts_the_ceiling_of_plan(root: Path) -> None:
    guarded = judge(root, "allow write:**", "allow shell:*", "allow mcp:*", mode="plan")
    guarded.remember("write", [write("a")], allowed=True)
    for intent in (write("a"), run("make"), CallIntent("mcp:a/b")):
        verdict = guarded.judge("write", [intent])
        assert (verdict.decision, verdict.source) == ("deny", "mode plan")


def test_a_verdict_says_who_decided(root: Path) -> None:
    guarded = judge(root, "deny shell:rm *", "allow shell:ls *")
    denied = guarded.judge("shell", [run("rm x")])
    assert (denied.rule, denied.source) == ("shell:rm *", "test")
    assert "shell:rm *" in denied.reason
    assert guarded.judge("write", [write("a")]).source == "mode edit"
    assert guarded.judge("write", [write(".git/x")]).source == "built-in"


# Elsewhere


FETCHES = """
allow | https://docs.python.org/3/library
allow | http://docs.python.org
allow | HTTPS://DOCS.PYTHON.ORG./x
allow | https://a.example.org
allow | https://b.a.example.org
allow | http://127.0.0.1:8000/x
ask   | https://docs.python.org:8443/
ask   | https://example.org
ask   | https://evilexample.org
ask   | https://docs.python.org.evil.org
ask   | https://python.org
ask   | http://127.0.0.1:9000/x
deny  | https://secret.example.org
deny  | https://secret.example.org:444/
deny  | https://user@docs.python.org/
deny  | https://evil.org\\@docs.python.org/
deny  | https://docs.python.org\t.evil.org/
deny  | https://docs.python.org /x
deny  | file:///etc/passwd
deny  | ftp://docs.python.org
deny  | docs.python.org
deny  | https://
deny  | https://[::1
"""


@pytest.mark.parametrize("line", FETCHES.strip("\n").split("\n"))
def test_hosts_match_by_whole_labels(root: Path, line: str) -> None:
    guarded = judge(
        root,
        "allow fetch:docs.python.org",
        "allow fetch:*.example.org",
        "allow fetch:127.0.0.1:8000",
        "deny fetch:secret.example.org",
    )
    expected, _, url = line.partition(" | ")
    assert decision(guarded, FetchIntent(url)) == expected.strip()


CARRIES = ("a.org/?q={}", "a.org/{}", "a.org/x/{}/y.html", "a.org/%41{}", "a.org/x;p={}", "a.org:8443/{}", "a.org/{0}?q={0}")


@pytest.mark.parametrize("address", CARRIES)
@pytest.mark.parametrize("mode", ["edit", "auto", "yolo"])
def test_long_address_asks_on_an_allowed_host(root: Path, address: str, mode: str) -> None:
    guarded = judge(root, "allow fetch:*", mode=mode)
    assert decision(guarded, FetchIntent("https://" + address.format("x" * 40))) == "allow"
    assert decision(guarded, FetchIntent("https://" + address.format("x" * 300))) == "ask"
    assert decision(guarded, FetchIntent("https://" + address.format("x" * 140))) == ("ask" if "{0}" in address else "allow")
    assert not guarded.may_fetch("https://" + address.format("x" * 300))


STRANGE = "a\nAllow? yes\x1b[2K\x1b]0;t\x07\u202eb\u3164"


@pytest.mark.parametrize("folder", ["..", "sub", ".git", "."])
@pytest.mark.parametrize("mode", ["plan", "ask", "edit", "auto", "yolo"])
def test_no_name_changes_what_a_person_reads(root: Path, folder: str, mode: str) -> None:
    """Names are data: in a path, below a wildcard, behind a link, of a tool, an agent or a secret file."""
    place = root / folder
    place.mkdir(exist_ok=True)
    for name in (STRANGE, f"{STRANGE}.pem", f"x{STRANGE}"):
        (place / name).write_text("")
    (root / "link.txt").symlink_to(place / f"{STRANGE}.pem")
    guarded = judge(root, f"ask read:**/{'?' * len(STRANGE)}", f"deny write:{folder}/x*", mode=mode)
    intents = (
        *(write(f"{folder}/{name}") for name in (STRANGE, f"{STRANGE}.pem", f"x{STRANGE}")),
        *(read(f"{folder}/{name}") for name in (STRANGE, f"{STRANGE}.pem")),
        *(run(f"{program} {folder}/*") for program in ("cat", "rm", "rm -r", "truncate -s0", "mv x")),
        *(run(text) for text in ("cat link.txt", "rm 'x\nAllow? yes'", f"cat '{STRANGE}'", "cd 'a\nb' && make")),
        CallIntent(f"mcp:server/{STRANGE}"),
        CallIntent(f"task:{STRANGE}"),
    )
    for intent in intents:
        shown = [guarded.judge("tool", [intent]).reason, *guarded.explain([intent])]
        assert all(text.isprintable() and "\u3164" not in text for text in shown), intent


def test_asking_part_lifts_the_sandbox_of_the_line(root: Path) -> None:
    """A person is asked about the line; their yes is to all of it, outside."""
    guarded = Judge(MODES["auto"], rules("ask shell:npm *"), root, confine="unless_allowed")
    for command, confined in (("make && npm test", False), ("npm test", False), ("make && make", True)):
        verdict = guarded.judge("shell", [run(command)])
        assert (verdict.decision == "ask", verdict.confined) == (not confined, confined), command


@pytest.mark.parametrize(
    "command", ["cat <<EOF | sh\ncat .env\nEOF", "cat <<'EOF' | bash -s\ncat .env\nEOF", "sh <<EOF\ncat .env\nEOF"]
)
def test_a_document_that_a_shell_reads_is_code(root: Path, command: str) -> None:
    guarded = Judge(MODES["auto"], [], root, confine="unless_allowed")
    assert "protected" in guarded.judge("shell", [run(command)]).reason
    assert decision(guarded, run("cat <<EOF > notes\nsee .env\nEOF")) == "allow"


def test_rule_ignores_case_where_the_volume_does(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert decision(judge(root, "deny read:Notes/**"), read("notes/a")) == "allow"
    monkeypatch.setattr("sys.platform", "darwin")
    assert decision(judge(root, "deny read:Notes/**"), read("notes/a")) == "deny"


def test_unknown_target_of_a_line_is_reported(root: Path) -> None:
    guarded = judge(root, "allow shell:cd *", "allow shell:make *")
    assert "is not known before it runs" in guarded.judge("shell", [run("cd - && make")]).reason


def test_sandbox_gets_whole_tool_denials(root: Path) -> None:
    texts = (
        "deny read:notes/**",
        "deny read:~/private",
        "deny read:**/*.key",
        "ask read:a/**",
        "allow read:b/**",
        "deny write:c/**",
    )
    guarded = judge(root, *texts, "deny read:.")
    guarded.protect_files([root / "hook.sh"])
    assert guarded.denied_places("read") == (str(root / "notes"), os.path.realpath(Path.home() / "private"))
    assert guarded.denied_places("write") == (str(root / "c"), str(root / "hook.sh"))


def test_rule_must_cover_everything_of_a_call(root: Path) -> None:
    guarded = judge(root, mode="ask")
    both = [write("a.txt"), write("b.txt")]
    assert guarded.complaint("write:a.txt", both) == "The rule write:a.txt does not cover this call."
    assert guarded.complaint("write:*.txt", both) == ""
    assert guarded.suggest_rule(both) == ""
    assert "write:a.txt, write:b.txt" in guarded.why_no_rule(both)


def test_a_name_of_a_host_carries_data_too(root: Path) -> None:
    guarded = judge(root, "allow fetch:*.a.org")
    assert decision(guarded, FetchIntent("https://docs.a.org/x")) == "allow"
    assert decision(guarded, FetchIntent(f"https://{'.'.join(['x' * 60] * 4)}.a.org/{'y' * 30}")) == "ask"


def test_tools_of_a_server_match_by_name(root: Path) -> None:
    guarded = judge(root, "allow mcp:github/get_*", "allow mcp:docs", "deny mcp:*/delete_*", "deny task:deploy")
    expected = {
        "github/get_issue": "allow",
        "github/set": "ask",
        "docs/any": "allow",
        "docs2/any": "ask",
        "docs/delete_x": "deny",
    }
    assert {name: decision(guarded, CallIntent(f"mcp:{name}")) for name in expected} == expected
    assert decision(guarded, CallIntent("task:deploy")) == "deny"
    for other in ("mcp:GitHub/Delete_Repo", "task:Deploy"):  # a name is whatever its server or its file says
        assert decision(guarded, CallIntent(other)) == "deny"
    assert decision(guarded, CallIntent("mcp:Docs/search")) == "ask"


# What a person said


def test_session_yes_covers_the_exact_call(root: Path) -> None:
    guarded = judge(root)
    guarded.remember("write", [write("/etc/x")], {"path": "/etc/x", "content": "a"}, allowed=True)
    assert guarded.judge("write", [write("/etc/x")], {"path": "/etc/x", "content": "a"}).decision == "allow"
    assert guarded.judge("write", [write("/etc/x")], {"content": "a", "path": "/etc/x"}).decision == "allow"
    assert guarded.judge("write", [write("/etc/x")], {"path": "/etc/x", "content": "b"}).decision == "ask"
    assert guarded.judge("edit", [write("/etc/x")], {"path": "/etc/x", "content": "a"}).decision == "ask"
    assert guarded.judge("write", [write("/etc/y")], {"path": "/etc/x", "content": "a"}).decision == "ask"


def test_yes_in_one_directory_is_none_elsewhere(root: Path) -> None:
    guarded = judge(root)
    guarded.remember("shell", [RunIntent("make", root)], {"command": "make"}, allowed=True)
    assert guarded.judge("shell", [RunIntent("make", root / "sub")], {"command": "make"}).decision == "ask"


def test_granted_rule_beats_an_ask_rule(root: Path) -> None:
    guarded = judge(root, "ask shell:pytest *", "deny shell:pytest --pdb *")
    guarded.remember("shell", [run("pytest -q")], allowed=True, rule="shell:pytest *")
    assert decision(guarded, run("pytest tests")) == "allow"
    assert decision(guarded, run("pytest --pdb")) == "deny"


def test_a_granted_rule_covers_plain_commands_only(root: Path) -> None:
    guarded = judge(root)
    guarded.remember("shell", [run("pytest -q")], allowed=True, rule="shell:pytest *")
    assert decision(guarded, run("pytest -x")) == "allow"
    assert decision(guarded, run("pytest; rm x")) == "ask"


def test_a_no_is_remembered_with_its_reason(root: Path) -> None:
    guarded = judge(root)
    guarded.remember("shell", [run("make")], {"command": "make"}, allowed=False, reason="not today")
    verdict = guarded.judge("shell", [run("make")], {"command": "make"})
    assert verdict.decision == "deny"
    assert "not today" in verdict.reason
    assert guarded.judge("shell", [run("make all")], {"command": "make all"}).decision == "ask"
    guarded.remember("shell", [run("make")], {"command": "make"}, allowed=True)
    assert guarded.judge("shell", [run("make")], {"command": "make"}).decision == "allow"


def test_a_refusal_ends_with_its_prompt(root: Path) -> None:
    guarded = judge(root)
    guarded.remember("shell", [run("make")], {"command": "make"}, allowed=False)
    guarded.remember("shell", [run("make x")], {"command": "make x"}, allowed=True)
    guarded.grants.refused.clear()
    assert guarded.judge("shell", [run("make")], {"command": "make"}).decision == "ask"
    assert guarded.judge("shell", [run("make x")], {"command": "make x"}).decision == "allow"


def test_never_is_a_rule_for_the_session(root: Path) -> None:
    guarded = judge(root, "allow shell:git status")
    guarded.remember("shell", [run("git push")], {}, allowed=True)
    guarded.remember("shell", [run("git push")], {}, allowed=False, rule=guarded.suggest_denial([run("git push")]))
    guarded.remember("read", [read("notes/a")], {}, allowed=False, rule="read:notes/**")
    guarded.grants.refused.clear()
    for command in ("git push", "git status && git push", "if true; then git push; fi"):
        assert decision(guarded, run(command)) == "deny", command
    assert decision(guarded, read("notes/a")) == "deny"
    assert decision(guarded, run("git status")) == "allow"
    assert guarded.denied_places("read") == (f"{root}/notes",)


@pytest.mark.parametrize("command", ["touch a; make b", "touch a > $b", ""])
def test_never_is_not_offered_without_one_rule(root: Path, command: str) -> None:
    assert judge(root).suggest_denial([run(command)]) == ""


def test_never_covers_what_always_cannot(root: Path) -> None:
    assert judge(root).suggest_rule([write(".git/hooks/x")]) == ""
    assert judge(root).suggest_denial([write(".git/hooks/x")]) == "write:.git/hooks/x"


def test_a_mode_can_change_while_the_conversation_lives(root: Path) -> None:
    guarded = judge(root)
    guarded.mode = MODES["plan"]
    assert decision(guarded, write("a")) == "deny"


SUGGESTED = r"""
pytest -q tests            → shell:pytest *
ruff check                 → shell:ruff *
python x.py                → shell:python x.py
python3.12 -m http.server  → shell:python3.12 -m http.server
bash x.sh                  → shell:bash x.sh
sudo ls                    → shell:sudo ls
git push                   → shell:git push
env pytest                 → shell:env pytest
unheard-of-wrapper ls      → shell:unheard-of-wrapper ls
say 'a b' "it's"           → shell:say 'a b' "it's"
python -c 'print(1)'       → shell:python -c 'print(1)'
rm *.pyc                   →
npm test > log             →
echo $HOME                 →
cat .env                   →
cd ..                      →
ls .git                    →
"""


@pytest.mark.parametrize("line", SUGGESTED.strip("\n").split("\n"))
def test_always_offers_the_exact_command_mostly(root: Path, line: str) -> None:
    command, _, expected = (part.strip() for part in line.partition("→"))
    guarded = judge(root)
    rule = guarded.suggest_rule([run(command)])
    assert rule == expected
    if rule:
        allowed = judge(root, f"allow {rule}")
        assert decision(allowed, run(command)) == "allow"
        if not rule.endswith(" *"):
            assert decision(allowed, run(f"{command} more")) == "ask"


def test_always_offers_what_will_hold_next_time(root: Path, isolated: Path) -> None:
    guarded = judge(root, "ask write:*.lock", mode="edit")
    assert guarded.suggest_rule([write("poetry.lock")]) == ""
    assert guarded.suggest_rule([write(isolated / "x.txt")]) == f"write:{isolated}/x.txt"
    assert guarded.suggest_rule([write(isolated / "x.txt"), write(isolated / "y.txt")]) == ""
    assert guarded.suggest_rule([write("a.py"), write(isolated / "x.txt")]) == f"write:{isolated}/x.txt"
    assert guarded.suggest_rule([FetchIntent("https://docs.python.org/3?x=1")]) == "fetch:docs.python.org"
    assert guarded.suggest_rule([CallIntent("mcp:github/get_issue")]) == "mcp:github/get_issue"


def test_several_asking_parts_name_their_rules(root: Path) -> None:
    guarded = judge(root, "allow shell:ruff *")
    several = [run("npm test && ruff check && git push origin; npm test")]
    assert guarded.suggest_rule(several) == ""
    assert guarded.why_no_rule(several) == "To always allow this, add 2 rules: shell:npm test, shell:git push origin."
    assert guarded.why_no_rule([run("npm test")]) == ""
    assert guarded.why_no_rule([run("npm test && rm *.pyc")]) == ""
    assert guarded.why_no_rule([run(" && ".join(f"make a{n}" for n in range(9)))]).endswith("shell:make a3, ….")


@pytest.mark.parametrize(
    "command",
    [
        "cat ~/notes/x",
        "cat $HOME/notes/x",
        'cat "$HOME"/notes/x',
        "cat ${HOME}/no*/x",
        "cd ~/notes && cat x",
        "cat<~/notes/x",
        "a=~/notes; cat $a/x",
        "tar c --file=- -C ~ notes",
        "sh -c 'cat ~/notes/x'",
    ],
)
def test_denied_home_path_is_denied_in_any_spelling(root: Path, isolated: Path, command: str) -> None:
    notes = isolated / "home" / "notes"
    notes.mkdir()
    (notes / "x").write_text("")
    for mode in ("auto", "yolo"):
        guarded = Judge(MODES[mode], rules("deny read:~/notes/**"), root, confine="unless_allowed")
        if "-C ~ notes" not in command:  # a name behind a directory of its own is nobody's to know
            assert decision(guarded, run(command)) == "ask", mode
        assert decision(guarded, run("cat x~/notes; echo a~")) == "allow"


@pytest.mark.parametrize("command", ["pwd; touch x", "ls && touch x", "touch x; ls", "ls | tee x", "pwd; cd .. && touch x"])
@pytest.mark.parametrize("mode", ["auto", "yolo"])
def test_line_is_as_safe_as_its_parts(root: Path, command: str, mode: str) -> None:
    guarded = Judge(MODES[mode], rules("allow shell:touch *"), root, confine="unless_allowed")
    assert guarded.judge("shell", [run(command)]).source != "safe list"
    assert guarded.judge("shell", [run("pwd; ls")]).source == "safe list"
