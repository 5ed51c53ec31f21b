"""A changed file keeps what nobody asked to lose, and holds what was asked for, in any language."""

from __future__ import annotations

import pytest

from wolo.models.local.checks.asked_changes import asked_rename, removes
from wolo.models.local.checks.asked_parts import asked_folder, asked_parts, asks_to_know
from wolo.models.local.checks.begun_code import begin_of, whole_definitions
from wolo.models.local.checks.edited_place import edit_place, exact_texts
from wolo.models.local.checks.kept_content import lost_content, restore_definitions
from wolo.models.local.checks.missing_parts import missing_parts
from wolo.models.local.checks.requested_work import asks_for_files, wants_answer
from wolo.models.local.checks.senses import is_question

HTML = "<h1>Tea</h1>\n<img src=cup>\n<p>Drink it hot.</p>\n"
PAGE = "<h2>Cups</h2>\n<ul id=cups>\n<em>no milk</em>\n<table></table>\n<footer>Bye.\n"
SHOP = "# Saturday\n\n## Shopping\n\n### Fruit\n\n- pears\n\n## Later\n\n- paint\n"
CALC = "LIMIT = 3\n\n\ndef add(a, b):\n    return a + b\n\n\nclass Box:\n    def put(self, x):\n        self.x = x\n"


@pytest.mark.parametrize(
    ("path", "old", "new", "request_", "lost"),
    [
        ("a.py", CALC, CALC.replace("def add", "def plus"), "make a.py faster", "add"),
        ("a.py", CALC, CALC.replace("def put", "def store"), "ergänze a.py", "Box.put"),
        ("a.py", CALC, CALC.replace("LIMIT", "MOST"), "füge sub(a, b) an", "LIMIT"),
        ("a.py", CALC, CALC.replace("def add", "def plus"), "rename add to plus", ""),
        ("a.py", CALC, CALC.replace("def add", "def plus"), "renombra add a plus", ""),
        ("a.json", '{"a": {"b": 1, "c": 2}}', '{"a": {"b": 1}}', "set b to 1", "a.c"),
        ("a.json", '{"a": 1, "c": 2}', '{"a": 5, "c": 3}', "set `a` to 5", "the value of c"),
        ("a.json", '{"a": 1, "c": 2}', '{"c": 2}', "elimina `a`", ""),
        ("a.toml", "# why\na = 1\n[t]\nb = 2\n", "a = 4\n[t]\nb = 2\n", "a auf 4 setzen", "# why"),
        ("a.ini", "[m]\na = 1\nb = 2\n", "[m]\na = 4\n", "a = 4", "m.b"),
        ("a.yaml", "a:\n  b: 1\n  c: 2\nl:\n  - x\n  - y\n", "a:\n  b: 3\n  c: 2\nl:\n  - x\n", "b: 3", "l.y"),
        ("a.md", "# A\n\nOne line.\n\n## B\n", "# A\n\n## B\n\nNew.\n", 'add "New."', "the line “One line.”"),
        ("a.md", "# A\n\nOne line.\n", "# A\n\nEine Zeile.\n", "translate a.md to German", ""),
        ("a.js", "function a() {}\nfunction b() {}\n", "function a() {}\n", "make a faster", "b"),
        ("a.py", "@dataclass\nclass A:\n    x: int\n    y = 2\n", "class A:\n    x: int\n", "add b", "A.dataclass, A.y"),
        ("a.html", HTML, HTML[:13], "wider", "the line “<img src=cup>”"),
        ("a.html", HTML * 2 + PAGE, HTML * 2 + PAGE[:15], "wider", "the line “<ul id=cups>”"),
        ("a.yaml", "p:\n  - 80:1\n  - 90:1\n", "p:\n  - 81:1\n  - 90:1\n", "81 instead of 80", ""),
    ],
)
def test_loss_nobody_asked_for_is_named(path: str, old: str, new: str, request_: str, lost: str) -> None:
    assert lost_content(path, old, new, request_) == lost
    assert lost_content(path, old, old, request_) == ""


def test_definition_in_another_body_returns_to_its_place() -> None:
    nested = CALC.replace("    return a + b\n", "    return a + b\n\n    def sub(a, b):\n        return a - b\n")
    fixed = restore_definitions(CALC, nested, "add a function sub(a, b)")
    assert "\ndef sub(a, b):\n    return a - b\n" in fixed
    assert lost_content("a.py", CALC, fixed, "add a function sub(a, b)") == ""


def test_several_definitions_in_another_body_return() -> None:
    more = CALC + "\n\ndef twice(a):\n    return 2 * a\n"
    inner = "    def add(a, b):\n        return a + b\n\n    def twice(a):\n        return 2 * a\n"
    alone = more[: more.index("def add")] + f"def sub(a, b):\n{inner}"
    for nested in (alone, alone.replace("(a, b):\n    def add", "(a, b):\n    print(a)\n\n    def add")):
        fixed = restore_definitions(more, nested, "add a function sub(a, b)")
        assert fixed.count("\ndef add(a, b):\n    return a + b\n") == 1
        assert fixed.count("\ndef twice(a):\n    return 2 * a\n") == 1


def test_unnamed_function_keeps_its_body() -> None:
    new = CALC.replace("a + b", "a * b") + "\n\ndef sub(a, b):\n    return a - b\n"
    assert "return a + b" in restore_definitions(CALC, new, "Añade la función sub(a, b)")


def test_lost_method_returns_to_its_class() -> None:
    new = "class Box:\n    def size(self):\n        return 1\n"
    assert "def put" in restore_definitions(CALC, new, "add a method size() to Box")


def test_class_keeps_fields_around_a_new_method() -> None:
    old = '@final\nclass Box:\n    """A box."""\n\n    size = 1\n\n    def put(self, x):\n        self.x = x\n'
    new = "class Box:\n    def put(self, x):\n        self.x = [x]\n\n    def area(self):\n        return 1\n"
    fixed = restore_definitions(old, new, "add a method area to Box")
    assert fixed == old.replace("= x", "= [x]") + "\n    def area(self):\n        return 1\n"
    assert lost_content("a.py", old, fixed, "add a method area to Box") == ""


@pytest.mark.parametrize(
    ("path", "old", "request_", "wrong", "missing"),
    [
        ("a.yaml", "p: 80\n", "81 instead of 80 in a.yaml", "p: 80\nq: 81\n", "81 instead of 80"),
        ("a.css", "a { b: blue }\n", "red statt blue in a.css", "a { b: blue }\n/* red */\n", "red instead of blue"),
        ("a.py", "D = True\n", "Set D to False in a.py, and add M = 50.", "D = True\nM = 50\n", "D = False"),
        ("a.py", "def f():\n    pass\n", "Entferne die Funktion f aus a.py", "def f():\n    return 1\n", "removal of f"),
        ("a.js", "function f() {}\n", "从 a.js 中删除函数 f", "function f() { }\n", "removal of f"),
        ("a.py", "def f(x):\n    pass\n", "em f de a.py um parâmetro tone com valor 2", "def f(x=2):\n    pass\n", "tone"),
        (".gitignore", "a/\n", "trag *.log und build/ in .gitignore ein", "a/\nbuild/\n", "*.log"),
        ("a.ini", "[m]\nb = 1\n\n[n]\n", "add c = 3 to [m] in a.ini", "[m]\nb = 1\n\n[n]\nc = 3\n", "change in [m]"),
        ("a.md", SHOP, "put eggs on the shopping list in a.md", SHOP + "- eggs\n", "change in ## Shopping"),
        ("a.csv", "a,b,c\n", "Ajoute la ligne d,1,0.80 à a.csv", "a,b,c\nd,1\n", "d,1,0.80"),
    ],
)
def test_change_beside_the_request_is_named(path: str, old: str, request_: str, wrong: str, missing: str) -> None:
    assert missing_parts(request_, path, wrong, old) == [missing]


def test_addition_below_the_named_heading_is_complete() -> None:
    request_ = "put eggs on the shopping list in a.md"
    assert missing_parts(request_, "a.md", SHOP.replace("- pears\n", "- pears\n- eggs\n"), SHOP) == []
    assert missing_parts("Add a section “Shopping later” to a.md", "a.md", f"{SHOP}\n## Shopping later\n", SHOP) == []


@pytest.mark.parametrize(
    ("request_", "goes"),
    [
        ("Remove the function add from a.py", True),
        ("удали функцию add", True),
        ("a.py の add 関数を削除して", True),
        ("احذف الدالة add", True),
        ("Remove the docstring of the function add", False),
        ("remove the add docstring from a.py", False),
        ("remove the function add from a.py and its tests", True),
        ("Elimina el print de la función add", False),
        ("删除 add 里的打印语句", False),
    ],
)
def test_only_the_definition_meant_is_removed(request_: str, *, goes: bool) -> None:
    assert removes(request_, "add") is goes


@pytest.mark.parametrize(
    ("request_", "text", "missing"),
    [
        ("Schreibe a.py mit sub(a, b)", "def add(a, b):\n    return 1\n", ["function sub"]),
        ("Schreibe a.py mit sub(a, b, c)", "def sub(a, b):\n    return 1\n", ["argument c of sub"]),
        ("Crea a.py que imprime «hola mundo»", "print('hola')\n", ["“hola mundo”"]),
        ("创建 a.py：打印“你好”", "print('你好')\n", []),
        ("Write a.py with LIMIT 144", "LIMIT = 100\n", ["144"]),
        ("Write a.py that prints 7 x 10 = 70", "print(7 * 10)\n", []),
        ('Haz a.py que imprima "7 x 10 = 70"', "print(7 * 10)\n", []),
        ('Write a.py with shift(t): for example "abc" becomes "def".', "def shift(t):\n    return t\n", []),
        ("Write a.py that prints the numbers from 1 to 40", "print(*range(1, 41))\n", []),
        ("a.py: das Argument der Befehlszeile ausgeben", "print(input())\n", ["argument of the command line (sys.argv)"]),
        ("Write a.py with a class Stack(size)", "class Stack:\n    def __init__(self, size):\n        self.size = size\n", []),
    ],
)
def test_missing_part_of_a_request_is_named(request_: str, text: str, missing: list[str]) -> None:
    assert missing_parts(request_, "a.py", text) == missing


@pytest.mark.parametrize(
    ("request_", "text", "missing"),
    [
        ('At the end of a.md, add a section "Use" with "Run it."', "# A\n\n## Use\n\nRun it.\n", []),
        ("Füge am Ende von a.md den Satz „Läuft.“ an.", "Läuft.\n\n# A\n\nb\nc\nd\n", ["“Läuft.” at the end"]),
        ("在 a.md 末尾添加一节“用法”，内容是“运行”。", "# A\n\n用法\n\n运行\n", ["heading “用法”"]),
    ],
)
def test_misplaced_text_is_missing(request_: str, text: str, missing: list[str]) -> None:
    assert missing_parts(request_, "a.md", text) == missing


@pytest.mark.parametrize(
    ("path", "old", "request_", "new"),
    [
        ("a.py", "PORT = 80\n", "In a.py soll PORT 8080 sein.", "PORT = 8080\n"),
        (
            "a.json",
            '{\n  "host": "a",\n  "port": 80\n}\n',
            "Pon `port` a 8080 en a.json.",
            '{\n  "host": "a",\n  "port": 8080\n}\n',
        ),
        ("a.json", '{\n  "port": 80\n}\n', "Set `size` to 7 in a.json", '{\n  "port": 80,\n  "size": 7\n}\n'),
        ("a.toml", 'host = "a"  # note\n', 'Set host to "b" in a.toml', 'host = "b"  # note\n'),
        ("a.yaml", "a: 1\nb: 2\n", "把 a.yaml 中的 `b` 设为 5。", "a: 1\nb: 5\n"),
        (
            "a.py",
            "def a():\n    return 1\n\n\na()\n",
            "Renomme la fonction a en bb_b dans a.py",
            "def bb_b():\n    return 1\n\n\nbb_b()\n",
        ),
        ("a.md", "# A\n", "Am Ende von a.md den Abschnitt „Bau“ mit „make“ anfügen", "# A\n\n## Bau\n\nmake\n"),
        ("a.md", "Tea is hot.\n", 'Replace "Tea" with "Coffee" in a.md', "Coffee is hot.\n"),
        ("a.py", "PORT = 80\n", "Make a.py better", None),
        ("a.json", '{\n  "version": "1.0.0"\n}\n', "a.json: passe la version à 2.1.0", '{\n  "version": "2.1.0"\n}\n'),
        (".env", "A_B=1\nB=2\n", "muda B no .env para http://a/b", "A_B=1\nB=http://a/b\n"),
        (".gitignore", "a/", "Add *.log and build/ to .gitignore", "a/\n*.log\nbuild/\n"),
        ("a.yaml", "web:\n  p: 80\nnet:\n  q: 80\n", "web: 81 instead of 80", "web:\n  p: 81\nnet:\n  q: 80\n"),
        ("a.yaml", "web:\n  p: 80\nnet:\n  q: 80\n", "81 instead of 80", None),
        ("a.py", "@x\ndef f():\n    pass\n\n\nA = 1\n", "Supprime la fonction f de a.py", "A = 1\n"),
        ("a.py", "def f(a_b):\n    return 1\n", "f: docstring «Do.»", 'def f(a_b):\n    """Do."""\n    return 1\n'),
        ("a.csv", "a,b\n1,2\n", "a.csv に「3,4」の行を最後に追加してください", "a,b\n1,2\n3,4\n"),
        ("a.md", "- a\n", 'Add "- b" at the end of a.md', "- a\n- b\n"),
        ("a.md", "# A\n", "在 a.md 末尾添加一节“### 用”，内容是“运行。”", "# A\n\n### 用\n\n运行。\n"),
    ],
)
def test_fully_stated_change_needs_no_model(path: str, old: str, request_: str, new: str | None) -> None:
    assert edit_place(path, old, request_) == new


def test_asked_rename_takes_both_names() -> None:
    assert asked_rename("Rename the function shout in texts.py to loud, also where it is called.", "def shout(): ...\n") == (
        "shout",
        "loud",
    )
    assert asked_rename("add loud(a) beside shout", "def shout(): ...\n") is None


@pytest.mark.parametrize(
    ("request_", "is_asking"),
    [
        ("What does calc.py do? Answer in one sentence.", True),
        ("¿Qué hace calc.py? Responde en una frase.", True),
        ("calc.py 是做什么的？", True),
        ("ما وظيفة calc.py؟", True),
        ("Explica qué hace calc.py", True),
        ("Erkläre calc.py", True),
        ("Könntest du calc.py reparieren?", False),
        ("Can you add power(a, b) to calc.py?", False),
        ("Crea hola.py", False),
        ("Muda a versão do projeto em a.toml para 2.1.0", False),
        ('Write a.py that prints "why?"', False),
    ],
)
def test_question_is_one_in_any_language(request_: str, *, is_asking: bool) -> None:
    assert wants_answer(request_) is is_asking
    assert not (is_asking and asks_for_files(request_))


@pytest.mark.parametrize(
    "request_", ["Crea hola.py", "hello.py を作成してください", "Добавь функцию в a.py", "أنشئ a.py", "Fais a.py"]
)
def test_order_that_names_a_file_is_work(request_: str) -> None:
    assert asks_for_files(request_) == "change"
    assert not is_question(request_)
    assert not asks_to_know(request_)


@pytest.mark.parametrize(
    ("request_", "folder"),
    [
        ("In the folder src, create a.py", "src"),
        ("Lege im Ordner daten die Datei a.py an", "daten"),
        ("在文件夹 src 中创建 a.py", "src"),
        ("create a.py in src/", "src"),
        ("create a.py in the tools folder", "tools"),
        ("create a.py in this folder", ""),
        ("create a.py", ""),
    ],
)
def test_folder_of_a_request_is_its_place(request_: str, folder: str) -> None:
    assert asked_folder(request_) == folder


def test_parts_are_names_calls_quotes_and_numbers() -> None:
    parts = asked_parts("f_x(2, 3) in a.py gives 5, not 6: „so“; write g(a, b=1) and MAX_SIZE")
    assert parts.calls == ("f_x(2, 3)",)
    assert [(each.name, each.parameters) for each in parts.functions] == [("g", ("a", "b"))]
    assert (parts.names, parts.quoted, parts.numbers) == (("MAX_SIZE",), ("so",), ("5", "6"))


def test_ends_of_code_come_from_the_request() -> None:
    assert begin_of("Write a.py with add(a, b=2)") == "def add(a, b=2):\n"
    assert begin_of("a class Box(size) with a method put(x)") == "class Box:\n    def __init__(self, size):\n"
    assert begin_of("add a method put(x)") == ""
    assert begin_of("add a method size to the class Box in a.py", CALC) == ""
    assert begin_of("add a method `get_x` to Box", CALC) == "class Box:\n    def get_x(self"
    assert whole_definitions("def a():\n    return 1\n\n\ndef b():\n    retur(") == "def a():\n    return 1"
    assert exact_texts("print('All is well')", "druckt „all is well“") == "print('all is well')"
    assert exact_texts("print('all is well.')", "druckt „all is well“.") == "print('all is well')"
