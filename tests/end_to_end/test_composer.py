"""The composer in a pty: keys typed, screen read."""

from __future__ import annotations

import signal
import stat
import time
from pathlib import Path

import pytest

from tests.end_to_end.test_repl import leave, prompts, repl, shown, wait_for_prompt
from tests.end_to_end.waiting import wait_for
from tests.fakes.constants import set_constants
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import Hold, call, delta, finish, sse, text, usage
from tests.fakes.screen import Terminal, pty_wolo
from tests.fakes.tmux import tmux_wolo
from wolo.places import find_places

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 20
CTRL_G, CTRL_U = "\x07", "\x15"


def settings(written: str) -> None:
    folder = find_places().config
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.toml").write_text(written)


def editor(monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """VISUAL is this script; `$1` is the file."""
    path = Path("../editor.sh").resolve()
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o700)
    monkeypatch.setenv("VISUAL", str(path))


def written(terminal: Terminal) -> str:
    """What stands where one writes, on one row; in a narrow window on all of them."""
    rows = shown(terminal)
    at = max((at for at, row in enumerate(rows) if row.startswith("›")), default=len(rows))
    return " ".join(rows[at : -1 if terminal.is_narrow else at + 1]).removeprefix("›").strip()


def wait_for_written(terminal: Terminal, wanted: str) -> None:
    def is_written() -> bool:
        stands = written(terminal)
        return stands == wanted or (terminal.is_narrow and "".join(stands.split()) == "".join(wanted.split()))

    terminal.wait_until(is_written, complaint=f"{wanted!r} was not written")


def wait_for_offer(terminal: Terminal, typed: str, offered: str) -> None:
    """The menu for all that was typed: the one before is taken away when more of it arrives."""

    def is_offered() -> bool:
        return "".join(written(terminal).split()).startswith("".join(typed.split())) and terminal.shows(offered)

    terminal.wait_until(is_offered, complaint=f"{offered!r} was not offered for {typed!r}")


# History


def test_each_directory_has_a_history_of_its_own(provider: ProviderServer) -> None:
    provider.script(text("One."), text("Two."))
    for name in ("here", "there"):
        Path(name).mkdir()
        with repl(provider, "-C", name) as terminal:
            provider.forget_prefix()
            terminal.enter(f"asked {name}")
            terminal.wait_for("One." if name == "here" else "Two.")
            leave(terminal)
    with repl(provider, "-C", "here") as terminal:
        terminal.press("up")
        wait_for_written(terminal, "asked here")
        terminal.press("up")
        time.sleep(0.2)
        assert written(terminal) == "asked here"


def test_the_history_of_earlier_versions_is_taken_over(provider: ProviderServer) -> None:
    state = find_places().state
    state.mkdir(parents=True)
    (state / "history").write_text("\n# 2024-01-01 00:00:00\n+first of old\n\n# 2024-01-02 00:00:00\n+two\n+lines\n")
    with repl(provider) as terminal:
        terminal.press("up")
        terminal.wait_for("lines")
        terminal.press("up", "up")
        wait_for_written(terminal, "first of old")
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in (state / "history").iterdir())


def test_sent_prompt_is_found_with_ctrl_r(provider: ProviderServer) -> None:
    provider.script(text("One."), text("Two."), text("Three."))
    with repl(provider) as terminal:
        for number, words in enumerate(("the needle", "some hay")):
            terminal.enter(words)
            terminal.wait_for(("One.", "Two.")[number])
            wait_for_prompt(terminal)
        terminal.press("ctrl-r")
        terminal.wait_for("search: " if terminal.is_narrow else "search history:")
        terminal.type("NEED")
        terminal.wait_until(lambda: "› the needle" in terminal.lines)
        terminal.press("enter", "enter")
        terminal.wait_for("Three.")
        leave(terminal)
    assert prompts(provider)[-1] == "the needle"


def test_up_moves_through_lines_before_history(provider: ProviderServer) -> None:
    provider.script(text("One."), text("Two."))
    with repl(provider) as terminal:
        terminal.enter("earlier")
        terminal.wait_for("One.")
        wait_for_prompt(terminal)
        terminal.type("first\nsecond")
        terminal.wait_for("second")
        terminal.press("up")
        terminal.type("!")
        terminal.wait_for("first!")
        terminal.press("enter")
        terminal.wait_for("Two.")
        leave(terminal)
    assert prompts(provider)[-1] == "first!\nsecond"


def test_two_processes_and_a_killed_one_share_history(provider: ProviderServer) -> None:
    hold = Hold()
    provider.script(text("One."), sse(delta("Two"), hold))
    with repl(provider) as first, repl(provider) as second:
        first.enter("from the first")
        first.wait_for("One.")
        provider.forget_prefix()
        second.enter("from the second")
        second.wait_for("writing ·")
        second.child.kill(signal.SIGKILL)
        second.wait_for_exit()
        leave(first)
    hold.release()
    with repl(provider) as third:
        third.press("up")
        wait_for_written(third, "from the second")
        third.press("up")
        wait_for_written(third, "from the first")


# Pastes


def test_folded_paste_moves_and_deletes_as_one(provider: ProviderServer) -> None:
    provider.script(text("Read."))
    pasted = "\n".join(f"line {number}" for number in range(40))
    with repl(provider) as terminal:
        terminal.type("a ")
        terminal.paste(pasted)
        wait_for_written(terminal, "a [Pasted #1: 40 lines]")
        terminal.press("left")
        terminal.type("b ")
        wait_for_written(terminal, "a b [Pasted #1: 40 lines]")
        terminal.wait_until(lambda: terminal.cursor[1] == len("› a b "))
        terminal.press("end")
        terminal.paste("x" * 1001)
        wait_for_written(terminal, "a b [Pasted #1: 40 lines][Pasted #2: 1,001 characters]")
        terminal.press("backspace", "left", "left", "left")
        wait_for_written(terminal, "a b [Pasted #1: 40 lines]")
        terminal.press("enter")
        terminal.wait_for("Read.")
        leave(terminal)
    assert prompts(provider) == [f"a b {pasted}"]


def test_folded_paste_returns_from_another_process_history(provider: ProviderServer) -> None:
    provider.script(text("One."), text("Two."))
    pasted = "\n".join(f"line {number}" for number in range(5000))
    with repl(provider) as terminal:
        terminal.paste(pasted)
        terminal.wait_for("[Pasted #1: 5,000 lines]")
        terminal.press("enter")
        terminal.wait_for("One.")
        leave(terminal)
    with repl(provider) as terminal:
        provider.forget_prefix()
        terminal.paste("y" * 2000)
        terminal.wait_for("[Pasted #1: 2,000 characters]")
        terminal.type(CTRL_U)
        terminal.press("up")
        wait_for_written(terminal, "[Pasted #2: 5,000 lines]")
        terminal.press("enter")
        terminal.wait_for("Two.")
        leave(terminal)
    assert prompts(provider) == [pasted, pasted]


def test_five_thousand_unmarked_lines_are_one_message(provider: ProviderServer) -> None:
    provider.script(text("Read."))
    lines = [f"\tline {number} ü" for number in range(5000)]
    with repl(provider) as terminal:
        terminal.type("\r".join(lines))
        assert not provider.requests
        wait_for_written(terminal, "[Pasted #1: 5,000 lines]")
        terminal.press("enter")
        terminal.wait_for("Read.")
        leave(terminal)
    assert prompts(provider) == ["\n".join(lines)]


def test_a_paste_is_only_text(provider: ProviderServer) -> None:
    provider.script(text("Read."))
    with repl(provider) as terminal:
        terminal.paste("tab\there\r\nnext\rlast\x00\x07 \x1b[31mred\x1b[0m \x1b[201~ \x9b1mend\x7f")
        terminal.wait_for("end")
        assert not provider.requests
        terminal.press("enter")
        terminal.wait_for("Read.")
        leave(terminal)
    assert prompts(provider) == ["tab\there\nnext\nlast red  1mend"]


def test_bytes_that_are_no_text_do_no_harm(provider: ProviderServer, monkeypatch: pytest.MonkeyPatch) -> None:
    provider.script(text("Read."))
    editor(monkeypatch, "echo and more >> $1")
    with repl(provider) as terminal:
        terminal.child.send(b"caf\xe9s ")
        terminal.wait_for("caf\ufffds")
        terminal.type(CTRL_G)
        terminal.wait_for("and more")
        terminal.press("enter")
        terminal.wait_for("Read.")
        leave(terminal)
    assert prompts(provider) == ["caf\ufffds and more"]


@pytest.mark.parametrize(
    "form",
    ["{path}", "'{path}'", "{escaped}", "file://{url}", "two words.png"],
    ids=["plain", "quoted", "escaped", "url", "beside"],
)
def test_an_image_that_is_dropped_becomes_an_attachment(provider: ProviderServer, form: str) -> None:
    provider.script(text("Seen."))
    path = Path("two words.png").resolve()
    path.write_bytes(PNG)
    dropped = form.format(path=path, escaped=str(path).replace(" ", "\\ "), url=str(path).replace(" ", "%20"))
    with repl(provider) as terminal:
        terminal.paste(dropped)
        wait_for_written(terminal, '@"two words.png"')
        terminal.type("what is it?")
        terminal.press("enter")
        terminal.wait_for("Seen.")
        leave(terminal)
    content = provider.requests[0].messages[-1]["content"]
    assert [part["type"] for part in content] == ["text", "image_url"]


# The editor


def test_editor_changes_text_and_shows_whole_paste(
    provider: ProviderServer, monkeypatch: pytest.MonkeyPatch, isolated: Path
) -> None:
    provider.script(text("Read."))
    editor(
        monkeypatch, f'cp "$1" {isolated}/seen; stat -c %a "$1" > {isolated}/mode; stty -a > {isolated}/modes; echo added >> "$1"'
    )
    pasted = "\n".join(f"line {number}" for number in range(40))
    with repl(provider) as terminal:
        terminal.type("look: ")
        terminal.paste(pasted + "\n")
        terminal.wait_for("[Pasted #1: 41 lines]")
        terminal.type(CTRL_G)
        terminal.wait_for("added")
        terminal.press("enter")
        terminal.wait_for("Read.")
        leave(terminal)
    assert (isolated / "seen").read_text() == f"look: {pasted}\n"
    assert (isolated / "mode").read_text() == "600\n"
    modes = (isolated / "modes").read_text().replace(";", "").split()
    assert {"icanon", "echo", "isig", "icrnl"} <= set(modes)
    assert prompts(provider) == [f"look: {pasted}\nadded"]


def test_failed_editor_changes_nothing_and_is_named(provider: ProviderServer, monkeypatch: pytest.MonkeyPatch) -> None:
    editor(monkeypatch, 'echo ruined > "$1"; exit 3')
    with repl(provider) as terminal:
        terminal.type("my words")
        terminal.type(CTRL_G)
        terminal.wait_for("failed with exit code 3")
        wait_for_written(terminal, "my words")
        terminal.press("ctrl-c")
        leave(terminal)
    for name in ("no-such-editor --wait", "'unclosed"):
        monkeypatch.setenv("VISUAL", name)
        with repl(provider) as terminal:
            terminal.enter("/editor")
            terminal.wait_for("VISUAL")
            wait_for_prompt(terminal)


def test_output_waits_while_the_editor_is_open(provider: ProviderServer, monkeypatch: pytest.MonkeyPatch) -> None:
    hold = Hold()
    provider.script(sse(delta("Some words.\n"), hold, delta("The end."), finish("stop", usage())), text("Next."))
    editor(monkeypatch, "echo IN THE EDITOR; while [ ! -e go ]; do sleep 0.05; done; echo edited > $1")
    with repl(provider) as terminal:
        terminal.enter("talk")
        terminal.wait_for("writing ·")
        terminal.type(CTRL_G)
        terminal.wait_for("IN THE EDITOR")
        hold.release()
        time.sleep(0.5)
        terminal.press("left")
        assert not terminal.shows("The end.")
        Path("go").touch()
        terminal.wait_for("The end.")
        wait_for_written(terminal, "edited")
        terminal.press("enter")
        terminal.wait_for("Next.")
        leave(terminal)
    assert prompts(provider)[-1] == "edited"


# Completion


def test_files_are_offered_as_git_sees_them(provider: ProviderServer) -> None:
    provider.script(text("Read."))
    Path(".git").mkdir()
    Path(".gitignore").write_text("hidden*\n")
    Path("src/deep").mkdir(parents=True)
    Path("src/deep/calculator.py").write_text("add\n")
    Path("src/two words.py").write_text("blank\n")
    Path("hidden_calculator.py").write_text("no\n")
    with repl(provider) as terminal:
        terminal.type("see @clc")
        wait_for_offer(terminal, "see @clc", "src/deep/calc")
        assert not terminal.shows("hidden_calculator")
        terminal.press("tab", "enter")
        wait_for_written(terminal, "see @src/deep/calculator.py")
        terminal.type(" and @two")
        wait_for_offer(terminal, "see @src/deep/calculator.py and @two", "src/two words.py")
        terminal.press("down", "enter")
        wait_for_written(terminal, 'see @src/deep/calculator.py and @"src/two words.py"')
        terminal.press("enter")
        terminal.wait_for("Read.")
        leave(terminal)
    assert "add" in prompts(provider)[0]
    assert "blank" in prompts(provider)[0]


def test_commands_are_offered_with_their_help(provider: ProviderServer) -> None:
    with repl(provider) as terminal:
        terminal.type("/")
        terminal.wait_until(
            lambda: sum(line.startswith(" /") for line in terminal.lines) == min(8, len(terminal.lines) - 2),
            complaint="there was no menu",
        )
        terminal.type("comp")
        wait_for_offer(terminal, "/comp", "/compact" if terminal.is_narrow else "summarize the conversation to free context")
        terminal.press("tab")
        wait_for_written(terminal, "/compact")
        terminal.press("escape", "ctrl-c")
        terminal.type("/mode")
        terminal.press("escape")
        terminal.press("ctrl-c")
        wait_for_prompt(terminal)


def test_a_huge_tree_holds_no_key_up(provider: ProviderServer) -> None:
    for folder in range(200):
        Path(f"folder{folder}").mkdir()
        for number in range(100):
            Path(f"folder{folder}/file{number}.txt").touch()
    with repl(provider) as terminal:
        terminal.type("@")
        terminal.type("xyz")
        wait_for_written(terminal, "@xyz")


# Own commands and notes


def test_own_command_is_told_with_the_next_prompt(provider: ProviderServer) -> None:
    provider.script(text("Seen."), text("Later."))
    with repl(provider, "--mode", "plan") as terminal:
        terminal.enter("!echo first > made; cat made; pwd")
        terminal.wait_for("● shell")
        wait_for_prompt(terminal)
        terminal.enter("!!echo between us")
        terminal.wait_for("between us")
        wait_for_prompt(terminal)
        terminal.enter("what did I do?")
        terminal.wait_for("Seen.")
        wait_for_prompt(terminal)
        terminal.enter("and now?")
        terminal.wait_for("Later.")
        leave(terminal)
    first, second = prompts(provider)
    own = f"what did I do?\n\n<ran>\n$ echo first > made; cat made; pwd\nfirst\n{Path.cwd()}\n[exit 0]\n</ran>"
    assert first.startswith(f"{own}\n\nPlan mode: ")
    assert second == "and now?"


def test_own_command_is_stopped_with_escape(provider: ProviderServer) -> None:
    with repl(provider) as terminal:
        terminal.enter("!echo begun; sleep 300")
        terminal.wait_for("\n  │ begun\n")
        terminal.press("escape")
        terminal.wait_for("interrupted", 2.0)
        wait_for_prompt(terminal)
        leave(terminal)


def answer_at_once(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """No time is given to read a question."""
    set_constants(monkeypatch, folder / "constants", {"wolo.frontends.terminal.panels.key_guard.READING_S": 0.0})


@pytest.mark.parametrize(("answer", "where"), [("p", "work"), ("y", "wolo/config")])
def test_a_note_is_kept_where_the_person_says(
    provider: ProviderServer, isolated: Path, monkeypatch: pytest.MonkeyPatch, answer: str, where: str
) -> None:
    answer_at_once(monkeypatch, isolated)
    (isolated / "work/AGENTS.md").write_text("# Rules\n\nno line end")
    with repl(provider) as terminal:
        terminal.enter("# always use tabs")
        terminal.wait_for("[p/y/s/N]")
        terminal.enter(answer)
        terminal.wait_for("Saved in")
        leave(terminal)
    assert (isolated / where / "AGENTS.md").read_text().endswith("- always use tabs\n")
    assert "no line end\n" in (isolated / "work/AGENTS.md").read_text() or answer == "y"


def test_note_may_become_a_prompt_or_nothing(provider: ProviderServer, isolated: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answer_at_once(monkeypatch, isolated)
    provider.script(text("Read."), text("Twelve."))
    with repl(provider) as terminal:
        for keys in ("\r", "\x1b", "s\r"):
            terminal.enter("# a heading")
            terminal.wait_until(lambda: "[p/y/s/N]" in "\n".join(shown(terminal)[-3:]))
            terminal.type(keys)
            wait_for_prompt(terminal)
        terminal.wait_for("Read.")
        terminal.enter("#12 is broken")
        terminal.wait_for("Twelve.")
        leave(terminal)
    assert prompts(provider) == ["# a heading", "#12 is broken"]
    assert not Path("AGENTS.md").exists()


# Drafts


def wait_for_draft(*words: str) -> None:
    def is_kept() -> bool:
        drafts = [path.read_text() for path in (find_places().state / "drafts").glob("*")]
        return any(all(word in draft for word in words) for draft in drafts)

    wait_for(is_kept, 30)


@pytest.mark.sweep(every=2)
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
def test_unsent_text_is_given_back(provider: ProviderServer, number: signal.Signals) -> None:
    provider.script(text("Read."))
    pasted = "\n".join(f"line {number}" for number in range(40))
    with repl(provider) as terminal:
        terminal.type("half a thought ")
        terminal.paste(pasted)
        terminal.wait_for("[Pasted #1: 40 lines]")
        wait_for_draft("half a thought ", pasted.splitlines()[-1])
        terminal.child.kill(number)
        terminal.wait_for_exit()
    drafts = find_places().state / "drafts"
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in drafts.iterdir())
    with pty_wolo(*provider.flags, columns=100) as terminal:
        terminal.wait_for("Restored your unsent draft.")
        wait_for_written(terminal, "half a thought [Pasted #1: 40 lines]")
        terminal.press("enter")
        terminal.wait_for("Read.")
        leave(terminal)
    assert prompts(provider) == [f"half a thought {pasted}"]
    with repl(provider) as terminal:
        assert not terminal.shows("Restored your unsent")


def test_queued_text_is_given_back_too(provider: ProviderServer) -> None:
    provider.script(sse(delta("Some words.\n"), Hold()))
    with repl(provider) as terminal:
        terminal.enter("talk")
        terminal.wait_for("writing ·")
        terminal.enter("say this now")
        terminal.wait_for("↪ say this now")
        terminal.type("say this later")
        terminal.press("alt-enter")
        terminal.wait_for("⧗ say this later")
        wait_for_draft("say this now", "say this later")
        terminal.child.kill(signal.SIGKILL)
        terminal.wait_for_exit()
    with pty_wolo(*provider.flags) as terminal:
        terminal.wait_for("say this later")
        terminal.wait_for("say this now")


# Keys


def test_vi_keys(provider: ProviderServer) -> None:
    provider.script(text("Read."))
    settings('[ui]\nkeys = "vi"\n')
    with repl(provider) as terminal:
        terminal.type("one two")
        wait_for_written(terminal, "one two")
        _, column = terminal.cursor
        terminal.press("escape")
        terminal.wait_until(lambda: terminal.cursor[1] == column - 1)
        terminal.type("0dwA three")
        wait_for_written(terminal, "two three")
        terminal.press("enter")
        terminal.wait_for("Read.")
        leave(terminal)
    assert prompts(provider) == ["two three"]


def test_escape_stops_a_turn_with_vi_keys_too(provider: ProviderServer) -> None:
    provider.script(sse(delta("Some words.\n"), Hold()))
    settings('[ui]\nkeys = "vi"\n')
    with repl(provider) as terminal:
        terminal.enter("talk")
        terminal.wait_for("writing ·")
        terminal.press("escape")
        terminal.wait_for("Interrupted.", 2.0)
        wait_for_prompt(terminal)


def test_a_keymap_of_ones_own(provider: ProviderServer) -> None:
    settings('[ui.keymap]\nmode = ["f2"]\nnew_line = "ctrl-x enter"\n')
    provider.script(text("Read."))
    with repl(provider, "--mode", "plan") as terminal:
        terminal.type("\x1bOQ")
        terminal.wait_until(lambda: "ask" in shown(terminal)[-1].split())
        terminal.type("one\x18\rtwo")
        terminal.press("enter")
        terminal.wait_for("Read.")
        wait_for_prompt(terminal)
        terminal.enter("/keys")
        terminal.wait_for("ctrl-x enter")
        leave(terminal)
    assert prompts(provider) == ["one\ntwo"]


@pytest.mark.parametrize(
    ("keymap", "complaint"),
    [
        ('editr = "ctrl-x"', "Did you mean editor?"),
        ('editor = "ctrl-xx"', "Did you mean ctrl-x?"),
        ('editor = "x"', "alt-x or ctrl-x"),
        ("editor = 5", "editor"),
    ],
)
def test_a_mistake_in_the_keymap_is_named(provider: ProviderServer, keymap: str, complaint: str) -> None:
    settings(f"[ui.keymap]\n{keymap}\n")
    with pty_wolo(*provider.flags) as terminal:
        terminal.wait_for(complaint)
        assert terminal.wait_for_exit() == 2


def test_shift_tab_goes_through_the_modes(provider: ProviderServer) -> None:
    provider.script(call("write", {"path": "a.txt", "content": "x\n"}), text("Well."))
    with repl(provider, "--mode", "auto", "--sandbox", "off") as terminal:
        for mode in ("plan", "ask", "edit", "plan"):
            terminal.press("shift-tab")
            terminal.wait_until(lambda mode=mode: mode in shown(terminal)[-1].split(), complaint=mode)
        terminal.enter("write it")
        terminal.wait_for("Well.")
        leave(terminal)
    assert not Path("a.txt").exists()


# Widths


@pytest.mark.sweep(every=3)
@pytest.mark.parametrize(
    ("typed", "width"),
    [("漢字", 4), ("e\u0301", 1), ("👨‍👩‍👧", 2), ("é🙂", 3), ("한국어", 6), ("👍🏽", 2), ("❤️", 2), ("🇩🇪", 2)],
)
def test_the_cursor_stands_where_the_next_character_goes(provider: ProviderServer, typed: str, width: int) -> None:
    provider.script(text("Read."))
    with repl(provider) as terminal:
        terminal.type(f"a{typed}|")
        terminal.wait_until(lambda: "|" in written(terminal))
        terminal.wait_until(lambda: terminal.cursor[1] == 4 + width, complaint="the cursor stands elsewhere")
        terminal.press("left")
        terminal.wait_until(lambda: terminal.cursor[1] == 3 + width, complaint="the cursor stands elsewhere")
        terminal.press("left")
        last = 2 if typed in ("漢字", "é🙂", "한국어") else width
        terminal.wait_until(lambda: terminal.cursor[1] == 3 + width - last, complaint="the cursor stands elsewhere")
        terminal.press("right", "backspace")
        terminal.type("x")
        terminal.press("enter")
        terminal.wait_for("Read.")
        leave(terminal)
    whole = typed[:-1] if last < width else ""
    assert prompts(provider) == [f"a{whole}x|"]


def test_wide_characters_wrap_at_the_edge(provider: ProviderServer) -> None:
    provider.script(text("Read."))
    with pty_wolo(*provider.flags, columns=21) as terminal:
        terminal.wait_for_prompt()
        terminal.type("漢" * 12)
        terminal.wait_until(lambda: terminal.times("漢") == 12)
        rows = [line for line in terminal.lines if "漢" in line]
        assert [row.count("漢") for row in rows] == [9, 3]
        terminal.wait_until(lambda: terminal.cursor[1] == 8, complaint="the cursor stands elsewhere")
        terminal.press("enter")
        terminal.wait_for("Read.")
        terminal.press("ctrl-d")
    assert prompts(provider) == ["漢" * 12]


def test_cursor_in_tmux_stands_behind_a_combined_emoji(provider: ProviderServer, isolated: Path) -> None:
    with tmux_wolo(*provider.flags, socket=isolated / "tmux.sock", env={"LANG": "C.UTF-8", "LC_ALL": "C.UTF-8"}) as tmux:
        tmux.wait_for("›")
        tmux.type("漢👨‍👩‍👧x")
        tmux.wait_for("x")
        tmux.wait_until(lambda: tmux.run("display-message", "-p", "#{cursor_x}").strip() == "7")
        assert "› 漢👨‍👩‍👧x" in tmux.text


# The worst moments


def test_ctrl_c_in_an_editor_is_the_editors(provider: ProviderServer, monkeypatch: pytest.MonkeyPatch) -> None:
    provider.script(text("Read."))
    editor(monkeypatch, "trap 'echo heard > $1; exit 0' INT; echo IN THE EDITOR; sleep 20 & wait")
    with repl(provider) as terminal:
        terminal.type(CTRL_G)
        terminal.wait_for("IN THE EDITOR")
        terminal.press("ctrl-c")
        wait_for_written(terminal, "heard")
        terminal.press("enter")
        terminal.wait_for("Read.")
        leave(terminal)
    assert prompts(provider) == ["heard"]


def test_signal_while_the_editor_is_open_ends_both(provider: ProviderServer, monkeypatch: pytest.MonkeyPatch) -> None:
    editor(monkeypatch, "echo $$ > editor.pid; echo IN THE EDITOR; exec sleep 300")
    with repl(provider) as terminal:
        terminal.type("my words")
        terminal.type(CTRL_G)
        terminal.wait_for("IN THE EDITOR")
        terminal.child.kill(signal.SIGTERM)
        assert terminal.wait_for_exit() == 143
    assert not Path(f"/proc/{Path('editor.pid').read_text().strip()}").exists()
    with pty_wolo(*provider.flags) as terminal:
        terminal.wait_for("› my words")


def test_a_terminal_that_goes_away_ends_wolo(provider: ProviderServer) -> None:
    provider.script(sse(delta("Some words.\n"), Hold()))
    with repl(provider) as terminal:
        terminal.enter("talk")
        terminal.wait_for("writing ·")
        terminal.type("half a thought")
        terminal.wait_for("half a thought")
        pid = terminal.child.pid
        terminal.child.ptyproc.fileobj.close()
        wait_for(lambda: not Path(f"/proc/{pid}/exe").exists())
    with pty_wolo(*provider.flags) as terminal:
        terminal.wait_for("› half a thought")


@pytest.mark.parametrize(
    ("environment", "rows", "columns"),
    [
        ({"NO_COLOR": "1"}, 6, 20),
        ({"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii", "PYTHONCOERCECLOCALE": "0"}, 24, 80),
    ],
    ids=["tiny", "ascii"],
)
def test_any_terminal_takes_a_paste_and_a_completion(
    provider: ProviderServer, environment: dict[str, str], rows: int, columns: int
) -> None:
    provider.script(text("Read."))
    Path("calculator.py").write_text("add\n")
    pasted = "\n".join(f"zeile {number} ü" for number in range(50))
    with pty_wolo(*provider.flags, env=environment, rows=rows, columns=columns) as terminal:
        terminal.wait_for("/help shows")
        terminal.paste(pasted)
        terminal.wait_for("[Pasted")
        terminal.type(" @calculator.py")
        terminal.wait_for("@calculator.py")
        terminal.press("enter")
        terminal.wait_for("Read.")
        leave(terminal)
    (sent,) = prompts(provider)
    assert sent.startswith(f"{pasted} @calculator.py")
    assert sent.endswith("add\n\n</file>")


def test_unmarked_single_lines_are_one_message(provider: ProviderServer, isolated: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parser = "wolo.frontends.terminal.io.input_parser"
    patience = {f"{parser}.{name}": 1.0 for name in ("SAME_PASTE_S", "LAST_LINE_S", "NEXT_LINE_S", "BURST_S")}
    set_constants(monkeypatch, isolated / "constants", {**patience, f"{parser}.MOST_S": 30.0})
    provider.script(text("Read."))
    lines = [f"slow line {number}" for number in range(30)]
    with repl(provider) as terminal:
        for line in lines:
            terminal.type(f"{line}\r")
            time.sleep(0.005)
        terminal.wait_for("Read.")
        leave(terminal)
    assert prompts(provider) == ["\n".join(lines)]


def test_failed_attachment_is_reported_and_the_prompt_stays(provider: ProviderServer) -> None:
    provider.script(text("Read."))
    Path("big.txt").write_bytes(b"x" * 30_000_000)
    with repl(provider) as terminal:
        terminal.type("look at @big.txt please")
        terminal.press("enter")
        terminal.wait_for("is too large to attach")
        wait_for_written(terminal, "look at @big.txt please")
        Path("big.txt").write_text("small\n")
        terminal.press("enter")
        terminal.wait_for("Read.")
        wait_for_prompt(terminal)
        leave(terminal)
    assert prompts(provider)[0].startswith("look at @big.txt please")


# Marks of a paste that come late, twice, or never

MARKED = "\x1b[200~löng\r\nzwei 🙂\tx\rdrei\x1b[201~"


@pytest.mark.sweep(every=3)
@pytest.mark.parametrize("cut", [1, 2, 5, 6, 8, 12, 13, -7, -6, -5, -1])
def test_a_paste_that_halts_anywhere_is_one_message(provider: ProviderServer, cut: int) -> None:
    provider.script(text("Read."))
    whole = MARKED.encode()
    with repl(provider) as terminal:
        terminal.child.send(whole[:cut])
        time.sleep(0.1)  # longer than an Escape is waited on
        terminal.child.send(whole[cut:])
        terminal.wait_for("drei")
        terminal.press("enter")
        terminal.wait_for("Read.")
        wait_for_prompt(terminal)
        leave(terminal)
    assert prompts(provider) == ["löng\nzwei 🙂\tx\ndrei"]


def test_begin_mark_inside_a_paste_is_pasted(provider: ProviderServer) -> None:
    provider.script(text("Read."))
    with repl(provider) as terminal:
        terminal.paste("one\n\x1b[200~two")
        terminal.type("!")
        terminal.wait_for("two!")
        terminal.press("enter")
        terminal.wait_for("Read.")
        leave(terminal)
    assert prompts(provider) == ["one\ntwo!"]


def test_paste_with_lost_end_blocks_nobody(provider: ProviderServer) -> None:
    provider.script(text("Read."))
    with repl(provider) as terminal:
        terminal.type("\x1b[200~half of it")
        terminal.wait_for("half of it")
        terminal.press("ctrl-c")
        wait_for_prompt(terminal)
        terminal.enter("typed")
        terminal.wait_for("Read.")
        wait_for_prompt(terminal)
        leave(terminal)
    assert prompts(provider) == ["typed"]
