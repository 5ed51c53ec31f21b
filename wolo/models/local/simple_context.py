"""Context of a simple-mode step: the turn so far, the files it may mean, and the response to ask for."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from wolo.errors import ProviderError
from wolo.messages.deltas import TextDelta
from wolo.messages.message import Message
from wolo.messages.parts import AudioPart, FilePart, ImagePart, TextPart, ToolPart
from wolo.models.local.checks.asked_parts import asked_folder, asked_parts, clauses_of
from wolo.models.local.checks.requested_work import is_about_files, wants_answer
from wolo.models.local.checks.senses import means
from wolo.models.local.local_chat import Completion, Sampling, Turn
from wolo.models.local.local_response import LocalResponse
from wolo.models.local.simple_texts import LANGUAGES, MAX_QUESTION_CHARS, MAX_REQUEST_CHARS, PROSE, shorten
from wolo.models.tokens import estimate_text

Plan = Literal["", "change", "project", "repair", "check", "try", "find", "move", "restore"]
"""Reason for a call: to rewrite a file, to describe the project, to repair a file after a failed command, to check a file that
was written, to see how a command fails, to find a name, to move files, to undo a
change. Empty: to answer."""
PLANS: Final[tuple[Plan, ...]] = ("change", "project", "repair", "check", "try", "find", "move", "restore")

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
    prompt = messages[begins] if begins >= 0 else None
    since = [message for message in messages[begins + 1 :] if message.role == "assistant"]
    texts = [part.text for part in prompt.of(TextPart) if not part.is_notice] if prompt else []
    noted = next((message.metadata.get(PLAN_KEY) for message in reversed(since) if message.calls), "")
    return SimpleTurn(
        request="\n\n".join(texts).strip(),
        question=(texts[0] if texts else "").partition(ATTACHED)[0].strip(),
        has_media=prompt is not None and any(isinstance(part, ImagePart | AudioPart | FilePart) for part in prompt.parts),
        calls=tuple(part for message in since for part in message.calls if part.status in ("completed", "failed")),
        plan=next((plan for plan in PLANS if plan == noted), ""),
        recent_path=_recent_path(messages),
        earlier=_earlier(messages[: max(begins, 0)]),
    )


def _recent_path(messages: Sequence[Message]) -> str:
    for call in (call for message in reversed(messages) for call in reversed(message.calls)):
        path = call.input.get("path")
        if call.tool in ("write", "edit") and call.status == "completed" and isinstance(path, str):
            return path
    return ""


def _earlier(messages: Sequence[Message]) -> tuple[Turn, ...]:
    """Tiny models can use only one previous exchange."""
    begins = next((at for at in range(len(messages) - 1, -1, -1) if messages[at].is_prompt), len(messages))
    answer = "".join(message.text for message in messages[begins + 1 :] if message.role == "assistant")
    if not answer:
        return ()
    return (("user", messages[begins].text[:MAX_EARLIER_CHARS]), ("assistant", answer[:MAX_EARLIER_CHARS]))


MAX_BEGINNING: Final = 8_000
MAX_NAMES: Final = 60
MAX_WHOLE: Final = 2_000_000
"""Bytes."""
MAX_ENTRIES: Final = 2_000
NOISE: Final = frozenset(("node_modules", "__pycache__", "venv", "env", "build", "dist", "target"))
_WITHOUT_EXTENSION: Final = frozenset(("Makefile", "Dockerfile"))
MOST_WITH_WORD: Final = 3
"""Files that a question for one of them may mean."""
_TESTS: Final = re.compile(r"\btests?\b|prueba|тест|测试|テスト|اختبار", re.IGNORECASE)
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

    def whole(self, name: str) -> str:
        """All of a text file; empty if it cannot be read or is very large."""
        try:
            path = self.folder / name
            return path.read_text("utf-8-sig") if path.stat().st_size < MAX_WHOLE else ""
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
        elif name not in NOISE:
            files += [f"{name}/{inner}" for inner, deeper in _entries(folder / name) if not deeper]
    files.sort(key=lambda name: (name.count("/"), name))
    return ProjectNames(folder, tuple(files[:MAX_NAMES]))


def _entries(folder: Path) -> list[tuple[str, bool]]:
    """Names with a mark for folders; none of a directory that cannot be read."""
    names: list[tuple[str, bool]] = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if not entry.name.startswith(".") and (entry.is_file() or entry.is_dir(follow_symlinks=False)):
                    names.append((entry.name, not entry.is_file()))
                if len(names) >= MAX_ENTRIES:
                    break
    except OSError:
        return []
    return names


def named_files(request: str, names: ProjectNames) -> list[str]:
    """File names in the request: existing files, and names that look like new files."""
    files: list[str] = []
    for word in _WORD.findall(request):
        name = word.rstrip(".,;:!?/")
        if not name or name in files:
            continue
        if name.isupper() and len(titled := [each for each in names.files if Path(each).stem == name]) == 1:
            name = titled[0]  # "the README"
        path = Path(name)
        is_file = ("." in name or name in names.files) and names.exists(name) and not names.is_folder(name)
        has_extension = bool(path.stem.strip(".")) and path.suffix in LANGUAGES
        is_product = path.suffix == ".js" and name[0].isupper()  # `Node.js` is a product, `node.js` may be a file
        if is_file or path.name in _WITHOUT_EXTENSION or (has_extension and not is_product):
            files.append(name)
    lists = [name for name in files if re.fullmatch(r"\.\w+ignore", Path(name).name)]
    files = lists if lists and not any(Path(name).suffix in LANGUAGES for name in files) else files  # other names are lines of it
    for clause in clauses_of(request):
        if folder := asked_folder(clause):
            inside = {name: f"{folder}/{name}" for name in files if "/" not in name and name in clause and not names.exists(name)}
            files = [inside.get(name, name) for name in files if name != folder]
    return list(dict.fromkeys(files))


def defining_file(request: str, names: ProjectNames) -> str:
    """The only file that defines a name of code in the request, or the test of it where the request is for one."""
    words = set(re.findall(r"(?<![\w./-])[A-Za-z]\w*(?:_|[a-z][A-Z])\w*", request)) | {*asked_parts(request).identifiers}
    defined = re.compile(rf"\b(?:def|class|function|func)\s+(?:{'|'.join(map(re.escape, words)) or '(?!)'})\b")
    found = [name for name in names.files if defined.search(names.whole(name))]
    if len(found) != 1 or not _TESTS.search(request):
        return found[0] if len(found) == 1 else ""
    return next(
        (name for name in names.files if Path(name).stem in (f"test_{Path(found[0]).stem}", f"{Path(found[0]).stem}_test")), ""
    )


def meant_file(request: str, names: ProjectNames) -> str:
    """File whose stem is a word of the request: "explain the calculator"."""
    words = set(re.findall(r"\w+", request.lower()))
    meant = [name for name in names.files if Path(name).stem.lower() in words]
    return meant[0] if len(meant) == 1 else ""


def code_names(request: str) -> list[str]:
    """Words that are written as names in code: `load_all`, `InvoiceMailer`, `TODO`, also with an "s" at their end."""
    return re.findall(r"(?<![\w./-])(?:[A-Za-z]\w*_\w+|[A-Z][a-z]+[A-Z]\w*|[A-Z]{3,})(?=s?\b(?!\.\w))", request)


def searched_name(request: str, names: ProjectNames) -> str:
    """The only name of code that a question without a file is about, to be found in all files; empty if there is none."""
    if not wants_answer(request) or any(map(names.exists, named_files(request, names))) or not names.files:
        return ""
    found = list(dict.fromkeys((*asked_parts(request).quoted, *code_names(request))))
    return found[0] if len(found) == 1 else _rare_word(request, names) if means(request, "where") and not found else ""


def _rare_word(request: str, names: ProjectNames) -> str:
    """The word of the request that the fewest files have, if these are few."""
    groups = {*(part.lower() for name in names.files for part in Path(name).parts[:-1])}
    if not (is_about_files(request) or groups & {*re.findall(r"\w+", request.lower())}):
        return ""
    texts = [names.whole(name).lower() for name in names.files]
    words = {word.lower(): sum(word.lower() in text for text in texts) for word in re.findall(r"[^\W\d_]{4,}", request)}
    few = [word for word, count in words.items() if 0 < count <= min(MOST_WITH_WORD, len(texts) - 1)]
    return min(few, key=lambda word: (words[word], -len(word)), default="")


def free_name(name: str, names: ProjectNames) -> str:
    """`name`, or the first unused of `name_2`, `name_3`, …."""
    path = Path(name)
    tries = (name, *(str(path.with_name(f"{path.stem}_{number}{path.suffix}")) for number in range(2, 100)))
    return next((each for each in tries if not names.exists(each)), f"{path.stem}_{os.urandom(4).hex()}{path.suffix}")


ANSWER_TOKENS: Final = 300
PROMPT_TOKENS: Final = 200
"""Estimated tokens of instructions and examples."""
FILE_TOKENS: Final = 1024
WHOLE_ANSWERS: Final = 3
"""How often a file is written as a whole in one turn; after that places are repaired."""
LATE_CHARS: Final = 1_500
"""Length of the answers about a file after which no other is asked for."""
MOST_CHARS: Final = 4_000
"""Length after which an answer is cut that is not the first: a minute of a model of 0.5B on two cores."""
CHARS_PER_TOKEN: Final = 4
OnText = Callable[[str], Awaitable[None]]


class Effort:
    """What the turn at hand has taken so far, by path; not known any more after a resume."""

    def __init__(self, prompt_id: str = "") -> None:
        self.prompt_id = prompt_id
        self.answers = Counter[str]()
        """Whole files that the model wrote."""
        self.characters = Counter[str]()


class SimpleStep:
    """One response: several questions to the model, one message."""

    def __init__(self, response: LocalResponse, names: ProjectNames, effort: Effort) -> None:
        self._effort = effort
        self.response = response
        self.names = names
        self.turn = read_turn(response.question.messages)
        self.tools = frozenset(tool.name for tool in response.question.tools)
        self.max_tokens = response.question.max_tokens or FILE_TOKENS
        self.request = shorten(self.turn.request, MAX_REQUEST_CHARS)
        self.question = shorten(self.turn.question, MAX_QUESTION_CHARS)

    def is_late(self, path: str) -> bool:
        """Too late for another try: the turn would last longer than anybody waits."""
        return self._effort.characters[path] > LATE_CHARS

    def may_write(self, path: str) -> bool:
        """Tells whether the file may be written as a whole once more."""
        return self._effort.answers[path] < WHOLE_ANSWERS

    async def write(
        self, path: str, turns: Sequence[Turn], sampling: Sampling, on_text: OnText | None = None, *, whole: bool = True
    ) -> Completion:
        """Have the model write a file, or a place of it."""
        effort = self._effort
        if effort.characters[path]:
            left = (MOST_CHARS - effort.characters[path]) // CHARS_PER_TOKEN
            sampling = replace(sampling, max_tokens=max(1, min(sampling.max_tokens, left)))

        async def count(text: str) -> None:
            effort.characters[path] += len(text)
            if on_text:
                await on_text(text)

        effort.answers[path] += whole
        try:
            return await self.response.complete(turns, sampling, count)
        except ProviderError:  # the answer was lost, and may be asked for again
            effort.answers[path] -= whole
            raise

    async def announce_attempt(self, attempt: int) -> None:
        await self.response.listener.on_request(attempt, PROMPT_TOKENS + estimate_text(self.request))

    async def call(self, tool: str, input: dict[str, Any], *, plan: Plan = "") -> Message:
        return await self.response.call(tool, input, {PLAN_KEY: plan} if plan else None)

    async def answer(self, turns: Sequence[Turn], source: Callable[[str], str] | None = None) -> Message:
        """Stream a free-text answer. `source` makes the line that it rests on from the answer."""

        async def show(text: str) -> None:
            await self.response.listener.on_deltas((TextDelta(text=text),))

        sampling = Sampling(max_tokens=min(ANSWER_TOKENS, self.max_tokens), shun_repeats=True)
        completion = await self.response.complete(turns, sampling, show)
        if not completion.text.strip():
            return await self.response.reply("I have no answer to that. Rephrase it, or use a larger model with --model.")
        if completion.cut_off:
            await show(" …")
        text = completion.text + (" …" if completion.cut_off else "")
        if source and (line := source(text)):
            await show(f"\n\n{line}")
            text += f"\n\n{line}"
        return self.response.message(TextPart(text=text), "stop")
