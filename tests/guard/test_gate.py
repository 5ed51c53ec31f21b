"""The gate as a whole: hundreds of command lines, what each mode makes of them, and what bash really does."""

from __future__ import annotations

import hashlib
import os
import subprocess
from pathlib import Path

import pytest

from wolo.guard.intents import RunIntent
from wolo.guard.judge import Judge
from wolo.guard.modes import MODES
from wolo.guard.rules import Rule, parse_rule

MARKER = "M"

SAFE = r"""
pwd
pwd -P
ls
ls -la
ls -la src
ls -1R src
ls --all --human-readable
ls -- src
cat a.txt
cat -n a.txt src/b.py
cat 'with blank.txt'
cat "with blank.txt"
cat ./src/../a.txt
cat src//b.py
cat missing.txt
cat größe.txt
head a.txt
head -5 a.txt
head -n 5 a.txt
head -n5 a.txt
head -c 100 a.txt
tail -n +3 a.txt
tail -20 a.txt
wc -l a.txt src/b.py
wc
nl -ba a.txt
stat a.txt
stat -c '%s %n' a.txt
cut -d: -f1 a.txt
cut -f 1,2 a.txt
echo hello
echo -n hello
echo 'single $HOME `id`'
echo -e 'a\tb'
true
false
whoami
uname -a
which ls
basename a.txt .txt
dirname src/b.py
tr a-z A-Z
tr -d '\r'
tr / _
grep hello a.txt
grep -n 'hel*o$' a.txt
grep -e hello -e world a.txt
grep -A3 -B 3 hello a.txt
grep --line-number --ignore-case HELLO a.txt
grep -c / a.txt
cat a.txt | grep hello | wc -l
ls && pwd
ls; pwd; whoami
ls || true
cat a.txt | head -3 | tail -1
cat a.txt⏎ls
ls src && cat a.txt | tr a-z A-Z
"""

NOT_SAFE = r"""
ls /
ls ..
ls ~
ls *
ls [ab].txt
ls ?.txt
ls $HOME
ls src/../..
ls out
ls -L out
cat /etc/passwd
cat ../x
cat out/x
cat *.txt
cat a.tx?
cat .env
cat .git/config
cat sub/.env
cat link-to-env
cat src/deep/../../../x
head -n 5 /etc/passwd
head --lines=5 a.txt
tail -f a.txt
tail --follow a.txt
tail --pid 1 a.txt
wc --files0-from names
wc --files0-from=names
wc -l < a.txt
stat -L out
grep -f /etc/passwd a.txt
grep -f.env a.txt
grep -nf.env a.txt
grep --file .env a.txt
grep --fi .env a.txt
grep -r hello .
grep -R hello
grep -dr hello .
grep -drecurse hello .
grep --recursive hello .
grep --rec hello .
grep --directories recurse hello
grep --include='*.py' hello a.txt
grep hello .env
grep -e x /etc/passwd
cut --output-delimiter=x -f1 a.txt
/bin/ls
./ls
\ls
l\s
'' ls
ls -la > /dev/null
ls 2>&1
cat < a.txt
cat <<< x
cat <<EOF⏎x⏎EOF
ls &
(ls)
{ ls; }
! ls
time ls
A=1 ls
LC_ALL=C ls
if ls; then pwd; fi
for f in a; do cat a.txt; done
ls # comment
echo $HOME
echo "$HOME"
echo ~
echo {a,b}
echo a\ b
echo `pwd`
echo $(pwd)
cd src
cd src && ls
cd .. && ls
pushd src
git status
git log
git diff
git --version
find .
rg hello
sed -n 1p a.txt
awk 1 a.txt
sort a.txt
date
env
printenv
less a.txt
file a.txt
tree
du -sh
jq . a.json
python --version
npm test
make
test -e a.txt
[ -e a.txt ]
printf x
type ls
command ls
exec ls
env ls
nice ls
xargs ls
sudo ls
watch ls
timeout 5 ls
bash -c ls
eval ls
source a.txt
. a.txt
ls-la
cat a.txt | sort
cat a.txt | tee
ls⏎make
ls;make
ls|sh
pytest -q | tail -n 20
"""

HOSTILE = r"""
! touch M
! ls && touch M
! ls ; touch M
! ls;touch M
! ls | touch M
! ls || touch M; touch M
! ls & touch M
! ls⏎touch M
! cat missing || touch M
! echo $(touch M)
! echo `touch M`
! echo "$(touch M)"
! echo "`touch M`"
! echo "a$(touch M)b"
! cat <(touch M)
! echo ${x:-$(touch M)}
! echo $((a[$(touch M)]))
! echo "${x:-`touch M`}"
! cat <<EOF⏎$(touch M)⏎EOF
! cat <<EOF⏎`touch M`⏎EOF
! cat <<< $(touch M)
! cat <<< "`touch M`"
! echo x > M
! echo x >> M
! echo x >| M
! echo x &> M
! echo x &>> M
! ls missing 2> M
! cat <> M
! echo x 1>M
! echo x >M
! >M
! echo x | tee M
! ls > >(tee M)
! (touch M)
! { touch M; }
! ! touch M
! if touch M; then ls; fi
! while touch M; do break; done
! for i in $(touch M); do ls; done
! case $(touch M) in x) ;; esac
! f() { touch M; }; f
! A=$(touch M) ls
! A=$(touch M)
! export A=$(touch M)
! test -v 'a[$(touch M)]'
! [ -v 'a[$(touch M)]' ]
! [[ 'a[$(touch M)]' -eq 1 ]]
! printf -v 'a[$(touch M)]' x
! read 'a[$(touch M)]' <<< x
! eval 'touch M'
! bash -c 'touch M'
! sh -c 'touch M'
! exec touch M
! command touch M
! env touch M
! nice touch M
! nohup touch M
! timeout 5 touch M
! xargs touch M
! echo M | xargs touch
! find . -maxdepth 0 -exec touch M ';'
! find . -maxdepth 0 -exec touch M {} +
! find . -maxdepth 0 -fprint M
! sort -o M a.txt
! sed -n 'w M' a.txt
! sed w\ M a.txt
! awk 'BEGIN{system("touch M")}'
! awk 'BEGIN{print "x" > "M"}'
! trap 'touch M' EXIT; ls
! trap 'touch M' EXIT⏎ls
! t\ouch M
! 'touch' M
! "touch" M
! to''uch M
! t"ou"ch M
! $'touch' M
! x=touch; $x M
! {touch,M}
! ls "$(touch M)" 2>/dev/null
! echo 'a' "$(touch M)"
! ls;#⏎touch M
! ls #⏎touch M
! cat a.txt;touch M
! ls -la|touch M
! ls -la||touch M;touch M
! cd src && touch ../M
! cd src; touch ../M
! pushd src && touch ../M
! touch M # ls
! time touch M
! coproc touch M; wait
! alias ls='touch M'⏎shopt -s expand_aliases⏎ls
! printf 'touch M' | sh
! cp a.txt M
! ln -s a.txt M
! mkdir M
! dd if=a.txt of=M
! install a.txt M
! python3 -c 'open("M","w")'
! printf -v PATH ./evil; ls
! hash -p ./evil/ls ls; ls
! shopt -s extglob⏎echo @(a) $(touch M)
! declare -x PATH=./evil; ls
! mapfile -t -C 'touch M; :' -c 1 x < a.txt
! compgen -C 'touch M' x
! builtin eval 'touch M'
! source evil/ls
! . evil/ls
! bash evil/ls
! ./evil/ls
"""


def table(text: str) -> list[str]:
    return [line.replace("⏎", "\n") for line in text.strip("\n").split("\n")]


HOSTILE_LINES = [line[2:] for line in table(HOSTILE)]


@pytest.fixture
def root() -> Path:
    """What the commands of the tables find; `evil/ls` is a program that leaves the marker."""
    root = Path.cwd()
    (root / "src" / "deep").mkdir(parents=True)
    (root / "sub").mkdir()
    for name in ("a.txt", "with blank.txt", "src/b.py", "größe.txt", "names", "a.json", ".env", "sub/.env"):
        (root / name).write_text("hello\nworld\n")
    (root / ".git").mkdir()
    (root / ".git" / "config").write_text("[core]\n")
    (root / "out").symlink_to("..")
    (root / "link-to-env").symlink_to(".env")
    (root / "evil").mkdir()
    (root / "evil" / "ls").write_text(f"#!/bin/sh\n/usr/bin/touch {root}/{MARKER}\n")
    (root / "evil" / "ls").chmod(0o755)
    return root


def judge(root: Path, mode: str, *rules: Rule) -> Judge:
    return Judge(MODES[mode], rules, root, confine="unless_allowed" if mode == "auto" else "never")


def verdict(root: Path, mode: str, command: str, *rules: Rule) -> str:
    return judge(root, mode, *rules).judge("shell", [RunIntent(command, root)]).decision


def run_in_bash(command: str, root: Path) -> None:
    """As the shell tool runs it, without walls."""
    subprocess.run(
        ["bash", "--noprofile", "--norc", "-c", command],
        cwd=root,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=20,
        check=False,
        env={"PATH": os.environ["PATH"], "HOME": str(root)},
    )


def fingerprint(root: Path) -> str:
    names = sorted(str(path.relative_to(root)) for path in root.rglob("*"))
    contents = [(root / name).read_bytes() for name in names if (root / name).is_file()]
    return hashlib.sha256("\0".join(names).encode() + b"\0".join(contents)).hexdigest()


def test_the_tables_are_long_enough() -> None:
    assert len(table(SAFE)) + len(table(NOT_SAFE)) + len(HOSTILE_LINES) >= 250


@pytest.mark.parametrize("mode", ["plan", "ask", "edit", "auto", "yolo"])
def test_safe_commands_run_unasked_in_every_mode(root: Path, mode: str) -> None:
    for command in table(SAFE):
        assert verdict(root, mode, command) == "allow", command


def test_safe_commands_change_nothing(root: Path) -> None:
    before = fingerprint(root)
    for command in table(SAFE):
        run_in_bash(command, root)
        assert fingerprint(root) == before, command


@pytest.mark.parametrize("command", table(NOT_SAFE))
def test_what_is_not_on_the_list_asks_and_is_refused_in_plan(root: Path, command: str) -> None:
    assert verdict(root, "ask", command) == "ask"
    assert verdict(root, "edit", command) == "ask"
    assert verdict(root, "plan", command) in ("deny", "ask")
    assert judge(root, "plan").judge("shell", [RunIntent(command, root)]).without_person().decision == "deny"


@pytest.mark.parametrize("command", HOSTILE_LINES)
def test_no_way_around_the_list_is_allowed(root: Path, command: str) -> None:
    assert verdict(root, "plan", command) == "deny"
    assert verdict(root, "ask", command) == "ask"
    assert verdict(root, "edit", command) == "ask"
    found = judge(root, "auto").judge("shell", [RunIntent(command, root)])
    assert found.decision == "ask" or found.confined
    everything = parse_rule("shell:ls *", "allow"), parse_rule("shell:echo *", "allow"), parse_rule("shell:cat *", "allow")
    assert verdict(root, "edit", command, *everything) == "ask"


@pytest.mark.parametrize("command", HOSTILE_LINES)
def test_each_of_them_does_harm_where_nobody_asks(root: Path, command: str) -> None:
    """Otherwise the test above would prove nothing."""
    assert verdict(root, "yolo", command) == "allow"
    run_in_bash(command, root)
    assert os.path.lexists(root / MARKER)


# Lines of several commands


CHAINS = r"""
allow | cd src && git diff | head -30
allow | cd src && git diff
allow | cd src && git diff && cd .. && git diff
ask   | cd src; git diff; cd ..; git diff
allow | git diff | grep hello
allow | git diff | tail -n 20
allow | cd ./src/.. && git diff
allow | cd src⏎git diff⏎
ask   | cd ../.. && git diff
ask   | cd .. && ls
ask   | cd / && git diff
ask   | cd && git diff
ask   | cd - && git diff
ask   | cd out && git diff
ask   | cd src && cd ../.. && git diff
ask   | cd .git && git diff
deny  | cd $X && git diff $Y
ask   | git diff && npm test
ask   | git diff | sh
ask   | git diff > x
ask   | git diff | cat a.txt
ask   | cd src && cat ../../x
ask   | cd src && cat ../.env
ask   | cd s* && git diff
ask   | git diff & ls
deny  | cd src && git push
deny  | ls | git push
deny  | ls; git diff; git push origin
deny  | git diff > x; git push
deny  | echo $(git push)
"""


@pytest.mark.parametrize("line", CHAINS.strip("\n").split("\n"))
def test_every_part_of_a_line_is_judged_where_it_would_run(root: Path, line: str) -> None:
    rules = [parse_rule(text, "allow") for text in ("shell:cd *", "shell:git diff *", "shell:head *")]
    rules.append(parse_rule("shell:git push *", "deny"))
    expected, _, command = line.partition(" | ")
    assert verdict(root, "ask", command.replace("⏎", "\n"), *rules) == expected.strip()


def test_over_the_limit_of_parts_a_deny_still_holds(root: Path) -> None:
    rules = parse_rule("shell:git push *", "deny"), parse_rule("shell:ls *", "allow")
    assert verdict(root, "ask", ";".join(["ls"] * 60), *rules) == "allow"
    assert verdict(root, "ask", ";".join(["ls"] * 59 + ["git push"]), *rules) == "deny"
    for mode in ("ask", "auto", "yolo"):
        assert verdict(root, mode, ";".join(["ls"] * 500), *rules) == "deny"
        assert verdict(root, mode, ";".join(["ls"] * 500 + ["git push"]), *rules) == "deny"


def test_a_program_of_the_workspace_makes_no_command_safe(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An active environment puts its own directory first, and the model can write there."""
    monkeypatch.setenv("PATH", f"{root / 'evil'}:{os.environ['PATH']}")
    assert verdict(root, "ask", "ls") == "ask"
    assert verdict(root, "ask", "wc a.txt") == "allow"
    monkeypatch.setenv("PATH", f"evil::{os.environ['PATH']}")
    assert verdict(root, "ask", "ls") == "ask"


# Inside the walls

CONFINED = r"""
run     | make
run     | npm test > log 2>&1
run     | for i in 1 2; do echo $i; done
run     | cat <<EOF > notes.md⏎see .env.example⏎EOF
run     | cat > notes.md <<'EOF'⏎put the key into .env⏎EOF
run     | cd .. && ls
run     | cd /tmp && make
run     | cat /etc/hosts
run     | python3 -c 'print(1)' | tee x
run     | git status
run     | find . -path ./.git -prune -o -print
run     | grep -rn hello . --exclude-dir=.git
run     | echo $((1+1)) $HOME
run     | ls
ask     | cat .env
ask     | cat .env > x
ask     | x=.env; cat $x
ask     | cat sub/../.env | head
ask     | cat .e*
ask     | cat ~/.ssh/id_rsa
ask     | cat "$HOME/.aws/credentials"
ask     | echo x > .git/config
ask     | cp a.txt .git/hooks/pre-commit
ask     | echo x >> .bashrc
ask     | cat <<EOF | sh⏎cat .env⏎EOF
ask     | git reset --hard
ask     | rm -rf src
ask     | (cd src && rm -rf deep)
"""


@pytest.mark.parametrize("line", CONFINED.strip("\n").split("\n"))
def test_a_confined_command_asks_only_for_what_walls_cannot_hold(root: Path, line: str) -> None:
    expected, _, command = line.partition(" | ")
    found = judge(root, "auto").judge("shell", [RunIntent(command.replace("⏎", "\n"), root)])
    assert found.decision == ("ask" if expected.strip() == "ask" else "allow"), found.reason
    assert found.confined or found.decision == "ask"


def test_what_a_rule_allows_runs_free_and_all_else_inside(root: Path) -> None:
    rule = parse_rule("shell:make *", "allow")
    expected = {
        "make": False,
        "make | head -3": False,
        "make && ls": False,
        "make && npm test": True,
        "ls": True,
        "npm test": True,
    }
    for command, confined in expected.items():
        found = judge(root, "auto", rule).judge("shell", [RunIntent(command, root)])
        assert (found.decision, found.confined) == ("allow", confined), command


def test_ask_and_deny_rules_hold_inside_the_walls(root: Path) -> None:
    rules = parse_rule("shell:curl *", "deny"), parse_rule("shell:npm publish *", "ask"), parse_rule("read:names", "deny")
    assert verdict(root, "auto", "curl x", *rules) == "deny"
    assert verdict(root, "auto", "x=1; curl $x > y", *rules) == "deny"
    assert verdict(root, "auto", "make && npm publish", *rules) == "ask"
    assert verdict(root, "auto", "cat names", *rules) == "ask"
    assert verdict(root, "auto", "cat < names > x", *rules) == "ask"
