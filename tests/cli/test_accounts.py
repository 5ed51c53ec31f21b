"""Several keys of one provider, each with a name."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from tests.cli.test_auth import configure, kept, login
from tests.end_to_end.test_new_servers import serve
from tests.fakes.command import run_wolo
from tests.fakes.container_engine import STATE, StandInEngine
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import call, text
from tests.fakes.repositories import files
from wolo.places import find_places

HOME_KEY, WORK_KEY = "sk-home-0123456789abcdefHHHH", "sk-work-0123456789abcdefWWWW"


@pytest.fixture
def acme(provider: ProviderServer) -> ProviderServer:
    """A provider of the user's own, at the scripted server."""
    provider.linted = False
    configure(provider.base_url)
    return provider


@pytest.fixture
def ring(tmp_path: Path) -> dict[str, str]:
    """Environment of a process with a keyring, which lies in a file."""
    return {
        "PYTHON_KEYRING_BACKEND": "tests.fakes.keyring_in_a_file.InAFile",
        "KEYRING_FILE": str(tmp_path / "ring.json"),
        "PYTHONPATH": str(Path(__file__).parents[2]),
    }


def save_two() -> None:
    assert login("acme", "--no-test", key=HOME_KEY).exit_code == 0
    assert login("acme", "--no-test", "--name", "work", key=WORK_KEY).exit_code == 0


def key_sent(server: ProviderServer) -> str:
    return server.requests[-1].headers["authorization"].removeprefix("Bearer ")


def test_account_of_a_run_is_used(acme: ProviderServer) -> None:
    save_two()
    assert kept() == f'acme = "{HOME_KEY}"\n"acme@work" = "{WORK_KEY}"\n'
    acme.script(*(text("Hello.") for _ in range(4)))
    assert run_wolo("-p", "hello").exit_code == 0
    assert key_sent(acme) == HOME_KEY
    assert run_wolo("-p", "--account", "work", "hello", env={"ACME_API_KEY": "sk-other"}).exit_code == 0
    assert key_sent(acme) == WORK_KEY
    assert run_wolo("-p", "--account", "default", "hello", env={"ACME_API_KEY": "sk-other"}).exit_code == 0
    assert key_sent(acme) == HOME_KEY
    assert run_wolo("-p", "-c", "--account", "work", "again").exit_code == 0
    assert key_sent(acme) == WORK_KEY


def test_account_of_the_settings_is_used_and_listed(acme: ProviderServer) -> None:
    save_two()
    with (find_places().config / "config.toml").open("a") as file:
        file.write('account = "work"\n')
    acme.script(text("Hello."), text("Hello."))
    assert run_wolo("-p", "hello", env={"ACME_API_KEY": "sk-other-0123456789"}).exit_code == 0
    assert key_sent(acme) == WORK_KEY
    assert run_wolo("-p", "--account", "default", "hello").exit_code == 0
    assert key_sent(acme) == HOME_KEY
    shown = run_wolo("auth", "status").stdout
    assert shown.splitlines() == [
        "* acme           …WWWW          keys.toml (account work)",
        "  acme           …HHHH          keys.toml",
    ]
    assert run_wolo("doctor", "--json").json["keys"]["acme"] == "keys.toml (account work)"
    assert (
        run_wolo("auth", "logout", "acme", "--name", "work").stdout == "Removed the key of acme (account work) from keys.toml.\n"
    )
    gone = run_wolo("-p", "hello")
    assert (gone.exit_code, len(acme.requests)) == (2, 2)
    assert "acme has no account `work`: acme has default." in gone.stderr
    assert "acme has no account `work`" in run_wolo("auth", "status").stderr
    assert "acme has no account `work`" in json.dumps(run_wolo("doctor", "--json").json["problems"])


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("--account", "wrok"), "No provider has an account `wrok`: acme has default, work."),
        (("--account", "work", "-m", "ollama/any"), "ollama has no account `work`: acme has default, work."),
        (("--account", "work", "--api-key", "sk-given", "-m", "acme/large"), "comes from elsewhere, not from the account `work`"),
        (("--account", "work", "--base-url", "http://127.0.0.1:1/v1", "-m", "x"), "custom has no account `work`"),
        (("--account", "a b"), "No provider has an account `a b`"),
        (("--set", "providers.acme.account=wrok"), "acme has no account `wrok`: acme has default, work."),
        (("--set", "providers.acme.api_key=sk-given", "--set", "providers.acme.account=work"), "an api_key and an account"),
    ],
)
def test_account_that_cannot_be_used_ends_the_run(acme: ProviderServer, args: tuple[str, ...], message: str) -> None:
    save_two()
    done = run_wolo("-p", *args, "hello")
    assert done.exit_code == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert not acme.requests


@pytest.mark.parametrize("name", ["a b", WORK_KEY + WORK_KEY, "@", "ä", "../x"])
def test_account_name_must_be_plain(acme: ProviderServer, name: str) -> None:
    done = login("acme", "--no-test", "--name", name)
    assert done.exit_code == 2
    assert "cannot be the name of an account" in done.stderr
    assert name not in done.stderr or len(name) < 9
    assert not kept()


def test_named_key_is_tested_stored_and_removed_alone(acme: ProviderServer, ring: dict[str, str], tmp_path: Path) -> None:
    acme.script(text("Hi."), text("Hello."))
    done = run_wolo("auth", "login", "acme", "--name", "work", stdin=WORK_KEY, env=ring)
    assert done.exit_code == 0
    assert "`--account work` uses it for a run" in done.stderr
    assert run_wolo("auth", "login", "acme", "--no-test", stdin=HOME_KEY, env=ring).exit_code == 0
    assert kept() == '"acme@work" = {keyring = true}\nacme = {keyring = true}\n'
    assert run_wolo("-p", "--account", "work", "hello", env=ring).exit_code == 0
    assert key_sent(acme) == WORK_KEY
    rows = run_wolo("auth", "status", "--json", env=ring).json
    assert [(row["account"], row["source"], row["counts"]) for row in rows] == [
        (None, "keyring", True),
        ("work", "keyring", False),
    ]
    assert run_wolo("auth", "logout", "--name", "work", env=ring).exit_code == 0
    assert kept() == "acme = {keyring = true}\n"
    assert WORK_KEY not in (tmp_path / "ring.json").read_text()
    none = run_wolo("auth", "logout", "acme", "--name", "work", env=ring)
    assert (none.exit_code, "acme has no account `work`: acme has default." in none.stderr) == (2, True)


def test_account_whose_keyring_fails_is_not_replaced(acme: ProviderServer, ring: dict[str, str]) -> None:
    save_two()
    (find_places().config / "keys.toml").write_text(f'acme = "{HOME_KEY}"\n"acme@work" = {{keyring = true}}\n')
    done = run_wolo("-p", "--account", "work", "hello", env=ring)
    assert (done.exit_code, len(acme.requests)) == (2, 0)
    assert "The key of the account `work` of acme cannot be read." in done.stderr
    assert "wolo auth login acme --name work" in done.stderr


def test_keys_of_all_accounts_are_hidden(acme: ProviderServer, tmp_path: Path) -> None:
    save_two()
    (tmp_path / "notes.txt").write_text(f"one {HOME_KEY} two {WORK_KEY}\n")
    acme.script(text("Hello."))
    assert run_wolo("-p", "-C", str(tmp_path), "-f", "notes.txt", "hello").exit_code == 0
    body = json.dumps(acme.requests[-1].json)
    assert "one " in body
    assert HOME_KEY not in body
    assert WORK_KEY not in body


def test_account_reaches_subagents(acme: ProviderServer, tmp_path: Path) -> None:
    save_two()
    (find_places().config / "agents").mkdir()
    (find_places().config / "agents/helper.md").write_text(
        "---\nname: helper\ndescription: helps\nmodel: acme/small\n---\nHelp.\n"
    )
    asked = call("task", {"agent": "helper", "prompt": "look"})
    acme.script(asked, text("Seen."), text("Done."))
    done = run_wolo("-p", "--account", "work", "-C", str(tmp_path), "hello", env={"ACME_API_KEY": "sk-other"})
    assert done.exit_code == 0, done.stderr
    assert [each.json["model"] for each in acme.requests] == ["large", "small", "large"]
    assert {each.headers["authorization"] for each in acme.requests} == {f"Bearer {WORK_KEY}"}


def test_account_reaches_batch_tasks(acme: ProviderServer, tmp_path: Path) -> None:
    save_two()
    tasks = tmp_path / "tasks.jsonl"
    tasks.write_text('{"id": "a", "prompt": "hello"}\n')
    acme.script(text("Done."))
    run = ("batch", "run", str(tasks), "-j", "1", "--model", "acme/large")
    done = run_wolo(*run, "--out", str(tmp_path / "run"), "--account", "work", cwd=tmp_path)
    assert acme.requests, done.stderr
    assert {each.headers["authorization"] for each in acme.requests} == {f"Bearer {WORK_KEY}"}
    for refused in (("--account", "wrok"), ("--account", "work", "--engine", "ray")):
        done = run_wolo(*run, "--out", str(tmp_path / "other"), *refused, cwd=tmp_path)
        assert done.exit_code == 2
        assert "account" in done.stderr


def test_account_reaches_tasks_in_images(
    acme: ProviderServer, ring: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_two()
    engine = StandInEngine(tmp_path / "engine")
    (engine.folder / "images/img:1").mkdir()
    engine.install(tmp_path / "bin")
    path = f"{tmp_path / 'bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    env = {"PATH": path, STATE: str(engine.folder)}
    tasks = tmp_path / "tasks.jsonl"
    tasks.write_text('{"id": "a", "prompt": "hello", "image": "img:1"}\n')
    acme.script(text("Done."))
    run = ("batch", "run", str(tasks), "-j", "1", "--model", "acme/large", "--image", "img:1", "--account", "work")
    done = run_wolo(*run, "--out", str(tmp_path / "run"), cwd=tmp_path, env=env)
    assert acme.requests, done.stderr
    assert key_sent(acme) == WORK_KEY
    assert any("--account work" in " ".join(words) for words in engine.calls)
    (find_places().config / "keys.toml").write_text('"acme@work" = {keyring = true}\n')
    refused = run_wolo(*run, "--out", str(tmp_path / "other"), cwd=tmp_path, env={**env, **ring})
    assert (refused.exit_code, (tmp_path / "other").exists()) == (2, False)
    assert "The key of acme@work is in the keyring, which --image does not reach." in refused.stderr
    assert "`wolo auth login acme --name work --no-keyring`" in refused.stderr


def test_account_reaches_all_tries_of_a_race(acme: ProviderServer, tmp_path: Path) -> None:
    save_two()
    folder = tmp_path / "plain"
    files(folder, {"a.txt": "one\n"})
    acme.otherwise = text("Done.")
    race = ("race", "go", "--models", "acme/large,acme/small", "--json", "--account")
    done = run_wolo(*race, "work", cwd=folder, env={"ACME_API_KEY": "sk-other"})
    assert sorted(each.json["model"] for each in acme.requests) == ["large", "small"], done.stderr
    assert {each.headers["authorization"] for each in acme.requests} == {f"Bearer {WORK_KEY}"}
    refused = run_wolo(*race, "wrok", cwd=folder)
    assert (refused.exit_code, len(acme.requests)) == (2, 2)
    assert "No provider has an account `wrok`: acme has default, work." in refused.stdout + refused.stderr


def test_account_of_a_list_is_used(acme: ProviderServer) -> None:
    save_two()
    with (find_places().config / "config.toml").open("a") as file:
        file.write("any_model = true\n")
    serve(acme, "served")
    assert "acme/served" in run_wolo("models", "list", "--account", "work").stdout
    assert acme.looked_up[-1].headers["authorization"] == f"Bearer {WORK_KEY}"
    refused = run_wolo("models", "list", "--account", "nobody")
    assert (refused.exit_code, "nobody" in refused.stderr) == (2, True)


def test_dialect_flag_can_be_set_for_one_run(provider: ProviderServer) -> None:
    provider.script(text("Hi."))
    done = run_wolo("-p", *provider.flags, "--set", "providers.custom.dialect.images=false", "hello")
    assert (done.exit_code, done.stdout) == (0, "Hi.\n")
    wrong = run_wolo("-p", *provider.flags, "--set", "providers.custom.dialect.images=maybe", "hello")
    assert (wrong.exit_code, "takes true or false" in wrong.stderr) == (2, True)
