"""Settings in layers: which value wins, who said it, and what is wrong with one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fakes.sites import site_with
from wolo.config.cli_options import Flags
from wolo.config.layers import load, rows
from wolo.config.schema import Config, Settings
from wolo.errors import ConfigError, UsageError
from wolo.places import Places, find_places


@pytest.fixture
def places() -> Places:
    return find_places()


def write_config(places: Places, text: str | bytes) -> Path:
    places.config.mkdir(parents=True, exist_ok=True)
    path = places.config / "config.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    path.chmod(0o600)
    return path


def loaded(places: Places, *sets: str, environ: dict[str, str] | None = None, flags: Flags | None = None) -> Config:
    return load(site_with(places, environ), flags, sets)


def complaint(places: Places, *sets: str, environ: dict[str, str] | None = None, flags: Flags | None = None) -> str:
    with pytest.raises(UsageError) as caught:
        loaded(places, *sets, environ=environ, flags=flags)
    assert caught.value.exit_code == 2
    return f"{caught.value.message} [{caught.value.hint}]"


def test_without_any_setting_everything_is_the_default(places: Places) -> None:
    config = loaded(places)
    assert config.settings == Settings()
    assert (config.rules, config.notices, dict(config.sources)) == ((), (), {})
    assert {source for _, _, source in rows(config)} == {"default"}


def test_each_level_wins_over_the_one_below(places: Places) -> None:
    path = write_config(places, 'model = "file/m"\nmode = "ask"\n')
    environ = {"WOLO_MODEL": "environment/m", "WOLO_MODE": "plan"}
    flags: Flags = {"model": "flag/m", "mode": "edit"}
    levels = [
        (loaded(places, "model=set/m", "mode=yolo", environ=environ, flags=flags), "set/m", "yolo", "--set", "--set"),
        (loaded(places, environ=environ, flags=flags), "flag/m", "edit", "--model", "--mode"),
        (loaded(places, environ=environ), "environment/m", "plan", "WOLO_MODEL", "WOLO_MODE"),
        (loaded(places), "file/m", "ask", str(path), str(path)),
    ]
    for config, model, mode, model_source, mode_source in levels:
        assert (config.settings.model, config.settings.mode) == (model, mode)
        assert (config.sources["model"], config.sources["mode"]) == (model_source, mode_source)
    path.unlink()
    assert (loaded(places).settings.model, loaded(places).settings.mode) == ("", "auto")


def test_settings_of_one_group_come_from_different_levels(places: Places) -> None:
    write_config(places, '[limits]\nmax_turns = 3\nmax_cost = 1\n[headers.extra]\nX-A = "a"\nX-B = "b"\n')
    config = loaded(places, "headers.extra.X-B=c", flags={"max_turns": "9"})
    assert (config.settings.limits.max_turns, config.settings.limits.max_cost) == (9, 1.0)
    assert config.settings.headers.extra == {"X-A": "a", "X-B": "c"}
    assert config.sources["limits.max_turns"] == "--max-turns"


def test_an_empty_variable_says_nothing(places: Places) -> None:
    assert loaded(places, environ={"WOLO_MODEL": " ", "WOLO_MODE": ""}).settings == Settings()


def test_endpoint_comes_from_environment_or_command_line(places: Places) -> None:
    environ = {"WOLO_BASE_URL": "http://e/v1", "WOLO_API_KEY": "k-e", "WOLO_API": "xml"}
    config = loaded(places, environ=environ, flags={"base_url": "http://f/v1"})
    assert (config.endpoint.base_url, config.endpoint.api_key, config.endpoint.api) == ("http://f/v1", "k-e", "xml")
    assert config.sources["base_url"] == "--base-url"
    assert config.sources["api_key"] == "WOLO_API_KEY"
    assert "k-e" not in str(list(rows(config)))


def test_rules_of_all_levels_count_with_their_origin(places: Places) -> None:
    path = write_config(places, '[permissions]\nallow = ["shell:ls *"]\ndeny = [\n  "shell:rm *",\n]\n')
    config = loaded(places, "permissions.ask=write:*.lock", flags={"allow": ["shell:npm test"], "deny": ["fetch:*"]})
    assert {(rule.decision, str(rule), rule.source) for rule in config.rules} == {
        ("allow", "shell:ls *", str(path)),
        ("deny", "shell:rm *", str(path)),
        ("allow", "shell:npm test", "--allow"),
        ("deny", "fetch:*", "--deny"),
        ("ask", "write:*.lock", "--set"),
    }
    assert config.settings.permissions.allow == ("shell:ls *", "shell:npm test")
    assert config.sources["permissions.allow"] == f"{path}, --allow"


def test_options_that_are_settings_reach_their_key(places: Places) -> None:
    flags: Flags = {
        "thinking": "high",
        "max_cost": "0.5",
        "max_tokens": "1000",
        "max_seconds": "1.5",
        "tools": "read, write",
        "disallow_tools": "shell",
        "sandbox": "off",
        "print": True,
        "file": ["a"],
    }
    settings = loaded(places, flags=flags).settings
    limits = settings.limits
    assert (settings.thinking, limits.max_cost, limits.max_tokens, limits.max_seconds) == ("high", 0.5, 1000, 1.5)
    assert (settings.tools.offer, settings.tools.hide, settings.sandbox.backend) == (("read", "write"), ("shell",), "off")


def test_set_reads_words_as_the_setting_needs_them(places: Places) -> None:
    settings = loaded(
        places,
        "limits.max_turns=5",
        "shell.timeout_s=2.5",
        "ui.plain=true",
        "compaction.auto = false",
        'tools.offer=["read", "write"]',
        "tools.hide=shell",
        "model=a=b",
        'providers."my.host".base_url=http://h/v1',
    ).settings
    assert (settings.limits.max_turns, settings.shell.timeout_s, settings.ui.plain) == (5, 2.5, True)
    assert (settings.compaction.auto, settings.model) == (False, "a=b")
    assert (settings.tools.offer, settings.tools.hide) == (("read", "write"), ("shell",))
    assert settings.providers["my.host"].base_url == "http://h/v1"


@pytest.mark.parametrize("text", ["shell.env.a=1", "providers.me.models.m.price=1"])
def test_set_of_nested_value_is_an_error(places: Places, text: str) -> None:
    with pytest.raises(ConfigError, match="it takes a list"):
        loaded(places, text)


# What is wrong

TYPOS = """
model_ = "x"                        | line 1: there is no setting model_. [Did you mean model?]
[limits]\\nmax_turn = 4              | line 2: there is no setting limits.max_turn. [Did you mean limits.max_turns?]
[limit]\\nmax_turns = 4              | line 1: there is no setting limit. [Did you mean limits?]
max_turns = 4                       | line 1: there is no setting max_turns. [Did you mean limits.max_turns?]
limits.max_trns = 4                 | line 1: there is no setting limits.max_trns. [Did you mean limits.max_turns?]
[permissions]\\nalow = []            | line 2: there is no setting permissions.alow. [Did you mean permissions.allow?]
[shell]\\ntimeout = 4                | line 2: there is no setting shell.timeout. [Did you mean shell.timeout_s?]
[providers.me]\\nbase_ur = "x"       | line 2: there is no setting providers.me.base_ur. [Did you mean providers.me.base_url?]
# a comment\\n\\nzzz = 1              | line 3: there is no setting zzz. [`wolo config show` lists them all.]
limits = 4                          | line 1: limits is a group of settings, not a setting.
[limits]\\nmax_turns = "4"           | line 2: limits.max_turns cannot be "4": it takes a whole number.
[limits]\\nmax_turns = 0             | line 2: limits.max_turns cannot be 0: it must be above 0.
[limits]\\nmax_cost = -0.5           | line 2: limits.max_cost cannot be -0.5: it must be above 0.
[compaction]\\nauto = "yes"          | line 2: compaction.auto cannot be "yes": it takes true or false.
[compaction]\\nkeep_turns = 0        | line 2: compaction.keep_turns cannot be 0: it takes a whole number of at least 1.
[tools]\\noffer = "read"             | line 2: tools.offer cannot be "read": it takes a list.
[tools]\\noffer = [1]                | line 2: tools.offer cannot be [1]: it takes text at [0].
mode = "edti"                       | line 1: mode cannot be "edti": it takes one of plan, ask, edit, auto, yolo.
[providers.me]\\nmodels=[{id="a"},{id="b",contxt=3}] | row 2 of providers.me.models: there is no contxt; there are id, context,
[providers.me]\\nmodels=[{context=3}] | id is missing.
[providers.me]\\nmodels=[{id=""}]   | id cannot be "": it takes text.
[providers.me]\\nmodels=[{id="a",context=0}] | context cannot be 0: it takes a whole number of at least 1.
[providers.me]\\nmodels=[{id="a",context="3k"}] | context cannot be "3k": it takes a whole number.
[providers.me]\\nmodels=[{id="a",price={input=-1}}] | price.input cannot be -1: it takes a number of at least 0.
[providers.me]\\nmodels=[{id="a",price={input=nan}}] | price.input cannot be nan: it takes a number
[providers.me]\\nmodels=[{id="a",price={inptu=1}}] | price: there is no inptu; there are input, output,
[providers.me]\\nmodels=[{id="a",abilities=["tols"]}] | abilities cannot be ['tols']: it takes one of tools,
[providers.me]\\nmodels=["a"]       |  cannot be "a": it takes a table.
[providers.me]\\nauth = "basic"     | line 2: providers.me.auth cannot be "basic": it takes one of bearer,
[providers.me]\\nheaders={"X Y"="1"} | line 2: `X Y` cannot be set as a header. [Remove it from providers.me.headers.]
[providers.me]\\nheaders={Host="x"} | line 2: `Host` cannot be set as a header.
[headers.extra]\\n"a:b" = "1"       | line 2: `a:b` cannot be set as a header. [Remove it from headers.extra.]
[providers."a/b"]\\nbase_url = "x"  | line 1: "a/b" cannot be the name of a provider
[providers.""]\\nbase_url = "x"     | line 1: "" cannot be the name of a provider
thinking = "lots"                   | line 1: thinking cannot be "lots": it takes one of off, minimal,
mode = "yolo"                       | line 1: mode yolo cannot be set in a file or the environment.
[permissions]\\nallow=[\\n"bash:x"]  | line 3) cannot be used: "bash" is not a rule tool.
model = 'a\\nb'                      | line 1:
limits = {max_turns = 4,}           | line 1:
model = "a" "b"                     | line 1:
model = "a"\\n[limits\\nmax_turns=1  | line 2:
model = ["a",                       | line 1:
model = "a"\\nmodel = "b"            | line 2:
[a]\\n{                              | line 2:
"""


@pytest.mark.parametrize("line", TYPOS.strip().split("\n"))
def test_mistake_in_the_file_is_named_with_line(places: Places, line: str) -> None:
    text, _, expected = (part.strip() for part in line.partition(" | "))
    path = write_config(places, text.replace("\\n", "\n"))
    said = complaint(places)
    assert str(path) in said
    assert expected.lower() in said.lower()


def test_a_mistake_elsewhere_names_the_place(places: Places) -> None:
    assert complaint(places, "limits.max_turnz=1").startswith("--set: there is no setting limits.max_turnz. [Did you mean")
    assert complaint(places, "limits=1").startswith("--set: limits is a group")
    assert complaint(places, "ui.plain=maybe").startswith('--set: ui.plain cannot be "maybe": it takes true or false.')
    assert complaint(places, "model").startswith('--set "model" is not KEY=VALUE.')
    assert complaint(places, "=x").startswith('--set "=x" is not KEY=VALUE.')
    assert complaint(places, "tools.offer=[").startswith("the list, line 1")
    assert complaint(places, flags={"max_turns": "ten"}).startswith('--max-turns: limits.max_turns cannot be "ten"')
    assert complaint(places, flags={"max_turns": "-1"}).startswith("--max-turns: limits.max_turns cannot be -1")
    assert complaint(places, flags={"max_seconds": "nan"}).startswith("--max-seconds: limits.max_seconds cannot be")
    assert complaint(places, "shell.timeout_s=nan").startswith("--set: shell.timeout_s cannot be")
    assert complaint(places, flags={"thinking": "lots"}).startswith("--thinking: thinking cannot be")
    assert complaint(places, environ={"WOLO_MODE": "lots"}).startswith("WOLO_MODE: mode cannot be")
    assert complaint(places, flags={"allow": ["ls"]}).startswith('The allow rule "ls" (--allow) cannot be used')
    assert complaint(places, flags={"deny": [""]}).startswith('The deny rule "" (--deny) cannot be used')
    assert "plan, ask, edit" in complaint(places, flags={"mode": "edti"})


@pytest.mark.parametrize("value", ["yolo", "bypassPermissions"])
def test_yolo_is_taken_from_the_command_line_only(places: Places, value: str) -> None:
    assert loaded(places, flags={"mode": value}).settings.mode == "yolo"
    assert "mode" in complaint(places, environ={"WOLO_MODE": value})
    write_config(places, f'mode = "{value}"')
    assert "mode" in complaint(places)


def test_thinking_level_is_written_in_either_case(places: Places) -> None:
    assert loaded(places, flags={"thinking": "HIGH"}).settings.thinking == "high"


def test_foreign_mode_names_work_on_the_command_line(places: Places) -> None:
    assert loaded(places, flags={"mode": "acceptEdits"}).settings.mode == "edit"
    assert loaded(places, flags={"mode": "default"}).settings.mode == "ask"


def test_byte_order_mark_and_windows_lines_are_tolerated(places: Places) -> None:
    write_config(places, b'\xef\xbb\xbfmodel = "m"\r\n[limits]\r\nmax_turns = 2\r\n')
    settings = loaded(places).settings
    assert (settings.model, settings.limits.max_turns) == ("m", 2)


def test_a_trailing_comma_in_a_list_is_fine(places: Places) -> None:
    write_config(places, '[tools]\noffer = ["read", "write",]\n')
    assert loaded(places).settings.tools.offer == ("read", "write")


def test_non_utf8_file_names_the_line(places: Places) -> None:
    write_config(places, b'model = "m"\nmode = "\xff"\n')
    assert "line 2: this is not UTF-8" in complaint(places)


def test_directory_in_place_of_file_is_an_error(places: Places) -> None:
    (places.config / "config.toml").mkdir(parents=True)
    assert "cannot be read" in complaint(places)


def test_a_key_in_a_complaint_is_never_shown(places: Places) -> None:
    for line in (
        'api_key = ["sk-123456789"]',
        'api_key = "sk-123456789',
        'headers = {Authorization = ["sk-123456789"]}',
        'query = {key = ["sk-123456789"]}',
    ):
        write_config(places, f"[providers.me]\n{line}\n")
        said = complaint(places)
        assert "line 2: " in said
        assert "sk-123456789" not in said


def test_providers_of_the_user_have_their_own_type(places: Places) -> None:
    write_config(
        places, '[providers.me]\nbase_url = "http://h/v1"\napi = "openai-chat"\n[[providers.me.models]]\nid = "m"\ncontext = 9\n'
    )
    config = loaded(places)
    assert config.settings.providers["me"].models[0].context == 9
    assert {key: value for key, value, _ in rows(config)}["providers.me.base_url"] == "http://h/v1"
    assert json.dumps(list(rows(config)))


# Who may write the file


def test_a_file_everyone_can_write_is_refused(places: Places) -> None:
    path = write_config(places, 'model = "m"')
    path.chmod(0o666)
    assert "can be written by every user" in complaint(places)
    path.chmod(0o600)
    places.config.chmod(0o777)
    assert "can be written by every user" in complaint(places)


def test_group_writable_file_is_repaired_with_notice(places: Places) -> None:
    path = write_config(places, 'model = "m"')
    path.chmod(0o664)
    config = loaded(places)
    assert config.settings.model == "m"
    assert "could be written by its group" in config.notices[0]
    assert path.stat().st_mode & 0o777 == 0o644
    assert loaded(places).notices == ()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")
@pytest.mark.parametrize("what", ["file", "directory"])
def test_a_file_of_another_user_is_refused(places: Places, what: str) -> None:
    path = write_config(places, 'model = "m"')
    os.chown(path if what == "file" else places.config, 12345, 12345)
    assert "belongs to another user" in complaint(places)


# Rules kept from earlier answers


def test_kept_rules_count_in_their_workspace_only(places: Places, isolated: Path) -> None:
    write_config(places, "")
    path = places.config / "permissions.toml"
    elsewhere = isolated / "elsewhere"
    path.write_text(
        f'["{Path.cwd()}"]\nallow = ["shell:make"]\n["{elsewhere}"]\nallow = ["shell:*"]\n["*"]\ndeny = ["fetch:*"]\n'
    )
    path.chmod(0o600)
    found = loaded(places).rules
    assert {(rule.decision, str(rule)) for rule in found} == {("allow", "shell:make"), ("deny", "fetch:*")}
    assert all(rule.source.startswith(str(path)) for rule in found)


@pytest.mark.parametrize("text", ["x = 1", '["/w"]\nalow = []', '["*"]\nallow = "x"', '["*"]\nallow = ["ls"]', "["])
def test_broken_file_of_kept_rules_is_an_error(places: Places, text: str) -> None:
    write_config(places, "")
    path = places.config / "permissions.toml"
    path.write_text(text)
    path.chmod(0o600)
    assert str(path) in complaint(places)


def test_possible_secret_is_not_shown(places: Places) -> None:
    write_config(
        places,
        '[headers]\nextra = {x-token = "SECRET"}\n'
        '[providers.mine]\nbase_url = "https://me:SECRET@host/v1?k=SECRET"\napi_key = "SECRET"\nheaders = {x-key = "SECRET"}\n',
    )
    config = loaded(places, environ={"WOLO_BASE_URL": "http://me:SECRET@host/v1", "WOLO_API_KEY": "SECRET"})
    shown = {key: value for key, value, _ in rows(config)}
    assert "SECRET" not in str(shown)
    assert shown["base_url"] == "http://host/v1"
    assert shown["headers.extra"] == {"x-token": "(hidden)"}


def test_secret_source_is_shown(places: Places) -> None:
    write_config(
        places,
        '[providers.mine]\napi_key = "$MINE"\nheaders = {x-key = "${MINE}", x-both = "${MINE}-SECRET"}\n'
        'query = {api-version = "7", api-key = "SECRET", sig = "SECRET-0123456789abcd"}\n'
        '[providers.other]\napi_key = "!vault --token SECRET"\n',
    )
    shown = {key: value for key, value, _ in rows(loaded(places))}
    assert "SECRET" not in str(shown)
    assert shown["providers.mine.api_key"] == "$MINE"
    assert shown["providers.mine.headers"] == {"x-key": "${MINE}", "x-both": "(hidden)"}
    assert shown["providers.mine.query"] == {"api-version": "7", "api-key": "(hidden)", "sig": "(hidden)"}


def test_empty_tool_list_differs_from_no_list(places: Places) -> None:
    assert loaded(places).settings.tools.offer is None
    assert loaded(places, flags={"tools": ""}).settings.tools.offer == ()
    assert loaded(places, "tools.offer=read").settings.tools.offer == ("read",)


@pytest.mark.parametrize("which", ["file", "directory"])
def test_dangling_settings_link_differs_from_no_settings(places: Places, which: str) -> None:
    lost = places.config / "config.toml" if which == "file" else places.config
    lost.parent.mkdir(parents=True)
    lost.symlink_to("unmounted")
    assert f"{lost} is a link to unmounted, which does not exist." in complaint(places)


def test_pipe_in_place_of_file_fails_without_waiting(places: Places) -> None:
    path = write_config(places, "")
    path.unlink()
    os.mkfifo(path)
    assert "not a regular file" in complaint(places)


# Start-up


def test_without_a_file_no_parser_is_loaded() -> None:
    script = (
        "import sys; from wolo.config.layers import load; from wolo.workspace.root import find_site;"
        "from msgspec.structs import replace;"
        "load(replace(find_site(), environ={}), {'mode': 'ask', 'max_turns': '3'}, ['ui.plain=true']);"
        "print([name for name in ('tomllib', 'tomlkit', 'difflib', 'pathspec', 'pydantic', 'rich') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]", done.stdout + done.stderr


def test_a_broken_file_is_never_replaced_by_defaults(places: Places) -> None:
    write_config(places, "mode = ")
    with pytest.raises(ConfigError):
        loaded(places, environ={"WOLO_MODE": "ask"})


def test_unknown_word_in_a_list_names_the_nearest(places: Places) -> None:
    with pytest.raises(ConfigError, match=r"ui\.status cannot be .*brnch.*\. Did you mean branch\?"):
        loaded(places, 'ui.status=["dir", "brnch"]')
