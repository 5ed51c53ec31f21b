"""Menus of sessions, models, files and earlier prompts, with previews."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from wolo.commands.command import CommandContext
from wolo.conversation.conversation import Conversation
from wolo.conversation.history.turn_undo import Undoing
from wolo.diagnostics import model_info
from wolo.errors import SessionError, ToolError, WoloError
from wolo.frontends.file_names import FileNames
from wolo.frontends.terminal.dialogs.picker import ABOUT_SERVER, EMBEDDED, SERVER, SETUPS, Item, Menu, pick
from wolo.frontends.terminal.display.history_preview import last_exchange
from wolo.frontends.terminal.display.terminal import Terminal
from wolo.frontends.terminal.live.temporary_region import temporary_region
from wolo.messages.terminal_text import quantity
from wolo.models import address, model_lists
from wolo.models.http.server_lookup import find_servers
from wolo.places import find_places
from wolo.sessions import listing, replay_entries
from wolo.sessions.listing import SessionInfo, age
from wolo.sessions.session_text import OutlineItem, outline
from wolo.sessions.store import Store
from wolo.workspace.files.safe_open import open_regular, read_all
from wolo.workspace.root import find_site

ANY_NAME = "/…"
"""End of the label of a provider that serves any model: not an entry."""
BEGINNING_BYTES = 4_000
"""Read of a file for its preview."""
GLIMPSE_BYTES = 400_000
"""Read from the end of a session for its preview."""


def sessions_menu(cwd: Path, here: str = "") -> Menu[str]:
    """Session ids, those of this directory first; without `here`, the open session."""
    with Store.open(find_places().data) as store:
        everything = [info for info in store.list() if info.turns and info.id != here]
    directory = listing.directory(cwd)
    near = [info for info in everything if info.cwd == directory]
    far = [info for info in everything if info.cwd != directory]

    def items(also_far: bool) -> Sequence[Item[str]]:
        return [_session(info) for info in near] + [_session(info, info.cwd) for info in (far if also_far or not near else ())]

    return Menu("Which session?", items, "all directories" if near and far else "", _last_exchange_of)


async def pick_session(terminal: Terminal) -> str:
    """A session to resume before a conversation is open; empty when the user cancels.

    Raises SessionError when there is none, Dismissed for Ctrl-C.
    """
    menu = sessions_menu(Path.cwd())
    if not menu.listed(True):
        raise SessionError("There is no session to resume yet.", hint='Start one: wolo "your task"')
    async with temporary_region(terminal):
        picked = await pick(menu, terminal)
    return picked.value if picked else ""


def models_menu(conversation: Conversation, *, ahead: bool = False) -> Menu[str]:
    """Usable models, the current one first; the switch adds those without a key. Any other name may be typed.

    Blocks: asks the model servers on this machine, or the one of this run, for their models. `ahead`: the choice is for
    later, so nothing can be set up.
    """
    from wolo.models.local.embedded import has_engine  # noqa: PLC0415  # loads what speaks with providers

    config = conversation.permissions.config
    known = [each for each in model_info.models_here(config, asks=True) if not each.label.endswith(ANY_NAME)]
    if config.endpoint.base_url:
        at_hand = [
            _served_item(f"{conversation.choice.provider.name}/{name}")
            for name in model_lists.list_ids(find_places().cache, conversation.choice)
        ]
        here = address.origin(config.endpoint.base_url)
        known = [each for each in known if each.provider.base_url and address.origin(each.provider.base_url) == here]
    else:
        at_hand = [_served_item(name) for server in find_servers(os.environ) for name in server.models]
    current = Item(conversation.info.model, f"{conversation.info.model}", "current")
    others = [] if ahead else [Item(name, SETUPS[name]) for name in (() if has_engine() else (EMBEDDED,)) + (SERVER,)]

    def items(also_without: bool) -> Sequence[Item[str]]:
        shown = [each for each in known if each.has_key or also_without]
        by_name = {item.value: item for item in at_hand}
        for each in shown:
            known_facts = " ".join(word for word in model_info.in_brief(each).split() if word != "?")
            by_name[each.label] = Item(each.label, each.label, known_facts)
        facts = by_name.pop(current.value, current).facts
        marked = Item(current.value, current.label, " · ".join(filter(None, dict.fromkeys((current.facts, facts)))))
        return [marked, *by_name.values(), *others]

    def preview(label: str, is_on: bool) -> Sequence[str]:
        if label in SETUPS:
            return [ABOUT_SERVER if label == SERVER else "The engine and a small model: no key, no account."]
        try:
            return list(model_info.page(model_info.of_model(label, find_site(), config)))
        except WoloError as error:
            return [error.message]

    return Menu("Which model?", items, "those without a key, too" if known else "", preview, written=str)


def _served_item(label: str) -> Item[str]:
    return Item(label, label, "on this server")


def rewind_menu(context: CommandContext) -> Menu[OutlineItem]:
    """Prompts of this branch, newest first; the switch restores files, too."""
    conversation = context.conversation
    prompts = [place for place in outline(*conversation.session.stored.tree()) if place.is_on_way and place.kind == "prompt"]
    newest_first = prompts[::-1]

    def items(with_files: bool) -> Sequence[Item[OutlineItem]]:
        return [Item(place, f"{place.number}  {' '.join(place.text.split())}", age(place.at)) for place in newest_first]

    def preview(place: OutlineItem, with_files: bool) -> Sequence[str]:
        try:
            report = Undoing.of(conversation).undo(newest_first.index(place) + 1).report
        except WoloError as error:
            return [error.message]
        changed = [f"restored  {path}" for path in report.restored] + [f"removed   {path}" for path in report.removed]
        changed += [f"conflict  {each.path}: {each.reason}" for each in report.conflicts]
        if not changed:
            return ["no file has changed since"]
        stay = (
            "1 file stays as it is; Tab restores it"
            if len(changed) == 1
            else f"{len(changed)} files stay as they are; Tab restores them"
        )
        return changed if with_files else [f"{stay}:", *changed]

    return Menu("Back to before which prompt?", items, "files too", preview)


def files_menu(cwd: Path) -> Menu[str]:
    """Files and folders as git lists them, relative to `cwd`."""
    names = FileNames().below(cwd)

    def items(is_on: bool) -> Sequence[Item[str]]:
        return [Item(name, name) for name in sorted(names, key=lambda name: (name.count("/"), name))]

    return Menu("Which file?", items, preview=lambda name, is_on: _beginning(cwd / name))


def _beginning(path: Path) -> Sequence[str]:
    """The first lines. Opens regular files only."""
    try:
        if path.is_dir():
            return [quantity(len(list(path.iterdir())), "entry", "entries")]
        handle = open_regular(Path(os.path.realpath(path)))
        try:
            data = read_all(handle, BEGINNING_BYTES)
        finally:
            os.close(handle)
    except (OSError, ToolError):
        return ["cannot be read"]
    return ["not a text file"] if b"\0" in data else data.decode("utf-8", "replace").splitlines()


def _session(info: SessionInfo, where: str = "") -> Item[str]:
    turns = quantity(info.turns, "turn")
    facts = [age(info.updated), turns, "open elsewhere" if info.live else "", where]
    return Item(info.id, info.name or info.title, " · ".join(filter(None, facts)))


def _last_exchange_of(session_id: str, is_on: bool) -> Sequence[str]:
    try:
        with Store.open(find_places().data) as store:
            loaded = store.load(session_id, most_bytes=GLIMPSE_BYTES)
    except WoloError as error:
        return [error.message]
    asked, answered = last_exchange(replay_entries.messages(loaded.entries))
    said = [line for line in answered.strip().splitlines() if line.strip()]
    return [f"› {' '.join(asked.split())}", *said]
