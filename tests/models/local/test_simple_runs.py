"""Simple mode runs what it wrote, shows failures to the model, and fixes failing commands."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import text
from tests.fakes.turns import calls_of
from tests.models.local.test_simple_mode import Script
from wolo.models.local import simple_runs
from wolo.models.local.simple_context import list_names
from wolo.models.local.simple_runs import example_command, find_command, next_file, run_command

PRINTS = "```python\nprint(1 + 1)"
BROKEN = "```python\nprint(1 + None)"
TEST = "from word import longest\n\nassert longest(['a', 'bb']) == 'bb', longest(['a', 'bb'])\n"


@pytest.fixture
async def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Script]:
    monkeypatch.setattr(simple_runs, "RUN_S", 120)  # starts of pytest wait for other tests
    with ProviderServer() as server:
        script = Script(server, tmp_path)
        yield script
        await script.transport.close()


async def test_a_program_is_run_and_its_output_shown(script: Script) -> None:
    turn = await script.turn("write two.py that prints two", text(PRINTS))
    assert [call.tool for call in calls_of(turn)] == ["write", "shell"]
    assert turn.ended.answer == "Wrote two.py (1 line).\n\n`python3 two.py` printed:\n\n```\n2\n```\n\nChecked: runs."


async def test_model_sees_program_failure_and_rewrites_it(script: Script) -> None:
    turn = await script.turn("write two.py that prints two", text(BROKEN), text(PRINTS))
    assert [call.tool for call in calls_of(turn)] == ["write", "shell", "write", "shell"]
    assert "TypeError" in script.asked(-1)
    assert "print(1 + None)" in script.asked(-1)
    assert turn.ended.answer.startswith("Wrote two.py")
    assert turn.ended.exit_code == 0


async def test_never_running_program_is_no_success(script: Script) -> None:
    other = "```python\nprint({} + None)"
    turn = await script.turn("write two.py that prints two", text(BROKEN), text(other), text(BROKEN))
    assert [call.tool for call in calls_of(turn)] == ["write", "shell"] * 3
    assert turn.ended.error is not None
    assert "python3 two.py` failed" in turn.ended.error.message
    assert turn.ended.exit_code == 1


async def test_program_without_expected_output_is_rewritten(script: Script) -> None:
    silent = "```python\ntwo = int('2')"
    turn = await script.turn("write two.py that prints two", text(silent), text(PRINTS))
    assert "printed nothing" in script.asked(-1)
    assert "2" in turn.ended.answer


async def test_program_of_definitions_is_ended_by_the_model(script: Script) -> None:
    ended = text(
        '```python\ndef two():\n    return 2\n\n\nif __name__ == "__main__":\n   print(two())'.replace("   print", "    print")
    )
    await script.turn("write two.py that prints two", text("```python\ndef two():\n    return 2"), ended)
    assert Path("two.py").read_text() == 'def two():\n    return 2\n\n\nif __name__ == "__main__":\n    print(two())\n'
    assert script.server.requests[-1].messages[-1]["content"].endswith('if __name__ == "__main__":\n   ')


@pytest.mark.parametrize(
    "code", ["print(input())", "import sys\nprint(sys.stdin.read())", "import tkinter\ntkinter.Tk().mainloop()"]
)
async def test_program_waiting_for_somebody_is_not_run(script: Script, code: str) -> None:
    turn = await script.turn("write ask.py that prints a name", text(f"```python\n{code}"))
    assert [call.tool for call in calls_of(turn)] == ["write"]


async def test_a_program_with_arguments_is_tried_with_some(script: Script) -> None:
    code = "```python\nimport sys\n\nprint(sys.argv[1].upper())"
    turn = await script.turn("write up.py that prints its argument in capitals", text(code), text(" hello"))
    assert calls_of(turn)[-1].input["command"] == "python3 up.py hello"
    assert "HELLO" in turn.ended.answer


async def test_failing_command_is_read_fixed_and_rerun(script: Script) -> None:
    Path("word.py").write_text("def longest(words):\n    return min(words, key=len)\n")
    Path("test_word.py").write_text(TEST)
    fixed = text("```python\ndef longest(words):\n    return max(words, key=len, default='')")
    turn = await script.turn("fix the failing test: python3 test_word.py", fixed)
    assert [call.tool for call in calls_of(turn)] == ["shell", "read", "write", "shell"]
    assert calls_of(turn)[1].input["path"] == "word.py"
    assert "AssertionError: a" in script.asked(-1)
    assert turn.ended.exit_code == 0


async def test_two_files_in_one_task_know_each_other(script: Script) -> None:
    page, style = text("```html\n<p>hi</p>"), text("```css\np { color: red }")
    turn = await script.turn("create index.html and style.css for it", page, style)
    assert [call.input["path"] for call in calls_of(turn)] == ["index.html", "style.css"]
    assert "<p>hi</p>" in script.asked(-1)
    assert turn.ended.answer == "Wrote index.html (1 line).\nWrote style.css (1 line).\n\nNothing of it could be checked."


async def test_file_named_in_request_is_shown_to_model(script: Script) -> None:
    Path("sales.csv").write_text("name,amount\na,1\n")
    await script.turn("write total.py that prints the sum of sales.csv", text(PRINTS))
    assert "sales.csv begins:\n~~~\nname,amount" in script.asked(1)


FORMULA = "Schreibe a.py mit einer Funktion scale(text), die text[::-1] + '41' zurückgibt."


async def test_function_against_its_stated_formula_is_rewritten(script: Script) -> None:
    wrong, right = text("    return text[::-1] + '41' * 3"), text("```python\ndef scale(text):\n    return f'{text[::-1]}41'")
    turn = await script.turn(FORMULA, wrong, right)
    assert [call.tool for call in calls_of(turn)] == ["write", "shell"] * 2
    assert "scale('ab') gives 'ba414141', not 'ba41'" in script.asked(-1)
    assert turn.ended.answer == "Wrote a.py (2 lines).\n\nChecked: runs, computes text[::-1] + '41', defines scale, has “41”."


async def test_function_against_its_formula_is_no_success(script: Script) -> None:
    wrong = [text(f"```python\ndef scale(text):\n    return text * {count}") for count in (2, 3, 4)]
    turn = await script.turn(FORMULA.replace("'41'", "text"), *wrong)
    assert turn.ended.error is not None
    assert turn.ended.error.message == "a.py was written, but scale('ab') gives 'abababab', not 'baab'."
    assert turn.ended.exit_code == 1


async def test_method_against_its_stated_formula_is_rewritten(script: Script) -> None:
    head = "class Mixer:\n    def __init__(self, start):\n        self.start = start\n\n    def mix(self, n):\n        return "
    wrong, right = (text(f"```python\n{head}self.start + {formula}") for formula in ("n", "9 * n"))
    request = "Crea a.py con una clase Mixer(start) cuyo método mix(n) devuelve self.start + 9 * n."
    turn = await script.turn(request, wrong, right)
    assert "Mixer.mix(2, 2) gives 4, not 20" in script.asked(-1)
    assert "computes self.start + 9 * n" in turn.ended.answer


async def test_stated_formula_is_checked_beside_pytest(script: Script) -> None:
    tests = text("```python\nfrom a import scale\n\n\ndef test_scale():\n    assert scale(1) == 2")
    request = "Crea a.py con scale(n), que devuelve n + 1, y test_a.py, que prueba scale con pytest."
    turn = await script.turn(request, text("    return n * 2"), tests, text("```python\ndef scale(n):\n    return n + 1"))
    assert "scale(2) gives 4, not 3" in script.asked(-1) or "scale(7) gives 14, not 8" in script.asked(-1)
    assert turn.ended.answer.endswith("(5 lines).\n\nChecked: the tests pass, computes n + 1, defines scale, has 1.")


async def test_test_against_the_stated_formula_is_corrected(script: Script) -> None:
    tests = "```python\nfrom a import scale\n\n\ndef test_scale():\n    assert scale(1) == 7\n    assert scale(2) == 3"
    request = "Crea a.py con scale(n), que devuelve n + 1, y test_a.py, que prueba scale con pytest."
    turn = await script.turn(request, text("    return n + 1"), text(tests))
    assert [call.tool for call in calls_of(turn)] == ["write", "write", "shell", "write", "shell"]
    assert Path("test_a.py").read_text() == tests.removeprefix("```python\n").replace("7", "2") + "\n"
    assert turn.ended.exit_code == 0


async def test_assertions_against_formula_are_corrected_together(script: Script) -> None:
    wrong = "".join(f"    assert scale({number}) == 9\n" for number in (1, 2, 3))
    tests = f"```python\nfrom a import scale\n\n\ndef test_scale():\n{wrong}".rstrip()
    request = "Crea a.py con scale(n), que devuelve n + 1, y test_a.py, que prueba scale con pytest."
    turn = await script.turn(request, text("    return n + 1"), text(tests))
    assert [call.tool for call in calls_of(turn)] == ["write", "write", "shell", "write", "shell"]
    assert turn.ended.exit_code == 0


SHOUT = "```python\ndef shout(text):\n    return text.upper()"
WHISPER = "```python\ndef shout(text):\n    return text.lower()"
SAME = "```python\ndef shout(text):\n    result = text.upper()\n    return result"
TWICE = "```python\ndef shout(text):\n    return text * 2"


async def test_second_version_of_same_code_is_enough(script: Script) -> None:
    turn = await script.turn("write a.py with a function shout for loud text", text(SHOUT), text(SHOUT))
    assert [call.tool for call in calls_of(turn)] == ["write", "shell"]
    assert turn.ended.answer.endswith("Checked: runs, another version has the same results.")


async def test_version_with_agreement_stands(script: Script) -> None:
    turn = await script.turn("write a.py with a function shout for loud text", text(WHISPER), text(SHOUT), text(SAME))
    assert [call.tool for call in calls_of(turn)] == ["write", "shell", "write"]
    assert Path("a.py").read_text() == SHOUT.removeprefix("```python\n") + "\n"
    assert turn.ended.exit_code == 0


async def test_versions_that_all_disagree_are_no_success(script: Script) -> None:
    turn = await script.turn("write a.py with a function shout for loud text", text(WHISPER), text(SHOUT), text(TWICE))
    assert turn.ended.exit_code == 1
    assert turn.ended.error is not None
    assert "three versions of it disagree: shout('x') gives 'x' / 'X' / 'xx'" in turn.ended.error.message


async def test_example_of_request_chooses_the_version(script: Script) -> None:
    request = "write a.py with a function shout: `abc` becomes `ABC`"
    turn = await script.turn(request, text(WHISPER), text(TWICE), text(SHOUT))
    assert Path("a.py").read_text() == SHOUT.removeprefix("```python\n") + "\n"
    assert turn.ended.exit_code == 0


async def test_repair_changing_no_result_is_repeated(script: Script) -> None:
    Path("a.py").write_text("def mean(values):\n    return sum(values) / (len(values) - 1)\n")
    same = "```python\ndef mean(values):\n    total = sum(values)\n    return total / (len(values) - 1)"
    right = "```python\ndef mean(values):\n    return sum(values) / len(values)"
    turn = await script.turn("mean in a.py is wrong, fix it", text(same), text(same), text(right))
    assert "it behaves as before, mean([4, 1, 4, 9]) gives 6.0" in script.asked(-1)
    assert Path("a.py").read_text() == right.removeprefix("```python\n") + "\n"
    assert turn.ended.exit_code == 0


async def test_printed_numbers_of_versions_are_compared(script: Script) -> None:
    wrong, right = text("```python\nfor number in (1, 3, 5):\n    print(number)"), text("```python\nprint([2, 4, 6])")
    again = text("```python\nfor number in range(2, 7, 2):\n    print(number)")
    turn = await script.turn("write even.py that prints the first three even numbers", wrong, right, again)
    assert Path("even.py").read_text() == "print([2, 4, 6])\n"
    assert turn.ended.exit_code == 0


@pytest.mark.parametrize("body", ["open(text, 'w')", "__import__('os').remove(text)", "text.__class__", "input()"])
async def test_code_with_effects_is_not_compared(script: Script, body: str) -> None:
    await script.turn("write a.py with a function shout for loud text", text(f"```python\ndef shout(text):\n    return {body}"))
    assert len(script.server.requests) == 1


async def test_output_for_an_argument_fits_its_template(script: Script) -> None:
    bad, good = 'echo "Hello, $2!"', 'echo "Hello, $1!"'
    request = 'write hello.sh: it takes a name and prints "Hello, NAME!"'
    turn = await script.turn(request, text(f"```bash\n{bad}"), text(" Eve"), text(f"```bash\n{good}"), text(" Eve"))
    assert "it does not print “Hello, Eve!” for the argument Eve" in script.asked(2)
    assert turn.ended.exit_code == 0


async def test_test_of_existing_code_gets_its_values(script: Script) -> None:
    code = "def initials(name):\n    return ''.join(part[0] for part in name.split())\n"
    Path("names.py").write_text(code)
    tests = f"```python\n{code}\n\ndef test_initials():\n    assert initials('Ada Love') == 'ADA'\n    assert initials('') == ''"
    turn = await script.turn("write pytest tests for initials of names.py in test_names.py", text('"create"'), text(tests))
    assert [call.tool for call in calls_of(turn)] == ["write", "shell", "write", "shell"]
    assert "from names import initials" in Path("test_names.py").read_text()
    assert "initials('Ada Love') == 'AL'" in Path("test_names.py").read_text()
    assert Path("names.py").read_text() == code
    assert turn.ended.exit_code == 0


async def test_every_stated_result_is_compared(script: Script) -> None:
    request = "write a.py with every(items, n): every([1, 2, 3, 4], 2) -> [2, 4], and every([1, 2], 3) -> []"
    bad = text("```python\ndef every(items, n):\n    return items[1::n] if len(items) > n else items")
    good = text("```python\ndef every(items, n):\n    return items[n - 1 :: n]")
    turn = await script.turn(request, bad, good)
    assert "every([1, 2], 3) gives [1, 2], not []" in script.asked(-1)
    assert turn.ended.exit_code == 0


async def test_program_printing_its_argument_is_rewritten(script: Script) -> None:
    Path("poem.txt").write_text("a\nlong line\n")
    bad = text("import sys\n\nprint(max(sys.argv[1].split('\\n'), key=len))")
    good = text("import sys\n\nprint(max(open(sys.argv[1]).read().split('\\n'), key=len))")
    turn = await script.turn(
        "write longest.py that takes a file, e.g. poem.txt, and prints its 1 longest line",
        text('"create"'),
        bad,
        text(" poem.txt"),
        good,
        text(" poem.txt"),
    )
    assert "it prints only its argument poem.txt" in script.asked(3)
    assert turn.ended.exit_code == 0


async def test_text_printed_too_rarely_is_rewritten(script: Script) -> None:
    once, thrice = text("```python\nprint('late train')"), text("```python\nfor _ in range(3):\n    print('late train')")
    turn = await script.turn("Crea a.py: imprime «late train» 3 veces.", once, thrice)
    assert "it prints “late train” 1 times, not 3 times" in script.asked(-1)
    assert turn.ended.exit_code == 0


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("print('late train ' * 3)", "prints “late train” 0 times on a line of its own, not 3 times"),
        ("for n in range(3):\n    print('late train', n)", "prints “late train” 0 times on a line of its own, not 3 times"),
        ("print('ready')\nfor n in range(3):\n    print('late train')", "also prints “ready”, which nobody asked for"),
    ],
)
async def test_other_output_than_requested_is_rewritten(script: Script, code: str, problem: str) -> None:
    wrong, right = text(f"```python\n{code}"), text("```python\nfor _ in range(3):\n    print('late train')")
    turn = await script.turn("Crea a.py: imprime «late train» 3 veces, cada vez en su propia línea.", wrong, right)
    assert f"it {problem}" in script.asked(-1)
    assert turn.ended.exit_code == 0


@pytest.mark.parametrize("mark", ["", '"'])
async def test_stated_equation_is_looked_for_in_output(script: Script, mark: str) -> None:
    swapped, right = text("```python\nprint('1 x 7 = 7\\n2 x 7 = 14')"), text("```python\nprint('7 x 1 = 7\\n7 x 2 = 14')")
    turn = await script.turn(
        f"Write a.py that prints the table from {mark}7 x 1 = 7{mark} to {mark}7 x 2 = 14{mark}.", swapped, right
    )
    assert "it does not print “7 x 1 = 7”" in script.asked(-1)
    assert turn.ended.exit_code == 0


async def test_further_output_that_may_be_requested_stays(script: Script) -> None:
    code = "```python\nfor _ in range(3):\n    print('late train')\nprint('2026')"
    turn = await script.turn('Write a.py that prints "late train" 3 times and then the year.', text(code))
    assert turn.ended.exit_code == 0


@pytest.mark.parametrize(
    ("request_", "code", "part"),
    [
        ("Crea a.py: imprime «late train» 3 veces.", "input()\nprint('late train\\n' * 3)", "“late train” 3 times"),
        (
            "Écris a.py, qui prend un argument de la ligne de commande et affiche 7",
            "import sys\nopen(sys.argv[1])",
            "a run with an argument",
        ),
    ],
)
async def test_work_that_no_run_shows_is_no_success(script: Script, request_: str, code: str, part: str) -> None:
    turn = await script.turn(request_, text(f"```python\n{code}"), text(" nowhere.txt"))
    assert turn.ended.error is not None
    assert turn.ended.error.message == f"a.py was written, but this is missing: a run that shows {part}."
    assert turn.ended.exit_code == 1


async def test_argument_repeated_as_text_is_rewritten(script: Script) -> None:
    wrong = "```python\nimport sys\n\nprint(sys.argv[1] * 26)"
    turn = await script.turn(
        "Write a.py. It takes a number as its argument and prints that number times 26.",
        text(wrong),
        text(" 10"),
        text(wrong.replace("sys.argv[1]", "int(sys.argv[1])")),
    )
    assert "it repeats its argument 10" in script.asked(-1)
    assert "260" in turn.ended.answer


# Effort


async def test_file_is_written_thrice_then_places_are_repaired(script: Script) -> None:
    bad = text("```python\ndef (")
    block = text("<<<<<<< SEARCH\nprint(1 + None)\n=======\nprint(1 + 1)")
    turn = await script.turn("write two.py that prints two", bad, bad, text(BROKEN), block)
    assert [call.tool for call in calls_of(turn)] == ["write", "shell", "edit", "shell"]
    assert Path("two.py").read_text() == "print(1 + 1)\n"
    whole = [asked for asked in script.server.requests if asked.messages[-1]["content"] == "```python\n"]
    assert len(whole) == 3


async def test_second_bad_answer_is_cut_at_the_limit(script: Script) -> None:
    short, long = (text("```python\n" + "".join(f"x{at:03} = (\n" for at in range(lines))) for lines in (100, 200))
    turn = await script.turn("write two.py that prints two", short, long)
    assert turn.ended.error is not None
    assert "Nothing was written" in turn.ended.error.message
    first, second = (asked.json["max_tokens"] for asked in script.server.requests)
    assert (first, second) == (1024, (4000 - 910) // 4)


async def test_code_after_the_last_function_is_refused(script: Script) -> None:
    endless = text("    return a * 3 + b\n\n\ndef other():\n    return 1\n").ends("stall")
    turn = await script.turn("Add mix(a, b) to a.py. It returns a * 3 + b.", endless)
    assert Path("a.py").read_text() == "def mix(a, b):\n    return a * 3 + b\n"
    assert turn.ended.exit_code == 0


@pytest.mark.parametrize(
    ("request_", "command"),
    [
        ("python3 app.py fails, fix it", "python3 app.py"),
        ("`make all -k` does not work", "make all -k"),
        ("fix the error of pytest tests/test_a.py", "pytest tests/test_a.py"),
        ("make it faster", ""),
        ("npm test is red", "npm test"),
        ("node server.js crashes", "node server.js"),
    ],
)
def test_a_command_is_found_in_a_request(request_: str, command: str) -> None:
    assert find_command(request_) == command


def test_name_a_program_writes_is_no_second_file() -> None:
    names = list_names(Path.cwd())
    assert next_file("write a.py that writes out.txt", names, ["a.py"]) == ""
    assert next_file("write a.py and a test file test_a.py", names, ["a.py"]) == "test_a.py"


@pytest.mark.parametrize("said", [" x; rm -rf /", " $(id)", " a | sh", "", " > b"])
def test_only_plain_arguments_are_taken_from_the_model(said: str) -> None:
    assert example_command("a.py", "python3", said, "print(sys.argv[2])") == "python3 a.py 10 3"


def test_names_with_spaces_and_unknown_kinds_never_run() -> None:
    assert run_command("a b.py", "print(1)") == ""
    assert run_command("a.css", "p {}") == ""
    assert run_command("a.js", "console.log(1)") == "node a.js"


async def test_one_place_of_a_long_file_is_changed(script: Script) -> None:
    lines = "".join(f"value_{number} = {number}\n" for number in range(900))
    Path("big.py").write_text(lines)
    wrong = text("<<<<<<< SEARCH\nvalue = 7\n=======\nvalue_7 = 70\n")
    right = text("<<<<<<< SEARCH\nvalue_7 = 7\n=======\nvalue_7 = 70\n")
    turn = await script.turn("set value_7 to 70 in big.py", wrong, right)
    assert [call.tool for call in calls_of(turn)] == ["read", "edit"]
    assert Path("big.py").read_text() == lines.replace("value_7 = 7\n", "value_7 = 70\n")
    assert turn.ended.answer == "Changed big.py.\n\nChecked: can be parsed, has value_7, 70."
    assert "value_250" not in script.asked(-1)
