"""Shows what a call would do, completely and with hidden characters visible, for its approval."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import chain
from typing import Any, NamedTuple

from rich.text import Text

from wolo.agent.events import ApprovalAsked, ApprovalGiven
from wolo.errors import ToolError
from wolo.frontends.terminal.render.file_diffs import DiffLine, replacement, rewritten, signed_lines, spell
from wolo.guard.intents import CallIntent, FetchIntent, Intent, ReadIntent, RunIntent, WriteIntent
from wolo.guard.modes import MODES
from wolo.guard.rule_patterns import read_host
from wolo.messages.call_arguments import call_line, named_arguments
from wolo.messages.parts import ToolPart
from wolo.messages.terminal_text import clean, escaped_line, escaped_pieces, quantity
from wolo.tools.editing.drawn_arguments import changed_texts
from wolo.tools.toolbox import Toolbox

MOST_TITLES = 4
LONGEST_TITLE = 60

WRITE = "Write this file?"
_ACTIONS = {
    ReadIntent: "read this file",
    WriteIntent: WRITE[:1].lower() + WRITE[1:-1],
    RunIntent: "run this command",
    FetchIntent: "fetch this page",
}
_SANDBOX = {
    "": ("", "warning"),
    "inside": ("sandboxed", "added"),
    "outside": ("no sandbox", "warning"),
    "again": ("all your rights", "error"),
    "restored": ("its version stays", "error"),
    "host": ("sandboxed", "added"),
}


def proposal(asked: ApprovalAsked, waiting: Sequence[ToolPart] = (), *, before: str | None = None) -> list[Text]:
    """The question, then its lines. `waiting`: calls asked about next; `before`: the text of the file that would be rewritten."""
    lines = [_question(asked), *effects(asked)]
    decoded = None
    if any(isinstance(intent, WriteIntent) for intent in asked.intents):
        with suppress(ToolError):  # read as the built-in tool does: models have other names for the arguments
            decoded = Toolbox().decode(asked.part.tool, asked.part.input)[1]
        lines += [Text("  ", no_wrap=True).append_text(line) for line in _changes(decoded, before)]
    # Arguments that are not shown as a command, an address, a file or a change
    arguments = named_arguments(asked.part)
    if not any(isinstance(intent, CallIntent) for intent in asked.intents):
        shown = {intent.command for intent in asked.intents if isinstance(intent, RunIntent)}
        shown |= {intent.url for intent in asked.intents if isinstance(intent, FetchIntent)}
        paths = [str(intent.path) for intent in asked.intents if isinstance(intent, ReadIntent | WriteIntent)]
        covered = set(changed_texts(asked.part.input, decoded))
        arguments = [
            (name, value)
            for name, value in arguments
            if name not in covered
            and value not in shown
            and not any(path.endswith(f"/{value}") or path == value for path in paths)
        ]
    lines += [line for name, value in arguments for line in _mark_lines(f"{name}: {value}", "  ", "    ")]
    lines += risks(asked)
    verdict = asked.part.metadata.get("verdict")
    if isinstance(verdict, dict) and verdict.get("rule") and f"{verdict['rule']}" in asked.reason and verdict.get("source"):
        lines.append(Text(f"  rule from {escaped_line(str(verdict['source']))}", "dim"))
    if waiting:
        lines.append(Text(f"  {quantity(len(waiting), 'more approval')} pending:", "dim"))
    for part in waiting[:MOST_TITLES]:
        call = call_line(part, most_chars=LONGEST_TITLE, most_of_change=0)
        lines.append(Text("    · ", "dim").append_text(spell(call, "dim")))
    if len(waiting) > MOST_TITLES:
        lines.append(Text(f"    and {len(waiting) - MOST_TITLES} more", "dim"))
    return lines


def effects(asked: ApprovalAsked) -> list[Text]:
    """The command, the files, the addresses; a file that is read and written is named once."""
    described: dict[str, list[Text]] = {}
    for intent in asked.intents:
        if asked.walls == "host" and isinstance(intent, FetchIntent):
            continue  # the question names it
        lines = _describe(intent)
        described.setdefault("\n".join(line.plain for line in lines), lines)
    return list(chain.from_iterable(described.values()))


def risks(asked: ApprovalAsked) -> list[Text]:
    """The lines, of one colour, that say where the call runs and why it is asked about; nothing of a mode that asks about all."""
    place, style = _SANDBOX[asked.walls]
    verdict = asked.part.metadata.get("verdict")
    is_default = (
        isinstance(verdict, dict)
        and f"{verdict.get('source')}".removeprefix("mode ") in MODES
        and verdict.get("reason") == asked.reason
    )
    reasons = [] if is_default or not asked.reason else clean(asked.reason).split("\n")
    return [Text(f"  {line}", style) for line in [place, *reasons] if line]


class PreviewAnswer(NamedTuple):
    approval: ApprovalGiven
    accepts_edits: bool = False
    """Later edits need no approval."""


def is_edit(asked: ApprovalAsked) -> bool:
    """True for a call that only changes files in the workspace, which the mode `edit` allows."""
    changed = [intent for intent in asked.intents if isinstance(intent, WriteIntent)]
    others = [intent for intent in asked.intents if not isinstance(intent, WriteIntent | ReadIntent)]
    return bool(changed) and not others and not asked.agent and all(intent.inside for intent in changed)


def outcome(asked: ApprovalAsked, answer: PreviewAnswer) -> Text | None:
    """The line that records the answer. None: the line of the denied call says it."""
    approval = answer.approval
    owner = f"{escaped_line(asked.agent)}: " if asked.agent else ""
    call = _host_of(asked) if asked.walls == "host" else call_line(asked.part, most_chars=LONGEST_TITLE, most_of_change=0)
    what = f"{owner}{call}"
    if not approval.allowed and approval.scope != "once":
        return Text.assemble(("✗ ", "warning"), ("never here", "bold"), f", by the rule {escaped_line(asked.denial)}: {what}")
    if not approval.allowed:
        stays = f" · {escaped_line(approval.reason)}" if approval.reason else ""
        denied = {"again": "not run outside the sandbox", "restored": "changes not allowed", "host": "no connection"}.get(
            asked.walls
        )
        return Text.assemble(("✗ ", "warning"), (denied, "bold"), f": {what}", (stays, "dim")) if denied else None
    if answer.accepts_edits:
        return Text.assemble(("✓ ", "added"), ("allowed, with all later edits", "bold"), f": {what}")
    rule = approval.rule or asked.rule
    held = {
        "once": {"again": "once outside the sandbox", "restored": "with its changes", "host": "for this command"}.get(
            asked.walls, "once"
        ),
        "session": f"for this session{f', by the rule {escaped_line(approval.rule)}' if approval.rule else ''}",
        "always": f"always here, by the rule {escaped_line(rule)}",
        "everywhere": f"always everywhere, by the rule {escaped_line(rule)}",
    }[approval.scope]
    return Text.assemble(("✓ ", "added"), ("allowed", "bold"), f" {held}: {what}")


def _host_of(asked: ApprovalAsked) -> str:
    """The host, and its port where that is named, that a command wants to connect to."""
    hosts = [read_host(intent.url) for intent in asked.intents if isinstance(intent, FetchIntent)]
    return escaped_line(f"{hosts[-1].name}{f':{hosts[-1].port}' if hosts[-1].port else ''}")


def _question(asked: ApprovalAsked) -> Text:
    owner = f"{escaped_line(asked.agent)}: " if asked.agent else ""
    if asked.walls == "again":
        return Text.assemble(("! ", "bold error"), (f"{owner}The sandbox stopped this command. Run it outside?", "bold"))
    if asked.walls == "restored":
        return Text.assemble(("! ", "bold error"), (f"{owner}This command changed protected files. Keep the changes?", "bold"))
    if asked.walls == "host":
        return Text.assemble(("! ", "bold warning"), (f"{owner}Let this command connect to {_host_of(asked)}?", "bold"))
    actions = []
    for intent in asked.intents:
        if not isinstance(intent, CallIntent):
            action = _ACTIONS[type(intent)]
        elif intent.target.startswith("task:"):
            action = "start this subagent"
        else:
            action = f"call {escaped_line(asked.part.tool)}"
        if action not in actions:
            actions.append(action)
    if _ACTIONS[WriteIntent] in actions and _ACTIONS[ReadIntent] in actions:
        actions.remove(_ACTIONS[ReadIntent])
    question = " and ".join(actions) or f"run {escaped_line(asked.part.tool)}"
    return Text.assemble(("? ", "bold accent"), (f"{owner}{question[0].upper()}{question[1:]}?", "bold"))


def _describe(intent: Intent) -> list[Text]:
    """Never cut. Each line of a command has a mark, so that none can pass for a line of wolo's own."""
    match intent:
        case RunIntent():
            return _mark_lines(intent.command, "  $ ", "  > ")
        case ReadIntent() | WriteIntent():
            lines = _mark_lines(str(intent.path), "  ", "  ")
            if not intent.inside:
                lines[-1].append("   outside the workspace", "warning")
            return lines
        case FetchIntent():
            return _mark_lines(intent.url, "  ", "  ")
        case CallIntent():
            return _mark_lines(intent.target, "  ", "  ")


def _mark_lines(shown: str, first: str, following: str) -> list[Text]:
    lines = [Text.assemble((first, "dim"), no_wrap=True)]
    for piece, is_escape in escaped_pieces(shown):
        for number, line in enumerate(piece.split("\n")):
            if number:
                lines.append(Text.assemble((following, "dim"), no_wrap=True))
            lines[-1].append(line, "reverse" if is_escape else "accent")
    return lines


def _changes(args: Any, before: str | None) -> Iterator[Text]:
    from wolo.tools.editing.apply_patch import ApplyPatchArgs  # noqa: PLC0415  # a tool is loaded at its first call
    from wolo.tools.editing.edit import EditArgs  # noqa: PLC0415
    from wolo.tools.editing.matching import Replacement, with_line_endings_of  # noqa: PLC0415
    from wolo.tools.editing.write import WriteArgs  # noqa: PLC0415

    match args:
        case WriteArgs() if before:
            yield from rewritten(before, with_line_endings_of(before, args.content.removeprefix("\ufeff")))
        case WriteArgs():
            yield from rewritten("", args.content)
        case EditArgs(insert_line=int(line)):
            yield Text(f"behind line {line}:", "dim")
            yield from replacement("", (args.new or "").removesuffix("\n"), first=line + 1)
        case EditArgs():
            for each in args.edits or (Replacement(args.old or "", args.new or "", args.replace_all),):
                if each.replace_all:
                    yield Text("every occurrence:", "dim")
                is_unique = bool(before and each.old) and (before or "").count(each.old) == 1
                first = before.count("\n", 0, before.index(each.old)) + 1 if before and is_unique else None
                yield from replacement(each.old, each.new, first=first)
        case ApplyPatchArgs():
            yield from signed_lines(DiffLine(line[:1] or " ", line[1:]) for line in args.patch.strip("\n").split("\n"))
