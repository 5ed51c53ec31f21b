"""Undoes and redoes turns with their file changes; the session only grows."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct, convert, to_builtins
from msgspec.structs import replace

from wolo.conversation.conversation import Conversation
from wolo.conversation.history.branching import COMMANDING, EDITING, done_between
from wolo.conversation.resources.startup import ConversationChange
from wolo.errors import UsageError
from wolo.messages.message import Message
from wolo.messages.parts import TextPart
from wolo.messages.terminal_text import quantity
from wolo.sessions.entries import CustomEntry, MessageEntry
from wolo.sessions.loading import EntryNode
from wolo.sessions.session_text import outline, path_to
from wolo.workspace.checkpoints.path_state import as_line, as_text
from wolo.workspace.checkpoints.restore import UndoPlan, plan_undo, restore
from wolo.workspace.checkpoints.scan import LeftOut
from wolo.workspace.checkpoints.tracker import FileTracker

UNDO, REDO = "undo", "redo"
Kind = Literal["undo", "redo"]
MOST_NAMED = 20
FORGOTTEN = "No undo data for these turns: they are too old, or ran on another machine."
_UNDONE = "[The user undid {turns}: its messages are not part of this conversation.{files}{conflicts}{commands}]"
_UNDONE_FILES = "[The user undid what {turns} changed in some files.{files}{conflicts}]"
_REDONE = "[The user redid what was undone before.{files}{conflicts}]"


class Conflict(Struct, frozen=True):
    path: str
    reason: str


class Report(Struct, frozen=True, kw_only=True):
    """The result, or a preview; paths are relative to the current directory if inside."""

    kind: Kind
    session: str
    turns: tuple[str, ...]
    restored: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    """Files left unchanged."""
    not_covered: tuple[str, ...] = ()
    """Sentences about effects that cannot be undone."""
    moves_conversation: bool = True
    is_preview: bool = True


class PreparedUndo(Struct, frozen=True, kw_only=True):
    """A prepared undo or redo."""

    report: Report
    plan: UndoPlan
    turns: tuple[str, ...]
    after_entry: int
    """The conversation continues after this entry."""
    history: tuple[Message, ...] | None = None
    """The same for an unsaved session."""
    draft: str = ""
    """The prompt to edit; empty for that of a job."""
    of_step: int = 0
    """The step to redo."""
    num_commands: int = 0


class Done(Struct, frozen=True, kw_only=True):
    report: Report
    change: ConversationChange
    step: int


class Undoing:
    """Needs the lock of the session."""

    def __init__(
        self,
        watch: FileTracker,
        locks: Path,
        nodes: Sequence[EntryNode],
        head: int,
        history: Sequence[Message],
        where: Path,
        give_way: Callable[[str], None] = lambda path: None,
    ) -> None:
        """`history` replaces `nodes` for an unsaved session. `give_way` is called before a path is changed."""
        self._watch, self._locks, self._nodes, self._head = watch, locks, nodes, head
        self._history, self._where, self._give_way = history, where, give_way

    @classmethod
    def of(cls, conversation: Conversation) -> Undoing:
        nodes, head = conversation.session.stored.tree()
        files = conversation.files
        return cls(files.tracker, files.locks, nodes, head, conversation.history, conversation.info.cwd, conversation.give_way)

    def undo(self, num_turns: int = 1, only: Iterable[Path] = ()) -> PreparedUndo:
        """Reverts the last turns, or their changes to `only`. Raises UsageError if there are fewer turns."""
        only_paths = tuple(Path(os.path.realpath(path.parent)) / path.name for path in only)
        prompts = self._last_turns(num_turns)
        self._end_recorded_steps()
        turns = tuple(message.id for message in prompts)
        store = self._watch.store
        noted = store.of_turns(turns) if store is not None else []
        plan = plan_undo(store, noted, only_paths) if store is not None else UndoPlan()
        turn = turns[0]  # the calls from this one on
        if self._nodes:
            calls = done_between(self._nodes, self._head, self._before(turn))
        else:
            left = self._history[len(self._history_before(turn) or ()) :]
            calls = [part for message in left for part in message.calls]
        commands = sum(part.tool == COMMANDING for part in calls)
        is_forgotten = not noted and any(part.tool in EDITING and part.outcome == "ok" for part in calls)
        report = Report(
            kind="undo",
            session=self._watch.session,
            turns=tuple(message.text.strip() for message in prompts),
            not_covered=(*((FORGOTTEN,) if is_forgotten else ()), *(_not_covered(self._watch.not_covered()) if commands else ())),
            moves_conversation=not only_paths,
        )
        return PreparedUndo(
            report=self._foreseen(report, plan),
            plan=plan,
            turns=turns,
            after_entry=self._head if only_paths else self._before(turns[0]),
            history=None if only_paths else self._history_before(turns[0]),
            draft=prompts[0].text.strip() if prompts[0].is_from_user and not only_paths else "",
            num_commands=0 if only_paths else commands,
        )

    def redo(self) -> PreparedUndo:
        """Restores the last undo if no prompt followed. Raises UsageError."""
        last = self._last_undone()
        store = self._watch.store
        if last is None or store is None:
            raise UsageError(
                "Nothing to redo.", hint="Redo works right after an undo, before the next prompt, and not with --no-session."
            )
        self._end_recorded_steps()
        step, left = _number(last, "step"), _number(last, "left")
        undone = store.of_step(step)
        if any(change.session != self._watch.session for change in undone):  # an imported entry may name any
            raise UsageError("The last undo was made in another session.", hint="Redo it there: wolo redo --session ID")
        plan = plan_undo(store, undone)
        moves = bool(last.data.get("moves_conversation", True))
        prompts = tuple(map(str, last.data.get("turns", ())))
        report = Report(kind="redo", session=self._watch.session, turns=prompts, moves_conversation=moves)
        after_entry = left if moves else self._head
        return PreparedUndo(report=self._foreseen(report, plan), plan=plan, turns=(), after_entry=after_entry, of_step=step)

    def carry_out(self, undo: PreparedUndo) -> Done:
        """Changes the files; call `finish` once the conversation has made the `change`.

        An undo that was killed halfway can be carried out again. Raises ToolError, and changes nothing, if the disk is full.
        """
        store = self._watch.store
        report, step = undo.report, 0
        if store is not None:
            for each in undo.plan.steps:
                self._give_way(each.path)
            outcome = restore(store, undo.plan, self._locks, session=self._watch.session, turns=undo.turns)
            step = outcome.number
            report = replace(
                report,
                restored=tuple(map(self._display_path, outcome.restored)),
                removed=tuple(map(self._display_path, outcome.removed)),
                conflicts=tuple(Conflict(self._display_path(each.path), each.reason) for each in outcome.conflicts),
                is_preview=False,
            )
        files = {name: to_builtins(getattr(report, name)) for name in ("turns", "restored", "removed", "conflicts")}
        data = {
            **files,
            "moves_conversation": report.moves_conversation,
            "step": step,
            "left": self._head,
            "of_step": undo.of_step,
        }
        change = ConversationChange(
            after_entry=undo.after_entry,
            summary=_summary(report, undo.num_commands),
            record=CustomEntry(custom_type=report.kind, data=data),
            history=undo.history,
        )
        return Done(report=report, change=change, step=step)

    def finish(self, done: Done) -> None:
        if done.step and (store := self._watch.store) is not None:
            store.end_step(done.step)

    def _end_recorded_steps(self) -> None:
        """Marks undos as done that were killed after the session recorded them, before `finish`."""
        store = self._watch.store
        unfinished = store.unfinished_steps(self._watch.session) if store is not None else []
        if store is None or not unfinished:
            return
        entries = (node.entry for node in self._nodes)
        recorded = {
            entry.data.get("step") for entry in entries if isinstance(entry, CustomEntry) and entry.custom_type in (UNDO, REDO)
        }
        for step in unfinished:
            if step in recorded:
                store.end_step(step)

    # The conversation

    def _last_turns(self, num_turns: int) -> list[Message]:
        if num_turns < 1:
            raise UsageError("The number of turns to undo is 1 or more.")
        if self._nodes:
            by_seq = {node.seq: node.entry for node in self._nodes}
            entries = [by_seq[place.seq] for place in outline(self._nodes, self._head) if place.is_on_way]
            prompts = [entry.message for entry in entries if isinstance(entry, MessageEntry)]
        else:
            prompts = [message for message in self._history if message.is_prompt]
        if not prompts:
            raise UsageError("No turn to undo.")
        if num_turns > len(prompts):
            turns = "is 1 turn" if len(prompts) == 1 else f"are {len(prompts)} turns"
            raise UsageError(f"There {turns} to undo, not {num_turns}.")
        return prompts[-num_turns:]

    def _before(self, turn: str) -> int:
        way = path_to(self._nodes, self._head)
        found = ((node, node.entry) for node in self._nodes if node.seq in way)
        return next((node.parent for node, entry in found if isinstance(entry, MessageEntry) and entry.message.id == turn), 0)

    def _history_before(self, turn: str) -> tuple[Message, ...] | None:
        if self._nodes:
            return None
        at = next(at for at, message in enumerate(self._history) if message.id == turn)
        return tuple(self._history[:at])

    def _last_undone(self) -> CustomEntry | None:
        way = path_to(self._nodes, self._head)
        redone: set[int] = set()
        for node in reversed(self._nodes):
            entry = node.entry
            if node.seq not in way:
                continue
            if isinstance(entry, MessageEntry):
                return None
            if isinstance(entry, CustomEntry) and entry.custom_type == REDO:
                redone.add(_number(entry, "of_step"))
            elif isinstance(entry, CustomEntry) and entry.custom_type == UNDO and entry.data.get("step") not in redone:
                return entry
        return None

    # What people see

    def _foreseen(self, report: Report, plan: UndoPlan) -> Report:
        return replace(
            report,
            restored=tuple(self._display_path(step.path) for step in plan.steps if step.after.kind),
            removed=tuple(self._display_path(step.path) for step in plan.steps if not step.after.kind),
            conflicts=tuple(Conflict(self._display_path(each.path), each.reason) for each in plan.conflicts),
        )

    def _display_path(self, path: str) -> str:
        inside = path.startswith(f"{self._where}/")
        return as_text(os.path.relpath(path, self._where) if inside else path)


def as_row(report: Report) -> dict[str, object]:
    """The JSON object of an undo or redo."""
    return {
        "kind": report.kind,
        "session": report.session,
        "done": not report.is_preview,
        "turns": list(report.turns),
        "restored": list(report.restored),
        "removed": list(report.removed),
        "conflicts": [each.path for each in report.conflicts],
        "reasons": {each.path: each.reason for each in report.conflicts},
        "not_covered": list(report.not_covered),
        "conversation": report.moves_conversation,
    }


def report_of(row: Mapping[str, Any]) -> Report:
    """Reads `as_row` of another process. Raises LookupError and msgspec.ValidationError."""
    conflicts = [{"path": path, "reason": row["reasons"][path]} for path in row["conflicts"]]
    moved, done = row["conversation"], row["done"]
    return convert({**row, "conflicts": conflicts, "moves_conversation": moved, "is_preview": not done}, Report)


def lines(report: Report) -> list[str]:
    back = "Undo" if report.kind == UNDO else "Redo"
    count = len(report.turns)
    what = f"{back} of the last {f'{count} turns' if count > 1 else 'turn'}" if report.turns else back
    rows = [f"{what}: {' · '.join(_short(text) for text in report.turns)}" if report.turns else f"{what}."]
    rows += [f"  restored  {as_line(path)}" for path in report.restored]
    rows += [f"  removed   {as_line(path)}" for path in report.removed]
    rows += [f"  conflict  {as_line(each.path)}: {each.reason}; not changed" for each in report.conflicts]
    if not (report.restored or report.removed or report.conflicts):
        rows.append("  no files change")
    rows += [f"  {text}" for text in report.not_covered]
    return rows


def _short(text: str) -> str:
    line = " ".join(text.split()) or "(an attachment)"
    return line if len(line) <= 60 else f"{line[:59]}…"


def _number(entry: CustomEntry, name: str) -> int:
    """An imported entry holds anything; 0 for what is no number."""
    found = entry.data.get(name)
    return found if isinstance(found, int) else 0


def _not_covered(left_out: LeftOut) -> tuple[str, ...]:
    """Changes by commands that the tracker may have missed."""
    rows = ["Not covered: changes by commands outside the workspace and in .git."]
    for paths, what in (
        (left_out.ignored, "ignored by git"),
        (left_out.large, "too large"),
        (left_out.special, "no plain files"),
        (left_out.unreadable, "not readable"),
    ):
        if paths:
            more = f" and {len(paths) - 3} more" if len(paths) > 3 else ""
            rows.append(f"Not covered, {what}: {', '.join(as_line(Path(path).name) for path in paths[:3])}{more}.")
    if left_out.later:
        rows.append(f"Not covered: {quantity(left_out.later, 'file')} not backed up yet.")
    return tuple(rows)


def _summary(report: Report, num_commands: int) -> Message | None:
    """Tells the model; None: nothing relevant was done."""
    files, conflicts = (*report.restored, *report.removed), tuple(each.path for each in report.conflicts)
    if not (files or conflicts or num_commands):
        return None
    template = _REDONE if report.kind == REDO else _UNDONE if report.moves_conversation else _UNDONE_FILES
    many = "are as they were before it" if report.kind == UNDO else "are as they were before the undo"
    text = template.format(
        turns=f"the last {len(report.turns)} turns" if len(report.turns) > 1 else "the last turn",
        files=f" These files {many}: {_name_list(files)}." if files else "",
        conflicts=f" Not changed because of conflicts: {_name_list(conflicts)}." if conflicts else "",
        commands=f" {quantity(num_commands, 'command')} ran; their effects outside the workspace were not undone."
        if num_commands
        else "",
    )
    return Message(role="branch_summary", parts=(TextPart(text=text),), finished=True)


def _name_list(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - MOST_NAMED} more" if len(paths) > MOST_NAMED else ""
    return f"{', '.join(map(as_line, paths[:MOST_NAMED]))}{more}"
