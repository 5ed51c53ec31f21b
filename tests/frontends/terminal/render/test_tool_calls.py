"""Rendered tool calls: a summary line, and the relevant output below it."""

from __future__ import annotations

from msgspec.structs import replace

from wolo.agent.tool_execution import NOT_ANSWERED
from wolo.frontends.terminal.render.tool_calls import ResultLayout, headline, result, whole_call
from wolo.messages.parts import ToolPart
from wolo.tools.tool_values import Answered, Delegated, Diff, Listing, Output, TodoItem, TodoList


def test_headline_gives_tool_subject_and_outcome() -> None:
    write = ToolPart(tool="write", input={"path": "a.py", "content": "x"}, status="completed")
    assert headline(write, Diff("a.py", "+x", 1, 0, created=True)).plain == "● write a.py +1"
    run = ToolPart(tool="shell", input={"command": "make\ntest"}, status="failed", outcome="error")
    assert headline(run, Output("make", "", 2, 1.25)).plain == "✗ shell make⏎test · exit 2 · 1.2 s"
    assert headline(run, Output("make", "", 0, 1.25)).plain == "✗ shell make⏎test · exit 0 · 1.2 s"
    assert headline(run, Output("make", "", None, 1.25)).plain == "✗ shell make⏎test · 1.2 s"  # it did not come to its end
    look = ToolPart(tool="grep", input={"pattern": "x", "path": "src"}, status="completed")
    assert headline(look, Listing("x", ("a",), 12)).plain == "● grep x path=src · 12 found"
    part_of_it = Listing("x", ("a",), 12, "stopped after 9 s")
    assert headline(look, part_of_it).plain == "● grep x path=src · 12 found · incomplete: stopped after 9 s"
    refused = ToolPart(tool="shell", input={"command": "rm x"}, status="failed", outcome="denied_by_person")
    assert headline(refused).plain == "⊘ shell rm x · you said no"
    unanswered = replace(refused, output=NOT_ANSWERED)
    assert headline(unanswered, reason=NOT_ANSWERED).plain == "⊘ shell rm x · not answered"


def test_foreign_answer_is_shown_from_its_beginning() -> None:
    part = ToolPart(tool="mcp__a__b", input={"n": 1}, status="completed")
    long = Answered("".join(f"line {number}\n" for number in range(12)), 1.25)
    assert headline(part, long).plain == "● mcp__a__b n=1 · 1.2 s"
    folded = result(part, long)
    assert folded.is_folded
    assert folded.text.plain.startswith("  line 0\n")
    assert folded.text.plain.endswith("  line 7\n  … 4 more lines\n")
    assert result(part, long, layout=ResultLayout(is_whole=True)).text.plain.endswith("  line 11\n")
    assert not result(part, Answered(" \n", 0.1)).text


def test_why_a_call_failed_wraps_at_spaces() -> None:
    reason = "`old` occurs 2 times in `calc.py`; nothing was changed. Add lines around it.\n1→x"
    part = ToolPart(tool="edit", input={"path": "calc.py"}, status="failed", outcome="error", output=reason)
    seen = result(part, None, layout=ResultLayout(40)).text.plain
    assert seen == "  `old` occurs 2 times in `calc.py`;\n  nothing was changed. Add lines around\n  it.\n  1→x\n"
    assert whole_call(part, None).plain.endswith("Add lines around it.\n  1→x\n")


def test_a_todo_list_is_drawn_as_one() -> None:
    part = ToolPart(tool="todo", input={"items": ["a"]}, status="completed")
    items = (
        TodoItem("a\x1b[2J", "completed"),
        TodoItem("b\u202e", "in_progress"),
        TodoItem("c", "pending"),
        TodoItem("d", "cancelled"),
    )
    assert headline(part, TodoList(items)).plain == "● todo 1 of 4 done"
    assert result(part, TodoList(items)).text.plain == "  ☑ a\n  ▶ b\\u{202e}\n  ☐ c\n  ☒ d\n"
    long = TodoList((TodoItem("change the parser so that it takes long titles", "pending"),))
    assert result(part, long, ResultLayout(30, has_rail=True)).text.plain == (
        "  │ ☐ change the parser so\n  │   that it takes long\n  │   titles\n"
    )
    assert headline(part, TodoList(())).plain == "● todo cleared"
    assert not result(part, TodoList(())).text


def test_hostile_arguments_stay_on_their_line() -> None:
    part = ToolPart(tool="sh\x1b[2Jell", input={"command": "a\n● write b\x1b]0;t\x07" + "c" * 500}, status="completed")
    shown = headline(part).plain
    assert "\n" not in shown
    assert "\x1b" not in shown
    assert shown == f"● sh\\x1b[2Jell a⏎● write b\\x1b]0;t\\x07{'c' * 500}"  # nothing that ran is left out
    long = ToolPart(tool="shell", input={"command": "c" * 5000}, status="completed")
    assert headline(long).plain.endswith("c… (+3,000 characters)")
    assert whole_call(long, None).plain == f"● shell {'c' * 5000}\n"


def test_all_new_diff_shows_without_header() -> None:
    part = ToolPart(tool="write", status="completed")
    assert result(part, Diff("a", "@@ -0,0 +1,2 @@\n+x\n+\ty", 2, 0, created=True)).text.plain == "  1 + x\n  2 + \ty\n"
    changed = result(part, Diff("a", "@@ -1 +1 @@\n-x\n+y", 1, 1)).text
    assert changed.plain == "  1 - x\n  1 + y\n"


def test_long_views_are_cut_where_it_hurts_least() -> None:
    part = ToolPart(tool="shell", status="completed")
    output = "".join(f"line {number}\n" for number in range(100))
    shown = result(part, Output("x", output, 0, 1.0)).text.plain
    assert shown.startswith("  … 92 more lines\n  line 92\n")
    assert shown.endswith("  line 99\n")
    diff = result(part, Diff("a", "\n".join(f"+{number}" for number in range(100)), 100, 0)).text.plain
    assert diff.startswith("    1 + 0\n")
    assert diff.endswith("  … 60 more lines\n")
    assert len(result(part, Output("x", "y" * 10_000, 0, 1.0)).text.plain) < 600


def test_an_error_and_a_refusal_say_why() -> None:
    failed = ToolPart(tool="read", status="failed", outcome="error", output="There is no file x.")
    assert result(failed, None).text.plain == "  There is no file x.\n"
    no = ToolPart(tool="read", status="failed", outcome="denied_by_rule", output="Denied, so it was not run. Not today.")
    assert headline(no, reason="Not\ntoday.").plain == "⊘ read · denied: Not today."
    assert not result(no, None).text
    assert not result(ToolPart(tool="read", status="completed", output="contents"), None).text


def test_a_patch_goes_by_the_files_it_touches() -> None:
    patch = "*** Begin Patch\n*** Update File: a.py\n*** Move to: b.py\n@@\n-x\x1b[2J\n+y\n*** Delete File: c\n*** End Patch\n"
    part = ToolPart(tool="apply_patch", input={"patch": patch}, status="completed")
    assert headline(part, Diff("a.py, c", "-x\n+y", 1, 2)).plain == "● apply_patch a.py b.py c +1 −2"


def test_result_stays_on_rail_with_expandable_cuts() -> None:
    part = ToolPart(tool="shell", status="completed")
    layout = ResultLayout(columns=20, has_rail=True, hint=" · Ctrl-O expands")
    shown = result(part, Output("x", "short\n" + "y" * 40, 0, 1.0), layout)
    assert shown.text.plain == "  │ … long lines are cut · Ctrl-O expands\n  │ short\n  │ yyyyyyyyyyyyyyy…\n"
    assert shown.is_folded
    assert whole_call(part, Output("x", "short\n" + "y" * 40, 0, 1.0)).plain.endswith(f"\n  short\n  {'y' * 40}\n")
    unread = result(part, Output("x", "y" * 40, 0, 1.0), layout._replace(hint=""))
    assert (unread.text.plain, unread.is_folded) == (f"  │ {'y' * 40}\n", False)


def test_each_state_has_a_colourless_mark() -> None:
    parts = (
        ToolPart(tool="x", status="completed", outcome="ok"),
        ToolPart(tool="x", status="failed", outcome="error"),
        ToolPart(tool="x", status="failed", outcome="denied_by_rule"),
        ToolPart(tool="x", status="failed", outcome="interrupted"),
    )
    assert [headline(part).plain[0] for part in parts] == ["●", "✗", "⊘", "⊘"]


BRIEF = ResultLayout(80, has_rail=True, hint=" · Ctrl-O expands", is_brief=True)


def test_long_command_is_folded_to_its_first_line() -> None:
    run = ToolPart(tool="shell", input={"command": "python3 build.py\n" + "echo x\n" * 29}, status="completed")
    assert headline(run, Output("x", "", 0, 0.4), room=80).plain == "● shell python3 build.py … 29 more lines · exit 0 · 0.4 s"
    short = ToolPart(tool="shell", input={"command": "make\ntest"}, status="completed")
    assert headline(short, room=80).plain == "● shell make⏎test"
    wide = ToolPart(tool="shell", input={"command": "漢字" * 100}, status="completed")
    assert 76 <= headline(wide, Output("x", "", 0, 0.4), room=80).cell_len <= 80


def test_successful_call_has_one_row_of_output() -> None:
    part = ToolPart(tool="shell", status="completed")
    assert result(part, Output("x", "one\n", 0, 1.0), BRIEF).text.plain == "  │ one\n"
    folded = result(part, Output("x", "one\ntwo\nthree\n", 0, 1.0), BRIEF)
    assert (folded.text.plain, folded.is_folded) == ("  │ three  … 2 more lines · Ctrl-O expands\n", True)
    narrow = result(part, Output("x", "one\n" + "y" * 90, 0, 1.0), BRIEF._replace(columns=40)).text
    assert narrow.plain == f"  │ {'y' * 21}  … 1 more line\n"
    assert result(part, Output("x", "one\ntwo\n", 1, 1.0), BRIEF).text.plain == "  │ one\n  │ two\n"
    assert not result(part, TodoList((TodoItem("a", "pending"),)), BRIEF).text


def test_task_and_job_name_their_subject() -> None:
    task = ToolPart(tool="task", input={"agent": "explore", "prompt": "find tests\nall"}, status="completed", output="Here.\nx")
    view = Delegated("explore", "s", "done", ("read a", "read b"), 1, 10_000, None, 2.0)
    assert headline(task, view, room=80).plain == "● explore: find tests⏎all · 2 calls · 10k tokens · 2.0 s"
    assert result(task, view, BRIEF).text.plain == "  │ Here.  … 3 more lines · Ctrl-O expands\n"
    job = ToolPart(
        tool="shell", input={"command": "make serve", "background": True}, status="completed", output="x\n[job 1 (make): y]"
    )
    assert headline(job).plain == "● job 1 started: make serve"
