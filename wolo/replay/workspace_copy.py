"""Copies a workspace and reverts a session's changes in the copy.

Uses what the session tells: created files are removed, edits are reversed where the new text is unique, replaced content is known
if it was read. Unknown content stays as it is and is reported.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from wolo.agent.hook_calls import changed_inputs
from wolo.errors import ToolError
from wolo.messages.comparison import without_changing_values
from wolo.messages.line_numbers import remove_numbers, split_output
from wolo.messages.parts import ToolPart
from wolo.replay.recording import RecordedTurns
from wolo.sessions import blobs
from wolo.tools.editing.apply_patch import ApplyPatchArgs
from wolo.tools.editing.edit import EditArgs
from wolo.tools.editing.matching import Replacement, line_number
from wolo.tools.editing.patch_parser import AddFile, DeleteFile, UpdateFile, read_patch
from wolo.tools.editing.write import WriteArgs
from wolo.tools.read import ReadArgs
from wolo.tools.shell import FILES
from wolo.tools.toolbox import BUILTIN_WITH_COMPLETION, Toolbox

Content = bytes | None | Literal["unknown"]
"""None: no such file."""

_WHOLE = re.compile(r"\[(\d+) lines?\.\]")
_LINES = re.compile(r" at lines? ([\d, ]+)")
_MAX_NAMED = 5
KINDS: tuple[Literal["made", "changed", "gone"], ...] = ("made", "changed", "gone")


_Done = ReadArgs | WriteArgs | EditArgs | Literal["made", "changed", "gone"]
"""The last three are effects of commands or patches."""


class _RecordedCall(Struct, frozen=True):
    path: Path
    args: _Done
    part: ToolPart


def rewind(tape: RecordedTurns, stage: ReplayWorkspace) -> tuple[str, ...]:
    """Returns sentences about changes that could not be reverted."""
    calls = list(_calls(tape, stage))
    unknown = []
    for path in dict.fromkeys(call.path for call in calls if not isinstance(call.args, ReadArgs)):
        before = _before([call for call in calls if call.path == path], _content(path))
        if before == "unknown":
            unknown.append(os.path.relpath(path, stage.root) if path.is_relative_to(stage.root) else stage.there(str(path)))
        else:
            _restore(path, before, stage.roots)
    if not unknown:
        return ()
    named = ", ".join(unknown[:_MAX_NAMED])
    more = f" and {len(unknown) - _MAX_NAMED} more" if len(unknown) > _MAX_NAMED else ""
    return (f"Used as they are now, because their content before the session is unknown: {named}{more}.",)


def files_used(tape: RecordedTurns, stage: ReplayWorkspace) -> Iterator[Path]:
    """Files that tools read or changed, as paths of the copy; may repeat."""
    return (call.path for call in _calls(tape, stage))


def _calls(tape: RecordedTurns, stage: ReplayWorkspace) -> Iterator[_RecordedCall]:
    """Calls that read or changed workspace files, in order."""
    toolbox = Toolbox(BUILTIN_WITH_COMPLETION)
    cwd = stage.cwd_of({})
    for turn in tape.turns:
        cwd = stage.cwd_of(turn.opened) if turn.opened else cwd
        for part in (part for message in turn.new for part in message.calls):
            files = part.metadata.get(FILES)
            for kind in KINDS:
                names = files.get(kind) if isinstance(files, dict) else None
                for name in names if isinstance(names, list) else ():
                    if path := _place(Path(stage.here(str(name))), stage):
                        yield _RecordedCall(path, kind, part)
            args = _arguments(part, toolbox) if part.outcome == "ok" else None
            for name, done in _files_of(args, part):
                if path := _place(cwd / stage.here(name), stage):
                    yield _RecordedCall(path, done, part)


def _files_of(args: Struct | None, part: ToolPart) -> Iterator[tuple[str, _Done]]:
    """The files of a call, and its effect on each."""
    if isinstance(args, ReadArgs | WriteArgs | EditArgs):
        yield args.path, args
    elif isinstance(args, ApplyPatchArgs):
        for section in read_patch(args.patch):
            match section:
                case AddFile(path=path):
                    yield path, "changed" if f"Updated {path} (" in part.output else "made"
                case DeleteFile(path=path):
                    yield path, "gone"
                case UpdateFile(path=path, move_to=move_to, hunks=hunks):
                    if move_to:
                        yield path, "gone"
                        yield move_to, "made"
                    else:
                        yield path, EditArgs(path, edits=tuple(Replacement(hunk.old, hunk.new) for hunk in hunks))


def _arguments(part: ToolPart, toolbox: Toolbox) -> Struct | None:
    try:
        arguments = toolbox.decode(part.tool, next(changed_inputs(part), dict(part.input)))[1]
    except ToolError:
        return None
    return arguments if isinstance(arguments, Struct) else None


def _place(named: Path, stage: ReplayWorkspace) -> Path | None:
    """Path in the copy; None: outside."""
    try:
        path = Path(os.path.realpath(named))
    except (OSError, ValueError):
        return None
    return path if any(path.is_relative_to(root) for root in stage.roots) and path not in stage.roots else None


def _before(calls: Sequence[_RecordedCall], now: Content) -> Content:
    """Derives the content before the first of these calls from the current content."""
    content = now
    for at in range(len(calls) - 1, -1, -1):
        call = calls[at]
        if isinstance(call.args, ReadArgs):
            continue
        content = _without(call, content, calls[:at])
    return content


def _without(call: _RecordedCall, after: Content, earlier: Sequence[_RecordedCall]) -> Content:
    """A file that changed since the session stays as it is, unless the session created it."""
    if call.args == "made":
        return None
    if call.args in ("changed", "gone"):
        return _known_content(earlier)
    if isinstance(call.args, WriteArgs):
        if call.part.output.startswith("Created"):
            return None
        if not call.part.output.startswith("Replaced"):
            return after
        if not isinstance(after, bytes):
            return "unknown"
        plain = after.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n")
        is_unedited = plain == call.args.content.replace("\r\n", "\n").encode(errors="replace")
        return _known_content(earlier) if is_unedited else "unknown"
    if not isinstance(after, bytes) or not isinstance(call.args, EditArgs):
        return "unknown"
    edits = _edits(call.args)
    try:
        text = after.decode()
    except UnicodeDecodeError:
        return "unknown"
    found = _LINES.search(call.part.output)
    lines = [int(line) for line in found[1].split(",") if line.strip()] if found else []
    for edit in reversed(edits):
        before = _put_back(edit, text, lines if len(edits) == 1 else [])
        if before is None:
            return "unknown"
        text = before
    return text.encode()


def _put_back(edit: Replacement, text: str, lines: list[int]) -> str | None:
    """The text before the edit, if the same edit leads back to this text."""
    if edit.replace_all and len(lines) != 1:
        before = text.replace(edit.new, edit.old) if edit.new else None
        return before if before is not None and before.replace(edit.old, edit.new) == text else None
    for place in _places(edit.new, text, lines):
        before = text[:place] + edit.old + text[place + len(edit.new) :]
        if before.count(edit.old) == 1 and before.replace(edit.old, edit.new) == text:
            return before
    return None


def _places(new: str, text: str, lines: list[int]) -> Iterator[int]:
    """Positions of the new text: the given line, or the only one."""
    if not new:
        starts: Iterable[int] = (0, *(found.end() for found in re.finditer("\n", text)))
    else:
        starts = (found.start() for found in re.finditer(f"(?={re.escape(new)})", text))
    every = list(starts)
    if lines:
        yield from (place for place in every if line_number(text, place) == lines[0])
    elif len(every) == 1:
        yield every[0]


def _known_content(calls: Sequence[_RecordedCall]) -> Content:
    """The content after these calls, as far as they show it."""
    text: str | None = None
    for call in calls:
        match call.args:
            case WriteArgs(content=content):
                text = content
            case ReadArgs():
                shown = _read(call.part.output)
                text = text if shown is None else shown
            case EditArgs() as args if text is not None:
                text = _edit(args, text)
            case "made" | "changed" | "gone":
                text = None
    return "unknown" if text is None else text.encode("utf-8", "surrogatepass")


def _edit(args: EditArgs, text: str) -> str | None:
    for edit in _edits(args):
        if not edit.old or edit.old not in text:
            return None
        text = text.replace(edit.old, edit.new, -1 if edit.replace_all else 1)
    return text


def _edits(args: EditArgs) -> tuple[Replacement, ...]:
    return args.edits or (Replacement(args.old or "", args.new or "", args.replace_all),)


def _read(output: str) -> str | None:
    """The whole file as it was read; None: only a part was."""
    if output == "[The file is empty.]":
        return ""
    page, note = split_output(output)
    whole, (_, lines) = _WHOLE.match(note), remove_numbers(page) or (0, [])
    return "".join(f"{line}\n" for line in lines) if whole and len(lines) == int(whole[1]) else None


def _content(path: Path) -> Content:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError:
        return "unknown"


def _restore(path: Path, content: bytes | None, roots: Sequence[Path]) -> None:
    if content is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return
    path.unlink(missing_ok=True)
    for folder in path.parents:
        if folder in roots or not folder.is_dir() or any(folder.iterdir()):
            break
        folder.rmdir()


_RECORDED_OUTPUTS = re.compile(r"[^\s\"'`]*/blobs(?=/[0-9a-f]{32})")


class ReplayWorkspace:
    """The copy, with all files that a replay writes in `folder`; the caller deletes it."""

    def __init__(
        self,
        folder: Path,
        original: Path,
        original_cwd: Path,
        *,
        settings_from: Path,
        blobs_dir: Path,
        add_dirs: Sequence[Path] = (),
    ) -> None:
        """Copies `original` and `add_dirs`; `settings_from` is the directory whose settings apply."""
        self.folder = Path(os.path.realpath(folder))
        self.root = self.folder / "workspace" / (original.name or "root")
        self.added = {path: self.folder / f"added-{number}" / path.name for number, path in enumerate(add_dirs, 1)}
        """Copies of added directories, by original."""
        self.scratch = self.folder / "scratch"
        self.outputs = (self.scratch / "outputs", blobs_dir)
        """Folders of large outputs, of the replay and of the session."""
        self.settings_from = settings_from
        self.notices: tuple[str, ...] = ()
        self.original, self._original_cwd, self._blobs_dir = original, original_cwd, blobs_dir
        self.temporary = self.scratch / "tmp"
        """Temporary folder of commands."""
        places = ((original, self.root), *self.added.items())
        self._there = [(_path(str(copy)), str(path)) for path, copy in places]
        self._temporary_then = os.environ.get("TMPDIR", "/tmp")
        self._here = [(_path(spelling), str(copy)) for path, copy in places for spelling in _spellings(path)]

    @property
    def roots(self) -> tuple[Path, ...]:
        return (self.root, *self.added.values())

    def here(self, text: str) -> str:
        """Replaces original paths by those of the copy."""
        for spelling, copy in self._here:
            text = spelling.sub(copy.replace("\\", r"\\"), text)
        return _RECORDED_OUTPUTS.sub(lambda found: str(self._blobs_dir), text)

    def there(self, text: str) -> str:
        """Replaces paths of the copy by the original ones."""
        text = text.replace(str(self.temporary), self._temporary_then)
        for copy, path in self._there:
            text = copy.sub(path.replace("\\", r"\\"), text)
        return text

    def without_changing_values(self, text: str) -> str:
        """Normalizes text for comparison."""
        return without_changing_values(self.there(text))

    def cwd_of(self, opened: Mapping[str, Any]) -> Path:
        """Working directory of a recorded conversation, in the copy."""
        for cwd in (Path(str(opened.get("cwd") or self._original_cwd)), self._original_cwd):
            if cwd.is_relative_to(self.original):
                place = self.root / cwd.relative_to(self.original)
                return place if place.is_dir() else self.root
        return self.root

    def save_output(self, name: str, data: bytes) -> Path:
        """Stores a large output under a name derived from its content."""
        folder = self.outputs[0]
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / blobs.name_of(data, blobs.suffix(name))
        path.write_bytes(data)
        return path


def _spellings(original: Path) -> list[str]:
    """Longest first: real path, with links, relative to home. Empty for a root that is too general."""
    if not original.is_absolute() or original == Path(original.anchor):
        return []
    home = os.environ.get("HOME", "")
    found = {str(original), os.path.realpath(original)}
    for each in tuple(found):
        if home and each.startswith(f"{home}/"):
            found |= {f"{name}{each[len(home) :]}" for name in ("~", "$HOME", "${HOME}")}
    return sorted(found, key=len, reverse=True)


def _path(spelled: str) -> re.Pattern[str]:
    """Matches the path and everything below, not longer names."""
    return re.compile(rf"(?<![\w./-]){re.escape(spelled)}(?!\.?[\w-])")
