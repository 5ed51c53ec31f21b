"""/permissions: which rules are in force, what would become of a call, and taking back an "always"."""

from __future__ import annotations

from wolo.commands.command import Desk, Opened, Outcome, Shown
from wolo.conversation.conversation import Conversation
from wolo.conversation.permission_check import take_back, told_rules, told_verdict
from wolo.conversation.resources.session_info import Change
from wolo.errors import UsageError

EVERYWHERE = "--everywhere"
_HINT = f"/permissions, /permissions test CALL, /permissions explain CALL, /permissions remove RULE [{EVERYWHERE}]"


async def run(desk: Desk, rest: str) -> Outcome:
    conversation = desk.conversation
    action, _, what = rest.partition(" ")
    what = what.strip()
    if action in ("test", "explain", "remove") and not what:
        raise UsageError(f"/permissions {action} needs to know what.", hint=_HINT)
    match action:
        case "" | "list":
            return Shown("\n".join([f"mode   {conversation.mode}", *told_rules(conversation.bench.judge.rules)]))
        case "test":
            return Shown("\n".join(told_verdict(conversation.bench.verdict(what))))
        case "explain":
            bench = conversation.bench
            return Shown("\n".join([f"mode {conversation.mode}", *bench.judge.explain([bench.intent(what)])]))
        case "remove":
            return await _remove(conversation, what)
        case _:
            raise UsageError(f"/permissions does not know {action}.", hint=_HINT)


def arguments(desk: Desk) -> list[tuple[str, str]]:
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
    take_back(rule, conversation.facts.root, everywhere=everywhere)
    return Opened(await conversation.reopen(Change()), text=f"{rule} is forgotten.")
