"""The reference validator of Agent Skills and wolo agree on what a skill is."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from skills_ref.validator import validate

from tests.fakes.written import skill
from wolo.config.project import read_file
from wolo.extensions.markdown_files import ExtensionFolder
from wolo.extensions.skill_files import find_skills

GOOD = {
    "plain": ("pdf-tools", "Reads PDF files.", ""),
    "longest": ("a" * 64, "x" * 1024, ""),
    "all fields": (
        "a1-2b",
        "Reads.",
        "license: MIT\ncompatibility: needs git\nmetadata:\n  author: me\nallowed-tools: Read Bash\n",
    ),
    "quoted": ("pdf", '"Use it so: first read."', ""),
    "folded": ("pdf", ">\n  Reads\n  PDF files.", ""),
}
FORGIVEN = {
    "capitals": ("Pdf", "Reads.", ""),
    "hyphen at the end": ("pdf-", "Reads.", ""),
    "two hyphens": ("p--df", "Reads.", ""),
    "underscore": ("p_df", "Reads.", ""),
    "name too long": ("a" * 65, "Reads.", ""),
}
"""Names that wolo replaces by that of the folder."""
BAD = {
    "twice": ("pdf", "Reads.", "name: pdf\n"),
    "anchor": ("pdf", "&a Reads.", ""),
    "tag": ("pdf", "!!str Reads.", ""),
}


def accepted(name: str, description: str, more: str) -> tuple[bool, bool]:
    """By the reference, and by wolo."""
    path = skill(Path("skills").absolute(), name, description, more=more)
    skills = find_skills([ExtensionFolder(path.parent.parent, partial(read_file, root=Path.cwd()), Path.cwd())])
    return validate(path.parent) == [], bool(skills.skills)


@pytest.mark.parametrize("case", GOOD)
def test_skill_accepted_by_the_reference_is_a_skill(case: str) -> None:
    assert accepted(*GOOD[case]) == (True, True)


@pytest.mark.parametrize("case", BAD)
def test_skill_refused_by_the_reference_is_none(case: str) -> None:
    assert accepted(*BAD[case]) == (False, False)


@pytest.mark.parametrize("case", FORGIVEN)
def test_unusual_names_of_skills_are_forgiven(case: str) -> None:
    assert accepted(*FORGIVEN[case]) == (False, True)


def test_extra_fields_and_unquoted_colon_are_forgiven() -> None:
    assert accepted("pdf", "Reads.", "argument-hint: [file]\ndisable-model-invocation: true\n") == (False, True)
    assert accepted("docx", "Use it so: first read.", "") == (False, True)
    assert accepted("xlsx", "''", "") == (False, True)
