"""The JSON bodies of requests, checked against their types."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from typing import Annotated, Literal, TypeVar

import msgspec
from msgspec import Meta, Struct

from wolo.frontends.server.http_errors import HttpError
from wolo.messages.media import IMAGES_ACCEPTED, image_type
from wolo.messages.parts import ImagePart
from wolo.tools.tool_values import Reply

Text = Annotated[str, Meta(min_length=1)]
Name = Annotated[str, Meta(max_length=200, pattern=r"^[^\x00-\x1f\x7f-\x9f]*$")]
"""Pattern for the name of a model or a session: one line."""


class Body(Struct, frozen=True, forbid_unknown_fields=True):
    pass


ModeName = Literal["", "plan", "ask", "edit", "auto", "yolo"]


class NewSession(Body, frozen=True):
    cwd: str = ""
    """Folder to work in; empty: where the server was started."""
    model: Name = ""
    mode: ModeName = ""
    name: Name = ""
    background: bool = False
    """List it in `wolo ps`, also after the end of the server."""
    title: Annotated[str, Meta(max_length=200)] = ""
    """In that list."""
    options: dict[str, str | bool | list[str]] = {}
    """Further options of the command line, by their names."""


class Change(Body, frozen=True):
    """Empty fields stay as they are."""

    model: Name = ""
    mode: ModeName = ""
    title: str = ""
    """Its beginning is taken, as one line."""


class Image(Body, frozen=True):
    data: Text
    """Base64, or a data: URL."""
    media_type: str = ""
    name: Name = ""
    """Of its file, for notices."""


class Prompt(Body, frozen=True):
    text: str
    images: tuple[Image, ...] = ()
    typed: bool = False
    """A person wrote the text in the client: slash commands and all mentions count. Otherwise only mentions of files in the
    workspace do."""


class Steer(Body, frozen=True):
    text: Text


class Nothing(Body, frozen=True):
    pass


class Resume(Body, frozen=True):
    model: str = ""
    """Answers until the limit ends; empty: the model of the session is asked again."""


class Approve(Body, frozen=True):
    call_id: Text
    """Id of the call, or of the approval."""
    decision: Literal["once", "session", "always", "no", "never"]
    """`no` holds until the next prompt, `never` saves a deny rule."""
    reason: str = ""
    """For the model, with `no` and `never`."""


class Choice(Body, frozen=True):
    chosen: tuple[str, ...] = ()
    text: str = ""


class Answer(Body, frozen=True):
    call_id: Text
    answers: tuple[str | tuple[str, ...] | Choice, ...] | None
    """One for each question: a text, chosen labels, or both; null skips all questions."""


class Redo(Body, frozen=True):
    anyway: bool = False
    """Leave files alone that were changed since."""
    preview: bool = False
    """Only say what would happen."""


class Undo(Redo, frozen=True):
    count: Annotated[int, Meta(ge=1)] = 1
    paths: tuple[Text, ...] = ()
    """Only these files, relative to the folder of the session; the conversation stays."""


B = TypeVar("B", bound=Body)


def parse(kind: type[B], data: bytes) -> B:
    """No body is an empty object. Raises HttpError 400 for what is not JSON, 422 for what does not fit."""
    try:
        return msgspec.json.decode(data or b"{}", type=kind)
    except msgspec.ValidationError as error:
        raise HttpError(422, f"The request does not fit: {error}.", "/openapi.json describes it.") from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise HttpError(400, f"The body is not JSON: {error}.") from error


def read_images(images: Sequence[Image]) -> list[ImagePart]:
    parts = []
    for at, image in enumerate(images, 1):
        encoded = image.data.partition(",")[2] if image.data.startswith("data:") else image.data
        label = f"Image {at}{f' ({image.name})' if image.name else ''}"
        try:
            data = base64.b64decode(encoded, validate=True)
        except (binascii.Error, ValueError) as error:
            raise HttpError(422, f"{label} is not base64: {error}.") from error
        if not (kind := image_type(data[:16])):
            raise HttpError(422, f"{label} is no image.", IMAGES_ACCEPTED)
        parts.append(ImagePart(name=image.name, media_type=kind, data=data))
    return parts


def replies(answers: Sequence[str | tuple[str, ...] | Choice] | None) -> tuple[Reply, ...] | None:
    if answers is None:
        return None
    return tuple(
        Reply(text=each)
        if isinstance(each, str)
        else Reply(chosen=each)
        if isinstance(each, tuple)
        else Reply(chosen=each.chosen, text=each.text)
        for each in answers
    )
