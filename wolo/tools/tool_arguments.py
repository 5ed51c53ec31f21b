"""The arguments of tools: JSON schemas for the model, decoding of calls, and suggestions for paths that do not exist.

`python -m wolo.tools.toolbox` writes the schemas to `schemas.json`; a test fails when the file is stale. The file is shipped
because generating schemas is too slow for the start of wolo.
"""

from __future__ import annotations

import inspect
import json
import os
import re
from collections.abc import Iterable, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, get_args

import msgspec
from msgspec import Struct

from wolo.errors import ToolError
from wolo.tools.tool import UNOFFERED, BuiltinTool, ToolServices, argument_fields
from wolo.workspace.root import Resolved

FILE_ALIASES: Mapping[str, str] = dict.fromkeys(
    ("file_path", "filepath", "filename", "file", "absolute_path", "target_file"), "path"
)
FOLDER_ALIASES: Mapping[str, str] = dict.fromkeys(
    ("dir", "directory", "dir_path", "relative_workspace_path", "target_directory"), "path"
)
"""Names that models use for an argument `path`."""
_SMALL_TALK = frozenset(("description", "explanation", "justification", "purpose", "reason", "thought", "thoughts"))
"""Arguments without effect that some models add to every call."""
_WHERE = r"(?s)(.*?)(?: - at `\$\.?(.*)`)?\Z"
_WORDS = {"str": "text", "int": "a whole number", "float": "a number", "bool": "true or false", "array": "a list", "null": "null"}


def decode_arguments(tool: BuiltinTool, arguments: Mapping[str, Any]) -> Struct:
    """Applies aliases and drops arguments without effect. Raises ToolError that tells the model which argument is wrong."""
    known = tool.Args.__struct_fields__
    renamed: dict[str, Any] = {}
    for key, value in arguments.items():
        name = key if key in known else tool.aliases.get(key, key)
        if name not in known:
            if not name or value in (None, "", [], {}) or key in _SMALL_TALK:
                continue
            raise ToolError(f"{tool.name}: there is no argument `{key}`. {_usage(tool)}")
        if value is None:
            continue
        value = _rename_within(value, tool)
        if name in renamed and renamed[name] != value:
            raise ToolError(f"{tool.name}: `{name}` is given twice, with different values.")
        renamed[name] = value
    try:
        return msgspec.convert(renamed, tool.Args, strict=False)
    except msgspec.ValidationError as error:
        if (unwrapped := _unwrap(renamed, tool)) != renamed:
            try:
                return msgspec.convert(unwrapped, tool.Args, strict=False)
            except msgspec.ValidationError:
                pass  # report the first error, which refers to the model's text
        raise ToolError(f"{tool.name}: {_sentence(str(error))} {_usage(tool)}") from error


def unwrap_arguments(tool: BuiltinTool, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Decodes JSON in strings where the tool does not want text."""
    fields = {field.name: field.type for field in argument_fields(tool.Args)}
    wrapped = {
        given: value
        for given, value in arguments.items()
        if str not in ((kind := fields.get(tool.aliases.get(given, given), str)), *get_args(kind))
    }
    return {**arguments, **_unwrap(wrapped, tool)}


def _rename_within(value: Any, tool: BuiltinTool) -> Any:
    """Applies aliases to the items of a list such as `edits`."""
    if not isinstance(value, list):
        return value
    return [
        {tool.aliases.get(key, key): item for key, item in each.items() if item is not None} if isinstance(each, dict) else each
        for each in value
    ]


def _unwrap(arguments: dict[str, Any], tool: BuiltinTool) -> dict[str, Any]:
    """Decodes a list or object that the model wrote as a JSON string, one level deep."""
    unwrapped = dict(arguments)
    for name, value in arguments.items():
        if isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
            try:
                unwrapped[name] = _rename_within(msgspec.json.decode(value), tool)
            except msgspec.DecodeError:
                continue
    return unwrapped


def _usage(tool: BuiltinTool) -> str:
    offered = describe(tool)["parameters"]["properties"]
    fields = (field for field in argument_fields(tool.Args) if field.encode_name in offered)
    named = (field.name if field.required else f"{field.name} (optional)" for field in fields)
    return f"The arguments are: {', '.join(named)}."


def _sentence(complaint: str) -> str:
    match = re.match(_WHERE, complaint)
    message, where = (match[1], match[2]) if match else (complaint, None)
    if missing := re.match(r"Object missing required field `(.*)`", message):
        return f"`{f'{where}.' if where else ''}{missing[1]}` is missing."
    if types := re.match(r"Expected `(.*)`, got `(.*)`", message):
        wanted = " or ".join(_WORDS.get(word, word) for word in types[1].split(" | ") if word != "null")
        return f"`{where or 'the arguments'}` must be {wanted}, not {_WORDS.get(types[2], f'an {types[2]}')}."
    return f"{message}{f' (`{where}`)' if where else ''}."


def describe(tool: BuiltinTool) -> dict[str, Any]:
    _, components = msgspec.json.schema_components((tool.Args,), ref_template="{name}")
    parameters = _plain(components[tool.Args.__name__], components)
    parameters.pop("description", None)
    parameters.setdefault("properties", {})
    return {"description": " ".join(inspect.cleandoc(type(tool).__doc__ or "").split()), "parameters": parameters}


def _plain(schema: Any, components: Mapping[str, Any]) -> Any:
    """Removes references, titles and defaults, which some servers refuse."""
    if isinstance(schema, list):
        return [_plain(each, components) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return _plain(components[schema["$ref"]], components)
    # A missing argument equals null, so the schema is optional without null.
    choices = [choice for choice in schema.get("anyOf", ()) if choice != {"type": "null"}]
    # A string in place of an object is accepted but not offered.
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


def shipped_text(tools: Iterable[BuiltinTool]) -> str:
    return json.dumps({tool.name: describe(tool) for tool in tools}, indent=1, ensure_ascii=False) + "\n"


_MAX_NAMES = 5000


def missing(resolved: Resolved, services: ToolServices) -> ToolError:
    shown = services.workspace.relative(resolved.path)
    near = [services.workspace.relative(path) for path in _nearest(resolved, services)]
    if near:
        return ToolError(f"`{shown}` does not exist. Did you mean {' or '.join(f'`{name}`' for name in near)}?")
    folder = next((parent for parent in resolved.path.parents if parent.is_dir()), resolved.path.parent)
    if folder != resolved.path.parent:
        return ToolError(
            f"`{shown}` does not exist, nor does its folder; the nearest that does is `{services.workspace.relative(folder)}`."
        )
    return ToolError(f"`{shown}` does not exist.")


def folder_names(folder: Path, services: ToolServices) -> list[str]:
    """Returns the first names of a folder, subfolders with a slash; omits unreadable ones."""
    with os.scandir(folder) as entries:
        readable = (entry for entry in islice(entries, _MAX_NAMES) if services.is_readable(folder / entry.name))
        # `entry.is_dir` raises for a link to itself.
        return sorted(f"{entry.name}/" if os.path.isdir(entry.path) else entry.name for entry in readable)  # noqa: PTH112


def _nearest(resolved: Resolved, services: ToolServices) -> list[Path]:
    # The path may be relative to the shell's directory.
    elsewhere = services.shell.cwd / resolved.spelling
    if elsewhere.is_file() and services.workspace.holds(elsewhere.resolve()):
        return [elsewhere]
    folder = resolved.path.parent
    if not services.workspace.holds(folder):
        return []
    try:
        names = [name.rstrip("/") for name in folder_names(folder, services)]
    except OSError:
        return []
    from difflib import get_close_matches  # noqa: PLC0415  # only for a miss

    by_lower = {name.lower(): name for name in names}
    return [folder / by_lower[near] for near in get_close_matches(resolved.path.name.lower(), by_lower, n=3, cutoff=0.6)]
