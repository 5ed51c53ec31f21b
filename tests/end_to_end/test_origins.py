"""Where a prompt comes from decides which of its words act: every door, and every kind of word."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.components import require
from tests.end_to_end.test_action import Job
from tests.fakes.acp_client import editor
from tests.fakes.command import run_wolo
from tests.fakes.provider_server import KEY, MODEL, ProviderServer
from tests.fakes.replies import text
from tests.fakes.repositories import repository
from tests.fakes.screen import pty_wolo
from tests.fakes.written import command
from tests.frontends.server.running_server import Server, running
from wolo import Agent
from wolo.frontends.mcp_server.tasks import ServerTasks
from wolo.places import find_home

Door = Callable[[ProviderServer, str, Path], None]
WORDS = "see @near.txt, @~/far.txt, @.env and @link.txt"
NEAR, FAR, SECRET, GREETING = "near at hand", "far away", "PLAIN_SETTING", "Greet Ada politely."


def headless(*more: str) -> Door:
    def go(provider: ProviderServer, words: str, _: Path) -> None:
        run_wolo("-p", *more, *provider.flags, "--", words)

    return go


def piped(provider: ProviderServer, words: str, _: Path) -> None:
    run_wolo("-p", *provider.flags, "-", stdin=words)


def beside(provider: ProviderServer, words: str, _: Path) -> None:
    run_wolo("-p", *provider.flags, "look", stdin=words)


def json_line(provider: ProviderServer, words: str, _: Path) -> None:
    line = json.dumps({"type": "user", "message": {"role": "user", "content": words}})
    streams = ("--input-format", "stream-json", "--output-format", "stream-json")
    assert run_wolo(*provider.flags, *streams, stdin=line).exit_code == 0


def at_terminal(provider: ProviderServer, words: str, _: Path) -> None:
    with pty_wolo("-p", *provider.flags, "--", words) as terminal:
        assert terminal.wait_for_exit() == 0


def typed(provider: ProviderServer, words: str, _: Path) -> None:
    with pty_wolo(*provider.flags) as terminal:
        terminal.wait_for_prompt()
        terminal.enter(words)
        terminal.wait_for("I see.")


def by_server(**body: object) -> Door:
    def go(provider: ProviderServer, words: str, _: Path) -> None:
        with running(provider) as server:
            id = server.new()
            events = server.events(id)
            server.prompt(id, words, **body)
            events.result()

    return go


def attached(provider: ProviderServer, words: str, _: Path) -> None:
    with running(provider) as server:
        assert run_wolo("attach", server.address, "--session", _new(server), stdin=words).exit_code == 0


def _new(server: Server) -> str:
    return server.new()


def by_editor(provider: ProviderServer, words: str, _: Path) -> None:
    async def go() -> None:
        async with editor(*provider.flags) as client:
            await client.say((await client.new(Path.cwd())).session_id, words)

    asyncio.run(go())


def by_program(provider: ProviderServer, words: str, _: Path) -> None:
    Agent(f"custom/{MODEL}", base_url=provider.base_url, api_key=KEY, mode="yolo").run_sync(words)


def by_mcp(provider: ProviderServer, words: str, _: Path) -> None:
    async def go() -> None:
        tasks = ServerTasks(mode="yolo")
        task = tasks.run(words, cwd=".", mode="yolo", has_forms=False)
        while await task.updates.get() is not None:
            pass
        await tasks.close()

    names = {"WOLO_BASE_URL": provider.base_url, "WOLO_API_KEY": KEY, "WOLO_MODEL": f"custom/{MODEL}"}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in names.items():
            patch.setenv(name, value)
        asyncio.run(go())


def by_batch(provider: ProviderServer, words: str, tmp_path: Path) -> None:
    tasks = tmp_path / "tasks.jsonl"
    tasks.write_text(json.dumps({"id": "a", "prompt": words, "mode": "plan", "repo": str(Path.cwd())}) + "\n")
    names = {"WOLO_BASE_URL": provider.base_url, "WOLO_API_KEY": KEY, "WOLO_MODEL": f"custom/{MODEL}"}
    done = run_wolo("batch", "run", str(tasks), "--out", str(tmp_path / "run"), env=names)
    assert done.exit_code == 0, done.stderr


def by_action(provider: ProviderServer, words: str, tmp_path: Path) -> None:
    assert Job(tmp_path, provider).run(prompt=words, mode="plan").returncode == 0


def by_asking_action(provider: ProviderServer, words: str, tmp_path: Path) -> None:
    assert Job(tmp_path, provider).run(prompt=words, mentions="true").returncode == 0


def by_own_command(provider: ProviderServer, words: str, _: Path) -> None:
    command(find_home() / ".claude/commands", "own", f"Do this: {words}")
    run_wolo("-p", *provider.flags, "/own")


DOORS: dict[str, tuple[Door, str]] = {
    "at the prompt": (typed, "near far secret command"),
    "an argument at a terminal": (at_terminal, "near far secret command"),
    "the page's composer": (by_server(typed=True), "near far secret command"),
    "an editor": (by_editor, "near far secret command"),
    "an argument elsewhere": (headless(), "near command"),
    "an argument in yolo": (headless("--mode", "yolo"), "near command"),
    "an argument of a pipeline": (headless("--no-mentions"), ""),
    "stdin": (piped, "near"),
    "stdin beside an argument": (beside, ""),
    "a JSON line": (json_line, "near"),
    "the HTTP API": (by_server(), "near"),
    "attach in a pipe": (attached, "near"),
    "the Python API": (by_program, "near"),
    "the MCP server": (by_mcp, "near"),
    "a task file": (by_batch, "near"),
    "the action": (by_action, ""),
    "the action with mentions": (by_asking_action, "near"),
    "the body of a command": (by_own_command, "near"),
}


@pytest.fixture
def folder(provider: ProviderServer) -> ProviderServer:
    """A repository with what is mentioned in it, and a command of the user."""
    require("git")
    (find_home() / "far.txt").write_text(FAR)
    repository(Path.cwd(), {"near.txt": NEAR, ".env": f"{SECRET}=1\n"})
    Path("link.txt").symlink_to(find_home() / "far.txt")
    command(find_home() / ".claude/commands", "greet", "Greet $ARGUMENTS politely.")
    return provider.script(text("I see."))


def sent(provider: ProviderServer) -> str:
    return str([message for message in provider.requests[0].messages if message["role"] == "user"])


@pytest.mark.sweep(every=3)
@pytest.mark.parametrize("name", DOORS)
def test_mentions_act_as_far_as_their_origin_permits(folder: ProviderServer, name: str, tmp_path: Path) -> None:
    door, acting = DOORS[name]
    door(folder, WORDS, tmp_path)
    said = sent(folder)
    assert WORDS in said
    found = {"near": NEAR in said, "far": FAR in said, "secret": SECRET in said}
    assert {word for word, is_there in found.items() if is_there} == {*acting.split()} - {"command"}


@pytest.mark.sweep(every=3)
@pytest.mark.parametrize("name", [name for name in DOORS if name not in ("stdin beside an argument", "the body of a command")])
def test_slash_commands_act_where_a_person_types(folder: ProviderServer, name: str, tmp_path: Path) -> None:
    door, acting = DOORS[name]
    door(folder, "/greet Ada", tmp_path)
    assert (GREETING in sent(folder)) == ("command" in acting)
    assert ("/greet Ada" in sent(folder)) == ("command" not in acting)


@pytest.mark.sweep(every=3)
@pytest.mark.parametrize("name", [name for name in DOORS if name != "at the prompt"])
def test_exclamation_mark_runs_nothing_outside_the_prompt(folder: ProviderServer, name: str, tmp_path: Path) -> None:
    door, _ = DOORS[name]
    door(folder, "!touch made", tmp_path)
    assert "!touch made" in sent(folder)
    assert not Path("made").exists()


def test_exclamation_mark_at_the_prompt_runs_commands(provider: ProviderServer) -> None:
    with pty_wolo(*provider.flags) as terminal:
        terminal.wait_for_prompt()
        terminal.enter("!touch made; echo so")
        terminal.wait_until(Path("made").exists)


@pytest.mark.parametrize(("words", "said"), [("@~/far.txt", "outside the workspace"), ("@.env", "needs an approval")])
def test_text_without_command_origin_is_reported(folder: ProviderServer, words: str, said: str) -> None:
    done = run_wolo("-p", *folder.flags, "-", stdin=f"see {words}")
    assert said in done.stderr
    assert done.exit_code == 0


def test_mention_of_a_piped_binary_stays_text(provider: ProviderServer) -> None:
    Path("data.bin").write_bytes(b"\0\1\2" * 100)
    provider.otherwise = text("Hello.")
    done = run_wolo("-p", *provider.flags, "-", stdin="look at @data.bin")
    assert done.exit_code == 0, done.stderr
    assert "Not attached: " in done.stderr
    assert "data.bin" in done.stderr
    assert "look at @data.bin" in json.dumps(provider.requests[0].messages)


def test_a_command_that_stays_text_is_said(folder: ProviderServer) -> None:
    assert "/greet is sent as text" in run_wolo("-p", *folder.flags, "-", stdin="/greet Ada").stderr


def test_agents_and_resources_need_a_person(folder: ProviderServer) -> None:
    run_wolo("-p", *folder.flags, "-", stdin="@explore look; @srv:file:///x")
    assert "asks for the agent" not in sent(folder)
    folder.script(text("Yes."))
    run_wolo("-p", *folder.flags, "@explore look")
    assert "asks for the agent explore" in str(folder.requests[1].messages)


@pytest.mark.parametrize("named", ["../far.md", "/etc/hostname", "link.md"])
def test_a_prompt_file_is_below_its_task_file(folder: ProviderServer, tmp_path: Path, named: str) -> None:
    tasks = tmp_path / "in"
    tasks.mkdir()
    (tmp_path / "far.md").write_text(FAR)
    (tasks / "link.md").symlink_to(tmp_path / "far.md")
    (tasks / "t.jsonl").write_text(json.dumps({"id": "a", "prompt_file": named}) + "\n")
    refused = run_wolo("batch", "run", str(tasks / "t.jsonl"), "--out", str(tmp_path / "run"))
    assert (refused.exit_code, "is not below the folder of the task file" in refused.stderr) == (2, True), refused.stderr
    assert not folder.requests
