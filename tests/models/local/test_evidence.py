"""Ends of simple mode: no success where nothing has shown what was asked for."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import text
from tests.models.local.test_simple_mode import Script, said
from wolo.models.local.moves import FileMoves, asked_file_moves, with_references
from wolo.models.local.simple_context import list_names


@pytest.fixture
async def script(tmp_path: Path) -> AsyncIterator[Script]:
    with ProviderServer() as server:
        script = Script(server, tmp_path)
        yield script
        await script.transport.close()


UNSHOWN = "no check shows this"


async def test_program_that_only_runs_is_no_success(script: Script) -> None:
    request = "write backup.py: it packs all folders of this project into one archive named after the weekday, oldest first"
    turn = await script.turn(request, text("```python\nprint('Packed.')"))
    assert turn.ended.exit_code == 1
    assert turn.ended.error is not None
    assert f"backup.py was written, but {UNSHOWN}: “write backup.py: it packs all" in turn.ended.error.message


@pytest.mark.parametrize("request_", ["create a.py, a calculator", "Schreibe a.py, ein Würfelspiel", "创建 a.py 计算器"])
async def test_short_order_needs_no_comparison(script: Script, request_: str) -> None:
    assert (await script.turn(request_, text("```python\nprint(1 + 1)"))).ended.exit_code == 0


async def test_change_of_data_follows_from_its_request(script: Script) -> None:
    Path("conf.yaml").write_text("database:\n  image: postgres:14\nweb:\n  image: nginx:1\n")
    unrelated = text("```yaml\ndatabase:\n  image: postgres:14\nweb:\n  image: nginx:1\n  restart: always")
    turn = await script.turn("make the db in conf.yaml newer pls", said("change"), unrelated)
    assert turn.ended.exit_code == 1
    assert turn.ended.error is not None
    assert "conf.yaml is as it was" in turn.ended.error.message
    assert "restart" not in Path("conf.yaml").read_text()


# Questions and orders


@pytest.mark.parametrize(
    "request_",
    [
        "can you ad a test for add in calc.py? thx",
        "when I run calc.py I get a KeyError. it should print - then",
        "Il link in calc.py non funziona. Lo correggi?",
        "احذف الدالة add من calc.py",
        "写一个 calc.py，输出一共有多少个单词",
    ],
)
async def test_order_is_not_answered_in_words(script: Script, request_: str) -> None:
    Path("calc.py").write_text("def add(a, b):\n    return a + b\n")
    turn = await script.turn(request_, *[text("I would change it.")] * 6)
    assert turn.ended.exit_code != 0 or Path("calc.py").read_text() != "def add(a, b):\n    return a + b\n"


async def test_names_are_counted_in_all_files(script: Script) -> None:
    Path("src/deep/er").mkdir(parents=True)
    Path("src/a.py").write_text("# TODO one\n# TODO two\n")
    Path("src/deep/er/b.py").write_text("# TODO three\n")
    Path("c.py").write_text("# TODO elsewhere\n")
    turn = await script.turn("wie viele TODOs gibt es im Ordner src?")
    assert turn.ended.answer.startswith("3 × TODO:")
    assert script.server.requests == []


async def test_question_for_a_name_quotes_its_definition(script: Script) -> None:
    Path("services").mkdir()
    Path("services/mail.py").write_text("import os\n\n\nclass InvoiceMailer:\n    pass\n")
    Path("app.py").write_text("from services.mail import InvoiceMailer\n")
    turn = await script.turn("in quale file è definita la classe InvoiceMailer?", text("In mail."))
    assert turn.ended.answer.endswith("> services/mail.py:4:class InvoiceMailer:")


# Files


async def test_files_move_by_their_endings(script: Script) -> None:
    for name in ("a.log", "b c.log", "notes.txt"):
        Path(name).write_text(name)
    turn = await script.turn("Move all .log files in here to a folder called logs")
    assert sorted(str(each) for each in Path().rglob("*.*")) == ["logs/a.log", "logs/b c.log", "notes.txt"]
    assert (turn.ended.exit_code, script.server.requests) == (0, [])


async def test_renamed_module_is_followed_by_its_users(script: Script) -> None:
    Path("utlis.py").write_text("def go():\n    return 1\n")
    Path("main.py").write_text("import utlis\nfrom utlis import go\n\nprint(utlis.go(), go())\n")
    Path("notes.md").write_text("See utlis.py.\n")
    turn = await script.turn("renómbra utlis.py a utils.py y arregla los imports")
    assert Path("main.py").read_text() == "import utils\nfrom utils import go\n\nprint(utils.go(), go())\n"
    assert Path("notes.md").read_text() == "See utils.py.\n"
    assert (Path("utils.py").exists(), Path("utlis.py").exists(), turn.ended.exit_code) == (True, False, 0)


async def test_long_text_follows_a_renamed_file(script: Script) -> None:
    Path("utlis.py").write_text("X = 1\n")
    Path("guide.md").write_text("See utlis.py.\n" + "A line.\n" * 1000)
    Path("run.log").write_text("Ran utlis.py.\n" * 3000)
    turn = await script.turn("rename utlis.py to lib/utils.py")
    assert (Path("guide.md").read_text()[:18], Path("lib/utils.py").exists()) == ("See lib/utils.py.\n", True)
    assert (turn.ended.exit_code, script.server.requests) == (0, [])


async def test_failed_move_is_no_success(script: Script) -> None:
    Path("a.txt").write_text("new")
    Path("notes").write_text("old")
    turn = await script.turn("move a.txt to the folder notes")
    assert (turn.ended.exit_code, Path("a.txt").read_text(), Path("notes").read_text()) == (1, "new", "old")


async def test_file_in_the_way_of_a_move_stays(script: Script) -> None:
    Path("logs").mkdir()
    Path("logs/a.log").write_text("old")
    Path("a.log").write_text("new")
    turn = await script.turn("Move all .log files to the folder logs")
    assert (Path("logs/a.log").read_text(), Path("a.log").read_text()) == ("old", "new")
    assert turn.ended.exit_code == 1


@pytest.mark.parametrize(
    ("request_", "left"),
    [
        ("delete the customers with status inactive from data.csv", "name,status\nAnn,active\n"),
        ("احذف عمود status من ملف data.csv", "name\nAnn\nBo\n"),
    ],
)
async def test_rows_and_columns_are_removed_by_name(script: Script, request_: str, left: str) -> None:
    Path("data.csv").write_text("name,status\nAnn,active\nBo,inactive\n")
    await script.turn(request_, said("change"))
    assert Path("data.csv").read_text() == left


async def test_dependency_is_removed_from_its_list(script: Script) -> None:
    Path("pyproject.toml").write_text('[project]\ndependencies = [\n    "click>=8",\n    "requests>=2",\n]\n')
    await script.turn("we don't need it, so requests can go from the dependencies in pyproject.toml", said("change"))
    assert Path("pyproject.toml").read_text() == '[project]\ndependencies = [\n    "click>=8",\n]\n'


async def test_users_of_a_renamed_function_follow(script: Script) -> None:
    Path("shop.py").write_text("def calc():\n    return 1\n")
    Path("invoice.py").write_text("from shop import calc\n\nprint(calc())\n")
    Path("main.py").write_text("import shop\n\nprint(shop.calc())\n")
    Path("own.py").write_text("def calc():\n    return 2\n")
    Path("other.py").write_text("from own import calc\n\nprint(calc())\n")
    await script.turn("rename the function calc in shop.py to total_price", said("change"))
    files = ("shop.py", "invoice.py", "main.py", "own.py", "other.py")
    assert [Path(name).read_text().count("total_price") for name in files] == [1, 2, 1, 0, 0]


async def test_file_failing_after_its_change_is_restored(script: Script) -> None:
    old = "def rows():\n    return [1, 2]\n\n\nprint(rows())\n"
    Path("report.py").write_text(old)
    broken = text("```python\ndef rows():\n    return [1, 2]['a']\n\n\nprint(rows())")
    turn = await script.turn("let report.py print the rows in capitals, please", said("change"), *[broken] * 5)
    assert (Path("report.py").read_text(), turn.ended.exit_code) == (old, 1)
    assert turn.ended.error is not None
    assert "report.py is as it was before." in turn.ended.error.message


async def test_request_is_not_written_into_a_text(script: Script) -> None:
    Path("notes.txt").write_text("click\n")
    echo = text("Füg in notes.txt eine Zeile über Installation, da soll stehen wie es geht")
    turn = await script.turn("Füg in notes.txt bitte eine Zeile über Installation ein, da soll stehen wie es geht", *[echo] * 8)
    assert (Path("notes.txt").read_text(), turn.ended.exit_code) == ("click\n", 1)


async def test_file_is_found_by_its_rarest_word(script: Script) -> None:
    Path("notes").mkdir()
    for name, line in {"may.txt": "Buy seeds.", "june.txt": "Call the Dentist.", "july.txt": "Swim."}.items():
        Path("notes", name).write_text(f"{line}\nThese are my notes.\n")
    turn = await script.turn("which of my notes mentions the dentist?", text("One of them."))
    assert turn.ended.answer.endswith("> notes/june.txt:1:Call the Dentist.")


async def test_lines_of_a_file_are_counted(script: Script) -> None:
    Path("a.log").write_text("GET / 200\nGET /x 404\nGET /y 404\nid 4042\n")
    turn = await script.turn("Wie viele Anfragen in a.log endeten mit 404?")
    assert turn.ended.answer.startswith("2 lines of a.log have 404:")
    Path("a.py").write_text("# TODO one\n# TODO two\n")
    assert (await script.turn("how many TODOs are in a.py?")).ended.answer.startswith("2 lines of a.py have TODO:")
    turn = await script.turn("how many people in a.log are angry?", text("3"))
    assert turn.ended.exit_code == 1


@pytest.mark.parametrize(
    ("request_", "old", "new"),
    [
        ("we move from node 18 to node 22, update ci.yml (both jobs)", "a:\n  node: 18\nb:\n  node: 18\n", "22"),
        (
            "ci.yml に「インストル」という誤字がいくつかあるので、全部「インストール」に直してください",
            "a: インストル 18\nb: インストル 18\n",
            "インストール",
        ),
    ],
)
async def test_all_places_of_a_text_are_changed(script: Script, request_: str, old: str, new: str) -> None:
    Path("ci.yml").write_text(old)
    await script.turn(request_, said("change"))
    assert Path("ci.yml").read_text().count(new) == 2


@pytest.mark.parametrize(
    "request_",
    [
        "don't delete the .log files, only list them",
        "delete the .log file",
        "remove the handling of .log from the code",
        "delete all .log files except a.log",
        "delete the .log files that are older than a week",
        "Lösche nicht die .log Dateien",
        "delete .log files if they are empty",
        "remove comments from all .log files",
        "Entferne die Leerzeilen aus allen .log Dateien",
        "elimina las líneas vacías de los archivos .log",
        "write a script that deletes all .log files",
        "напиши скрипт, который удаляет файлы .log",
        "I deleted all .log files by accident, restore them",
        "delete all .log files, keep the newest",
        "delete all .log files in the folder old",
        "back up all .log files, then delete them",
    ],
)
async def test_files_under_a_condition_are_not_deleted(script: Script, request_: str) -> None:
    for name in ("a.log", "b.log"):
        Path(name).write_text(name)
    await script.turn(request_, *[text("I cannot do that.")] * 4)
    assert sorted(each.name for each in Path().glob("*.log")) == ["a.log", "b.log"]


@pytest.mark.parametrize(
    "request_",
    [
        "move the constants from main.py to settings.py",
        "rename total to result in main.py, see other.py",
        "move main.py to ../other.py",
        "rename main.py to my other.py",
        "move the tests of main.py into the folder src",
        "write a script that moves all .py files to the folder src",
    ],
)
def test_file_stays_where_a_part_is_meant(tmp_path: Path, request_: str) -> None:
    (tmp_path / "main.py").write_text("total = 1\n")
    assert asked_file_moves(request_, list_names(tmp_path)) is None


@pytest.mark.parametrize("request_", ["delete all .log files in this folder", "lösche alle .log Dateien in diesem Ordner"])
def test_subfolders_keep_files_unless_named(tmp_path: Path, request_: str) -> None:
    (tmp_path / "deep").mkdir()
    for name in ("a.log", "deep/b.log"):
        (tmp_path / name).touch()
    moves = asked_file_moves(request_, list_names(tmp_path))
    assert moves is not None
    assert moves.sources == ("a.log",)


def test_modules_of_the_same_name_stay() -> None:
    moves = FileMoves(sources=("utils.py",), target="tools.py")
    others = "from lib.utils import a\nfrom django import utils\n"
    assert with_references(moves, "main.py", others) == others
    assert with_references(moves, "main.py", "import os, utils\nutils.go()\n") == "import os, tools\ntools.go()\n"


async def test_files_go_by_their_endings(script: Script) -> None:
    Path("deep").mkdir()
    for name in ("a.log", "deep/b.tmp", "deep/c.txt", "log.py"):
        Path(name).write_text(name)
    request = "delete all .log and .tmp files in here, also the ones in subfolders. don't touch anything else"
    turn = await script.turn(request)
    assert (sorted(each.name for each in Path().rglob("*.*")), turn.ended.exit_code) == (["c.txt", "log.py"], 0)
