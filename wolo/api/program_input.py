"""Checks what a program passes to an agent: prompts, histories, functions, settings and answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Union

import msgspec
from msgspec import Struct

from wolo.errors import UsageError
from wolo.formats.format import ThinkingLevel
from wolo.messages.media import IMAGES_ACCEPTED, is_image
from wolo.messages.message import Message
from wolo.messages.parts import AnyPart, AudioPart, FilePart, ImagePart, TextPart
from wolo.tools.tool_values import Question, Reply

if TYPE_CHECKING:
    from wolo.conversation.resources.user_files import ProgramFiles
    from wolo.extensions.agent_files import AgentProfile
    from wolo.messages.roles import AgentMessage, UserMessage

Prompt = Union[str, Message, "UserMessage", Sequence[str | AnyPart]]
History = Sequence["Message | AgentMessage"]
Answers = str | Sequence[str | Sequence[str] | Reply] | Mapping[str, str | Sequence[str] | Reply] | None
"""An answer per question, in their order or by their texts; each a text or the chosen labels. None skips all questions."""
_PROMPT_PARTS = (TextPart, ImagePart, AudioPart, FilePart)


def to_message(prompt: Any) -> Message:
    """Raises UsageError for an empty prompt, and for what is no prompt."""
    if isinstance(prompt, Struct) and not isinstance(prompt, Message):
        prompt = _by_role(prompt)
    if isinstance(prompt, Message):
        if prompt.role != "user":
            raise UsageError(f"A prompt is a message of the user, not of the role {prompt.role}.")
        _require_content(prompt.parts)
        return prompt
    given = (prompt,) if isinstance(prompt, str) else prompt
    if isinstance(given, bytes) or not isinstance(given, Iterable):
        raise UsageError(f"{_short_repr(given)} is no prompt.", hint="Pass a text, a message, or a list of texts and parts.")
    parts = tuple(TextPart(text=each) if isinstance(each, str) else each for each in given)
    if wrong := [part for part in parts if not isinstance(part, _PROMPT_PARTS)]:
        raise UsageError(f"A prompt cannot contain {_short_repr(wrong[0])}.", hint="Pass texts, or parts such as ImagePart.")
    _require_content(parts)
    return Message(role="user", parts=parts, finished=True)


def _require_content(parts: Sequence[AnyPart]) -> None:
    if not any(not isinstance(part, TextPart) or part.text.strip() for part in parts):
        raise UsageError("The prompt is empty.")
    images = [part for part in parts if isinstance(part, ImagePart)]
    for at, image in enumerate(images, 1):
        if not image.url and not image.blobs and not is_image(image.media_type, image.data):
            raise UsageError(f"Image {at}{f' ({image.name})' if image.name else ''} is no image.", hint=IMAGES_ACCEPTED)


def _by_role(prompt: Struct) -> Any:
    """A prompt of the second form as a message, or an empty tuple for an empty one; anything else stays."""
    from wolo.messages.roles import UserMessage, to_messages  # noqa: PLC0415  # few programs keep messages by role

    if not isinstance(prompt, UserMessage):
        return prompt
    try:
        return next(iter(to_messages((prompt,))), ())
    except ValueError as error:
        raise UsageError(f"The prompt is inconsistent: {error}") from error


def to_history(history: Any) -> tuple[Message, ...]:
    """Messages of a result, or messages by role. Raises UsageError for anything else."""
    messages = tuple(history) if isinstance(history, Iterable) and not isinstance(history, str | bytes) else (history,)
    if all(isinstance(each, Message) for each in messages):
        return messages
    from wolo.messages.roles import BaseMessage, to_messages  # noqa: PLC0415  # few programs keep messages by role

    if wrong := [each for each in messages if not isinstance(each, Message | BaseMessage)]:
        raise UsageError(
            f"`history` cannot contain {_short_repr(wrong[0])}.",
            hint="Pass `messages` of a result, or UserMessage, AssistantMessage and ToolMessage.",
        )
    try:
        return to_messages(messages)
    except ValueError as error:
        raise UsageError(f"`history` is inconsistent: {error}") from error


def to_directory(path: Path) -> Path:
    """Raises UsageError for a path that is no directory."""
    if not path.is_dir():
        raise UsageError(f"There is no directory {path} to work in.")
    return path.resolve()


def to_tools(tools: Iterable[Any] | None) -> tuple[Any, ...] | None:
    """Raises UsageError for one tool in place of a list."""
    if tools is None:
        return None
    if isinstance(tools, str) or not isinstance(tools, Iterable):
        raise UsageError("`tools` is a list.", hint="Pass [my_function], or names of built-in tools.")
    return tuple(tools)


def check_function(function: Any, name: str) -> None:
    """Raises UsageError for something that cannot be called."""
    if function is not None and not callable(function):
        raise UsageError(f"`{name}` is no function: {_short_repr(function)}.")


def to_hooks(hooks: Mapping[str, Callable[[dict[str, Any]], Any]] | None) -> dict[str, Callable[[dict[str, Any]], Any]]:
    """Raises UsageError for an unknown event."""
    if not hooks:
        return {}
    from wolo.extensions.hooks.definitions import EVENTS  # noqa: PLC0415  # few agents have hooks

    if not isinstance(hooks, Mapping):
        raise UsageError("`hooks` are functions by event.", hint='Pass {"PreToolUse": my_function}.')
    for event, function in hooks.items():
        if event not in EVENTS:
            near = get_close_matches(str(event), EVENTS, n=1)
            hint = f"Did you mean {near[0]}?" if near else f"The events are {', '.join(EVENTS)}."
            raise UsageError(f"There is no hook event {event!r}.", hint=hint)
        check_function(function, f"hooks[{event!r}]")
    return dict(hooks)


def literal(system: Any) -> str:
    """A text that begins with @ would name a file on the command line."""
    if not isinstance(system, str):
        raise UsageError(f"`system` is a text, not {_short_repr(system)}.")
    if system.startswith("@"):
        raise UsageError("`system` is the text itself and cannot begin with @.", hint="Read the file and pass its content.")
    return system


class _ProgramAgent(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Fields of `AgentProfile` that a program may set."""

    description: Annotated[str, msgspec.Meta(min_length=1)]
    prompt: str = ""
    model: str = ""
    thinking: ThinkingLevel | None = None
    tools: tuple[str, ...] | None = None
    without: tuple[str, ...] = ()
    skills: tuple[str, ...] = ()
    max_turns: Annotated[int, msgspec.Meta(ge=1)] | None = None


def to_files(agents: Any, skills: Any) -> ProgramFiles | None:
    """Raises UsageError for a path that does not exist."""
    if not skills and (not agents or isinstance(agents, Mapping)):
        return None
    from wolo.conversation.resources.user_files import ProgramFiles  # noqa: PLC0415  # few programs have some

    return ProgramFiles(_paths(skills, "skills"), () if isinstance(agents, Mapping) else _paths(agents, "agents"))


def to_profiles(agents: Any) -> tuple[AgentProfile, ...]:
    """Raises UsageError for an agent that cannot be."""
    return tuple(_profile(name, table) for name, table in agents.items()) if isinstance(agents, Mapping) else ()


def _paths(paths: Any, what: str) -> tuple[Path, ...]:
    if isinstance(paths, str | bytes) or not isinstance(paths, Iterable):
        raise UsageError(f"`{what}` is {_short_repr(paths)}, not a list of paths.")
    places = tuple(Path(each).absolute() for each in paths)
    if missing := [each for each in places if not each.exists()]:
        raise UsageError(f"`{what}` names {missing[0]}, which does not exist.")
    return places


def _profile(name: str, table: Any) -> AgentProfile:
    from wolo.extensions.agent_files import AgentProfile  # noqa: PLC0415  # few programs have some

    try:
        fields = msgspec.convert(table, type=_ProgramAgent)
    except msgspec.ValidationError as error:
        raise UsageError(
            f"The agent {name} cannot be used: {error}.", hint='agents={"reviewer": {"description": …, "prompt": …}}'
        ) from error
    return AgentProfile(name=name, mode="subagent", **msgspec.structs.asdict(fields))


def to_servers(servers: Any) -> str:
    """Raises UsageError for what is no table."""
    if not isinstance(servers, Mapping) or not all(isinstance(each, Mapping) for each in servers.values()):
        raise UsageError("`mcp_servers` is no table of tables.", hint='mcp_servers={"files": {"command": …, "args": […]}}')
    try:
        return json.dumps({"mcpServers": {name: dict(each) for name, each in servers.items()}})
    except (TypeError, ValueError) as error:
        raise UsageError(f"`mcp_servers` cannot be JSON: {error}.") from error


def setting(value: Any) -> str:
    """Formats a value as `--set` reads it."""
    return value if isinstance(value, str) else _inline(value)


def _inline(value: Any) -> str:
    """TOML on one line."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_inline(str(key))} = {_inline(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_inline, value))}]"
    import tomlkit  # noqa: PLC0415  # few agents have settings

    return str(tomlkit.item(value).as_string())


def to_replies(answers: Answers, questions: Sequence[Question]) -> tuple[Reply, ...] | None:
    """One reply per question; None skips them. Raises UsageError for answers that do not fit the questions."""
    if answers is None:
        return None
    if isinstance(answers, str):
        answers = (answers,)
    if isinstance(answers, Mapping):
        if missing := [question.text for question in questions if question.text not in answers]:
            raise UsageError(f"on_question returned no answer to {missing[0]!r}.")
        answers = [answers[question.text] for question in questions]
    if not isinstance(answers, Sequence):
        raise UsageError(f"on_question returned {_short_repr(answers)}.", hint="It returns a list with one answer per question.")
    if len(answers) != len(questions):
        raise UsageError(f"on_question returned {len(answers)} answers to {len(questions)} questions.")
    return tuple(map(_reply, answers))


def _reply(answer: str | Sequence[str] | Reply) -> Reply:
    if isinstance(answer, Reply):
        return answer
    if isinstance(answer, str):
        return Reply(text=answer)
    if not isinstance(answer, Iterable):
        raise UsageError(
            f"on_question returned the answer {_short_repr(answer)}.", hint="An answer is a text or a list of labels."
        )
    return Reply(chosen=tuple(answer))


def _short_repr(value: object) -> str:
    return f"{value!r:.80}"
