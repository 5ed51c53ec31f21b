"""The Claude Agent SDK for Python drives wolo.

Examples of claude-agent-sdk 0.2.189 that run unchanged, with `claude` on the PATH being wolo: `EXAMPLES`. Two do not:
`plugin_example.py` (wolo ends it with the name of the option, --plugin-dir) and `streaming_mode_ipython.py`, which is no program.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fakes.provider_server import KEY, MODEL, ProviderServer
from tests.fakes.replies import call, calls, text
from tests.frontends.sdks import at, require_python_sdk, run_python

EXAMPLES = {
    "agents.py": (),
    "filesystem_agents.py": (),
    "hooks.py": ("all",),
    "include_partial_messages.py": (),
    "max_budget_usd.py": (),
    "mcp_calculator.py": (),
    "quick_start.py": (),
    "setting_sources.py": ("all",),
    "stderr_callback_example.py": (),
    "streaming_mode.py": ("all",),
    "streaming_mode_trio.py": (),
    "system_prompt.py": (),
    "tool_permission_callback.py": (),
    "tools_option.py": (),
}
"""With their arguments."""
SILENT = ("stderr_callback_example.py", "setting_sources.py")
"""They print no answer; the second prints the slash commands, of which wolo announces none."""


@pytest.mark.parametrize("name", EXAMPLES)
def test_example_runs_unchanged(provider: ProviderServer, isolated: Path, name: str) -> None:
    program = require_python_sdk() / "examples" / name
    provider.otherwise = text("The answer is four.")
    env = at(provider.base_url, KEY, MODEL)
    if name == "max_budget_usd.py":  # a limit needs a price
        config = isolated / "wolo" / "config" / "config.toml"
        config.parent.mkdir(parents=True)
        server = f'[providers.here]\nbase_url = "{provider.base_url}"\napi_key = "{KEY}"\n'
        models = f'models = [{{id = "{MODEL}", price = {{input = 1.0, output = 1.0}}}}]\n'
        config.write_text(f'model = "here/{MODEL}"\n{server}{models}')
        env = {}
    run = run_python(program, *EXAMPLES[name], env=env)
    assert run.returncode == 0, run.stderr + run.stdout
    assert provider.requests
    assert "four" in run.stdout or name in SILENT


PROGRAM = """
import asyncio, os
from claude_agent_sdk import *

@tool("add", "Add two numbers", {"a": float, "b": float})
async def add(args):
    return {"content": [{"type": "text", "text": f"sum {args['a'] + args['b']}"}]}

async def decide(name, arguments, context):
    print("asked", name)
    if name == "Bash":
        return PermissionResultDeny(message="no commands")
    return PermissionResultAllow(updated_input={**arguments, "content": "from the program"})

async def before(arguments, id, context):
    print("before", arguments["tool_name"], arguments["tool_input"]["file_path"].rpartition("/")[2])
    return {}

async def main():
    options = ClaudeAgentOptions(
        cli_path=os.environ["WOLO"],
        can_use_tool=decide,
        mcp_servers={"calc": create_sdk_mcp_server("calc", "1.0", [add])},
        allowed_tools=["mcp__calc__add"],
        hooks={"PreToolUse": [HookMatcher(matcher="Write", hooks=[before])]},
        include_partial_messages=True,
        max_turns=5,
    )
    async with ClaudeSDKClient(options) as client:
        print("servers", [(each["name"], each["status"]) for each in (await client.get_mcp_status())["mcpServers"]])
        await client.query("work")
        async for message in client.receive_response():
            if isinstance(message, StreamEvent) and message.event["type"] == "content_block_delta":
                print("delta", message.event["delta"].get("text"))
            elif isinstance(message, ResultMessage):
                print("result", message.subtype, message.result, list(message.model_usage))
        await client.set_permission_mode("acceptEdits")
        await client.query("again")
        async for message in client.receive_response():
            if isinstance(message, ResultMessage):
                print("second", message.result, message.num_turns)

asyncio.run(main())
"""


def test_callbacks_servers_and_turns_work(provider: ProviderServer, isolated: Path) -> None:
    program = isolated / "program.py"
    program.write_text(PROGRAM)
    provider.script(
        calls(
            ("mcp__calc__add", {"a": 1, "b": 2}),
            ("shell", {"command": "touch made"}),
            ("write", {"path": "a.txt", "content": "a"}),
        ),
        text("Done."),
        call("write", {"path": "b.txt", "content": "b"}),
        text("Again."),
    )
    run = run_python(program, env=at(provider.base_url, KEY, MODEL))
    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines() == [
        "servers [('calc', 'connected')]",
        *("delta None",) * 3,
        *("asked Bash", "before Write a.txt", "asked Write"),
        *("delta Done.", "result success Done. ['custom/test-model']"),
        *("before Write b.txt", "second Again. 2"),
    ]
    assert Path("a.txt").read_text() == "from the program"
    assert Path("b.txt").read_text() == "b"
    assert not Path("made").exists()
    assert provider.requests[1].results[0] == "sum 3"


REWINDING = """
import asyncio, os
from pathlib import Path
from claude_agent_sdk import *

async def main():
    options = ClaudeAgentOptions(
        cli_path=os.environ["WOLO"],
        permission_mode="acceptEdits",
        allowed_tools=["Bash"],
        enable_file_checkpointing=True,
        extra_args={"replay-user-messages": None},
    )
    async with ClaudeSDKClient(options) as client:
        await client.query("write")
        messages = [message async for message in client.receive_response()]
        prompts = [m.uuid for m in messages if isinstance(m, UserMessage) and m.uuid and "write" in str(m.content)]
        print(Path("a.txt").exists())
        await client.rewind_files(prompts[0])
        print(Path("a.txt").exists())
        await client.query("wait")
        async for message in client.receive_response():
            if isinstance(message, TaskStartedMessage):
                task = message.task_id
            elif isinstance(message, AssistantMessage) and message.parent_tool_use_id:
                await client.stop_task(task)
            elif isinstance(message, TaskNotificationMessage):
                print(message.status)
            elif isinstance(message, ResultMessage):
                print(message.result)

asyncio.run(main())
"""


def test_files_are_rewound_and_tasks_stopped(provider: ProviderServer, isolated: Path) -> None:
    program = isolated / "program.py"
    program.write_text(REWINDING)
    provider.script(call("write", {"path": "a.txt", "content": "a"}), text("Written."))
    provider.script(call("task", {"prompt": "wait"}), call("shell", {"command": "sleep 60"}), text("Stopped."))
    run = run_python(program, env=at(provider.base_url, KEY, MODEL))
    assert run.stdout.splitlines() == ["True", "False", "stopped", "Stopped."], run.stderr


FAILING = """
import asyncio, os
from claude_agent_sdk import *

async def main():
    options = ClaudeAgentOptions(cli_path=os.environ["WOLO"], betas=["context-1m-2025-08-07"])
    try:
        async for message in query(prompt="go", options=options):
            print(message)
    except Exception as error:
        print(type(error).__name__, error)

asyncio.run(main())
"""


def test_option_not_spoken_is_the_sdks_error(isolated: Path) -> None:
    program = isolated / "program.py"
    program.write_text(FAILING)
    run = run_python(program, env={})
    assert run.stdout.startswith("ResultError")
    assert "--betas" in run.stdout
