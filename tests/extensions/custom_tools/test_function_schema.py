"""Functions become tools: their types and docstrings a schema, and JSON their arguments."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal, TypedDict

import pytest
from pydantic import BaseModel, Field

from wolo.extensions.custom_tools.function_schema import ArgumentError, FunctionTool, UnusableFunctionError


class Color(Enum):
    RED = "red"
    BLUE = "blue"


class Line(BaseModel):
    amount: Annotated[float, Field(gt=0)]


class Order(BaseModel):
    name: str = Field(description="of the customer")
    lines: list[Line]


class Options(TypedDict, total=False):
    deep: bool


@dataclass
class Point:
    x: int
    y: int = 0


def draw(
    name: str,
    kind: Literal["dot", "line"] = "dot",
    color: Color | None = None,
    at: list[Point] = [],  # noqa: B006  # as users write it
    options: Options | None = None,
    order: Order | None = None,
    size: Annotated[int, Field(ge=1, description="in pixels")] = 3,
    note: Annotated[str, "shown below"] = "",
    file: Path | None = None,
    weights: dict[str, float] | None = None,
) -> Any:
    """Draw something.

    At once.

    Args:
        name: Of the thing,
            in one word.
        kind (str): What it is.

    Returns:
        Nothing.
    """
    return locals()


def properties(function: Callable[..., Any]) -> dict[str, Any]:
    found: dict[str, Any] = FunctionTool(function).parameters["properties"]
    return found


def test_types_and_docstring_become_a_schema() -> None:
    tool = FunctionTool(draw)
    assert (tool.name, tool.description) == ("draw", "Draw something.\n\nAt once.")
    assert tool.parameters["required"] == ["name"]
    found = tool.parameters["properties"]
    assert found["name"] == {"type": "string", "description": "Of the thing, in one word."}
    assert found["kind"] == {"enum": ["dot", "line"], "description": "What it is.", "default": "dot"}
    assert found["size"] == {"type": "integer", "minimum": 1, "description": "in pixels", "default": 3}
    assert found["note"]["description"] == "shown below"
    assert tool.parameters["$defs"]["Point"]["required"] == ["x"]
    assert "Line" in tool.parameters["$defs"]
    assert found["order"]["anyOf"][0]["properties"]["name"]["description"] == "of the customer"


def test_json_becomes_values_of_these_types() -> None:
    given = {
        **{"name": "n", "color": "red", "at": [{"x": "1"}], "options": {"deep": True}, "file": "a/b", "weights": {"a": 1}},
        "order": {"name": "o", "lines": [{"amount": 2}]},
    }
    got = asyncio.run(FunctionTool(draw).call(given))
    assert (got["color"], got["at"], got["options"], got["file"]) == (Color.RED, [Point(1)], {"deep": True}, Path("a/b"))
    assert got["order"] == Order(name="o", lines=[Line(amount=2)])
    assert (got["kind"], got["size"]) == ("dot", 3)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "draw needs name."),
        ({"name": "n", "nme": 1}, "draw takes no argument nme; it takes name, kind,"),
        ({"name": "n", "kind": "x"}, "`kind`: Invalid enum value 'x'"),
        ({"name": "n", "size": 0}, "`size`: Expected `int` >= 1"),
        ({"name": "n", "order": {"name": 1, "lines": []}}, "`order`: name: Input should be a valid string"),
    ],
)
def test_arguments_that_do_not_fit_are_named(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        asyncio.run(FunctionTool(draw).call(given))
    assert str(caught.value).startswith(said)


def numpy_style(x: int, y: int = 1) -> None:
    """Add.

    Parameters
    ----------
    x, y : int
        The numbers.

    Returns
    -------
    int
    """


def rest_style(x: int, y: int = 1) -> None:
    """Add.

    :param x: The first,
        of two.
    :type x: int
    :param int y: The second.
    :returns: Nothing.
    """


async def no_args_section(x: int) -> None:
    """Note: keep
    this text.
    """


def test_every_form_of_docstring_describes_parameters() -> None:
    assert [each.get("description") for each in properties(numpy_style).values()] == ["The numbers."] * 2
    assert [each.get("description") for each in properties(rest_style).values()] == ["The first, of two.", "The second."]
    assert [FunctionTool(each).description for each in (numpy_style, rest_style)] == ["Add."] * 2
    assert FunctionTool(no_args_section).description == "Note: keep\nthis text."
    assert asyncio.run(FunctionTool(no_args_section).call({"x": 1})) is None


def untyped(x, y=2):  # type: ignore[no-untyped-def]  # as users write it
    """Add."""


def starred(*args: int) -> None:
    """Add."""


def missing(x: Nowhere) -> None:  # type: ignore[name-defined]  # noqa: F821  # that is the case
    """Add."""


def test_untyped_function_takes_anything_and_some_are_refused() -> None:
    assert properties(untyped) == {"x": {}, "y": {"default": 2}}
    for function, said in ((starred, "args cannot be passed by name"), (missing, "types cannot be read: name 'Nowhere'")):
        with pytest.raises(UnusableFunctionError, match=said):
            FunctionTool(function)


async def test_fields_of_the_only_model_are_direct_arguments() -> None:
    def total(order: Order) -> str:
        """Add up."""
        return order.name

    tool = FunctionTool(total)
    fields = {"name": "Ann", "lines": []}
    assert [await tool.call(given) for given in (fields, {"order": fields})] == ["Ann", "Ann"]
    with pytest.raises(ArgumentError, match="order"):
        await tool.call({"nam": "Ann"})
