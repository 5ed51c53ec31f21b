"""A model server that nobody has told wolo of: named by its URL in the first run or by /model, tried out and kept."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.commands.test_commands import shown
from tests.commands.test_every_command import begin, ran
from tests.end_to_end.test_first_run import WITHOUT_ENGINE, first_run
from tests.end_to_end.test_repl import leave, wait_for_prompt
from tests.fakes.command import run_wolo
from tests.fakes.provider_server import Asked, ProviderServer
from tests.fakes.replies import Reply, call, text, whole
from tests.fakes.screen import pty_wolo
from wolo.commands.command import SwitchConversation
from wolo.commands.table import load_commands
from wolo.conversation.factory import open_conversation
from wolo.conversation.resources.startup import StartOptions
from wolo.errors import UsageError
from wolo.frontends.terminal.dialogs.menu_sources import models_menu
from wolo.frontends.terminal.dialogs.picker import EMBEDDED, SERVER
from wolo.places import find_places

COMMANDS = load_commands()


def serve(provider: ProviderServer, *names: str) -> None:
    provider.pages["/v1/models"] = whole({"object": "list", "data": [{"id": name} for name in names]})
    provider.linted = False  # each request of a probe is a conversation of its own
    provider.otherwise = answer


def answer(asked: Asked) -> Reply:
    wants_call = asked.messages[-1]["role"] == "user" and "echo" in str(asked.json.get("tools"))
    return call("echo", {"word": "red"}) if wants_call else text("Hello from here.")


def settings() -> dict[str, Any]:
    return tomllib.loads((find_places().config / "config.toml").read_text())


def test_first_run_takes_a_server_url(provider: ProviderServer, tmp_path: Path) -> None:
    serve(provider, "small", "large")
    with first_run(tmp_path, WITHOUT_ENGINE, "say hello", OLLAMA_HOST="127.0.0.1:1") as terminal:
        terminal.wait_for("Which one?")
        terminal.wait_for("another server (URL)")
        terminal.wait_for("install the embedded model")
        terminal.enter(provider.origin)
        terminal.wait_for("its API key")
        terminal.enter("sk-mine-0123456789abcdef")
        terminal.wait_for("Which model?")
        terminal.enter("2")
        terminal.wait_for("Name of this provider")
        terminal.enter("mine")
        assert terminal.wait_for_exit() == 0
        terminal.wait_for("mine/large is now your default model")
        terminal.wait_for("Hello from here.")
    assert settings()["model"] == "mine/large"
    assert settings()["providers"]["mine"]["base_url"] == provider.base_url
    assert [each["id"] for each in settings()["providers"]["mine"]["models"]] == ["small", "large"]
    assert "sk-mine" not in (find_places().config / "config.toml").read_text()
    assert provider.requests[-1].headers["authorization"] == "Bearer sk-mine-0123456789abcdef"
    assert run_wolo("-p", "again").stdout == "Hello from here.\n"


def test_url_is_typed_without_choices(provider: ProviderServer, tmp_path: Path) -> None:
    with first_run(tmp_path, WITHOUT_ENGINE, "say hello", OLLAMA_HOST="127.0.0.1:1") as terminal:
        terminal.wait_for("Which one?")
        terminal.enter("http://127.0.0.1:1/v1")
        terminal.wait_for("its API key")
        terminal.press("enter")
        terminal.wait_for("Name of the model")
        terminal.wait_for("No models are listed at")
        terminal.enter("any")
        terminal.wait_for("Save it anyway?")
        terminal.press("enter")
        terminal.wait_until(lambda: terminal.times("Which one?") == 2)
        terminal.press("enter")
        assert terminal.wait_for_exit() == 2
    assert not (find_places().config / "config.toml").exists()


@pytest.mark.unfit("small", reason="the question is longer than five rows")
def test_server_is_added_during_a_conversation(provider: ProviderServer) -> None:
    serve(provider, "small")
    with ProviderServer(text("One.")) as first, pty_wolo(*first.flags) as terminal:
        wait_for_prompt(terminal)
        terminal.enter("one")
        terminal.wait_for("One.")
        wait_for_prompt(terminal)
        terminal.enter("/model")
        terminal.wait_for("another server (URL)")
        terminal.type("another")
        terminal.press("enter")
        terminal.wait_for("Base URL")
        terminal.enter(provider.origin)
        terminal.wait_for("Enter continue")
        terminal.press("enter")
        terminal.wait_for("Enter selects 1")
        terminal.enter("1")
        terminal.wait_for("Name of this provider")
        terminal.enter("mine")
        terminal.wait_for("wolo · mine/small")
        wait_for_prompt(terminal)
        terminal.enter("two")
        terminal.wait_for("Hello from here.")
        wait_for_prompt(terminal)
        terminal.enter("/model zzz")
        terminal.wait_for("No model is called `zzz`")
        wait_for_prompt(terminal)
        leave(terminal)
    assert [message["content"] for message in provider.requests[-1].messages[1:]] == ["one", "One.", "two"]


async def test_model_list_marks_current_and_omits_unusable(provider: ProviderServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLLAMA_HOST", "127.0.0.1:1")
    find_places().config.mkdir(parents=True)
    (find_places().config / "config.toml").write_text(
        f'model = "here/b"\n[providers.here]\nbase_url = "{provider.base_url}"\nmodels = [{{id = "a"}}, {{id = "b"}}]\n'
    )
    conversation = await open_conversation(StartOptions(flags={}, attended=True))
    menu = models_menu(conversation)
    first, *rest = menu.listed(False)
    assert (first.value, first.facts.split(" ")[0]) == ("here/b", "current")
    labels = [item.value for item in rest]
    assert "here/a" in labels
    assert SERVER in labels
    assert "local/qwen2.5-coder-1.5b" not in labels, "its weights are not here"
    assert not [label for label in labels if label.startswith(("zai/", "openai/"))]
    assert "zai/glm-5.2" in [item.value for item in menu.listed(True)]
    await conversation.close()


async def test_address_lists_the_models_of_its_server(provider: ProviderServer) -> None:
    serve(provider, "test-model", "other")
    conversation = await begin(provider)
    values = [item.value for item in models_menu(conversation).listed(True)]
    assert [value for value in values if value not in (EMBEDDED, SERVER)] == ["custom/test-model", "custom/other"]
    assert not {EMBEDDED, SERVER} & {item.value for item in models_menu(conversation, ahead=True).listed(True)}
    await conversation.close()


@pytest.mark.parametrize("lists", [True, False])
async def test_unknown_name_is_refused_with_the_nearest(provider: ProviderServer, lists: bool) -> None:
    if lists:
        serve(provider, "test-model", "test-model-large")
    conversation = await begin(provider, text("One."))
    for name in ("zzz", "test-modle", *(["custom/zzz"] if lists else [])):
        with pytest.raises(UsageError) as refused:
            await ran(f"/model {name}", conversation)
        if name == "test-modle":
            assert "test-model" in refused.value.hint
    assert (await shown("/model", conversation)).startswith("custom/test-model\n")
    following = await ran("/model custom/test-model-large", conversation)
    assert isinstance(following, SwitchConversation)
    await following.conversation.close()


def test_list_has_header_and_usable_models_first() -> None:
    done = run_wolo("models", "list", env={"GROQ_API_KEY": "gk-0123456789abcdef"})
    header, *lines = done.stdout.splitlines()
    assert header.split() == ["MODEL", "SIZE", "IN/OUT"]
    marks = [line[0] for line in lines]
    assert marks == sorted(marks, reverse=True) or marks == sorted(marks, key=lambda mark: mark != "*")
    assert any(line.startswith("* groq/") for line in lines)


@pytest.mark.parametrize(
    ("names", "code", "message"),
    [
        (("org/only:latest",), 0, ""),
        (("zai/glm-5.2",), 0, ""),
        (("small", "large"), 2, "A base URL with several models needs the name of one: small, large."),
        ((), 2, "A base URL needs a model."),
        (tuple(map(str, range(20))), 2, " 11 and 8 more."),
    ],
)
def test_base_url_without_model_takes_only_one(provider: ProviderServer, names: tuple[str, ...], code: int, message: str) -> None:
    serve(provider, *names)
    ended = run_wolo("-p", "hi", "--base-url", provider.origin + "/v1")
    assert (ended.exit_code, message in ended.stderr) == (code, True), ended.stderr
    assert [asked.json["model"] for asked in provider.requests] == ([*names] if code == 0 else [])
