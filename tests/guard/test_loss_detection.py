"""Commands that destroy what nothing brings back: found however they are spelt, and what they would destroy is said."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from wolo.guard.intents import RunIntent
from wolo.guard.judge import Judge
from wolo.guard.loss_detection import find_loss
from wolo.guard.modes import MODES
from wolo.guard.rules import parse_rule
from wolo.guard.shell.parser import read_line


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with files that git keeps, some that it does not, and one that was changed. Nothing here runs."""
    root = tmp_path_factory.mktemp("repository")
    for path in ("kept.txt", "changed.txt", "src/kept.py"):
        (root / path).parent.mkdir(exist_ok=True)
        (root / path).write_text("content\n")
    hardened = ("-c", "user.name=t", "-c", "user.email=t@t")
    for arguments in (["init", "-q"], ["add", "."], [*hardened, "commit", "-qm", "first"]):
        subprocess.run(["git", *arguments], cwd=root, check=True)
    (root / "changed.txt").write_text("content, and more\n")
    (root / ".gitignore").write_text("build\n")
    for path in ("loose.txt", "build/a.o", "build/b.o", "a b.txt"):
        (root / path).parent.mkdir(exist_ok=True)
        (root / path).write_text("x")
    (root / "link").symlink_to("build")
    return root


def loss(root: Path, command: str, *rules: str) -> str:
    return find_loss(read_line(command, root), [os.path.realpath(root)], rules)


ASKS = r"""
git reset --hard
git reset --hard HEAD~3
git reset HEAD~1 --hard
git reset --har
git reset --merge
git -C . reset --hard
git -c core.pager=cat --no-pager -C src reset --hard
git --git-dir=.git --work-tree . reset --hard
git --git-dir .git reset --hard
git -c alias.x='reset --hard' x
git -c alias.x='!git reset --hard' x
GIT_DIR=.git git reset --hard
env -i PATH=/bin git reset --hard
nohup git reset --hard
timeout 5 git reset --hard
sudo -u me git reset --hard
command git reset --hard
exec git reset --hard
/usr/bin/git reset --hard
/usr/lib/git-core/git-reset --hard
"git" "reset" "--hard"
g\it reset --hard
'gi't reset --ha''rd
$'git' reset --hard
$'\x67it' reset --hard
x=git; $x reset --hard
y='git reset --hard'; $y
sh -c 'git reset --hard'
bash -lc "cd src && git reset --hard"
eval 'git reset --hard'
eval git reset --hard
echo 'git reset --hard' | sh
bash <<< 'git reset --hard'
bash <<'EOF'⏎git reset --hard⏎EOF
cat <<EOF | bash⏎git reset --hard⏎EOF
$'\162m' loose.txt
$'r\155' -rf build
pushd src; rm kept.py
pushd src && rm kept.py
pushd src; pushd ..; rm loose.txt
popd; rm kept.py
(cd src && rm kept.py)
if cd src; then rm kept.py; fi
f() { git reset --hard; }; f
bash -c "rm 'a b.txt'"
bash -c "sh -c \"rm 'a b.txt'\""
bash -c 'git	reset	--hard'
sh -c 'git${IFS}reset${IFS}--hard;git	reset	--hard'
if true; then git reset --hard; fi
for i in 1; do git reset --hard; done
(git reset --hard)
{ git reset --hard; }
ls && git reset --hard
ls; git reset --hard
ls | git reset --hard
git status⏎git reset --hard
echo $(git reset --hard)
echo "`git reset --hard`"
cat <(git reset --hard)
git reset --hard > /dev/null 2>&1 &
! git reset --hard
time git reset --hard
git clean -fd
git clean -fdX
git clean -xdf
git clean --force -d
git clean -d -f
git -c clean.requireForce=false clean -d
git checkout -- .
git checkout -- changed.txt
git checkout .
git checkout changed.txt
git checkout HEAD~1 -- src
git checkout -f main
git checkout --force
git switch --discard-changes main
git switch -f main
git restore .
git restore changed.txt
git restore --staged --worktree .
git restore -SW .
git stash drop
git stash clear
git stash drop stash@{2}
git branch -D topic
git branch -d -f topic
git branch --delete --force topic
git branch -f main HEAD~3
git tag -d v1
git push --force
git push -f origin main
git push origin main --force
git push --force-with-lease
git push origin +main
git push origin :topic
git push --delete origin topic
git push --mirror
git reflog expire --all --expire=now
git reflog delete HEAD@{1}
git gc --prune=now
git gc --aggressive --prune=all
git prune
git filter-branch --tree-filter true
git filter-repo --path x
git worktree remove --force ../w
git worktree remove -f ../w
git update-ref -d refs/heads/main
git submodule deinit -f lib
git checkout-index -f -a
git read-tree -u --reset HEAD
git rm -f changed.txt
git rm -rf src
rm loose.txt
rm -f loose.txt
rm changed.txt
rm -r build
rm -rf build
rm -r -f build
rm --recursive build
rm --recurs build
rm -rf -- build
rm build -rf
rm -rf ./build/
rm -Rf src
rm -rf *
rm *.txt
rm -rf $DIR
rm -rf "$DIR"/x
rm -rf ~/x
rm 'a b.txt'
r""m loose.txt
/bin/rm loose.txt
RM=1 rm loose.txt
busybox rm loose.txt
printf '%b' 'ls\nrm -rf build\n' | bash
printf 'ls\nrm -rf build\n' | sh
echo -e 'ls\n\0162m -rf build' | bash
echo 'rm -rf build' | ssh localhost
bash -c $'ls\nrm -rf build'
bash -c 'cd sub && rm deep.txt'
unlink loose.txt
{rm,-rf,build}
ls | xargs rm
ls | xargs -0 -n1 rm -f
find . -name '*.o' | xargs rm -f
find . -delete
find . -name '*.txt' -delete
find . -type f -exec rm {} ;
find . -type f -exec rm -f {} +
find . -execdir sudo rm {} +
find . -fprint kept.txt
fd -e o -x rm
fd -e o -X rm -f
> kept.txt
>kept.txt
>| kept.txt
: > kept.txt
true > kept.txt
cat /dev/null > kept.txt
echo -n > kept.txt
printf '' > kept.txt
ls && > kept.txt
: > $FILE
mv kept.txt loose.txt
mv loose.txt kept.txt
mv -f loose.txt kept.txt
mv -t src src/../kept.py loose.txt ; mv loose.txt changed.txt
mv src/kept.py .  && mv loose.txt kept.txt
cp loose.txt changed.txt
cp -f kept.txt loose.txt
install kept.txt loose.txt
ln -sf kept.txt loose.txt
dd if=/dev/zero of=kept.txt
dd if=/dev/zero of=kept.txt conv=notrunc bs=1
shred -u kept.txt
shred kept.txt
truncate -s 0 kept.txt
truncate --size=0 kept.txt
mkfs.ext4 /dev/sda1
mkfs -t ext4 disk.img
wipefs -a /dev/sda
rsync -a --delete src/ build/
rsync -a --del src/ build/
tar czf x.tgz build --remove-files
zip -m x.zip loose.txt
zip -rm x.zip build
hg update --clean
hg revert --all
hg purge
svn revert -R .
parallel rm ::: loose.txt
nice -n 5 rm -rf build
setsid rm -rf build
stdbuf -oL rm -rf build
watch -n1 'rm -rf build'
"""

IS_FINE = r"""
git status
git log --oneline | head
git diff HEAD~1
git add -A && git commit -m 'rm -rf everything'
git commit -m "git reset --hard"
git reset HEAD kept.txt
git reset --soft HEAD~1
git checkout -b topic
git checkout main
git switch topic
git restore --staged kept.txt
git stash
git stash pop
git branch topic
git branch -d topic
git branch --list
git tag v1
git push origin main
git push -u origin topic
git clean -n
git clean -nfd
git clean --dry-run -fd
git gc
git reflog
git worktree remove ../w
git rm --cached kept.txt
git rm kept.txt
git fetch --prune
rm kept.txt
rm src/kept.py
rm nothing-there.txt
rm -rf nothing-there
rm -f nothing-there/*.o
rmdir build
mkdir -p build/x
echo hi > new.txt
: > new.txt
> new.txt
echo hi > kept.txt
python gen.py > kept.txt
echo rm -rf build
grep -rn 'rm -rf' .
cat > notes.md <<'EOF'⏎rm -rf build⏎EOF
cat <<EOF > notes.md⏎git reset --hard⏎EOF
find . -name '*.py'
find . -name x -exec grep y {} +
mv loose.txt moved.txt
mv -n loose.txt kept.txt
cp kept.txt new.txt
cp loose.txt build/
cp -n loose.txt kept.txt
cp src/kept.py kept.py
ln -s kept.txt new
ln kept.txt new
dd if=kept.txt of=new.txt
dd if=kept.txt
truncate -s 10 new.txt
truncate -s +10 kept.txt
rsync -a src/ build/
tar czf x.tgz build
zip -r x.zip build
sed -i s/a/b/ kept.txt
make clean
npm test
python -c 'print(1)'
printf '%s' x > kept.txt
export rm=1
"""


def lines(table: str) -> list[str]:
    return [line.replace("⏎", "\n") for line in table.strip("\n").split("\n")]


@pytest.mark.parametrize("command", lines(ASKS))
def test_irreversible_loss_is_found_in_any_spelling(root: Path, command: str) -> None:
    assert loss(root, command)


@pytest.mark.parametrize("command", lines(IS_FINE))
def test_harmless_command_is_left_alone(root: Path, command: str) -> None:
    assert loss(root, command) == ""


WOULD_VANISH = """
rm -rf build            | build: 2 files, 2 of them not in git
rm -rf src              | src: 1 file, 0 of them not in git
rm -rf .                | at least|files
rm loose.txt            | git cannot restore loose.txt
rm changed.txt loose.txt| git cannot restore changed.txt, loose.txt
git reset --hard        | uncommitted changes to 1 file would be lost
git checkout -- .       | uncommitted changes to 1 file
git clean -fdx          | it deletes untracked files, here 6 files
mv loose.txt kept.txt   | kept.txt would be replaced
> kept.txt              | kept.txt would be emptied
find . -delete          | every file found
rm -rf $DIR             | wolo cannot tell which
"""


@pytest.mark.parametrize("line", WOULD_VANISH.strip().split("\n"))
def test_the_reason_says_what_would_vanish(root: Path, line: str) -> None:
    command, _, said = line.partition("|")
    reason = loss(root, command.strip())
    assert any(each.strip() in reason for each in said.split("|")), reason


@pytest.mark.parametrize(
    ("command", "named"),
    [
        ("rm -rf build && git reset --hard", ["`rm`", "build: 2 files", "`git reset --hard`", "uncommitted changes to 1 file"]),
        ("rm loose.txt; rm changed.txt", ["restore loose.txt", "restore changed.txt"]),
        ("echo $(rm -rf build) | while read x; do git clean -fd; done; > kept.txt", ["`rm`", "`git clean`", "`>`"]),
        ("bash -c 'rm -rf build; git stash drop'", ["`rm`", "`git stash drop`"]),
        ("find . -delete -exec shred {} +", ["`find -delete -exec shred`", "every file found and it runs shred"]),
        ("> kept.txt > loose.txt", ["kept.txt would be emptied", "loose.txt would be emptied"]),
    ],
)
def test_every_destructive_part_is_named(root: Path, command: str, named: list[str]) -> None:
    assert [each for each in named if each not in loss(root, command)] == []


def test_a_destructive_part_is_named_once(root: Path) -> None:
    """Also where a wrapper runs it: the wrapper's words are no second command."""
    assert loss(root, "find . -exec rm {} +").count("cannot be undone") == 1
    assert loss(root, "sudo env rm -rf build; rm -rf build").count("cannot be undone") == 1


def test_destructive_parts_without_rule_alone_are_named(root: Path) -> None:
    said = loss(root, "rm -rf build && git reset --hard", "shell:rm *")
    assert "`git reset --hard`" in said
    assert "`rm`" not in said


def test_scratch_files_of_the_system_are_nobodys_loss(root: Path) -> None:
    with TemporaryDirectory(dir="/tmp", prefix="wolo-test-") as scratch:
        (Path(scratch) / "x").write_text("x")
        assert loss(root, f"rm -rf {scratch}") == ""
        assert loss(root, f"truncate -s 0 {scratch}/x") == ""
        assert loss(root, f"rm -rf {scratch} loose.txt")


def test_a_big_tree_is_counted_within_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wolo.guard.affected_files.MAX_ENTRIES", 100)
    for number in range(150):
        (tmp_path / f"{number}.txt").touch()
    assert "at least 100 files" in loss(tmp_path, f"rm -rf {tmp_path}")


def judge(root: Path, mode: str, *allowed: str, walls: bool = True) -> Judge:
    rules = [parse_rule(text, "allow", "test") for text in allowed]
    return Judge(MODES[mode], rules, root, confine="unless_allowed" if walls else "never")


@pytest.mark.parametrize("command", ["git reset --hard", "rm -rf build", "find . -delete", "> kept.txt"])
def test_only_yolo_takes_the_question_away(root: Path, command: str) -> None:
    for mode in ("ask", "edit", "auto"):
        verdict = judge(root, mode).judge("shell", [RunIntent(command, root)])
        assert verdict.decision == "ask", mode
        assert verdict.without_person().decision == "deny"
    assert judge(root, "plan").judge("shell", [RunIntent(command, root)]).decision == "deny"
    assert judge(root, "yolo").judge("shell", [RunIntent(command, root)]).decision == "allow"


def test_mode_question_names_the_losses_too(root: Path) -> None:
    reason = judge(root, "edit").judge("shell", [RunIntent("rm -rf build", root)]).reason
    assert reason.startswith("This command needs an approval in mode edit. `rm` cannot be undone: build: 2 files")


def test_required_sandbox_stays_despite_any_yes(root: Path) -> None:
    guarded = Judge(MODES["auto"], [parse_rule("shell:make *", "allow")], root, confine="always")
    for command in ("make", "rm -rf build", "cat .env", "ls", "npm test", "echo x > .git/config"):
        assert guarded.judge("shell", [RunIntent(command, root)]).confined, command


def test_yes_to_a_loss_keeps_the_sandbox(root: Path) -> None:
    """It was asked for what it destroys, not for leaving the sandbox."""
    verdict = judge(root, "auto").judge("shell", [RunIntent("rm -rf build", root)])
    assert (verdict.decision, verdict.confined) == ("ask", True)


@pytest.mark.parametrize(
    ("rule", "command", "expected"),
    [
        ("shell:*", "git reset --hard", "ask"),
        ("shell:git *", "git reset --hard", "ask"),
        ("shell:git reset *", "git reset --hard", "ask"),
        ("shell:git reset --hard *", "git reset --hard HEAD", "allow"),
        ("shell:git push *", "git push --force", "ask"),
        ("shell:git push --force *", "git push --force origin", "allow"),
        ("shell:git clean *", "git clean -fd", "allow"),
        ("shell:rm *", "rm -rf build", "allow"),
        ("shell:find *", "find . -delete", "ask"),
        ("shell:find * -delete", "find . -delete", "allow"),
        ("shell:bash *", "bash -c 'rm -rf build'", "ask"),
        ("shell:sudo *", "sudo rm -rf build", "ask"),
        ("shell:sudo rm *", "sudo rm -rf build", "allow"),
        ("shell:make *", "make clean && rm -rf build", "ask"),
    ],
)
def test_naming_rule_lifts_the_question(root: Path, rule: str, command: str, expected: str) -> None:
    for walls in (True, False):
        assert judge(root, "edit", rule, walls=walls).judge("shell", [RunIntent(command, root)]).decision == expected


def test_session_answer_lifts_it_for_this_call(root: Path) -> None:
    guarded = judge(root, "auto")
    intents = [RunIntent("git stash drop", root)]
    guarded.remember("shell", intents, {"command": "git stash drop"}, allowed=True)
    assert guarded.judge("shell", intents, {"command": "git stash drop"}).decision == "allow"
    assert guarded.judge("shell", [RunIntent("git stash clear", root)], {"command": "git stash clear"}).decision == "ask"
