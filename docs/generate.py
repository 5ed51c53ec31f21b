"""Generates the pages under docs/reference, and the table for shell completion, from the code.

A test fails when one of them is stale.
"""

from __future__ import annotations

import ast
import inspect
import json
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import msgspec

DOCS = Path(__file__).parent
REFERENCE = DOCS / "reference"
FOR_SHELLS = Path(__file__).parent.parent / "wolo/cli/completion/subcommands.json"
"""Read for each completion in a shell."""
BEGIN, END = "<!-- The first request, written by docs/generate.py -->", "<!-- The end of the first request -->"
NOTICE = "<!-- Written by docs/generate.py; change the code instead. -->\n\n"


def pages() -> dict[str, str]:
    """The text of each page by its file name."""
    written = {
        "cli.md": _cli(),
        "commands.md": _commands(),
        "tools.md": _tools(),
        "settings.md": _settings(),
        "events.md": _events(),
        "errors.md": _errors(),
        "formats.md": _formats(),
        "files.md": _files(),
        "other-agents.md": _places(),
    }
    written |= {f"../{folder}/index.md": _index(folder, title, {}) for folder, title in SECTIONS.items()}
    written["index.md"] = _index("reference", "Reference", written)
    return {name: NOTICE + text.rstrip() + "\n" for name, text in written.items()} | {
        "../guide/prompt.md": _prompt_page(),
        "wolo.1": _man_page(),
    }


SECTIONS = {"guide": "Guide", "api": "Python API", "formats": "Wire formats", "design": "Design"}
"""Folders of the documentation with their headings; the tabs of the site lead to these pages."""


def _index(folder: str, title: str, written: Mapping[str, str]) -> str:
    """Lists the pages of a folder with their titles. `written` are those that this program makes, by name."""
    pages = {path.name: path.read_text("utf-8") for path in (DOCS / folder).glob("*.md") if path.name != "index.md"}
    pages |= {name: text for name, text in written.items() if "/" not in name}
    titles = {name: re.search(r"^# (.+)", text, re.MULTILINE) for name, text in pages.items()}
    known = sorted((found[1], name) for name, found in titles.items() if found)
    return "\n".join([f"# {title}", "", *(f"- [{each}]({name})" for each, name in known)])


def _files() -> str:
    """Every module with the first sentence of its docstring, a section for each package."""
    package = Path(__file__).parent.parent / "wolo"
    rows = ["# Rooms and files", "", "The rooms and their layers are in [the architecture](../house.md)."]
    for init in sorted(package.rglob("__init__.py"), key=lambda path: path.parent.parts):
        folder = init.parent
        rows += ["", f"## {folder.relative_to(package.parent)}", "", _first_sentence(init), ""]
        rows += [f"- `{path.name}`: {_first_sentence(path)}" for path in sorted(folder.glob("*.py")) if path != init]
    return "\n".join(rows)


_READ: Mapping[str, str] = {
    "instructions": "read, see [instructions](../guide/instructions.md)",
    "rules": "read, see [rules](../guide/instructions.md#rules)",
    "MCP servers": "offered, each after your consent",
    "hooks": "run after your consent",
    "permission rules": "denials and questions [hold](../guide/permissions.md#trusted-projects)",
    "settings": "can only make wolo stricter",
}


def _places() -> str:
    """Every place of every agent, and what becomes of it."""
    from wolo.foreign_places import TABLE

    rows = [
        *(
            "# Files of other agents",
            "",
            "What wolo reads where other programs left it, and what it does not read, with the reason.",
        ),
        "A file of a project is below any folder from its root to the working directory.",
        "Other than instructions and rules, nothing of a project is used before you trust it.",
        "A file that is not read is named once, at the first start in its project; `wolo trust` names it any time.",
    ]
    for agent in dict.fromkeys(row.agent for row in TABLE):
        rows += ["", f"## {agent[0].upper()}{agent[1:]}", "", "| Kind | Where | |", "|---|---|---|"]
        for row in (each for each in TABLE if each.agent == agent):
            where = ", ".join(f"`{'~/' if row.is_users else ''}{path}`" for path in row.paths)
            use = f"not read: {row.why}" if row.why else _READ.get(row.kind, "used where they are")
            rows.append(f"| {row.kind} | {where} | {use} |")
    return "\n".join(rows)


def _first_sentence(path: Path) -> str:
    """The first line of a module's docstring, which every module has."""
    return (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").partition("\n")[0]


def _cli() -> str:
    from wolo.cli.options import SUBCOMMANDS

    rows = ["# Command line", "", "Options may be anywhere on the line; the remaining words are the prompt.", ""]
    rows += ["## Subcommands", ""]
    for name, words in SUBCOMMANDS.items():
        then = ", ".join(f"`{word}`" for word in words) if name != "help" else ""
        rows.append(f"- `wolo {name}`{': ' + then if then else ''}")
    rows += _options()
    rows += ["", "## Options of subcommands"]
    for name, facts in subcommands().items():
        if "options" not in facts:
            continue
        rows += ["", f"### `{' '.join(['wolo', name, *facts['arguments']])}`", "", facts["about"], ""]
        for option in facts["options"]:
            value = f" `{option['metavar']}`" if option["metavar"] else ""
            rows.append(f"- {', '.join(f'`{each}`' for each in option['spellings'])}{value}: {option['help']}".rstrip(": "))
    return "\n".join(rows)


def _options() -> Iterator[str]:
    from wolo.cli.subcommands import option_groups

    for heading, options in option_groups():
        yield from ("", f"## {heading}", "", "| Option | |", "|---|---|")
        for option in options:
            spelled = ", ".join(f"`{spelling}`" for spelling in option.spellings)
            value = f" `{option.metavar}`".replace("|", "\\|") if option.metavar else ""
            yield f"| {spelled}{value} | {option.help} |"


EXIT_STATUS = {
    0: "The task was done.",
    1: "The task failed.",
    2: "An option, a setting or a key is wrong.",
    3: "A session, the disk or the output failed.",
    4: "Something was denied that needed an approval.",
    5: "A budget was reached.",
    75: "The provider is not available; try again later.",
    130: "Interrupted; 129 and 143 after a hang-up and a termination.",
}
"""As in docs/guide/scripts.md."""


def _man_page() -> str:
    """The page for `man wolo`, in the macros of man(7). It has no date, so that equal sources make equal packages."""
    from wolo.cli.subcommands import TABLE, option_groups, option_line

    def roff(text: str) -> str:
        text = text.replace("\\", "\\e").replace("-", "\\-").replace("`", "")
        return "\n".join(f"\\&{line}" if line.startswith((".", "'")) else line for line in text.splitlines())

    def item(term: str, text: str) -> tuple[str, ...]:
        return (".TP", f".B {roff(term)}", roff(text))

    rows = ['.\\" Written by docs/generate.py; change the code instead.', ".TH WOLO 1", ".SH NAME"]
    rows += ["wolo \\- a coding agent for the terminal", ".SH SYNOPSIS"]
    rows += [".B wolo", "[OPTION]... [PROMPT]...", ".br", ".B wolo", "COMMAND [ARGUMENT]...", ".SH DESCRIPTION"]
    rows += ["Without a prompt wolo opens an interactive session in the current directory; with one it runs the task and exits."]
    rows += ["Options may be anywhere on the line; the remaining words are the prompt."]
    rows += [roff("With -p, or where output is no terminal, only the answer is printed and nothing is asked."), ".SH OPTIONS"]
    for heading, options in option_groups():
        rows.append(f".SS {roff(heading)}")
        rows += [row for option in options for row in item(*option_line(option))]
    rows += [".SH COMMANDS", roff("`wolo COMMAND --help` shows the options of a command.")]
    rows += [row for name, command in TABLE.items() for row in item(name, command.help)]
    rows.append(".SH EXIT STATUS")
    rows += [row for code, text in EXIT_STATUS.items() for row in item(str(code), text)]
    rows += [".SH FILES", roff("`wolo config path` lists the files of settings, and `wolo doctor` where sessions are stored.")]
    rows += [".SH ENVIRONMENT", *item("WOLO_HOME", "One directory for all files of wolo.")]
    rows += [*item("WOLO_MODEL", "The model to use, like --model.")]
    return "\n".join(rows) + "\n"


def subcommands() -> dict[str, Any]:
    """The subcommands as Typer knows them, for completion without Typer; of a group only its help."""
    from typer.main import get_command

    from wolo.cli.subcommands import build_app

    return dict(_walk_commands(get_command(build_app()), ()))


def _walk_commands(command: Any, names: tuple[str, ...]) -> Iterator[tuple[str, dict[str, Any]]]:
    about = (command.help or "").strip().partition("\n")[0]
    inner = getattr(command, "commands", None)
    if names:
        facts = {} if inner else {"options": _options_of(command), "arguments": _arguments_of(command)}
        yield " ".join(names), {"about": about, **facts}
    for name in inner or ():
        yield from _walk_commands(inner[name], (*names, name))


def _options_of(command: Any) -> list[dict[str, Any]]:
    shown = [each for each in command.params if each.param_type_name == "option" and not each.hidden]
    return [
        {
            "spellings": [*each.opts, *each.secondary_opts],
            "kind": "flag" if each.is_flag else "many" if each.multiple else "value",
            "metavar": "" if each.is_flag else each.metavar or "",
            "help": each.help or "",
        }
        for each in shown
    ]


def _arguments_of(command: Any) -> list[str]:
    shown = [each for each in command.params if each.param_type_name == "argument" and not getattr(each, "hidden", False)]
    return [each.metavar or each.name.upper() for each in shown]


def _commands() -> str:
    from wolo.commands.command import GROUPS
    from wolo.commands.table import load_commands
    from wolo.frontends.terminal.live.component import TerminalActions
    from wolo.frontends.terminal.repl.terminal_commands import own_commands

    class Nowhere(TerminalActions): ...

    commands = (*load_commands(), *own_commands(Nowhere()))
    rows = ["# Slash commands", "", "What a line that begins with `/` does. `/help NAME` says the same."]
    for group in GROUPS:
        rows += ["", f"## {group}"]
        for command in (each for each in commands if each.group == group):
            also = f" Also {', '.join(f'`/{alias}`' for alias in command.aliases)}." if command.aliases else ""
            beside = " Works while a turn runs." if command.while_working else ""
            first = command.help[0].upper() + command.help[1:]
            more = f" {command.more}" if command.more else ""
            rows += ["", f"### /{command.name}", ""]
            rows += [f"`/{command.name} {command.usage}`", ""] if command.usage else []
            rows.append(f"{first}.{more}{also}{beside}")
        if not any(command.group == group for command in commands):
            rows += ["", "[Commands and skills that you write](../guide/skills.md), and those of a project that you trust."]
    return "\n".join(rows)


def _tools() -> str:
    from wolo.models.provider import EDIT_TOOLS
    from wolo.tools.toolbox import BUILTIN_WITH_COMPLETION, Toolbox

    told = (
        "What a model is offered, word for word: `task_completion` only where calls are text (`--api xml`), of `edit` and "
        "`apply_patch` the one it was trained on (`edit_tool` of a provider or a model). Both are always understood."
    )
    rows = ["# Tools", "", told]
    offered = {spec.name: spec for form in EDIT_TOOLS for spec in Toolbox(BUILTIN_WITH_COMPLETION, edit_tool=form).specs()}
    for spec in (offered[tool.name] for tool in BUILTIN_WITH_COMPLETION if tool.name in offered):
        rows += ["", f"## {spec.name}", "", spec.description, ""]
        required = spec.parameters.get("required", [])
        for name, schema in spec.parameters.get("properties", {}).items():
            about = schema.get("description", "")
            optional = "" if name in required else ", optional"
            rows.append(f"- `{name}` ({_type_of(schema)}{optional}){': ' + about if about else ''}")
    return "\n".join(rows)


def _prompt_page() -> str:
    """The page of the guide with the first request, and its size, between two marks."""
    before, _, rest = (Path(__file__).parent / "guide" / "prompt.md").read_text(encoding="utf-8").partition(BEGIN)
    return f"{before}{BEGIN}\n\n{_first_request()}\n\n{END}{rest.partition(END)[2]}"


def _first_request() -> str:
    """System prompt, tools and prompt as they are sent at the keyboard, of a project without instructions."""
    from wolo.agent.prompt_prefix import build_system_prompt
    from wolo.conversation.local_context import BLOCK, describe_tree
    from wolo.messages.message import Message
    from wolo.messages.parts import TextPart
    from wolo.models.catalog import Catalog
    from wolo.models.format_selection import format_of
    from wolo.models.protocol import ModelQuestion, producer_of, request_for
    from wolo.tools.tool_values import BUILTIN, describe_subagents
    from wolo.tools.toolbox import (
        NEEDS_LANGUAGE_SERVER,
        NEEDS_SEARCH_SERVICE,
        NEEDS_SKILLS,
        NEEDS_SUBAGENTS,
        NEEDS_SYMBOLS,
        Toolbox,
    )
    from wolo.workspace.git_repository import TreeState

    system, here, _ = build_system_prompt(Path("/home/you/project")).partition("\nSystem: ")
    system += f"{here}Linux x86_64"
    files, subjects = ("src/a.py", "tests/test_a.py"), ("fix: close the file", "feat: read tables", "docs: how to start")
    tree = TreeState(ahead=2, changed=files, subjects=subjects)
    facts = (
        "Date: 2026-11-23 (Monday, UTC+01:00)",
        *describe_tree("main", tree, files),
        "On the PATH: python3 uv node npm make docker",
    )
    block = BLOCK.format(text="\n".join(facts))
    prompt = Message(role="user", parts=(TextPart(text="Why does the test fail?"), TextPart(text=block, is_notice=True)))
    tools = Toolbox(more=dict.fromkeys(NEEDS_SUBAGENTS, describe_subagents(BUILTIN))).offer(
        hide=(*NEEDS_LANGUAGE_SERVER, *NEEDS_SYMBOLS, *NEEDS_SEARCH_SERVICE, *NEEDS_SKILLS)
    )
    choice = Catalog({}).find("custom/model", base_url="http://127.0.0.1/v1", api_key="k")
    question = ModelQuestion(messages=(prompt,), system=system, tools=tools.specs())
    body = format_of(choice).encode(request_for(choice, producer_of(choice, choice.format), question)).decode()
    sizes = {tool["function"]["name"]: len(json.dumps(tool, ensure_ascii=False)) for tool in json.loads(body)["tools"]}
    rows = ["| Part | Tokens |", "|---|---|", f"| system prompt | {len(system) // 4:,} |"]
    rows += [f"| tool `{name}` | {size // 4} |" for name, size in sizes.items()]
    rows += [f"| local context | {len(block) // 4} |", f"| the whole request, as JSON | {len(body) // 4:,} |"]
    return "\n".join((*rows, "", "````text", system, "````", "", "````text", f"{prompt.text}{block}", "````"))


def _type_of(schema: dict[str, Any]) -> str:
    if "enum" in schema:
        return " | ".join(json.dumps(value) for value in schema["enum"])
    return str(schema.get("type", "any")) if "anyOf" not in schema else " | ".join(_type_of(each) for each in schema["anyOf"])


def _settings() -> str:
    from wolo.config.schema import Settings

    rows = [
        "# Settings",
        "",
        "Keys of `config.toml`, and of `--set KEY=VALUE`. `wolo config show` prints each with where it comes from.",
        "",
        "| Key | Type | Default | |",
        "|---|---|---|---|",
    ]
    rows += list(_rows_of(Settings, ""))
    return "\n".join(rows)


def _rows_of(kind: type[msgspec.Struct], prefix: str) -> Iterator[str]:
    about = _field_docs(kind)
    for field in msgspec.structs.fields(kind):
        group, name = _group_of(field.type), f"{prefix}{field.name}"
        if group is not None:
            yield from _rows_of(group, f"{name}." if group is field.type else f"{name}.NAME.")
            continue
        default = "" if field.default in (msgspec.NODEFAULT, None) else f"`{json.dumps(field.default, default=list)}`"
        yield f"| `{name}` | {_type_name(field.type)} | {default} | {about.get(field.name, '')} |"


def _group_of(kind: Any) -> type[msgspec.Struct] | None:
    """The settings under a key, or under each NAME of it; None when the key is a setting."""
    within = get_args(kind)[1] if get_origin(kind) is Mapping else kind
    return within if isinstance(within, type) and issubclass(within, msgspec.Struct) else None


WORDS = {str: "text", int: "whole number", float: "number", bool: "true or false", type(None): ""}


def _type_name(kind: Any) -> str:
    """A type in words for the reader."""
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _type_name(parts[0])
    if origin is Literal:
        return ", ".join(f"`{part}`" if part else '`""`' for part in parts)
    if origin in (Union, UnionType):
        return " or ".join(filter(None, map(_type_name, parts)))
    if origin is tuple:
        return f"list of {_type_name(parts[0])}"
    return WORDS.get(kind, "table")


def _field_docs(kind: type) -> dict[str, str]:
    """The one-line docstrings under the fields, with inherited ones."""
    import ast
    import textwrap

    found: dict[str, str] = {}
    for owner in reversed([each for each in kind.__mro__ if each.__module__.startswith("wolo.")]):
        body = ast.parse(textwrap.dedent(inspect.getsource(owner))).body[0]
        assert isinstance(body, ast.ClassDef)
        for field, doc in zip(body.body, body.body[1:], strict=False):
            if isinstance(field, ast.AnnAssign) and isinstance(doc, ast.Expr) and isinstance(doc.value, ast.Constant):
                assert isinstance(field.target, ast.Name)
                found[field.target.id] = " ".join(str(doc.value.value).split())
    return found


def _events() -> str:
    from wolo.agent import events

    assert events.__doc__ is not None
    rows = ["# Events", "", inspect.cleandoc(events.__doc__)]
    for kind in vars(events).values():
        if isinstance(kind, type) and issubclass(kind, events.Event) and kind is not events.Event:
            rows += ["", f"## {kind.__name__}", ""]
            rows += [inspect.cleandoc(kind.__doc__), ""] if kind.__doc__ else []
            about = _field_docs(kind)
            for field in msgspec.structs.fields(kind):
                rows.append(f"- `{field.name}`{': ' + about[field.name] if field.name in about else ''}")
    return "\n".join(rows)


def _errors() -> str:
    from wolo import errors

    rows = ["# Errors", "", "```", inspect.cleandoc(errors.__doc__ or ""), "```", ""]
    rows += ["| Error | kind | exit code |", "|---|---|---|"]
    for kind in vars(errors).values():
        if isinstance(kind, type) and issubclass(kind, errors.WoloError):
            rows.append(f"| `{kind.__name__}` | `{kind.kind}` | {kind.exit_code} |")
    return "\n".join(rows)


def _formats() -> str:
    import runpy

    from wolo.models.format_selection import FORMATS

    probes = runpy.run_path(str(Path(__file__).with_name("capabilities.py")))
    kinds = {name: _dialect_type(name) for name in FORMATS}
    rows = ["# Formats and their flags", "", "What each format carries; a flag's name stands where it takes that flag.", ""]
    rows += [*probes["capability_rows"](FORMATS), "", "## Providers", "", "By the flags of each one's default model.", ""]
    rows += probes["provider_rows"]()
    for name, kind in kinds.items():
        rows += ["", f"## Flags of `{name}`", "", inspect.cleandoc(kind.__doc__ or ""), ""]
        rows += ["| Flag | Type | Default | |", "|---|---|---|---|"]
        about = _field_docs(kind)
        for field in msgspec.structs.fields(kind):
            default = f"`{json.dumps(field.default, default=list)}`"
            rows.append(f"| `{field.name}` | {_type_name(field.type)} | {default} | {about.get(field.name, '')} |")
    return "\n".join(rows)


def _dialect_type(format: str) -> type[msgspec.Struct]:
    from wolo.models.format_selection import dialect_type, format_of
    from wolo.models.provider import Model, ModelChoice, Provider

    return dialect_type(type(format_of(ModelChoice(Provider("", "", "", format=format), Model(id=""), ""))))


def main() -> int:
    REFERENCE.mkdir(exist_ok=True)
    FOR_SHELLS.write_text(json.dumps(subcommands(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    for name, text in pages().items():
        (REFERENCE / name).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
