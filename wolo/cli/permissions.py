"""`wolo permissions`: which rules are in force, what becomes of a call and why, and taking back an "always"."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from wolo.cli.listing import AsJson, print_json

if TYPE_CHECKING:
    from wolo.conversation.permission_check import PermissionCheck

app = typer.Typer(rich_markup_mode=None)

Call = Annotated[
    str, typer.Argument(metavar="CALL", help="As a rule writes it: shell:git push, read:.env, fetch:docs.python.org.")
]
Mode = Annotated[str, typer.Option("--mode", metavar="MODE", help="As if wolo ran in this mode.", show_default=False)]
Allow = Annotated[list[str] | None, typer.Option("--allow", metavar="RULE", help="As if this rule were given.")]
Deny = Annotated[list[str] | None, typer.Option("--deny", metavar="RULE", help="As if this rule were given.")]


@app.command("list")
def show(as_json: AsJson = False) -> None:
    """Every rule in force here and who said it, in the order in which they decide."""
    from wolo.conversation.permission_check import in_precedence, rule_lines
    from wolo.frontends.streams import tell

    rules = _bench("", None, None).config.rules
    if as_json:
        print_json([{"decision": rule.decision, "rule": str(rule), "source": rule.source} for rule in in_precedence(rules)])
        return
    for line in rule_lines(rules):
        tell(line)


@app.command("test")
def try_out(call: Call, mode: Mode = "", allow: Allow = None, deny: Deny = None, as_json: AsJson = False) -> None:
    """What would become of a call, and by which rule."""
    from wolo.conversation.permission_check import verdict_lines
    from wolo.frontends.streams import tell

    verdict = _bench(mode, allow, deny).verdict(call)
    if as_json:
        said = {"verdict": verdict.decision, "rule": verdict.rule, "source": verdict.source}
        print_json({**said, "confined": verdict.confined, "reason": verdict.reason})
        return
    for line in verdict_lines(verdict):
        tell(line)


@app.command("explain")
def explain(call: Call, mode: Mode = "", allow: Allow = None, deny: Deny = None, as_json: AsJson = False) -> None:
    """The whole way to a verdict: each part of the call, and each step of the order."""
    from wolo.frontends.streams import tell

    bench = _bench(mode, allow, deny)
    steps = bench.judge.explain([bench.intent(call)])
    if as_json:
        print_json({"call": call, "mode": bench.judge.mode.name, "steps": steps})
        return
    tell(f"mode {bench.judge.mode.name}")
    for step in steps:
        tell(step)


@app.command("remove")
def remove(
    rule: Annotated[str, typer.Argument(metavar="RULE")],
    everywhere: Annotated[bool, typer.Option("--everywhere", help="The one that was kept for every workspace.")] = False,
    as_json: AsJson = False,
) -> None:
    """Take back a rule that was kept with "always"."""
    from pathlib import Path

    from wolo.conversation.permission_check import remove_rule
    from wolo.frontends.streams import tell
    from wolo.workspace.root import find_root

    root = find_root(Path.cwd())
    removed = remove_rule(rule.strip(), root, everywhere=everywhere)
    if as_json:
        print_json({"rule": rule.strip(), "removed": removed, "workspace": "*" if everywhere else str(root)})
        return
    tell(f"{rule.strip()} is forgotten.")


def _bench(mode: str, allow: list[str] | None, deny: list[str] | None) -> PermissionCheck:
    from wolo.conversation.permission_check import open_permission_check

    given: dict[str, str | bool | list[str]] = {}
    if mode:
        given["mode"] = mode
    return open_permission_check({**given, "allow": allow or [], "deny": deny or []})
