"""/permissions: which rules are in force, what would become of a call, and taking back an "always"."""

from __future__ import annotations

from wolo.commands.command import CommandContext, Outcome, ShowText, SwitchConversation
from wolo.conversation.conversation import Conversation
from wolo.conversation.permission_check import remove_rule, rule_lines, verdict_lines
from wolo.conversation.resources.session_info import Change
from wolo.errors import UsageError

EVERYWHERE = "--everywhere"
_HINT = f"/permissions, /permissions test CALL, /permissions explain CALL, /permissions remove RULE [{EVERYWHERE}]"


async def run(desk: CommandContext, rest: str) -> Outcome:
    conversation = desk.conversation
    action, _, what = rest.partition(" ")
    what = what.strip()
    if action in ("test", "explain", "remove") and not what:
        raise UsageError(f"/permissions {action} needs to know what.", hint=_HINT)
    match action:
        case "" | "list":
            return ShowText("\n".join([f"mode   {conversation.mode}", *rule_lines(conversation.bench.judge.rules)]))
        case "test":
            return ShowText("\n".join(verdict_lines(conversation.bench.verdict(what))))
        case "explain":
            bench = conversation.bench
            return ShowText("\n".join([f"mode {conversation.mode}", *bench.judge.explain([bench.intent(what)])]))
        case "remove":
            return await _remove(conversation, what)
        case _:
            raise UsageError(f"/permissions does not know {action}.", hint=_HINT)


def arguments(desk: CommandContext) -> list[tuple[str, str]]:
    kept = [f"remove {rule}" for rule in desk.conversation.bench.judge.rules if "permissions.toml" in rule.source]
    return [
        ("test", "what would become of a call: test shell:git push"),
        ("explain", "the whole way to the verdict"),
        ("remove", 'take back an "always"'),
        *((each, 'kept with "always"') for each in kept),
    ]


async def _remove(conversation: Conversation, what: str) -> Outcome:
    """The conversation goes on with the rules that are left."""
    words = what.split()
    everywhere = EVERYWHERE in words
    rule = " ".join(word for word in words if word != EVERYWHERE)
    remove_rule(rule, conversation.facts.root, everywhere=everywhere)
    return SwitchConversation(await conversation.reopen(Change()), text=f"{rule} is forgotten.")
