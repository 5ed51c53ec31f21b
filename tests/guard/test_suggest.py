"""The rule a call would be remembered by."""

from __future__ import annotations

from pathlib import Path

import pytest

from wolo.guard.intents import CallIntent, FetchIntent, ReadIntent, WriteIntent
from wolo.guard.shell import plain_words
from wolo.guard.suggest import suggest, suggest_command


def of_command(command: str) -> str:
    words = plain_words(command)
    return suggest_command(words) if words else ""


@pytest.mark.parametrize(
    "command", ["rm *.pyc", "python a?.py", "cat [a-b]", 'echo "it\'s" \'"\' "a"\'b\'"c\'d"', "ls | wc", "\u3164"]
)
def test_no_rule_is_offered_where_none_would_be_exact(command: str) -> None:
    assert not of_command(command) or "*" not in of_command(command)


def test_words_are_quoted_as_a_rule_needs_them() -> None:
    assert of_command("python 'a b' '*' plain") == "shell:python 'a b' '*' plain"
    assert of_command("rm *.pyc") == ""


@pytest.mark.parametrize(
    ("intent", "rule"),
    [
        (ReadIntent(Path("/w/a/b.py")), "read:a/b.py"),
        (WriteIntent(Path("/etc/x")), "write:/etc/x"),
        (WriteIntent(Path("/etc/x*")), ""),
        (WriteIntent(Path("/etc/x\n")), ""),
        (WriteIntent(Path("/w/~")), ""),
        (FetchIntent("https://a.org:8443/x"), "fetch:a.org:8443"),
        (FetchIntent("https://größe.de/"), ""),
        (FetchIntent("nonsense"), ""),
        (CallIntent("mcp:a/b"), "mcp:a/b"),
        (CallIntent("mcp:a/*"), ""),
        (CallIntent("task:explore"), "task:explore"),
    ],
)
def test_a_rule_names_exactly_what_was_asked_for(intent: ReadIntent | WriteIntent | FetchIntent | CallIntent, rule: str) -> None:
    assert suggest(intent, "/w") == rule
