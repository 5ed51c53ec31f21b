"""Logs the size of each request."""

from wolo.extension import CheckedRequest, Extension

EFFECTS = ["write"]


def extend(ext: Extension) -> None:
    @ext.on_request
    def log(request: CheckedRequest) -> None:
        with (ext.cwd / "requests.log").open("a") as file:
            file.write(f"{request.model} {len(request.messages)} {request.messages[-1].text}\n")
