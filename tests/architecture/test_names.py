"""Names and docstrings say what a thing is: words that had to be decoded do not come back."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parents[1]
PACKAGE = TESTS.parent / "wolo"
GIVEN_UP = set(
    """
    adoption alarm anywhere around aside asking attention bare bash_line bell beneath beside brake build by_folder by_hand card
    catching_up chain change characters chat_reading checkup child chips choosing clip coming complete composer_keys confined
    confirming copying course cut denied difference dropped elsewhere enclosing errand examining exporting facts facts_line
    faults file_losses filelocks filling finish folded following foot found gathering git_losses given glimpse going_back halves
    hands hiding hook_answers hook_consent hook_digest hooking imported inbox incoming inserting irreversible janitor joints
    jsonl_reading judging keeping kept_keys key_trial keyed known ladder last_breath last_word late_tools later lead leave
    led_to likeness line listed live_values log_in look look_up losses main_part making_room meanwhile misses missing mistakes
    model_facts named_files naming neighbours nested next_request observe offered offered_tools offers opencode_newer opening
    outlet outside own_commands own_settings own_word page page_style pages painting paper passages patching peek pick presence
    printed private proposal prose protected reaching readable reading_back recalled recognise recorded recorded_tool rehearsal
    relay removing restoring restraints rewinding round rulebook safe said same_beginning saved saving scratch secrecy
    secret_text sending settling shades shapes shared_form shelves spellings spoken_text spool stage standing start stored
    succession suggest surroundings tape task_hooks telling text then_and_now thinking_shown tidying tightening todo_shown
    together told traces typed_line under_way undoing unseen use verbatim verifying waiting waits walls watching weighing when
    which_session whole_answer whose wire wordings write_ahead write_claude_code write_codex write_kimi write_opencode write_pi
    writing written written_code written_rules
    """.split()  # noqa: SIM905  # a list of so many words is easier to read as text
)
SAY_NOTHING = {"base", "common", "handler", "handlers", "helpers", "manager", "misc", "types", "util", "utils"}
MOST_SIBLINGS = 20
"""Files in a folder; slash commands are a file each."""
MOST_SHARED = 30
"""Basenames that several modules have, as the steps of each format do (`encode`, `decode`)."""
MOST_RELATIVE = 0.05
"""Share of docstrings that may begin with a relative word."""
RELATIVE = {"What", "Whether", "Of", "Those", "Where"}
MOST_TEST_WORDS = 8
"""Words in the name of a test, which says subject, condition and result."""
TEST = re.compile(r"^ *(?:async )?def test_(?:c\d_(?:\d\d_)?)?(\w+)", re.MULTILINE)
"""Tests of the seeds begin with the number of a contract."""
SHARED_CLASSES = {"Denied", "TextDelta", "ThinkingDelta", "ToolResult"}
"""Names of the Python API, or of JSON, that also an inner class has."""


def test_no_module_has_an_abandoned_name() -> None:
    assert {path.stem for path in PACKAGE.rglob("*.py")} & (GIVEN_UP | SAY_NOTHING) == set()


def test_folders_stay_small() -> None:
    sizes = {
        folder: len(list(folder.glob("*.py"))) for folder in PACKAGE.rglob("*") if folder.is_dir() and folder.name != "commands"
    }
    assert {str(folder.relative_to(PACKAGE)): size for folder, size in sizes.items() if size > MOST_SIBLINGS} == {}


def test_few_modules_share_their_name() -> None:
    names = Counter(path.stem for path in PACKAGE.rglob("*.py") if path.stem != "__init__")
    shared = {name: count for name, count in names.items() if count > 1}
    assert len(shared) <= MOST_SHARED, shared


def test_a_class_name_has_one_meaning() -> None:
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in PACKAGE.rglob("*.py")]
    names = Counter(node.name for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    assert {name for name, count in names.items() if count > 1} == SHARED_CLASSES


def test_docstrings_say_what_a_thing_is() -> None:
    """A docstring that begins with a relative word names no subject: "What is left" of what?"""
    found = [text for path in PACKAGE.rglob("*.py") for text in docstrings(path)]
    relative = [text for text in found if text.split(maxsplit=1)[0].rstrip(",;:.") in RELATIVE]
    assert len(relative) <= MOST_RELATIVE * len(found), "\n".join(relative)


def test_names_of_tests_are_short() -> None:
    """A name that begins with a relative word or a question names no subject: "what fits" of what?"""
    names = [name for path in TESTS.rglob("test_*.py") for name in TEST.findall(path.read_text(encoding="utf-8"))]
    assert len(names) > 4_000
    relative = [name for name in names if name.split("_")[0] in {"what", "who", "where", "how"}]
    assert relative + [name for name in names if len(name.split("_")) > MOST_TEST_WORDS] == []


def docstrings(path: Path) -> Iterator[str]:
    """Yields the first lines of all docstrings, those of fields and constants included."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            for statement in node.body:
                match statement:
                    case ast.Expr(value=ast.Constant(value=str(text))) if text.strip():
                        yield text.strip().splitlines()[0]
