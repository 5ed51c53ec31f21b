"""Turns `?quick TEXT` into a request for a short answer."""

from wolo.extension import CheckedRequest, Extension


def extend(ext: Extension) -> None:
    @ext.on_request
    def shorten(request: CheckedRequest) -> None:
        for message in request.messages:
            if message.role == "user" and message.text.startswith("?quick "):
                message.text = f"Answer in one sentence: {message.text.removeprefix('?quick ')}"
