"""Changes that a request states in full, in any language, and additions to prose, at their place."""

from __future__ import annotations

import pytest

from wolo.models.local.checks.asked_changes import asked_rename, removes
from wolo.models.local.checks.asked_parts import asked_folder, clauses_of
from wolo.models.local.checks.begun_code import whole_lines
from wolo.models.local.checks.edited_place import edit_places
from wolo.models.local.checks.edited_python import (
    annotation_problem,
    functions_without_docstring,
    keep_bodies,
    with_docstrings,
    without_demo,
)
from wolo.models.local.checks.marks import result_examples
from wolo.models.local.checks.missing_parts import missing_parts, missing_texts
from wolo.models.local.checks.sections import place_of_addition
from wolo.models.local.simple_places import is_about, stated_sentence

TAX = "VAT = 0.2\n\n\ndef net(price):\n    return round(price / (1 + VAT), 2)\n"
PACKAGE = '{\n  "name": "shop",\n  "scripts": {\n    "test": "jest"\n  },\n  "private": true\n}\n'
LOG = "# Changes\n\n## Next\n\n### Added\n\n- Dark theme\n\n### Fixed\n\n- A typo\n\n## 1.0\n\n### Fixed\n\n- An icon\n"


@pytest.mark.parametrize(
    ("path", "old", "request_", "new"),
    [
        (
            "tax.py",
            TAX,
            "Füge net in tax.py einen Parameter digits hinzu, Vorgabe 2.",
            TAX.replace("(price)", "(price, digits=2)").replace(", 2)", ", digits)"),
        ),
        (
            "package.json",
            PACKAGE,
            'add a script "lint" that runs "eslint ."',
            PACKAGE.replace('"jest"', '"jest",\n    "lint": "eslint ."'),
        ),
        ("package.json", PACKAGE, 'ajoute "version" avec la valeur "2.0"', PACKAGE.replace("true", 'true,\n  "version": "2.0"')),
        (".gitignore", "*.pyc\n", "please put .env and build/ into the .gitignore", "*.pyc\n.env\nbuild/\n"),
        ("a.yml", 'web:\n  ports:\n    - "80:80"\n', 'Der Port 80 ist belegt, nimm bitte 81, also "81:80", für 80.', None),
        (
            "a.yml",
            'web:\n  ports:\n    - "8080:80"\n',
            'Port 8080 ist belegt. Ändere ihn auf 9090, also "9090:80".',
            'web:\n  ports:\n    - "9090:80"\n',
        ),
        (
            "a.html",
            "<title>Old page</title>\n",
            "Le titre est « Old page ». Mets « Chez Nous » à la place.",
            "<title>Chez Nous</title>\n",
        ),
        (
            "a.py",
            "def old():\n    pass\n\n\ndef new():\n    pass\n",
            "nobody uses the function old any more, please remove it",
            "def new():\n    pass\n",
        ),
        ("a.py", "def f(x):\n    log(x)\n    return x\n", "the function f logs a line, remove it", None),
    ],
)
def test_a_stated_change_needs_no_model(path: str, old: str, request_: str, new: str | None) -> None:
    assert edit_places(path, old, request_)[0] == (old if new is None else new)


def test_stated_sentences_leave_others_to_a_model() -> None:
    old = "def greet(name='world'):\n    return f'Hello, {name}!'\n"
    request = "Two things: 1) the name should be 'friend' instead of 'world', 2) add a function bye(name)"
    assert edit_places("greet.py", old, request) == (old.replace("world", "friend"), "Two things:\nadd a function bye(name)")


@pytest.mark.parametrize(
    ("request_", "place", "begin"),
    [
        ("note the crash under Fixed of Next", 11, "- "),
        ("Ergänze unter Added, dass es ein Menü gibt", 7, "- "),
        ("add a section about the menu", 17, ""),
    ],
)
def test_an_addition_goes_below_its_heading(request_: str, place: int, begin: str) -> None:
    assert place_of_addition(LOG, request_) == (place, begin)


def test_addition_speaks_of_request_without_ordering() -> None:
    request = "We fixed the crash with an empty config. Please note that in CHANGES.md."
    assert is_about("Crash with an empty config", request, LOG)
    assert not is_about("2023-04-15 - Fixed A typo", request, LOG)
    assert not is_about("Please note that in CHANGES.md", request, LOG)
    assert stated_sentence(request, "CHANGES.md") == "We fixed the crash with an empty config."


def test_type_hints_change_no_body() -> None:
    old = "def tag(name):\n    return f'<{name}>'\n\n\ndef tax(price):\n    return price * 2\n"
    new = "def tag(name: str) -> str:\n    return tax\n\n\ndef tax(price: float) -> float:\n    return 1\n"
    hinted = old.replace("(name)", "(name: str) -> str").replace("(price)", "(price: float) -> float")
    assert keep_bodies(old, new, "型ヒントを付けてください") == hinted
    assert annotation_problem(hinted, "add type hints") == ""
    assert annotation_problem(hinted.replace("-> str", "-> int"), "add type hints") == "tag returns a str"
    assert annotation_problem(hinted.replace(": float", ""), "add type hints") == "price of tax has no type hint"


def test_a_docstring_changes_no_body() -> None:
    old = "def tag(name):\n    return f'<{name}>'\n"
    new = 'def tag(name):\n    """The name as a tag.\n\n    More."""\n    return name\n'
    assert (
        keep_bodies(old, new, "add a docstring to tag")
        == 'def tag(name):\n    """The name as a tag."""\n    return f\'<{name}>\'\n'
    )


def test_capitals_of_quotes_stand_for_a_value() -> None:
    assert missing_texts('prints "Hello, NAME!"', 'echo "Hello, $1!"') == []
    assert missing_texts('prints "Hello, NAME!"', 'echo "Hi, $1!"') == ["“Hello, NAME!”"]
    assert missing_texts('prints "ALL DONE"', 'echo "ALL SET"') == ["“ALL DONE”"]


def test_listed_values_are_looked_for_in_new_code() -> None:
    request = "add count_vowels(text) to a.py: it counts the vowels (a, e, i, o, u) of the text"
    old = "UMLAUTS = {'ä': 'ae'}\n"
    code = '\n\ndef count_vowels(text):\n    """Vowels (a, e, i, o, u)."""\n    return sum(char in {} for char in text)\n'
    assert missing_parts(request, "a.py", old + code.replace("{}", "UMLAUTS"), old) == ["a, e, i, o, u"]
    assert missing_parts(request, "a.py", old + code.replace("{}", "'aeiou'"), old) == []


@pytest.mark.parametrize(
    "request_", ["В папке src создай a.py", "文件夹src里创建a.py", "フォルダsrcにa.pyを作成", "Lege im Ordner src a.py an"]
)
def test_a_folder_is_named_in_any_script(request_: str) -> None:
    assert asked_folder(request_) == "src"


def test_a_file_name_is_no_function_to_remove() -> None:
    assert not removes("nobody uses dump in report.py, remove it", "report")


def test_a_target_of_a_makefile_is_looked_for() -> None:
    old = "all:\n\ttrue\n"
    for request in ("add a clean target that deletes build", "Ergänze ein Target clean", "añade un objetivo clean"):
        assert missing_parts(request, "Makefile", old, old) == ["target clean"]
        assert missing_parts(request, "Makefile", f"{old}\nclean:\n\trm -r build\n", old) == []


def test_cut_off_test_ends_with_last_assertion() -> None:
    assert whole_lines("def test_a():\n    assert f(1) == 1\n    assert f(1) == 1\n    assert f(2) == 2\n    assert f(") == (
        "def test_a():\n    assert f(1) == 1\n    assert f(2) == 2"
    )


INI = "[common]\ndebug = true\n\n[production]\ndebug = true\n"
GOODS = "sku,name,price\nP1,USB cable 2m,9.99\nP2,USB cable,5\n"


@pytest.mark.parametrize(
    ("path", "old", "request_", "new"),
    [
        ("a.ini", INI, "debug is still on in production, set it to false there", INI[:-5] + "false\n"),
        ("a.csv", GOODS, 'the price of "USB cable 2m" should be 7.49', GOODS.replace("9.99", "7.49")),
        ("a.csv", GOODS, "set the price of the cable to 7.49", GOODS),
    ],
)
def test_a_value_changes_where_its_owner_is_named(path: str, old: str, request_: str, new: str) -> None:
    assert edit_places(path, old, request_)[0] == new


def test_change_in_a_named_section_is_looked_for() -> None:
    other = INI.replace("true", "false", 1)
    assert missing_parts("debug is on in production, turn it off", "a.ini", other, INI) == ["change in [production]"]


def test_options_and_errors_are_looked_for_in_programs() -> None:
    old = "def take(n):\n    return n\n"
    assert missing_parts("add a --shout flag to a.py", "a.py", old, old) == ["--shout"]
    assert missing_parts("take soll einen ValueError auslösen", "a.py", old, old) == ["raise ValueError"]
    assert missing_parts("take dies with ValueError, fix it", "a.py", old, old) == []
    assert missing_texts('it says "ZeroDivisionError: division by zero"', old) == []


def test_docstrings_go_to_functions_without_one() -> None:
    old = 'def one():\n    return 1\n\n\ndef two():\n    """Two."""\n    return 2\n'
    assert functions_without_docstring(old, "add docstrings to the functions of a.py") == ["one"]
    assert functions_without_docstring(old, 'add the docstring "One." to one') == []
    assert with_docstrings(old, {"one": "One."}) == old.replace("one():\n", 'one():\n    """One."""\n')


def test_a_library_ends_with_its_definitions() -> None:
    code = "class Stack:\n    def pop(self):\n        raise IndexError\n"
    assert without_demo(f"{code}\n\nstack = Stack()\nprint(stack.pop())\n") == code
    assert without_demo(f"{code}\n\nimport sys\n") == f"{code}\n\nimport sys\n"


def test_the_name_before_the_new_one_is_renamed() -> None:
    request = "calc is too vague. rename the function calc to gross_total. calc_all keeps its name!"
    assert asked_rename(request, "def calc():\n    pass\n\n\ndef calc_all():\n    calc()\n") == ("calc", "gross_total")


def test_a_request_is_split_where_further_work_begins() -> None:
    assert clauses_of('in a.py the name is "x" instead of "y", and add f(n), e.g. for tests. Thanks') == [
        'in a.py the name is "x" instead of "y"',
        "add f(n), e.g. for tests.",
        "Thanks",
    ]
    assert clauses_of("rename salt and pepper in a.py") == ["rename salt and pepper in a.py"]


def test_examples_and_commands_are_not_to_be_written() -> None:
    assert result_examples("so 'ada king' gives 'AK', and aab -> a2b1.") == [("ada king", "AK"), ("aab", "a2b1")]
    assert missing_texts("'ada king' gives 'AK'; run it as `python a.py 2`", "") == []
