"""/plan, /mode, /permissions, /sandbox: what runs without asking, and where."""

from __future__ import annotations

import asyncio

from wolo.commands.command import Command, CommandContext, Outcome, SendPrompt, ShowText, SwitchConversation
from wolo.conversation.conversation import Conversation
from wolo.conversation.permission_check import remove_rule, rule_lines, verdict_lines
from wolo.conversation.resources.startup import ConversationChange
from wolo.conversation.resources.tool_environment import find_sandbox
from wolo.errors import UsageError
from wolo.guard.modes import MODES, PLAN
from wolo.places import find_places


async def _mode(context: CommandContext, rest: str) -> Outcome:
    conversation = context.conversation
    if rest:
        return ShowText(enter(conversation, rest))
    rows = [f"{'*' if name == conversation.info.mode else ' '} {name:<5} {about}" for name, about in _modes(context)]
    return ShowText("\n".join([*rows, "", "/mode NAME changes it, even during a turn."]))


def _modes(context: CommandContext) -> list[tuple[str, str]]:
    allowed = context.conversation.permissions.config.settings.managed.modes
    return [(mode.name, mode.about) for mode in MODES.values() if allowed.has(mode.name)]


def enter(conversation: Conversation, name: str) -> str:
    """Changes the mode. Returns a message for the user."""
    notice = conversation.set_mode(name)
    if conversation.mode_in_force != conversation.info.mode:
        return notice
    held = f", sandbox: {conversation.info.sandbox}" if conversation.info.sandbox else ""
    return "\n".join(filter(None, (notice, f"Mode {conversation.info.mode}: {MODES[conversation.info.mode].about}{held}.")))


async def _plan(context: CommandContext, rest: str) -> Outcome:
    entered = enter(context.conversation, PLAN)
    return SendPrompt(rest) if rest else ShowText(f"{entered}\n/mode NAME switches to another mode.")


EVERYWHERE = "--everywhere"
_HINT = f"/permissions, /permissions test CALL, /permissions explain CALL, /permissions remove RULE [{EVERYWHERE}]"


async def _permissions(context: CommandContext, rest: str) -> Outcome:
    conversation = context.conversation
    action, _, what = rest.partition(" ")
    what = what.strip()
    if action in ("test", "explain", "remove") and not what:
        raise UsageError(f"/permissions {action} needs an argument.", hint=_HINT)
    match action:
        case "" | "list":
            return ShowText("\n".join([f"mode   {conversation.info.mode}", *rule_lines(conversation.permissions.judge.rules)]))
        case "test":
            return ShowText("\n".join(verdict_lines(conversation.permissions.verdict(what))))
        case "explain":
            bench = conversation.permissions
            return ShowText("\n".join([f"mode {conversation.info.mode}", *bench.judge.explain([bench.intent(what)])]))
        case "remove":
            words = what.split()
            everywhere = EVERYWHERE in words
            rule = " ".join(word for word in words if word != EVERYWHERE)
            remove_rule(rule, conversation.info.root, everywhere=everywhere)
            return SwitchConversation(await conversation.reopen(ConversationChange()), text=f"Removed {rule}.")
        case _:
            raise UsageError(f"Unknown action: {action}.", hint=_HINT)


def _permission_arguments(context: CommandContext) -> list[tuple[str, str]]:
    saved = [f"remove {rule}" for rule in context.conversation.permissions.judge.rules if "permissions.toml" in rule.source]
    return [
        ("test", "the verdict on a call: test shell:git push"),
        ("explain", "each step to the verdict"),
        ("remove", 'remove a rule saved with "always"'),
        *((each, 'saved with "always"') for each in saved),
    ]


async def _sandbox(context: CommandContext, rest: str) -> Outcome:
    conversation = context.conversation
    facts, bench = conversation.info, conversation.permissions
    selection = await asyncio.to_thread(find_sandbox, bench.config, bench.workspace, find_places())
    held = f"Commands run in {facts.sandbox}." if facts.sandbox else f"Commands are not sandboxed in mode {facts.mode}."
    lines = [held, f"setting      sandbox.backend = {bench.config.settings.sandbox.backend}"]
    lines.append(f"available    {selection.backend}{'' if selection.is_whole else ' (partial)'}")
    if selection.covers:
        lines.append(f"covers       {', '.join(selection.covers)}")
    lines.append(f"not covered  {', '.join(selection.not_covered) or 'nothing'}")
    lines += [f"             {why}" for why in selection.tried]
    if not facts.sandbox and selection.make is not None:
        lines += ["", "/mode auto runs commands in the sandbox."]
    return ShowText("\n".join(lines))


COMMANDS = (
    Command(
        "plan",
        "plan mode: read only",
        _plan,
        usage="[TASK]",
        more="Enters mode plan; with TASK it also asks for a plan of it. /mode NAME switches to another mode.",
        group="Conversation",
    ),
    Command(
        "mode",
        "what runs without asking",
        _mode,
        usage="[plan|ask|edit|auto|yolo]",
        more="Applies from the next call on; the sandbox follows. Resuming a session never restores yolo.",
        group="Permissions",
        arguments=_modes,
        while_working=True,
    ),
    Command(
        "permissions",
        "the rules, and the verdict on a call",
        _permissions,
        usage="[test CALL | explain CALL | remove RULE [--everywhere]]",
        more="CALL as a rule names it: shell:git push, read:.env, fetch:docs.python.org. remove deletes a saved rule.",
        group="Permissions",
        arguments=_permission_arguments,
    ),
    Command(
        "sandbox",
        "the sandbox of commands, and its gaps",
        _sandbox,
        doing="trying the sandbox",
        group="Permissions",
        while_working=True,
    ),
)
