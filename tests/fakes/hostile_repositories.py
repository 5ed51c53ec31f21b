"""Repositories whose settings start a program wherever git lets them; each leaves a file in `ran`."""

from __future__ import annotations

from pathlib import Path

from tests.fakes.repositories import files, git, repository

FILTERS = ("plain", "a.b", "with=sign", "with space")


def hostile_repository(folder: Path, ran: Path) -> Path:
    """The commit holds `a.txt` and `sub`, a submodule; `a.txt` is as committed, but git has to read it again."""
    ran.mkdir(exist_ok=True)
    inner = repository(folder.with_name(f"{folder.name}-inner"), {"b.txt": "b\n"})
    repository(folder, {"a.txt": "one\n", ".gitattributes": _attributes()})
    git(folder, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner), "sub")
    git(folder, "-c", "user.name=T", "-c", "user.email=t@example.com", "commit", "-qm", "sub")
    for each in (folder / ".git", folder / ".git/modules/sub"):
        _arm(each, ran)
    files(folder, {"sub/b.txt": "changed\n"})
    (folder / "a.txt").write_text("one\n")
    return folder


def left(ran: Path) -> list[str]:
    return sorted(path.name for path in ran.iterdir())


def _attributes() -> str:
    lines = [f"*.{number} filter={name}" for number, name in enumerate(FILTERS) if " " not in name]
    return "\n".join((*lines, "*.txt filter=plain diff=evil merge=evil", ""))


def _arm(git_dir: Path, ran: Path) -> None:
    def trap(name: str) -> str:
        return f"touch '{ran}/{name}'; cat"

    included = git_dir / "included"
    included.write_text(f'[core]\n\tpager = "{trap("pager")}"\n\tfsmonitor = "{trap("included")}"\n')
    lines = [
        "[extensions]\n\tworktreeConfig = true\n\tpartialClone = origin\n[core]\n\trepositoryformatversion = 1\n",
        f'[core]\n\tfsmonitor = "{trap("fsmonitor")}"\n\tsshCommand = "{trap("ssh")}"\n\teditor = "{trap("editor")}"\n',
        f'\thooksPath = {git_dir}/traps\n\talternateRefsCommand = "{trap("alternates")}"\n\taskPass = "{trap("askpass")}"\n',
        f'[diff]\n\texternal = "{trap("external")}"\n',
        f'[diff "evil"]\n\ttextconv = "{trap("textconv")}"\n\tcommand = "{trap("diff")}"\n',
        f'[merge "evil"]\n\tdriver = "{trap("merge")}"\n[credential]\n\thelper = "!{trap("credential")}"\n',
        f'[uploadpack]\n\tpackObjectsHook = "{trap("pack")}"\n[gpg]\n\tprogram = "{trap("gpg")}"\n',
        f'[remote "origin"]\n\turl = ext::sh -c "{trap("ext")}"\n\tpromisor = true\n\tuploadpack = "{trap("uploadpack")}"\n',
        f"[include]\n\tpath = {included}\n",
    ]
    for name in FILTERS:
        lines.append(f'[filter "{name}"]\n\tclean = "{trap("clean")}"\n\tsmudge = "{trap("smudge")}"\n\trequired = true\n')
    with (git_dir / "config").open("a") as file:
        file.write("".join(lines))
    (git_dir / "config.worktree").write_text(f'[filter "plain"]\n\tprocess = "{trap("process")}"\n')
    for name in ("pre-applypatch", "post-checkout", "post-index-change", "reference-transaction", "pre-auto-gc"):
        for folder in ("hooks", "traps"):
            files(git_dir / folder, {name: f"#!/bin/sh\n{trap('hook')}\n"})
