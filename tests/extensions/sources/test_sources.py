"""Sources as people type them, and what is fetched from folders, repositories and archives."""

from __future__ import annotations

import io
import os
import stat
import tarfile
import tempfile
import threading
import zipfile
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.repositories import commit, files, git, repository
from wolo.errors import ExtensionError, UsageError, WoloError
from wolo.extensions.sources import http_download, tree_copy
from wolo.extensions.sources.fetching import FetchedSource, fetch
from wolo.extensions.sources.source import Source, read_source
from wolo.extensions.sources.tree_copy import files_in


def fetched(text: str) -> FetchedSource:
    scratch = Path(tempfile.mkdtemp(dir=Path.cwd()))
    return fetch(read_source(text, Path.cwd()), scratch)


def names(found: FetchedSource) -> list[str]:
    return [str(path) for path in files_in(found.folder)]


# What people type

GITHUB = "https://github.com/acme/tools.git"


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("acme/tools", Source("git", GITHUB)),
        ("github:acme/tools.git", Source("git", GITHUB)),
        ("acme/tools#v1.2", Source("git", GITHUB, "v1.2")),
        ("acme/tools/skills/pdf", Source("git", GITHUB, "", "skills/pdf")),
        ("acme/tools#main:skills/pdf", Source("git", GITHUB, "main", "skills/pdf")),
        ("acme/tools#:skills/pdf/", Source("git", GITHUB, "", "skills/pdf")),
        ("https://github.com/acme/tools", Source("git", "https://github.com/acme/tools")),
        ("https://github.com/acme/tools/tree/main/skills/pdf", Source("git", GITHUB, "main/skills/pdf")),
        ("https://github.com/acme/tools/blob/main/pdf/SKILL.md", Source("git", GITHUB, "main/pdf")),
        ("git@host.example:acme/tools.git#v1", Source("git", "git@host.example:acme/tools.git", "v1")),
        ("ssh://git@host.example/acme/tools", Source("git", "ssh://git@host.example/acme/tools")),
        ("https://host.example/a.zip#skills/pdf", Source("archive", "https://host.example/a.zip", "", "skills/pdf")),
        ("npm:tools", Source("npm", "tools")),
        ("npm:@acme/tools@1.2.0-rc.1", Source("npm", "@acme/tools", "1.2.0-rc.1")),
        ("npm:https://npm.host.example/x/@acme/tools@next", Source("npm", "https://npm.host.example/x/@acme/tools", "next")),
        ("https://host.example/a.tar.gz", Source("archive", "https://host.example/a.tar.gz")),
    ],
)
def test_a_source_is_read_as_it_is_typed(text: str, source: Source) -> None:
    assert read_source(text, Path.cwd()) == source


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("nothing", "nothing at nothing"),
        ("./acme/tools", "nothing at ./acme/tools"),
        ("http://host.example/acme/tools", "is not encrypted"),
        ("git://host.example/acme", "only https, ssh and file"),
        ("ext::sh -c id", "nothing at"),
        ("acme/tools#--upload-pack=id", "no name of a branch"),
        ("acme/tools#main:../..", "leads out"),
        ("npm:@acme/tools@^1.2", "names no package"),
        ("npm:../tools", "names no package"),
        ("note.txt", "neither a folder nor an archive"),
        (".#v1", "no git repository"),
    ],
)
def test_impossible_source_is_an_error_with_hint(text: str, said: str) -> None:
    Path("note.txt").touch()
    with pytest.raises(UsageError, match=said):
        read_source(text, Path.cwd())


# Folders and repositories


def test_folder_copy_keeps_executables_without_git() -> None:
    files(Path("src"), {"a/b.md": "x", "run.sh": "#!/bin/sh\n", "__pycache__/c.pyc": "x"})
    found = fetched("./src")
    assert names(found) == ["a/b.md", "run.sh"]
    assert os.access(found.folder / "run.sh", os.X_OK)
    assert found.pin.startswith("sha256:")


def test_repository_is_taken_at_branch_tag_or_commit() -> None:
    repo = repository(Path("repo"), {"a.md": "one"})
    first = git(repo, "rev-parse", "HEAD")
    git(repo, "tag", "v1")
    git(repo, "branch", "feature/x")
    last = commit(repo, {"b/c.md": "two"})
    files(repo, {"uncommitted.md": "three"})
    pins: dict[str, tuple[str, list[str]]] = {}
    for end in ("", "#v1", f"#{first}", f"#{first[:10]}", "#feature/x", "#main:b", "#main/b"):
        found = fetched(f"./repo{end}")
        pins[end] = (found.pin, names(found))
    at_first, at_last = (first, ["a.md"]), (last, ["a.md", "b/c.md"])
    assert pins == {
        **{"": at_last, "#v1": at_first, f"#{first}": at_first, f"#{first[:10]}": at_first, "#feature/x": at_first},
        **{"#main:b": (last, ["c.md"]), "#main/b": (last, ["c.md"])},
    }


@pytest.mark.parametrize(("end", "said"), [("#gone", "git fetch: .*gone"), ("#main:gone", "no folder gone")])
def test_missing_repository_content_is_an_error(end: str, said: str) -> None:
    repository(Path("repo"), {"a.md": "one"})
    with pytest.raises(WoloError, match=said):
        fetched(f"./repo{end}")


def test_nothing_of_a_repository_is_run() -> None:
    repo = repository(Path("repo"), {"a.md": "x", ".gitattributes": "* filter=evil"})
    for name in ("post-checkout", "post-upload-pack", "fsmonitor-watchman"):
        files(repo / ".git/hooks", {name: f"#!/bin/sh\ntouch {Path.cwd()}/ran\n"})
    git(repo, "config", "filter.evil.smudge", f"touch {Path.cwd()}/ran")
    git(repo, "config", "core.fsmonitor", f"touch {Path.cwd()}/ran")
    fetched("./repo")
    assert not Path("ran").exists()


def test_inner_link_becomes_copy_and_outer_is_refused() -> None:
    files(Path("src"), {"shared/a.md": "x", "plugin/b.md": "y"})
    Path("src/plugin/a.md").symlink_to("../shared/a.md")
    Path("src/plugin/shared").symlink_to("../shared")
    repository(Path("src"), {})
    found = fetched("./src#main:plugin")
    assert names(found) == ["a.md", "b.md", "shared/a.md"]
    assert not (found.folder / "a.md").is_symlink()
    for target in ("/etc/hostname", "../../..", "gone"):
        Path("bad").mkdir(exist_ok=True)
        Path("bad/link").unlink(missing_ok=True)
        Path("bad/link").symlink_to(target)
        with pytest.raises(ExtensionError, match="link that leads outside"):
            fetched("./bad")


def test_a_tree_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree_copy, "MOST_FILES", 3)
    monkeypatch.setattr(tree_copy, "MOST_BYTES", 100)
    files(Path("many"), {str(number): "" for number in range(4)})
    files(Path("large"), {"a": "x" * 101})
    for name, said in (("many", "more than 3 files"), ("large", "more than 0 MiB")):
        with pytest.raises(ExtensionError, match=said):
            fetched(f"./{name}")
    os.mkfifo("many/pipe")
    monkeypatch.setattr(tree_copy, "MOST_FILES", 30)
    with pytest.raises(ExtensionError, match="no regular file"):
        fetched("./many")


# Archives


def tar(entries: dict[str, Any], path: str = "a.tar.gz") -> str:
    with tarfile.open(path, "w:gz") as made:
        for name, content in entries.items():
            info = content if isinstance(content, tarfile.TarInfo) else tarfile.TarInfo(name)
            data = content.encode() if isinstance(content, str) else b""
            info.size = len(data)
            made.addfile(info, io.BytesIO(data))
    return f"./{path}"


def link(name: str, target: str, kind: bytes = tarfile.SYMTYPE) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


def zipped(entries: dict[str, str], path: str = "a.zip") -> str:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
        for name, content in entries.items():
            made.writestr(name, content)
    return f"./{path}"


def test_archive_with_single_folder_is_that_folder() -> None:
    assert names(fetched(tar({"tools-1.0/SKILL.md": "x", "tools-1.0/a/b": "y"}))) == ["SKILL.md", "a/b"]
    assert names(fetched(zipped({"SKILL.md": "x", "a/b": "y"}) + "#a")) == ["b"]


@pytest.mark.parametrize("name", ["../evil", "a/../../evil", "/tmp/evil", "..\\evil", "C:\\evil"])
def test_an_entry_that_leads_outside_is_refused(name: str) -> None:
    for source in (tar({name: "x"}), zipped({name: "x"})):
        with pytest.raises(ExtensionError, match="leads outside"):
            fetched(source)
    assert not Path("evil").exists()


def test_links_and_special_archive_files_are_refused() -> None:
    fifo = tarfile.TarInfo("pipe")
    fifo.type = tarfile.FIFOTYPE
    for entry in (link("a", "/etc/passwd"), link("a", "b", tarfile.LNKTYPE), fifo):
        with pytest.raises(ExtensionError, match="link or special file"):
            fetched(tar({"b": "x", "a": entry}))
    with zipfile.ZipFile("l.zip", "w") as made:
        info = zipfile.ZipInfo("a")
        info.external_attr = (stat.S_IFLNK | 0o777) << 16
        made.writestr(info, "/etc/passwd")
    with pytest.raises(ExtensionError, match="link or special file"):
        fetched("./l.zip")


def test_archive_is_bounded_by_its_unpacked_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree_copy, "MOST_BYTES", 1 << 20)
    for source in (tar({"a": "0" * (2 << 20)}), zipped({"a": "0" * (2 << 20)})):
        assert Path(source).stat().st_size < 10_000
        with pytest.raises(ExtensionError, match="more than 1 MiB"):
            fetched(source)


@pytest.mark.parametrize(
    ("file", "data"), [("a.zip", b"no zip"), ("a.tar.gz", b"no tar"), ("a.tar.xz", b"\xfd7zXZ\0broken"), ("b.zip", b"")]
)
def test_a_damaged_archive_is_an_error(file: str, data: bytes) -> None:
    Path(file).write_bytes(data)
    with pytest.raises(ExtensionError, match="cannot be unpacked"):
        fetched(f"./{file}")


def test_a_name_that_is_there_twice_is_refused() -> None:
    with zipfile.ZipFile("a.zip", "w") as made:
        made.writestr("a", "x")
        with pytest.warns(UserWarning, match="Duplicate"):
            made.writestr("a", "y")
    with pytest.raises(ExtensionError, match="cannot be unpacked"):
        fetched("./a.zip")


@pytest.fixture
def server() -> Iterator[str]:
    """Serves the working directory."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: Any) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(Path.cwd()))) as served:
        threading.Thread(target=served.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{served.server_port}"
        served.shutdown()


def test_an_archive_is_downloaded_within_bounds(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tar({"SKILL.md": "x"})
    assert names(fetched(f"{server}/a.tar.gz")) == ["SKILL.md"]
    with pytest.raises(ExtensionError, match=r"cannot be fetched: .*404"):
        fetched(f"{server}/gone.zip")
    with pytest.raises(ExtensionError, match="more than 0 MiB"):
        http_download.load_file(f"{server}/a.tar.gz", most_bytes=10)
