"""`wolo hooks`: lists, tests and allows hooks."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wolo.cli.listing import AsJson, Trust, print_described, print_json, print_untrusted, read_object
from wolo.errors import UsageError
from wolo.extensions.hooks.definitions import ABOUT_TOOLS, describe_hook
from wolo.frontends.streams import confirm, print_line, print_lines, print_message, print_messages
from wolo.messages.terminal_text import escaped_line
from wolo.workspace.root import find_root, find_site

if TYPE_CHECKING:
    from wolo.config.cli_options import Flags
    from wolo.tools.tool_values import HookReply

app = typer.Typer(rich_markup_mode=None)

_SAMPLE = '{"command": "true"}'
EXAMPLE = '{"command": "ls"}'


@app.command("list")
def show(trust: Trust = False, as_json: AsJson = False) -> None:
    """List the hooks of this directory with their source and state; none is run."""
    from wolo.commands.hooks import NONE, lines_of
    from wolo.conversation.resources.conversation_hooks import find_problems
    from wolo.diagnostics.hook_trial import hooks_here

    site = find_site()
    sets = hooks_here(_flags(trust), site)
    problems = [*site.notices, *find_problems(sets, site.cwd)]
    print_messages(problems)
    if as_json:
        print_json(
            [
                {
                    "event": event,
                    "matcher": hook.matcher,
                    "if": hook.condition,
                    "type": hook.type,
                    hook.type if hook.type != "http" else "url": hook.prompt or hook.url or hook.command,
                    "timeout_s": hook.limit_s,
                    "strict": hook.strict,
                    "async": hook.in_background,
                    "once": hook.once,
                    "source": each.source,
                    "active_with": list(each.active_with),
                    "standing": each.consent,
                    "runs": each.runs,
                }
                for each in sets
                for event, hook in each.hooks
            ]
        )
        return
    for each in sets:
        print_lines(lines_of(each))
    if not sets:
        print_message(NONE)


@app.command("test")
def try_out(
    event: Annotated[str, typer.Argument(metavar="EVENT", help="Such as PreToolUse, UserPromptSubmit, Stop.")],
    tool: Annotated[str, typer.Option("--tool", metavar="NAME", help="The tool of the call: Bash, Edit, shell …")] = "",
    arguments: Annotated[
        str, typer.Option("--input", metavar="JSON", help="Arguments of the call, or fields of the event.")
    ] = "{}",
    mode: Annotated[str, typer.Option("--mode", metavar="MODE", help="Assume this permission mode.")] = "auto",
    trust: Trust = False,
    as_json: AsJson = False,
) -> None:
    """Run the hooks of an event with sample input and show their responses."""
    from wolo.diagnostics.hook_trial import hooks_here, try_hooks
    from wolo.extensions.hooks.hook_files import OF_GEMINI

    event = OF_GEMINI.get(event, event)
    site = find_site()
    sets = hooks_here(_flags(trust), site)
    print_messages(site.notices)
    if event in ABOUT_TOOLS and not tool:
        tool, arguments = "Bash", _SAMPLE if arguments == "{}" else arguments
        print_message(f"The sample is a call of Bash with {arguments}; --tool and --input try another one.")
    trials, answer = asyncio.run(try_hooks(sets, event, tool, read_object(arguments, EXAMPLE), mode))
    if as_json:
        print_json(
            {
                "event": event,
                **_answer(answer),
                "hooks": [
                    {
                        "source": each.placed.source,
                        "matcher": each.placed.hook.matcher,
                        "command": each.placed.hook.action,
                        **_answer(each.answer),
                    }
                    for each in trials
                ],
            }
        )
        return
    for each in trials:
        print_line(f"{escaped_line(each.placed.hook.action)}  ({escaped_line(each.placed.source)})")
        print_line(f"  {_in_short(each.answer)}")
        for notice in each.answer.notices:
            print_line(f"  {notice}")
    print_line(f"{event}: {_in_short(answer)}" if trials else f"No hook that may run matches this {event}.")


@app.command("allow")
def allow(
    source: Annotated[
        str, typer.Argument(metavar="[FILE]", help="Source as shown by `list`; all if not given.", show_default=False)
    ] = "",
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Allow the hooks of this project; every command is shown. Without a terminal there is no question."""
    from wolo.commands.hooks import STANDINGS
    from wolo.conversation.resources.conversation_hooks import project_hooks, save_consent

    site = find_site()
    found = [each for each in project_hooks(site) if each.hooks and source in ("", each.source)]
    if not found:
        raise UsageError(f"There are no hooks of this project{f' in {source}' if source else ''}.", hint="wolo hooks list")
    for each in found:
        print_line(f"{escaped_line(each.source)}  ({STANDINGS[each.consent]})")
        for event, hook in each.hooks:
            print_line(f"  {event}")
            print_described(describe_hook(hook), "    ")
        if each.consent == "allowed":
            continue
        if sys.stdin.isatty() and not yes and not confirm("Allow these hooks to run, with your permissions?"):
            print_line("Not allowed.")
            continue
        save_consent(site.places, site.root, each, "yes")
        print_line(f"The hooks of {each.source} run from now on, as long as none of them changes.")
    print_untrusted(site, "reads its hooks")


def _flags(trust: bool) -> Flags:
    return {"trust": str(find_root())} if trust else {}


def _answer(answer: HookReply) -> dict[str, Any]:
    return {
        "decision": answer.decision or None,
        "reason": answer.reason,
        "context": answer.context,
        "updated_input": answer.updated_input,
        "updated_output": answer.updated_output,
        "stops": answer.stops,
        "notices": list(answer.notices),
    }


def _in_short(answer: HookReply) -> str:
    said = [answer.decision or "no decision", *([answer.reason] if answer.reason else [])]
    said += ["changes the arguments"] if answer.updated_input is not None else []
    said += ["ends the turn"] if answer.stops else []
    said += [f"tells the model: {answer.context}"] if answer.context else []
    return " · ".join(" ".join(each.split()) for each in said)
