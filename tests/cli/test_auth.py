"""`wolo auth`: keys that wolo keeps, tried before, never shown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.end_to_end.test_repl import wait_for_choice
from tests.fakes import replies_anthropic, replies_gemini, replies_ollama, replies_responses
from tests.fakes.command import Completed, run_wolo
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import error, text
from tests.fakes.screen import pty_wolo
from wolo.places import find_places

KEY = "sk-acme-0123456789abcdefWXYZ"


@pytest.fixture
def acme(provider: ProviderServer) -> ProviderServer:
    """A provider of the person's own, at the scripted server."""
    provider.linted = False
    configure(provider.base_url)
    return provider


def configure(base_url: str) -> None:
    path = find_places().config / "config.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        f'[providers.acme]\nlabel = "Acme"\nbase_url = "{base_url}"\nkey_env = ["ACME_API_KEY"]\ndefault_model = "large"\n'
        'models = [{id = "large"}, {id = "small"}]\n'
    )


def login(*args: str, key: str = KEY) -> Completed:
    return run_wolo("auth", "login", *args, stdin=key + "\n")


def kept() -> str:
    path = find_places().config / "keys.toml"
    return path.read_text() if path.exists() else ""


def test_piped_key_is_tried_once_kept_and_used(acme: ProviderServer) -> None:
    acme.script(text("Hi."), text("Hello."))
    done = login("acme", "--key-stdin")
    assert (done.exit_code, done.stderr) == (0, "wolo: Acme accepted the key.\n")
    assert len(acme.requests) == 1
    assert acme.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert acme.requests[0].json["max_tokens"] == 16
    assert kept() == f'acme = "{KEY}"\n'
    assert run_wolo("-p", "hello").stdout == "Hello.\n"
    assert acme.requests[1].headers["authorization"] == f"Bearer {KEY}"


ODD_KEY = "correct-horse-battery-staple"
"""Nobody would take it for a key who does not know it."""
REFUSALS = [
    (
        401,
        {"error": {"message": f"bad key {ODD_KEY}", "type": "invalid_request_error"}},
        1,
        "Acme rejected the key: bad key [key …aple]",
    ),
    (403, {"error": {"message": "not from here"}}, 1, "Acme rejected the key: not from here"),
    (404, {"error": {"message": "no such model"}}, 1, "did not confirm the key: no such model"),
    (500, {"error": {"message": "oops"}}, 75, "Could not check the key with"),
]


@pytest.mark.parametrize(("status", "body", "exit_code", "words"), REFUSALS)
def test_key_refused_by_provider_is_not_kept(acme: ProviderServer, status: int, body: object, exit_code: int, words: str) -> None:
    acme.script(error(status, json.dumps(body)))
    done = login("acme", key=ODD_KEY)
    assert done.exit_code == exit_code
    assert words in done.stderr
    assert "The key was not saved." in done.stderr
    assert ODD_KEY not in done.stderr + done.stdout
    assert len(acme.requests) == 1, "it is asked once"
    assert not kept()


def test_a_limit_is_no_word_against_the_key(acme: ProviderServer) -> None:
    acme.script(error(429, '{"error": {"message": "slow down"}}'))
    done = login("acme")
    assert done.exit_code == 0
    assert "accepted the key, but" in done.stderr
    assert KEY in kept()


def test_unattended_key_is_kept_only_on_request(acme: ProviderServer) -> None:
    configure("http://127.0.0.1:1/v1")
    done = login("acme")
    assert done.exit_code == 75
    assert "--no-test" in done.stderr
    assert not kept()
    assert login("acme", "--no-test").exit_code == 0
    assert KEY in kept()
    assert not acme.requests


@pytest.mark.parametrize("args", [("acme", KEY), (KEY,)])
def test_a_key_is_never_an_argument(acme: ProviderServer, args: tuple[str, ...]) -> None:
    done = run_wolo("auth", "login", *args)
    assert done.exit_code == 2
    assert KEY not in done.stderr + done.stdout
    assert "must not be an argument" in done.stderr


@pytest.mark.parametrize(
    ("named", "words"),
    [
        ("ollama", "Ollama needs no key."),
        ("openia", "Did you mean openai"),
        ("zai", "does not get its usual key"),
        ("mine", 'key_env = ["MINE_API_KEY"]'),
        ("fixed", "comes from providers.fixed.api_key"),
    ],
)
def test_unusable_key_is_not_taken(acme: ProviderServer, named: str, words: str) -> None:
    with (find_places().config / "config.toml").open("a") as file:
        file.write(f'[providers.zai]\nbase_url = "{acme.base_url}"\n[providers.mine]\nbase_url = "{acme.base_url}"\n')
        file.write(f'[providers.fixed]\nbase_url = "{acme.base_url}"\napi_key = "$FIXED"\n')
    done = login(named)
    assert done.exit_code == 2
    assert words in done.stderr
    assert not acme.requests


@pytest.mark.parametrize("args", [(), ("--no-test",)])
@pytest.mark.parametrize("key", ["", "two words", "schlüssel", "two\nlines"])
def test_invalid_key_goes_nowhere(acme: ProviderServer, key: str, args: tuple[str, ...]) -> None:
    assert login("acme", *args, key=key).exit_code == 2
    assert not acme.requests
    assert not kept()


def test_status_names_key_sources_and_the_active_one(acme: ProviderServer) -> None:
    login("acme", "--no-test")
    done = run_wolo("auth", "status", "--json", env={"ACME_API_KEY": "sk-other-0123456789-END1", "GROQ_API_KEY": "short"})
    assert done.json == [
        {"provider": "acme", "source": "$ACME_API_KEY", "masked": "…END1", "counts": True, "account": None},
        {"provider": "acme", "source": "keys.toml", "masked": "…WXYZ", "counts": False, "account": None},
        {"provider": "groq", "source": "$GROQ_API_KEY", "masked": "…", "counts": True, "account": None},
    ]
    shown = run_wolo("auth", "status")
    assert shown.stdout == "* acme           …WXYZ          keys.toml\n"
    assert KEY not in done.stdout + shown.stdout


def test_logout_removes_kept_keys_and_names_the_rest(acme: ProviderServer) -> None:
    login("acme", "--no-test")
    done = run_wolo("auth", "logout", "acme", env={"ACME_API_KEY": KEY})
    assert done.exit_code == 0
    assert "$ACME_API_KEY still has a key of acme" in done.stderr
    assert not kept()
    again = run_wolo("auth", "logout", "acme")
    assert (again.exit_code, again.stderr) == (2, "wolo: There is no saved key of acme.\n")


def test_key_of_a_removed_provider_can_be_removed() -> None:
    configure("http://127.0.0.1:1/v1")
    login("acme", "--no-test")
    (find_places().config / "config.toml").unlink()
    assert run_wolo("auth", "status", "--json").json[0]["counts"] is False
    assert run_wolo("auth", "logout").exit_code == 0
    assert not kept()


def test_at_a_terminal_the_key_is_typed_unseen(acme: ProviderServer, tmp_path: Path) -> None:
    acme.script(error(401, '{"error": {"message": "no"}}'), text("Hi."))
    with pty_wolo("auth", "login", "acme") as terminal:
        terminal.wait_for(READY)
        terminal.enter("wrong-key-0123456789")
        terminal.wait_for("rejected the key")
        terminal.wait_until(lambda: READY in "\n".join(terminal.lines))
        terminal.type(KEY)
        terminal.wait_for(f"key › {'•' * len(KEY)}")
        terminal.press("enter")
        assert terminal.wait_for_exit() == 0
        assert not terminal.shows("•")
        assert KEY.encode() not in terminal.raw
    assert KEY in kept()
    others = [path for path in tmp_path.rglob("*") if path.is_file() and path.name != "keys.toml"]
    assert not [path for path in others if KEY in path.read_text("latin-1")]


READY = "Enter continue"
"""What is said once keys count."""

FORMATS = {
    "openai-chat": ("/v1", text("Hi.")),
    "openai-responses": ("/v1", replies_responses.answer(replies_responses.message("Hi."))),
    "anthropic": ("", replies_anthropic.text("Hi.")),
    "gemini": ("", replies_gemini.text("Hi.")),
    "ollama": ("", replies_ollama.text("Hi.")),
    "xml": ("/v1", text("Hi.")),
}


@pytest.mark.parametrize("api", FORMATS)
def test_key_is_tried_in_every_format_validly(provider: ProviderServer, api: str) -> None:
    path, reply = FORMATS[api]
    configure(provider.origin + path)
    settings = find_places().config / "config.toml"
    settings.write_text(settings.read_text().replace("[providers.acme]", f'[providers.acme]\napi = "{api}"'))
    provider.script(reply)
    done = login("acme")
    assert (done.exit_code, done.stderr) == (0, "wolo: Acme accepted the key.\n")
    assert KEY in str(provider.requests[0].headers)


def test_the_keyring_is_used_where_one_works(acme: ProviderServer, tmp_path: Path) -> None:
    ring = {
        "PYTHON_KEYRING_BACKEND": "tests.fakes.keyring_in_a_file.InAFile",
        "KEYRING_FILE": str(tmp_path / "ring.json"),
        "PYTHONPATH": str(Path(__file__).parents[2]),
    }
    acme.script(text("Hi."), text("Hello."))
    done = run_wolo("auth", "login", "acme", stdin=KEY, env=ring)
    assert done.stdout == "The API key of Acme is saved in the system's keyring.\n"
    assert kept() == "acme = {keyring = true}\n"
    assert KEY in (tmp_path / "ring.json").read_text()
    assert run_wolo("-p", "hello", env=ring).stdout == "Hello.\n"
    assert run_wolo("auth", "status", "--json", env=ring).json[0]["source"] == "keyring"
    assert run_wolo("auth", "logout", env=ring).exit_code == 0
    assert (kept(), (tmp_path / "ring.json").read_text()) == ("", "{}")


def test_the_file_can_be_wanted_all_the_same(acme: ProviderServer, tmp_path: Path) -> None:
    ring = {"PYTHON_KEYRING_BACKEND": "tests.fakes.keyring_in_a_file.InAFile", "PYTHONPATH": str(Path(__file__).parents[2])}
    assert run_wolo("auth", "login", "acme", "--no-test", "--no-keyring", stdin=KEY, env=ring).exit_code == 0
    assert KEY in kept()


def test_whose_key_it_is_can_be_asked_too(acme: ProviderServer) -> None:
    acme.script(text("Hi."))
    with pty_wolo("auth", "login") as terminal:
        terminal.wait_for("Which provider?")
        terminal.wait_for("1  Acme")
        terminal.type("nobody")
        terminal.wait_for("No match.")
        terminal.type("\x15acm")
        wait_for_choice(terminal, "1  Acme", "1 of 1")
        terminal.press("enter")
        terminal.wait_for(READY)
        terminal.enter(KEY)
        assert terminal.wait_for_exit() == 0
        assert not terminal.shows("Which provider?")
    assert KEY in kept()


def test_in_lines_it_can_be_asked_too(acme: ProviderServer) -> None:
    acme.script(text("Hi."))
    with pty_wolo("auth", "login", env={"TERM": "dumb"}) as terminal:
        terminal.wait_for("Number or name")
        terminal.wait_for("1  Acme")
        terminal.enter("ope")
        terminal.wait_until(lambda: terminal.times("Number or name") == 2)
        terminal.wait_for("There is no provider ope.")
        terminal.enter("ac")
        terminal.wait_for("Paste your Acme API key")
        terminal.enter(KEY)
        assert terminal.wait_for_exit() == 0
    assert KEY in kept()


@pytest.mark.parametrize(("key", "exit_code"), [("ctrl-c", 130), ("ctrl-d", 1), ("enter", 1)])
def test_logging_in_can_be_left(acme: ProviderServer, key: str, exit_code: int) -> None:
    with pty_wolo("auth", "login", "acme") as terminal:
        terminal.wait_for(READY)
        terminal.type("sk-half")
        if key != "ctrl-c":
            terminal.type("\x15")
        terminal.press(key)
        assert terminal.wait_for_exit() == exit_code
        assert b"sk-half" not in terminal.raw
    assert not kept()


def test_a_dumb_terminal_hides_the_key_too(acme: ProviderServer) -> None:
    acme.script(text("Hi."))
    with pty_wolo("auth", "login", "acme", env={"TERM": "dumb"}) as terminal:
        terminal.wait_for("Paste your Acme API key")
        terminal.type("X\x7f")
        terminal.paste(KEY)
        terminal.press("enter")
        assert terminal.wait_for_exit() == 0
        assert KEY.encode() not in terminal.raw
    assert kept() == f'acme = "{KEY}"\n'


def test_key_of_a_removed_provider_stops_nobody(acme: ProviderServer) -> None:
    path = find_places().config / "keys.toml"
    path.write_text('elsewhere = "key-0123456789"\n')
    path.chmod(0o600)
    acme.script(text("Hello."))
    done = run_wolo("-p", "hello", env={"ACME_API_KEY": KEY})
    assert (done.exit_code, done.stdout) == (0, "Hello.\n")
    assert "wolo auth logout elsewhere" in done.stderr
