"""Extensions: what they see and may change, and what becomes of wolo when they fail."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from tests.end_to_end.test_stopping import is_alive
from tests.end_to_end.waiting import wait_for
from tests.fakes.command import run_wolo
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import Hold, call, delta, finish, sse, text, usage
from tests.fakes.screen import pty_wolo
from wolo.places import find_places

HEADER = "from wolo.extension import *\n"


def write_extension(body: str, name: str = "mine.py", folder: Path | None = None) -> Path:
    folder = folder or find_places().config / "extensions"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(HEADER + body)
    return path


def test_events_reach_an_observer_in_order(provider: ProviderServer) -> None:
    write_extension(
        "from pathlib import Path\nEFFECTS = ['write']\nlog = Path('log').absolute()\n"
        "def extend(ext):\n    @ext.on()\n    async def see(event):\n"
        "        with log.open('a') as file: file.write(event.type + '\\n')\n"
    )
    provider.script(call("write", {"path": "a", "content": "x"}), text("Hi."))
    ran = run_wolo("-p", *provider.flags, "--yolo", "go")
    assert (ran.exit_code, ran.stdout) == (0, "Hi.\n"), ran.stderr
    types = Path("log").read_text().split()
    assert (types[0], types[-1]) == ("turn_started", "turn_ended")
    assert types.index("call_started") < types.index("call_ended") < types.index("text_streamed")


def test_events_of_subagents_reach_observers_that_ask(provider: ProviderServer) -> None:
    write_extension(
        "import json\nfrom pathlib import Path\nEFFECTS = ['write']\nlog = Path('log').absolute()\n"
        "def write(observer, event):\n"
        "    row = [observer, event.type, event.task, event.data.get('part_id')]\n"
        "    with log.open('a') as file: print(json.dumps(row), file=file)\n"
        "def extend(ext):\n"
        "    @ext.on('turn_started', 'task_started', 'call_ended', 'turn_ended', tasks=True)\n"
        "    def see(event): write('all', event)\n"
        "    @ext.on('turn_started', 'call_ended', 'turn_ended')\n"
        "    def see_own(event): write('own', event)\n"
    )
    provider.script(call("task", {"prompt": "Look.", "agent": "explore"}), call("glob", {"pattern": "*"}), text("Found."))
    provider.script(text("Done."))
    ran = run_wolo("-p", *provider.flags, "go")
    assert (ran.exit_code, ran.stdout) == (0, "Done.\n"), ran.stderr
    rows = [json.loads(line) for line in Path("log").read_text().splitlines()]
    seen = [(type, task) for observer, type, task, _ in rows if observer == "all"]
    [task] = [part_id for _, type, _, part_id in rows if type == "task_started"]
    inner = [("turn_started", task), ("call_ended", task), ("turn_ended", task)]
    assert seen == [("turn_started", ""), ("task_started", ""), *inner, ("call_ended", ""), ("turn_ended", "")]
    own = [(type, task) for observer, type, task, _ in rows if observer == "own"]
    assert own == [("turn_started", ""), ("call_ended", ""), ("turn_ended", "")]


def test_call_is_changed_and_judged_by_the_rules(provider: ProviderServer) -> None:
    write_extension(
        "def extend(ext):\n"
        "    @ext.on_call('shell')\n"
        "    def change(call): call.arguments['command'] = call.arguments['command'].replace('echo', 'touch')\n"
    )
    provider.script(call("shell", {"command": "echo a"}), call("shell", {"command": "echo b"}), text("Done."))
    ran = run_wolo("--json", *provider.flags, "--mode", "ask", "--allow", "shell:echo *", "--sandbox", "off", "go")
    assert (ran.exit_code, Path("a").exists()) == (4, False), ran.stderr
    provider.script(call("shell", {"command": "echo a"}), text("Done."))
    ran = run_wolo("--json", *provider.flags, "--yolo", "go")
    assert (ran.exit_code, Path("a").exists()) == (0, True), ran.stderr
    assert "touch a" in provider.requests[-1].results[0]


def test_extension_cannot_allow(provider: ProviderServer) -> None:
    write_extension("def extend(ext):\n    @ext.on_call()\n    def check(call): call.reply['decision'] = 'allow'\n")
    provider.script(call("shell", {"command": "touch a"}), text("Done."))
    ran = run_wolo("--json", *provider.flags, "--mode", "ask", "--sandbox", "off", "go")
    assert (ran.exit_code, Path("a").exists()) == (4, False), ran.stderr
    assert "gave no valid answer" in ran.stderr


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("import os; os._exit(3)", "ended with exit code 3"),
        ("while True: pass", "took longer than 1 s and was ended"),
        ("raise ValueError('a bug')", "failed: ValueError: a bug"),
    ],
    ids=("crash", "loop", "exception"),
)
def test_failing_guard_passes_no_call(provider: ProviderServer, body: str, words: str) -> None:
    write_extension(f"TIMEOUT_S = 1\ndef extend(ext):\n    @ext.on_call()\n    def check(call):\n        {body}\n")
    provider.script(call("write", {"path": "a", "content": "x"}), call("write", {"path": "b", "content": "x"}), text("Done."))
    ran = run_wolo("--json", *provider.flags, "--mode", "edit", "go")
    assert (ran.exit_code, Path("a").exists(), Path("b").exists()) == (4, False, False), ran.stderr
    assert words in ran.stderr
    assert ran.stderr.count("wolo: The extension mine") == 1
    assert all("The extension mine" in each for each in provider.requests[-1].results)


def test_guard_that_cannot_load_passes_no_call(provider: ProviderServer) -> None:
    write_extension("import nothing_of_that_name\ndef extend(ext):\n    @ext.on_call()\n    def check(call): ...\n")
    provider.script(call("write", {"path": "a", "content": "x"}), text("Done."))
    ran = run_wolo("--json", *provider.flags, "--mode", "edit", "go")
    assert (ran.exit_code, Path("a").exists()) == (4, False), ran.stderr
    assert "mine.py:2: ModuleNotFoundError" in ran.stderr


def test_request_guard_that_fails_sends_nothing(provider: ProviderServer) -> None:
    write_extension("def extend(ext):\n    @ext.on_request\n    def check(request): raise ValueError('no')\n")
    ran = run_wolo("-p", *provider.flags, "go")
    assert (ran.exit_code, provider.requests) == (1, []), ran.stderr
    assert "Nothing was sent: the extension mine failed: ValueError: no" in ran.stderr


def test_result_guard_that_fails_withholds_result(provider: ProviderServer) -> None:
    Path("a.txt").write_text("inside")
    write_extension("def extend(ext):\n    @ext.on_result()\n    def check(result): raise ValueError('no')\n")
    provider.script(call("read", {"path": "a.txt"}), text("Done."))
    assert run_wolo("-p", *provider.flags, "go").exit_code == 0
    assert provider.requests[-1].results[0].startswith("[withheld] The extension mine failed: ValueError: no.")


def test_slow_observer_delays_nothing_and_leaves_no_process(provider: ProviderServer) -> None:
    write_extension(
        "import os, time\nEFFECTS = ['write']\ndef extend(ext):\n    @ext.on('turn_started')\n    def see(event):\n"
        "        open('pid', 'w').write(str(os.getpid()))\n        time.sleep(600)\n"
    )
    provider.script(text("Hi."))
    ran = run_wolo("-p", *provider.flags, "go")
    assert (ran.exit_code, ran.stdout) == (0, "Hi.\n"), ran.stderr
    assert not is_alive(int(Path("pid").read_text()))


def test_extension_sees_placeholders_in_place_of_secrets(provider: ProviderServer, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = "sk-ant-" + "q7" * 20
    Path(".env").write_text(f"API_TOKEN={secret}\n")
    write_extension(
        "EFFECTS = ['write']\nfrom pathlib import Path\nseen = Path('seen').absolute()\n"
        "def log(text):\n    with seen.open('a') as file: file.write(text + '\\n')\n"
        "def extend(ext):\n"
        "    @ext.on()\n    def all(event): log(str(event.data))\n"
        "    @ext.on_call()\n    def check(call): log(str(call.arguments))\n"
        "    @ext.on_result()\n    def after(result): log(result.output)\n"
        "    @ext.on_request\n    def before(request): log(str(request.messages))\n"
        "    @ext.on_prompt\n    def prompt(prompt): log(prompt.text)\n"
    )
    provider.script(call("shell", {"command": f"echo {secret}"}), text(f"It is {secret}."))
    ran = run_wolo("-p", *provider.flags, "--yolo", f"print {secret}")
    assert ran.exit_code == 0, ran.stderr
    assert "echo" in Path("seen").read_text()
    assert secret not in Path("seen").read_text()


def test_extension_without_effects_changes_nothing(provider: ProviderServer) -> None:
    write_extension("def extend(ext):\n    @ext.on_prompt\n    def see(prompt): open('made', 'w')\n")
    provider.script(text("Hi."))
    ran = run_wolo("-p", *provider.flags, "--sandbox", "required", "go")
    assert (ran.exit_code, Path("made").exists()) == (1, False)
    assert "could not check this" in ran.stderr


def test_project_extension_needs_trust_and_consent(provider: ProviderServer) -> None:
    path = write_extension(
        "def extend(ext):\n    @ext.tool()\n    def hello():\n        'Greet.'\n", folder=Path(".wolo/extensions")
    )
    provider.otherwise = text("Done.")
    assert "is not trusted" in run_wolo("-p", *provider.flags, "go").stderr
    asked = run_wolo("-p", *provider.flags, "--trust", "go")
    assert "need your consent: wolo extensions allow mine" in " ".join(asked.stderr.split())
    shown = run_wolo("extensions", "allow", "mine")
    assert "def hello" in shown.stdout
    assert run_wolo("-p", *provider.flags, "--trust", "go").exit_code == 0
    assert "hello" in [each["function"]["name"] for each in provider.requests[-1].json["tools"]]
    path.write_text(path.read_text().replace("hello", "goodbye"))
    assert run_wolo("-p", *provider.flags, "--trust", "go").exit_code == 0
    assert "goodbye" not in [each["function"]["name"] for each in provider.requests[-1].json["tools"]]


def test_state_is_saved_with_the_session(provider: ProviderServer) -> None:
    write_extension(
        "def extend(ext):\n    @ext.command('count')\n    def count(arguments):\n"
        "        ext.save((ext.state or 0) + 1)\n        ext.prompt(f'number {ext.state}')\n"
    )
    provider.otherwise = text("Done.")
    first = run_wolo("--json", *provider.flags, "/count")
    run_wolo("-p", *provider.flags, "-r", first.json["session_id"], "/count")
    assert provider.requests[0].json["messages"][-1]["content"].endswith("number 1")
    assert provider.requests[-1].json["messages"][-1]["content"].endswith("number 2")


def test_extensions_are_written_listed_and_tested() -> None:
    made = run_wolo("extensions", "new", "greeter")
    assert made.exit_code == 0, made.stderr
    folder = find_places().config / "extensions"
    assert (folder / "greeter.py").exists()
    assert (folder / "tests/test_greeter.py").exists()
    again = run_wolo("extensions", "new", "greeter")
    assert (again.exit_code, "exists" in again.stderr) == (2, True)
    listed = run_wolo("extensions", "list", "--json")
    assert [(row["name"], row["standing"]) for row in listed.json] == [("greeter", "yours")]
    tested = run_wolo("extensions", "test", "greeter")
    assert tested.exit_code == 0, tested.stderr + tested.stdout
    assert run_wolo("extensions", "test", "none").exit_code == 2
    (folder / "greeter.py").write_text("def extend(:\n")
    assert run_wolo("extensions", "test", "greeter").exit_code == 1
    for name in ("../a", "a b", "", "1"):
        assert run_wolo("extensions", "new", name).exit_code == 2


def test_killed_wolo_leaves_no_extension_behind(provider: ProviderServer) -> None:
    write_extension(
        "import os\nEFFECTS = ['write']\ndef extend(ext):\n    @ext.on('turn_started')\n    def see(event):\n"
        "        with open('pid.new', 'w') as file: file.write(str(os.getpid()))\n"
        "        os.rename('pid.new', 'pid')\n        while True: pass\n"
    )
    hold = Hold()
    provider.script(sse(delta("Some words.\n"), hold, finish("stop", usage())))
    with pty_wolo(*provider.flags, "go") as terminal:
        terminal.wait_for("Some words.")
        wait_for(lambda: Path("pid").exists())
        process = int(Path("pid").read_text())
        assert is_alive(process)
        terminal.child.kill(signal.SIGTERM)
        terminal.wait_for_exit()
    wait_for(lambda: not is_alive(process))
