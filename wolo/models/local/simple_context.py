"""Context of a simple-mode turn: what was said so far, and the files it may mean."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Literal

from msgspec import Struct

from wolo.messages.message import Message
from wolo.messages.parts import AudioPart, FilePart, ImagePart, TextPart, ToolPart
from wolo.models.local.local_chat import Turn
from wolo.models.local.simple_texts import LANGUAGES, PROSE

Plan = Literal["", "change", "project", "repair", "check", "try"]
"""Reason for a call: to rewrite a file, to describe the project, to repair a file after a failed command, to check a file that
was written, to see how a command fails. Empty: to answer."""
PLANS: Final[tuple[Plan, ...]] = ("change", "project", "repair", "check", "try")

PLAN_KEY: Final = "simple_mode"
"""Metadata key for the plan of a call."""
ATTACHED: Final = "\n\n<stdin>\n"
MAX_EARLIER_CHARS: Final = 400


class SimpleTurn(Struct, frozen=True, kw_only=True):
    request: str
    """Full text of the user's last message."""
    question: str
    """The same without attached or piped text."""
    has_media: bool = False
    calls: tuple[ToolPart, ...] = ()
    """Calls since then, oldest first."""
    plan: Plan = ""
    """Plan of the last call."""
    recent_path: str = ""
    """File written last in this conversation."""
    earlier: tuple[Turn, ...] = ()
    """Previous exchange, truncated."""

    @property
    def written(self) -> tuple[ToolPart, ...]:
        """Files that this turn wrote, oldest first."""
        return tuple(call for call in self.calls if call.tool in ("write", "edit") and not call.is_error)

    @property
    def failed_run(self) -> ToolPart | None:
        """Last trial run of this turn; a file is only written after it if it failed."""
        return next((call for call in reversed(self.calls) if call.tool == "shell"), None)

    @property
    def has_attachment(self) -> bool:
        return len(self.request) > len(self.question)


def read_turn(messages: Sequence[Message]) -> SimpleTurn:
    begins = max((at for at, message in enumerate(messages) if message.is_prompt), default=-1)
    asked = messages[begins] if begins >= 0 else None
    since = [message for message in messages[begins + 1 :] if message.role == "assistant"]
    texts = [part.text for part in asked.of(TextPart)] if asked else []
    question = (texts[0] if texts else "").partition(ATTACHED)[0].strip()
    calls = tuple(part for message in since for part in message.calls if part.status in ("completed", "failed"))
    return SimpleTurn(
        request="\n\n".join(texts).strip(),
        question=question,
        has_media=asked is not None and any(isinstance(part, ImagePart | AudioPart | FilePart) for part in asked.parts),
        calls=calls,
        plan=_plan(since),
        recent_path=_recent_path(messages),
        earlier=_earlier(messages[: max(begins, 0)]),
    )


def _plan(since: Sequence[Message]) -> Plan:
    noted = next((message.metadata.get(PLAN_KEY) for message in reversed(since) if message.calls), "")
    return next((plan for plan in PLANS if plan == noted), "")


def _recent_path(messages: Sequence[Message]) -> str:
    for message in reversed(messages):
        for call in reversed(message.calls):
            path = call.input.get("path")
            if call.tool in ("write", "edit") and call.status == "completed" and isinstance(path, str):
                return path
    return ""


def _earlier(messages: Sequence[Message]) -> tuple[Turn, ...]:
    """Tiny models can use only one previous exchange."""
    for at in range(len(messages) - 1, -1, -1):
        if messages[at].is_prompt:
            answer = "".join(message.text for message in messages[at + 1 :] if message.role == "assistant")
            if answer:
                return (("user", messages[at].text[:MAX_EARLIER_CHARS]), ("assistant", answer[:MAX_EARLIER_CHARS]))
            break
    return ()


MAX_BEGINNING: Final = 8_000
MAX_NAMES: Final = 60
MAX_ENTRIES: Final = 2_000
_NOISE: Final = frozenset(("node_modules", "__pycache__", "venv", "env", "build", "dist", "target"))
_WITHOUT_EXTENSION: Final = frozenset(("Makefile", "Dockerfile"))
_WORD: Final = re.compile(r"(?:[~./]*[\w-][\w./-]*)")


class ProjectNames(Struct, frozen=True):
    """File names relative to the folder; files are not opened."""

    folder: Path
    files: tuple[str, ...]

    def exists(self, name: str) -> bool:
        try:
            return (self.folder / Path(name).expanduser()).exists()
        except (OSError, ValueError, RuntimeError):
            return False

    def is_folder(self, name: str) -> bool:
        try:
            return (self.folder / name).is_dir()
        except (OSError, ValueError):
            return False

    def beginning(self, name: str) -> str:
        """First characters of a text file; empty if it cannot be read."""
        try:
            with (self.folder / name).open(encoding="utf-8") as file:
                return file.read(MAX_BEGINNING)
        except (OSError, ValueError):
            return ""

    @property
    def programs(self) -> tuple[str, ...]:
        return tuple(name for name in self.files if LANGUAGES.get(Path(name).suffix.lower(), "text") not in PROSE)

    @property
    def readme(self) -> str:
        return next((name for name in self.files if name.lower().startswith("readme")), "")


def list_names(folder: Path) -> ProjectNames:
    """Files in the folder and its subfolders, one level deep, without hidden and generated ones."""
    files: list[str] = []
    for name, is_folder in _entries(folder):
        if not is_folder:
            files.append(name)
        elif name not in _NOISE:
            files += [f"{name}/{inner}" for inner, deeper in _entries(folder / name) if not deeper]
    files.sort(key=lambda name: (name.count("/"), name))
    return ProjectNames(folder, tuple(files[:MAX_NAMES]))


def _entries(folder: Path) -> list[tuple[str, bool]]:
    found: list[tuple[str, bool]] = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if not entry.name.startswith(".") and (entry.is_file() or entry.is_dir(follow_symlinks=False)):
                    found.append((entry.name, not entry.is_file()))
                if len(found) >= MAX_ENTRIES:
                    break
    except OSError:
        return []  # unreadable directories have no names
    return found


def named_files(request: str, names: ProjectNames) -> list[str]:
    """File names in the request: existing files, and names that look like new files."""
    found: list[str] = []
    for word in _WORD.findall(request):
        name = word.rstrip(".,;:!?/")
        if name and name not in found and (_is_file(name, names) or _looks_like_file(name)):
            found.append(name)
    return found


def _is_file(name: str, names: ProjectNames) -> bool:
    return ("." in name or name in names.files) and names.exists(name) and not names.is_folder(name)


def _looks_like_file(name: str) -> bool:
    """`Node.js` is a product, `node.js` may be a file."""
    path = Path(name)
    if path.name in _WITHOUT_EXTENSION:
        return True
    return bool(path.stem.strip(".")) and path.suffix in LANGUAGES and not (path.suffix == ".js" and name[0].isupper())


def meant_file(request: str, names: ProjectNames) -> str:
    """File whose stem is a word of the request: "explain the calculator"."""
    words = set(re.findall(r"\w+", request.lower()))
    meant = [name for name in names.files if Path(name).stem.lower() in words]
    return meant[0] if len(meant) == 1 else ""


def free_name(name: str, names: ProjectNames) -> str:
    """`name`, or the first unused of `name_2`, `name_3`, …."""
    path = Path(name)
    tries = (name, *(str(path.with_name(f"{path.stem}_{number}{path.suffix}")) for number in range(2, 100)))
    return next((each for each in tries if not names.exists(each)), f"{path.stem}_{os.urandom(4).hex()}{path.suffix}")
