"""Finds commands in a line that destroy data irrecoverably, by what a program does with its options.

They ask in every mode except `yolo`, even inside the sandbox, unless a rule of the user names what they do.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence

from wolo.guard.affected_files import UNKNOWN, Check, ExecutionContext, Loss, describe_count, describe_untracked
from wolo.guard.shell.nested_commands import NestedCommand, commands_in
from wolo.guard.shell.parser import ParsedLine
from wolo.guard.shell.words import WRAPPERS, name_of, print_escapes, split_words, unquote, unwrap
from wolo.workspace.root import resolve_path

_MOVES = frozenset({"cd", "pushd", "popd"})


def find_loss(line: ParsedLine, roots: Sequence[str], rules: Sequence[str]) -> str:
    """Reasons for the line to ask, a sentence per destructive part; empty if there is none.

    `rules` are those that allowed its parts. Raises TooComplex.
    """
    if not any(map(_SUSPECT.search, {line.text, unquote(line.text), print_escapes(line.text)})):
        return ""
    commands = commands_in(line.text)
    if line.commands is not None:
        directories = tuple(dict.fromkeys(place for command in line.commands for place in command.directories))
        known = tuple(place for place in directories if place is not None)
        num_moves = sum(command.words[0].text in _MOVES for command in line.commands)
        may_move = sum(each.words[0] in _MOVES for each in commands if each.words) > num_moves  # in text for a shell
        known = known if len(known) == len(directories) and not may_move else ()
        context = ExecutionContext(known, roots, is_alone=len(line.commands) == 1)
    else:
        moves = any(each.words[:1] and each.words[0] in _MOVES for each in commands)
        context = ExecutionContext(() if moves else (str(line.cwd),), roots, is_alone=len(commands) == 1)
    reasons: list[str] = []
    for loss in (loss for each in commands for loss in _unnamed_losses(each, context, rules)):
        command = f"`{' '.join(loss.words)}`"
        if loss.what == UNKNOWN:
            effect = "deletes" if loss.words[0] in _DELETERS else "overwrites"
            reasons.append(f"{command} {effect} files permanently; {UNKNOWN}.")
        else:
            reasons.append(f"{command} cannot be undone: {loss.what}.")
    return " ".join(dict.fromkeys(reasons))


def _unnamed_losses(nested: NestedCommand, context: ExecutionContext, rules: Sequence[str]) -> Iterator[Loss]:
    """Losses that no rule names. Of a wrapper and its inner programs only the first counts: the others repeat the command."""
    for path in nested.emptied:
        if (loss := _redirection_loss(path, context)) and not any(_names(rule, loss) for rule in rules):
            yield loss
    for words in unwrap(nested.words):
        program = name_of(words[0]) if words else ""
        if program.startswith("git-"):
            words, program = ("git", program[4:], *words[1:]), "git"
        if program.startswith("mkfs."):
            program = "mkfs"
        check = _CHECKS.get(program)
        loss = check([program, *words[1:]], context) if check else None
        if loss and not any(_names(rule, loss) for rule in rules):
            yield loss
            return


def _names(rule: str, loss: Loss) -> bool:
    """Tells whether the author of a rule meant such a command: `git push --force *` does, `git *` does not."""
    words = {word.text for word in split_words(rule.partition(":")[2]) or ()}
    return set(loss.words) <= {*words, *map(name_of, words)}


_TAKE_VALUE = {"truncate": "sr", "shred": "ns", "mv": "tS", "cp": "tS", "install": "tSmog", "ln": "tS", "tee": ""}
"""Short options that take a value."""
_REMOVES_FOUND = frozenset({"-delete", "-fprint", "-fprint0", "-fprintf", "-fls"})
_RUNS_FOUND = frozenset({"-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch"})
_DELETERS = frozenset({"rm", "unlink", "srm", "grm"})


def _redirection_loss(word: str, context: ExecutionContext) -> Loss | None:
    """The loss by a redirection that truncates a file."""
    paths = context.existing_files(word)
    if paths is None:
        return Loss((">",), UNKNOWN)
    full = [path for path in paths if os.path.isfile(path) and os.path.getsize(path)]  # noqa: PTH113, PTH202  # text all along
    return Loss((">",), f"{_list_names(full)} would be emptied") if full else None


def _has(words: Sequence[str], letters: str, *names: str) -> bool:
    """Tells whether an option is present: alone, in a cluster, or as an abbreviation of its long name."""
    for word in words:
        if word == "--":
            return False
        if word.startswith("--"):
            given = word.partition("=")[0]
            if any(name == given or (len(given) > 4 and name.startswith(given)) for name in names):
                return True
        elif word.startswith("-") and set(letters) & set(re.split(r"[=:/.]", word[1:])[0]):
            return True
    return False


def _operands(words: Sequence[str], take_value: str = "") -> list[str]:
    operands: list[str] = []
    rest = list(words[1:])
    while rest:
        word = rest.pop(0)
        if word == "--":
            return [*operands, *rest]
        if not word.startswith("-") or word == "-":
            operands.append(word)
        elif not word.startswith("--") and word[-1] in take_value and rest:
            rest.pop(0)
    return operands


def _rm(words: Sequence[str], context: ExecutionContext) -> Loss | None:
    named = _operands(words)
    paths = _all_existing(named, context)
    if paths is None or not named:
        return Loss((words[0],), UNKNOWN)
    if _has(words[1:], "rR", "--recursive"):
        if not paths:
            return None if context.is_alone else Loss((words[0],), UNKNOWN)
        return Loss((words[0],), f"{_list_names(paths)}: {describe_count(paths, context.index)}")
    lost = [path for path in paths if not _is_in_git(path, context)]
    return Loss((words[0],), f"git cannot restore {_list_names(lost)}") if lost else None


def _replaces(words: Sequence[str], context: ExecutionContext) -> Loss | None:
    """For mv, cp, install and ln where the target exists."""
    if _has(words[1:], "nbi", "--no-clobber", "--backup", "--interactive") or (
        words[0] == "ln" and not _has(words[1:], "f", "--force")
    ):
        return None
    named = _operands(words, _TAKE_VALUE[words[0]])
    goal = _target_folder(words) or (named.pop() if len(named) > 1 else "")
    if not goal:
        return None if named else Loss((words[0],), UNKNOWN)
    goals = context.existing_files(goal)
    if goals is None:
        return Loss((words[0],), UNKNOWN) if "$" not in goal and context.directories else None
    replaced = [path for path in goals if not os.path.isdir(path)]  # noqa: PTH112  # text all along
    into = [path for path in goals if os.path.isdir(path)]  # noqa: PTH112
    replaced += [path for folder in into for each in named if (path := f"{folder}/{_last_part(each)}") and os.path.isfile(path)]  # noqa: PTH113
    lost = [path for path in replaced if words[0] == "mv" or not _is_in_git(path, context)]
    return Loss((words[0],), f"{_list_names(lost)} would be replaced") if lost else None


def _overwrites(words: Sequence[str], context: ExecutionContext) -> Loss | None:
    """For truncate and shred of existing files."""
    if words[0] == "truncate" and any(word.startswith(("+", "-s+", "--size=+")) for word in words):
        return None
    named = _operands(words, _TAKE_VALUE[words[0]])
    paths = _all_existing(named, context)
    if paths is None or not named:
        return Loss((words[0],), UNKNOWN)
    return Loss((words[0],), f"the content of {_list_names(paths)} would be lost") if paths else None


def _dd(words: Sequence[str], context: ExecutionContext) -> Loss | None:
    goals = [word[3:] for word in words if word.startswith("of=")]
    paths = _all_existing(goals, context)
    if paths is None:
        return Loss(("dd",), UNKNOWN)
    return Loss(("dd",), f"{_list_names(paths)} would be overwritten") if paths else None


def _find(words: Sequence[str], _: ExecutionContext) -> Loss | None:
    telling: list[str] = []
    effects: list[str] = []
    for at, word in enumerate(words):
        if word in _REMOVES_FOUND:
            telling.append(word)
            effects.append("it deletes or replaces every file found")
        elif word in _RUNS_FOUND:
            rest = list(map(name_of, words[at + 1 :]))
            rest = rest[: 8 if rest and rest[0] in WRAPPERS else 1]
            if program := next((name for name in rest if name in _ON_WHATEVER), ""):
                telling += [word, program]
                effects.append(f"it runs {program} on every file found")
    return Loss((words[0], *telling), " and ".join(dict.fromkeys(effects))) if telling else None


def _whole_device(words: Sequence[str], _: ExecutionContext) -> Loss | None:
    return Loss((words[0],), "it overwrites whole files or disks")


def _with_option(*names: str, letters: str = "") -> Check:
    def check(words: Sequence[str], _: ExecutionContext) -> Loss | None:
        if not _has(words[1:], letters, *names):
            return None
        option = next((word for word in words[1:] if _has([word], letters, *names)), "")
        return Loss((words[0], option), "it deletes files")

    return check


def _all_existing(words: Sequence[str], context: ExecutionContext) -> list[str] | None:
    existing: list[str] = []
    for word in words:
        paths = context.existing_files(word)
        if paths is None:
            return None
        existing += paths
    return existing


def _is_in_git(path: str, context: ExecutionContext) -> bool:
    folder, _, name = path.rpartition("/")
    return context.index.has_unchanged(f"{resolve_path(folder or '/')}/{name}")


def _target_folder(words: Sequence[str]) -> str:
    for at, word in enumerate(words[1:], start=1):
        if word in ("-t", "--target-directory") and at + 1 < len(words):
            return words[at + 1]
        if word.startswith("--target-directory="):
            return word.partition("=")[2]
        if word.startswith("-t") and len(word) > 2:
            return word[2:]
    return ""


def _last_part(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2]


def _list_names(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - 3:,} more" if len(paths) > 3 else ""
    return ", ".join(map(_last_part, paths[:3])) + more


_GIT_OPTIONS_WITH_VALUE = frozenset(
    {"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--super-prefix", "--config-env"}
)
"""Options of git itself that take a value."""
_HISTORY = "unreferenced commits would be lost"


def _git(words: Sequence[str], context: ExecutionContext) -> Loss | None:
    rest = list(words[1:])
    while rest and rest[0].startswith("-"):
        option = rest.pop(0)
        if option in _GIT_OPTIONS_WITH_VALUE and rest:
            value = rest.pop(0)
            name, _, meaning = value.partition("=")
            if option == "-c" and name.lower().startswith("alias."):  # `-c alias.x="reset --hard" x`
                inner = meaning.lstrip("!").split()
                if loss := _git(inner if inner[:1] == ["git"] else ["git", *inner], context):
                    return loss
    if not rest:
        return None
    check = _GIT_COMMANDS.get(rest[0])
    return check(rest, context) if check else None


def _clean(words: Sequence[str], context: ExecutionContext) -> Loss | None:
    if _has(words[1:], "n", "--dry-run"):
        return None
    return Loss(("git", "clean"), f"it deletes untracked files, here {describe_untracked(context.index)}")


def _checkout(words: Sequence[str], context: ExecutionContext) -> Loss | None:
    if option := _first(words, "f", "--force", "--ours", "--theirs", "--pathspec-from-file"):
        return Loss(("git", "checkout", option), _changes(context))
    if "--" in words and words[-1] != "--":
        return Loss(("git", "checkout", "--"), _changes(context))
    named = [word for word in _operands(words, "bB") if word[:1] == ":" or "$" in word or context.existing_files(word)]
    if named and not _has(words[1:], "bB", "--orphan"):
        return Loss(("git", "checkout", named[0]), _changes(context))
    return None


def _restore(words: Sequence[str], context: ExecutionContext) -> Loss | None:
    if _has(words[1:], "S", "--staged") and not _has(words[1:], "W", "--worktree"):
        return None
    return Loss(("git", "restore"), _changes(context))


def _git_rm(words: Sequence[str], context: ExecutionContext) -> Loss | None:
    if _has(words[1:], "", "--cached") or not (option := _first(words, "f", "--force")):
        return None
    return Loss(("git", "rm", option), _changes(context))


def _push(words: Sequence[str], _: ExecutionContext) -> Loss | None:
    option = _first(words, "fd", "--force", "--force-with-lease", "--delete", "--mirror", "--prune")
    telling = option or next((word for word in words[1:] if word[:1] in ("+", ":")), "")
    return Loss(("git", "push", telling), "commits of others on the remote would be replaced or deleted") if telling else None


def _always(what: str, *actions: str) -> Check:
    """A command that always destroys; with `actions`, only if one of them is its first argument."""

    def check(words: Sequence[str], _: ExecutionContext) -> Loss | None:
        if actions and words[1:2] not in [[action] for action in actions]:
            return None
        return Loss(("git", *words[: 2 if actions else 1]), what)

    return check


def _git_with_option(letters: str, *names: str, what: str = "", action: str = "") -> Check:
    """A command that destroys if one of these options is present. `what` defaults to uncommitted changes."""

    def check(words: Sequence[str], context: ExecutionContext) -> Loss | None:
        if action and words[1:2] != [action]:
            return None
        option = _first(words, letters, *names)
        said = (words[0], action, option) if action else (words[0], option)
        return Loss(("git", *said), what or _changes(context)) if option else None

    return check


def _other_systems(**options: tuple[str, tuple[str, ...]]) -> Check:
    """Mercurial and Subversion: each command with the options that make it destructive (none: always)."""

    def check(words: Sequence[str], _: ExecutionContext) -> Loss | None:
        for command, (letters, names) in options.items():
            if command in words[1:] and (not (letters or names) or _has(words[1:], letters, *names)):
                return Loss((words[0], command), "uncommitted changes would be lost")
        return None

    return check


def _first(words: Sequence[str], letters: str, *names: str) -> str:
    """The option as written; empty if absent."""
    until = words.index("--") if "--" in words else len(words)
    return next((word for word in words[1:until] if _has([word], letters, *names)), "")


def _changes(context: ExecutionContext) -> str:
    changed = len(context.index.list_changes()) if context.directories else 0
    files = f"{changed:,} file{'' if changed == 1 else 's'}"
    return f"uncommitted changes to {files} would be lost" if changed else "uncommitted changes would be lost"


_GIT_COMMANDS: Mapping[str, Check] = {
    "branch": _git_with_option("DMCf", "--force", what=_HISTORY),
    "checkout": _checkout,
    "checkout-index": _git_with_option("f", "--force"),
    "clean": _clean,
    "filter-branch": _always("it rewrites the whole history"),
    "filter-repo": _always("it rewrites the whole history"),
    "gc": _git_with_option("", "--prune", what=_HISTORY),
    "prune": _always(_HISTORY),
    "push": _push,
    "read-tree": _git_with_option("u", "--reset"),
    "reflog": _always(_HISTORY, "expire", "delete", "drop"),
    "reset": _git_with_option("", "--hard", "--merge"),
    "restore": _restore,
    "rm": _git_rm,
    "stash": _always("stashed changes would be lost", "drop", "clear"),
    "submodule": _git_with_option("f", "--force", what="changes in the submodule would be lost", action="deinit"),
    "switch": _git_with_option("fC", "--force", "--discard-changes", "--force-create"),
    "symbolic-ref": _git_with_option("d", "--delete", what=_HISTORY),
    "tag": _git_with_option("df", "--delete", "--force", what=_HISTORY),
    "update-ref": _git_with_option("d", "--delete", "--stdin", what=_HISTORY),
    "worktree": _git_with_option("f", "--force", what="changes in that worktree would be lost", action="remove"),
}
_VERSION_CONTROL: Mapping[str, Check] = {
    "git": _git,
    "hg": _other_systems(
        purge=("", ()), clean=("", ()), revert=("", ()), strip=("", ()), update=("C", ("--clean",)), up=("C", ("--clean",))
    ),
    "svn": _other_systems(revert=("", ()), cleanup=("", ("--remove-unversioned", "--remove-ignored"))),
}
_CHECKS: Mapping[str, Check] = {
    **_VERSION_CONTROL,
    **dict.fromkeys(sorted(_DELETERS), _rm),
    **dict.fromkeys(("mv", "cp", "install", "ln"), _replaces),
    **dict.fromkeys(("truncate", "shred"), _overwrites),
    **dict.fromkeys(("find", "gfind", "fd", "fdfind"), _find),
    **dict.fromkeys(
        ("mkfs", "mke2fs", "mkswap", "wipefs", "blkdiscard", "fdisk", "sfdisk", "parted", "sgdisk", "wipe"), _whole_device
    ),
    "dd": _dd,
    "rsync": _with_option("--delete", "--delete-before", "--delete-after", "--delete-excluded", "--remove-source-files"),
    "tar": _with_option("--remove-files"),
    "zip": _with_option("--move", letters="m"),
}
_ON_WHATEVER = frozenset({"rm", "unlink", "srm", "grm", "shred", "truncate", "dd", "mv", "wipe", "git"})
_SUSPECT = re.compile(rf"(?<![\w.-])(?:{'|'.join(map(re.escape, _CHECKS))}|mkfs|eval|\$')|[>*?]|\$\(|`|\\x", re.IGNORECASE)
"""A text without any of these is not parsed."""
