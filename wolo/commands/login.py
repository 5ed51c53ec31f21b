"""/login and /logout: save and remove API keys."""

from __future__ import annotations

import asyncio
from functools import partial

from wolo.agent.events import Noticed
from wolo.commands.command import Command, CommandContext, Outcome, RunEvents, ShowText
from wolo.diagnostics import provider_login
from wolo.errors import UsageError
from wolo.extension import LoginStep
from wolo.messages.terminal_text import clean
from wolo.tools.tool_values import UNASKED, AnswerOption, AskQuestions, Question


async def _login(context: CommandContext, rest: str) -> Outcome:
    """The terminal replaces this by its own dialog; elsewhere an extension's dialog asks by questions."""
    elsewhere = UsageError("/login needs an interactive terminal.", hint=f"wolo login {rest or 'PROVIDER'} --key-stdin < FILE")
    name, account = provider_login.split_account(rest)
    if not name or account:
        raise elsewhere
    provider, conversation = await asyncio.to_thread(provider_login.find_login_provider, name), context.conversation

    async def work(ask: AskQuestions) -> None:
        secret = await provider_login.secret_of_dialog(provider, partial(_ask_step, ask))
        if secret is None:
            raise elsewhere
        where = await asyncio.to_thread(provider_login.save_key, provider, secret, in_keyring=True)
        text = f"Logged in to {provider.label}; the login is saved in {where}."
        conversation.events.pass_on(Noticed(text=text, level="warning"))  # plain ones are for --verbose

    if (dialog := conversation.run_dialog(work)) is None:
        raise elsewhere
    return RunEvents(dialog)


async def _ask_step(ask: AskQuestions, step: LoginStep) -> str:
    """Raises UsageError when the user skips a step."""
    if not (step.url or step.ask):
        return ""
    text = "\n".join(filter(None, (provider_login.describe_step(step), clean(step.ask))))
    options = () if step.ask else (AnswerOption("Continue", "when you have done so"),)
    replies = await ask("login", [Question(text=text, header="Log in", options=options)])
    if not replies or not (replies[0].chosen or replies[0].text) or replies[0] is UNASKED:
        raise UsageError("The login was cancelled.", hint="Nothing was saved. `wolo login` works in a terminal, too.")
    return replies[0].text


async def _logout(context: CommandContext, rest: str) -> Outcome:
    removed, left = await asyncio.to_thread(provider_login.log_out, *provider_login.split_account(rest))
    return ShowText(
        "\n".join(
            [removed, *left, "This conversation continues with its current key; /model PROVIDER/MODEL switches to another."]
        )
    )


def _saved_keys(context: CommandContext) -> list[tuple[str, str]]:
    return [
        (f"{each.provider} --name {each.account}" if each.account else each.provider, each.source)
        for each in provider_login.found_keys()[0]
        if not each.source.startswith(("$", "providers."))
    ]


COMMANDS = (
    Command(
        "login",
        "save the API key of a provider",
        _login,
        usage="[PROVIDER] [--name NAME]",
        more="The key is typed hidden, checked with one tiny request, and saved as by `wolo auth login`.",
        group="Model",
        arguments=lambda _: [(each.name, each.label) for each in provider_login.login_providers()],
        asks=True,
    ),
    Command(
        "logout",
        "remove a saved API key",
        _logout,
        usage="[PROVIDER] [--name NAME]",
        group="Model",
        arguments=_saved_keys,
        while_working=True,
    ),
)
