"""The share of public forms that wolo reads, or names where it cannot; below 99 % of a kind is red."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

from tests.extensions.public_setups import AGENTS, COMMANDS, HOOKS, RULES, SERVERS, SKILLS
from wolo.config import project
from wolo.config.foreign_servers import read_project_servers
from wolo.errors import WoloError
from wolo.extensions.agent_files import find_agents
from wolo.extensions.command_files import fill, find_commands
from wolo.extensions.hooks.foreign_hook_files import contract_of, read_foreign_hooks
from wolo.extensions.instructions.instruction_files import read_instructions
from wolo.extensions.instructions.nested_files import NestedFiles
from wolo.extensions.markdown_files import ExtensionFolder
from wolo.extensions.skill_files import find_skills
from wolo.places import Notices

LEAST = 0.99


def put(place: str, content: Any) -> Path:
    path = Path(place).absolute()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def clear() -> None:
    for each in Path().iterdir():
        if each.is_dir():
            shutil.rmtree(each)
        else:
            each.unlink()


def share(kind: str, forms: Iterable[tuple[Any, ...]], is_right: Callable[..., bool]) -> None:
    """Each form is alone in the project."""
    wrong, count = [], 0
    for form in forms:
        count += 1
        clear()
        put(form[0], form[1])
        try:
            if not is_right(*form):
                wrong.append(form[:2])
        except WoloError as error:
            wrong.append((*form[:2], error.message))
    clear()
    print(f"{kind}: {count - len(wrong)} of {count} ({1 - len(wrong) / count:.1%})")
    assert 1 - len(wrong) / count >= LEAST, wrong


def shelf(kind: project.Kind, place: str) -> ExtensionFolder:
    root = Path.cwd()
    folder = next(each for each in kind.places if place == each or place.startswith(f"{each}/"))
    return ExtensionFolder(root / folder, partial(project.read_file, root=root), root)


def test_instructions_and_rules() -> None:
    def is_right(place: str, text: str) -> bool:
        root, notices = Path.cwd(), Notices()
        first = read_instructions(root, root, root / "no-config")
        later = [
            each.text
            for name in ("src/a.py", "src/app/a.py", "workspace")
            for each in NestedFiles((root,), root, lambda _: True, 9_999).for_files([root / name], notices)
        ]
        body = text.rpartition("---\n")[2].strip() if text.startswith("---") else text.strip("\ufeff\n\r ").replace("\r\n", "\n")
        in_sight = body in first.text or body in later or place in first.text or any(place in each for each in first.remarks)
        return in_sight and not [each for each in (*first.notices, *notices) if "@README" not in each and "README.md" not in each]

    share("instructions and rules", RULES, is_right)


def test_servers() -> None:
    def is_right(place: str, content: Any, outcome: str) -> bool:
        notices = Notices()
        servers = dict(read_project_servers(Path(place).read_bytes(), place, notices))
        complaints = [each for each in notices if ": ignored: " not in each]
        return (len(servers), complaints) == (1, []) if outcome == "read" else bool(complaints)

    share("MCP servers", SERVERS, is_right)


def test_hooks() -> None:
    def is_right(place: str, content: Any, outcome: str) -> bool:
        read = read_foreign_hooks(Path(place).read_bytes(), Path(place), contract_of(place))
        return bool(read.hooks) and not read.problems if outcome == "read" else bool(read.problems)

    share("hooks", HOOKS, is_right)


def test_commands() -> None:
    def is_right(place: str, text: str) -> bool:
        (command,) = find_commands([shelf(project.COMMANDS, place)]).commands
        return command.is_usable and any("Do it" in str(piece) for piece in fill(command, ""))

    share("commands", COMMANDS, is_right)


def test_agents() -> None:
    def is_right(place: str, text: str) -> bool:
        found = find_agents([shelf(project.AGENTS, place)])
        return any(each.prompt.startswith("Do it") for each in found.profiles)

    share("agents", AGENTS, is_right)


def test_skills() -> None:
    def is_right(place: str, text: str) -> bool:
        found = find_skills([shelf(project.SKILLS, place)])
        return [each.name for each in found.skills] == [Path(place).parent.name] and not found.notices

    share("skills", SKILLS, is_right)
