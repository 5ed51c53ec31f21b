"""Compacts the conversation above a number of tokens, and on a command."""

from wolo.extension import CheckedRequest, Extension

MOST_TOKENS = 5_000


def extend(ext: Extension) -> None:
    @ext.on_request
    def watch(request: CheckedRequest) -> None:
        if request.num_tokens > MOST_TOKENS:
            ext.compact()

    @ext.command("trigger-compact")
    def trigger(arguments: str) -> str:
        ext.compact()
        return "The next request is smaller."
