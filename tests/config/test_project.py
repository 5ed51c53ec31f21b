"""Files of a project: found by name without being opened, read only if they are plain files."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from tests import unprivileged
from wolo.config import project
from wolo.config.project import KINDS, ProjectFile, find, name_files, read_file
from wolo.errors import ConfigError


def make(*places: str, at: Path | None = None) -> Path:
    root = (at or Path()).absolute()
    for place in places:
        path = root / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    return root


def found(root: Path, cwd: Path | None = None) -> list[tuple[str, str]]:
    return [(each.kind, str(each.path.relative_to(root))) for each in find(root, cwd or root)]


def test_an_ordinary_checkout_brings_nothing_along() -> None:
    root = make("AGENTS.md", "src/main.py", ".env", ".envrc", ".git/config", ".git/hooks/pre-commit", ".wolo/notes", ".claude/x")
    assert found(root) == []


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_each_kind_is_found_everywhere_in_any_form(kind: project.Kind) -> None:
    for number, place in enumerate(kind.places):
        for shape in ("file", "folder", "dangling"):
            path = Path(f"{number}-{shape}").absolute() / place
            path.parent.mkdir(parents=True)
            if shape == "file":
                path.touch()
            elif shape == "folder":
                path.mkdir()
            else:
                path.symlink_to("/nowhere")
            root = Path(f"{number}-{shape}").absolute()
            [(kinds, path)] = found(root)
            assert kind.name in kinds.split(" and ")
            assert path == place


def test_file_with_hooks_and_servers_is_both() -> None:
    assert found(make(".gemini/settings.json")) == [("hooks and MCP servers and permission rules", ".gemini/settings.json")]


def test_only_folders_from_root_to_work_count() -> None:
    root = make(".mcp.json", "a/.mcp.json", "a/b/.mcp.json", "a/b/c/.mcp.json", "other/.mcp.json", "../.mcp.json")
    assert [path for _, path in found(root, root / "a" / "b")] == [".mcp.json", "a/.mcp.json", "a/b/.mcp.json"]
    assert find(root / "a", root / "other") == ()


def test_home_directory_content_belongs_to_no_project(isolated: Path) -> None:
    home = make(".claude/skills", ".wolo/config.toml", "project/.mcp.json", at=isolated / "home")
    assert find(home, home) == ()
    assert found(home, home / "project") == [("MCP servers", "project/.mcp.json")]
    assert find(Path("/"), Path("/")) == ()


def test_link_on_the_way_is_named_not_followed(isolated: Path) -> None:
    make("config.toml", "skills/a", at=isolated / "elsewhere")
    Path(".wolo").symlink_to(isolated / "elsewhere")
    assert found(Path.cwd()) == [("a link", ".wolo")]


def test_nothing_is_opened_to_find_it() -> None:
    """A pipe would block, and a folder that may not be entered would fail."""
    Path(".wolo").mkdir()
    os.mkfifo(".wolo/config.toml")
    os.mkfifo(".mcp.json")
    Path(".claude/skills").mkdir(parents=True)
    Path(".claude/skills").chmod(0)
    assert [path for _, path in found(Path.cwd())] == [".wolo/config.toml", ".mcp.json", ".claude/skills"]


def test_names_are_shown_on_one_line_with_bound() -> None:
    root = Path.cwd()
    many = [ProjectFile("skills", root / f"{number}" / ".claude/skills") for number in range(9)]
    assert name_files(many, root).endswith("5/.claude/skills and 3 more")
    assert name_files([ProjectFile("skills", root / "a\nwolo: b\x1b[2J" / ".mcp.json")], root) == "a\\nwolo: b\\x1b[2J/.mcp.json"


def test_uninspectable_file_counts_as_present() -> None:
    with unprivileged.folder() as folder:
        read_file(make("plain", at=folder) / "plain", folder)  # imports what the ordinary user may not reach
        unprivileged.call(_close_settings, folder)
        assert unprivileged.call(find, folder, folder)[0] == ProjectFile("settings", folder / ".wolo/config.toml")
        with pytest.raises(ConfigError, match="cannot be read: Permission denied"):
            unprivileged.call(_read_settings, folder)


def _close_settings(folder: Path) -> None:
    make(".wolo/config.toml", at=folder)
    (folder / ".wolo").chmod(0)


def _read_settings(folder: Path) -> list[bytes]:
    return [read_file(path, folder) for path in project.settings_files(folder, folder)]


# Reading one


def complaint(path: Path, root: Path) -> str:
    with pytest.raises(ConfigError) as caught:
        read_file(path, root)
    return caught.value.message


def test_project_file_is_read_through_inner_link() -> None:
    root = make("shared/config.toml")
    Path(".wolo").symlink_to("shared")
    assert read_file(root / ".wolo" / "config.toml", root) == b"x"


def test_special_file_inside_is_refused_at_once(isolated: Path) -> None:
    root = Path.cwd()
    (isolated / "work-evil").mkdir()
    for outside in (isolated / "secret", isolated / "work-evil" / "x"):
        outside.write_text("x")
        (root / outside.name).symlink_to(outside)
        assert "to a file outside" in complaint(root / outside.name, root)
    (root / "sub").symlink_to(isolated)
    assert "to a file outside" in complaint(root / "sub" / "secret", root)
    os.mkfifo("pipe")
    (root / "folder").mkdir()
    (root / "loop").symlink_to("loop")
    (root / "gone").symlink_to("nowhere")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("socket")
        for name in ("pipe", "folder", "socket", "loop", "gone"):
            assert any(words in complaint(root / name, root) for words in ("cannot be read", "not a regular file"))


def test_a_file_that_is_too_large_is_refused() -> None:
    root = make("large")
    os.truncate("large", project.MAX_BYTES + 1)
    assert "larger than" in complaint(root / "large", root)


def test_file_written_by_others_is_refused() -> None:
    with unprivileged.folder() as folder:
        path = make("config.toml", at=folder) / "config.toml"
        path.chmod(0o644)
        assert unprivileged.call(read_file, path, folder) == b"x"  # it belongs to root where root runs the tests
        path.chmod(0o646)
        with pytest.raises(ConfigError, match="every user of this machine"):
            unprivileged.call(read_file, path, folder)
        if os.getuid() == 0:
            path.chmod(0o644)
            os.chown(path, 12345, 12345)
            with pytest.raises(ConfigError, match="another user"):
                unprivileged.call(read_file, path, folder)
