"""/permissions: lists rules, tests a call against them, and removes one."""

from __future__ import annotations

from wolo.commands.command import Command, CommandContext, Outcome, ShowText, SwitchConversation
from wolo.conversation.permission_check import remove_rule, rule_lines, verdict_lines
from wolo.conversation.resources.startup import ConversationChange
from wolo.errors import UsageError

EVERYWHERE = "--everywhere"
_HINT = f"/permissions, /permissions test CALL, /permissions explain CALL, /permissions remove RULE [{EVERYWHERE}]"


async def _run(context: CommandContext, rest: str) -> Outcome:
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


def _arguments(context: CommandContext) -> list[tuple[str, str]]:
    saved = [f"remove {rule}" for rule in context.conversation.permissions.judge.rules if "permissions.toml" in rule.source]
    return [
        ("test", "the verdict on a call: test shell:git push"),
        ("explain", "each step to the verdict"),
        ("remove", 'remove a rule saved with "always"'),
        *((each, 'saved with "always"') for each in saved),
    ]


COMMANDS = (
    Command(
        "permissions",
        "the rules, and the verdict on a call",
        _run,
        usage="[test CALL | explain CALL | remove RULE [--everywhere]]",
        more="CALL as a rule names it: shell:git push, read:.env, fetch:docs.python.org. remove deletes a saved rule.",
        group="Permissions",
        arguments=_arguments,
    ),
)
