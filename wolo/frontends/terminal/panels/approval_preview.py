"""What a call would do, in full and with nothing hidden, for the person who is asked whether it may."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from rich.text import Text

from wolo.agent.events import ApprovalAsked, ApprovalGiven
from wolo.frontends.terminal.render.changes import Line, ink, replaced, rewritten, signed_lines
from wolo.guard.intents import CallIntent, FetchIntent, Intent, ReadIntent, RunIntent, WriteIntent
from wolo.messages.call_arguments import CHANGING, FILES, call_line, named_arguments
from wolo.messages.parts import ToolPart
from wolo.messages.terminal_text import clean, spelled_line, spelled_out
from wolo.tools.editing.apply_patch import ApplyPatchArgs
from wolo.tools.editing.edit import EditArgs, Replacement
from wolo.tools.editing.matching import with_line_endings_of
from wolo.tools.editing.write import WriteArgs
from wolo.tools.toolbox import Toolbox

MOST_TITLES = 4
LONGEST_TITLE = 60

_WISHES = {
    ReadIntent: "read a file",
    WriteIntent: "write a file",
    RunIntent: "run a command",
    FetchIntent: "fetch a page",
    CallIntent: "run",
}
_WALLS = {
    "inside": ("inside the sandbox", "dim"),
    "outside": ("outside any sandbox, with all your rights", "yellow"),
    "again": ("it has run inside the sandbox and failed; it would run again outside, with all your rights", "bold yellow"),
    "restored": ("it has run inside the sandbox; a yes keeps its version of these files", "bold yellow"),
}


def proposal(asked: ApprovalAsked, waiting: Sequence[ToolPart] = (), *, before: str | None = None) -> list[Text]:
    """Line by line. `waiting` is what else of the answer is going to be asked; `before` what a file that would be written
    anew holds now."""
    lines = [_headline(asked)]
    lines += _each_once(_spelled_out(intent) for intent in asked.intents)
    if any(isinstance(intent, WriteIntent) for intent in asked.intents):
        lines += [Text("  ", no_wrap=True).append_text(line) for line in _changes(asked.part, before)]
    lines += _arguments(asked)
    if asked.walls:
        words, style = _WALLS[asked.walls]
        lines.append(Text(f"  {words}", style))
    lines += [Text(f"  {line}", "yellow") for line in clean(asked.reason).splitlines()]
    if source := _source(asked):
        lines.append(Text(f"  the rule is from: {spelled_line(source)}", "dim"))
    return lines + _titles(waiting)


class Answer(NamedTuple):
    given: ApprovalGiven
    accepts_edits: bool = False
    """Later edits shall not be asked about."""


def is_edit(asked: ApprovalAsked) -> bool:
    """Changes files in the workspace and does nothing else: the mode `edit` would not ask."""
    changed = [intent for intent in asked.intents if isinstance(intent, WriteIntent)]
    others = [intent for intent in asked.intents if not isinstance(intent, WriteIntent | ReadIntent)]
    return bool(changed) and not others and not asked.agent and all(intent.inside for intent in changed)


def outcome(asked: ApprovalAsked, answer: Answer) -> Text | None:
    """What was answered, for the record. None: the line of the refused call says it."""
    given = answer.given
    owner = f"{spelled_line(asked.agent)}: " if asked.agent else ""
    what = f"{owner}{call_line(asked.part, most_chars=LONGEST_TITLE, most_of_change=0)}"
    if not given.allowed:
        stays = f" · {spelled_line(given.reason)}" if given.reason else ""
        kept = {"again": "it stays inside the sandbox", "restored": "the files stay restored"}.get(asked.walls)
        return Text.assemble(("✗ ", "yellow"), (kept, "bold"), f": {what}", (stays, "dim")) if kept else None
    if answer.accepts_edits:
        return Text.assemble(("✓ ", "green"), ("you allowed it, and edits from now on", "bold"), f": {what}")
    rule = given.rule or asked.rule
    held = {
        "once": {"again": "outside the sandbox, once", "restored": "and kept its version"}.get(asked.walls, "once"),
        "session": f"for this session{f', by the rule {spelled_line(given.rule)}' if given.rule else ''}",
        "always": f"always here, by the rule {spelled_line(rule)}",
        "everywhere": f"always everywhere, by the rule {spelled_line(rule)}",
    }[given.scope]
    return Text.assemble(("✓ ", "green"), ("you allowed it", "bold"), f" {held}: {what}")


def _headline(asked: ApprovalAsked) -> Text:
    name = _name(asked)
    if asked.walls == "again":
        return Text.assemble(("! ", "bold red"), (f"The sandbox stopped {name}", "bold reverse"))
    if asked.walls == "restored":
        return Text.assemble(("! ", "bold red"), (f"{name} changed protected files", "bold reverse"))
    wishes = " and ".join(dict.fromkeys(_wish(intent) for intent in asked.intents)) or "go on"
    return Text.assemble(("? ", "bold yellow"), (f"{name} wants to {wishes}", "bold"))


def _each_once(wishes: Iterable[list[Text]]) -> list[Text]:
    """A file that is read and written is named once."""
    seen: dict[str, list[Text]] = {}
    for lines in wishes:
        seen.setdefault("\n".join(line.plain for line in lines), lines)
    return [line for lines in seen.values() for line in lines]


def _name(asked: ApprovalAsked) -> str:
    """The tool, and whose call it is, where that is another agent's."""
    return spelled_line(f"{asked.agent}: {asked.part.tool}" if asked.agent else asked.part.tool)


def _wish(intent: Intent) -> str:
    is_task = isinstance(intent, CallIntent) and intent.target.startswith("task:")
    return "have another agent work" if is_task else _WISHES[type(intent)]


def _spelled_out(intent: Intent) -> list[Text]:
    """The whole of it, never cut; each line of a command carries a mark, so that none of them can pose as ours."""
    match intent:
        case RunIntent():
            return _marked(intent.command, "  $ ", "  > ")
        case ReadIntent() | WriteIntent():
            lines = _marked(str(intent.path), "  ", "  ")
            if not intent.inside:
                lines[-1].append("   outside the workspace", "yellow")
            return lines
        case FetchIntent():
            return _marked(intent.url, "  ", "  ")
        case CallIntent():
            return _marked(intent.target, "  ", "  ")


def _arguments(asked: ApprovalAsked) -> list[Text]:
    """Those that are not shown as a command, an address, a file or a change."""
    given = named_arguments(asked.part)
    if not any(isinstance(intent, CallIntent) for intent in asked.intents):
        shown = {intent.command for intent in asked.intents if isinstance(intent, RunIntent)}
        shown |= {intent.url for intent in asked.intents if isinstance(intent, FetchIntent)}
        is_change = asked.part.tool in CHANGING
        given = [(name, value) for name, value in given if not is_change and value not in shown and name not in FILES]
    return [line for name, value in given for line in _marked(f"{name}: {value}", "  ", "    ")]


def _marked(shown: str, first: str, following: str) -> list[Text]:
    lines = [_begun(first)]
    for piece, is_escape in spelled_out(shown):
        for number, line in enumerate(piece.split("\n")):
            if number:
                lines.append(_begun(following))
            lines[-1].append(line, "reverse" if is_escape else "cyan")
    return lines


def _begun(mark: str) -> Text:
    """In what would run, a blank at the end of a row counts as much as any other: it is cut between characters."""
    return Text.assemble((mark, "dim"), no_wrap=True)


def _changes(part: ToolPart, before: str | None) -> Iterator[Text]:
    """Read as the tool reads it: models have other names for its arguments."""
    _, given = Toolbox().decode(part.tool, part.input)
    match given:
        case WriteArgs() if before:
            yield from rewritten(before, with_line_endings_of(before, given.content.removeprefix("\ufeff")))
        case WriteArgs():
            yield from signed_lines(Line("+", line, number) for number, line in enumerate(given.content.splitlines(), 1))
        case EditArgs():
            for each in given.edits or (Replacement(given.old or "", given.new or "", given.replace_all),):
                if each.replace_all:
                    yield Text("wherever it occurs:", "dim")
                yield from replaced(each.old, each.new, first=_first_line(before, each.old))
        case ApplyPatchArgs():
            yield from signed_lines(Line(line[:1] or " ", line[1:]) for line in given.patch.strip().split("\n"))


def _first_line(before: str | None, old: str) -> int | None:
    """Where the passage begins, if it is there exactly once; None: nobody knows yet."""
    if not before or not old or before.count(old) != 1:
        return None
    return before.count("\n", 0, before.index(old)) + 1


def _source(asked: ApprovalAsked) -> str:
    """Who wrote the rule that asks, where it was one."""
    said = asked.part.metadata.get("verdict")
    if not isinstance(said, dict) or not said.get("rule") or f"{said['rule']}" not in asked.reason:
        return ""
    return str(said.get("source", ""))


def _titles(waiting: Sequence[ToolPart]) -> list[Text]:
    if not waiting:
        return []
    lines = [Text(f"  {len(waiting)} more {'waits' if len(waiting) == 1 else 'wait'} to be judged after this:", "dim")]
    for part in waiting[:MOST_TITLES]:
        lines.append(Text("    · ", "dim").append_text(ink(call_line(part, most_chars=LONGEST_TITLE, most_of_change=0), "dim")))
    if len(waiting) > MOST_TITLES:
        lines.append(Text(f"    and {len(waiting) - MOST_TITLES} more", "dim"))
    return lines
