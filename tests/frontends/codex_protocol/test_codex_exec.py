"""`wolo exec --experimental-json`, as Codex's SDK starts it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.fakes.command import Completed, run_wolo, start_wolo
from tests.fakes.provider_server import KEY, MODEL, ProviderServer
from tests.fakes.replies import call, calls, error, text
from tests.frontends.sdks import at

ANYWHERE = "--skip-git-repo-check"


def run_exec(provider: ProviderServer | None, *options: str, prompt: str = "go") -> Completed:
    env = at(provider.base_url, KEY, MODEL) if provider else {}
    return run_wolo("exec", "--experimental-json", *options, stdin=prompt, env=env)


def items(run: Completed, kind: str) -> list[dict[str, object]]:
    return [line["item"] for line in run.lines if line["type"] == "item.completed" and line["item"]["type"] == kind]


def test_turn_is_told_in_codex_events(provider: ProviderServer) -> None:
    provider.script(
        calls(("shell", {"command": "echo hello"}), ("write", {"path": "a.txt", "content": "a"}), content="I begin."),
        call("todo", {"items": [{"text": "one", "status": "completed"}, {"text": "two"}]}),
        text("Done.", reasoning="All good."),
    )
    run = run_exec(provider, ANYWHERE, "--sandbox", "danger-full-access")
    assert run.exit_code == 0, run.stderr
    assert [line["type"] for line in run.lines[:2]] == ["thread.started", "turn.started"]
    [command] = items(run, "command_execution")
    assert command["command"] == "echo hello"
    assert command["exit_code"] == 0
    assert command["status"] == "completed"
    assert "hello" in str(command["aggregated_output"])
    [change] = items(run, "file_change")
    assert change["changes"] == [{"path": str(Path("a.txt").resolve()), "kind": "add"}]
    assert [item["text"] for item in items(run, "agent_message")] == ["I begin.", "Done."]
    assert [item["text"] for item in items(run, "reasoning")] == ["All good."]
    [todo] = items(run, "todo_list")
    assert todo["items"] == [{"text": "one", "completed": True}, {"text": "two", "completed": False}]
    assert run.lines[-1]["type"] == "turn.completed"
    assert run.lines[-1]["usage"]["input_tokens"] == 300
    started = [line["item"]["id"] for line in run.lines if line["type"] == "item.started"]
    assert command["id"] in started


def test_failed_command_keeps_its_status(provider: ProviderServer) -> None:
    provider.script(call("shell", {"command": "exit 3"}), text("It failed."))
    [command] = items(run_exec(provider, ANYWHERE, "--sandbox", "danger-full-access"), "command_execution")
    assert (command["exit_code"], command["status"]) == (3, "failed")


def test_default_sandbox_only_reads(provider: ProviderServer) -> None:
    Path("notes.txt").write_text("one")
    commands = (("shell", {"command": "touch b"}), ("shell", {"command": "cat notes.txt"}))
    provider.script(calls(("write", {"path": "a.txt", "content": "a"}), *commands), text("Done."))
    run = run_exec(provider, ANYWHERE)
    assert run.exit_code == 0, "a denial is no failure in this protocol"
    assert provider.requests[0].messages[-1]["content"] == "go", "read-only is no plan mode"
    assert not Path("a.txt").exists()
    assert not Path("b").exists()
    assert items(run, "file_change")[0]["status"] == "failed"
    assert "one" in provider.requests[1].results[2]


def test_rules_do_not_widen_the_sandbox(provider: ProviderServer, isolated: Path) -> None:
    config = isolated / "wolo" / "config" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text('permissions.allow = ["shell:touch *", "write:**"]\n')
    provider.script(calls(("shell", {"command": "touch made"}), ("write", {"path": "a.txt", "content": "a"})), text("Done."))
    run_exec(provider, ANYWHERE)
    assert not Path("made").exists()
    assert not Path("a.txt").exists()


def test_untrusted_policy_denies_commands(provider: ProviderServer) -> None:
    provider.script(call("shell", {"command": "touch made"}), text("Done."))
    run_exec(provider, ANYWHERE, "--sandbox", "workspace-write", "--config", 'approval_policy="untrusted"')
    assert not Path("made").exists()


def test_thread_is_resumed(provider: ProviderServer) -> None:
    provider.script(text("One."), text("Two."))
    id = run_exec(provider, ANYWHERE, prompt="first").lines[0]["thread_id"]
    assert run_exec(provider, ANYWHERE, "resume", id, prompt="second").lines[0]["thread_id"] == id
    prompts = [message["content"] for message in provider.requests[1].messages if message["role"] == "user"]
    assert prompts == ["first", "second"]


def test_answer_fits_the_schema(provider: ProviderServer) -> None:
    schema = {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]}
    Path("schema.json").write_text(json.dumps(schema))
    provider.script(text('```json\n{"x": 3}\n```'))
    run = run_exec(provider, ANYWHERE, "--output-schema", "schema.json")
    assert json.loads(str(items(run, "agent_message")[-1]["text"])) == {"x": 3}


def test_failure_of_the_model_ends_the_turn(provider: ProviderServer) -> None:
    provider.script(error(401, {"error": {"message": "bad key"}}))
    run = run_exec(provider, ANYWHERE)
    assert run.exit_code == 1
    assert run.lines[-1]["type"] == "turn.failed"
    assert "bad key" in run.lines[-1]["error"]["message"]


def test_key_of_the_program_stays_with_its_address(provider: ProviderServer) -> None:
    provider.script(call("shell", {"command": "env"}), text("Done."))
    options = (ANYWHERE, "--sandbox", "danger-full-access")
    env = {**at(provider.base_url, KEY, MODEL), "CODEX_API_KEY": "sk-program-0123456789abcdef"}
    run = run_wolo("exec", "--experimental-json", *options, stdin="go", env=env)
    assert run.exit_code == 0
    assert "sk-program" not in provider.requests[1].results[0]


@pytest.mark.parametrize(
    ("options", "name"),
    [
        (("--cyber-access-program", "standard"), "--cyber-access-program"),
        (("--sandbox", "sideways"), "sideways"),
        (("--config", "sandbox_workspace_write.network_access=true"), "network_access"),
        (("--config", 'approval_policy="perhaps"'), "perhaps"),
        (("--config", 'model_reasoning_effort="ultra"'), "ultra"),
        (("--config", "features.x=true"), "features"),
        (("--config", "nonsense"), "nonsense"),
        (("--output-schema", "missing.json"), "missing.json"),
        (("--cd", "missing"), "missing"),
        (("resume", "session_unknown"), "session_unknown"),
        (("--model",), "--model"),
    ],
)
def test_option_not_spoken_ends_with_its_name(provider: ProviderServer, options: tuple[str, ...], name: str) -> None:
    run = run_exec(provider, ANYWHERE, *options)
    assert run.exit_code in (2, 3)
    assert run.lines[-1]["type"] == "error"
    assert name in run.lines[-1]["message"]
    assert not provider.requests


def test_folder_without_a_repository_is_refused(provider: ProviderServer) -> None:
    run = run_exec(provider)
    assert run.exit_code == 2
    assert "git repository" in run.lines[-1]["message"]
    assert not provider.requests


def test_empty_prompt_is_refused(provider: ProviderServer) -> None:
    assert run_exec(provider, ANYWHERE, prompt="").exit_code == 2


def test_hang_up_ends_the_command(provider: ProviderServer) -> None:
    provider.script(call("shell", {"command": "sleep 60"}))
    options = (ANYWHERE, "--sandbox", "danger-full-access", "go")
    with start_wolo("exec", "--experimental-json", *options, env=at(provider.base_url, KEY, MODEL)) as running:
        assert running.stdout is not None
        while b"command_execution" not in running.stdout.readline():
            pass
        running.stdout.close()
        assert running.wait(30) != 0


def test_exec_without_the_flag_is_explained() -> None:
    run = run_wolo("exec", "fix the bug")
    assert run.exit_code == 2
    assert "wolo -p" in run.stderr
