"""The rule a call would be remembered by."""

from __future__ import annotations

from pathlib import Path

import pytest

from wolo.guard.intents import CallIntent, FetchIntent, ReadIntent, WriteIntent
from wolo.guard.rules import is_too_wide, parse_rule, suggest, suggest_command
from wolo.guard.shell.words import plain_words


def of_command(command: str) -> str:
    words = plain_words(command)
    return suggest_command(words) if words else ""


@pytest.mark.parametrize(
    "command", ["rm *.pyc", "python a?.py", "cat [a-b]", 'echo "it\'s" \'"\' "a"\'b\'"c\'d"', "ls | wc", "\u3164"]
)
def test_inexact_rule_is_not_offered(command: str) -> None:
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


WIDE = """
python *            | wide
python3.12 *        | wide
python3 -c *        | wide
/usr/bin/python3 *  | wide
bash *              | wide
bash -c *           | wide
sudo *              | wide
sudo -u me *        | wide
env *               | wide
xargs *             | wide
timeout 5 *         | wide
npx *               | wide
node *              | wide
awk *               | wide
find *              | wide
ssh host *          | wide
npm *               | wide
npm exec *          | wide
uv run *            | wide
cargo run *         | wide
docker *            | wide
docker run *        | wide
git *               | wide
git -c *            | wide
git * status        | wide
*                   | wide
python x.py         | fine
sudo ls             | fine
pytest *            | fine
touch ma*           | fine
npm test            | fine
npm run *           | fine
npm run build:*     | fine
git diff *          | fine
git push origin *   | fine
cargo build *       | fine
docker ps *         | fine
make -j *           | wide
"""


@pytest.mark.parametrize("line", WIDE.strip().split("\n"))
def test_wildcard_behind_a_runner_is_too_wide(line: str) -> None:
    pattern, _, said = (part.strip() for part in line.partition("|"))
    assert is_too_wide(parse_rule(f"shell:{pattern}", "allow")) == (said == "wide")


def test_only_commands_can_be_too_wide() -> None:
    assert not any(is_too_wide(parse_rule(rule, "allow")) for rule in ("write:**", "read:*", "fetch:*", "mcp:*/*", "task:*"))
