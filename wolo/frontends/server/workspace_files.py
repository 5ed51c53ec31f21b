"""Lets a client read and search a workspace as far as the model may without approval; secrets are placeholders."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

from msgspec import Struct

from wolo.conversation.permission_check import PermissionCheck, open_permission_check
from wolo.conversation.resources.secrets import make_secrets
from wolo.errors import ToolError
from wolo.frontends.file_names import FileNames
from wolo.frontends.server.http_errors import HttpError
from wolo.frontends.server.response_types import FileAnswer, FindAnswer, FolderEntry
from wolo.guard.secrets.redactor import Secrets
from wolo.messages.unicode import whole
from wolo.operating_system import os
from wolo.places import find_places
from wolo.tools.search.grep import Grep, GrepArgs
from wolo.tools.tool import ShellState, ToolServices
from wolo.tools.tool_values import Listing
from wolo.workspace.files.encodings import find_encoding
from wolo.workspace.files.file_reading import FileLedger, PageLimits, read_page
from wolo.workspace.files.safe_open import open_regular
from wolo.workspace.root import find_site

MOST_ENTRIES = 2_000
MOST_WORDS = 1_000
PAGE = PageLimits(max_lines=5_000, width=20_000, size_bytes=1_000_000)


class WorkspaceRights(Struct, frozen=True):
    check: PermissionCheck
    secrets: Secrets
    names: FileNames

    @classmethod
    def open(cls, cwd: Path, flags: Mapping[str, Any], names: FileNames) -> WorkspaceRights:
        """As a conversation there would have them. Blocks. Raises ConfigError."""
        check = open_permission_check(dict(flags), find_site(cwd))
        secrets = make_secrets(find_places(), check.config.settings, (check.workspace.root, *check.workspace.extra))
        return cls(check, secrets, names)

    def _resolve(self, path: str) -> Path:
        """Raises HttpError 403 for what the model could not read without approval, 422 for what is no path."""
        try:
            resolved = self.check.workspace.resolve(path)
            verdict = self.check.verdict(f"read:{path}")
        except ToolError as error:
            raise HttpError(422, error.message) from error
        if not resolved.inside:
            raise HttpError(403, f"{path!r} is outside of the workspace.", "Give a path below the folder of the session.")
        if verdict.decision != "allow":
            raise HttpError(403, f"{path!r} may not be read: {verdict.reason}")
        return resolved.path

    def read(self, path: str, offset: int) -> FileAnswer:
        """Blocks. Raises HttpError."""
        real = self._resolve(path)
        name = self.check.workspace.relative(real)
        try:
            return self._list(real, name) if real.is_dir() else self._read_file(real, name, offset)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise HttpError(404, f"There is no file {path!r}.", "GET /v1/find?q= finds names.") from error
        except OSError as error:
            raise HttpError(403, f"{path!r} cannot be read: {error.strerror}.") from error
        except ToolError as error:
            raise HttpError(422, error.message) from error

    def _list(self, folder: Path, name: str) -> FileAnswer:
        entries: list[FolderEntry] = []
        with os.scandir(folder) as found:
            for each in sorted(found, key=lambda entry: entry.name):
                if len(entries) == MOST_ENTRIES:
                    return FileAnswer(path=name, type="folder", entries=entries, is_cut=True)
                kind: Literal["file", "folder", "other"] = "other"
                if each.is_dir(follow_symlinks=False):
                    kind = "folder"
                elif each.is_file(follow_symlinks=False):
                    kind = "file"
                size = each.stat(follow_symlinks=False).st_size if kind == "file" else 0
                entries.append(FolderEntry(os.fsencode(each.name).decode(errors="replace"), kind, size))
        return FileAnswer(path=name, type="folder", entries=entries)

    def _read_file(self, path: Path, name: str, offset: int) -> FileAnswer:
        handle = open_regular(path)
        try:
            size = os.fstat(handle).st_size
            if find_encoding(os.pread(handle, 64 * 1024, 0)) is None:
                return FileAnswer(path=name, type="file", size_bytes=size, is_binary=True)
            page = read_page(handle, offset, PAGE)
        finally:
            os.close(handle)
        last = page.lines[-1].number if page.lines else offset - 1
        text = "".join(f"{line.text}\n" for line in page.lines)
        self.secrets.rescan(paths=[str(path)])
        return FileAnswer(
            path=name,
            type="file",
            text=self.secrets.hide(whole(text)),
            size_bytes=size,
            total_lines=page.total,
            is_cut=page.total is None or last < page.total or any(line.full_bytes for line in page.lines),
        )

    def find_names(self, letters: str) -> FindAnswer:
        """Files and, with a trailing slash, folders that the model may read; the best first. Blocks."""
        folder = self.check.workspace.start
        readable = [name for name in self.names.index(folder).best(letters) if self.check.judge.readable(folder / name)]
        return FindAnswer(matches=[os.fsencode(name).decode(errors="replace") for name in readable])

    async def find_text(self, text: str) -> FindAnswer:
        """Lines as `path:12:text`. Raises HttpError."""
        if not text.strip() or len(text) > MOST_WORDS:
            raise HttpError(422, "Nothing to find.", f"Give 1 to {MOST_WORDS:,} characters in q.")
        await self.secrets.scan_workspace()
        shell = ShellState(self.check.workspace.start)
        folder = await asyncio.to_thread(TemporaryDirectory)
        try:
            services = ToolServices(
                workspace=self.check.workspace,
                ledger=FileLedger(Path(folder.name)),
                save_output=lambda name, data: Path(folder.name),
                shell=shell,
                secrets=self.secrets,
                is_readable=self.check.judge.readable,
                all_readable=self.check.judge.all_readable,
            )
            arguments = GrepArgs(pattern=re.escape(text), ignore_case=text.islower(), path=".")
            view = (await Grep().run(arguments, services.for_call("find", lambda text: None))).view
        except ToolError as error:
            raise HttpError(422, error.message) from error
        finally:
            shell.close()
            await asyncio.to_thread(folder.cleanup)
        assert isinstance(view, Listing)
        return FindAnswer(matches=[self.secrets.hide(line) for line in view.lines], incomplete=view.incomplete)
