"""File tools end to end: the files they may reach, and what the provider receives."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.command import Completed, run_wolo
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import call, calls, text

Call = tuple[str, dict[str, Any]]
CANARY = "canary-3f9a7c2e-value"


@pytest.fixture
def outside(isolated: Path) -> Iterator[Path]:
    """A folder beside the workspace. Nothing in it may ever change."""
    folder = isolated / "outside"
    folder.mkdir()
    (folder / "x").write_text("theirs\n")
    before = tree(folder)
    yield folder
    assert tree(folder) == before


def tree(folder: Path) -> dict[str, str]:
    found = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        found[name] = f"→ {path.readlink()}" if path.is_symlink() else path.read_text() if path.is_file() else "folder"
    return found


def patch(*lines: str) -> Call:
    return "apply_patch", {"patch": "\n".join(("*** Begin Patch", *lines, "*** End Patch"))}


def every_way_to_write(path: str) -> list[Call]:
    """Of a file that says `theirs`."""
    return [
        ("write", {"path": path, "content": "ours"}),
        ("edit", {"path": path, "old": "theirs", "new": "ours"}),
        patch(f"*** Update File: {path}", "@@", "-theirs", "+ours"),
        patch(f"*** Delete File: {path}"),
        patch(f"*** Add File: {path}", "+ours"),
        patch(f"*** Update File: {path}", "*** Move to: stolen"),
        patch("*** Update File: mine", f"*** Move to: {path}"),
    ]


def run(
    provider: ProviderServer, *wanted: Call, mode: str = "edit", options: tuple[str, ...] = ()
) -> tuple[Completed, list[str]]:
    """The calls in one answer; how the run ended and what the model was told of each."""
    provider.script(calls(*wanted), text("ok"))
    flag = ("--yolo",) if mode == "yolo" else ("--mode", mode)
    done = run_wolo("--json", *flag, *options, *provider.flags, "go")
    assert "Traceback" not in done.stderr
    assert done.exit_code in (0, 4), done.stderr
    return done, provider.requests[-1].results


def test_no_spelling_writes_outside_the_workspace(provider: ProviderServer, isolated: Path, outside: Path) -> None:
    Path("sub").mkdir()
    Path("mine").write_text("mine\n")
    Path("link").symlink_to(outside)
    Path("file").symlink_to(outside / "x")
    Path("chain").symlink_to("link")
    Path("dangling").symlink_to(outside / "new")
    evil = isolated / "work-evil"
    evil.mkdir()
    (evil / "x").write_text("theirs\n")
    spellings = ["../outside/x", str(outside / "x"), "sub/../../outside/x", "link/x", "file", "chain/x", "../work-evil/x"]
    wanted = [each for spelling in spellings for each in every_way_to_write(spelling)]
    wanted += [
        ("write", {"path": path, "content": "x"}) for path in ("dangling", "link/new/deep.txt", "../new", "/new-at-the-root")
    ]
    before = tree(Path())
    done, results = run(provider, *wanted)
    assert [made for made, said in zip(wanted, results, strict=True) if not said.startswith("Denied")] == []
    assert done.exit_code == 4
    assert [denial["input"] for denial in done.json["permission_denials"]] == [arguments for _, arguments in wanted]
    assert tree(Path()) == before
    assert (evil / "x").read_text() == "theirs\n"


def test_the_same_calls_do_harm_where_nothing_asks(provider: ProviderServer, isolated: Path) -> None:
    """So the test above can fail."""
    folder = isolated / "elsewhere"
    folder.mkdir()
    (folder / "x").write_text("theirs\n")
    Path("link").symlink_to(folder)
    _, results = run(provider, every_way_to_write("link/x")[1], every_way_to_write("../elsewhere/x")[3], mode="yolo")
    assert results[0].startswith("Edited")
    assert results[1].startswith("Deleted")
    assert tree(folder) == {}


@pytest.mark.parametrize("mode", ["edit", "auto"])
def test_a_file_with_a_second_name_elsewhere_asks(provider: ProviderServer, outside: Path, mode: str) -> None:
    os.link(outside / "x", "mine")
    wanted = [each for each in every_way_to_write("mine") if "stolen" not in str(each)][:4]
    done, results = run(provider, *wanted, mode=mode)
    assert [said for said in results if "hard links" not in said or not said.startswith("Denied")] == []
    assert done.exit_code == 4
    assert Path("mine").stat().st_nlink == 2


def test_second_name_keeps_its_content_without_approval(provider: ProviderServer, outside: Path) -> None:
    os.link(outside / "x", "mine")
    _, results = run(provider, every_way_to_write("mine")[1], mode="yolo")
    assert "the others keep the old content" in results[0]
    assert Path("mine").read_text() == "ours\n"


@pytest.mark.parametrize("mode", ["ask", "edit", "auto", "yolo"])
def test_files_obeyed_by_git_or_editors_always_ask(provider: ProviderServer, mode: str) -> None:
    protected = [".git/config", ".git/hooks/pre-commit", "nested/.git/config", "real.git/config", ".vscode/tasks.json", ".bashrc"]
    for path in (*protected, "real.git/HEAD", "real.git/objects/x", "mine"):
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text("theirs\n")
    Path("module").mkdir()
    Path("module/.git").write_text("gitdir: ../real.git\n")
    Path("alias").symlink_to(".git")
    before = tree(Path())
    wanted = [each for path in (*protected, "alias/config", "module/.git") for each in every_way_to_write(path)]
    done, results = run(provider, *wanted, mode=mode)
    assert [made for made, said in zip(wanted, results, strict=True) if not said.startswith("Denied")] == []
    assert done.exit_code == 4
    assert tree(Path()) == before


@pytest.mark.parametrize("mode", ["edit", "yolo"])
def test_wolos_own_files_are_written_in_no_mode(provider: ProviderServer, isolated: Path, mode: str) -> None:
    own = isolated / "wolo"
    run_wolo("sessions", "list")
    (own / "config").mkdir(parents=True, exist_ok=True)
    for name in ("config/config.toml", "config/permissions.toml"):
        (own / name).write_text("# theirs\n")
    Path("mine").write_text("mine\n")
    Path("link").symlink_to(own)
    targets = [
        *(str(own / name) for name in ("config/config.toml", "config/permissions.toml", "data/wolo.db", "state/trust.toml"))
    ]
    targets += ["link/config/config.toml", "../wolo/config/new.toml", "link/../wolo/data/wolo.db"]
    wanted = [each for path in targets for each in every_way_to_write(path)]
    _, results = run(provider, *wanted, mode=mode, options=("--no-session",))
    denied = "belongs to wolo itself and cannot be written in any mode"
    assert [made for made, said in zip(wanted, results, strict=True) if not said.startswith("Denied") or denied not in said] == []
    assert (own / "config/config.toml").read_text() == "# theirs\n"
    assert Path("mine").read_text() == "mine\n"


def test_impossible_paths_are_answered_with_a_sentence(provider: ProviderServer) -> None:
    Path("folder").mkdir()
    paths = [
        "a\0b",
        "",
        ".",
        "folder",
        "folder/",
        "new/",
        " ",
        "\n",
        "c" * 300,
        "/".join(["d" * 200] * 25),
        "e/" * 2500 + "x",
    ]
    wanted: list[Call] = [("write", {"path": path, "content": "x"}) for path in paths]
    wanted += [("read", {"path": path}) for path in paths]
    wanted += [patch(f"*** Add File: {path}", "+x") for path in paths if "\n" not in path]
    _, results = run(provider, *wanted)
    assert [said for said in results if not said or "failed unexpectedly" in said or "Errno" in said or len(said) > 12_000] == []
    assert tree(Path()) == {"folder": "folder"}


def test_two_hundred_folders_deep_is_a_usual_path(provider: ProviderServer) -> None:
    deep = "/".join(["d"] * 200) + "/x"
    _, results = run(provider, ("write", {"path": deep, "content": "deep\n"}), ("read", {"path": deep}))
    assert results[0].startswith("Created ")
    assert results[1].startswith("1→deep")


def test_variable_like_name_is_a_plain_name(provider: ProviderServer, isolated: Path) -> None:
    names = ["$HOME/x", "%2e%2e/x", "..\\x", "${HOME}/y", "%HOME%", "a*b?"]
    wanted: list[Call] = [("write", {"path": name, "content": "x"}) for name in names]
    _, results = run(
        provider, *wanted, ("write", {"path": "~/x", "content": "x"}), ("write", {"path": "~nobody/x", "content": "x"})
    )
    assert [said for said in results[:-2] if not said.startswith("Created")] == []
    assert all("is not expanded in paths" in said for said in results[-2:])
    assert {str(path) for path in Path().rglob("*") if path.is_file()} == set(names)
    assert list((isolated / "home").iterdir()) == []


def test_special_file_is_refused_at_once(provider: ProviderServer) -> None:
    os.mkfifo("pipe")
    Path("folder").mkdir()
    Path("to-pipe").symlink_to("pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
        names = [
            "pipe",
            "to-pipe",
            "socket",
            "folder",
            "/dev/zero",
            "/dev/tty",
            "/proc/self/environ",
            "/proc/kmsg",
            "/sys/kernel/notes",
        ]
        _, results = run(provider, *(("read", {"path": name}) for name in names), mode="yolo")
    assert [
        said for said in results if not any(word in said for word in ("not a regular file", "is a folder", "kernel", "Denied"))
    ] == []
    _, results = run(provider, *every_way_to_write("pipe")[:4])
    assert [said for said in results if "a pipe, not a regular file" not in said] == []


def test_huge_file_is_read_in_part_without_waiting(provider: ProviderServer) -> None:
    with Path("sparse").open("wb") as file:
        file.write(b"first\n")
        file.truncate(5 * 1024**3)
    with Path("huge.txt").open("wb") as file:
        file.write(b"first\n" * 20_000_000)
    Path("line").write_text("x" * 50_000_000)
    wanted: list[Call] = [("read", {"path": "sparse"}), ("read", {"path": "huge.txt"}), ("read", {"path": "line"})]
    wanted += [("edit", {"path": "huge.txt", "old": "first", "new": "x"}), ("read", {"path": "huge.txt", "offset": -2})]
    _, results = run(provider, *wanted)
    sparse, huge, line, edited, tail = results
    assert sparse.startswith(("1→first", "This is"))
    assert huge.startswith("1→first")
    assert "the file has 120,000,000 bytes" in huge
    assert "cut: the line has 50,000,000 bytes" in line
    assert edited == "The file is larger than 64 MiB; change it with `shell`."
    assert tail.startswith("-2→first\nfirst\n[")


def test_lines_copied_from_a_page_are_edited(provider: ProviderServer) -> None:
    Path("a.py").write_text("".join(f"    x{line} = {line}\n" for line in range(1, 31)))
    change = {
        "path": "a.py",
        "old": "    x19 = 19\n20→    x20 = 20\n    x21 = 21",
        "new": "    x19 = 0\n20→    x20 = 0\n    x21 = 0",
    }
    _, results = run(provider, ("read", {"path": "a.py", "offset": 18, "limit": 5}), ("edit", change))
    assert results[0].startswith("18→    x18 = 18\n    x19 = 19\n20→    x20 = 20\n    x21 = 21\n    x22 = 22\n[")
    assert "x18 = 18\n    x19 = 0\n    x20 = 0\n    x21 = 0\n    x22 = 22\n" in Path("a.py").read_text()


SECRETS = [".env", ".env.local", "id_rsa", ".netrc", ".npmrc", "deep/credentials"]


def test_secret_files_reach_nobody_by_any_tool(provider: ProviderServer) -> None:
    for name in SECRETS:
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text(f"TOKEN={CANARY}\n")
    Path("notes.txt").symlink_to(".env")
    Path("folder").symlink_to("deep")
    Path("plain.txt").write_text("TOKEN is in .env\n")
    wanted: list[Call] = [("read", {"path": name}) for name in (*SECRETS, "notes.txt", "folder/credentials", "./deep/../.env")]
    wanted += [("edit", {"path": name, "old": "x", "new": "y"}) for name in SECRETS]
    wanted += [patch(f"*** Update File: {name}", "@@", "-TOKEN", "+x") for name in (*SECRETS, "notes.txt")]
    reading = len(wanted)
    wanted += [("grep", {"pattern": "TOKEN", "output_mode": mode}) for mode in ("content", "files", "count")]
    wanted += [("grep", {"pattern": "TOKEN", "path": path}) for path in (".env", "notes.txt", "deep", "folder")]
    wanted += [("glob", {"pattern": pattern}) for pattern in ("**/.env*", "*", "**/cred*")]
    done, results = run(provider, *wanted)
    assert [made for made, said in zip(wanted[:reading], results, strict=False) if not said.startswith("Denied")] == []
    assert done.exit_code == 4
    assert not [request for request in provider.requests if CANARY.encode() in request.body]
    found = results[reading:]
    assert found[0].startswith("plain.txt:1:TOKEN is in .env\n[")
    for said in (found[1], found[2], found[5], *found[7:]):
        assert not [name for name in SECRETS if name in said.splitlines() or f"{name}:" in said]
    assert "protected files were left out" in found[0]


def test_deny_rule_holds_for_every_path_to_file(provider: ProviderServer) -> None:
    Path("vault").mkdir()
    for name in ("vault/a.txt", "vault/b.txt"):
        Path(name).write_text(f"theirs {CANARY}\n")
    Path("mine").write_text("mine\n")
    Path("way").symlink_to("vault")
    Path("short").symlink_to("vault/a.txt")
    spellings = [
        "vault/a.txt",
        "./vault//a.txt",
        "way/a.txt",
        "short",
        "vault/../vault/a.txt",
        str(Path("vault/a.txt").absolute()),
    ]
    wanted: list[Call] = [("read", {"path": path}) for path in spellings]
    wanted += [each for path in spellings for each in every_way_to_write(path)]
    direct = len(wanted)
    wanted += [("grep", {"pattern": "theirs"}), ("glob", {"pattern": "**/*.txt"}), ("grep", {"pattern": "theirs", "path": "way"})]
    rules = ("--deny", "read:vault/**", "--deny", "write:vault/**")
    before = tree(Path())
    _, results = run(provider, *wanted, mode="yolo", options=rules)
    assert [made for made, said in zip(wanted[:direct], results, strict=False) if not said.startswith("Denied")] == []
    assert not [said for said in results[direct:] if CANARY in said or "a.txt" in said]
    assert tree(Path()) == before
    provider.script(call("read", {"path": "short"}), text("ok"))
    run_wolo("-p", *provider.flags, "go")
    assert CANARY in provider.requests[-1].results[0]  # so without the rule it can be read


def test_instructions_linked_to_a_key_are_not_sent(provider: ProviderServer, isolated: Path) -> None:
    (isolated / "home/.ssh").mkdir()
    (isolated / "home/.ssh/id_ed25519").write_text(CANARY)
    Path("AGENTS.md").symlink_to(isolated / "home/.ssh/id_ed25519")
    run(provider, ("glob", {"pattern": "*"}))
    assert not [request for request in provider.requests if CANARY.encode() in request.body]
