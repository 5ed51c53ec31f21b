"""All slash commands, in the order /help shows."""

from __future__ import annotations

from wolo.commands import (
    branch,
    compact,
    context,
    cost,
    jobs,
    label,
    leave,
    model,
    new,
    redo,
    resume,
    rewind,
    sessions,
    thinking,
    todo,
    tree,
    uncompact,
    undo,
)
from wolo.commands import help as help_command
from wolo.commands.command import Command

COMMANDS: tuple[Command, ...] = (
    Command("help", "this list", help_command.run, aliases=("?",), while_working=True),
    Command("model", "show the model, or /model PROVIDER/MODEL to change it", model.run),
    Command("thinking", "show how much the model thinks, or /thinking LEVEL to change it", thinking.run),
    Command("new", "begin a new session", new.run, aliases=("clear",)),
    Command("resume", "go on with another session: /resume ID", resume.run),
    Command("sessions", "the sessions of this directory", sessions.run, while_working=True),
    Command("tree", "the prompts of this session, with all branches", tree.run, while_working=True),
    Command("rewind", "go back to before a prompt: /rewind N", rewind.run),
    Command("branch", "go to where another branch had come to: /branch N", branch.run),
    Command("undo", "take back the last turn, files too: /undo [N] [PATH …]", undo.run),
    Command("redo", "bring back what was undone last", redo.run),
    Command("label", "give a prompt a name of your own: /label [N] NAME", label.run, while_working=True),
    Command("compact", "make room in the model's window: /compact [WHAT MATTERS], --preview shows what it would do", compact.run),
    Command("uncompact", "send again what fits of what was left out", uncompact.run),
    Command("context", "what fills the model's window", context.run, while_working=True),
    Command("todo", "the model's list of what is to be done", todo.run, aliases=("todos",), while_working=True),
    Command("jobs", "commands in the background: /jobs output|stop|detach ID", jobs.run, while_working=True),
    Command("cost", "tokens and money of this session so far", cost.run, while_working=True),
    Command("exit", "leave; the session is kept", leave.run, aliases=("quit", "q")),
)
