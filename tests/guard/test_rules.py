"""Rules as people write them."""

from __future__ import annotations

from pathlib import Path

import pytest

from wolo.errors import ConfigError
from wolo.guard.rule_patterns import PathBase, PathPattern
from wolo.guard.rules import Rule, Verdict, parse_rule

GOOD = """
read:~/.ssh/**
write:src/**
write:**/*.lock
write:[id].tsx
read:/
shell:git push *
shell:*
shell:git * --force
shell:echo 'a; b' "it's"
shell:npm run test:*
fetch:*
fetch:docs.python.org
fetch:*.python.org
fetch:localhost:8080
fetch:127.0.0.1
fetch:[::1]:8080
mcp:github/get_issue
mcp:github/*
mcp:github
task:explore
task:*
"""

BAD = """
ls                        | "ls" is not a rule tool
                          | is not a rule tool
bash:ls                   | "shell:…" covers it
edit:src/**               | "write:…" covers it
Bash(git *)               | "shell:…" covers it
Read:x                    | is not a rule tool
shell                     | it has no pattern
shell:                    | it has no pattern
write:                    | "write:**"
shell:ls; rm x            | plain words
shell:ls && *             | plain words
shell:ls > x              | plain words
shell:A=1 ls              | plain words
shell:echo $HOME          | plain words
shell:'unclosed           | plain words
shell:time ls             | plain words
fetch:https://a.org       | is not a host
fetch:a.org/path          | is not a host
fetch:a b                 | is not a host
fetch:*a.org              | is not a host
fetch:-a.org              | is not a host
mcp:a/b/c                 | wrong form
mcp:a b                   | wrong form
task:a/b                  | wrong form
read:~root/x              | is not expanded
read:$HOME/x              | is not expanded
read:*/../x               | after a wildcard
read:key[0-9]             | is not a wildcard here
read:[!a]*                | is not a wildcard here
read:**/*.{pem,key}       | is not a wildcard here
write:!src/**             | does not negate
"""


@pytest.mark.parametrize("text", GOOD.strip().split("\n"))
def test_a_rule_is_read_and_written_back(text: str) -> None:
    assert str(parse_rule(f" {text} ", "allow", "--allow")) == text


def test_rule_knows_its_parts_and_origin() -> None:
    assert parse_rule("shell:git push *", "ask", "config.toml") == Rule("ask", "shell", "git push *", "config.toml")


@pytest.mark.parametrize("line", BAD.strip("\n").split("\n"))
def test_ineffective_rule_is_an_error_naming_it(line: str) -> None:
    text, _, expected = (part.strip() for part in line.rpartition("|"))
    with pytest.raises(ConfigError) as caught:
        parse_rule(text, "deny", "--deny")
    assert caught.value.message.startswith(f'The deny rule "{text}" (--deny) cannot be used: ')
    assert expected in f"{caught.value.message} {caught.value.hint}"
    assert caught.value.exit_code == 2


def test_partial_program_name_denies_but_never_allows() -> None:
    assert parse_rule("shell:rm* *", "deny").pattern == "rm* *"
    with pytest.raises(ConfigError, match="plain words"):
        parse_rule("shell:rm* *", "allow")


@pytest.mark.parametrize("hidden", ["read:a\u200bb", "shell:ls\nrm", "read:\x1b[2J", "fetch:a\xa0b"])
def test_rule_with_invisible_characters_is_an_error(hidden: str) -> None:
    with pytest.raises(ConfigError):
        parse_rule(hidden, "allow")


def test_unattended_question_is_a_no() -> None:
    asked = Verdict("ask", "Commands ask.", "shell:x", "here")
    assert asked.without_person().decision == "deny"
    assert asked.without_person().rule == "shell:x"
    assert asked.without_person().reason.startswith("Commands ask. No one could approve it")
    assert Verdict("ask", "hm").without_person().reason.startswith("hm. No one could approve it")
    allowed = Verdict("allow", "Fine.")
    assert allowed.without_person() is allowed


# Path patterns: pattern | what it matches | what it does not

PATHS = """
src/**          | /w/src /w/src/a /w/src/a/b     | /w/srcs /w/x/src/a /src/a
src/*.py        | /w/src/a.py                    | /w/src/a/b.py /w/src/a.pyc /w/src/a.py/x
src             | /w/src /w/src/a/b              | /w/src2 /w/a/src
src/            | /w/src /w/src/a                | /w/src2
./src/../lib    | /w/lib/a                       | /w/src/a
**/*.lock       | /w/a.lock /w/x/y/a.lock        | /w/a.lock2 /x/a.lock
**              | /w /w/a /w/.a/b                | /x /wx
*               | /w/a /w/.env                   | /w/a/b /x
a?c             | /w/abc                         | /w/ac /w/abbc /w/a/c
a/**/b          | /w/a/b /w/a/x/b /w/a/x/y/b     | /w/a/xb /w/b
[id].tsx        | /w/[id].tsx                    | /w/i.tsx
a.b             | /w/a.b                         | /w/axb
~/.ssh/**       | /h/.ssh /h/.ssh/id             | /h/.sshd /w/.ssh/id
~               | /h /h/x                        | /hx
/etc/**         | /etc /etc/passwd               | /etcx /w/etc/passwd
//etc/hosts     | /etc/hosts                     | /etc/hosts2
/**             | / /a /w/b                      |
../x/**         | /x/a                           | /w/x/a
"""


@pytest.mark.parametrize("line", PATHS.strip().split("\n"))
@pytest.mark.parametrize("wide", [False, True])
def test_path_patterns_match_whole_names(line: str, wide: bool) -> None:
    text, yes, no = (part.strip() for part in line.split("|"))
    pattern = PathPattern(text, PathBase("/w", "/h"), wide=wide)
    assert [path for path in yes.split() if not pattern.matches(path)] == []
    wider = {"/w/src/a.py/x", "/w/a/b"} if wide else set()
    assert [path for path in no.split() if pattern.matches(path) and path not in wider] == []


def test_denied_directory_is_denied_with_its_content() -> None:
    ground = PathBase("/w", "/h")
    assert PathPattern("private/*", ground, wide=True).matches("/w/private/a/b")
    assert not PathPattern("private/*", ground, wide=False).matches("/w/private/a/b")


def test_case_counts_unless_the_volume_ignores_it() -> None:
    assert not PathPattern("src/**", PathBase("/w", "/h"), wide=True).matches("/w/SRC/a")
    assert PathPattern("src/**", PathBase("/w", "/h", fold_case=True), wide=True).matches("/w/SRC/a")


def test_a_home_that_is_a_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "linked").symlink_to("real")
    pattern = PathPattern("~/.ssh/**", PathBase("/w", str(tmp_path / "linked")), wide=False)
    assert pattern.matches(f"{tmp_path}/real/.ssh/id")
