"""Builds a prompt with its attachments: `-f` files, `@path` mentions and stdin."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from msgspec import Struct

from wolo.errors import UsageError
from wolo.messages.media import audio_type, image_type
from wolo.messages.message import RESOURCES, Message, Origin, UserPrompt, is_typed, reaches_out
from wolo.messages.parts import AnyPart, AudioPart, FilePart, ImagePart, TextPart
from wolo.messages.terminal_text import quantity
from wolo.models.protocol import has_media
from wolo.models.provider import ModelChoice
from wolo.places import find_home
from wolo.workspace.root import resolve_path

if TYPE_CHECKING:
    from wolo.conversation.conversation import Conversation

P = TypeVar("P", bound=Message)

MAX_TEXT_BYTES = 256 * 1024
MAX_MEDIA_BYTES = 20 * 1024 * 1024
MAX_CUT_BYTES = 200 * 1024 * 1024
"""For a file of which only some lines are attached."""
HEAD_BYTES = 16
PDF = b"%PDF-"

_MENTION = r"(?<![\w@])@(?:\"((?:[^\"\\]|\\.)+)\"(:[0-9]{1,9}(?:-[0-9]{0,9})?)?|([^\s@\"]+))"
_RANGE = r"(?s)(.+):([0-9]{1,9})(?:(-)([0-9]{0,9}))?"
_RESOURCE = r"(?<![\w@])@([A-Za-z0-9_.-]{1,64}):([A-Za-z][A-Za-z0-9+.-]*:[^\s\"]+)"
_BY_AGENT = (
    "[The user asks for the agent {agent}: give it this with the tool `task` and agent={agent}. "
    "Put everything it must know into the prompt.]"
)
_IMAGE_SUFFIX = r"\.(?i:png|jpe?g|gif|webp)(?!\w)"
_IMAGE_PATH = (
    rf"(?<![\w@/.~\\-])(?:\"([^\"\n]+{_IMAGE_SUFFIX})\"|'([^'\n]+{_IMAGE_SUFFIX})'|((?:\\ |[^\s\"'`@])+?{_IMAGE_SUFFIX}))"
)
"""A path in quotes, or one whose blanks have backslashes."""
_ESCAPED = r"\\([\"\\])"


class Lines(Struct, frozen=True):
    """From 1; without `last` to the end."""

    first: int = 1
    last: int | None = None


WHOLE = Lines()


def compose(
    text: str,
    *,
    origin: Origin,
    piped: str = "",
    files: tuple[Path, ...] = (),
    cwd: Path,
    attaching: Callable[[Path], None] = lambda path: None,
    typed: str | None = None,
    asking: str | None = None,
    ran: Sequence[str] = (),
    agents: Sequence[str] = (),
) -> UserPrompt:
    """The user message of a prompt. Raises UsageError for a file that cannot be attached.

    `@path` attaches an existing file, `@path:10-40` some lines of it; else it stays text. `@SERVER:URI` is read by the turn.
    `typed` is the part of the text in which mentions of files count, if not all; `asking` the one for resources and agents, if
    it is another. `attaching` gets each file before it is read. `ran` is the output of user commands. `@NAME` of one of `agents`
    asks for a task by it, unless there is such a file.
    """
    typed = text if typed is None else typed
    asking = typed if asking is None else asking
    if piped:
        text = f"{text}\n\n<stdin>\n{piped.rstrip(chr(10))}\n</stdin>"
    parts: list[AnyPart] = [TextPart(text=text)]
    named = ((cwd / file, WHOLE) for file in files)
    for path, lines in dict.fromkeys((*named, *_find_mentions(typed, cwd))):
        attaching(path)
        parts.append(_attach(path, lines))
    parts += (TextPart(text=f"\n\n<ran>\n{each.rstrip(chr(10))}\n</ran>") for each in ran)
    parts += (TextPart(text=f"\n\n{_BY_AGENT.format(agent=agent)}") for agent in _mentioned_agents(asking, agents, cwd))
    resources = re.findall(_RESOURCE, asking) if "@" in asking else []
    metadata = {RESOURCES: list(dict.fromkeys(resources))} if resources else {}
    return UserPrompt(role="user", parts=tuple(parts), finished=True, metadata=metadata, origin=origin)


def write_prompt(
    text: str,
    conversation: Conversation,
    *,
    origin: Origin,
    notify: Callable[[str], None],
    typed: str | None = None,
    piped: str = "",
    files: tuple[Path, ...] = (),
    ran: Sequence[str] = (),
) -> UserPrompt:
    """The prompt of a front end: what is mentioned in it is attached as far as its origin permits. Blocks.

    `notify` gets a line about each file that is not attached. Raises UsageError for one that cannot be.
    """
    typed = asking = text if typed is None else typed
    typed = asking = _with_images_mentioned(typed, conversation) if reaches_out(origin) else typed
    can_read = is_typed(origin) or "read" in conversation.info.tool_names
    if not (conversation.info.mentions and can_read):
        typed = asking = ""
    elif not reaches_out(origin):
        for path, _ in _find_mentions(asking, conversation.info.cwd) if is_typed(origin) else ():
            if conversation.permissions.judge.rule_against_reading(path):
                conversation.files.allow_attachment(path)  # says so
        typed, refused = readable_mentions(typed, conversation, must_fit=not is_typed(origin))
        asking = asking if is_typed(origin) else ""
        for reason in refused:
            notify(reason)
    return compose(
        text,
        origin=origin,
        piped=piped,
        files=files,
        cwd=conversation.info.cwd,
        attaching=conversation.files.allow_attachment,
        typed=typed,
        asking=asking,
        ran=ran,
        agents=conversation.mentionable_agents,
    )


def readable_mentions(text: str, conversation: Conversation, *, must_fit: bool = False) -> tuple[str, list[str]]:
    """The mentions of files in the workspace that the model may read without approval, and a notice about each other one.

    `must_fit`: also those that cannot be attached get a notice, instead of ending the run.
    """
    references: list[str] = []
    refused: dict[str, None] = {}
    for mention in re.finditer(_MENTION, text) if "@" in text else ():
        mentioned = _find_mentions(mention[0], conversation.info.cwd)
        reasons = [_why_refused(path, conversation) or (must_fit and _why_unfit(path, lines)) for path, lines in mentioned]
        if mentioned and not any(reasons):
            references.append(mention[0])
        refused |= dict.fromkeys(reason for reason in reasons if reason)
    return " ".join(references), list(refused)


def _with_images_mentioned(text: str, conversation: Conversation) -> str:
    """The text with a mention of each image whose path is in it, if the model takes images."""
    cwd = conversation.info.cwd
    paths = [
        next(filter(None, spelling)).replace("\\ ", " ").removeprefix("file://")
        for spelling in (re.findall(_IMAGE_PATH, text) if re.search(_IMAGE_SUFFIX, text) else ())
    ]
    mentioned = {path for path, _ in _find_mentions(text, cwd)}
    images = [path for path in paths if _is_image(_at(path, cwd)) and _at(path, cwd) not in mentioned]
    if not images:
        return text
    from wolo.models.capabilities import unsupported_media  # noqa: PLC0415  # few prompts name an image

    parts = tuple(ImagePart(name=path, media_type="image/png", data=b"\0") for path in images)
    if unsupported_media(conversation.choice, Message(role="user", parts=parts)):
        return text
    return " ".join([text, *(f'@"{path}"' for path in dict.fromkeys(images) if not set(path) & set('"\\'))])


def unresolved_mentions(text: str, conversation: Conversation) -> list[str]:
    """Mentions that name no file, agent or resource, so they are sent as text."""
    mentions = dict.fromkeys(mention[0] for mention in re.finditer(_MENTION, text)) if "@" in text else {}
    return [
        mention
        for mention in mentions
        if not _find_mentions(mention, conversation.info.cwd)
        and not re.match(_RESOURCE, mention)
        and mention[1:].rstrip(".,;:!?)") not in conversation.mentionable_agents
    ]


def _why_refused(path: Path, conversation: Conversation) -> str:
    permissions, real = conversation.permissions, Path(resolve_path(path))
    if not permissions.workspace.holds(real):
        return f"Not attached, because it is outside the workspace: {path}"
    return "" if permissions.judge.readable(real) else f"Not attached, because reading it needs an approval: {path}"


def _why_unfit(path: Path, lines: Lines) -> str:
    try:
        _attach(path, lines)
    except UsageError as error:
        return f"Not attached: {error.message}"
    return ""


def _mentioned_agents(text: str, agents: Sequence[str], cwd: Path) -> list[str]:
    if "@" not in text or not agents:
        return []
    known = {agent.lower(): agent for agent in agents}
    words = (plain.rstrip(".,;:!?)]}'") for _, _, plain in re.findall(_MENTION, text))
    return list(dict.fromkeys(known[word.lower()] for word in words if word.lower() in known and not _is_file(_at(word, cwd))))


def must_be_sent(choice: ModelChoice, prompt: P) -> P:
    """Marks a prompt that needs its attachments. Raises UsageError for types that the model does not accept."""
    if not has_media(prompt):
        return prompt
    from wolo.models.capabilities import require_attachments  # noqa: PLC0415  # few prompts carry any

    return require_attachments(choice, prompt)


def _find_mentions(text: str, cwd: Path) -> list[tuple[Path, Lines]]:
    mentions: list[tuple[Path, Lines]] = []
    if "@" not in text:
        return mentions
    for quoted, range_behind, plain in re.findall(_MENTION, text):
        spellings = (re.sub(_ESCAPED, r"\1", quoted) + range_behind, quoted) if quoted else (plain, plain.rstrip(".,;:!?)]}'"))
        for name, lines in (each for spelling in spellings for each in _readings(spelling)):
            if name and _is_file(_at(name, cwd)):
                mentions.append((_at(name, cwd), lines))
                break
    return mentions


def _readings(spelling: str) -> list[tuple[str, Lines]]:
    """The plain name, then a name with a range of lines."""
    readings = [(spelling, WHOLE)]
    if ranged := re.fullmatch(_RANGE, spelling):
        name, first, dash, last = ranged.groups()
        readings.append((name, Lines(max(int(first), 1), int(last) if last else None if dash else int(first))))
    return readings


def _at(name: str, cwd: Path) -> Path:
    return cwd / (find_home() / name[2:] if name.startswith("~/") else name)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def _is_image(path: Path) -> bool:
    if not _is_file(path):
        return False
    try:
        with path.open("rb") as file:
            return bool(image_type(file.read(HEAD_BYTES)))
    except OSError:
        return False


def _attach(path: Path, lines: Lines = WHOLE) -> AnyPart:
    try:
        if path.is_dir():
            raise UsageError(f"Cannot attach {path}: it is a directory.", hint="Name it in the prompt; wolo can list it.")
        if path.exists() and not path.is_file():
            raise UsageError(f"Cannot attach {path}: it is not a regular file.")
        if (size := path.stat().st_size) > (MAX_MEDIA_BYTES if lines == WHOLE else MAX_CUT_BYTES):
            raise UsageError(f"{path} is too large to attach ({size:,} bytes).", hint="Name it in the prompt; wolo can read it.")
        data = path.read_bytes()
    except FileNotFoundError as error:
        raise UsageError(f"Cannot attach {path}: there is no such file.") from error
    except (OSError, ValueError) as error:
        raise UsageError(f"Cannot attach {path}: {error}.") from error
    return (_media(path, data) if lines == WHOLE else None) or _text(path, data, lines)


def _media(path: Path, data: bytes) -> AnyPart | None:
    if kind := image_type(data[:HEAD_BYTES]):
        return ImagePart(name=path.name, media_type=kind, data=data)
    if kind := audio_type(data[:HEAD_BYTES]):
        return AudioPart(name=path.name, media_type=kind, data=data)
    if data.startswith(PDF):
        return FilePart(name=path.name, media_type="application/pdf", data=data)
    return None


def _text(path: Path, data: bytes, lines: Lines) -> TextPart:
    if b"\0" in data[:8192]:
        raise UsageError(f"{path} is binary; only text, images, audio and PDF documents can be attached.")
    named = ""
    if lines != WHOLE:
        # The selected lines, and the attribute that names them.
        all_lines = data.removesuffix(b"\n").split(b"\n")
        last = min(lines.last or len(all_lines), len(all_lines))
        if lines.first > last:
            raise UsageError(
                f"{path} has {quantity(len(all_lines), 'line')}, so lines {lines.first:,} to {last:,} cannot be attached."
            )
        data, named = b"\n".join(all_lines[lines.first - 1 : last]), f' lines="{lines.first}-{last}"'
    if len(data) > MAX_TEXT_BYTES:
        raise UsageError(f"{path} is too large to attach ({len(data):,} bytes).", hint="Name it in the prompt; wolo can read it.")
    return TextPart(text=f'\n\n<file path="{path}"{named}>\n{data.decode("utf-8", "replace")}\n</file>')
