"""What git and its kin would destroy: changes that no commit holds, untracked files, and commits nothing leads to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from wolo.guard.destructive.file_count import Check, Loss, Scene, untracked
from wolo.guard.destructive.files import has, operands

_TAKE_VALUE = frozenset({"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--super-prefix", "--config-env"})
"""Options of git itself that have a value of their own."""
HISTORY = "commits that nothing leads to any more"


def _git(words: Sequence[str], scene: Scene) -> Loss | None:
    rest = list(words[1:])
    while rest and rest[0].startswith("-"):
        option = rest.pop(0)
        if option in _TAKE_VALUE and rest:
            value = rest.pop(0)
            if option == "-c" and (loss := _alias(value, scene)):
                return loss
    if not rest:
        return None
    check = _COMMANDS.get(rest[0])
    return check(rest, scene) if check else None


def _alias(setting: str, scene: Scene) -> Loss | None:
    """`-c alias.x="reset --hard" x` is what it stands for."""
    name, _, meaning = setting.partition("=")
    if not name.lower().startswith("alias."):
        return None
    inner = meaning.lstrip("!").split()
    return _git(inner if inner[:1] == ["git"] else ["git", *inner], scene)


def _clean(words: Sequence[str], scene: Scene) -> Loss | None:
    if has(words[1:], "n", "--dry-run"):
        return None
    return Loss(("git", "clean"), f"it removes what is not in git, here {untracked(scene.index)}")


def _checkout(words: Sequence[str], scene: Scene) -> Loss | None:
    if option := _first(words, "f", "--force", "--ours", "--theirs", "--pathspec-from-file"):
        return Loss(("git", "checkout", option), _changes(scene))
    if "--" in words and words[-1] != "--":
        return Loss(("git", "checkout", "--"), _changes(scene))
    named = [word for word in operands(words, "bB") if word[:1] == ":" or "$" in word or scene.there(word)]
    if named and not has(words[1:], "bB", "--orphan"):
        return Loss(("git", "checkout", named[0]), _changes(scene))
    return None


def _restore(words: Sequence[str], scene: Scene) -> Loss | None:
    if has(words[1:], "S", "--staged") and not has(words[1:], "W", "--worktree"):
        return None
    return Loss(("git", "restore"), _changes(scene))


def _rm(words: Sequence[str], scene: Scene) -> Loss | None:
    if has(words[1:], "", "--cached") or not (option := _first(words, "f", "--force")):
        return None
    return Loss(("git", "rm", option), _changes(scene))


def _push(words: Sequence[str], _: Scene) -> Loss | None:
    option = _first(words, "fd", "--force", "--force-with-lease", "--delete", "--mirror", "--prune")
    telling = option or next((word for word in words[1:] if word[:1] in ("+", ":")), "")
    return Loss(("git", "push", telling), "what others have there would be replaced or gone") if telling else None


def _always(what: str, *actions: str) -> Check:
    """A command that destroys whatever its options are; with `actions` only when the first of them is its next word."""

    def check(words: Sequence[str], _: Scene) -> Loss | None:
        if actions and words[1:2] not in [[action] for action in actions]:
            return None
        return Loss(("git", *words[: 2 if actions else 1]), what)

    return check


def _with_option(letters: str, *names: str, what: str = "", action: str = "") -> Check:
    """A command that destroys when one of these options is there. Without `what` it is what no commit holds."""

    def check(words: Sequence[str], scene: Scene) -> Loss | None:
        if action and words[1:2] != [action]:
            return None
        option = _first(words, letters, *names)
        said = (words[0], action, option) if action else (words[0], option)
        return Loss(("git", *said), what or _changes(scene)) if option else None

    return check


def _kin(**options: tuple[str, tuple[str, ...]]) -> Check:
    """Mercurial and Subversion: a command, and the options that make it destructive (none: it always is)."""

    def check(words: Sequence[str], _: Scene) -> Loss | None:
        for command, (letters, names) in options.items():
            if command in words[1:] and (not (letters or names) or has(words[1:], letters, *names)):
                return Loss((words[0], command), "changes that no commit holds")
        return None

    return check


def _first(words: Sequence[str], letters: str, *names: str) -> str:
    """The option as it is written; empty when it is not there."""
    until = words.index("--") if "--" in words else len(words)
    return next((word for word in words[1:until] if has([word], letters, *names)), "")


def _changes(scene: Scene) -> str:
    changed = len(scene.index.changed()) if scene.places else 0
    files = f"{changed:,} file{'' if changed == 1 else 's'}"
    return f"{files} here differ{'s' if changed == 1 else ''} from what git keeps" if changed else "changes that no commit holds"


_COMMANDS: Mapping[str, Check] = {
    "branch": _with_option("DMCf", "--force", what=HISTORY),
    "checkout": _checkout,
    "checkout-index": _with_option("f", "--force"),
    "clean": _clean,
    "filter-branch": _always("the whole history is rewritten"),
    "filter-repo": _always("the whole history is rewritten"),
    "gc": _with_option("", "--prune", what=HISTORY),
    "prune": _always(HISTORY),
    "push": _push,
    "read-tree": _with_option("u", "--reset"),
    "reflog": _always(HISTORY, "expire", "delete", "drop"),
    "reset": _with_option("", "--hard", "--merge"),
    "restore": _restore,
    "rm": _rm,
    "stash": _always("what was put away is gone", "drop", "clear"),
    "submodule": _with_option("f", "--force", what="changes in the submodule", action="deinit"),
    "switch": _with_option("fC", "--force", "--discard-changes", "--force-create"),
    "symbolic-ref": _with_option("d", "--delete", what=HISTORY),
    "tag": _with_option("df", "--delete", "--force", what=HISTORY),
    "update-ref": _with_option("d", "--delete", "--stdin", what=HISTORY),
    "worktree": _with_option("f", "--force", what="changes in that worktree", action="remove"),
}
CHECKS: Mapping[str, Check] = {
    "git": _git,
    "hg": _kin(
        purge=("", ()), clean=("", ()), revert=("", ()), strip=("", ()), update=("C", ("--clean",)), up=("C", ("--clean",))
    ),
    "svn": _kin(revert=("", ()), cleanup=("", ("--remove-unversioned", "--remove-ignored"))),
}
