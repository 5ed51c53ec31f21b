"""Parses and suggests permission rules, `tool:pattern`, and defines the verdict they lead to."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, get_args

from msgspec import Struct

from wolo.errors import ConfigError
from wolo.guard.intents import CallIntent, FetchIntent, ReadIntent, WriteIntent
from wolo.guard.rule_patterns import read_host
from wolo.guard.shell.words import Word, plain_words, runs_anything, split_words

Decision = Literal["allow", "ask", "deny"]
RuleTool = Literal["read", "write", "shell", "fetch", "mcp", "tool", "task"]
TOOLS: tuple[RuleTool, ...] = get_args(RuleTool)
_RANK: dict[Decision, int] = {"allow": 0, "ask": 1, "deny": 2}

_ALIASES = {
    "edit": "write",
    "apply_patch": "write",
    "grep": "read",
    "glob": "read",
    "repo_map": "read",
    "bash": "shell",
    "run": "shell",
    "web": "fetch",
    "web_search": "fetch",
    "websearch": "fetch",
}
"""Tool names that users try, and the rule tool that covers them."""
_OTHER_WILDCARD = r"\[(?:[!^][^\]]*|[^\]]*\w-\w[^\]]*)\]|\{[^{}]*,[^{}]*\}"
"""Wildcards of other tools, which would match nothing here; `[id]` and `[...slug]` are real file names."""
_LABEL = r"[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?"
_HOST = rf"(?:\*|(?:\*\.)?{_LABEL}(?:\.{_LABEL})*|\[[0-9a-f:.]+\])(?::\d{{1,5}})?"
_TARGET_HINTS = {"mcp": '"mcp:SERVER/TOOL" or "mcp:SERVER/*"', "tool": '"tool:NAME"', "task": '"task:AGENT"'}
_TARGETS = {"mcp": r"[\w.*-]+(?:/[\w.*-]+)?", "tool": r"[\w*]+", "task": r"[\w.*-]+"}


class Rule(Struct, frozen=True):
    decision: Decision
    tool: RuleTool
    pattern: str
    source: str = ""
    """Origin to show: `--allow`, `config.toml`, …"""

    def __str__(self) -> str:
        return f"{self.tool}:{self.pattern}"


class RuleWithExamples(Struct, frozen=True, forbid_unknown_fields=True):
    """Examples are checked when the rule is read."""

    rule: str
    match: tuple[str, ...] = ()
    """Calls it must match."""
    no_match: tuple[str, ...] = ()
    """Calls it must not match."""


class Verdict(Struct, frozen=True):
    decision: Decision
    reason: str
    """A sentence for the user and the model."""
    rule: str = ""
    """The deciding rule as written; empty if none decided."""
    source: str = "built-in"
    """Origin of the decision: `built-in`, `mode NAME`, `session`, or where the rule was written."""
    confined: bool = False
    """Allowed inside the sandbox only."""

    def without_person(self) -> Verdict:
        """Turns a question into a denial where no one can answer it."""
        if self.decision != "ask":
            return self
        stop = "" if self.reason.endswith((".", "!", "?", "…")) else "."
        reason = f"{self.reason}{stop} No one could approve it, so it was denied."
        return Verdict("deny", reason, self.rule, self.source)


def strictest(verdicts: Sequence[Verdict]) -> Verdict:
    """Returns the first of the strictest verdicts."""
    return max(verdicts, key=lambda each: _RANK[each.decision])


def parse_rule(text: str, decision: Decision, source: str = "") -> Rule:
    """Raises ConfigError that names the rule and the mistake: a rule must never silently do nothing."""
    tool, colon, pattern = text.strip().partition(":")
    pattern = pattern.strip()
    complaint: tuple[str, str] | None
    if tool not in TOOLS:
        alias = _ALIASES.get(tool.lower().partition("(")[0])
        hint = f'"{alias}:…" covers it.' if alias else f'A rule is "tool:pattern"; the tools are {", ".join(TOOLS)}.'
        complaint = f'"{tool}" is not a rule tool', hint
    elif not colon or not pattern:
        everything = "**" if tool in ("read", "write") else "*"
        complaint = "it has no pattern", f'For every {tool} write "{tool}:{everything}".'
    elif not pattern.isprintable():
        complaint = "it contains a control or invisible character", ""
    else:
        if (complaint := _complaint(tool, pattern, decision)) is None:
            return Rule(decision, tool, pattern, source)
    where = f" ({source})" if source else ""
    raise ConfigError(f'The {decision} rule "{text}"{where} cannot be used: {complaint[0]}.', hint=complaint[1])


def _complaint(tool: RuleTool, pattern: str, decision: Decision) -> tuple[str, str] | None:
    if tool == "shell":
        first = (split_words(pattern) or ())[:1]
        is_any = any(word.has_glob and (word.text == "*" or decision != "allow") for word in first)
        if not is_any and not plain_words(pattern):
            return "its pattern is not plain words", "A pattern cannot contain an operator, a redirection or a `$`."
        return None
    if tool == "fetch":
        if not re.fullmatch(_HOST, pattern.lower()):
            return "its pattern is not a host", 'Write a host without a scheme or path: "docs.python.org", "*.python.org" or "*".'
        return None
    if tool not in ("read", "write"):
        if not re.fullmatch(_TARGETS[tool], pattern):
            return "its pattern has the wrong form", _TARGET_HINTS[tool]
        return None
    parts = pattern.split("/")
    if pattern.startswith("!"):
        return "`!` does not negate a pattern", "Write the opposite rule under `allow` or `deny`."
    if other := re.search(_OTHER_WILDCARD, pattern):
        return f"`{other[0]}` is not a wildcard here", "The wildcards are `*`, `?` and `**`; otherwise write one rule per name."
    if pattern.startswith("~") and parts[0] != "~":
        return f"`{parts[0]}` is not expanded", "Write the full path."
    if "$" in parts[0]:
        return f"`{parts[0]}` is not expanded", "Write the full path, or start it with `~/`."
    wild = next((index for index, part in enumerate(parts) if "*" in part or "?" in part), len(parts))
    if ".." in parts[wild:]:
        return "`..` after a wildcard has no meaning", ""
    return None


CHECKERS = frozenset({"pytest", "ruff", "tsc", "ls", "wc"})
"""Programs whose arguments cannot make another program run, so a rule with a final `*` is offered."""

_BARE = r"[\w./:=@%+,-]+"


def suggest(intent: ReadIntent | WriteIntent | FetchIntent | CallIntent, root: str) -> str:
    """Suggests a rule for exactly this intent; empty if no rule can express it."""
    match intent:
        case ReadIntent() | WriteIntent():
            path = intent.path
            name = str(path.relative_to(root)) if path.is_relative_to(root) else str(path)
            if name != name.strip() or re.search(r"[*?~$]", name) or not name.isprintable():
                return ""
            return f"{'read' if isinstance(intent, ReadIntent) else 'write'}:{name}"
        case FetchIntent():
            host = read_host(intent.url)
            if not host.name or not re.fullmatch(r"[\w.-]+", host.name, re.ASCII):
                return ""
            return f"fetch:{host.name}" + (f":{host.port}" if host.port else "")
        case CallIntent():
            return intent.target if re.fullmatch(r"(?:mcp:[\w.-]+/[\w.-]+)|(?:task:[\w.-]+)|(?:tool:\w+)", intent.target) else ""


def suggest_command(words: Sequence[Word]) -> str:
    """Suggests a rule for one plain command; empty if no rule can express it."""
    if not all(word.text.isprintable() for word in words):
        return ""
    if words[0].text in CHECKERS:
        return f"shell:{words[0].text} *"
    patterns = [_pattern_of(word) for word in words]
    return f"shell:{' '.join(patterns)}" if all(patterns) else ""


def is_too_wide(rule: Rule) -> bool:
    """Tells whether an allow rule leaves words open after a program that would run them."""
    if rule.tool != "shell":
        return False
    words = split_words(rule.pattern) or ()
    open_at = next((at for at, word in enumerate(words) if word.has_glob), None)
    return open_at is not None and (open_at == 0 or runs_anything([word.text for word in words[:open_at]]))


def _pattern_of(word: Word) -> str:
    """The word as a pattern that matches only itself; empty if there is none."""
    if word.has_glob:
        return ""
    if re.fullmatch(_BARE, word.text):
        return word.text
    quote = '"' if "'" in word.text else "'"
    return "" if quote in word.text or (quote == '"' and "\\" in word.text) else f"{quote}{word.text}{quote}"
