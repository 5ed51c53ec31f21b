"""/output-style: lists the output styles, and chooses one."""

from __future__ import annotations

from wolo.commands.command import Command, CommandContext, Outcome, ShowText
from wolo.commands.config import run as change_setting
from wolo.commands.two_columns import rows
from wolo.errors import UsageError
from wolo.extensions.output_styles import DEFAULT, OutputStyle, find_style
from wolo.messages.terminal_text import clean_line
from wolo.places import Notices


async def _run(context: CommandContext, rest: str) -> Outcome:
    notices = Notices()
    styles = (OutputStyle(DEFAULT, "no style of your own", ""), *context.conversation.user_files.output_styles(notices))
    if not rest:
        chosen = find_style(styles, context.conversation.permissions.config.settings.output_style or DEFAULT)
        marked = [(f"{'*' if each == chosen else ' '} {each.name}", each.description) for each in styles]
        return ShowText("\n".join((*rows(marked, context.columns), *notices)))
    if (style := find_style(styles, rest)) is None:
        raise UsageError(
            f"There is no output style {clean_line(rest)}.", hint=f"Styles: {', '.join(each.name for each in styles)}."
        )
    return await change_setting(context, f"output_style {style.name}")


def _arguments(context: CommandContext) -> list[tuple[str, str]]:
    return [(each.name, each.description) for each in context.conversation.user_files.output_styles(Notices())]


COMMANDS = (
    Command(
        "output-style",
        "list output styles, or choose one",
        _run,
        doing="changing the style",
        usage="[NAME]",
        more="NAME is saved as output_style in your config.toml and applied at once; `default` ends it. Styles are Markdown "
        "files in output-styles/ next to config.toml, in .claude/output-styles, and in plugins.",
        group="Extensions",
        arguments=_arguments,
    ),
)
