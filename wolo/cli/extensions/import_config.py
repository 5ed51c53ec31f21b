"""`wolo import-config`: takes over the settings of other coding agents."""

from __future__ import annotations

from typing import Annotated

import typer

from wolo.errors import UsageError
from wolo.frontends.streams import print_line, print_message


def import_config(
    agent: Annotated[
        str, typer.Option("--from", metavar="AGENT", help="claude, codex, opencode, gemini, kimi or pi; all if not given.")
    ] = "",
    yes: Annotated[bool, typer.Option("--yes", help="Write the changes; otherwise they are only shown.")] = False,
) -> None:
    """Take over settings, rules, MCP servers, hooks and instructions of other coding agents.

    Nothing of yours is overwritten. Without --yes nothing is written.
    """
    from wolo.config.imports.agents import AGENTS, findings
    from wolo.config.imports.plan import make_plan
    from wolo.messages.terminal_text import escaped_line, quantity
    from wolo.places import find_places
    from wolo.workspace.root import find_root

    chosen = [each for each in AGENTS if agent in ("", each.name)]
    if not chosen:
        raise UsageError(f"There is no agent {agent}.", hint=f"Agents: {', '.join(each.name for each in AGENTS)}.")
    places, root = find_places(), find_root()
    findings_by_label = [(each.label, finding) for each in chosen for finding in findings(each, root)]
    plan = make_plan(places, root, [finding for _, finding in findings_by_label])
    place = None
    for (label, finding), step in zip(findings_by_label, plan.steps, strict=True):
        if (label, finding.source) != place:
            place = (label, finding.source)
            print_line(f"{label}: {escaped_line(str(finding.source))}")
        print_line(f"  {escaped_line(str(step))}")
    if not findings_by_label:
        print_message(f"No settings of {' or '.join(each.label for each in chosen)} were found.")
        return
    new = sum(step.outcome == "add" for step in plan.steps)
    print_line(f"\n+ new   = already there   ~ another value stays   - not taken over{'' if new else '; nothing is new'}")
    if plan.is_empty:
        return
    if not yes:
        more = f" --from {agent}" if agent else ""
        print_line(f"Nothing was written. `wolo import-config{more} --yes` takes over {quantity(new, 'entry', 'entries')}.")
        return
    for path in plan.apply(places):
        print_line(f"Wrote {escaped_line(str(path))}.")
