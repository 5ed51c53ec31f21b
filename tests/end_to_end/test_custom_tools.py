"""Python functions of the user as tools: in files of the user, of a project, and of packages."""

from __future__ import annotations

import json
from pathlib import Path

from tests.end_to_end.test_stopping import is_alive
from tests.fakes.command import run_wolo
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import call, text
from wolo.extensions.custom_tools.tool_packages import find_installed
from wolo.places import find_places

WEATHER = '''
import os, sys
from pydantic import BaseModel

class Place(BaseModel):
    city: str

def weather(place: Place, days: int = 1) -> dict:
    """The weather of a place.

    Args:
        place: Where.
        days: How many.
    """
    print("looking")
    os.write(1, b"noise\\n")
    return {"city": place.city, "days": days}

def _private():
    """No tool."""

def undescribed(): ...

async def later(text: str) -> str:
    """Say it later."""
    return text

def broken() -> None:
    """Fail."""
    inner()

def inner():
    raise ValueError("no weather today")
'''


def write_tool(source: str, name: str = "weather.py", folder: Path | None = None) -> Path:
    folder = folder or find_places().config / "tools"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(source)
    return folder / name


def offered(provider: ProviderServer) -> list[str]:
    return [each["function"]["name"] for each in provider.requests[-1].json["tools"]]


def test_function_is_a_tool_and_its_result_read(provider: ProviderServer) -> None:
    path = write_tool(WEATHER)
    provider.script(
        call("weather", {"place": {"city": "Rome"}, "days": 2}),
        call("later", {"text": "x" * 10}),
        call("broken", {}),
        call("weather", {"place": {"city": 1}}),
        text("Sunny."),
    )
    ran = run_wolo("-p", *provider.flags, "--yolo", "the weather?")
    assert (ran.exit_code, ran.stdout) == (0, "Sunny.\n"), ran.stderr
    assert offered(provider)[-3:] == ["weather", "later", "broken"]
    first, later, broken, wrong = provider.requests[-1].results
    assert json.loads(first) == {"city": "Rome", "days": 2}
    assert later == "x" * 10
    assert f'File "{path}", line 30, in broken' in broken
    assert broken.rstrip().endswith("ValueError: no weather today")
    assert "custom_tools" not in broken.replace("test_custom_tools", "")
    assert wrong.startswith("`place`: city: Input should be a valid string")


def test_pure_tool_runs_inside_the_sandbox_others_ask(provider: ProviderServer) -> None:
    source = (
        'import pathlib\n{}\ndef note() -> str:\n    """Note it."""\n'
        '    pathlib.Path("note.txt").write_text("x")\n    return "noted"\n'
    )
    write_tool(source.format(""), "a.py")
    provider.script(call("note", {}), text("Done."))
    assert run_wolo("-p", *provider.flags, "--sandbox", "required", "note it").exit_code == 0
    assert not Path("note.txt").exists()
    assert "Read-only file system" in provider.requests[-1].results[0] or "Permission denied" in provider.requests[-1].results[0]
    write_tool(source.format('EFFECTS = ["write"]'), "a.py")
    provider.script(call("note", {}), text("Done."))
    denied = run_wolo("--json", *provider.flags, "note it")
    assert (denied.exit_code, Path("note.txt").exists()) == (4, False), denied.stderr
    provider.script(call("note", {}), text("Done."))
    allowed = run_wolo("--json", *provider.flags, "--allow", "tool:note", "note it")
    assert (allowed.exit_code, allowed.json["files_changed"]) == (0, ["note.txt"]), allowed.stderr


def test_crash_and_timeout_are_results_next_call_works(provider: ProviderServer) -> None:
    write_tool(
        'TIMEOUT_S = 2\nimport os, time\ndef crash():\n    """Crash."""\n    os.write(2, b"segfault, say"); os._exit(9)\n'
        'def hang():\n    """Hang."""\n    open("pid", "w").write(str(os.getpid()))\n    time.sleep(600)\n'
        'def fine() -> int:\n    """Fine."""\n    return 1\n'
    )
    provider.script(call("crash", {}), call("fine", {}), call("hang", {}), call("fine", {}), text("Done."))
    assert run_wolo("-p", *provider.flags, "--yolo", "go").exit_code == 0
    crashed, fine, hung, again = provider.requests[-1].results
    assert "its process ended with exit code 9" in crashed
    assert "segfault, say" in crashed
    assert "hang took longer than 2 s and was ended." in hung
    assert (fine, again) == ("1", "1")
    assert not is_alive(int(Path("pid").read_text()))


def test_project_tool_needs_trust_and_a_valid_consent(provider: ProviderServer) -> None:
    ran_it = Path.home() / "ran"
    source = (
        f'EFFECTS = ["write"]\nopen({str(ran_it)!r}, "a").write("x")\n'
        'def count_words(text: str) -> int:\n    """Count words."""\n    return len(text.split())\n'
    )
    path = write_tool(source, "words.py", Path(".wolo/tools"))
    provider.otherwise = text("Done.")
    untrusted = run_wolo("-p", *provider.flags, "go")
    assert "is not trusted" in untrusted.stderr
    asked = run_wolo("-p", *provider.flags, "--trust", "go")
    assert "need your consent: wolo tools allow words" in asked.stderr
    assert "count_words" not in offered(provider)
    listed = run_wolo("tools", "list", "--trust", "--json")
    assert [(row["name"], row["standing"]) for row in listed.json] == [("count_words", "needs consent")]
    assert run_wolo("tools", "test", "count_words", "--trust").exit_code == 2
    assert not ran_it.exists()
    shown = run_wolo("tools", "allow", "count_words")
    assert "return len(text.split())" in shown.stdout
    assert run_wolo("-p", *provider.flags, "--trust", "go").exit_code == 0
    assert "count_words" in offered(provider)
    path.write_text(source.replace("words", "letters"))
    assert run_wolo("-p", *provider.flags, "--trust", "go").exit_code == 0
    assert "count_letters" not in offered(provider)


def test_mistake_costs_one_file_or_function_with_line(provider: ProviderServer) -> None:
    write_tool(
        'def read(path: str) -> str:\n    """Read."""\n    return \'\'\n\ndef good() -> str:\n    """Good."""\n    return \'\'\n',
        "a.py",
    )
    write_tool("def oops(:\n", "b.py")
    write_tool("import json\nimport nothing_of_that_name\n", "c.py")
    write_tool('def good() -> str:\n    """Again."""\n\ndef many(*args) -> str:\n    """Many."""\n', "d.py")
    write_tool('EFFECTS = ["magic"]\ndef wizard():\n    """Magic."""\n', "e.py")
    provider.otherwise = text("Done.")
    ran = run_wolo("-p", *provider.flags, "go")
    assert ran.exit_code == 0, ran.stderr
    assert offered(provider)[-1] == "good"
    assert "wizard" not in offered(provider)
    said = " ".join(ran.stderr.split())
    for words in (
        "a.py: read is not offered: wolo has a tool of this name.",
        "b.py:1: SyntaxError: invalid syntax",
        "c.py:2: ModuleNotFoundError: No module named 'nothing_of_that_name'",
        "a.py has a tool of this name.",
        "d.py:4: many is no tool: the parameter args cannot be passed by name",
        "EFFECTS: magic is unknown; there are network, write",
    ):
        assert words in said, ran.stderr


def test_tools_are_listed_and_tried_without_a_model() -> None:
    path = write_tool(WEATHER)
    listed = run_wolo("tools", "list")
    assert f"weather  ({path}, yours)\n  The weather of a place." in listed.stdout
    tried = run_wolo("tools", "test", "weather", "--input", '{"place": {"city": "Rome"}}', "--json")
    assert json.loads(tried.json["output"]) == {"city": "Rome", "days": 1}
    failed = run_wolo("tools", "test", "broken")
    assert (failed.exit_code, "no weather today" in failed.stdout) == (1, True)
    for words, said in (
        (("test", "none"), "There is no custom tool none."),
        (("test", "weather", "--input", "{"), "--input is not valid JSON"),
        (("allow", "none"), "There is no custom tool none in this project."),
    ):
        ran = run_wolo("tools", *words)
        assert (ran.exit_code, said in ran.stderr) == (2, True), ran.stderr


def test_a_second_start_needs_no_process(provider: ProviderServer) -> None:
    ran_it = Path.home() / "ran"
    write_tool(f'EFFECTS = ["write"]\nopen({str(ran_it)!r}, "a").write("x")\n{WEATHER}')
    provider.otherwise = text("Done.")
    for _ in range(2):
        assert run_wolo("-p", *provider.flags, "go").exit_code == 0
        assert "weather" in offered(provider)
    assert ran_it.read_text() == "x"


def test_packages_offer_tools_by_entry_points(tmp_path: Path) -> None:
    folder = tmp_path / "site"
    (folder / "greeting-1.0.dist-info").mkdir(parents=True)
    (folder / "greeting-1.0.dist-info/entry_points.txt").write_text(
        "[console_scripts]\nx = a:b\n\n[wolo.tools]\ngreet = greeting:greet\nall = greeting.tools\n"
    )
    known = tmp_path / "cache/known"
    assert find_installed(known, [str(folder)], "1") == ["all=greeting.tools", "greet=greeting:greet"]
    assert find_installed(known, [], "1") == ["all=greeting.tools", "greet=greeting:greet"]
    assert find_installed(known, [], "2") == []


def test_session_with_custom_tool_replays_without_it(provider: ProviderServer) -> None:
    path = write_tool(WEATHER)
    provider.script(call("later", {"text": "soon"}), text("Done."))
    ran = run_wolo("--json", *provider.flags, "--yolo", "go")
    path.unlink()
    replayed = run_wolo("replay", ran.json["session_id"], "--json")
    assert (replayed.exit_code, replayed.json["same"]) == (0, True), replayed.stdout


def test_file_loads_inside_the_sandbox_unless_effects_declared() -> None:
    source = (
        'from pathlib import Path\ntry:\n    Path({path!r}).touch()\nexcept OSError:\n    pass\ndef {name}():\n    """Do."""\n'
    )
    marks = {name: Path.cwd() / name for name in ("inside", "outside")}
    write_tool(source.format(path=str(marks["inside"]), name="inside"), "inside.py")
    write_tool('EFFECTS = ["write"]\n' + source.format(path=str(marks["outside"]), name="outside"), "outside.py")
    listed = run_wolo("tools", "list", "--json")
    assert [row["name"] for row in listed.json] == ["inside", "outside"]
    assert [name for name, path in marks.items() if path.exists()] == ["outside"]
