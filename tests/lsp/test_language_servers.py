"""Language servers: which errors of an edit are told, and what a server that misbehaves costs."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from wolo.lsp import language_servers, lsp_client
from wolo.lsp.language_servers import LanguageServers
from wolo.lsp.lsp_client import LONGEST_HEADER_BYTES, ServerFailed
from wolo.lsp.messages import Problem, describe, new_errors
from wolo.lsp.server_table import ServerSpec, known_servers
from wolo.workspace.processes.piped_program import OutputTail, PipedProgram, start_piped
from wolo.workspace.processes.process_runner import Processes, ProgramStart

FAKE = Path(__file__).parents[1] / "fakes" / "language_server.py"
SPEC = ServerSpec("fake", (), (".x",))
Edit = Callable[[str, str], None]


@asynccontextmanager
async def running(folder: Path, how: str, *more: str, spec: ServerSpec = SPEC) -> AsyncIterator[LanguageServers]:
    processes = Processes(folder / "commands")
    started: list[PipedProgram] = []

    async def start(spec: ServerSpec) -> PipedProgram:
        start = ProgramStart(argv=spec.command, cwd=folder, env={})
        started.append(await start_piped(processes, start, LONGEST_HEADER_BYTES, OutputTail()))
        return started[-1]

    spec = replace(spec, command=(sys.executable, str(FAKE), how, *more), pulls=how == "pulled")
    servers = LanguageServers((spec,), folder, start, lambda path: path.name)
    try:
        yield servers
    finally:
        servers.close()
        for each in started:
            each.close_input()
        processes.close_all()
        assert not processes.is_anything_alive()


async def edit(servers: LanguageServers, path: Path, text: str) -> str:
    before = servers.read_known([path])
    servers.warm_up(before)
    path.write_text(text)
    return await servers.check(before)


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Under load a server may take its time."""
    for name in ("COLD_S", "WARM_S"):
        monkeypatch.setattr(language_servers, name, 60.0)


@pytest.mark.parametrize("how", ["well", "unversioned", "steps", "odd", "pulled"])
async def test_new_errors_are_reported_and_old_ones_skipped(tmp_path: Path, how: str) -> None:
    file = tmp_path / "a b.x"
    file.write_text("one\nBAD old\n")
    async with running(tmp_path, how) as servers:
        assert next(iter(servers.states().values())) == ""
        told = await edit(servers, file, "moved\none\nBAD old\n  BAD new\nODD\n")
        assert told == "[fake: 1 new error after this edit]\na b.x:4:3: BAD new (E1)"
        assert next(iter(servers.states().values())) == "running"
        assert await edit(servers, file, "BAD old\nBAD new\n") == ""
        assert "BAD old" in await edit(servers, file, "BAD old\nBAD old\n")
        new = tmp_path / "new.x"
        assert "new.x:1:1: BAD" in await edit(servers, new, "BAD\n")
        assert list(servers.failures()) == []


async def test_foreign_concurrent_changes_are_not_the_edit(tmp_path: Path) -> None:
    file = tmp_path / "a.x"
    file.write_text("one\n")
    async with running(tmp_path, "well") as servers:
        assert await edit(servers, file, "two\n") == ""
        file.write_text("two\nBAD by another\n")
        assert "1 new error" in (told := await edit(servers, file, "BAD by me\nBAD by another\n"))
        assert "by another" not in told


async def test_files_that_no_server_knows_start_none(tmp_path: Path) -> None:
    async with running(tmp_path, "well") as servers:
        for name in ("a.y", "x", ".x", "a.x.y"):
            assert await edit(servers, tmp_path / name, "BAD\n") == ""
        big = tmp_path / "big.x"
        assert await edit(servers, big, "\0" * (language_servers.MOST_FILE_BYTES + 1)) == ""
        assert servers.read_known([big]) == {}


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ("dies", "it ended: no licence."),
        ("dies late", "it ended"),
        ("garbage", "it printed 'and another'"),
        ("refuses", "it refused to start: no project here"),
    ],
)
async def test_misbehaving_server_costs_itself_with_one_report(tmp_path: Path, how: str, why: str) -> None:
    file = tmp_path / "a.x"
    file.write_text("one\n")
    async with running(tmp_path, how) as servers:
        assert await edit(servers, file, "BAD\n") == ""
        (failure,) = servers.failures()
        assert failure.startswith("The language server fake is not used any more: it ")
        assert why in failure
        assert await edit(servers, file, "BAD BAD\n") == ""
        assert list(servers.failures()) == []


async def test_one_that_never_answers_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lsp_client, "START_S", 0.05)
    async with running(tmp_path, "mute") as servers:
        assert await edit(servers, tmp_path / "a.x", "BAD\n") == ""
        assert "did not answer within" in next(servers.failures())


async def test_one_that_never_publishes_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with running(tmp_path, "silent") as servers:
        servers.warm_up([tmp_path / "a.x"])
        while next(iter(servers.states().values())) == "starting":
            await asyncio.sleep(0.01)
        monkeypatch.setattr(lsp_client, "START_S", 0.05)
        assert await edit(servers, tmp_path / "a.x", "BAD\n") == ""
        assert [each for each in servers.failures() if "published nothing within" in each]
        assert await edit(servers, tmp_path / "a.x", "BAD BAD\n") == ""
        assert list(servers.failures()) == []


async def test_one_that_falls_silent_is_given_up_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with running(tmp_path, "well") as servers:
        assert "BAD" in await edit(servers, tmp_path / "a.x", "BAD\n")
        monkeypatch.setattr(lsp_client, "ANSWER_S", 0.05)
        for number in range(3):
            assert list(servers.failures()) == []
            assert await edit(servers, tmp_path / "a.x", f"QUIET {number}\n") == ""
        assert "published nothing within" in next(servers.failures())


async def test_one_that_stops_reading_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.x").write_text("one\n" * 100_000)
    async with running(tmp_path, "stops reading") as servers:
        servers.warm_up([tmp_path / "a.x"])
        while next(iter(servers.states().values())) == "starting":
            await asyncio.sleep(0.01)
        monkeypatch.setattr(lsp_client, "ANSWER_S", 0.05)
        assert await edit(servers, tmp_path / "a.x", "BAD\n") == ""
        assert "no longer reads" in next(servers.failures())


@pytest.mark.parametrize("how", ["mute", "silent"])
async def test_a_hanging_server_is_waited_for_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    for name in ("COLD_S", "WARM_S"):
        monkeypatch.setattr(language_servers, name, 0.05)
    async with running(tmp_path, how) as servers:
        assert await edit(servers, tmp_path / "a.x", "BAD\n") == ""
        for name in ("COLD_S", "WARM_S"):
            monkeypatch.setattr(language_servers, name, 3600.0)  # a wait would end at the time limit of the test
        for number in range(3):
            assert await edit(servers, tmp_path / f"{number}.x", "BAD\n") == ""


async def test_late_errors_come_with_the_next_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "a.x"
    file.write_text("one\n")
    async with running(tmp_path, "well") as servers:
        monkeypatch.setattr(language_servers, "COLD_S", 0.0)
        monkeypatch.setattr(language_servers, "WARM_S", 0.0)
        assert await edit(servers, file, "BAD one\n") == ""
        monkeypatch.setattr(language_servers, "COLD_S", 60.0)
        monkeypatch.setattr(language_servers, "WARM_S", 60.0)
        told = await edit(servers, file, "BAD one\nBAD two\n")
        while not told:
            await asyncio.sleep(0.01)
            told = servers.late_errors()
        assert "2 new errors" in told
        assert servers.late_errors() == ""


async def test_few_files_are_open_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lsp_client, "MOST_OPEN", 2)
    log = tmp_path / "log"
    async with running(tmp_path, "well", str(log)) as servers:
        for number in range(4):
            assert "BAD" in await edit(servers, tmp_path / f"{number}.x", "BAD\n")
    said = [json.loads(line) for line in log.read_text().splitlines()]
    methods = [each.get("method") for each in said]
    assert methods.count("textDocument/didOpen") == 4
    assert methods.count("textDocument/didClose") == 2
    assert [each for each in said if each.get("id") == 7 and each.get("result") == [None, None]]


async def test_server_gets_its_options_settings_and_language(tmp_path: Path) -> None:
    log, lint = tmp_path / "log", {"max": 3}
    spec = replace(SPEC, languages={".x": "exotic"}, options={"cache": False}, settings={"exotic": {"lint": lint}})
    async with running(tmp_path, "well", str(log), spec=spec) as servers:
        assert "BAD" in await edit(servers, tmp_path / "a.X", "BAD\n")
    said = [json.loads(line) for line in log.read_text().splitlines()]
    by_method = {each["method"]: each["params"] for each in said if "method" in each}
    assert by_method["initialize"]["initializationOptions"] == {"cache": False}
    assert by_method["workspace/didChangeConfiguration"] == {"settings": spec.settings}
    assert by_method["textDocument/didOpen"]["textDocument"]["languageId"] == "exotic"
    assert [each["result"] for each in said if each.get("id") == 7 and "result" in each] == [[spec.settings, lint]]


def test_servers_of_plugins_come_after_own_ones() -> None:
    of_plugins = (ServerSpec("gopls", ("theirs",), (".go",), env={"A": "1"}), ServerSpec("odd", ("odd",), (".odd",)))
    names = {
        each.name: each
        for each in known_servers((ServerSpec("odd", ("mine",)), ServerSpec("first", ("f",), (".f",))), of_plugins)
    }
    assert list(names)[:3] == ["odd", "first", "gopls"]
    assert (names["odd"].command, names["odd"].extensions) == (("mine",), (".odd",))
    assert names["gopls"] == of_plugins[0]
    assert "gopls" not in {each.name for each in known_servers((ServerSpec("gopls", (), enabled=False),), of_plugins)}


def test_many_errors_are_counted_and_first_ones_shown() -> None:
    errors = [Problem(n, 1, f"e{n}") for n in range(1, 31)]
    text = describe("s", "a.x", errors)
    assert text.startswith("[s: 30 new errors after this edit]\na.x:1:1: e1\n")
    assert text.endswith("… and 20 more")
    assert new_errors(errors, errors[::-1]) == ()


def test_own_servers_come_first_and_complete_known_ones() -> None:
    own = (
        ServerSpec("mine", ("mine",), ("*.PY",)),
        ServerSpec("pylsp", ("my-pylsp", "-v")),
        ServerSpec("pyright", (), (), enabled=False),
        ServerSpec("empty", ()),
    )
    names = {each.name: each for each in known_servers(own)}
    assert list(names)[:3] == ["mine", "pylsp", "basedpyright"]
    assert names["mine"].extensions == (".py",)
    assert (names["pylsp"].command, names["pylsp"].extensions) == (("my-pylsp", "-v"), (".py", ".pyi"))
    assert not {"pyright", "empty"} & {*names}
    assert all(each.command and each.extensions for each in known_servers())


@pytest.mark.parametrize(("how", "why"), [("silent", "fake did not answer in time"), ("dies", "it ended: no licence")])
async def test_question_without_answer_ends_in_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str, why: str) -> None:
    monkeypatch.setattr(lsp_client, "START_S", 30.0 if how == "dies" else 5.0)
    (tmp_path / "a.x").write_text("fine\n")
    async with running(tmp_path, how) as servers:
        with pytest.raises(ServerFailed, match=why):
            await servers.ask(tmp_path / "a.x", "textDocument/definition", {})


async def test_question_leaves_checks_of_edits_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.x"
    path.write_text("fine\n")
    async with running(tmp_path, "usual") as servers:
        monkeypatch.setattr(lsp_client, "START_S", 2.0)
        with pytest.raises(ServerFailed, match="in time"):
            await servers.ask(path, "textDocument/definition", {})
        monkeypatch.setattr(lsp_client, "START_S", 60.0)
        assert "BAD" in await edit(servers, path, "BAD\n")
