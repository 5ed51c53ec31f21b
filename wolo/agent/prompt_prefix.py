"""The start of every request: the system prompt and the offered tools.

The system prompt holds no clock, git status or listing: providers cache the bytes that stay the same within a session.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from wolo.agent.compaction.compactor import Compactor, Fixed
from wolo.formats.format import NAME, ToolSpec, default_prompt, with_display_name
from wolo.guard.secrets.redactor import Secrets
from wolo.messages.message import MCP_INSTRUCTIONS, NUDGE, Message
from wolo.messages.parts import ToolKind
from wolo.models.headers import machine
from wolo.models.provider import Model
from wolo.tools.tool import ExternalTool
from wolo.tools.toolbox import Toolbox

_PLACE = r"(?i)function_?declarations\W{1,2}(\d+)|\btools\W{1,2}(\d+)(?!\W{1,2}function_?declarations)"
_TOO_MANY = r"(?i)\b(?:max(?:imum)?|at most|up to|limit|no more than|exceeds?|exceeding)\b[^\d.]{0,40}?(\d{1,4})(?!\d)"
_ABOUT_TOOLS = r"(?i)\b(?:tools|functions|function_?declarations)\b"
_LEAST_LIMIT = 8
"""Smaller numbers in a refusal mean something else."""
_INSTRUCTIONS = '<mcp_instructions server="{server}">\n{text}\n</mcp_instructions>'


class LateTools(Protocol):
    async def prepare(self) -> None:
        """Called before a request; waits a short time for servers that are starting."""

    @property
    def tools(self) -> Sequence[ExternalTool]:
        """All connected tools, in order of arrival."""

    @property
    def instructions(self) -> Mapping[str, str]:
        """Instructions of each server for the use of its tools."""

    def news(self) -> str:
        """Returns a notice for the user, once; empty: none."""


ChangedInstructions = Callable[[Sequence[Message]], Awaitable[Message | None]]
"""Returns a message about instructions that differ from those in the system prompt and the sent messages."""


class PromptPrefix:
    """The system prompt and the offered tools: the part of every request before the messages."""

    def __init__(
        self,
        system: str,
        toolbox: Toolbox,
        compactor: Compactor,
        secrets: Secrets,
        *,
        late_tools: LateTools | None = None,
        reread: Callable[[], str] | None = None,
        changed_instructions: ChangedInstructions | None = None,
    ) -> None:
        """`reread` returns the system prompt that the files on disk give now."""
        self.changed_instructions, self.system, self._toolbox = changed_instructions, system, toolbox
        self._compactor, self._secrets, self.late_tools, self._reread = compactor, secrets, late_tools, reread

    def kind(self, tool: str) -> ToolKind:
        """The kind of a tool's calls, before their arguments are known."""
        return self._toolbox.kind(tool)

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        """`expand_message` is among them once messages were left out."""
        return self._toolbox.specs(compacted=not self._compactor.cut.is_empty)

    def measure_fixed(self, model: Model) -> Fixed:
        """What every request to a model holds, besides the messages."""
        return Fixed(self.system, self.tools, model.context, model.price)

    def reload(self) -> None:
        """Reads the instructions again. Called after a compaction, when the cached prefix is lost anyway."""
        if self._reread is not None:
            self.system = self._reread()

    async def add_late_tools(self) -> str:
        """Called before a request: offers new tools behind all others. Returns a notice for the user, or ""."""
        if self.late_tools is None:
            return ""
        await self.late_tools.prepare()
        self._toolbox.add(self.late_tools.tools)
        return self._secrets.hide(self.late_tools.news())

    def unsent_instructions(self, messages: Sequence[Message]) -> str:
        """Instructions of MCP servers that none of the sent messages holds; empty: none."""
        if self.late_tools is None or not (instructions := self.late_tools.instructions):
            return ""
        sent = self._compactor.apply_cut(messages)
        sent_texts = [message.text for message in sent if message.metadata.get(NUDGE) == MCP_INSTRUCTIONS]
        blocks = (_INSTRUCTIONS.format(server=server, text=self._secrets.hide(text)) for server, text in instructions.items())
        return "\n".join(block for block in blocks if not any(block in each for each in sent_texts))

    def offer_less(self, refusal: str) -> str:
        """Offers fewer tools when a provider refused their number, and no MCP tool that it refused. Returns a notice, or ""."""
        most = stated_tool_limit(refusal)
        if most is not None and self._toolbox.limit(most):
            return f"The provider accepts {most} tools; the model now searches for MCP tools with find_tools."
        name = rejected_tool(refusal, self._toolbox.foreign(compacted=not self._compactor.cut.is_empty))
        if not name:
            return ""
        self._toolbox.drop(name)
        return f"{name} is no longer offered, because the provider rejected it: {refusal}"


def stated_tool_limit(refusal: str) -> int | None:
    """Returns the maximum number of tools named in a refusal. None: the refusal is about something else."""
    found = re.search(_TOO_MANY, refusal) if re.search(_ABOUT_TOOLS, refusal) else None
    return int(found[1]) if found and int(found[1]) >= _LEAST_LIMIT else None


def rejected_tool(message: str, foreign: Mapping[int, str]) -> str:
    """Returns the tool that a refusal names directly or by position. `foreign` maps positions to names. Empty: none of them."""
    words = set(re.findall(r"[A-Za-z0-9_-]+", message))
    named = next((name for name in foreign.values() if name in words), "")
    if named:
        return named
    places = (int(found[1] or found[2]) for found in re.finditer(_PLACE, message))
    return next((foreign[place] for place in places if place in foreign), "")


def build_system_prompt(
    cwd: Path,
    *,
    instructions: str = "",
    skills: str = "",
    display_name: str = NAME,
    replacement: str | None = None,
    appendix: str = "",
) -> str:
    """`replacement` replaces the built-in prose; facts, instructions, the list of `skills` and the appendix follow in any
    case."""
    prose = with_display_name(default_prompt() if replacement is None else replacement.strip(), display_name)
    if skills:
        skills = f"{(Path(__file__).parent / 'prompts' / 'skills.md').read_text(encoding='utf-8').strip()}\n\n{skills}"
    # A line break in the name of a directory must not inject text into the prompt.
    place = "".join(
        letter if letter.isprintable() or (letter.isspace() and letter.splitlines() == [letter]) else "\ufffd"
        for letter in str(cwd)
    )
    parts = (
        prose,
        f"# Here\n\nWorking directory: {place}\nSystem: {machine()}",
        instructions.strip(),
        skills,
        appendix.strip(),
    )
    return sys.intern("\n\n".join(filter(None, parts)))  # conversations in the same place share it
