"""/init, /review, /commit: send a prepared prompt from `prompts/`."""

from __future__ import annotations

from pathlib import Path

from wolo.commands.command import Command, CommandContext, Outcome, SendPrompt

FOLDER = Path(__file__).parent / "prompts"
UNCOMMITTED = "the uncommitted changes in this directory (`git status`, `git diff HEAD`, and the untracked files)"


async def _init(context: CommandContext, rest: str) -> Outcome:
    return SendPrompt(_prompt("init", rest))


async def _review(context: CommandContext, rest: str) -> Outcome:
    return SendPrompt(review_prompt(rest))


def review_prompt(what: str) -> str:
    return _prompt("review").replace("{what}", what or UNCOMMITTED)


async def _commit(context: CommandContext, rest: str) -> Outcome:
    return SendPrompt(_prompt("commit", rest))


def _prompt(name: str, instructions: str = "") -> str:
    text = (FOLDER / f"{name}.md").read_text(encoding="utf-8").strip()
    return f"{text}\n\n{instructions}" if instructions else text


COMMANDS = (
    Command(
        "init",
        "let the model write an AGENTS.md",
        _init,
        usage="[INSTRUCTIONS]",
        more="For this directory. Sends an ordinary prompt, which is shown.",
        group="Conversation",
        makes_prompt=True,
    ),
    Command(
        "review",
        "review changes without editing",
        _review,
        usage="[WHAT]",
        more="Without WHAT: the uncommitted changes. Sends an ordinary prompt, which is shown.",
        group="Conversation",
        makes_prompt=True,
        arguments=lambda _: [("the last commit", ""), ("this branch against main", "")],
    ),
    Command(
        "commit",
        "let the model commit the work",
        _commit,
        usage="[INSTRUCTIONS]",
        more="Sends an ordinary prompt, which is shown; the model runs git, with the usual approvals.",
        group="Conversation",
        makes_prompt=True,
    ),
)
