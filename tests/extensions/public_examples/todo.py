"""A list of tasks: a tool for the model, a command for the user, rows for the terminal, saved with the session."""

from typing import Any, Literal

from wolo.extension import Extension


def extend(ext: Extension) -> None:
    def rows(arguments: dict[str, Any], result: str) -> list[str]:
        return [f"☐ {item}" for item in ext.state or []] or ["no tasks"]

    @ext.tool(render=rows)
    def tasks(action: Literal["add", "clear"], text: str = "") -> str:
        """Change the list of tasks."""
        ext.save([*(ext.state or []), text] if action == "add" else [])
        return f"{len(ext.state)} tasks"

    @ext.command("tasklist", help="Show the list of tasks")
    def show(arguments: str) -> str:
        return "\n".join(ext.state or []) or "no tasks"
