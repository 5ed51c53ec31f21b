"""Selects the variables that commands get, and finds trusted programs on the PATH."""

from __future__ import annotations

import functools
import os
import re
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import islice
from typing import Literal

from msgspec import Struct, field

from wolo.workspace.root import Workspace, may_be_project, resolve_path

Inherit = Literal["all", "core", "none"]
Reason = Literal["secret name", "secret value", "loads code", "agent socket", "changes the shell", "shell.hide", "shell.inherit"]
"""Why a variable is hidden from commands."""
IN_THE_SANDBOX: tuple[Reason, ...] = ("loads code", "agent socket")
"""These reasons hold in the sandbox only."""

_CORE: tuple[str, ...] = ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "LC_*", "TZ", "TMPDIR")
if sys.platform == "win32":
    _CORE += ("SYSTEMROOT", "SYSTEMDRIVE", "COMSPEC", "PATHEXT", "TEMP", "TMP", "USERPROFILE", "*APPDATA", "PROGRAM*")
_SECRETS = ("*KEY*", "*TOKEN*", "*SECRET*", "*PASS*", "*CRED*", "*AUTH*", "*PRIVATE*", "*_PWD")
_NO_SECRETS = (
    *("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_AUTHOR_DATE", "TOKENIZERS_PARALLELISM"),
    # Other rules hold for these:
    *("GIT_CONFIG_KEY_*", "*_ASKPASS", "BASH_FUNC_*", "*AUTH_SOCK", "XAUTHORITY", "ICEAUTHORITY", "GNOME_KEYRING_CONTROL"),
)
_LOADERS = ("LD_*", "DYLD_*")
"""They act on every program, also on those that build the sandbox."""
_LOADS_CODE = (
    *_LOADERS,
    *("BASH_ENV", "ENV", "BASH_FUNC_*", "BASH_LOADABLES_PATH", "ZDOTDIR", "FPATH", "PS4", "PROMPT_COMMAND", "GCONV_PATH"),
    *("PYTHONSTARTUP", "PYTHONHOME", "PYTHONINSPECT", "PYTHONBREAKPOINT", "PYTHONUSERBASE", "PYTHONPYCACHEPREFIX"),
    *("PYTHONPLATLIBDIR", "PYTHONWARNINGS", "PYTHONEXECUTABLE", "NODE_OPTIONS", "NODE_REPL_EXTERNAL_MODULE", "BUN_OPTIONS"),
    *("PERL5OPT", "PERL5DB", "RUBYOPT", "LUA_INIT*", "PHPRC", "PHP_INI_SCAN_DIR", "R_PROFILE*", "R_ENVIRON*"),
    *("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "DOTNET_STARTUP_HOOKS", "CORECLR_*", "COR_*"),
    *("ERL_AFLAGS", "ERL_FLAGS", "ERL_ZFLAGS", "ELIXIR_ERL_OPTIONS", "OPENSSL_CONF", "OPENSSL_ENGINES", "OPENSSL_MODULES"),
    *("MAKEFILES", "MAKEFLAGS", "MFLAGS", "GNUMAKEFLAGS", "LESSOPEN", "LESSCLOSE", "EXINIT", "*_ASKPASS"),
)
_ORDINARY_FOR_GIT = (
    *("GIT_AUTHOR_*", "GIT_COMMITTER_*", "GIT_CEILING_DIRECTORIES", "GIT_DISCOVERY_ACROSS_FILESYSTEM", "GIT_MERGE_AUTOEDIT"),
    *("GIT_OPTIONAL_LOCKS", "GIT_ADVICE", "GIT_LFS_SKIP_SMUDGE", "GIT_SSL_*", "GIT_HTTP_*", "GIT_PS1_*", "GIT_DEFAULT_HASH"),
    "GIT_CONFIG_NOSYSTEM",
    *("GIT_PAGER", "GIT_EDITOR", "GIT_SEQUENCE_EDITOR", "GIT_TERMINAL_PROMPT"),  # commands get values of wolo's own
)
"""Other `GIT_*` make git run a program, or lead it to a repository, an index or settings elsewhere."""
_SOCKETS = (
    *("SSH_AUTH_SOCK", "SSH_AGENT_PID", "GPG_AGENT_INFO", "DOCKER_HOST", "CONTAINER_HOST", "BUILDKIT_HOST"),
    *("CONTAINERD_ADDRESS", "DBUS_*_ADDRESS", "GNOME_KEYRING_CONTROL", "KRB5CCNAME", "XAUTHORITY", "ICEAUTHORITY", "TMUX", "STY"),
    *("NVIM", "NVIM_LISTEN_ADDRESS", "KITTY_LISTEN_ON", "VSCODE_*_IPC_HANDLE", "VSCODE_IPC_HOOK*"),
    *("*_SOCK", "*_SOCKET", "I3SOCK", "SWAYSOCK"),
)
OF_THE_SHELL = ("_", "SHLVL", "PWD", "OLDPWD", "WOLO_DATA", "WOLO_LIMITER", "WOLO_OWNER", "WOLO_BATCH_STORE")
"""State of the shell that started wolo, and wolo's own."""
_CHANGES_THE_SHELL = ("SHELLOPTS", "BASHOPTS", "CDPATH", "GLOBIGNORE", "EXECIGNORE", "POSIXLY_CORRECT", "BASH_XTRACEFD")
"""They change what a command line that was judged means."""
_BUILTINS = """
alias bg bind break builtin caller cd command compgen complete compopt continue declare dirs disown echo enable eval exec exit
export false fc fg getopts hash help history jobs kill let local logout mapfile popd printf pushd pwd read readarray readonly
return set shift shopt source suspend test times trap true type typeset ulimit umask unalias unset wait . : [
"""
BUILTINS = frozenset(_BUILTINS.split())
"""Of bash; a function or an alias of such a name changes what a judged line means."""
_EXPORTED_BUILTINS = tuple(f"BASH_FUNC_{name}%%" for name in BUILTINS)
_MOST_EXPLAINED = 3
_GIT_SETTINGS = ("GIT_CONFIG_COUNT", "GIT_CONFIG_KEY_*", "GIT_CONFIG_VALUE_*")
"""Git refuses to start where one of them is missing."""

# No keyboard: whatever opens an editor or asks a question must end at once, visibly. A commit without a message and `rebase
# --continue` accept the text as it is (`true`); the plan of an interactive rebase does not (`false`: `true` would carry it out
# unread). Vim would wait for ever on a pipe: it quits with an error after its `-c` commands. `CI` is not set: package managers
# refuse to update lock files under it.
UNATTENDED = {
    "TERM": "dumb",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "MANPAGER": "cat",
    "EDITOR": "false",
    "VISUAL": "false",
    "VIMINIT": "set noswapfile | autocmd VimEnter * cquit",
    "GIT_EDITOR": "true",
    "GIT_SEQUENCE_EDITOR": "false",
    "GIT_TERMINAL_PROMPT": "0",
    "DEBIAN_FRONTEND": "noninteractive",
    "PIP_NO_INPUT": "1",
    "COMPOSER_NO_INTERACTION": "1",
}


class HiddenVariable(Struct, frozen=True):
    name: str
    reason: Reason


@functools.lru_cache(1)
def _as_mapping(*variables: tuple[str, str]) -> Mapping[str, str]:
    return dict(variables)


def present_variables() -> Mapping[str, str]:
    """Conversations of a process have the same mapping while nothing changes."""
    return _as_mapping(*os.environ.items())


class CommandVariables(Struct, frozen=True):
    """The user's variables, as far as commands get them."""

    inherit: Inherit = "all"
    """`core`: the language, the time zone, paths and the user's name; `none`: only `passed`."""
    passed: tuple[str, ...] = ()
    """Names, also of variables that are hidden by rule; patterns with `*` pass only others."""
    hide: tuple[str, ...] = ()
    """Names and patterns."""
    redact: Callable[[str], str] = lambda text: text
    """Replaces known secrets in a text by placeholders."""
    environ: Mapping[str, str] = field(default_factory=present_variables)
    """As the user's shell started wolo. What loads code passes with these values only."""

    def select(self, *, is_outside: bool, more: Mapping[str, str] | None = None) -> dict[str, str]:
        """The complete environment of a command. `is_outside`: it runs without a sandbox and the user knows of it.

        `more` comes from the user's hooks.
        """
        own = {name: value for name, value in self.environ.items() if not self._reason(name, value, is_outside)}
        added = {name: value for name, value in (more or {}).items() if not self._rule_against(name, value, is_outside)}
        unattended = {name: value for name, value in UNATTENDED.items() if name not in own or name not in self.passed}
        if not is_outside:
            own = {name: value for name, value in own.items() if not _matches(name, _LOADERS)}
        if any(_matches(name, _GIT_SETTINGS) and name not in own for name in self.environ):
            own = {name: value for name, value in own.items() if not _matches(name, _GIT_SETTINGS)}
        return {"PATH": "/usr/local/bin:/usr/bin:/bin", **own, **added, **unattended}

    def set_inside(self) -> tuple[str, ...]:
        """The beginning of a command line in the sandbox: sets what must not act on the programs that build it."""
        named = {name: self.environ[name] for name in self.passed if _matches(name, _LOADERS) and name in self.environ}
        words = [f"{name}={value}" for name, value in named.items() if not self._is_hidden(name)]
        return ("/usr/bin/env", *words) if words else ()

    def list_hidden(self, *, is_outside: bool = False) -> Iterator[HiddenVariable]:
        """Variables of the user that commands do not get, in the order of their names."""
        for name, value in sorted(self.environ.items()):
            if (reason := self._reason(name, value, is_outside)) and name not in (*OF_THE_SHELL, *UNATTENDED):
                yield HiddenVariable(name, reason)

    def explain(self, text: str, *, is_outside: bool, more: Collection[str] = ()) -> list[str]:
        """A note for each hidden variable that the text of a failed command names; three at most.

        `more` comes from the user's hooks.
        """
        hidden = (each for each in self.list_hidden(is_outside=is_outside) if each.name not in more)
        named = (each for each in hidden if each.name.isidentifier() and each.name in text)
        whole = (each for each in named if re.search(rf"(?<!\w){re.escape(each.name)}(?!\w)", text))
        return list(map(self._explain, islice(whole, _MOST_EXPLAINED)))

    def _explain(self, variable: HiddenVariable) -> str:
        name, value = variable.name, self.environ[variable.name]
        if variable.reason == "shell.hide":
            return f"{name} is set, but hidden from commands by the user's setting shell.hide"
        where = "" if variable.reason not in IN_THE_SANDBOX else " in the sandbox"
        setting = f'shell.env = ["{name}"]'
        note = f"{name} is set, but hidden from commands{where} ({variable.reason}): the user's setting {setting} passes it"
        placeholder = self.redact(value)
        has_one = placeholder != value and re.fullmatch(r"\S{1,200}", placeholder)
        return f"{note}; {placeholder} stands for its value" if has_one else note

    def _reason(self, name: str, value: str, is_outside: bool) -> Reason | None:
        if name in self.passed and not self._is_hidden(name):
            return None
        if reason := self._rule_against(name, value, is_outside):
            return reason
        is_inherited = self.inherit == "all" or (self.inherit == "core" and _matches(name, _CORE))
        return None if is_inherited or _matches(name.upper(), tuple(map(str.upper, self.passed))) else "shell.inherit"

    def _rule_against(self, name: str, value: str, is_outside: bool) -> Reason | None:
        if self._is_hidden(name):
            return "shell.hide"
        rule = rule_against(name)
        may_pass = rule == "agent socket" or (rule == "loads code" and self.environ.get(name) == value)
        if rule and not (is_outside and may_pass):
            return rule
        return "secret value" if self.redact(value) != value else None

    def _is_hidden(self, name: str) -> bool:
        return _matches(name.upper(), tuple(map(str.upper, self.hide)))


def user_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """All variables, without anything that waits for a keyboard; for a command of the user."""
    return {**environ, **UNATTENDED}


@functools.lru_cache(maxsize=4096)
def rule_against(name: str) -> Reason | None:
    """The rule that hides variables of this name from commands in the sandbox."""
    if _matches(name, (*OF_THE_SHELL, *_CHANGES_THE_SHELL, *_EXPORTED_BUILTINS)):
        return "changes the shell"
    if _matches(name.upper(), _SECRETS) and not _matches(name, _NO_SECRETS):
        return "secret name"
    if _matches(name, _SOCKETS):
        return "agent socket"
    is_of_git = _matches(name, ("GIT_*",)) and not _matches(name, _ORDINARY_FOR_GIT)
    return "loads code" if is_of_git or _matches(name, _LOADS_CODE) else None


@functools.lru_cache(maxsize=4096)
def _matches(name: str, patterns: tuple[str, ...]) -> bool:
    """Without regular expressions: to compile so many delays the first command."""
    return any(_fits(name, pattern.split("*")) for pattern in patterns)


def _fits(name: str, parts: Sequence[str]) -> bool:
    """`parts` of a pattern stand between its asterisks."""
    first, *middle = parts
    if not middle:
        return name == first
    last = middle.pop()
    if not (name.startswith(first) and name.endswith(last) and len(name) >= len(first) + len(last)):
        return False
    at, end = len(first), len(name) - len(last)
    for part in middle:
        at = name.find(part, at, end) + len(part)
        if at < len(part):
            return False
    return True


def find_program(name: str, workspace: Workspace) -> str | None:
    """Finds a program on the PATH that is not in the workspace, also not through a link.

    Relative directories on the PATH (`.`) are skipped: they are the checkout, or will be after a `cd`.
    """
    checkouts = tuple(f"{folder}/" for folder in (workspace.root, *workspace.extra) if may_be_project(folder))
    for folder in os.get_exec_path():
        path = f"{folder}/{name}"
        if not folder.startswith("/") or not os.access(path, os.X_OK) or os.path.isdir(path):  # noqa: PTH112  # for every command
            continue
        if not any(f"{resolve_path(each)}/".startswith(checkouts) for each in (folder, path)):
            return path
    return None
