"""Providers that the user's extensions add to the settings."""

from __future__ import annotations

import asyncio
import shlex
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import msgspec
from msgspec.structs import replace

from wolo.config import project, schema
from wolo.config.python_files import custom_tools, extension_files
from wolo.models.provider import ProviderSettings
from wolo.places import Notices, Site


def add_providers(config: schema.Config, site: Site) -> schema.Config:
    """Of the user's files and packages; a project or plugin adds none. A table of the settings wins over one of an extension."""
    files = [
        each
        for each in custom_tools.find_files(replace(config, trusts_project=False), site, project.EXTENSIONS)
        if each.consent == "yours" and ("provider(" in each.file.text or not each.file.where.startswith("/"))
    ]
    if not files:
        return config
    with ThreadPoolExecutor(1) as thread:  # a conversation that opens has a running loop
        found = thread.submit(asyncio.run, extension_files.find_extensions(config, site, files)).result()
    found.sandbox.close()
    providers, notices = dict(config.settings.providers), Notices()
    for extension in found.extensions:
        for name, table in extension.listing.providers.items():
            if name in config.settings.providers:
                continue
            if name in extension.listing.logins:
                words = (sys.executable, "-m", "wolo", "extensions", "key", extension.name, name)
                table = {**table, "api_key": f"!{shlex.join(words)}"}
            try:
                providers[name] = msgspec.convert(table, type=ProviderSettings)
            except msgspec.ValidationError as error:
                notices.add(f"{extension.file.source}: the provider {name} is not used: {error}.")
    settings = replace(config.settings, providers=providers)
    return replace(config, settings=settings, notices=(*config.notices, *notices))


async def fetch_key(config: schema.Config, site: Site, extension: str, provider: str) -> str:
    """The key that an extension fetches. Raises ExtensionError."""
    from wolo.errors import ExtensionError  # noqa: PLC0415  # as below
    from wolo.extensions.custom_tools.extension_host import ExtensionDownError, ExtensionHost, ExtensionLaunch  # noqa: PLC0415  # only for logins
    from wolo.guard.sandbox_contract import SandboxedCommand  # noqa: PLC0415  # as above
    from wolo.workspace.processes.command_environment import user_environment  # noqa: PLC0415  # as above

    extensions = await extension_files.find_extensions(replace(config, trusts_project=False), site)
    each = next((each for each in extensions.extensions if each.name == extension and provider in each.listing.logins), None)
    if each is None:
        raise ExtensionError(f"There is no extension {extension} with a login for {provider}.", hint="wolo extensions list")
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
    answer = None
    try:
        with suppress(ExtensionDownError):
            answer = await host.ask("login", provider=provider)
    finally:
        await host.close(0.1, ends_session=False)
        extensions.sandbox.close()
    if answer is None or answer.error or not answer.key.strip():
        why = answer.error.splitlines()[-1] if answer and answer.error else host.problem if answer is None else "it is empty"
        raise ExtensionError(f"The extension {extension} has fetched no key for {provider}: {why}.")
    return answer.key.strip()
