"""Custom slash commands: Markdown files and skills. Built-in names take precedence."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from wolo.commands.command import Command, CommandContext, EmbeddedCommand, Expansion, Group, Outcome, SendPrompt, shorten
from wolo.conversation.conversation import Conversation
from wolo.conversation.prompt_attachments import readable_mentions
from wolo.errors import ExtensionError
from wolo.extensions.command_files import WrittenCommand, fill
from wolo.extensions.command_templates import Piece, fill_skill
from wolo.extensions.markdown_files import ExtensionFolder, show_path
from wolo.extensions.skill_files import Skill, result_text
from wolo.guard.protected_paths import runs_code
from wolo.places import find_places
from wolo.tools.tool_values import DEFAULT
from wolo.workspace.root import resolve_path

GROUP: Group = "Custom"
FRESH_S = 2.0
"""Found commands are cached while the user types."""
MOST_SHOWN_LINES = 8
LONGEST_HELP = 58
_DEFAULT_AGENTS = frozenset(("build", "default"))
"""Names of the main agent in other programs."""
_UNRUN = "(Commands between !` and ` in this text were not run.)"


class CommandList:
    """The built-in commands and the custom ones found on disk."""

    def __init__(self, builtin: Sequence[Command]) -> None:
        self._builtin = tuple(builtin)
        self._found: tuple[Command, ...] = ()
        self._of: Conversation | None = None
        self._seen_at = float("-inf")

    def all(self, conversation: Conversation, *, anew: bool = False) -> tuple[Command, ...]:
        """`anew`: skip the cache. Thread-safe."""
        if anew or conversation is not self._of or time.monotonic() - self._seen_at > FRESH_S:
            self._found = load_user_commands(conversation, self._builtin)
            self._of, self._seen_at = conversation, time.monotonic()
        return (*self._builtin, *self._found)


def load_user_commands(conversation: Conversation, builtin: Sequence[Command]) -> tuple[Command, ...]:
    """Each name once: built-in commands first, then files, then skills.

    The end of a name with colons is an alias if it is unambiguous: `commit` for `git:commit`.
    """
    taken = {name for command in builtin for name in (command.name, *command.aliases)}
    library = conversation.user_files
    commands = [_command(each) for each in library.commands().commands if each.for_person and each.name not in taken]
    taken.update(each.name for each in commands)
    skills = [
        Command(
            f"skill:{each.name}",
            shorten(each.description, LONGEST_HELP),
            partial(_use, each),
            usage=each.hint or "[WORDS]",
            more=f"{each.description} Defined in {show_path(each.path)}.",
            group=GROUP,
            makes_prompt=True,
        )
        for each in library.skills().skills
        if each.for_person and f"skill:{each.name}" not in taken
    ]
    taken.update(each.name for each in skills)
    prompts: list[Command] = []
    if conversation.servers.prompts:
        from wolo.commands.mcp_prompts import prompt_commands  # noqa: PLC0415  # few servers have prompts

        prompts = [each for each in prompt_commands(conversation) if each.name not in taken]
    if conversation.extensions is not None:
        from wolo.commands.extension_commands import extension_commands  # noqa: PLC0415  # few users have some

        taken.update(each.name for each in prompts)
        prompts += [each for each in extension_commands(conversation.extensions) if each.name not in taken]
    all_commands = (*commands, *skills, *prompts)
    endings = Counter(ending for each in all_commands for ending in _endings(each.name))
    # The full name of a skill is meant, whatever else ends with it
    return tuple(
        replace(
            each,
            aliases=tuple(
                name for name in _endings(each.name) if name not in taken and (each.name == f"skill:{name}" or endings[name] == 1)
            ),
        )
        for each in all_commands
    )


def _endings(name: str) -> list[str]:
    """The ends of a name: `b:c` and `c` for `a:b:c`."""
    parts = name.split(":")
    return [":".join(parts[at:]) for at in range(1, len(parts))]


def _command(written: WrittenCommand) -> Command:
    facts = [f"Defined in {show_path(written.path)}."]
    if written.model:
        is_own = written.shelf.project is None and written.shelf.plugin is None
        facts.append(
            f"Answered by {written.model}."
            if is_own
            else f"Names the model {written.model}; only your own commands may select one."
        )
    if written.tools:
        facts.append(f"Names the tools {', '.join(written.tools)}; this grants no permission.")
    return Command(
        written.name,
        shorten(written.description, LONGEST_HELP) or "custom command",
        partial(_send, written),
        usage=written.hint,
        more=" ".join(facts),
        group=GROUP,
        makes_prompt=True,
    )


async def _send(command: WrittenCommand, context: CommandContext, rest: str) -> Outcome:
    if not command.is_usable:
        raise ExtensionError(f"/{command.name} cannot be used: {command.description}")
    pieces = await asyncio.to_thread(fill, command, rest)
    conversation = context.conversation
    is_own = _is_users(command.shelf, command.path, conversation)
    text, runs, unrun = _embed(pieces, conversation, is_own=is_own)
    notices = [f"Not run, sent as text: {', '.join(unrun)}"] if unrun else []
    attached, refused = readable_mentions(text, conversation)
    typed, model = f"{rest}\n{attached}", command.model if is_own else ""
    own_words = readable_mentions(rest, conversation)[1]
    notices += [each for each in refused if each not in own_words]  # what the user typed is judged as such
    task, problem = _delegation(command, conversation)
    notices += [problem] if problem else []
    lines = "".join(piece if isinstance(piece, str) else piece.written for piece in pieces).split("\n")
    num_more = len(lines) - MOST_SHOWN_LINES
    seen = "\n".join([*lines[:MOST_SHOWN_LINES], f"… {num_more} more lines"] if num_more > 1 else lines)
    text = f"{text}\n\n{_UNRUN}" if unrun else text
    if command.tools:
        text += f"\n\n(Tools named by the author of this command: {', '.join(command.tools)}. This grants no permission.)"
    runs = [replace(run, at=run.at + len(task)) for run in runs]
    expansion = Expansion(command.name, rest, str(command.path))
    return SendPrompt(
        task + text, shown=seen, typed=typed, model=model, runs=tuple(runs), notices=tuple(notices), expands=expansion
    )


def _delegation(command: WrittenCommand, conversation: Conversation) -> tuple[str, str]:
    """The words that give the prompt to a subagent, and a notice for an agent that is not available."""
    if not command.agent and not command.is_task:
        return "", ""
    offered = conversation.user_files.agents(conversation.choice).offers
    named = next((each.name for each in offered if each.name.lower() == command.agent.lower()), "")
    if named or command.is_task:
        return f"Give this task to the agent {named or DEFAULT} with the tool `task`, and report its result:\n\n", ""
    if command.agent in _DEFAULT_AGENTS:
        return "", ""
    return "", f"/{command.name} names the agent {command.agent}, which is not available for tasks; it is ignored."


def _embed(pieces: Sequence[Piece], conversation: Conversation, *, is_own: bool) -> tuple[str, list[EmbeddedCommand], list[str]]:
    """The text, the commands that run in it, and those that may not."""
    text, runs, unrun = "", [], []
    for piece in pieces:
        if isinstance(piece, str):
            text += piece
        # A user's command runs with the user's rights, a project's with the model's. None: not allowed.
        elif rights := None if not piece.line else "person" if is_own else conversation.permissions.rights(piece.line):
            runs.append(EmbeddedCommand(piece.line, len(text), rights))
        else:
            text += piece.written
            unrun.append(piece.written)
    return text, runs, unrun


async def _use(skill: Skill, context: CommandContext, rest: str) -> Outcome:
    """Runs the commands in a skill that the user calls, as in a command. A skill that the model loads runs none."""
    written = await asyncio.to_thread(result_text, skill)
    conversation = context.conversation
    is_own = _is_users(skill.shelf, skill.path, conversation)
    text, runs, unrun = _embed(fill_skill(written, rest), conversation, is_own=is_own)
    asked = f"Use the skill {skill.name}{f': {rest}' if rest else ' for the current work.'}"
    text = f"{text}\n\n{_UNRUN}" if unrun else text
    lead = f"{asked}\n\n"
    return SendPrompt(
        f"{lead}{text}",
        shown=f"{asked}\n({show_path(skill.path)}, {len(text):,} characters)",
        typed=rest,
        runs=tuple(replace(run, at=run.at + len(lead)) for run in runs),
        notices=tuple([f"Not run, sent as text: {', '.join(unrun)}"] if unrun else []),
        expands=Expansion(f"skill:{skill.name}", rest, str(skill.path)),
    )


def _is_users(shelf: ExtensionFolder, path: Path, conversation: Conversation) -> bool:
    """False for a plugin's command, and for a link into the workspace, where the model writes, unless the file is protected."""
    if shelf.plugin is not None:
        return False
    real = resolve_path(path)
    is_out_of_reach = not conversation.permissions.workspace.holds(Path(real)) or runs_code(real)
    return shelf.project is None and (is_out_of_reach or Path(real).is_relative_to(resolve_path(find_places().config)))
