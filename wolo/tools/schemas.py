"""What the model is told about each tool: description and JSON schema, made from the code and shipped as `schemas.json`.

`python -m wolo.tools.toolbox` writes the file anew; a test fails when it is stale. It is shipped because making a schema
costs more than a start of wolo may take.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from typing import Any

import msgspec

from wolo.tools.tool import UNOFFERED, OwnTool


def describe(tool: OwnTool) -> dict[str, Any]:
    _, components = msgspec.json.schema_components((tool.Args,), ref_template="{name}")
    parameters = _plain(components[tool.Args.__name__], components)
    parameters.pop("description", None)
    parameters.setdefault("properties", {})
    return {"description": " ".join(inspect.cleandoc(type(tool).__doc__ or "").split()), "parameters": parameters}


def _plain(schema: Any, components: Mapping[str, Any]) -> Any:
    """Without references, titles and defaults: what a model needs, and no dialect that a server might refuse."""
    if isinstance(schema, list):
        return [_plain(each, components) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return _plain(components[schema["$ref"]], components)
    # An absent argument and null are the same; the shorter schema says so by leaving it optional.
    choices = [choice for choice in schema.get("anyOf", ()) if choice != {"type": "null"}]
    # A word where an object belongs is understood, not offered.
    choices = [choice for choice in choices if "$ref" in choice] or choices
    if len(choices) == 1:
        return _plain({**choices[0], **{key: value for key, value in schema.items() if key != "anyOf"}}, components)
    plain = {key: value for key, value in schema.items() if key not in ("title", "default", "properties")}
    plain = {key: _plain(value, components) for key, value in plain.items() if value != []}
    if "properties" in schema:
        plain["properties"] = {
            name: _plain(value, components) for name, value in schema["properties"].items() if not value.get(UNOFFERED)
        }
    return plain


def shipped_text(tools: tuple[OwnTool, ...]) -> str:
    return json.dumps({tool.name: describe(tool) for tool in tools}, indent=1, ensure_ascii=False) + "\n"
