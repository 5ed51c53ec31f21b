"""Turns intents, rules, the mode and the user's answers into one verdict.

Each part of a call is judged separately, and the strictest verdict wins. Wolo's own files come first, protected names last; in
between applies the order of `precedence.py`. `command_judge.py` judges command lines.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from wolo.errors import ConfigError
from wolo.guard import protected_paths
from wolo.guard.boundaries import Boundaries, real_place
from wolo.guard.command_judge import CommandJudge, Confine
from wolo.guard.intents import CallIntent, FetchIntent, Intent, ReadIntent, RunIntent, WriteIntent
from wolo.guard.modes import MODES, PLAN, PLANNING, Mode
from wolo.guard.precedence import Grants, Paths, Precedence, Rulebook, Subject, Target, fingerprint
from wolo.guard.rule_patterns import PathBase, read_host, whole_place
from wolo.guard.rules import Rule, Verdict, is_too_wide, parse_rule, strictest, suggest
from wolo.guard.safe_commands import SafeList
from wolo.guard.shell.words import printable
from wolo.places import find_home
from wolo.workspace.root import resolve_path

if TYPE_CHECKING:
    from wolo.guard.modes import Ceiling

LONG_ADDRESS = 256
"""Characters of host, path and query together."""
EVERYTHING = ("read:**", "write:**", "shell:*", "fetch:*", "mcp:*", "tool:*", "task:*")
"""Rules that allow everything a rule can allow."""
_MOST_SHOWN = 4


class Judge:
    """`mode` may change during a conversation; everything else is fixed at its start."""

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
        free_folders: Iterable[Path] = (),
        home: Path | None = None,
        confine: Confine = "never",
    ) -> None:
        """`own_places` contain wolo's settings, rules and sessions; `free_reads` the spilled output in them that the model may
        page. `free_folders` may be listed too: skills and plugins.
        """
        self.grants = Grants()
        self._confine: Confine = confine
        self._session = self
        """The judge of the conversation; another one if this is limited."""
        self._boundaries = Boundaries((workspace_root, *extra_roots), own_places, free_reads, home or find_home(), free_folders)
        self._root = self._boundaries.roots[0]
        self._start = real_place(cwd or workspace_root)
        self._base = PathBase(self._root, real_place(self._boundaries.home), fold_case=sys.platform in ("darwin", "win32"))
        self._book = Rulebook(rules, self._base)
        self._precedence = Precedence(mode, self._book, self.grants, self._base)
        self._safe = SafeList(self._boundaries, os.environ.get("PATH", os.defpath))
        self._commands = CommandJudge(self._precedence, self._boundaries, self._safe)
        self._ceilings: tuple[tuple[Ceiling, Judge], ...] = ()

    def under(self, ceiling: Ceiling) -> Judge:
        """The same judge for an agent with fewer rights; mode and grants stay shared, and so do limits that this judge has."""
        limits = self._copy()
        limits._session, limits._confine, limits._ceilings = limits, "never", ()
        limits._book = Rulebook(ceiling.rules, self._base)
        limits._precedence = Precedence(ceiling.judge_mode, limits._book, self.grants, self._base, ceiling.limits)
        limits._commands = CommandJudge(limits._precedence, self._boundaries, self._safe)
        limited = self._copy()
        limited._ceilings = (*self._ceilings, (ceiling, limits))
        return limited

    def _copy(self) -> Judge:
        from copy import copy  # noqa: PLC0415  # only with ceilings, and where a denial is suggested

        return copy(self)

    @property
    def confine(self) -> Confine:
        return self._session._confine

    @confine.setter
    def confine(self, confine: Confine) -> None:
        self._session._confine = confine

    @property
    def mode(self) -> Mode:
        return self._precedence.mode

    @mode.setter
    def mode(self, mode: Mode) -> None:
        self._precedence.mode = mode

    @property
    def mode_ceiling(self) -> str:
        """The least strict mode that agent files allow; empty: any."""
        return min((ceiling.mode for ceiling, _ in self._ceilings if ceiling.mode), key=list(MODES).index, default="")

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The configured rules, then those of this session."""
        return (*self._book.rules, *self.grants.rules)

    def protect_files(self, paths: Iterable[Path]) -> None:
        """Makes writes to these files ask in every mode: they run for the user, or are links to such files (real paths).

        Must be called before the sandbox is prepared.
        """
        self._boundaries.protected_files = tuple(map(str, paths))

    def denied_places(self, tool: str) -> tuple[str, ...]:
        """Paths that rules deny completely, for the sandbox to enforce: one for `read:notes/**`, none for `read:**/*.key`."""
        places = (whole_place(rule.pattern, self._base) for rule in self.rules if rule.decision == "deny" and rule.tool == tool)
        protected_files = self._boundaries.protected_files if tool == "write" else ()
        return tuple(
            dict.fromkeys(place for place in (*places, *protected_files) if place and place not in self._boundaries.roots)
        )

    def readable_places(self) -> tuple[str, ...]:
        """Paths that rules make completely readable: one for `read:~/data/**`, none for `read:**/*.txt`."""
        rules = (rule for rule in self.rules if rule.decision == "allow" and rule.tool == "read")
        return tuple(dict.fromkeys(filter(None, (whole_place(rule.pattern, self._base) for rule in rules))))

    def judge(self, tool_name: str, intents: Sequence[Intent], arguments: Mapping[str, Any] | None = None) -> Verdict:
        """A call without intents has no effects and is allowed."""
        verdicts = [self.judge_one(intent) for intent in intents] or [Verdict("allow", "It changes nothing.")]
        verdict = strictest(verdicts)
        if not self.grants or verdict.decision != "ask":
            return verdict
        call = fingerprint(tool_name, intents, arguments or {})
        if (refusal := self.grants.refusal(call)) is not None:
            reason = f": {refusal}" if refusal else "."
            return Verdict("deny", f"The user has already denied this exact call{reason}", source="session")
        is_known = not any(isinstance(intent, RunIntent) and intent.concern for intent in intents)
        if is_known and self.grants.allows(call):
            return Verdict("allow", "The user allowed this exact call for the session.", source="session")
        return verdict

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
        """Stores the user's answer for this exact call and for `rule`. A denial without a rule holds until the next prompt."""
        given = parse_rule(rule, "allow" if allowed else "deny", "session") if rule else None
        if given is not None and not allowed:
            self._book.add(given)
        self.grants.remember(fingerprint(tool_name, intents, arguments or {}), allowed=allowed, rule=given, reason=reason)

    def as_if_allowed(self, intents: Sequence[Intent], verdict: Verdict, source: str) -> Verdict:
        """Judges the intents as if every allow rule applied; returns `verdict` unchanged where that is not enough.

        Protected names, ask rules and irreversible effects need the person's own approval.
        """
        everything = Rulebook((parse_rule(rule, "allow") for rule in EVERYTHING), self._base)
        allowed = strictest([self.judge_one(intent, everything) for intent in intents])
        if allowed.decision != "allow":
            return verdict
        return Verdict("allow", f"Allowed by a {source}.", source=source, confined=allowed.confined)

    def suggest_rule(self, intents: Sequence[Intent]) -> str:
        """The rule that "always" would add to allow these intents; empty if there is none."""
        rules = self._rules_for(intents)
        rule = rules[0] if len(rules) == 1 else ""
        return rule if rule and self._would_allow(rule, intents) else ""

    def suggest_denial(self, intents: Sequence[Intent]) -> str:
        """The rule that "never" would add to deny these intents; empty if there is none."""
        rules = self._rules_for(intents)
        if len(rules) != 1 or not rules[0]:
            return ""
        trial = self._copy()
        trial._book = Rulebook([parse_rule(rules[0], "deny")], self._base)
        trial._precedence = Precedence(self.mode, trial._book, Grants(), self._base)
        trial._commands = CommandJudge(trial._precedence, self._boundaries, self._safe)
        would_deny = any(trial.judge_one(intent).decision == "deny" for intent in intents)
        return rules[0] if would_deny else ""

    def why_no_rule(self, intents: Sequence[Intent]) -> str:
        """Names the rules if more than one would be needed; otherwise empty."""
        rules = self._rules_for(intents)
        if len(rules) < 2 or not all(rules):
            return ""
        more = ", …" if len(rules) > _MOST_SHOWN else ""
        return f"To always allow this, add {len(rules)} rules: {', '.join(rules[:_MOST_SHOWN])}{more}."

    def _rules_for(self, intents: Sequence[Intent]) -> list[str]:
        """Rules for each part that needs approval; an empty string where no rule can be offered."""
        rules: dict[str, None] = {}
        for intent in intents:
            if self.judge_one(intent).decision == "ask":
                found = self._commands.suggest(intent) if isinstance(intent, RunIntent) else [suggest(intent, self._root)]
                rules |= dict.fromkeys(found)
        return list(rules)

    def complaint(self, rule: str, intents: Sequence[Intent]) -> str:
        """Describes what is wrong with a rule the user wrote for this call; empty if it can be saved."""
        try:
            parsed = parse_rule(rule, "allow")
        except ConfigError as error:
            return f"{error.message} {error.hint}".strip()
        if is_too_wide(parsed):
            return f"The rule {parsed} would let any code run: after an interpreter or a wrapper, every word must be given."
        return "" if self._would_allow(rule, intents) else f"The rule {parsed} does not cover this call."

    def explain(self, intents: Sequence[Intent]) -> list[str]:
        """Every step to the verdict, a line each."""
        self._precedence.trace = lines = []
        try:
            for intent in intents:
                verdict = self.judge_one(intent)
                lines.append(f"→ {verdict.decision}{', inside the sandbox' if verdict.confined else ''}: {verdict.reason}")
        finally:
            self._precedence.trace = None
        return list(map(printable, lines))

    def _would_allow(self, rule: str, intents: Sequence[Intent]) -> bool:
        book = Rulebook([parse_rule(rule, "allow")], self._base)
        return all(self.judge_one(intent, book).decision == "allow" for intent in intents)

    def readable(self, path: Path) -> bool:
        """Tells whether a search may show this file's content without asking. Only the last part of the path may be a link."""
        intent = ReadIntent(Path(resolve_path(path)), str(path)) if path.is_symlink() else ReadIntent(path)
        return self.judge_one(intent).decision == "allow"

    def all_readable(self, folder: Path, names: Sequence[str]) -> bool:
        """A quick check: True if `readable` is for every regular file of these names in a real folder; False says nothing."""
        place, bounds = folder.as_posix(), self._boundaries
        if not bounds.is_inside(place) or bounds.is_own(place) or bounds.is_above_own(place):
            return False
        if protected_paths.may_hold_secret(place, names) or any("read" in ceiling.limits for ceiling, _ in self._ceilings):
            return False
        books = (self._book, *(limits._book for _, limits in self._ceilings))
        finds = [book.find for book in books if book.has("deny", "read") or book.has("ask", "read")]
        paths = [Paths(f"{place}/{name}", f"{place}/{name}") for name in names if finds]
        return not any(find("deny", "read", path) or find("ask", "read", path) for find in finds for path in paths)

    def rule_against_reading(self, path: Path) -> Rule | None:
        """The deny rule that applies to a file by any of its paths; None if there is none."""
        return self._book.find("deny", "read", Paths(real_place(path), self._spelling(path)))

    def may_fetch(self, url: str) -> bool:
        """Tells whether a redirect to `url` may be followed without asking."""
        return self.judge_one(FetchIntent(url)).decision == "allow"

    def judge_one(self, intent: Intent, extra: Rulebook | None = None) -> Verdict:
        """`extra` contains allow rules on trial."""
        match intent:
            case ReadIntent():
                verdict = self._judge_read(intent, extra)
            case WriteIntent():
                verdict = self._judge_write(intent, extra)
            case RunIntent():
                verdict = self._commands.judge(intent, self.confine, extra)
            case FetchIntent():
                host = read_host(intent.url)
                subject = Subject("fetch", host, f"Fetching from {host.name}", self.mode.fetch)
                if host.scheme not in ("http", "https") or not host.name or host.has_user:
                    verdict = Verdict("deny", "Only http and https addresses without a user name can be fetched.")
                else:
                    verdict = self._precedence.decide(subject, extra)
                if verdict.decision == "allow" and host.carried > LONG_ADDRESS:
                    about = f"The address carries {host.carried} characters to {host.name}, so this needs an approval."
                    verdict = Verdict("ask", about)
            case CallIntent():
                kind, _, name = intent.target.partition(":")
                if kind == "task":
                    subject = Subject("task", Target(name), f"The agent {name}", self.mode.task, is_safe=intent.only_reads)
                    verdict = self._precedence.decide(subject, extra)
                elif intent.by_program:
                    is_refused = self.mode.mcp == "deny" and not intent.only_reads
                    default = "deny" if is_refused else intent.by_program
                    verdict = self._precedence.decide(Subject("tool", Target(name), f"The function {name}", default), extra)
                elif kind == "tool":
                    is_confined = intent.only_reads and self.confine != "never"
                    subject = Subject("tool", Target(name), f"The custom tool {name}", "allow" if is_confined else self.mode.mcp)
                    verdict = replace(self._precedence.decide(subject, extra), confined=is_confined)
                else:
                    verdict = self._precedence.decide(Subject("mcp", Target(name), f"Calling {name}", self.mode.mcp), extra)
        if (verdict.decision, verdict.source, self.mode.name) == ("deny", "built-in", PLAN) and isinstance(
            intent, WriteIntent | RunIntent
        ):
            verdict = replace(verdict, source=PLANNING)  # it is refused as every other change, and counts as little
        for ceiling, limits in self._ceilings:
            verdict = ceiling.lower(verdict, limits.judge_one(intent))
        reason = printable(verdict.reason)
        return verdict if reason == verdict.reason else replace(verdict, reason=reason)

    def _judge_read(self, intent: ReadIntent, extra: Rulebook | None) -> Verdict:
        paths = self._paths(intent)
        is_free = self._boundaries.is_free(paths.real)
        default = "allow" if is_free or self._is_inside(intent) else self.mode.read_outside
        verdict = self._precedence.decide(Subject("read", paths, self._about("Reading", intent), default), extra)
        if verdict.decision != "allow" or _names_secret(verdict):
            return verdict
        if self._boundaries.is_own(paths.real) and not is_free:
            return Verdict("ask", f"{self._relative_name(intent)} belongs to wolo itself, so this needs an approval.")
        if any(map(protected_paths.is_secret, {*paths})):
            return Verdict("ask", f"{self._relative_name(intent)} may hold secrets, so this needs an approval.")
        return verdict

    def _judge_write(self, intent: WriteIntent, extra: Rulebook | None) -> Verdict:
        paths = self._paths(intent)
        if self._boundaries.is_own(paths.real):
            return Verdict("deny", f"{self._relative_name(intent)} belongs to wolo itself and cannot be written in any mode.")
        default = self.mode.write if self._is_inside(intent) else self.mode.write_outside
        verdict = self._precedence.decide(Subject("write", paths, self._about("Writing", intent), default), extra)
        if verdict.decision != "allow":
            return verdict
        if any(map(self._boundaries.runs_code, {*paths})):
            return Verdict(
                "ask",
                f"{self._relative_name(intent)} is a protected name: programs act on its content, so this needs an approval.",
            )
        if self._boundaries.is_link_target(paths.real):
            return Verdict(
                "ask",
                f"{self._relative_name(intent)} is the target of a link with a protected name: programs act on its content,  "
                "so this needs an approval.",
            )
        if any(map(protected_paths.is_secret, {*paths})) and not self.mode.trusts_commands and not _names_secret(verdict):
            return Verdict("ask", f"{self._relative_name(intent)} may hold secrets, so this needs an approval.")
        if verdict.rule or self.mode.trusts_commands:
            return verdict
        if intent.links > 1:
            concern = f"has {intent.links} names (hard links); only this one would change"
        elif intent.in_place:
            concern = "is in a read-only folder and would be overwritten in place"
        else:
            return verdict
        return Verdict("ask", f"{self._relative_name(intent)} {concern}, so this needs an approval.")

    def _is_inside(self, intent: ReadIntent | WriteIntent) -> bool:
        return intent.inside and self._boundaries.is_inside(intent.path.as_posix())

    def _paths(self, intent: ReadIntent | WriteIntent) -> Paths:
        real = intent.path.as_posix()
        return Paths(real, self._spelling(intent.given) if intent.given else real)

    def _spelling(self, path: str | Path) -> str:
        return os.path.normpath(Path(self._start, path)).replace(os.sep, "/")

    def _about(self, doing: str, intent: ReadIntent | WriteIntent) -> str:
        where = "" if self._is_inside(intent) else ", outside the workspace,"
        return f"{doing} {self._relative_name(intent)}{where}"

    def _relative_name(self, intent: ReadIntent | WriteIntent) -> str:
        path = intent.path.as_posix()
        root = self._root + "/"
        return path[len(root) :] if path.startswith(root) else path


def _names_secret(verdict: Verdict) -> bool:
    """A rule of the user opens a secret only if its pattern names one: `read:.env` does, `read:**` does not."""
    return bool(verdict.rule) and protected_paths.is_secret("/" + verdict.rule.partition(":")[2])
