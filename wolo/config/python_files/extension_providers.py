"""Providers that the user's extensions add to the settings, and their logins."""

from __future__ import annotations

import asyncio
import re
import shlex
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from wolo.config import key_store, project, schema
from wolo.config.files import lock_folder
from wolo.config.python_files import custom_tools
from wolo.errors import ExtensionError
from wolo.extension import LoginStep
from wolo.models.provider import ProviderSettings
from wolo.places import Notices, Site

if TYPE_CHECKING:
    from wolo.extensions.custom_tools.extension_host import ExtensionAnswer, ExtensionHost

ShowStep = Callable[[LoginStep], Awaitable[str]]
"""Shows a step of a login to the user, and returns the answer. Raises an error of its own when the user cancels."""
_KEY_PROGRAM = (sys.executable, "-m", "wolo", "extensions", "key")


def add_providers(config: schema.Config, site: Site) -> schema.Config:
    """Of the user's files and packages; a project or plugin adds none. A table of the settings wins over one of an extension."""
    if not (files := _own_files(config, site)):
        return config
    with ThreadPoolExecutor(1) as thread:  # a conversation that opens has a running loop
        extensions = thread.submit(asyncio.run, custom_tools.find_extensions(config, site, files)).result()
    extensions.sandbox.close()
    providers, notices = dict(config.settings.providers), Notices()
    for extension in extensions.extensions:
        listing = extension.listing
        for name, table in listing.providers.items():
            if name in config.settings.providers:
                continue
            if name in listing.dialogs:
                table = {"key_env": [f"{re.sub(r'[^A-Za-z0-9]', '_', name).upper()}_API_KEY"], **table}
            if name in listing.logins and (name not in listing.dialogs or name in key_store.read(site.places, Notices())):
                table = {**table, "api_key": f"!{shlex.join((*_KEY_PROGRAM, extension.name, name))}"}
            try:
                providers[name] = msgspec.convert(table, type=ProviderSettings)
            except msgspec.ValidationError as error:
                notices.add(f"{extension.file.source}: the provider {name} is not used: {error}.")
    settings = replace(config.settings, providers=providers)
    return replace(config, settings=settings, notices=(*config.notices, *notices))


def is_key_program(api_key: str) -> bool:
    """An extension fetches the key."""
    return api_key.startswith(f"!{shlex.join(_KEY_PROGRAM)} ")


async def fetch_key(config: schema.Config, site: Site, extension: str, provider: str) -> str:
    """The key that an extension fetches. Raises ExtensionError and ConfigError."""
    extensions = await custom_tools.find_extensions(replace(config, trusts_project=False), site)
    each = next((each for each in extensions.extensions if each.name == extension and provider in each.listing.logins), None)
    if each is None:
        raise ExtensionError(f"There is no extension {extension} with a login for {provider}.", hint="wolo extensions list")
    with lock_folder(site.places.state / "extensions"):  # a saved secret may be good for one use
        stored = key_store.read(site.places, site.notices).get(provider) if provider in each.listing.dialogs else None
        secret = key_store.fetch(provider, stored, site.notices) if stored else ""
        async with _start(each, extensions, site) as host:
            answer = await _ask(host, "login", provider, saved=secret)
        if stored and answer.saved != secret:
            key_store.save(site.places, provider, answer.saved, in_keyring=stored.where == "keyring")
    return answer.key.strip()


async def run_dialog(config: schema.Config, site: Site, provider: str, show: ShowStep) -> str | None:
    """The secret that an extension's login dialog returns; None: there is no dialog. Raises ExtensionError."""
    files = _own_files(config, site)
    if not files or any(each.startswith(f"providers.{provider}.") for each in config.sources):
        return None
    extensions = await custom_tools.find_extensions(config, site, files)
    each = next((each for each in extensions.extensions if provider in each.listing.providers), None)
    if each is None or provider not in each.listing.dialogs:
        return None
    async with _start(each, extensions, site) as host:
        answer = await _ask(host, "dialog", provider)
        while (step := answer.step) is not None:
            if step.url and not step.url.startswith(("https://", "http://")):
                raise ExtensionError(f"The extension {host.name} names no address of a page: {step.url}.")
            reply = await show(step)
            await asyncio.sleep(min(step.wait_s, 60.0))
            answer = await _ask(host, "dialog", provider, answer=reply)
    return answer.key.strip()


def _own_files(config: schema.Config, site: Site) -> list[custom_tools.CustomToolFile]:
    return [
        each
        for each in custom_tools.find_files(replace(config, trusts_project=False), site, project.EXTENSIONS)
        if each.consent == "yours" and ("provider(" in each.file.text or not each.file.where.startswith("/"))
    ]


@asynccontextmanager
async def _start(
    each: custom_tools.ListedExtension, extensions: custom_tools.FoundExtensions, site: Site
) -> AsyncIterator[ExtensionHost]:
    """Outside of the sandbox: a login is the user's own program."""
    from wolo.extensions.custom_tools.extension_host import ExtensionHost, ExtensionLaunch  # noqa: PLC0415  # only for logins
    from wolo.guard.sandbox_contract import SandboxedCommand  # noqa: PLC0415  # as above
    from wolo.workspace.processes.command_environment import user_environment  # noqa: PLC0415  # as above

    launch = ExtensionLaunch(
        processes=extensions.processes,
        enclose=SandboxedCommand,
        cwd=site.places.config,
        env=lambda: user_environment(site.environ),
        facts=lambda: {"session_id": "", "cwd": str(site.cwd), "permission_mode": ""},
        hide=lambda value: value,
        notify=lambda text: None,
    )
    host = ExtensionHost(each.name, each.file, each.listing, launch)
    try:
        yield host
    finally:
        await host.close(0.1, ends_session=False)
        extensions.sandbox.close()


async def _ask(host: ExtensionHost, do: str, provider: str, **fields: str) -> ExtensionAnswer:
    """Raises ExtensionError, also for an empty key."""
    from wolo.extensions.custom_tools.extension_host import ExtensionDownError  # noqa: PLC0415  # as above

    try:
        answer = await host.ask(do, None, provider=provider, **fields)
        why = answer.error.splitlines()[-1] if answer.error else "it is empty"
    except ExtensionDownError as error:
        answer, why = None, str(error)
    if answer is None or answer.error or not (answer.step or answer.key.strip()):
        raise ExtensionError(f"The extension {host.name} has fetched no key for {provider}: {why}.")
    return answer
