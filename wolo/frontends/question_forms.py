"""Questions of the model as a form of the Model Context Protocol's elicitation, which other protocols use too."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from wolo.guard.modes import MODES
from wolo.messages.terminal_text import clean
from wolo.tools.tool_values import Question, Reply

_OTHER = "_other"
"""End of the name of the field for an answer in the user's own words."""


def limit_modes(questions: Sequence[Question], modes: Collection[str]) -> tuple[Question, ...]:
    """A plan starts in none but these modes."""
    return tuple(
        replace(each, options=tuple(option for option in each.options if option.label not in MODES or option.label in modes))
        if each.is_plan
        else each
        for each in questions
    )


def form_text(questions: Sequence[Question]) -> str:
    return "\n".join(clean(question.text) for question in questions)


def form_properties(questions: Sequence[Question]) -> dict[str, Any]:
    """A field for each question; where there are options, another one for an answer in the user's own words."""
    properties: dict[str, Any] = {}
    for number, question in enumerate(questions, 1):
        name, title = f"answer_{number}", clean(question.header or f"Question {number}")
        if not question.options:
            properties[name] = {"type": "string", "title": title, "description": clean(question.text)}
            continue
        titled = [
            {"const": option.label, "title": " — ".join(filter(None, (clean(option.label), clean(option.description))))}
            for option in question.options
        ]
        about = {"title": title, "description": "Start with this plan?" if question.is_plan else clean(question.text)}
        if question.several:
            properties[name] = {"type": "array", **about, "items": {"anyOf": titled}}
        else:
            properties[name] = {"type": "string", **about, "oneOf": titled}
        other = "what to change, or the edited plan" if question.is_plan else "another answer"
        properties[name + _OTHER] = {"type": "string", "title": f"{title}: {other}"}
    return properties


def replies_of(questions: Sequence[Question], content: Mapping[str, Any] | None) -> list[Reply] | None:
    """None: the user declined, or filled in nothing."""
    if not content:
        return None
    replies = []
    for number, question in enumerate(questions, 1):
        given, other = content.get(f"answer_{number}"), content.get(f"answer_{number}{_OTHER}")
        values = given if isinstance(given, list) else [] if given in (None, "") else [given]
        text = other if isinstance(other, str) else ""
        if question.is_plan:
            replies.append(Reply(tuple(option.label for option in question.options if option.label in values), text))
        elif question.options:
            replies.append(Reply(chosen=tuple(map(str, values)), text=text))
        else:
            replies.append(Reply(text=" ".join(map(str, values))))
    return replies
