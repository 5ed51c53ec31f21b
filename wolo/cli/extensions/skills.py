"""`wolo skills`: lists, shows, adds and removes skills."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from wolo.cli.listing import AsJson, Trust, print_json
from wolo.errors import UsageError
from wolo.extensions.skill_files import FILE_NAMES, Skill, Skills, find_skill, skill_text
from wolo.extensions.sources import fetching, skill_install
from wolo.extensions.sources.skill_install import files_of
from wolo.extensions.sources.source import read_source
from wolo.frontends.streams import confirm, print_line, print_message, print_messages
from wolo.messages.terminal_text import clean_line, escape_hidden, escaped_line, quantity
from wolo.places import Notices, find_home, find_places
from wolo.workspace.files.unfinished import unfinished_folder
from wolo.workspace.root import find_root, find_site

app = typer.Typer(rich_markup_mode=None)

Name = Annotated[str, typer.Argument(metavar="NAME")]
Project = Annotated[bool, typer.Option("--project", help="In .agents/skills of this project instead of your own skills.")]
_MOST_FILES = 40
DENIED = 4
"""Exit status where an approval was needed that nobody could give."""


@app.command("list")
def show_all(trust: Trust = False, as_json: AsJson = False) -> None:
    """List the skills of this directory."""
    skills = _skills(trust)
    print_messages(skills.notices)
    if as_json:
        print_json([_row(each) for each in skills.skills])
        return
    if not skills.skills:
        print_message("There are no skills.", hint="wolo skills add SOURCE")
    for each in skills.skills:
        limits = ["" if each.for_model else "hidden from the model", "" if each.for_person else "not a command"]
        told = f"  [{', '.join(filter(None, limits))}]" if any(limits) else ""
        print_line(f"{each.name}  ({_whose(each)}: {clean_line(str(each.path))}){told}")
        print_line(f"  {each.description}")


@app.command("show")
def show_one(name: Name, trust: Trust = False, as_json: AsJson = False) -> None:
    """Show a skill: its settings, files and text."""
    skill = _find(name, _skills(trust))
    if as_json:
        print_json(
            {
                **_row(skill),
                "files": [{"path": str(each.path), "size": each.size, "script": each.is_script} for each in files_of(skill)],
                "text": skill_text(skill),
            }
        )
        return
    _describe(skill)
    print_line("")
    print_line(escape_hidden(skill_text(skill)))


@app.command("add")
def add(
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="Folder, OWNER/REPO, git URL or archive; #REF:FOLDER.")],
    skill: Annotated[list[str] | None, typer.Option("--skill", metavar="NAME", help="Only this skill of the source.")] = None,
    project: Project = False,
    force: Annotated[bool, typer.Option("--force", help="Replace skills of the same name.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Show the skills of a source, and add them on a yes."""
    origin = read_source(source, Path.cwd())
    target = _target(project)
    with unfinished_folder() as scratch:
        fetched = fetching.fetch(origin, scratch)
        notices = Notices()
        offered = skill_install.find_in(fetched.folder, origin.name, notices)
        print_messages(notices)
        names = skill or []
        if not offered:
            raise UsageError(
                f"There is no skill in {source}: no folder with a SKILL.md.", hint="Name a folder: SOURCE#REF:FOLDER"
            )
        known = {each.name: each for each in offered}
        if unknown := [name for name in names if name not in known]:
            raise UsageError(f"{source} has no skill {unknown[0]}.", hint=f"It has: {', '.join(known)}.")
        chosen = [known[name] for name in dict.fromkeys(names)] if names else list(offered)
        print_line(f"From {origin} ({fetched.pin[:19]}):")
        for each in chosen:
            _describe(each)
        skill_install.check_target(chosen, target, overwrite=force)
        if not yes and not sys.stdin.isatty():
            print_message("Nothing was added: it needs your consent.", hint="Add --yes.")
            raise typer.Exit(DENIED)
        if not yes and not confirm(f"Add {'it' if len(chosen) == 1 else f'these {len(chosen)}'} to {target}?"):
            print_line("Nothing was added.")
            return
        for each in chosen:
            path = skill_install.install(each, target, overwrite=force)
            print_line(f"Added {each.name}: {path}")
    if project:
        print_message("wolo reads it once this folder is trusted.")


@app.command("remove")
def remove(name: Name, project: Project = False) -> None:
    """Remove one of your skills, or with --project one of this project."""
    targets = [_target(project)] if project else [find_places().config / "skills", find_home() / ".agents/skills"]
    for target in targets:
        if "/" not in name and name not in ("", ".", "..") and any((target / name / each).is_file() for each in FILE_NAMES):
            skill_install.uninstall(target / name)
            print_line(f"Removed {target / name}.")
            return
    there = next((each for each in _skills(trust=False).skills if each.name == name), None)
    if there is None:
        raise UsageError(f"There is no skill {name} in {' or '.join(map(str, targets))}.", hint="wolo skills list --trust")
    if there.shelf.plugin is not None:
        raise UsageError(f"{name} belongs to a plugin.", hint=f"wolo plugin disable {there.shelf.namespace}")
    raise UsageError(f"{name} is in {there.folder}, which is not wolo's.", hint="Remove that folder yourself.")


def _skills(trust: bool) -> Skills:
    from wolo.config import layers
    from wolo.conversation.resources.user_files import UserFiles

    site = find_site()
    files = UserFiles(layers.load(site, {"trust": str(find_root())} if trust else {}), site)
    if files.untrusted:
        print_message(f"Not read, because this folder is not trusted: {files.untrusted}.", hint="--trust")
    return files.skills()


def _find(name: str, skills: Skills) -> Skill:
    if skill := find_skill(skills.skills, name):
        return skill
    raise UsageError(f"There is no skill {name}.", hint="`wolo skills list` lists them; --trust includes the project's.")


def _target(project: bool) -> Path:
    return find_root() / ".agents/skills" if project else find_places().config / "skills"


def _describe(skill: Skill) -> None:
    files = files_of(skill)
    print_line(f"{skill.name}: {skill.description}")
    if skill.tools:
        print_line(f"  names the tools {escaped_line(', '.join(skill.tools))}; this grants no permission")
    for each in files[:_MOST_FILES]:
        print_line(f"  {escaped_line(str(each.path))}  {each.size:,} bytes{'  (script)' if each.is_script else ''}")
    if len(files) > _MOST_FILES:
        print_line(f"  and {len(files) - _MOST_FILES:,} more files")
    scripts = sum(each.is_script for each in files)
    print_line(f"  {quantity(len(files), 'file')}, {quantity(scripts, 'script')}, {sum(each.size for each in files):,} bytes")


def _row(skill: Skill) -> dict[str, Any]:
    return {
        "name": skill.name,
        "description": skill.description,
        "path": str(skill.path),
        "source": _whose(skill),
        "for_model": skill.for_model,
        "for_user": skill.for_person,
        "allowed_tools": list(skill.tools),
    }


def _whose(skill: Skill) -> str:
    if skill.shelf.plugin is not None:
        return f"plugin {skill.shelf.namespace}"
    return "yours" if skill.shelf.project is None else "project"
