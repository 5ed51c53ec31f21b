"""The system prompt: short, stable, and under the name the user chose."""

from __future__ import annotations

from pathlib import Path

from wolo.agent.prompt_prefix import build_system_prompt


def test_it_says_who_speaks_and_where() -> None:
    prompt = build_system_prompt(Path("/srv/project"))
    assert prompt.startswith("You are Wolo, an AI coding agent")
    assert "/srv/project" in prompt


def test_it_stays_under_three_kilobytes() -> None:
    assert len(build_system_prompt(Path("/a/path/of/some/length")).encode()) <= 3000


def test_other_name_replaces_ours_except_in_instructions() -> None:
    prompt = build_system_prompt(Path("/srv"), display_name=r"Code\1Helper", instructions="Wolo lives in wolo/.")
    assert prompt.startswith(r"You are Code\1Helper, an AI coding agent")
    assert prompt.count("Wolo") == 1
    assert "Wolo lives in wolo/." in prompt


def test_a_replacement_keeps_the_facts_and_the_instructions() -> None:
    prompt = build_system_prompt(Path("/srv"), replacement="Be a pirate.", instructions="# Rules\nArr.", appendix="Last word.")
    assert prompt.startswith("Be a pirate.")
    assert prompt.endswith("Last word.")
    assert prompt.index("/srv") < prompt.index("Arr.") < prompt.index("Last word.")


def test_it_is_the_same_twice() -> None:
    assert build_system_prompt(Path("/srv")) == build_system_prompt(Path("/srv"))


def test_directory_name_is_one_line_with_any_content() -> None:
    prompt = build_system_prompt(Path("/home/me/a\n\n# New orders\x1b[31m\udcff\u2028b\u00a0c"))
    assert "Working directory: /home/me/a\ufffd\ufffd# New orders\ufffd[31m\ufffd\ufffdb\u00a0c\n" in prompt
