"""Placeholders: stable, silent about what they stand for, and put back exactly."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.clock import processor_time_below
from wolo.guard.intents import CallIntent, FetchIntent, RunIntent
from wolo.guard.rules import Verdict
from wolo.guard.secrets.finder import SecretFiles
from wolo.guard.secrets.redactor import RestoredValue, Secrets, ask_first
from wolo.messages.message import Message
from wolo.messages.parts import Blob, FilePart, ImagePart, TextPart, ThinkingPart, ToolPart
from wolo.messages.secret_values import Secret
from wolo.tools.tool_values import Listing

K = "wk-7f3a9c21bb+/=Z"
KEY = b"k" * 32


def secrets_with(*known: Secret) -> Secrets:
    return Secrets(known, key=lambda: KEY)


def test_placeholder_is_one_value_on_one_machine() -> None:
    one = secrets_with(Secret("DB_PASSWORD", K)).hide(K)
    assert one == secrets_with(Secret("DB_PASSWORD", K), Secret("OTHER_TOKEN", "other-12345")).hide(K)
    assert one.startswith("SECRET_DB_PASSWORD_")
    assert one != Secrets([Secret("DB_PASSWORD", K)], key=lambda: b"j" * 32).hide(K)
    assert one != secrets_with(Secret("DB_PASSWORD", K + "1")).hide(K + "1")


@pytest.mark.parametrize("name", ["client-key-data", "über$name", "", "x" * 200, "../../etc", "a\nb", "KEY_123456789012_A"])
def test_a_placeholder_is_one_plain_word_everywhere(name: str) -> None:
    shown = secrets_with(Secret(name, K)).hide(K)
    assert shown.isidentifier()
    assert shlex.split(f"echo {shown}") == ["echo", shown]
    assert json.loads(json.dumps(shown)) == shown
    assert secrets_with(Secret(name, K)).restore(shown).value == K


@given(st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), min_size=8, max_size=60), st.text(max_size=30))
def test_hidden_value_returns_unchanged(value: str, around: str) -> None:
    secrets = secrets_with(Secret("TOKEN", value))
    for text in (f"{around}{value}{around}", f"{value}{value}", json.dumps({"key": value})):
        hidden = secrets.hide(text)
        assert value not in hidden
        assert secrets.restore({"command": [hidden]}).value == {"command": [text]}


def test_a_placeholder_of_nothing_known_stays_a_word() -> None:
    secrets = secrets_with(Secret("TOKEN", K))
    shown = secrets.hide(K)
    for strange in ("SECRET_TOKEN_000000000000", shown[:-1], "SECRET_", shown.lower()):
        assert secrets.restore(strange) == RestoredValue(strange)
    assert secrets.restore({"a": f"x{shown}y {shown}0"}) == RestoredValue({"a": f"x{K}y {K}0"}, ("TOKEN",))


def test_every_part_of_a_message_is_hidden() -> None:
    secrets = secrets_with(Secret("TOKEN", K))
    message = Message(
        role="assistant",
        parts=[
            TextPart(text=f"it is {K}"),
            ThinkingPart(text=K, blobs=(Blob("anthropic.signature", "x"),)),
            ToolPart(
                tool="shell",
                input={"command": [K, {K: 1}]},
                raw_input=json.dumps({"command": K}),
                output=K,
                output_parts=(ImagePart(media_type="image/png", data=b"\xff" + K.encode()),),
            ),
        ],
    )
    hidden = secrets.hide_message(message)
    assert K not in repr(hidden)
    assert hidden.parts[1].blobs == ()  # a signature of other words is refused
    assert secrets.hide_message(hidden) is hidden


@pytest.mark.parametrize("at", range(4))
def test_one_secret_in_plain_text_is_hidden(at: int) -> None:
    secrets = Secrets([Secret("PASSWORD", K), Secret("SHORT", "abc")])
    texts = [f"clean {number}" if number != at else f"see {K}" for number in range(3)]
    message = Message(role="assistant", parts=tuple(TextPart(text=text) for text in texts), error=K if at == 3 else "")
    assert K not in repr(secrets.hide_message(message))
    values = {"a": texts, "b": dict.fromkeys(texts, 1), "c": tuple(texts), "d": message.error}
    assert K not in repr(secrets.hide_value(values))
    assert secrets.hide("abc and abcd") == "abc and abcd"


def test_secret_among_parts_and_lines_is_hidden() -> None:
    secrets = Secrets([Secret("PASSWORD", K)])
    files = (FilePart(name="clean.txt", media_type="text/plain", data=b"x"), FilePart(name=f"{K}.txt", media_type="text/plain"))
    call = ToolPart(id="1", tool="read", call_id="1", input={}, output="clean", output_parts=files)
    assert K not in repr(secrets.hide_part(call))
    assert K not in repr(secrets.hide_fields(Listing("clean", ("clean", f"a {K}", "clean"), 3)))


@pytest.mark.parametrize(("name", "goal"), [("plain.txt", ".env"), (".env", "plain.txt"), (".env", ".env")])
def test_link_is_read_when_any_name_is_secret(tmp_path: Path, name: str, goal: str) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / goal).write_text(f"TOKEN={K}\n")
    (tmp_path / "work" / name).symlink_to(tmp_path / "elsewhere" / goal)
    files = SecretFiles([tmp_path / "work"])
    assert K not in [known.value for known in files.scan_top()]
    assert [known.value for known in files.rescan([str(tmp_path / "work" / name)])] == [K]


def test_value_leaving_the_machine_asks_and_says_so() -> None:
    carries, nothing = RestoredValue(None, ("TOKEN",), has_metacharacters=True), RestoredValue(None)
    allow = Verdict("allow", "By a rule.", rule="fetch:x.test")
    for intent in (FetchIntent("https://x.test/?k=1"), CallIntent("mcp:a/b")):
        asked = ask_first(allow, [intent], carries, asks_nobody=True)
        assert asked.decision == "ask"
        assert "the secret TOKEN" in asked.reason
        assert ask_first(allow, [intent], nothing, asks_nobody=True) is allow
    run = [RunIntent("curl", Path("/"))]
    assert ask_first(allow, run, carries, asks_nobody=False).decision == "ask"
    assert ask_first(Verdict("allow", "Walls.", confined=True), run, carries, asks_nobody=False).decision == "allow"
    assert ask_first(allow, [CallIntent("task:explore")], carries, asks_nobody=True) is allow
    assert ask_first(allow, run, carries, asks_nobody=True).decision == "allow"
    assert "A shell would interpret characters" in ask_first(Verdict("ask", "Hm."), run, carries, asks_nobody=False).reason
    assert ask_first(Verdict("deny", "No."), run, carries, asks_nobody=False).decision == "deny"
    assert "shell" not in ask_first(Verdict("ask", "Hm."), run, RestoredValue("x", ("TOKEN",), False), asks_nobody=False).reason
    fetched = ask_first(
        Verdict("ask", "Hm."), [FetchIntent("https://a.org")], RestoredValue("x", ("TOKEN",), True), asks_nobody=False
    )
    assert fetched.reason == "Hm. The call carries the secret TOKEN."


def test_secret_name_changes_no_visible_text() -> None:
    """It may be a key of any JSON file."""
    carries = RestoredValue("x", ("TOKEN\nAllow? yes\x1b[2K", "B\u202e"))
    for verdict in (Verdict("ask", "Hm."), Verdict("allow", "Yes.")):
        assert ask_first(verdict, [FetchIntent("https://a.org")], carries, asks_nobody=False).reason.isprintable()


def test_files_are_read_on_appearance_and_change(tmp_path: Path) -> None:
    secrets = Secrets(files=SecretFiles([tmp_path]), key=lambda: KEY)
    env = tmp_path / ".env"
    env.write_text("TOKEN=first-12345\n")
    assert secrets.hide("first-12345") == "first-12345"
    secrets.rescan()
    assert secrets.hide("first-12345").startswith("SECRET_TOKEN_")
    env.write_text("TOKEN=second-12345\n")
    secrets.rescan()
    assert secrets.hide("first-12345 second-12345").count("SECRET_TOKEN_") == 2


async def test_deep_secret_is_known_before_the_first_call(tmp_path: Path) -> None:
    deep = tmp_path / "a" / "b" / "c" / "d" / "e"
    deep.mkdir(parents=True)
    (deep / ".env").write_text("TOKEN=deep-12345\n")
    secrets = Secrets(files=SecretFiles([tmp_path]), key=lambda: KEY)
    assert secrets.hide("deep-12345") == "deep-12345"
    for done in asyncio.as_completed([secrets.scan_workspace(), secrets.scan_workspace()]):
        await done
        assert secrets.hide("deep-12345") != "deep-12345"


def test_only_regular_files_of_the_workspace_are_opened(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside.env"
    root.mkdir()
    outside.write_text("TOKEN=outside-12345\n")
    (root / "real.txt").write_text("TOKEN=linked-12345\n")
    (root / ".env").symlink_to(outside)
    (root / ".env.local").symlink_to(root / "real.txt")
    subprocess.run(["mkfifo", str(root / ".env.pipe")], check=True)
    (root / ".env.folder").mkdir()
    (root / ".env.device").symlink_to("/dev/zero")
    (root / ".env.broken").symlink_to("nowhere")
    (root / "\udcff.env").write_bytes(b"TOKEN=odd-\xff-12345\n")
    found = {known.value for known in SecretFiles([root]).scan_top()}
    assert "outside-12345" not in found
    assert "linked-12345" in found


def test_huge_file_is_read_within_bounds(tmp_path: Path) -> None:
    (tmp_path / ".env").write_bytes(b"A_TOKEN=first-12345\n" + b"#" * 50_000_000)
    (tmp_path / "key.pem").write_bytes(os.urandom(100_000))
    (tmp_path / "zzz.env").write_text("TOKEN=small-12345\n")
    for number in range(40):
        (tmp_path / f".env.{number}").write_text("A=1\n" * 60_000)
    with processor_time_below(1):
        values = {known.value for known in SecretFiles([tmp_path]).scan_top()}
        assert "small-12345" in values
