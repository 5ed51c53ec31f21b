"""Judges a command line: each command in it, then the files it names and what it would destroy."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from msgspec.structs import replace

from wolo.guard import protected_paths
from wolo.guard.boundaries import Boundaries, are_changed_by, removal_targets
from wolo.guard.intents import RunIntent
from wolo.guard.precedence import SAFE, Paths, Precedence, Rulebook, Subject
from wolo.guard.rules import Verdict, strictest, suggest_command
from wolo.guard.safe_commands import PROGRAMS, SafeList
from wolo.guard.shell.named_paths import NamedPaths, named_paths, paths_in_text
from wolo.guard.shell.parser import Directory, ParsedLine, PlainCommand, TooComplex, read_line
from wolo.guard.shell.words import name_of
from wolo.workspace.root import resolve_path

Confine = Literal["never", "unless_allowed", "always"]
"""Selects the commands that run inside the sandbox. `unless_allowed` exempts what the user, or a rule of the user, allowed."""
SHOWN_LENGTH = 80
LOOKERS = frozenset({"ls", "find", "grep", "egrep", "fgrep", "rg", "ag", "fd", "tree", "du", "wc", "diff", "cmp", "echo", "git"})
"""Programs for which a protected name is usually something to exclude."""
READERS = LOOKERS | PROGRAMS
_TOO_WIDE = "The command's wildcards may name any file"


class CommandJudge:
    def __init__(self, precedence: Precedence, boundaries: Boundaries, safe: SafeList) -> None:
        self._precedence, self._boundaries, self._safe = precedence, boundaries, safe

    def judge(self, intent: RunIntent, confine: Confine, extra: Rulebook | None) -> Verdict:
        try:
            return self._judge(intent, confine, extra)
        except TooComplex as error:
            return Verdict("deny", str(error))

    def _judge(self, intent: RunIntent, confine: Confine, extra: Rulebook | None) -> Verdict:
        line = read_line(intent.command, intent.cwd, self._boundaries.home)
        book, trusts_commands = self._precedence.book, self._precedence.mode.trusts_commands
        if line.commands is not None and not (book.has("deny", "read") or book.has("deny", "write") or book.has("ask", "read")):
            safe = [self._safe.has(command) for command in line.commands]
            if all(safe) and not intent.concern:  # the safe list has already checked everything that such commands name
                verdicts = self._decide_each(line, safe, extra)
                return replace(strictest(verdicts), confined=self._is_confined(verdicts, confine))
        named = _paths_of(line, self._boundaries.home)
        if self._boundaries.names_own(line.text, named):
            return Verdict("deny", "The command names wolo's own files, which no command may touch.")
        removed = removal_targets(line.text, resolve_path(line.cwd), self._boundaries.home, named.paths)
        if any(map(self._boundaries.is_above_own, removed)):
            return Verdict("deny", "The command would change a directory that contains wolo's own files: name a narrower one.")
        if are_changed_by(line.text):
            return Verdict("deny", "The command would change wolo's own settings, which only the user may do.")
        verdicts = self._decide_each(line, self._find_safe(line.commands or ()), extra)
        verdict = strictest(sorted(verdicts, key=lambda each: each.source == SAFE))  # a line is safe only if every part is
        if verdict.decision == "deny":
            return verdict
        if line.commands is None and book.has("deny", "shell"):
            if not line.is_reviewable:
                about = "The command is too long or contains invisible characters, and some commands are denied."
                return Verdict("deny", about)
            if trusts_commands:
                return Verdict("deny", "Some commands are denied, so this one must be written as plain words.")
        verdict = replace(verdict, confined=self._is_confined(verdicts, confine))
        if trusts_commands and intent.concern and book.has("deny", "shell"):
            return Verdict("deny", f"Some commands are denied. {intent.concern}")
        concern = "" if trusts_commands else intent.concern
        if verdict.decision == "allow" and (concern := concern or self._concern(line, named, confined=verdict.confined)):
            self._trace(f"files and directories: {concern}")
            return Verdict("ask", concern, confined=confine == "always")
        if trusts_commands:
            return verdict
        from wolo.guard.loss_detection import find_loss  # noqa: PLC0415  # not needed at start-up

        loss = find_loss(line, self._boundaries.roots, [each.rule for each in verdicts if each.decision == "allow"])
        if not loss:
            return verdict
        self._trace(f"irreversible: {loss}")
        if verdict.decision == "ask":
            return replace(verdict, reason=f"{verdict.reason} {loss}")
        return Verdict("ask", loss, confined=verdict.confined)

    def suggest(self, intent: RunIntent) -> list[str]:
        """Rules for the commands that need approval; an empty string where no rule can be offered."""
        line = read_line(intent.command, intent.cwd, self._boundaries.home)
        commands = line.commands or ()
        asking = [
            each
            for each, verdict in zip(commands, self._decide_each(line, self._find_safe(commands), None), strict=False)
            if verdict.decision == "ask"
        ]
        if not asking and len(commands) == 1:
            asking = [*commands]  # the files it names or destroys need approval
        return [suggest_command(command.words) for command in asking] or [""]

    def _decide_each(self, line: ParsedLine, safe: Sequence[bool], extra: Rulebook | None) -> list[Verdict]:
        default = self._precedence.mode.shell
        if line.commands is None:
            self._trace("The line is not a sequence of plain commands: no allow rule and no safe command can match it.")
            return [self._precedence.decide(Subject("shell", line, "This command", default), extra)]
        verdicts: list[Verdict] = []
        for command, is_safe in zip(line.commands, safe, strict=True):
            places = " or ".join(directory or "an unknown directory" for directory in command.directories)
            self._trace(f"{_shorten(command.text)}, in {places}")
            about = "This command" if len(line.commands) == 1 else f"`{_shorten(command.text)}`"
            verdicts.append(self._precedence.decide(Subject("shell", command, about, default, is_safe), extra))
        return verdicts

    def _find_safe(self, commands: Sequence[PlainCommand]) -> list[bool]:
        safe = [self._safe.has(command) for command in commands]
        if all(is_safe or command.words[0].text == "cd" for is_safe, command in zip(safe, commands, strict=True)):
            return safe
        return [is_safe and self._safe.has_with_others(command) for is_safe, command in zip(safe, commands, strict=True)]

    def _is_confined(self, verdicts: Sequence[Verdict], confine: Confine) -> bool:
        if confine != "unless_allowed" or self._precedence.mode.trusts_commands:
            return confine == "always"
        if any(verdict.decision == "ask" for verdict in verdicts):
            return False  # an approval lifts the sandbox
        is_by_rule = any(verdict.rule for verdict in verdicts)
        return not (is_by_rule and all(verdict.rule or verdict.source == SAFE for verdict in verdicts))

    def _concern(self, line: ParsedLine, named: NamedPaths, *, confined: bool) -> str:
        """Reason to ask although a rule or the mode allows the command; empty if there is none."""
        book, reads_files = self._precedence.book, _is_of(line, READERS)
        for path in named.paths:
            subject = Paths(path, path)
            for tool in ("read", "write"):  # a command may read or write what it names, so both kinds of rules count
                if rule := book.find("deny", tool, subject):
                    return f"The command names {path}, denied by the rule {rule}."
                if (tool == "read" or not reads_files) and (rule := book.find("ask", tool, subject)):
                    return f"The command names {path}, which needs an approval by the rule {rule}."
        if named.patterns and any(book.has(word, tool) for word in ("deny", "ask") for tool in ("read", "write")):
            return f"{_TOO_WIDE}, and there are rules about files."
        if self._precedence.mode.trusts_commands:
            return ""
        if not confined and (where := f"{_TOO_WIDE}." if named.patterns else self._where(line)):
            return where
        looks_only = confined and _is_of(line, LOOKERS)
        reads_only = confined or reads_files
        if not looks_only and any(map(protected_paths.may_be_protected, named.patterns)):
            return f"{_TOO_WIDE}, also one that is protected."
        directories = {directory for directory in _directories(line) if directory is not None} or {resolve_path(line.cwd)}
        for path in (*directories, *named.paths):
            is_passed_over = looks_only or (reads_only and protected_paths.is_readable(path))
            if protected_paths.is_secret(path) or (self._boundaries.runs_code(path) and not is_passed_over):
                return f"The command names {path}, which is protected."
        return ""

    def _where(self, line: ParsedLine) -> str:
        if any(directory is None for directory in _directories(line)):
            return "The command changes to a directory that is not known before it runs."
        start = line.commands[0].directories[0] if line.commands else resolve_path(line.cwd)
        if start is None or not self._boundaries.is_inside(start):
            return "The command would run outside the workspace."
        goals = (goal for command in line.commands or () for goal in command.moves_to)
        if not all(goal is not None and self._boundaries.is_inside(goal) for goal in goals):
            return "The command would leave the workspace."
        return ""

    def _trace(self, text: str) -> None:
        if self._precedence.trace is not None:
            self._precedence.trace.append(text)


def _paths_of(line: ParsedLine, home: str) -> NamedPaths:
    if line.commands is None:
        from wolo.guard.shell.nested_commands import without_documents  # noqa: PLC0415  # rarely needed

        return paths_in_text(without_documents(line.text), resolve_path(line.cwd), home)
    paths: list[str] = []
    patterns: list[str] = []
    for command in line.commands:
        for directory in command.directories:
            named = named_paths(command.words, directory or resolve_path(line.cwd), home)
            paths += named.paths
            patterns += named.patterns
    return NamedPaths(paths, patterns)


def _directories(line: ParsedLine) -> Iterable[Directory]:
    return (directory for command in line.commands or () for directory in command.directories)


def _is_of(line: ParsedLine, programs: frozenset[str]) -> bool:
    return line.commands is not None and all(name_of(command.words[0].text) in programs for command in line.commands)


def _shorten(text: str) -> str:
    return text if len(text) <= SHOWN_LENGTH else f"{text[:SHOWN_LENGTH]}…"
