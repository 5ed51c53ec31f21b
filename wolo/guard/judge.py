"""The judge: what a call is about to do, the rules, the mode and what a person said become one verdict.

Every part of a call is judged on its own and the strictest verdict wins. For one part the order is

    wolo's own files → deny rules → the mode's ceiling → protected names → what a person allowed in this session
    → ask rules → allow rules → what the mode says
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from msgspec.structs import replace

from wolo.guard import protected
from wolo.guard.grants import Grants, fingerprint
from wolo.guard.intents import CallIntent, FetchIntent, Intent, ReadIntent, RunIntent, WriteIntent
from wolo.guard.modes import Mode
from wolo.guard.naming import TooManyFiles, files_of, named_paths, spelled
from wolo.guard.patterns import Ground, read_host
from wolo.guard.rulebook import Paths, Rulebook, Subject, Target
from wolo.guard.rules import Decision, Rule, RuleTool, Verdict, parse_rule
from wolo.guard.shell import Command, read_command
from wolo.guard.suggest import suggest

LONG_QUERY = 256
Confine = Literal["never", "unless_allowed", "always"]
"""Which commands run inside the walls: `unless_allowed` leaves out what a person, or a rule a person wrote, allowed."""
_RANK = {"allow": 0, "ask": 1, "deny": 2}


class Judge:
    """`mode` may change while a conversation lives; everything else is fixed when it starts."""

    def __init__(
        self,
        mode: Mode,
        rules: Iterable[Rule],
        workspace_root: Path,
        *,
        extra_roots: Iterable[Path] = (),
        cwd: Path | None = None,
        own_places: Iterable[Path] = (),
        free_reads: Iterable[Path] = (),
        home: Path | None = None,
        grants: Grants | None = None,
        confine: Confine = "never",
    ) -> None:
        """`own_places` hold wolo's settings, rules and sessions; `free_reads` what it spilled there for the model to page."""
        self.mode = mode
        self.grants = Grants() if grants is None else grants
        self.confine = confine
        self._roots = [os.path.realpath(path) for path in (workspace_root, *extra_roots)]
        self._start = os.path.realpath(cwd or workspace_root)
        self._home = str(home or Path.home())
        self._own = [os.path.realpath(path) for path in own_places]
        self._own_spelled = spelled(own_places, self._home)
        self._free_reads = [os.path.realpath(path) for path in free_reads]
        self._free_spelled = files_of(self._free_reads)
        self._ground = Ground(self._roots[0], os.path.realpath(self._home), fold_case=sys.platform == "darwin")
        self._book = Rulebook(rules, self._ground)
        self._granted = Rulebook((), self._ground)

    def judge(self, tool_name: str, intents: Sequence[Intent], arguments: Mapping[str, Any] | None = None) -> Verdict:
        """Without intents a call has no effects and is allowed."""
        verdicts = [self._judge_one(intent) for intent in intents] or [Verdict("allow", "It changes nothing.")]
        verdict = max(verdicts, key=lambda each: _RANK[each.decision])
        if not self.grants or verdict.decision != "ask":
            return verdict
        return self._as_answered(fingerprint(tool_name, intents, arguments or {}), verdict)

    def remember(
        self,
        tool_name: str,
        intents: Sequence[Intent],
        arguments: Mapping[str, Any] | None = None,
        *,
        allowed: bool,
        rule: str = "",
        reason: str = "",
    ) -> None:
        """A person's answer for the rest of the session: to this exact call, or to `rule` when one was shown."""
        given = parse_rule(rule, "allow", "session") if rule else None
        self.grants.remember(fingerprint(tool_name, intents, arguments or {}), allowed=allowed, rule=given, reason=reason)

    def suggest_rule(self, intents: Sequence[Intent]) -> str:
        """The rule "always" would write so that these intents ask no more; empty when there is none to offer."""
        asking = [intent for intent in intents if self._judge_one(intent).decision == "ask"]
        rules = {suggest(intent, self._roots[0]) for intent in asking}
        rule = rules.pop() if len(rules) == 1 else ""
        if not rule:
            return ""
        book = Rulebook([parse_rule(rule, "allow")], self._ground)
        return rule if all(self._judge_one(intent, book).decision == "allow" for intent in asking) else ""

    def readable(self, path: Path) -> bool:
        """Whether a search may show this file's content unasked; of the path only the last part may be a link."""
        real = os.path.realpath(path) if path.is_symlink() else str(path)
        return self._judge_read(ReadIntent(Path(real), str(path)), None).decision == "allow"

    def _as_answered(self, call: str, verdict: Verdict) -> Verdict:
        refusal = self.grants.refusal(call)
        if refusal is not None:
            said = f": {refusal}" if refusal else "."
            return Verdict("deny", f"A person has already said no to this exact call{said}", source="session")
        if self.grants.allows(call):
            return Verdict("allow", "A person allowed this exact call for the session.", source="session")
        return verdict

    def _judge_one(self, intent: Intent, extra: Rulebook | None = None) -> Verdict:
        """`extra` holds allow rules to be tried out."""
        if self._granted.rules != self.grants.rules:
            self._granted = Rulebook(self.grants.rules, self._ground)
        match intent:
            case ReadIntent():
                return self._judge_read(intent, extra)
            case WriteIntent():
                return self._judge_write(intent, extra)
            case RunIntent():
                return self._judge_run(intent, extra)
            case FetchIntent():
                return self._judge_fetch(intent, extra)
            case CallIntent():
                return self._judge_call(intent, extra)

    def _judge_read(self, intent: ReadIntent, extra: Rulebook | None) -> Verdict:
        paths = self._paths(intent)
        is_free = self._is_free(paths.real)
        default = "allow" if is_free or self._is_inside(intent) else self.mode.read_outside
        verdict = self._weigh("read", paths, default, self._about("Reading", intent), extra)
        if verdict.decision != "allow" or _names_secret(verdict):
            return verdict
        if self._is_below(paths.real, self._own) and not is_free:
            return Verdict("ask", f"{self._shown(intent)} belongs to wolo itself, so this needs an approval.")
        if any(map(protected.is_secret, {*paths})):
            return Verdict("ask", f"{self._shown(intent)} may hold secrets, so this needs an approval.")
        return verdict

    def _judge_write(self, intent: WriteIntent, extra: Rulebook | None) -> Verdict:
        paths = self._paths(intent)
        if self._is_below(paths.real, self._own):
            return Verdict("deny", f"{self._shown(intent)} belongs to wolo itself and is not written in any mode.")
        default = self.mode.write if self._is_inside(intent) else self.mode.write_outside
        verdict = self._weigh("write", paths, default, self._about("Writing", intent), extra)
        if verdict.decision != "allow":
            return verdict
        if any(map(protected.runs_code, {*paths})):
            return Verdict(
                "ask", f"{self._shown(intent)} is a protected name, what is written there may run, so this needs an approval."
            )
        if any(map(protected.is_secret, {*paths})) and not self.mode.trusts_commands and not _names_secret(verdict):
            return Verdict("ask", f"{self._shown(intent)} may hold secrets, so this needs an approval.")
        if intent.links > 1 and not verdict.rule and not self.mode.trusts_commands:
            others = f"{intent.links} names (hard links)"
            return Verdict("ask", f"{self._shown(intent)} has {others}; only this one would change, so this needs an approval.")
        return verdict

    def _judge_run(self, intent: RunIntent, extra: Rulebook | None) -> Verdict:
        verdict = self._judge_command(intent, extra)
        by_person = bool(verdict.rule) or verdict.decision == "ask" or self.mode.trusts_commands
        if self.confine == "always" or (self.confine == "unless_allowed" and not by_person):
            return replace(verdict, confined=True)
        return verdict

    def _judge_command(self, intent: RunIntent, extra: Rulebook | None) -> Verdict:
        command = read_command(intent.command, intent.cwd)
        try:
            named, unknown = named_paths(command), ""
        except TooManyFiles:
            named, unknown = [], "The command's wildcards may name any file."
        if self._names_own(command, named):
            return Verdict("deny", "The command names wolo's own files, which no command may touch.")
        verdict = self._weigh("shell", command, self.mode.shell, "This command", extra)
        if command.words is None and self._book.has("deny", "shell") and verdict.decision != "deny":
            if not command.is_readable:
                return Verdict("deny", "The command is too long or holds invisible characters, and some commands are denied.")
            if self.mode.trusts_commands:
                return Verdict("deny", "Some commands are denied, so this one must be plain words: write it plainly.")
        if verdict.decision == "allow" and (concern := self._concern(command, named, unknown)):
            return Verdict("ask", concern)
        return verdict

    def _judge_fetch(self, intent: FetchIntent, extra: Rulebook | None) -> Verdict:
        host = read_host(intent.url)
        if host.scheme not in ("http", "https") or not host.name or host.has_user:
            return Verdict("deny", "Only http and https addresses without a user name can be fetched.")
        verdict = self._weigh("fetch", host, self.mode.fetch, f"Fetching from {host.name}", extra)
        if verdict.decision == "allow" and len(host.query) > LONG_QUERY:
            return Verdict("ask", f"The address carries {len(host.query)} characters to {host.name}, so this needs an approval.")
        return verdict

    def _judge_call(self, intent: CallIntent, extra: Rulebook | None) -> Verdict:
        kind, _, name = intent.target.partition(":")
        if kind == "task":
            return self._weigh("task", Target(name), self.mode.task, f"The agent {name}", extra)
        return self._weigh("mcp", Target(name), self.mode.mcp, f"Calling {name}", extra)

    def _weigh(self, tool: RuleTool, subject: Subject, default: Decision, about: str, extra: Rulebook | None) -> Verdict:
        if rule := self._book.find("deny", tool, subject):
            return Verdict("deny", f"{about} is denied by the rule {rule}.", str(rule), rule.source)
        mode = f"mode {self.mode.name}"
        if default == "deny":
            return Verdict("deny", f"{about} is not possible in {mode}.", source=mode)
        if rule := self._granted.find("allow", tool, subject):
            return Verdict("allow", f"{about} is allowed by the rule {rule}.", str(rule), rule.source)
        if rule := self._book.find("ask", tool, subject):
            return Verdict("ask", f"{about} needs an approval by the rule {rule}.", str(rule), rule.source)
        tried = extra.find("allow", tool, subject) if extra else None
        if rule := self._book.find("allow", tool, subject) or tried:
            return Verdict("allow", f"{about} is allowed by the rule {rule}.", str(rule), rule.source)
        says = "is allowed" if default == "allow" else "needs an approval"
        return Verdict(default, f"{about} {says} in {mode}.", source=mode)

    def _concern(self, command: Command, named: Sequence[str], unknown: str) -> str:
        """Why a command asks although a rule or the mode allows it; empty when it need not."""
        for path in named:
            for tool in ("read", "write"):
                if rule := self._book.find("deny", tool, Paths(path, path)):
                    return f"The command names {path}, denied by the rule {rule}."
        if self.mode.trusts_commands or unknown:
            return "" if self.mode.trusts_commands else unknown
        cwd = os.path.realpath(command.cwd)
        if not self._is_below(cwd, self._roots):
            return "The command would run outside the workspace."
        if command.words and command.words[0].text in ("cd", "pushd", "popd"):
            goals = [word.text for word in command.words[1:]] or [self._home]
            if "-" in goals or not all(self._is_below(os.path.realpath(Path(cwd, goal)), self._roots) for goal in goals):
                return "The command would leave the workspace."
        for path in (cwd, *named):
            if protected.is_secret(path) or protected.runs_code(path):
                return f"The command names {path}, which is protected."
        return ""

    def _names_own(self, command: Command, named: Sequence[str]) -> bool:
        text = self._free_spelled.sub("", command.text) if self._free_spelled else command.text
        if self._own_spelled and self._own_spelled.search(text):
            return True
        return any(self._is_below(path, self._own) and not self._is_free(path) for path in named)

    def _is_free(self, path: str) -> bool:
        """A file that was spilled for the model, who was told its name; not the folder, which lists what others were told."""
        return path not in self._free_reads and self._is_below(path, self._free_reads)

    def _is_inside(self, intent: ReadIntent | WriteIntent) -> bool:
        return intent.inside and self._is_below(str(intent.path), self._roots)

    @staticmethod
    def _is_below(path: str, folders: Sequence[str]) -> bool:
        return any(path == folder or path.startswith(folder.rstrip("/") + "/") for folder in folders)

    def _paths(self, intent: ReadIntent | WriteIntent) -> Paths:
        real = str(intent.path)
        return Paths(real, os.path.normpath(Path(self._start, intent.given)) if intent.given else real)

    def _about(self, doing: str, intent: ReadIntent | WriteIntent) -> str:
        where = "" if self._is_inside(intent) else ", outside the workspace,"
        return f"{doing} {self._shown(intent)}{where}"

    def _shown(self, intent: ReadIntent | WriteIntent) -> str:
        """A name is data: a line break in it must not begin a line of its own."""
        path = str(intent.path)
        root = self._roots[0] + "/"
        shown = path[len(root) :] if path.startswith(root) else path
        return shown if shown.isprintable() else shown.encode("unicode_escape").decode()


def _names_secret(verdict: Verdict) -> bool:
    """A person's rule opens a secret only when its pattern names one: `read:.env` does, `read:**` does not."""
    return bool(verdict.rule) and protected.is_secret("/" + verdict.rule.partition(":")[2])
