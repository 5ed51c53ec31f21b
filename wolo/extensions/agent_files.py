"""Agents that a task can be given to: the two that wolo brings along, and those that a user or a trusted project has written.

Such a file is Markdown: settings above, and below them what the agent is told. It can only take tools away, never allow more.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal, NamedTuple, get_args

from msgspec import Struct

from wolo.errors import WoloError
from wolo.extensions.markdown_files import Document, ExtensionFolder, decode, entries, first_notices, read_document, shown
from wolo.messages.terminal_text import clean_line, escape_hidden
from wolo.tools.tool_values import BUILTIN as OFFERED
from wolo.tools.tool_values import SubagentOffer

Mode = Literal["primary", "subagent", "all"]
READING = frozenset(("read", "grep", "glob", "fetch", "todo", "ask", "skill", "expand_message", "task_completion"))
"""Tools that change nothing."""
MOST_AGENTS = 200
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_EVERYTHING = frozenset(("*", "all", "inherit"))
_ELSEWHERE: Mapping[str, tuple[str, ...]] = {
    "bash": ("shell", "jobs"),
    "run_shell_command": ("shell", "jobs"),
    "execute": ("shell", "jobs"),
    "bashoutput": ("jobs",),
    "killshell": ("jobs",),
    "multiedit": ("edit",),
    "patch": ("edit",),
    "apply_patch": ("edit",),
    "read_file": ("read",),
    "ls": ("glob",),
    "list": ("glob",),
    "search": ("grep",),
    "webfetch": ("fetch",),
    "web_fetch": ("fetch",),
    "todowrite": ("todo",),
    "todoread": ("todo",),
    "question": ("ask",),
    "askuserquestion": ("ask",),
}
"""What other agents call tools, in small letters → ours."""
MODELS_ELSEWHERE = frozenset(("sonnet", "opus", "haiku", "default"))
"""Names of models in files that were written for another program."""
_NOT_HERE = frozenset(("task", "agent", "websearch", "web_search", "notebookedit", "notebookread", "exitplanmode"))
"""Tools of other agents that have none of ours beside them; and no agent gives tasks to a third."""


class Profile(Struct, frozen=True, kw_only=True):
    name: str
    description: str
    prompt: str = ""
    """What it is told beside what every agent is."""
    model: str = ""
    """Empty: that of the conversation."""
    tools: tuple[str, ...] | None = None
    """Only these; None: all that the conversation has."""
    without: tuple[str, ...] = ()
    """Not these."""
    mode: Mode = "all"
    max_turns: int | None = None
    is_hidden: bool = False
    path: Path | None = None
    """None: wolo brings it along."""
    is_projects: bool = False
    """It came with a project, which may lead to no other provider."""

    @property
    def only_reads(self) -> bool:
        return self.tools is not None and READING.issuperset(self.tools)

    @property
    def offer(self) -> SubagentOffer:
        return SubagentOffer(name=self.name, description=self.description, only_reads=self.only_reads, is_hidden=self.is_hidden)


BUILTIN = tuple(
    Profile(
        name=offer.name,
        description=offer.description,
        mode="subagent",
        tools=("read", "grep", "glob", "fetch") if offer.only_reads else None,
    )
    for offer in OFFERED
)


class Agents(NamedTuple):
    found: tuple[Profile, ...] = ()
    """By name; one that stands in the way of another is the only one."""
    notices: tuple[str, ...] = ()
    """For a person: a sentence for each file that cannot be used."""

    @property
    def offers(self) -> tuple[SubagentOffer, ...]:
        """Those that can be given tasks."""
        return tuple(each.offer for each in self.found if each.mode != "primary")


NONE = Agents()


def find_agents(shelves: Iterable[ExtensionFolder]) -> Agents:
    """The nearest of a name counts; what wolo brings along comes last."""
    notices: list[str] = []
    found: dict[str, Profile] = {}
    for shelf in shelves:
        for entry in entries(shelf, notices):
            if entry.name.endswith(".md") and len(found) < MOST_AGENTS:
                profile = _read(Path(entry.path), shelf, notices)
                if profile is not None:
                    found.setdefault(profile.name, profile)
    for profile in BUILTIN:
        found.setdefault(profile.name, profile)
    return Agents(tuple(found[name] for name in sorted(found)), first_notices(notices))


def _read(path: Path, shelf: ExtensionFolder, notices: list[str]) -> Profile | None:
    """None, and a notice, for a file that cannot be used."""
    try:
        document = read_document(decode(shelf.read(path), shown(path)), shown(path))
        return _profile(document, path, is_projects=shelf.project is not None)
    except WoloError as error:
        notices.append(f"This agent is left out: {error.message}")
        return None


def _profile(document: Document, path: Path, *, is_projects: bool) -> Profile:
    """Raises ExtensionError for what cannot be meant."""
    name = document.text("name") or path.stem
    if not _NAME.fullmatch(name):
        raise document.wrong("name", "must be letters, digits, `-`, `_` and `.`, 64 at most")
    description = clean_line(document.text("description") or document.body.partition("\n")[0].lstrip("# "))
    if not description:
        raise document.wrong("description", "is missing, and there is no text either")
    mode = document.text("mode") or "all"
    if mode not in get_args(Mode):
        raise document.wrong("mode", f"must be one of {', '.join(get_args(Mode))}")
    model = document.text("model")
    return Profile(
        name=name,
        description=description,
        prompt=escape_hidden(document.body),
        model="" if model == "inherit" else model,
        tools=_tools(document),
        without=_without(document),
        mode=mode,  # type: ignore[arg-type]  # it was just looked up
        max_turns=_max_turns(document),
        is_hidden=document.flag("hidden", default=False),
        path=path,
        is_projects=is_projects,
    )


def _tools(document: Document) -> tuple[str, ...] | None:
    """None: it is not narrowed. A name with a pattern in brackets gives nothing: the pattern would not be kept."""
    if document.fields.get("tools") is None or isinstance(document.fields["tools"], dict):
        return None
    named = document.items("tools")
    if any(each.lower() in _EVERYTHING for each in named):
        return None
    return _ours(each for each in named if "(" not in each)


def _without(document: Document) -> tuple[str, ...]:
    """`disallowedTools`, and what a table of `tools` or of `permission` says no to."""
    named = [*document.items("disallowedTools"), *document.items("disallowed-tools")]
    for key, refusal in (("tools", False), ("permission", "deny")):
        table = document.fields.get(key)
        if isinstance(table, dict):
            named += [name for name, said in table.items() if said == refusal]
            named += ["write"] if key == "permission" and table.get("edit") == refusal else []
    return _ours(each.partition("(")[0] for each in named)


def _ours(names: Iterable[str]) -> tuple[str, ...]:
    tools: dict[str, None] = {}
    for name in names:
        known = name.strip().lower()
        if known not in _NOT_HERE:
            tools |= dict.fromkeys(_ELSEWHERE.get(known, (name.strip() if name.startswith("mcp__") else known,)))
    return tuple(tools)


def _max_turns(document: Document) -> int | None:
    for key in ("max_turns", "max_steps", "maxTurns", "steps"):
        if said := document.text(key):
            if not re.fullmatch(r"\d{1,9}", said) or not int(said):
                raise document.wrong(key, "must be a number above 0")
            return int(said)
    return None
