"""Secret values are read out of whatever shape a settings file has, and ordinary settings are left alone."""

from __future__ import annotations

import os
import sys
from functools import cache
from pathlib import Path

import pytest

from tests.clock import processor_time_below
from wolo.guard.secrets.finder import SecretFiles, is_ordinary, read_values

PEM = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7\nVJTUt9Us8cKjMzEfYyjiWA4R4/M2bS1GB4t7NXp98C3SC6dVMvDu"


def found(text: str) -> dict[str, str]:
    return {known.value: known.name for known in read_values(text, "FILE")}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("TOKEN=abc-def-12345", "abc-def-12345"),
        ("export TOKEN='abc def 12345'  # mine", "abc def 12345"),
        ('TOKEN="abc#def12345"', "abc#def12345"),
        ("  TOKEN = abcdef12345 # mine", "abcdef12345"),
        ("\ufeffA=1\r\nTOKEN=abcdef12345\r\n".lstrip("\ufeff"), "abcdef12345"),
        ('TOKEN="line\\nabcdef12345"', "abcdef12345"),
        ("token: abcdef12345", "abcdef12345"),
        ("  - password: 'abcdef12345'", "abcdef12345"),
        ('"token": "abcdef12345",', "abcdef12345"),
        ('{"a": {"b": [{"token": "abcdef12345"}]}}', "abcdef12345"),
        ('ACCOUNT={"type": "service", "private_key": "abcdef12345"}', "abcdef12345"),
        ("""ACCOUNT='[{"token": "abcdef12345"}]'""", "abcdef12345"),
        ('{"token": "pass\\u0077ord12345"}', "password12345"),
        ("machine x.test login bob password hunter22x", "hunter22x"),
        ("machine x.test\n  login bob\n  password hunter22x\n", "hunter22x"),
        ("//registry.test/:_authToken=npm_abcdef12345", "npm_abcdef12345"),
        ("[default]\naws_secret_access_key = wJalrXUtnFEMI/K7MDENG", "wJalrXUtnFEMI/K7MDENG"),
        ("DB=postgres://bob:s3cret%2Fpw@db.test/app", "s3cret/pw"),
        ("DB=postgres://bob:s3cret%2Fpw@db.test/app", "s3cret%2Fpw"),
        ("DB=postgres://bob:s3c@db.test/app", "bob:s3c@"),
        ("https://bob:ghp_12345678@git.test", "ghp_12345678"),
        ("DSN=https://0123456789abcdef0123@sentry.test/1", "0123456789abcdef0123"),
        ("HOOK=https://x.test/hook?token=abcdef12345&a=b", "abcdef12345"),
        ("HOOK=https://x.test/hook?a=b&token=ab%2Fcd%2Bef%3D%3D", "ab/cd+ef=="),
        ("HOOK=https://x.test/hook?a=b&token=ab%2Fcd%2Bef%3D%3D", "ab%2Fcd%2Bef%3D%3D"),
        ("see https://x.test/dl?sig=ab%2Fcd%2Bef%3D&se=1 for more", "ab/cd+ef="),
        ("db.test:5432:app:bob:abcdef12345", "abcdef12345"),
        ("hvs.CAESIabcdef12345\n", "hvs.CAESIabcdef12345"),
        ("CANARY=wolo-canary-1234", "wolo-canary-1234"),
        ("X=7f3a9c21bb", "7f3a9c21bb"),
        (f"-----BEGIN PRIVATE KEY-----\n{PEM}\n-----END PRIVATE KEY-----", PEM.split("\n")[1]),
        ('KEY="-----BEGIN RSA PRIVATE KEY-----\\n' + PEM.replace("\n", "\\n") + '\\n-----END"', PEM.split("\n")[0]),
    ],
)
def test_the_value_is_found(text: str, value: str) -> None:
    assert value in found(text)


@pytest.mark.parametrize(
    "line",
    [
        "NODE_ENV=production",
        "DEBUG=true",
        "PORT=3000",
        "TIMEOUT=86400000",
        "REGION=eu-central-1",
        "MODEL=claude-sonnet-4-5",
        "DB_NAME=myapp_development",
        "HOST=db.internal.test:5432",
        "BIND=127.0.0.1:80800",
        "URL=https://api.test/v1/things?page=1",
        "LOG=/var/log/app/server.log",
        "OUT=build/output/main.js",
        "TOKEN_FILE=/run/secrets/token",
        "SINCE=2026-01-02T03:04:05Z",
        "MAIL=bob.smith@mail.test",
        "AUTHOR=John Smith",
        "TOKEN=${OTHER_TOKEN}",
        "TOKEN=<your token here>",
        "PASSWORD=changeme",
        "SHORT_TOKEN=abc123",
        "GREETING=Hello dear World",
        "# TOKEN is asked for at start",
        "-----BEGIN CERTIFICATE-----\nMIIEvQIBADANBgkqhkiG9w0\n-----END CERTIFICATE-----",
    ],
)
def test_ordinary_settings_are_left_alone(line: str) -> None:
    assert found(line) == {}


def test_value_keeps_the_name_of_its_discovery() -> None:
    assert found("DB_PASSWORD=abcdef12345\n") == {"abcdef12345": "DB_PASSWORD"}
    assert found('{"client": {"secret": "abcdef12345"}}') == {"abcdef12345": "secret"}


def test_telling_name_makes_a_word_secret() -> None:
    assert is_ordinary("DB_NAME", "hunterrabbit")
    assert not is_ordinary("DB_PASSWORD", "hunterrabbit")


@pytest.mark.parametrize(
    "text",
    [
        "=" * 200_000,
        "A" * 200_000,
        " " * 200_000,
        "a-" * 100_000,
        'NAME="' + "\\" * 100_000,
        "://" * 60_000,
        "A=" + "a_" * 50_000 + "é",
        "-----BEGIN PRIVATE KEY-----" * 5_000,
        "A=1\n" * 50_000,
        "[" * 100_000,
        '{"a":' * 5_000,
        "https://" + "a:" * 50_000,
        "password " * 20_000,
    ],
)
def test_hostile_text_takes_linear_time(text: str) -> None:
    with processor_time_below(1):
        read_values(text, "x")


def test_unchanged_folder_is_not_listed_again(tmp_path: Path, listed: list[object]) -> None:
    (tmp_path / "notes.txt").write_text("nothing")
    files = SecretFiles([tmp_path])
    os.utime(tmp_path, (0, 0))
    files.rescan()
    files.rescan([str(tmp_path / "notes.txt")])
    assert listed == [str(tmp_path)]
    (tmp_path / ".env").write_text("TOKEN=k-123456789\n")
    assert [known.value for known in files.rescan()] == ["k-123456789"]
    assert listed == [str(tmp_path)] * 2


def test_just_changed_folder_is_listed_again(tmp_path: Path, listed: list[object]) -> None:
    """Its time stamp may stay the same at the next change."""
    files = SecretFiles([tmp_path])
    files.rescan()
    files.rescan()
    assert listed == [str(tmp_path)] * 2


def test_changed_file_in_unchanged_folder_is_reread(tmp_path: Path) -> None:
    env = tmp_path / ".env"
    env.write_text("TOKEN=k-123456789\n")
    os.utime(tmp_path, (0, 0))
    files = SecretFiles([tmp_path])
    files.rescan()
    with env.open("a") as file:
        file.write("OTHER_TOKEN=k-987654321\n")
    assert "k-987654321" in [known.value for known in files.rescan()]


_LISTED: list[object] = []


@cache
def _watch_listings() -> None:
    """An audit hook cannot be removed."""
    sys.addaudithook(lambda event, args: _LISTED.append(args[0]) if event == "os.scandir" else None)


@pytest.fixture
def listed() -> list[object]:
    """The folders that this process lists, from now on."""
    _watch_listings()
    _LISTED.clear()
    return _LISTED
