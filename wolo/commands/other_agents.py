"""Slash commands that other agents have under another name, or that are something else here."""

from __future__ import annotations

from wolo.errors import UsageError

SAME = {
    "about": "status",
    "approvals": "permissions",
    "allowed-tools": "permissions",
    "auth": "login",
    "bashes": "jobs",
    "compress": "compact",
    "connect": "login",
    "continue": "resume",
    "dir": "add-dir",
    "directory": "add-dir",
    "effort": "thinking",
    "keybindings": "keys",
    "keymap": "keys",
    "models": "model",
    "ps": "jobs",
    "reasoning": "thinking",
    "rename": "title",
    "reset": "new",
    "restore": "undo",
    "settings": "config",
    "shells": "jobs",
    "shortcuts": "keys",
    "stats": "cost",
    "summarize": "compact",
    "themes": "theme",
    "usage": "cost",
}
"""Our command by the name elsewhere."""
_EXPLAINED = {
    "bug": "`wolo doctor --json` prints what a bug report needs.",
    "chat": "Sessions are saved by themselves: /sessions lists them, /resume opens one.",
    "checkpoint": "Each prompt is a checkpoint: /rewind goes back to one, /undo takes back changes of files.",
    "details": "Ctrl-O shows collapsed output and thinking.",
    "extensions": "`wolo plugin`, /skills, /mcp and /hooks show what is installed.",
    "feedback": "`wolo doctor --json` prints what a bug report needs.",
    "ide": "Editors start wolo themselves: `wolo acp`.",
    "output-style": "Write it into AGENTS.md, or start with --append-system-prompt.",
    "plugin": "`wolo plugin` installs and lists plugins.",
    "plugins": "`wolo plugin` installs and lists plugins.",
    "privacy": "Wolo sends nothing but your requests to the model you chose.",
    "release-notes": "CHANGELOG.md lists the changes; `wolo --version` prints yours.",
    "share": "/export writes the session into a file; nothing is uploaded.",
    "statusline": "`ui.status` in config.toml names the fields of the status row; /config shows it.",
    "stop": "Esc stops the turn; /jobs and /tasks end what runs in the background.",
    "terminal-setup": "Nothing to set up: Shift-Enter makes a new line where the terminal tells it from Enter; elsewhere "
    "Ctrl-J, Alt-Enter, or a backslash before Enter. In tmux: set -s extended-keys on.",
    "update": "`wolo update` says how to update.",
    "upgrade": "`wolo update` says how to update.",
    "vim": "`/config ui.keys vi` chooses the keys of vi, `emacs` the usual ones, from the next start on.",
    "yolo": "/mode auto runs commands in the sandbox; `wolo --yolo` asks nothing.",
}


def explain_name(name: str) -> None:
    """Raises UsageError with a line about a command that only other agents have."""
    if sentence := _EXPLAINED.get(name.casefold()):
        raise UsageError(f"/{name.casefold()} is no command here.", hint=sentence)
