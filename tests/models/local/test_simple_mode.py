"""Simple mode: what a tiny model is asked, what becomes of its answers, and what the real one makes of a newcomer's requests."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.end_to_end.try_calculator import load, try_functions
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import Reply, error, finish, sse, text
from tests.fakes.turns import PromptRunner, calls_of
from tests.models.conftest import refuse_plain
from wolo.agent.agent import Turn
from wolo.agent.events import AttemptFailed, CallStreamed, RequestStarted, TextStreamed
from wolo.errors import BadAnswer, ContextOverflow, Unavailable
from wolo.formats.format import ToolSpec
from wolo.messages.deltas import Delta
from wolo.messages.message import NAMED_MODE, Message, UsageCost, user
from wolo.messages.parts import ToolPart
from wolo.models.catalog import Catalog
from wolo.models.http.http_transport import HttpTransport
from wolo.models.local.driver import LocalDriver
from wolo.models.local.local_chat import ChatServer, LocalChat, Sampling
from wolo.models.local.local_response import PLAN_NOTICE
from wolo.models.protocol import ModelQuestion

GOOD = "```python\ndef add(a, b):\n    return a + b"
CALC = "def add(a, b):\n    return a - b\n\n\ndef subtract(a, b):\n    return a - b\n"
TOOLS = tuple(ToolSpec(name=name, description="", parameters={}) for name in ("read", "write", "glob", "shell"))


def said(answer: str) -> Reply:
    """What the engine answers to a question with a grammar."""
    return text(json.dumps(answer))


def cut_off(words: str) -> Reply:
    return sse({"choices": [{"delta": {"content": words}}]}, finish("length"))


class Script:
    """A scripted engine under simple mode, with real tools."""

    def __init__(self, server: ProviderServer, directory: Path) -> None:
        self.server = server
        self.transport = HttpTransport({})
        self.chat = LocalChat(self.transport, ChatServer(url=server.base_url.removesuffix("/v1"), headers={}))
        self.mode = LocalDriver(self.chat, Catalog({}).find("local"), Path.cwd(), refuse_plain)
        self.runner = PromptRunner(self.mode, directory)

    async def turn(self, prompt: str, *replies: Reply) -> Turn:
        self.server.script(*replies)
        return await self.runner.ask(prompt)

    def asked(self, at: int) -> str:
        """The whole prompt of one question, as text."""
        return "\n".join(message["content"] for message in self.server.requests[at].messages)


@pytest.fixture
async def script(tmp_path: Path) -> AsyncIterator[Script]:
    with ProviderServer() as server:  # its linter knows agents' requests; these are of another kind
        script = Script(server, tmp_path)
        yield script
        await script.transport.close()


# The scripted engine: what is asked and what is made of the answers


async def test_request_becomes_action_name_file_and_last_word(script: Script) -> None:
    turn = await script.turn("create an adder function", said("create"), said("adder.py"), text(GOOD))
    assert Path("adder.py").read_text() == "def add(a, b):\n    return a + b\n"
    assert turn.ended.answer == "Wrote adder.py (2 lines).\n\nChecked: can be parsed."
    call = calls_of(turn)[0]
    assert (call.tool, call.status, call.outcome) == ("write", "completed", "ok")
    assert json.loads(call.raw_input) == call.input
    assert len(script.server.requests) == 3, "the last word needs no model"


async def test_grammar_holds_action_and_name_file_is_begun(script: Script) -> None:
    await script.turn("create an adder function", said("create"), said("adder.py"), text(GOOD))
    action, name, code = (request.json for request in script.server.requests)
    assert "create" in action["response_format"]["json_schema"]["schema"]["enum"]
    assert "pattern" in name["response_format"]["json_schema"]["schema"]
    assert code["messages"][-1] == {"role": "assistant", "content": "```python\n"}
    assert code["stop"] == ["\n```"]
    assert {request["temperature"] for request in (action, name, code)} == {0.0}
    assert {request["seed"] for request in (action, name, code)} == {1}


async def test_plan_mode_plans_in_words(script: Script) -> None:
    prompt = user("create an adder function")
    script.server.script(text("1. Write adder.py"))
    turn = await script.runner.ask(replace(prompt, metadata={**prompt.metadata, NAMED_MODE: "plan"}))
    assert turn.ended.answer == "1. Write adder.py"
    assert not Path("adder.py").exists()
    assert script.asked(0).endswith("create an adder function\n\n" + PLAN_NOTICE)


async def test_the_file_is_shown_while_it_is_written(script: Script) -> None:
    turn = await script.turn("create an adder function", said("create"), said("adder.py"), text(GOOD + '\n    # "quoted" \\ ü'))
    fragments = [event.fragment for event in script.runner.events if isinstance(event, CallStreamed)]
    assert len(fragments) > 3
    assert json.loads("".join(fragments))["content"].strip() == calls_of(turn)[0].input["content"].strip()


async def test_unparsable_code_is_requested_again_with_other_seed(script: Script) -> None:
    turn = await script.turn("create an adder function", said("create"), said("a.py"), text("```python\ndef ("), text(GOOD))
    assert turn.ended.cause == "done"
    assert script.server.requests[-1].json["seed"] == 2
    assert script.server.requests[-1].json["temperature"] > 0
    assert [type(event) for event in script.runner.events if isinstance(event, RequestStarted | AttemptFailed)] == [
        RequestStarted,
        AttemptFailed,
        RequestStarted,
        RequestStarted,
    ]


@pytest.mark.parametrize("bad", [text("```python\ndef ("), text("```python\n"), cut_off("```python\nx = 1\n")])
async def test_three_bad_files_fail_without_writing(script: Script, bad: Reply) -> None:
    turn = await script.turn("create an adder function", said("create"), said("a.py"), bad, bad, bad)
    assert turn.ended.error is not None
    assert "Nothing was written" in turn.ended.error.message
    assert turn.ended.exit_code == 1
    assert list(Path.cwd().iterdir()) == []


async def test_endless_prose_is_cut_at_last_whole_sentence(script: Script) -> None:
    prose = "```text\nOnce upon a time there was a dragon. It was green. It lived in a cave and"
    await script.turn("write a story", said("create"), said("story.txt"), cut_off(prose))
    assert Path("story.txt").read_text() == "Once upon a time there was a dragon. It was green.\n"


async def test_name_in_the_request_is_taken_literally(script: Script) -> None:
    await script.turn("create src/hello.py that says hello", text(GOOD))
    assert Path("src/hello.py").exists()


async def test_new_file_never_overwrites_an_existing_one(script: Script) -> None:
    Path("calculator.py").write_text("mine\n")
    turn = await script.turn("create a calculator module", said("create"), said("calculator.py"), text(GOOD))
    assert Path("calculator.py").read_text() == "mine\n"
    assert turn.ended.answer.startswith("Wrote calculator_2.py (2 lines).")


async def test_change_reads_and_writes_the_whole_file(script: Script) -> None:
    Path("calc.py").write_text(CALC)
    fixed = CALC.replace("return a - b", "return a + b", 1)
    turn = await script.turn("fix the bug in calc.py", said("change"), text(f"```python\n{fixed}"))
    assert [call.tool for call in calls_of(turn)] == ["read", "write"]
    assert Path("calc.py").read_text() == fixed
    assert CALC.strip() in script.asked(-1)


async def test_omitted_program_parts_stay(script: Script) -> None:
    Path("calc.py").write_text(CALC)
    power = "```python\ndef power(a, b):\n    return a ** b"
    await script.turn("add a power function to calc.py", text(power))
    assert Path("calc.py").read_text() == CALC + "\n\ndef power(a, b):\n    return a ** b\n"


async def test_name_is_renamed_in_every_file(script: Script) -> None:
    Path("a.py").write_text("def get_usr():\n    return 1\n")
    Path("b.py").write_text("from a import get_usr\n\nprint(get_usr())\n")
    Path("c.py").write_text("print('get_usr')\n")
    await script.turn("rename get_usr to get_user everywhere", said("change"))
    assert [Path(name).read_text().count("get_user") for name in ("a.py", "b.py", "c.py")] == [1, 2, 0]


async def test_name_is_renamed_in_both_named_files(script: Script) -> None:
    Path("a.py").write_text("def suma():\n    return 1\n")
    Path("b.py").write_text("from a import suma\n\nprint(suma())\n")
    await script.turn("Renombra la función suma a suma_total en a.py y en b.py", said("change"))
    assert [Path(name).read_text().count("suma_total") for name in ("a.py", "b.py")] == [1, 2]


async def test_foreign_question_is_no_command(script: Script) -> None:
    Path("a.py").write_text("A = 1\n")
    await script.turn("¿Qué diferencia hay entre una lista y una tupla?", said("answer"), text("Una es fija."))
    assert script.server.requests[0].json["response_format"]["json_schema"]["schema"]["enum"] == ["read", "answer"]


async def test_request_is_not_written_into_prose(script: Script) -> None:
    Path("list.md").write_text("- milk\n")
    turn = await script.turn("put eggs on the list in list.md", text("- put eggs on the list"), text("- eggs"))
    assert turn.ended.exit_code == 0
    assert Path("list.md").read_text() == "- milk\n- eggs\n"


async def test_missing_part_ends_with_status_1(script: Script) -> None:
    bad = text("```python\nprint('red')")
    turn = await script.turn("Schreibe a.py, das „green light“ ausgibt", bad, bad, bad)
    assert turn.ended.exit_code == 1
    assert turn.ended.error is not None
    assert "it has no “green light”" in turn.ended.error.message
    assert "The last answer was refused: it has no “green light”" in script.asked(1)
    assert not Path("a.py").exists()


async def test_named_folder_is_the_place_of_its_file(script: Script) -> None:
    await script.turn("En la carpeta src, crea pack.py con pack(x) que devuelve x", text("```python\ndef pack(x):\n    return x"))
    assert Path("src/pack.py").read_text() == "def pack(x):\n    return x\n"


async def test_requested_call_is_run_before_and_after(script: Script) -> None:
    Path("a.py").write_text("def f(a, b):\n    return a * b\n")
    wrong, right = text("```python\ndef f(a, b):\n    return a - b"), text("```python\ndef f(a, b):\n    return a + b")
    turn = await script.turn("f(2, 6) in a.py gibt 12, richtig ist 8", wrong, right)
    assert [call.tool for call in calls_of(turn)] == ["shell", "read", "write", "shell", "write", "shell"]
    assert "f(2, 6) gives -4" in script.asked(-1)
    assert turn.ended.answer.endswith("Checked: runs.")


async def test_stated_formula_of_a_call_needs_no_model(script: Script) -> None:
    Path("a.py").write_text('def f(a, b):\n    """Sum."""\n    return a * b\n')
    turn = await script.turn("f(2, 6) in a.py gibt 12, richtig ist 8: a + b")
    assert Path("a.py").read_text() == 'def f(a, b):\n    """Sum."""\n    return a + b\n'
    assert turn.ended.answer.endswith("Checked: runs, computes a + b.")


async def test_right_call_by_a_wrong_formula_is_rewritten(script: Script) -> None:
    Path("a.py").write_text("def f(a, b):\n    c = a * b\n    return c\n")
    wrong, right = (text(f"```python\ndef f(a, b):\n    c = {formula}\n    return c") for formula in ("a * 4", "a + b"))
    turn = await script.turn("f(2, 6) in a.py gibt 12, richtig ist 8: a + b", wrong, right)
    assert "gives 28, not 9" in script.asked(-1) or "gives 8, not 4" in script.asked(-1)
    assert turn.ended.exit_code == 0


@pytest.mark.parametrize(("old", "new"), [(b"x = 1\r\n", b"x = 5\r\n"), (b"\xef\xbb\xbfx = 1\n", b"\xef\xbb\xbfx = 5\n")])
async def test_line_ends_and_mark_stay_when_changed(script: Script, old: bytes, new: bytes) -> None:
    Path("a.toml").write_bytes(old)
    await script.turn("Setze `x` in a.toml auf 5")
    assert Path("a.toml").read_bytes() == new
    assert script.server.requests == [], "a change that is stated in full needs no model"


async def test_binary_file_is_refused_with_a_sentence(script: Script) -> None:
    Path("a.py").write_bytes(bytes(range(256)))
    turn = await script.turn("fix a.py so that f(x) returns 1")
    assert turn.ended.error is not None
    assert "a.py was not read: This is a binary file" in turn.ended.error.message
    assert Path("a.py").read_bytes() == bytes(range(256))


async def test_text_losing_most_lines_is_not_written(script: Script) -> None:
    Path("notes.md").write_text("one\ntwo\nthree\nfour\n")
    bad = text("~~~~markdown\nfive")
    turn = await script.turn("number the lines of notes.md", said("change"), bad, bad, bad)
    assert turn.ended.exit_code == 1
    assert Path("notes.md").read_text() == "one\ntwo\nthree\nfour\n"


async def test_ambiguous_file_is_asked_about(script: Script) -> None:
    for name in ("a.py", "b.py"):
        Path(name).write_text("x = 1\n")
    turn = await script.turn("make it faster", said("change"))
    assert turn.ended.answer == "Which file do you mean? There are a.py, b.py. Repeat the request with the name of the file."


async def test_it_means_the_file_that_was_written_last(script: Script) -> None:
    await script.turn("create an adder function", said("create"), said("adder.py"), text(GOOD))
    Path("other.py").write_text("x = 1\n")
    turn = await script.turn("make it faster", said("change"), text(GOOD + " + 0"))
    assert [call.input["path"] for call in calls_of(turn)] == ["adder.py", "adder.py"]


async def test_missing_file_is_reported_missing(script: Script) -> None:
    Path("here.py").write_text("x = 1\n")
    turn = await script.turn("fix the bug in gone.py", said("change"))
    assert turn.ended.answer == "There is no gone.py in this folder. It holds here.py. Repeat the request with the right name."


@pytest.mark.parametrize("prompt", ["make it faster", "fix the bug in gone.py"])
async def test_unattended_change_of_unknown_file_is_an_error(script: Script, prompt: str) -> None:
    for name in ("a.py", "b.py"):
        Path(name).write_text("x = 1\n")
    script.server.script(said("change"))
    with pytest.raises(BadAnswer) as caught:
        await script.mode.ask(ModelQuestion(messages=(user(prompt),), tools=TOOLS), Deaf())
    assert "Repeat the request with" in caught.value.hint


async def test_request_for_work_is_not_answered_in_words(script: Script) -> None:
    await script.turn("please add a subtract function", said("create"), said("adder.py"), text(GOOD))
    assert script.server.requests[0].json["response_format"]["json_schema"]["schema"]["enum"] == ["create", "change"]


async def test_question_about_a_file_uses_the_read_content(script: Script) -> None:
    Path("calc.py").write_text(CALC)
    turn = await script.turn("what does calc.py do?", text("It adds and subtracts."))
    assert turn.ended.answer.startswith("It adds and subtracts.\n\n> def ")
    assert CALC.strip() in script.asked(-1)
    assert "→" not in script.asked(-1)
    assert "".join(event.text for event in script.runner.events if isinstance(event, TextStreamed)) == turn.ended.answer


async def test_question_naming_a_file_uses_that_file(script: Script) -> None:
    Path("calc.py").write_text(CALC)
    turn = await script.turn("What does subtract in calc.py return for 3 and 1?", text("2"))
    assert [call.tool for call in calls_of(turn)] == ["read"]
    assert turn.ended.answer == "2\n\n> def subtract(a, b):\n> (calc.py, line 5)"


@pytest.mark.parametrize("prompt", ["Crea hola.py que imprima hola", "hola.py を作成してください"])
async def test_new_file_request_in_any_language_needs_work(script: Script, prompt: str) -> None:
    turn = await script.turn(prompt, text("print('hola')\n"))
    assert [call.tool for call in calls_of(turn)][:1] == ["write"]


async def test_sum_in_a_question_is_calculated(script: Script) -> None:
    turn = await script.turn("Combien vaut 30 + 9 dans Python ? Réponds en une phrase.", said("answer"), text("30 + 9 = 49"))
    assert "30 + 9 = 39.\n\nCombien vaut" in script.asked(-1)
    assert turn.ended.answer == "30 + 9 = 49\n\n> 30 + 9 = 39"


async def test_question_without_existing_file_may_be_answered(script: Script) -> None:
    turn = await script.turn("¿Qué hace setup.py?", said("answer"), text("Instala."))
    assert turn.ended.answer == "Instala."


async def test_second_file_named_in_request_changes_too(script: Script) -> None:
    Path("maths.py").write_text("def twice(x):\n    return x * 2\n")
    Path("app.py").write_text("from maths import twice\n\nprint(twice(5))\n")
    maths = text("```python\ndef twice(x):\n    return x * 2\n\n\ndef triple(x):\n    return x * 3")
    app = text("```python\nfrom maths import triple\n\nprint(triple(5))")
    turn = await script.turn("Add triple(x) to maths.py, and make app.py print triple(5).", maths, app)
    assert [call.tool for call in calls_of(turn)] == ["read", "write", "read", "write", "shell"]
    assert turn.ended.answer.endswith("printed:\n\n```\n15\n```\n\nChecked: runs, defines triple.")


async def test_the_project_is_its_readme(script: Script) -> None:
    Path("README.md").write_text("Frob makes charts.\n")
    turn = await script.turn("what does this project do?", said("read"), text("It makes charts."))
    assert calls_of(turn)[0].input == {"path": "README.md"}


async def test_answer_reads_a_file_only_when_indicated(script: Script) -> None:
    Path("calc.py").write_text(CALC)
    turn = await script.turn("explain recursion", said("read"), text("It calls itself."))
    assert calls_of(turn) == []


async def test_command_runs_in_shell_and_prints_the_answer(script: Script) -> None:
    turn = await script.turn("say hello", said("shell"), text("echo hello"))
    assert calls_of(turn)[0].input == {"command": "echo hello"}
    assert "hello" in turn.ended.answer


async def test_a_second_file_of_a_request_is_changed(script: Script) -> None:
    Path("app.toml").write_text('version = "1.0.0"\n')
    Path("LOG.md").write_text("# Log\n\n## 1.1.0\n\n- A fix\n\n## 1.0.0\n\n- First\n")
    turn = await script.turn('Set the version in app.toml to 1.1.0 and put the line "- Faster" under 1.1.0 in LOG.md')
    assert Path("LOG.md").read_text() == "# Log\n\n## 1.1.0\n\n- A fix\n- Faster\n\n## 1.0.0\n\n- First\n"
    assert Path("app.toml").read_text() == 'version = "1.1.0"\n'
    assert turn.ended.exit_code == 0


@pytest.mark.parametrize("command", ["git reset --hard HEAD", "ls; rm -r build", "find . -delete", "cat a > b", "echo $(rm a)"])
async def test_question_runs_no_command_with_effects(script: Script, command: str) -> None:
    turn = await script.turn("Is my last commit still there?", said("shell"), text(command), text("It is."))
    assert calls_of(turn) == []
    assert turn.ended.answer == "It is."


async def test_failed_command_is_no_answer(script: Script) -> None:
    turn = await script.turn("How many lines has the program?", said("shell"), text("wc -l gone"))
    assert turn.ended.exit_code == 1
    assert turn.ended.error is not None
    assert "`wc -l gone` failed" in turn.ended.error.message


async def test_question_for_a_command_runs_none(script: Script) -> None:
    await script.turn("Which git command shows who changed a line of a file?", said("answer"), text("git blame"))
    assert script.server.requests[0].json["response_format"]["json_schema"]["schema"]["enum"] == ["read", "answer"]


async def test_denied_action_is_reported(script: Script, tmp_path: Path) -> None:
    script.runner = PromptRunner(script.mode, tmp_path, "plan")
    turn = await script.turn("create an adder function", said("create"), said("adder.py"), text(GOOD))
    assert turn.ended.answer == "adder.py was not written, because it was not allowed."
    assert not Path("adder.py").exists()


async def test_files_are_listed_as_they_are(script: Script) -> None:
    turn = await script.turn("list the files", said("list"))
    assert turn.ended.answer == "There are no files here."
    Path("b.py").touch()
    Path("a.py").touch()
    turn = await script.turn("list the files", said("list"))
    assert turn.ended.answer == "There are 2 files:\n\n```\na.py\nb.py\n```"


async def test_only_what_the_tools_allow_can_be_chosen(script: Script) -> None:
    script.server.script(said("answer"), text("Hello."))
    question = ModelQuestion(messages=(user("create a calculator"),), tools=TOOLS[:1])
    await script.mode.ask(question, Deaf())
    assert script.server.requests[0].json["response_format"]["json_schema"]["schema"]["enum"] == ["read", "answer"]


async def test_without_tools_it_only_talks(script: Script) -> None:
    script.server.script(text("A summary."))
    answer = await script.mode.ask(ModelQuestion(messages=(user("Summarise this."),)), Deaf())
    assert answer.text == "A summary."


@pytest.mark.parametrize("prompt", ["?", "…", "!!!"])
async def test_wordless_request_still_gets_an_answer(script: Script, prompt: str) -> None:
    assert (await script.turn(prompt)).ended.answer.startswith("Say in a few words")


async def test_an_empty_answer_becomes_a_sentence(script: Script) -> None:
    turn = await script.turn("hi", said("answer"), text(""))
    assert turn.ended.answer.startswith("I have no answer")


async def test_very_long_request_is_cut_with_notice(script: Script) -> None:
    listener = Deaf()
    script.server.script(text("Long."))
    await script.mode.ask(ModelQuestion(messages=(user("word " * 200_000),)), listener)
    assert len(script.server.requests[0].body) < 10_000
    assert listener.notices


async def test_tokens_count_over_all_questions_and_cost_nothing(script: Script) -> None:
    turn = await script.turn("create an adder function", said("create"), said("adder.py"), text(GOOD))
    answer = turn.new[1]
    assert answer.usage is not None
    assert answer.usage.cost == UsageCost()
    assert answer.producer is not None
    assert answer.producer.provider == "local"
    assert turn.ended.usage.cost is not None


@pytest.mark.parametrize("added", ["", "\n\nInstructions of this folder:\nUse tabs."])
async def test_a_plan_survives_a_resume(script: Script, added: str) -> None:
    """Only messages are kept: the next step is read off them."""
    Path("calc.py").write_text(CALC)
    output = f"1→x = 1\n[1 line.]{added}"
    call = ToolPart(tool="read", input={"path": "calc.py"}, status="completed", outcome="ok", output=output)
    looked = Message(role="assistant", parts=(call,), metadata={"simple_mode": "change"}, finished=True)
    script.server.script(text("```python\nx = 2"))
    answer = await script.mode.ask(ModelQuestion(messages=(user("set x to 2"), looked), tools=TOOLS), Deaf())
    assert answer.calls[0].input == {"path": "calc.py", "content": "x = 2\n"}


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (error(400, {"error": {"type": "exceed_context_size_error", "message": "too long"}}), ContextOverflow),
        (error(500, {"error": {"message": "broken"}}), BadAnswer),
        (error(500, {}), BadAnswer),
        (sse({"error": {"message": "broken"}}), BadAnswer),
        (sse({"choices": [{"delta": {"content": "half"}}]}), Unavailable),
        (text("half an answer").cut_at(60), Unavailable),
    ],
)
async def test_engine_refusal_is_an_error_with_sentence(script: Script, reply: Reply, kind: type[Exception]) -> None:
    script.server.script(reply)
    with pytest.raises(kind):
        await script.chat.complete([("user", "hi")], Sampling(max_tokens=5))


class Deaf:
    """A listener that remembers only notices."""

    def __init__(self) -> None:
        self.notices: list[str] = []

    async def on_request(self, attempt: int, context_tokens: int) -> None:
        pass

    async def on_deltas(self, deltas: Sequence[Delta]) -> None:
        pass

    async def on_attempt_failed(self, error: Exception, attempt: int, tries: int, delay_s: float) -> None:
        pass

    async def on_replaced(self, error: Exception, model: str) -> None:
        pass

    async def on_notice(self, text: str, level: str = "warning") -> None:
        self.notices.append(text)


# The real model: properties, never exact words


@pytest.mark.real_model
@pytest.mark.soak
async def test_create_a_calculator_gives_one_that_calculates(runner: PromptRunner) -> None:
    turn = await runner.ask("create a calculator")
    assert turn.ended.cause == "done"
    assert all(call.outcome == "ok" for call in calls_of(turn))
    tried = try_functions(load(Path("calculator.py")))
    assert {call.partition("(")[0] for call, _, right in tried if right} >= {"add", "subtract"}
    assert "calculator.py" in turn.ended.answer
    assert turn.ended.usage.output_tokens > 50
    assert turn.ended.usage.cost == UsageCost()


@pytest.mark.real_model
@pytest.mark.soak
async def test_a_named_file_is_created_under_its_name(runner: PromptRunner) -> None:
    await runner.ask("create hello.py that prints hello")
    assert "print" in Path("hello.py").read_text()


@pytest.mark.real_model
@pytest.mark.soak
async def test_a_bug_is_fixed_and_nothing_is_lost(runner: PromptRunner) -> None:
    Path("calc.py").write_text(CALC)
    await runner.ask("fix the bug in calc.py")
    module = load(Path("calc.py"))
    assert (module.add(7, 4), module.subtract(7, 4)) == (11, 3)


@pytest.mark.real_model
@pytest.mark.soak
async def test_looking_changes_nothing(runner: PromptRunner) -> None:
    Path("README.md").write_text("# Frob\n\nFrob turns CSV files into charts.\n")
    before = {path: path.read_bytes() for path in Path.cwd().iterdir()}
    for request in ("what does this project do?", "hi", "list the files", "explain recursion"):
        turn = await runner.ask(request)
        assert turn.ended.cause == "done"
        assert turn.ended.answer.strip()
    assert {path: path.read_bytes() for path in Path.cwd().iterdir()} == before


@pytest.mark.real_model
@pytest.mark.soak
async def test_a_web_page_is_html(runner: PromptRunner) -> None:
    turn = await runner.ask("write a web page about cats")
    pages = list(Path.cwd().glob("*.html"))
    assert len(pages) == 1, turn.ended.answer
    assert "<html" in pages[0].read_text().lower()


@pytest.mark.real_model
@pytest.mark.soak
async def test_hanging_up_frees_the_model_at_once(chat: LocalChat) -> None:
    begun = asyncio.Event()

    async def hear(text: str) -> None:
        begun.set()

    story = asyncio.create_task(chat.complete([("user", "Count from 1 to 10000.")], Sampling(max_tokens=4000), hear))
    async with asyncio.timeout(60):
        await begun.wait()
        story.cancel()
        with pytest.raises(asyncio.CancelledError):
            await story
        await chat.complete([("user", "hi")], Sampling(max_tokens=2))


@pytest.mark.real_model
@pytest.mark.soak
async def test_the_same_question_gets_the_same_answer(chat: LocalChat) -> None:
    answers = {(await chat.complete([("user", "Name a colour.")], Sampling(max_tokens=8))).text for _ in range(3)}
    assert len(answers) == 1


@pytest.mark.real_model
@pytest.mark.soak
async def test_a_prompt_beyond_the_window_is_an_overflow(chat: LocalChat) -> None:
    with pytest.raises(ContextOverflow):
        await chat.complete([("user", "word " * 9000)], Sampling(max_tokens=5))
