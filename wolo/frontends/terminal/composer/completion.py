"""Completions: commands and their arguments after `/`, files after `@`."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from wolo.commands.arguments import last_word, quote_argument
from wolo.commands.command import Command, CommandContext, by_name
from wolo.errors import WoloError
from wolo.frontends.file_names import MOST_OFFERED, FileNames
from wolo.messages.terminal_text import clean_line

MENTION = re.compile(r'(?<![\w@])@(?:"([^"]*)|([^\s"@:]*))$')
RESOURCE = re.compile(r"(?<![\w@])@([A-Za-z0-9_.-]{1,64}):([^\s\"@]*)$")
"""A resource of an MCP server."""


class Suggestions(Completer):
    """Runs in a thread (`ThreadedCompleter`): no key waits for it."""

    def __init__(self, context: Callable[[], CommandContext]) -> None:
        self._context = context
        self._files = FileNames()

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        text = document.text_before_cursor
        if text.startswith("/") and "\n" not in text:
            typed = text[1:]
            context = self._context()
            name, blank, rest = typed.partition(" ")
            if not blank:
                for command in context.commands:
                    for spelling in (command.name, *command.aliases):
                        if spelling.startswith(name):
                            yield Completion(spelling, -len(name), display=f"/{spelling}", display_meta=command.help)
                return
            known = by_name(name, context.commands)
            if known is not None and known.complete is not None:
                typed = rest.rpartition(" ")[2]
                for argument, help in known.complete(context, rest):
                    yield Completion(
                        quote_argument(argument), -len(typed), display=clean_line(argument), display_meta=clean_line(help)
                    )
                return
            repeats = known is not None and known.repeats
            typed, length = last_word(rest) if repeats else (rest, len(rest))
            for argument, help in _arguments(context, known):
                if argument.lower().startswith(typed.lower()):
                    written = quote_argument(argument) if repeats else argument
                    yield Completion(written, -length, display=clean_line(argument), display_meta=clean_line(help))
        elif found := RESOURCE.search(text):
            yield from self._resources(found[1], found[2])
        elif found := MENTION.search(text):
            typed = found[1] if found[1] is not None else found[2]
            length = len(found[0])
            cwd = self._context().conversation.info.cwd
            names = outside(cwd, typed) if typed.startswith(("/", "~", "..")) else self._files.index(cwd).best(typed)
            for agent in self._context().conversation.mentionable_agents:
                if agent.casefold().startswith(typed.casefold()):
                    yield Completion(f"@{agent}", -length, display=clean_line(agent), display_meta="agent")
            for name in names[:MOST_OFFERED]:
                yield Completion(mention(name), -length, display=clean_line(name))
            for server in self._context().conversation.servers.resources:
                if typed and server.startswith(typed):
                    yield Completion(f"@{server}:", -length, display=f"{server}:", display_meta="resources of an MCP server")

    def _resources(self, server: str, typed: str) -> Iterator[Completion]:
        servers = self._context().conversation.servers
        resources = servers.resources.get(server, ())
        matches = [
            (each.uri, each.name) for each in resources if not each.is_template and typed.casefold() in each.uri.casefold()
        ]
        for template in (each.uri for each in resources if each.is_template):
            if typed.startswith(template.partition("{")[0]):
                from wolo.mcp.uri_templates import complete_template  # noqa: PLC0415  # few servers have templates

                matches += [(uri, template) for uri in complete_template(servers, server, template, typed)]
        for uri, name in matches[:MOST_OFFERED]:
            yield Completion(uri, -len(typed), display=clean_line(uri), display_meta=clean_line(name))


def offers_completions(document: Document) -> bool:
    text = document.text_before_cursor
    return (text.startswith("/") and "\n" not in text) or (MENTION.search(text) or RESOURCE.search(text)) is not None


def mention(name: str) -> str:
    """The name after `@`, quoted if needed; the quotes of a folder stay open."""
    if not re.search(r'[\s"@:]', name):
        return f"@{name}"
    quoted = name.replace("\\", "\\\\").replace('"', '\\"')
    return f'@"{quoted}' if name.endswith("/") else f'@"{quoted}"'


def outside(cwd: Path, typed: str) -> list[str]:
    """Matching entries of a folder outside the directory."""
    folder, slash, begun = typed.rpartition("/")
    try:
        with os.scandir(cwd / os.path.expanduser(f"{folder}{slash}")) as entries:  # noqa: PTH111  # a path as it is typed
            names = [
                f"{folder}{slash}{entry.name}{'/' if entry.is_dir() else ''}" for entry in entries if entry.name.startswith(begun)
            ]
    except (OSError, ValueError):
        return []
    return sorted(names)


def _arguments(context: CommandContext, command: Command | None) -> Sequence[tuple[str, str]]:
    if command is None or command.arguments is None:
        return ()
    try:
        return command.arguments(context)
    except (WoloError, OSError):
        return ()  # the command itself reports it
