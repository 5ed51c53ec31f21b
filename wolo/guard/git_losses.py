"""What git and its kin would destroy: changes that no commit holds, untracked files, and commits nothing leads to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from wolo.guard.file_losses import has, operands
from wolo.guard.losses import Loss, Scene, untracked

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


def _reset(words: Sequence[str], scene: Scene) -> Loss | None:
    option = _first(words, "", "--hard", "--merge")
    return Loss(("git", "reset", option), _changes(scene)) if option else None


def _clean(words: Sequence[str], scene: Scene) -> Loss | None:
    if has(words[1:], "n", "--dry-run"):
        return None
    return Loss(("git", "clean"), f"it removes what is not in git, here {untracked(scene.index)}")


def _checkout(words: Sequence[str], scene: Scene) -> Loss | None:
    if option := _first(words, "f", "--force", "--ours", "--theirs", "--pathspec-from-file"):
        return Loss(("git", words[0], option), _changes(scene))
    if words[0] == "switch":
        option = _first(words, "C", "--discard-changes", "--force-create")
        return Loss(("git", "switch", option), _changes(scene)) if option else None
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


def _stash(words: Sequence[str], scene: Scene) -> Loss | None:
    del scene
    if words[1:2] in (["drop"], ["clear"]):
        return Loss(("git", "stash", words[1]), "what was put away is gone")
    return None


def _branch(words: Sequence[str], scene: Scene) -> Loss | None:
    del scene
    option = _first(words, "DMCf", "--force")
    return Loss(("git", "branch", option), HISTORY) if option else None


def _tag(words: Sequence[str], scene: Scene) -> Loss | None:
    del scene
    option = _first(words, "df", "--delete", "--force")
    return Loss(("git", "tag", option), HISTORY) if option else None


def _push(words: Sequence[str], scene: Scene) -> Loss | None:
    del scene
    if option := _first(words, "fd", "--force", "--force-with-lease", "--delete", "--mirror", "--prune"):
        return Loss(("git", "push", option), "what others have there would be replaced or gone")
    refspec = next((word for word in words[1:] if word[:1] in ("+", ":")), "")
    return Loss(("git", "push", refspec), "what others have there would be replaced or gone") if refspec else None


def _reflog(words: Sequence[str], scene: Scene) -> Loss | None:
    del scene
    return Loss(("git", "reflog", words[1]), HISTORY) if words[1:2] in (["expire"], ["delete"], ["drop"]) else None


def _gc(words: Sequence[str], scene: Scene) -> Loss | None:
    del scene
    option = _first(words, "", "--prune")
    return Loss(("git", "gc", option), HISTORY) if option else None


def _worktree(words: Sequence[str], scene: Scene) -> Loss | None:
    del scene
    if words[1:2] == ["remove"] and (option := _first(words[1:], "f", "--force")):
        return Loss(("git", "worktree", "remove", option), "changes in that worktree")
    return None


def _rm(words: Sequence[str], scene: Scene) -> Loss | None:
    if has(words[1:], "", "--cached") or not (option := _first(words, "f", "--force")):
        return None
    return Loss(("git", "rm", option), _changes(scene))


def _always(what: str) -> Callable[[Sequence[str], Scene], Loss | None]:
    return lambda words, scene: Loss(("git", words[0]), what)


def _update_ref(words: Sequence[str], scene: Scene) -> Loss | None:
    del scene
    option = _first(words, "d", "--delete", "--stdin")
    return Loss(("git", words[0], option), HISTORY) if option else None


def _deinit(words: Sequence[str], scene: Scene) -> Loss | None:
    del scene
    if words[1:2] == ["deinit"] and (option := _first(words[1:], "f", "--force")):
        return Loss(("git", "submodule", "deinit", option), "changes in the submodule")
    return None


def _read_tree(words: Sequence[str], scene: Scene) -> Loss | None:
    option = _first(words, "u", "--reset")
    return Loss(("git", words[0], option), _changes(scene)) if option else None


def _checkout_index(words: Sequence[str], scene: Scene) -> Loss | None:
    option = _first(words, "f", "--force")
    return Loss(("git", words[0], option), _changes(scene)) if option else None


def _kin(**options: tuple[str, tuple[str, ...]]) -> Callable[[Sequence[str], Scene], Loss | None]:
    """Mercurial and Subversion: a command, and the options that make it destructive (none: it always is)."""

    def check(words: Sequence[str], scene: Scene) -> Loss | None:
        del scene
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


_COMMANDS: Mapping[str, Callable[[Sequence[str], Scene], Loss | None]] = {
    "reset": _reset,
    "clean": _clean,
    "checkout": _checkout,
    "switch": _checkout,
    "restore": _restore,
    "stash": _stash,
    "branch": _branch,
    "tag": _tag,
    "push": _push,
    "reflog": _reflog,
    "gc": _gc,
    "prune": _always(HISTORY),
    "filter-branch": _always("the whole history is rewritten"),
    "filter-repo": _always("the whole history is rewritten"),
    "worktree": _worktree,
    "rm": _rm,
    "update-ref": _update_ref,
    "symbolic-ref": _update_ref,
    "submodule": _deinit,
    "read-tree": _read_tree,
    "checkout-index": _checkout_index,
}
CHECKS: Mapping[str, Callable[[Sequence[str], Scene], Loss | None]] = {
    "git": _git,
    "hg": _kin(
        purge=("", ()), clean=("", ()), revert=("", ()), strip=("", ()), update=("C", ("--clean",)), up=("C", ("--clean",))
    ),
    "svn": _kin(revert=("", ()), cleanup=("", ("--remove-unversioned", "--remove-ignored"))),
}
