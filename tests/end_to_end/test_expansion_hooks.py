"""Hooks at the expansion of custom commands, and commands in skills that the user calls."""

from __future__ import annotations

import json
from pathlib import Path

from tests.fakes.command import run_wolo
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import text
from wolo.places import find_home, find_places

HOOK = """import json, sys
event = json.load(sys.stdin)
open("seen", "w").write(json.dumps(event))
if "now" in event["command_args"]:
    print("not now", file=sys.stderr)
    sys.exit(2)
print("It is Friday.")
"""


def put(path: Path, content: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)


def test_hook_blocks_or_extends_an_expanded_command(provider: ProviderServer) -> None:
    put(find_home() / ".claude/commands/c++.md", "Compile $ARGUMENTS.")
    hook = f"python3 {Path('hook.py').absolute()}"
    put(Path("hook.py"), HOOK)
    entry = {"matcher": "c..", "hooks": [{"type": "command", "command": hook}]}
    put(find_places().config / "hooks.json", json.dumps({"hooks": {"UserPromptExpansion": [entry]}}))
    provider.script(text("Done."))
    blocked = run_wolo("-p", *provider.flags, "/c++ it now")
    assert (blocked.exit_code, "A hook blocked /c++: not now" in blocked.stderr) == (2, True)
    assert provider.requests == []
    assert run_wolo("-p", *provider.flags, "/c++ it").stdout == "Done.\n"
    (asked,) = provider.requests
    assert "Compile it.\n\n<hook_context>\nIt is Friday.\n</hook_context>" in json.dumps(asked.messages).replace("\\n", "\n")
    seen = json.loads(Path("seen").read_text())
    names = ("hook_event_name", "expansion_type", "command_name", "command_args", "prompt")
    assert [seen[name] for name in names] == ["UserPromptExpansion", "slash_command", "c++", "it", "/c++ it"]


def test_users_skill_runs_its_commands_when_called(provider: ProviderServer) -> None:
    body = "---\nname: 出力\ndescription: x\n---\nNow: !`echo $((6 * 7))` for $ARGUMENTS; price $1."
    put(find_home() / ".claude/skills/out/SKILL.md", body)
    provider.script(text("Done."))
    done = run_wolo("-p", *provider.flags, "/skill:出力 you")
    assert done.stdout == "Done.\n"
    sent = json.dumps(provider.requests[0].messages, ensure_ascii=False)
    assert "Now: 42 for you; price $1." in sent


def test_skill_of_a_project_runs_no_unallowed_command(provider: ProviderServer) -> None:
    put(Path(".cursor/skills/out/SKILL.md"), "---\nname: out\ndescription: x\n---\nNow: !`touch made`.")
    provider.script(text("Done."))
    root = str(Path.cwd())
    done = run_wolo("-p", *provider.flags, "--trust", "--mode", "ask", "/skill:out", env={"PWD": root})
    assert "Not run, sent as text: !`touch made`" in done.stderr
    assert not Path("made").exists()
