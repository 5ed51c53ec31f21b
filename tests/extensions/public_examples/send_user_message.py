"""A command that sends a prompt."""

from wolo.extension import Extension


def extend(ext: Extension) -> None:
    @ext.command("ask-me", usage="<topic>", complete=["history", "physics"])
    def ask(arguments: str) -> None:
        ext.prompt(f"Ask me a question about {arguments}.")
