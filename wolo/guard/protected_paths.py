"""Names that no rule and no mode can unprotect: files that run code or contain secrets."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

AT_THE_TOP = (
    *(".git", ".wolo", ".agents", ".claude", ".cursor", ".codex", ".gemini", ".opencode", "opencode.json", "opencode.jsonc"),
    *(".vscode", ".idea", ".zed", ".fleet", ".devcontainer", ".devcontainer.json", ".husky", ".pre-commit-config.yaml"),
    *(".envrc", ".mcp.json", ".gitconfig", ".hg", ".vimrc", ".exrc", ".nvim.lua", ".gdbinit", ".pdbrc"),
    *(".bashrc", ".bash_profile", ".profile", ".zshrc", ".zshenv"),
    *("AGENTS.md", "AGENTS.override.md", "CLAUDE.md", "CLAUDE.local.md", "GEMINI.md", ".cursorrules"),
)
"""Names that programs act on in the directory they start in. The sandbox also prevents missing ones from being created."""
_READABLE = """
agents.md agents.override.md agent.md claude.md claude.local.md gemini.md qwen.md crush.md warp.md copilot-instructions.md
.cursorrules .windsurfrules .clinerules .roorules .goosehints .hermes.md .rules .augment-guidelines .openhands_instructions
.pre-commit-config.yaml .pre-commit-config.yml lefthook.yml lefthook.yaml lefthook.toml lefthook.json lefthook-local.yml
.lefthook.yml .lefthook.yaml .lefthook.toml .lefthook.json .lefthook-local.yml .overcommit.yml .gitpod.yml
.mise.toml mise.toml .devcontainer.json .bazelrc
"""
READABLE = frozenset(_READABLE.split())
"""Instructions for agents and shared project settings: dangerous to write, harmless to read."""
_RUNS_CODE = """
.bash_login .bash_logout .bash_aliases .zprofile .zlogin .zlogout
.kshrc .mkshrc .cshrc .tcshrc .login .inputrc .xprofile .xinitrc .xsession .xsessionrc .ssh
.vim .gvimrc .nvimrc .lvimrc .emacs .emacs.d .dir-locals.el .dir-locals-2.el .lldbinit .irbrc .pryrc .psqlrc .sqliterc .rprofile
.byebugrc .rdbgrc .ghci .iex.exs _vimrc _gvimrc _exrc .vs
.tmux.conf .screenrc .hgrc .jj .svn .sl .autoenv .autoenv.zsh .lefthook
.windsurf .roo .roomodes .continue .kiro .amazonq .qwen .kimi .crush .crush.json crush.json .junie .trae .augment .goose .hermes
.aider.conf.yml
.agent .cline .goosehints.local .kimi-code .kilocode .kilocodemodes .factory .amp .openhands .pi .warp .mise
.npmrc .yarnrc .yarnrc.yml
"""
RUNS_CODE = frozenset((*_RUNS_CODE.split(), *(name.casefold() for name in AT_THE_TOP))) | READABLE
"""Names that a shell, an editor, git or an agent acts on, folded. Writing to one, or below one, asks in every mode, and the
sandbox makes them read-only."""

RUNS_CODE_BELOW = (
    *("/.config/fish/", "/.config/git/", "/.config/nvim/", "/.config/autostart/", "/.config/systemd/"),
    *("/.config/opencode/", "/.config/mise/", "/.config/direnv/", "/.config/zed/", "/.cargo/config/"),
    *("/.cargo/config.toml/", "/.github/agents/", "/.github/chatmodes/", "/.github/hooks/", "/.github/instructions/"),
    *("/.github/mcp.json/", "/.github/prompts/", "/.github/skills/", "/library/launchagents/"),
)
ABOVE = frozenset(path.split("/")[1] for path in RUNS_CODE_BELOW)
"""Folders that are not protected themselves, but some names in them."""

SECRET_FOLDERS = frozenset({".ssh", ".gnupg", ".aws", ".azure", ".kube", ".gcloud", ".password-store"})
SECRET_BELOW = (
    *("/.docker/config.json", "/.config/gcloud/", "/.config/gh/", "/.config/hub", "/.config/rclone/", "/.config/op/"),
    "/library/keychains/",
)
_SECRET_NAMES = """
.netrc _netrc .npmrc .yarnrc.yml .pypirc .pgpass .my.cnf .git-credentials .htpasswd .vault-token .vault_pass .terraformrc
.boto .s3cfg .dockercfg kubeconfig credentials
"""
SECRET_NAMES = frozenset(_SECRET_NAMES.split())
SECRET_ENDINGS = (
    *(".pem", ".key", ".p8", ".p12", ".pfx", ".jks", ".keystore", ".kdbx", ".ppk", ".ovpn"),
    *(".env", ".tfstate", ".tfstate.backup"),
)
_SIGNS = (
    *(*SECRET_FOLDERS, *SECRET_NAMES, *SECRET_ENDINGS, *(f"/{path.split('/')[1]}/" for path in SECRET_BELOW), "/proc/"),
    *("credential", "secret", "account", "adminsdk", "id_rsa", "id_dsa", "id_ecdsa", "id_ed25519"),
)
"""Each secret has one of these in its path."""
_DATA_ENDINGS = (".json", ".yaml", ".yml", ".toml", ".ini", ".csv", ".properties")
_TELLING_NAME = (
    r"(?:.*[-_.])?(?:credentials?|secrets?|service[-_]?accounts?|client[-_]secrets?|adminsdk)(?:[-_.].*)?"
    r"\.(?:json|ya?ml|toml|ini|csv|properties)"
)
"""Data files whose name says that they contain credentials; source code about credentials does not match."""
_PRIVATE_KEY = r"id_(?:rsa|dsa|ecdsa|ed25519)(?:_sk)?(?:\..*)?"
_EXAMPLE = r"\.env.*\.(?:example|sample|template|dist)|(?:example|sample|template|dist)\.env"
_PROCESS_MEMORY = r"/proc/[^/]+/(?:task/[^/]+/)?(?:environ|mem|auxv)"
_KNOWN = frozenset((*RUNS_CODE, *SECRET_FOLDERS, *SECRET_NAMES, ".env", ".env.local", "id_rsa", "id_ed25519", "secrets.yaml"))
_WILD = r"[*?]"
_IGNORED = "[\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]"
"""Characters that some file systems ignore in names: `.g<200c>it` is `.git` there."""


def fold(path: str) -> str:
    """Returns a spelling in which two names of one file are equal on every file system."""
    folded = path.casefold()
    return folded if folded.isascii() else re.sub(_IGNORED, "", folded)


def runs_code(path: str) -> bool:
    """Tells whether a program acts on what is written at `path` (absolute and real).

    A git directory counts by any name: bare, or the target of a `gitdir:` line. It counts as complete if `path` itself would
    complete it, because its settings may be written first.
    """
    if is_protected_name(path):
        return True
    folder, _, name = path.rpartition("/")
    while folder:
        if _holds(folder, "HEAD", name) and (_holds(folder, "objects", name) or _holds(folder, "commondir", name)):
            return True
        folder, _, name = folder.rpartition("/")
    return False


def is_protected_name(path: str) -> bool:
    """Like `runs_code`, without looking at the disk."""
    folded = fold(path)
    if not RUNS_CODE.isdisjoint(folded.split("/")) or folded.endswith(".code-workspace"):
        return True
    return any(below in f"{folded}/" for below in RUNS_CODE_BELOW)


def is_protected(path: str, *, only_repositories: bool = False) -> bool:
    """Tells whether the last name of `path`, or the folders it is in, are protected."""
    name = fold(path.rpartition("/")[2])
    if only_repositories:
        return name == ".git"
    return name in RUNS_CODE or name.endswith(".code-workspace") or fold(path + "/").endswith(RUNS_CODE_BELOW)


def stands_for_folder(path: str) -> bool:
    """Tells whether it is a link to what would be protected in a folder of its name, such as `.cargo` or `.github`."""
    name = fold(path.rpartition("/")[2])
    return name in ABOVE and name[0] == "." and os.path.islink(path)  # noqa: PTH114  # text all along


def makes_repository(path: str) -> bool:
    """Tells whether it is the HEAD for which git takes a folder without `.git` as a repository, and obeys its settings."""
    folder, _, name = path.rpartition("/")
    return (
        fold(name) == "head"
        and os.path.lexists(path)
        and not os.access(f"{folder}/.git", os.F_OK)
        and (_holds(folder, "objects", "") or _holds(folder, "commondir", ""))
    )


def is_readable(path: str) -> bool:
    """Tells whether the path is protected only by a name that is harmless to read."""
    folder, _, name = fold(path).rpartition("/")
    return name in READABLE and not is_protected_name(folder)


def is_secret(path: str) -> bool:
    """Tells whether a file of this name usually contains a password, a key or a token."""
    folded = fold(path)
    parts = folded.split("/")
    name = parts[-1]
    if name.startswith(".env") or name.endswith(SECRET_ENDINGS):
        return re.fullmatch(_EXAMPLE, name) is None
    if name in SECRET_NAMES or (name.endswith(_DATA_ENDINGS) and re.fullmatch(_TELLING_NAME, name)):
        return True
    if name.startswith("id_") and re.fullmatch(_PRIVATE_KEY, name) and not name.endswith(".pub"):
        return True
    if not SECRET_FOLDERS.isdisjoint(parts) or any(map(folded.__contains__, SECRET_BELOW)):
        return True
    return folded.startswith("/proc/") and re.fullmatch(_PROCESS_MEMORY, folded) is not None


def may_hold_secret(folder: str, names: Iterable[str]) -> bool:
    """A quick check: False if no file of these names in a folder is a secret."""
    text = fold("\0".join((f"{folder}/", *names)))
    return any(sign in text for sign in _SIGNS)


def secrets_among(paths: Sequence[str]) -> list[str]:
    return [path for path in paths if is_secret(path)]


def may_be_protected(pattern: str) -> bool:
    """Tells whether a path with wildcards could name a secret or a protected file."""
    folded = re.sub(r"\[[^/]*", "*", fold(pattern))  # any bracket expression may match anything
    if is_secret(folded) or is_protected_name(folded):
        return True
    *folders, last = folded.split("/")
    ending = re.split(_WILD, last)[-1]
    if last != ending and any(each.endswith(ending) for each in SECRET_ENDINGS):
        return True
    hidden = [part for part in folders if part[:1] == "." and re.search(_WILD, part)]
    return any(fnmatchcase(name, wild) for wild in (*hidden, last) for name in _KNOWN if name[0] != "." or wild[:1] == ".")


def _holds(folder: str, name: str, written_name: str) -> bool:
    return fold(written_name) == name.lower() or os.access(f"{folder}/{name}", os.F_OK)
