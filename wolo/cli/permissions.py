"""`wolo permissions`: lists, tests, explains and removes permission rules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from wolo.cli.listing import AsJson, print_json
from wolo.frontends.streams import print_line, print_lines

if TYPE_CHECKING:
    from wolo.conversation.permission_check import PermissionCheck

app = typer.Typer(rich_markup_mode=None)

Call = Annotated[str, typer.Argument(metavar="CALL", help="In rule syntax: shell:git push, read:.env, fetch:docs.python.org.")]
Mode = Annotated[str, typer.Option("--mode", metavar="MODE", help="Assume this permission mode.", show_default=False)]
Allow = Annotated[list[str] | None, typer.Option("--allow", metavar="RULE", help="Assume this rule.")]
Deny = Annotated[list[str] | None, typer.Option("--deny", metavar="RULE", help="Assume this rule.")]


@app.command("list")
def show(as_json: AsJson = False) -> None:
    """List every active rule and its source, in order of precedence."""
    from wolo.conversation.permission_check import in_precedence, rule_lines

    rules = _open_check("", None, None).config.rules
    if as_json:
        print_json([{"decision": rule.decision, "rule": str(rule), "source": rule.source} for rule in in_precedence(rules)])
        return
    print_lines(rule_lines(rules))


@app.command("test")
def try_out(call: Call, mode: Mode = "", allow: Allow = None, deny: Deny = None, as_json: AsJson = False) -> None:
    """Show the verdict on a call, and the rule that decides."""
    from wolo.conversation.permission_check import verdict_lines

    verdict = _open_check(mode, allow, deny).verdict(call)
    if as_json:
        said = {"verdict": verdict.decision, "rule": verdict.rule, "source": verdict.source}
        print_json({**said, "confined": verdict.confined, "reason": verdict.reason})
        return
    print_lines(verdict_lines(verdict))


@app.command("explain")
def explain(call: Call, mode: Mode = "", allow: Allow = None, deny: Deny = None, as_json: AsJson = False) -> None:
    """Explain a verdict step by step, for each part of the call."""
    check = _open_check(mode, allow, deny)
    steps = check.judge.explain([check.intent(call)])
    if as_json:
        print_json({"call": call, "mode": check.judge.mode.name, "steps": steps})
        return
    print_line(f"mode {check.judge.mode.name}")
    print_lines(steps)


@app.command("remove")
def remove(
    rule: Annotated[str, typer.Argument(metavar="RULE")],
    everywhere: Annotated[bool, typer.Option("--everywhere", help="The rule saved for every workspace.")] = False,
    as_json: AsJson = False,
) -> None:
    """Remove a rule that was saved with "always"."""
    from pathlib import Path

    from wolo.conversation.permission_check import remove_rule
    from wolo.workspace.root import find_root

    root = find_root(Path.cwd())
    removed = remove_rule(rule.strip(), root, everywhere=everywhere)
    if as_json:
        print_json({"rule": rule.strip(), "removed": removed, "workspace": "*" if everywhere else str(root)})
        return
    print_line(f"Removed {rule.strip()}.")


def _open_check(mode: str, allow: list[str] | None, deny: list[str] | None) -> PermissionCheck:
    from wolo.conversation.permission_check import open_permission_check

    given: dict[str, str | bool | list[str]] = {}
    if mode:
        given["mode"] = mode
    return open_permission_check({**given, "allow": allow or [], "deny": deny or []})
