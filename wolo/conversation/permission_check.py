"""Tests hypothetical calls against the rules, for users."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from wolo.config import layers
from wolo.config.cli_options import Flags
from wolo.config.schema import Config
from wolo.conversation.resources.tool_environment import plan_sandbox
from wolo.errors import UsageError
from wolo.guard.intents import CallIntent, FetchIntent, Intent, ReadIntent, RunIntent, WriteIntent
from wolo.guard.judge import Judge
from wolo.guard.rules import TOOLS, Rule, Verdict
from wolo.places import Site, find_places
from wolo.tools.tool import ShellState
from wolo.tools.tool_values import BUILTIN, SubagentOffer
from wolo.workspace.root import Workspace, find_site

if TYPE_CHECKING:
    from wolo.conversation.user_command import CommandRights


class PermissionCheck(Struct, frozen=True):
    judge: Judge
    config: Config
    workspace: Workspace
    shell: ShellState | None = None
    """None: outside of a conversation."""
    agents: Sequence[SubagentOffer] = BUILTIN

    def intent(self, call: str) -> Intent:
        """`shell:git push`, `read:src/a.py`, `fetch:docs.python.org`. Raises UsageError, and ToolError for an invalid path."""
        tool, colon, text = call.partition(":")
        if tool not in TOOLS or not colon or not text.strip():
            hint = f'Write "tool:what", as in "shell:git push"; the tools are {", ".join(TOOLS)}.'
            raise UsageError(f'"{call}" is not a call.', hint=hint)
        if tool in ("read", "write"):
            found = self.workspace.resolve(text)
            kind = ReadIntent if tool == "read" else WriteIntent
            return kind(found.path, text, found.inside)
        if tool == "shell":
            return RunIntent(text, self.workspace.start)
        if tool == "fetch":
            return FetchIntent(text if "://" in text else f"https://{text}")
        return CallIntent(call, only_reads=any(offer.only_reads and call == f"task:{offer.name}" for offer in self.agents))

    def verdict(self, call: str) -> Verdict:
        """Raises as `intent` does."""
        return self.judge.judge(call.partition(":")[0], [self.intent(call)])

    def rights(self, command: str) -> CommandRights | None:
        """The rights with which the model may run it without approval; None: it may not."""
        cwd = self.shell.cwd if self.shell else self.workspace.start
        verdict = self.judge.judge("shell", [RunIntent(command, cwd)])
        if verdict.decision != "allow":
            return None
        return "confined" if verdict.confined else "model"


def in_precedence(rules: tuple[Rule, ...]) -> list[Rule]:
    return [rule for decision in ("deny", "ask", "allow") for rule in rules if rule.decision == decision]


def rule_lines(rules: tuple[Rule, ...]) -> list[str]:
    rows = [f"{rule.decision:<6} {rule!s:<40} {rule.source}" for rule in in_precedence(rules)]
    return rows or ["No rules; the mode decides."]


def verdict_lines(verdict: Verdict) -> list[str]:
    return [
        f"{verdict.decision}{' (inside the sandbox)' if verdict.confined else ''}: {verdict.reason}",
        f"decided by {verdict.source}{f': {verdict.rule}' if verdict.rule else ''}",
    ]


def remove_rule(rule: str, root: Path, *, everywhere: bool) -> list[str]:
    """Deletes a rule saved with "always". Returns its decisions. Raises UsageError if there is none."""
    from wolo.config.settings_writer import delete_rule  # noqa: PLC0415  # conversations remove none

    removed = delete_rule(find_places(), None if everywhere else root, rule)
    if not removed:
        where = "for every workspace" if everywhere else f"for {root}"
        raise UsageError(f'No saved rule "{rule}" {where}.', hint="`wolo permissions list` shows where each rule is saved.")
    return removed


def open_permission_check(options: Flags, site: Site | None = None) -> PermissionCheck:
    """Resolves rules, mode and sandbox as a conversation would here, or at another site. Raises ConfigError and UsageError."""
    site = site or find_site()
    config = layers.load(site, options)
    workspace = Workspace(site.root, (), site.cwd)
    enclosure = plan_sandbox(config, workspace, site.places)
    own = site.places.own
    judge = Judge(enclosure.mode, config.rules, workspace.root, cwd=site.cwd, own_places=own, confine=enclosure.confine)
    return PermissionCheck(judge, config, workspace)
