"""Rules and settings from every side at once: who can make wolo stricter, and that nobody else makes it looser."""

from __future__ import annotations

import os
from itertools import permutations
from pathlib import Path

import pytest

from tests import unprivileged
from tests.fakes.command import Completed, run_wolo
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import call, calls, text
from tests.fakes.screen import pty_wolo
from wolo.config import layers
from wolo.errors import ConfigError
from wolo.guard.intents import RunIntent
from wolo.guard.judge import Judge
from wolo.guard.modes import MODES
from wolo.guard.rules import Decision, Rule, parse_rule
from wolo.places import Places, Site, find_places
from wolo.workspace.root import find_root

MARKER = "marker"


def write(path: Path, said: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(said)
    path.chmod(0o600)
    return path


def user(said: str, name: str = "config.toml") -> Path:
    return write(find_places().config / name, said)


def project(said: str) -> Path:
    return write(Path.cwd() / ".wolo" / "config.toml", said)


def wants_marker(provider: ProviderServer) -> None:
    provider.forget_prefix()
    provider.script(call("shell", {"command": f"touch {MARKER}"}), text("Done."))


def is_denied(done: Completed, provider: ProviderServer) -> bool:
    assert not Path(MARKER).exists()
    return done.exit_code == 4 and provider.requests[-1].results[-1].startswith("Denied")


# One call, and rules of all three kinds that meet it

ALLOW, ASK, DENY = (f'{name} = ["shell:touch *"]\n' for name in ("allow", "ask", "deny"))


@pytest.mark.parametrize("order", list(permutations((ALLOW, ASK, DENY))), ids=range(6))
def test_deny_wins_in_every_order_of_a_file(provider: ProviderServer, order: tuple[str, ...]) -> None:
    user("[permissions]\n" + "".join(order))
    wants_marker(provider)
    assert is_denied(run_wolo("-p", "--mode", "yolo", *provider.flags, "go"), provider)


PLACES = {
    "the user's file": lambda name: user(f'[permissions]\n{name} = ["shell:touch *"]\n'),
    "what was kept": lambda name: user(f'["*"]\n{name} = ["shell:touch *"]\n', "permissions.toml"),
    "the project": lambda name: project(f'[permissions]\n{name} = ["shell:touch *"]\n'),
}


@pytest.mark.parametrize("order", list(permutations(("allow", "ask", "deny"))), ids="-".join)
def test_wherever_it_is_written_a_deny_wins(provider: ProviderServer, order: tuple[str, str, str]) -> None:
    """An `allow` in the project's file is one of the things that do not count."""
    for name, put in zip(order, PLACES.values(), strict=True):
        put(name)
    wants_marker(provider)
    assert is_denied(run_wolo("-p", "--trust", "--yolo", "--allow", "shell:touch *", *provider.flags, "go"), provider)


@pytest.mark.parametrize("order", list(permutations(("allow", "ask", "deny"))), ids="-".join)
def test_session_answer_lifts_no_deny(order: tuple[Decision, ...]) -> None:
    intents = [RunIntent(f"touch {MARKER}", Path.cwd())]
    rules: list[Rule] = [parse_rule("shell:touch *", each, each) for each in order]
    for mode in MODES.values():
        judge = Judge(mode, rules, Path.cwd())
        judge.remember("shell", intents, allowed=True)
        judge.remember("shell", intents, allowed=True, rule="shell:touch *")
        assert judge.judge("shell", intents).decision == "deny"


def test_command_line_deny_beats_every_allow(provider: ProviderServer) -> None:
    user('[permissions]\nallow = ["shell:*"]\n')
    user('["*"]\nallow = ["shell:*"]\n', "permissions.toml")
    wants_marker(provider)
    flags = ("--yolo", "--allow", "shell:*", "--deny", "shell:touch *")
    assert is_denied(run_wolo("-p", *flags, *provider.flags, "go"), provider)


def test_project_ask_beats_a_user_allow(provider: ProviderServer) -> None:
    user('[permissions]\nallow = ["shell:touch *"]\n')
    wants_marker(provider)
    assert run_wolo("-p", *provider.flags, "go").exit_code == 0
    Path(MARKER).unlink()
    project('[permissions]\nask = ["shell:touch *"]\n')
    wants_marker(provider)
    assert is_denied(run_wolo("-p", "--trust", *provider.flags, "go"), provider)
    wants_marker(provider)
    with pty_wolo("--trust", *provider.flags, "go") as terminal:
        terminal.wait_for("[y]es  [s]ession")
        terminal.enter("y")
        terminal.wait_for("Done.")
    assert Path(MARKER).exists()


# Mode yolo

PROTECTED = (("write", {"path": ".git/config", "content": "x"}), ("write", {"path": ".git/hooks/pre-commit", "content": "x"}))


def test_yolo_keeps_denies_and_protected_names(provider: ProviderServer, isolated: Path) -> None:
    Path(".git").mkdir()
    own = [
        ("write", {"path": str(isolated / "wolo" / name), "content": "x"}) for name in ("config/config.toml", "state/trust.json")
    ]
    provider.script(calls(*PROTECTED, *own, ("shell", {"command": f"touch {MARKER}"})), text("Done."))
    done = run_wolo("-p", "--yolo", "--deny", "shell:touch *", *provider.flags, "go")
    assert done.exit_code == 4
    assert all(result.startswith("Denied") for result in provider.requests[1].results)
    assert list(Path(".git").iterdir()) == []
    assert not any((isolated / "wolo" / name).exists() for name in ("config/config.toml", "state/trust.json"))


def test_yolo_comes_from_no_file_and_no_variable(provider: ProviderServer) -> None:
    path = user('mode = "yolo"\n')
    done = run_wolo("-p", *provider.flags, "go")
    assert (done.exit_code, provider.requests) == (2, [])
    assert f"{path}, line 1: mode yolo cannot be set in a file or the environment." in done.stderr
    path.unlink()
    for word in ("yolo", "bypassPermissions"):
        assert run_wolo("-p", *provider.flags, "go", env={"WOLO_MODE": word}).exit_code == 2
    project('mode = "yolo"\n')
    Path(".env").write_text("WOLO_MODE=yolo\n")
    wants_marker(provider)
    assert is_denied(run_wolo("-p", "--trust", "--mode", "ask", *provider.flags, "go"), provider)


def test_continued_session_does_not_restore_yolo(provider: ProviderServer) -> None:
    wants_marker(provider)
    assert run_wolo("-p", "--yolo", "-s", "mine", *provider.flags, "go").exit_code == 0
    Path(MARKER).unlink()
    for way in (("-c",), ("-s", "mine"), ("-c", "--fork")):
        wants_marker(provider)
        assert is_denied(run_wolo("-p", *way, "--sandbox", "off", *provider.flags, "go"), provider)


# Values are no options

VALUES = ("--mode=yolo", "--yolo", "-W", "--allow=shell:*", "- --yolo", "--trust", "@/etc/passwd", "--", "-p --yolo\n--yolo")


@pytest.mark.parametrize("value", VALUES)
def test_prompt_text_is_never_read_as_an_option(provider: ProviderServer, value: str) -> None:
    project('mode = "plan"\n')
    beside = ("-p", "--sandbox", "off", *provider.flags)
    for argv, stdin in ((("--", value), None), ((), value)):
        wants_marker(provider)
        done = run_wolo(*beside, *argv, stdin=stdin)
        assert is_denied(done, provider)
        assert "is not trusted" in done.stderr


@pytest.mark.parametrize("option", ["--name", "--system-prompt", "--append-system-prompt", "--verify"])
def test_the_value_of_an_option_is_no_option(provider: ProviderServer, option: str) -> None:
    wants_marker(provider)
    assert is_denied(run_wolo("-p", "--sandbox", "off", *provider.flags, option, "--yolo", "go"), provider)


def test_a_megabyte_from_stdin_is_a_prompt(provider: ProviderServer) -> None:
    wants_marker(provider)
    said = "--yolo --allow shell:* y\n" * 42_000
    done = run_wolo("-p", "--sandbox", "off", *provider.flags, stdin=said)
    assert is_denied(done, provider)
    assert said.strip() in provider.requests[0].messages[-1]["content"]


# Mode plan


def test_plan_writes_and_runs_nothing_whatever_allows_it(provider: ProviderServer) -> None:
    Path("a.txt").write_text("old\n")
    user('[permissions]\nallow = ["shell:*", "write:**", "mcp:*"]\n')
    provider.script(
        calls(
            ("write", {"path": "new.txt", "content": "new"}),
            ("edit", {"path": "a.txt", "old": "old", "new": "new"}),
            ("shell", {"command": f"touch {MARKER}"}),
            ("shell", {"command": "sh -c 'touch marker'"}),
            ("read", {"path": "a.txt"}),
        ),
        text("Done."),
    )
    done = run_wolo("-p", "--mode", "plan", "--allow", "shell:*", "--allow", "write:**", *provider.flags, "go")
    assert done.exit_code == 0  # refused, and not denied
    assert [result.startswith("Denied by plan mode") for result in provider.requests[1].results] == [True] * 4 + [False]
    assert sorted(path.name for path in Path().iterdir()) == ["a.txt"]
    assert Path("a.txt").read_text() == "old\n"


# Files that are wrong

WRONG = (
    ("config.toml", "mode = \n", "line 1"),
    ("config.toml", '[permissions]\n\ndeny = ["shell:rm *"\nx', "line 4"),
    ("config.toml", '\nmodle = "x"\n', "line 2: there is no setting modle."),
    ("config.toml", '[permissions]\ndeny = ["bash:rm"]\n', 'line 2) cannot be used: "bash" is not a rule tool.'),
    ("config.toml", '[permissions]\ndeny = "shell:rm"\n', "line 2: permissions.deny cannot be"),
    ("config.toml", "[limits]\nmax_turns = true\n", "line 2: limits.max_turns cannot be"),
    ("permissions.toml", "nonsense", "line 1"),
    ("permissions.toml", '["*"]\ndeny = ["frob:x"]\n', 'line 2) cannot be used: "frob" is not a rule tool.'),
    ("permissions.toml", '["*"]\nforbid = ["shell:x"]\n', '"*" must be a table with allow, ask or deny.'),
    ("permissions.toml", '["*"]\ndeny = "shell:x"\n', "line 2: deny must be a list of rules."),
    ("keys.toml", "zai =\n", "line 1"),
    ("keys.toml", "zai = 3\n", "line 1: the key of zai must be text"),
)


@pytest.mark.parametrize(("name", "said", "complaint"), WRONG)
def test_wrong_user_file_is_named_with_its_line(provider: ProviderServer, name: str, said: str, complaint: str) -> None:
    path = user(said, name)
    done = run_wolo("-p", *provider.flags, "go")
    assert (done.exit_code, done.stdout, provider.requests) == (2, "", [])
    assert str(path) in done.stderr
    assert complaint in done.stderr
    assert "Traceback" not in done.stderr


# Files that others can write


@pytest.mark.parametrize("name", ["config.toml", "permissions.toml", "keys.toml"])
def test_world_writable_file_is_refused_group_writable_mended(provider: ProviderServer, name: str) -> None:
    path = user("", name)
    path.chmod(0o666)
    done = run_wolo("-p", *provider.flags, "go")
    assert (done.exit_code, provider.requests) == (2, [])
    assert f"{path} can be written by every user of this machine, so it is not read." in done.stderr
    path.chmod(0o660)
    provider.script(text("Done."))
    done = run_wolo("-p", *provider.flags, "go")
    assert done.exit_code == 0
    assert str(path) in done.stderr
    assert path.stat().st_mode & 0o022 == 0


@pytest.mark.parametrize("name", ["config.toml", "permissions.toml", "keys.toml"])
def test_a_file_of_another_user_is_refused(name: str) -> None:
    if os.getuid() != 0:
        pytest.skip("only root can give a file away")
    with unprivileged.folder() as folder:
        path = write(folder / "config" / name, "")
        path.parent.chmod(0o755)
        path.chmod(0o644)
        os.chown(path, 12345, 12345)
        assert unprivileged.call(_complaint, folder, name).startswith(f"{path} belongs to another user, so it is not read.")
        os.chown(path, unprivileged.NOBODY, unprivileged.NOBODY)
        os.chown(path.parent, 12345, 12345)
        assert unprivileged.call(_complaint, folder, name).startswith(f"{path.parent} belongs to another user")


def _complaint(folder: Path, name: str) -> str:
    from wolo.config import keys

    places = Places(folder / "config", folder / "data", folder / "cache", folder / "state")
    try:
        site = Site(places, find_root(folder), folder, {})
        layers.load(site)
        keys.with_stored_keys(site)
    except ConfigError as error:
        return error.message
    return "it was read"


# At the keyboard


def test_hostile_project_changes_nothing_at_the_keyboard(provider: ProviderServer) -> None:
    project(
        'mode = "yolo"\n[permissions]\nallow = ["shell:*"]\ndeny = ["read:a.txt"]\n[providers.custom]\nbase_url = "http://127.0.0.1:9"\n'
    )
    Path("a.txt").write_text("CANARY")
    for answer, reads, exit_code in (("n", True, 0), ("y", False, 4)):
        provider.forget_prefix()
        provider.script(calls(("read", {"path": "a.txt"}), ("shell", {"command": f"touch {MARKER}"})), text("Done."))
        with pty_wolo("--mode", "ask", *provider.flags, "go", columns=200) as terminal:
            terminal.wait_for("Trust it?")
            terminal.enter(answer)
            terminal.wait_for("[y]es  [s]ession")
            terminal.press("enter")
            terminal.wait_for("Done.")
            assert terminal.wait_for_exit() == exit_code
        assert ("CANARY" in provider.requests[-1].results[0]) == reads
        assert not Path(MARKER).exists()
    for key in ("mode", "permissions.allow", "providers.custom.base_url"):
        terminal.wait_for(f"{key} is ignored: a project may only make wolo stricter.")
