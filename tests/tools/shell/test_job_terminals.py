"""Jobs with a terminal: their screen is read as text, keys are typed, and watched lines come by themselves."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from tests.tools.harness import ToolHarness
from tests.tools.shell.test_jobs import jobs_of
from tests.workspace.living import gone, unique_seconds
from wolo.agent.events import ApprovalAsked
from wolo.errors import ToolError
from wolo.guard.intents import RunIntent
from wolo.guard.judge import Judge
from wolo.guard.modes import MODES
from wolo.guard.rules import Verdict, parse_rule
from wolo.guard.secrets.redactor import Secrets
from wolo.messages.parts import ToolPart
from wolo.messages.secret_values import Secret
from wolo.tools import shell
from wolo.tools.background import job_terminal
from wolo.tools.background.background_jobs import BackgroundJobs, Job
from wolo.tools.background.job_output import LineWatch, read_pattern
from wolo.tools.background.job_terminal import JobTerminal
from wolo.tools.jobs_tool import JobsArgs

SECRET = "sk-terminal-0123456789-abcdefghij"


@pytest.fixture(autouse=True)
def quick_first_look(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shell, "FIRST_LOOK_S", 0.01)


async def begin(harness: ToolHarness, command: str, shows: str = "") -> str:
    """Returns the screen once it shows the text."""
    await harness.call("shell", command=command, background=True, pty=True)
    if not shows:
        return ""
    assert await jobs_of(harness).find(1).wait_for_line(read_pattern(shows), 60) is not None
    return await screen(harness)


async def screen(harness: ToolHarness) -> str:
    return (await harness.call("jobs", action="screen", id=1)).text


async def type_text(harness: ToolHarness, text: str) -> str:
    return (await harness.call("jobs", action="input", id=1, text=text, wait_s=10)).text


def terminal_of(harness: ToolHarness) -> JobTerminal:
    terminal = jobs_of(harness).find(1).terminal
    assert terminal is not None
    return terminal


async def ended(harness: ToolHarness) -> Job:
    job = jobs_of(harness).find(1)
    await job.wait(60)
    assert job.ending is not None
    return job


def screen_of(*output: bytes, secrets: Secrets | None = None) -> str:
    terminal = JobTerminal(secrets or Secrets())
    take = terminal.pass_on(lambda chunk: None)
    for chunk in output:
        take(chunk)
    return terminal.show()


async def test_typed_answer_reaches_program(harness: ToolHarness) -> None:
    begun = await begin(harness, "read -p 'name? ' name; echo hello $name; read wait", "name")
    assert begun.startswith("name?\n[screen of 80×24; the cursor is in row 1, column 7]\n[job 1 (")
    assert "hello Ann\n" in await type_text(harness, "Ann\n")


async def test_program_has_terminal_of_its_own(harness: ToolHarness) -> None:
    shown = await begin(harness, "tty -s && echo is-a-tty; echo $TERM; echo through >/dev/tty; stty size", "24 80")
    assert shown.startswith("is-a-tty\nlinux\nthrough\n24 80\n")


async def test_control_c_interrupts_program(harness: ToolHarness) -> None:
    n = unique_seconds()
    await begin(harness, f"trap 'echo interrupted; exit 7' INT; echo ready; sleep {n}", "ready")
    await type_text(harness, "\x03")
    job = await ended(harness)
    assert job.ending is not None
    assert job.ending.exit_code == 7
    assert "interrupted" in await screen(harness)
    assert gone(n)


async def test_screen_follows_size_set_by_program(harness: ToolHarness) -> None:
    shown = await begin(harness, "stty cols 120 rows 40; printf 'x%.0s' $(seq 110); read wait", "x" * 110)
    assert shown.startswith("x" * 110 + "\n[screen of 120×40;")


async def test_absurd_size_is_bounded(harness: ToolHarness) -> None:
    assert "[screen of 500×200;" in await begin(harness, "stty cols 65535 rows 65535; echo big; read wait", "big")


async def test_input_after_end_is_refused(harness: ToolHarness) -> None:
    await begin(harness, "echo over; exit 3")
    await ended(harness)
    with pytest.raises(ToolError, match=r"Job 1 has ended: exit 3 .* Nothing was typed"):
        await type_text(harness, "more\n")
    assert "over" in await screen(harness)


async def test_job_without_terminal_has_no_keyboard(harness: ToolHarness) -> None:
    await harness.call("shell", command="sleep 60", background=True)
    for action in ({"action": "input", "text": "x"}, {"action": "screen"}):
        with pytest.raises(ToolError, match="Job 1 has no terminal: start it with"):
            await harness.call("jobs", id=1, **action)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"action": "input", "id": 1}, "`input` needs a `text`"),
        ({"action": "screen", "id": 1, "text": "x"}, "`text` is for the action `input`"),
        ({"action": "input", "id": 9, "text": "x"}, "There is no job 9; there are 1"),
        ({"action": "input", "id": 1, "text": ""}, "1 to 10,000 characters"),
        ({"action": "input", "id": 1, "text": "x" * 10_001}, "1 to 10,000 characters"),
        ({"action": "input", "id": 1, "text": "x" * 1001 + "\n"}, "more than 1,000 bytes, which terminals cut"),
        ({"action": "input", "id": 1, "text": "\ud800"}, "half of a surrogate pair"),
        ({"action": "watch", "id": 1}, "`watch` needs a `pattern`"),
    ],
)
async def test_wrong_call_is_refused_with_words(harness: ToolHarness, arguments: dict[str, object], message: str) -> None:
    await begin(harness, "read wait")
    with pytest.raises(ToolError, match=message):
        await harness.call("jobs", **arguments)


async def test_terminal_without_background_is_refused(harness: ToolHarness) -> None:
    with pytest.raises(ToolError, match="`pty` is for jobs"):
        await harness.call("shell", command="vim", pty=True)


async def test_secret_is_never_typed(harness: ToolHarness) -> None:
    harness.services.secrets.learn([Secret("KEY", SECRET)])
    await begin(harness, "read wait")
    with pytest.raises(ToolError, match="secrets are never typed"):
        await type_text(harness, f"{SECRET}\n")


async def test_input_is_judged_as_piped_command(harness: ToolHarness) -> None:
    await begin(harness, "cat")
    tool, _ = harness.toolbox.decode("jobs", {})
    intents = tool.intents(JobsArgs("input", 1, "it's \\ ü\n\x03"), harness.services)
    keys = shlex.quote("it's \\\\ ü\n\\x03")
    assert intents == (RunIntent(f"printf '%b' {keys} | cat", harness.root),)
    assert tool.intents(JobsArgs("screen", 1), harness.services) == ()


def verdict_of(harness: ToolHarness, text: str, *rules: str, mode: str = "auto") -> Verdict:
    judge = Judge(MODES[mode], [parse_rule(each, "deny") for each in rules], harness.root, confine="unless_allowed")
    tool, args = harness.toolbox.decode("jobs", {"action": "input", "id": 1, "text": text})
    return judge.judge("jobs", tool.intents(args, harness.services))


@pytest.mark.parametrize(
    "text",
    [
        "rm -rf build\n",
        "ls\nrm -rf build\n",
        "ls\rrm -rf build\r",
        "it's\nrm -rf build\n",
        "cd sub\nrm kept\n",
        "r",
        "rx\x7fm -rf build\n",
        "\x15rm -rf build\n",
        "\x1b[A\n",
        "rm -r\t\n",
        "!!\n",
        "r\x04",
    ],
)
async def test_irreversible_or_unclear_typing_asks(harness: ToolHarness, text: str) -> None:
    harness.put("build/x", "1")
    harness.put("sub/kept", "1")
    await begin(harness, "bash")
    assert verdict_of(harness, text).decision == "ask"


@pytest.mark.parametrize("text", ["ls\n", "echo hi!\n", "[ a != b ]\n", "\x03", "\x04"])
async def test_plain_typing_in_shell_does_not_ask(harness: ToolHarness, text: str) -> None:
    await begin(harness, "bash")
    assert verdict_of(harness, text).decision == "allow"


async def test_keys_in_other_programs_do_not_ask(harness: ToolHarness) -> None:
    await begin(harness, "python3")
    assert verdict_of(harness, "\x1b[A").decision == "allow"


async def test_line_in_pieces_asks_until_enter(harness: ToolHarness) -> None:
    await begin(harness, "bash")
    await type_text(harness, "r")
    assert verdict_of(harness, "m -rf build\n").decision == "ask"
    await type_text(harness, "\x03")  # a program may ignore it
    assert verdict_of(harness, "m -rf build\n").decision == "ask"
    await type_text(harness, "\n")
    assert verdict_of(harness, "ls\n").decision == "allow"


async def test_yes_to_unclear_keys_is_not_remembered(harness: ToolHarness) -> None:
    await begin(harness, "bash")
    judge = Judge(MODES["auto"], [], harness.root, confine="unless_allowed")
    tool, args = harness.toolbox.decode("jobs", {"action": "input", "id": 1, "text": "\x1b[A\n"})
    intents = tool.intents(args, harness.services)
    assert judge.suggest_rule(intents) == ""
    judge.remember("jobs", intents, allowed=True)
    assert judge.judge("jobs", intents).decision == "ask"
    part = ToolPart(id="1", call_id="1", tool="jobs", input={})
    assert ApprovalAsked(id="1", part=part, intents=tuple(intents), reason="", rule="").only_once


async def test_earlier_directories_and_variables_count(harness: ToolHarness) -> None:
    harness.put("sub/kept", "1")
    await begin(harness, "bash")
    assert verdict_of(harness, "rm kept\n").decision == "allow"
    await type_text(harness, "cd sub && ls\n")
    assert verdict_of(harness, "ls\n").decision == "allow"
    assert verdict_of(harness, "rm kept\n").decision == "ask"
    await type_text(harness, "X='rm'\n")
    assert verdict_of(harness, "$X -rf sub\n").decision == "ask"


async def test_denied_program_is_not_typed(harness: ToolHarness) -> None:
    await begin(harness, "bash")
    assert verdict_of(harness, "ls\ncurl x\n", "shell:curl *").decision == "deny"
    assert verdict_of(harness, "cu", "shell:curl *", mode="yolo").decision == "deny"
    assert verdict_of(harness, "ls\n", "shell:curl *", mode="yolo").decision == "allow"


async def test_confined_input_is_not_typed_outside(harness: ToolHarness) -> None:
    await begin(harness, "read line; echo got $line")
    harness.confined = True
    refused = await harness.call("jobs", action="input", id=1, text="x\n")
    assert refused.is_error
    assert refused.text.endswith("Job 1 runs outside the sandbox, and so would what is typed.\n")
    assert "got x" not in await screen(harness)


async def test_program_that_reads_nothing_takes_part(harness: ToolHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_terminal, "_TYPING_S", 0.2)
    await begin(harness, "stty raw -echo; echo ready; sleep 60", "ready")
    text = ("y" * 900 + "\n") * 11
    typed = [await harness.call("jobs", action="input", id=1, text=text, wait_s=0) for _ in range(10)]
    assert typed[-1].is_error
    assert "[only 0 of 9,911 characters were typed: the program does not read]" in typed[-1].text


async def test_flood_ends_in_its_last_lines(harness: ToolHarness) -> None:
    shown = await begin(harness, "seq 1 300000; read wait", "300000")
    assert shown.startswith("299978\n299979\n")


@pytest.mark.parametrize(
    "noise",
    [
        bytes(range(256)) * 40,
        b"\x1b[?1;2c\x1b[?6n\x1b[>4;2m\x1b[=1;1u\x1b[38:2::1:2:3m\x1b[!p\x1b[2 q",
        b"\x1bP+q544e\x1b\\\x1b_hidden\x1b\\\x1b^x\x1b\\\x1b]0;title\x07",
        b"\x1b[999999999L\x1b[999999999X\x1b[999999999;1H\x1b[5;2r\x1b[r",
        b"\xff\xfe\xc3",
    ],
)
def test_noise_does_not_spoil_next_screen(noise: bytes) -> None:
    assert "clean\n" in screen_of(noise, b"\x18\x1b\\\x1bc", b"clean")


def test_sequence_cut_in_two_stays_invisible() -> None:
    for cut in range(1, 12):
        whole = b"ab\x1b[>4;2m\x1b[38:5:1mcd"
        assert screen_of(whole[:cut], whole[cut:]).startswith("abcd\n")


@pytest.mark.parametrize("hidden", ["\ufe0f", "\u200b", "\u200d", "\u202e", "\ufeff", "\u2028", "\U000e0041"])
def test_invisible_character_hides_no_text(hidden: str) -> None:
    assert screen_of(f"one{hidden} two\n".encode()).startswith("one two\n")


def test_drawn_screen_is_shown_as_drawn() -> None:
    shown = screen_of(b"old\x1b[2J\x1b[3;5Hmenu\x1b[1;1Htop \x1b[31mred\x1b[0m \xe4\xbd\xa0\xe5\xa5\xbd")
    assert shown == "top red 你好\n\n    menu\n[screen of 80×24; the cursor is in row 1, column 13]\n"


@pytest.mark.parametrize("before", [0, 60, 79])
def test_secret_on_screen_is_redacted(before: int) -> None:
    secrets = Secrets([Secret("KEY", SECRET)])
    shown = screen_of(b"\r\n".join([b"." * before + SECRET[:9].encode(), b""])[:-2] + SECRET[9:].encode(), secrets=secrets)
    assert "SECRET_KEY_" in shown or "****\n" in shown
    assert all(piece not in shown for piece in (SECRET[:12], SECRET[-12:]))


def test_secret_that_scrolled_half_away_is_redacted() -> None:
    secrets = Secrets([Secret("KEY", "k" * 30 + "".join(f"{n:03}" for n in range(40)))])
    value = "k" * 30 + "".join(f"{n:03}" for n in range(40))
    assert "038039" not in screen_of(value.encode() + b"\r\nx" * 23, secrets=secrets)


async def test_watched_lines_come_once_and_bounded(harness: ToolHarness) -> None:
    command = "read go; for n in $(seq 30); do echo error $n; echo fine $n; done; printf 'error last'"
    await begin(harness, command)
    await harness.call("jobs", action="watch", id=1, pattern="error")
    jobs = jobs_of(harness)
    assert jobs.news() == []
    await terminal_of(harness).type("\n")
    await ended(harness)
    name = jobs.find(1).name
    news = jobs.news()
    assert news[:2] == [f"[{name}] error 1", f"[{name}] error 2"]
    assert news[20:] == [f"[{name}] … and 11 more lines that match", f"[{name} has ended: {jobs.find(1).ending}]"]
    assert (jobs.news(), jobs.watches) == ([], {})


def test_line_in_pieces_matches_as_whole() -> None:
    watch = LineWatch(read_pattern("error .* here"))
    for piece in (b"err", b"or 5 is", b" here\nno"):
        watch.add(piece)
    assert watch.take() == ["error 5 is here"]
    watch.end()
    assert watch.take() == []


async def test_terminal_is_closed_with_conversation(harness: ToolHarness, tmp_path: Path) -> None:
    n = unique_seconds()
    await begin(harness, f"trap '' HUP; echo ready; sleep {n}", "ready")
    assert isinstance(harness.services.shell.jobs, BackgroundJobs)
    harness.services.shell.close()
    assert gone(n)
    assert jobs_of(harness).find(1).program.output.descriptor is None
