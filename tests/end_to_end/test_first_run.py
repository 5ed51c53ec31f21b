"""The first run in a terminal, with nothing configured: what this machine has is offered, and nothing is taken unasked."""

from __future__ import annotations

import os
import signal
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.fakes.command import run_wolo
from tests.fakes.provider_server import Asked, ProviderServer
from tests.fakes.replies import Hold, error, sse, whole
from tests.fakes.replies import text as chat_text
from tests.fakes.replies_ollama import call, text
from tests.fakes.screen import Terminal, pty_wolo

WITHOUT_ENGINE = 'import sys\nsys.modules["xllamacpp"] = None\n'
WITHOUT_WEIGHTS = """\
import importlib.machinery, sys, types
engine = types.ModuleType("xllamacpp")
engine.__spec__ = importlib.machinery.ModuleSpec("xllamacpp", None)
sys.modules["xllamacpp"] = engine
"""


@contextmanager
def first_run(folder: Path, machine: str, *args: str, rows: int = 24, columns: int = 80, **env: str) -> Iterator[Terminal]:
    """`wolo` on a machine that lacks something: `machine` is run before it."""
    (folder / "sitecustomize.py").write_text(f"import importlib.machinery\n{machine}")
    path = os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH", ""))))
    with pty_wolo(*args, env={"PYTHONPATH": path, **env}, rows=rows, columns=columns) as terminal:
        yield terminal


def number_of(terminal: Terminal, name: str) -> str:
    return next(line.split()[0] for line in terminal.lines if line.strip().endswith(name) and line.split()[0].isdecimal())


@pytest.fixture
def ollama(provider: ProviderServer) -> ProviderServer:
    provider.pages["/v1/models"] = whole({"object": "list", "data": [{"id": "qwen3:8b"}, {"id": "gemma3:27b"}]})
    return provider


def test_local_model_server_is_offered_and_choice_saved(ollama: ProviderServer, tmp_path: Path) -> None:
    ollama.script(text("Hello from Gemma."), text("Hello again."))
    with first_run(tmp_path, WITHOUT_ENGINE, "say hello", OLLAMA_HOST=ollama.origin) as terminal:
        terminal.wait_for("Which one?")
        terminal.wait_for("  1  ollama/qwen3:8b")
        assert not ollama.requests, "a server was used unasked"
        terminal.enter("2")
        terminal.wait_for("Hello from Gemma.")
        assert terminal.wait_for_exit() == 0
    assert ollama.requests[0].json["model"] == "gemma3:27b"
    assert run_wolo("-p", "again", env={"OLLAMA_HOST": ollama.origin}).stdout == "Hello again.\n"


def test_chosen_server_is_tried_out_on_request(ollama: ProviderServer, tmp_path: Path) -> None:
    ollama.linted = False  # every request is a conversation of its own
    ollama.otherwise = lambda asked: call("echo", {"word": "red"}) if _wants_call(asked) else text("OK")
    with first_run(tmp_path, WITHOUT_ENGINE, "say hello", OLLAMA_HOST=ollama.origin) as terminal:
        terminal.wait_for("Which one?")
        terminal.enter("1?")
        assert terminal.wait_for_exit() == 0
    assert terminal.shows("It answers, can call tools")
    assert not terminal.shows("results of calls")  # the findings are for `models probe`
    assert len(list((tmp_path / "wolo/cache/probes").iterdir())) == 1
    assert ollama.requests[-1].messages[-1]["content"] == "say hello"


def test_server_is_chosen_from_a_list_before_conversation(ollama: ProviderServer, tmp_path: Path) -> None:
    ollama.script(text("Hello from Gemma."))
    with first_run(tmp_path, WITHOUT_ENGINE, OLLAMA_HOST=ollama.origin, GITHUB_TOKEN="ghp_0123456789abcdef") as terminal:
        terminal.wait_for("No model is set up. Choose a provider:")
        terminal.wait_for("›  1  ollama/qwen3:8b  Ollama, on this machine")
        terminal.wait_for("   3  GitHub Models  API key in $GITHUB_TOKEN")
        assert not ollama.requests, "a server was used unasked"
        terminal.press("down")
        terminal.wait_for("›  2  ollama/gemma3:27b")
        terminal.press("enter")
        terminal.wait_for("ollama/gemma3:27b is now your default model.")
        terminal.wait_for(" · ollama/gemma3:27b · ")
        terminal.enter("say hello")
        terminal.wait_for("Hello from Gemma.")
        terminal.press("ctrl-d")
        assert terminal.wait_for_exit() == 0
        assert not terminal.shows("Choose a provider:")


def test_a_switch_tries_it_out(ollama: ProviderServer, tmp_path: Path) -> None:
    ollama.linted = False
    ollama.otherwise = lambda asked: call("echo", {"word": "red"}) if _wants_call(asked) else text("OK")
    with first_run(tmp_path, WITHOUT_ENGINE, OLLAMA_HOST=ollama.origin) as terminal:
        terminal.wait_for("[ ] try out what it can do")
        terminal.press("tab")
        terminal.wait_for("[x] try out what it can do")
        terminal.press("enter")
        terminal.wait_for("It answers, can call tools")
        terminal.wait_for(" · ollama/qwen3:8b · ")
        terminal.press("ctrl-d")
        assert terminal.wait_for_exit() == 0


def _wants_call(asked: Asked) -> bool:
    return asked.messages[-1]["role"] == "user" and "echo" in str(asked.json.get("tools"))


@pytest.mark.parametrize("key", ["enter", "ctrl-d", "ctrl-c"])
def test_no_is_an_answer(ollama: ProviderServer, tmp_path: Path, key: str) -> None:
    with first_run(tmp_path, WITHOUT_ENGINE, "say hello", OLLAMA_HOST=ollama.origin) as terminal:
        terminal.wait_for("Which one?")
        terminal.press(key)
        assert terminal.wait_for_exit() == 2
    assert not ollama.requests
    assert not (tmp_path / "wolo/config/config.toml").exists()
    assert terminal.shows("No model is set up. Do one of these")


def test_large_download_needs_a_yes(provider: ProviderServer, tmp_path: Path) -> None:
    mirror = {"OLLAMA_HOST": "127.0.0.1:1", "HF_ENDPOINT": provider.origin}
    with first_run(tmp_path, WITHOUT_WEIGHTS, "say hello", **mirror) as terminal:
        terminal.wait_for("Which one?")
        terminal.wait_for("the embedded model")
        terminal.wait_for("Apache-2.0, 491 MB to download")
        terminal.enter(number_of(terminal, "the embedded model"))
        terminal.wait_for("Download it? [y/N]")
        terminal.press("enter")
        terminal.wait_until(lambda: terminal.times("Which one?") == 2)
        terminal.press("enter")
        assert terminal.wait_for_exit() == 2
    assert not provider.looked_up
    with first_run(tmp_path, WITHOUT_WEIGHTS, "say hello", **mirror) as terminal:
        terminal.wait_for("Which one?")
        terminal.enter(number_of(terminal, "the embedded model"))
        terminal.wait_for("Download it? [y/N]")
        terminal.enter("y")
        terminal.wait_until(lambda: terminal.times("Which one?") == 2)
        terminal.press("enter")
        assert terminal.wait_for_exit() == 2
    assert provider.looked_up[0].path.startswith("/Qwen/")
    assert not terminal.shows("Traceback")
    assert not (tmp_path / "wolo/config/config.toml").exists()


# An API key

KEY = "sk-acme-0123456789abcdefWXYZ"


@contextmanager
def first_key(
    acme: ProviderServer, folder: Path, *args: str, rows: int = 24, columns: int = 80, more: str = ""
) -> Iterator[Terminal]:
    """Somebody with a key and nothing else; the address they bring along stands in their settings."""
    acme.linted = False
    settings = folder / "wolo/config/config.toml"
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text(
        f'[providers.acme]\nlabel = "Acme"\nbase_url = "{acme.base_url}"\nkey_env = ["ACME_API_KEY"]\ndefault_model = "large"\n'
        'models = [{id = "large"}, {id = "small"}]\n' + more.replace("URL", acme.base_url)
    )
    with first_run(folder, WITHOUT_ENGINE, *args, rows=rows, columns=columns, OLLAMA_HOST="127.0.0.1:1") as terminal:
        terminal.wait_for("Which one?" if args else "Choose a provider:")
        yield terminal


def test_a_key_is_all_a_newcomer_needs(provider: ProviderServer, tmp_path: Path) -> None:
    provider.script(chat_text("Hi."), chat_text("Hello from Acme."), chat_text("Still here."))
    with first_key(provider, tmp_path) as terminal:
        terminal.wait_for("wolo is a coding agent")
        terminal.wait_for("1  paste an API key  recognised by its beginning")
        terminal.wait_for("2  a company's server (URL)")
        terminal.wait_for("3  a small model inside wolo  no key, no account")
        terminal.wait_for("4  Acme  needs an API key")
        terminal.type("anthro")
        terminal.wait_for("Anthropic")
        terminal.type("\x15acme")
        terminal.wait_for("1 of 1")
        terminal.press("enter")
        terminal.wait_for("Enter continue")
        terminal.enter(KEY)
        terminal.wait_for("Acme accepted the key.")
        terminal.wait_for("Which model of Acme?")
        terminal.type("2")
        terminal.wait_for("2 of 2")
        terminal.press("enter")
        terminal.wait_for("acme/small is now your default model.")
        terminal.wait_for(" · acme/small · ")
        terminal.enter("say hello")
        terminal.wait_for("Hello from Acme.")
        terminal.press("ctrl-d")
        assert terminal.wait_for_exit() == 0
        assert KEY.encode() not in terminal.raw
    assert [asked.json["model"] for asked in provider.requests] == ["large", "small"]
    assert KEY not in str([asked.json for asked in provider.requests])
    assert run_wolo("-p", "again").stdout == "Still here.\n"
    kept = [path for path in (tmp_path / "wolo").rglob("*") if path.is_file() and KEY in path.read_text("latin-1")]
    assert [(path.name, path.stat().st_mode & 0o777) for path in kept] == [("keys.toml", 0o600)]


GROQ = '[providers.groq]\nbase_url = "URL"\nkey_env = ["GROQ_API_KEY"]\ndefault_model = "large"\nmodels = [{id = "large"}]\n'


@pytest.mark.parametrize(("key", "name"), [("gsk_0123456789abcdefWXYZ", "groq"), (KEY, "acme")])
def test_pasted_key_is_recognised_by_its_beginning(provider: ProviderServer, tmp_path: Path, key: str, name: str) -> None:
    provider.script(chat_text("Hi."), chat_text("Hello."))
    with first_key(provider, tmp_path, more=GROQ) as terminal:
        terminal.press("enter")
        terminal.wait_for("Paste your API key (input is hidden)")
        terminal.wait_for("Enter continue")
        terminal.enter(key)
        if name == "groq":
            terminal.wait_for("This is a key of Groq.")
        else:
            terminal.wait_for("Which provider?")
            terminal.type("acme")
            terminal.wait_until(lambda: "1 of 1" in "\n".join(terminal.lines))
            terminal.press("enter")
        terminal.wait_for(f"{name.capitalize()} accepted the key.")
        terminal.wait_for(f"Which model of {name.capitalize()}?")
        terminal.press("enter")
        terminal.wait_for(f" · {name}/large · ")
        terminal.enter("say hello")
        terminal.wait_for("Hello.")
        terminal.press("ctrl-d")
        assert terminal.wait_for_exit() == 0
    assert key.encode() not in terminal.raw


def test_key_typed_at_the_number_is_taken(provider: ProviderServer, tmp_path: Path) -> None:
    provider.script(chat_text("Hi."), chat_text("Hello."))
    with first_key(provider, tmp_path, "say hello", more=GROQ) as terminal:
        terminal.enter("gsk_0123456789abcdefWXYZ")
        terminal.wait_for("This is a key of Groq.")
        terminal.wait_for("Which model?")
        terminal.press("enter")
        terminal.wait_for("Hello.")
        assert terminal.wait_for_exit() == 0


def test_refused_key_is_asked_for_again(provider: ProviderServer, tmp_path: Path) -> None:
    provider.script(error(401, '{"error": {"message": "no such key"}}'), chat_text("Hi."), chat_text("Hello."))
    with first_key(provider, tmp_path, "say hello") as terminal:
        terminal.enter("1")
        terminal.wait_for("Paste your Acme API key")
        terminal.enter("sk-wrong-0123456789abcdef")
        terminal.wait_for("Acme rejected the key: no such key")
        terminal.wait_until(lambda: terminal.times("Paste your Acme API key") == 2)
        terminal.enter(KEY)
        terminal.wait_for("Which model?")
        terminal.press("enter")
        terminal.wait_for("Hello.")
        assert terminal.wait_for_exit() == 0
    assert 'model = "acme/large"' in (tmp_path / "wolo/config/config.toml").read_text()


def test_unreachable_server_is_left_to_the_person(provider: ProviderServer, tmp_path: Path) -> None:
    provider.script(error(500, '{"error": {"message": "oops"}}'), chat_text("Hello."))
    with first_key(provider, tmp_path, "say hello") as terminal:
        terminal.enter("1")
        terminal.wait_for("Paste your Acme API key")
        terminal.enter(KEY)
        terminal.wait_for("Save it anyway? [y/N]")
        terminal.enter("y")
        terminal.wait_for("Which model?")
        terminal.press("enter")
        terminal.wait_for("Hello.")
        assert terminal.wait_for_exit() == 0


def test_escape_steps_back_and_ctrl_c_leaves_panels(provider: ProviderServer, tmp_path: Path) -> None:
    hold = Hold()
    provider.script(sse(hold))
    with first_key(provider, tmp_path) as terminal:
        terminal.type("acme")
        terminal.wait_for("1 of 1")
        terminal.press("enter")
        terminal.wait_for("Enter continue")
        terminal.press("escape")
        terminal.wait_until(lambda: "Choose a provider:" in "\n".join(terminal.lines))
        terminal.type("acme")
        terminal.wait_until(lambda: "1 of 1" in "\n".join(terminal.lines))
        terminal.press("enter")
        terminal.wait_until(lambda: "Enter continue" in "\n".join(terminal.lines))
        terminal.enter(KEY)
        hold.wait_until_reached()
        terminal.wait_for("checking the key")
        terminal.press("ctrl-c")
        assert terminal.wait_for_exit() == 2
    hold.release()
    assert terminal.shows("No model is set up. Do one of these")
    assert not terminal.shows("Traceback")


@pytest.mark.sweep(every=5)
@pytest.mark.parametrize("key", ["ctrl-c", "ctrl-d"])
@pytest.mark.parametrize("question", ["Paste your Acme API key", "Which model?", "trying"])
def test_one_can_leave_anywhere(provider: ProviderServer, tmp_path: Path, key: str, question: str) -> None:
    hold = Hold()
    provider.script(sse(hold) if question == "trying" else chat_text("Hi."))
    with first_key(provider, tmp_path, "say hello") as terminal:
        terminal.enter("1")
        terminal.wait_for("Paste your Acme API key")
        if question != "Paste your Acme API key":
            terminal.enter(KEY)
        if question == "trying":
            hold.wait_until_reached()
        else:
            terminal.wait_for(question)
        if (key, question) == ("ctrl-d", "trying"):
            terminal.press("ctrl-c")  # nothing is asked just then
        else:
            terminal.press(key)
        assert terminal.wait_for_exit() == 2
    hold.release()
    assert terminal.shows("No model is set up. Do one of these")
    assert not terminal.shows("Traceback")
    assert "model" not in tomllib.loads((tmp_path / "wolo/config/config.toml").read_text())


def test_a_signal_ends_it_with_its_own_status(provider: ProviderServer, tmp_path: Path) -> None:
    with first_key(provider, tmp_path, "say hello") as terminal:
        terminal.enter("1")
        terminal.wait_for("Paste your Acme API key")
        terminal.child.kill(signal.SIGTERM)
        assert terminal.wait_for_exit() == 143


def test_the_smallest_window_is_large_enough(provider: ProviderServer, tmp_path: Path) -> None:
    provider.script(chat_text("Hi."), chat_text("Hello."))
    with first_key(provider, tmp_path, "say hello", rows=5, columns=20) as terminal:
        terminal.enter("acme")
        terminal.wait_for("Paste your Acm")
        terminal.enter(KEY)
        terminal.wait_for("Which model? Enter sel")
        terminal.press("enter")
        terminal.wait_for("Hello.")
        assert terminal.wait_for_exit() == 0


def test_key_of_other_origin_is_offered_not_requested(tmp_path: Path) -> None:
    with first_run(tmp_path, WITHOUT_ENGINE, "hi", OLLAMA_HOST="127.0.0.1:1", GITHUB_TOKEN="ghp_0123456789abcdef") as terminal:
        terminal.wait_for("Which one?")
        terminal.enter("github")
        terminal.wait_for("Using the API key of GitHub Models in $GITHUB_TOKEN.")
        terminal.wait_for("1  openai/gpt-4.1")
        terminal.wait_for("Which model? Enter selects 1")
        terminal.press("ctrl-d")
        assert terminal.wait_for_exit() == 2
