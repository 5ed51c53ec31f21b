"""/rewind, /branch, /tree, /label: navigate the prompts and branches of a session."""

from __future__ import annotations

from wolo.commands.command import Command, CommandContext, Outcome, ShowText, SwitchConversation, number
from wolo.conversation.history.branching import before_prompt, prompt_of, to_branch
from wolo.errors import UsageError
from wolo.sessions.session_text import draw, outline


async def _rewind(context: CommandContext, rest: str) -> Outcome:
    nodes, head = context.conversation.session.stored.tree()
    if not rest:
        here = [place for place in outline(nodes, head) if place.is_on_way]
        return ShowText("\n".join([*draw(here), "", "/rewind N goes back to before a prompt."]) if here else "No prompts yet.")
    change, text = before_prompt(nodes, head, number(rest))
    following = await context.conversation.reopen(change)
    report = f"Back to before: {' '.join(text.split())[:60]}\nFiles were not changed; /undo restores them too."
    draft = text if prompt_of(nodes, head, number(rest)).is_from_user else ""
    return SwitchConversation(following, draft=draft, text=report)


def _prompts(context: CommandContext) -> list[tuple[str, str]]:
    """The prompts of the current branch, newest first."""
    places = reversed(outline(*context.conversation.session.stored.tree()))
    return [(str(place.number), place.text) for place in places if place.is_on_way]


async def _branch(context: CommandContext, rest: str) -> Outcome:
    if not rest:
        return await _tree(context, rest)
    nodes, head = context.conversation.session.stored.tree()
    following = await context.conversation.reopen(to_branch(nodes, head, number(rest)))
    return SwitchConversation(following, text="Switched to the other branch. Files were not changed.")


async def _tree(context: CommandContext, rest: str) -> Outcome:
    if not (lines := draw(outline(*context.conversation.session.stored.tree()))):
        return ShowText("Nothing of this conversation is saved yet.")
    ways = "/rewind N: to before a prompt · /branch N: to the end of its branch · /label N NAME"
    return ShowText("\n".join([*lines, "", ways]))


def _other_branches(context: CommandContext) -> list[tuple[str, str]]:
    places = outline(*context.conversation.session.stored.tree())
    return [(str(place.number), place.text) for place in places if not place.is_on_way]


async def _label(context: CommandContext, rest: str) -> Outcome:
    first, _, others = rest.partition(" ")
    nodes, head = context.conversation.session.stored.tree()
    chosen = int(first) if first.isdecimal() else None
    label = (others if chosen is not None else rest).strip()
    if not rest:
        raise UsageError("/label needs a label.", hint="/label NAME labels the last prompt, /label N NAME another.")
    message = prompt_of(nodes, head, chosen)
    context.conversation.session.set_label(message.id, label)
    return ShowText(f"Label: {label}" if label else "Removed the label.")


COMMANDS = (
    Command(
        "rewind",
        "go back to before a prompt; files stay",
        _rewind,
        doing="going back",
        usage="[N]",
        more="The messages since then stay on their own branch. /undo restores files too.",
        group="History",
        arguments=_prompts,
    ),
    Command(
        "branch",
        "switch to another branch of this session",
        _branch,
        doing="switching the branch",
        usage="[N]",
        group="History",
        arguments=_other_branches,
    ),
    Command(
        "tree",
        "prompts of this session, with all branches",
        _tree,
        doing="reading the session",
        group="History",
        while_working=True,
    ),
    Command("label", "label a prompt", _label, usage="[N] NAME", group="History", while_working=True),
)
