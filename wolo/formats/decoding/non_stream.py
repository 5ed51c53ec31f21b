"""What is wrong with an answer that was to be one JSON object."""

from __future__ import annotations

import json

from wolo.errors import BadAnswer, ProviderError, Unavailable

SHOWN_CHARACTERS = 200


def no_message() -> BadAnswer:
    return BadAnswer("The server's answer holds no message.", hint="Check the base URL and the model name.", status=200)


def no_document(body: bytes) -> ProviderError:
    text = body.decode("utf-8", "replace").strip()
    try:
        json.loads(text, strict=False)
    except json.JSONDecodeError as error:
        if text and (error.pos >= len(text) or error.msg.startswith("Unterminated")):
            return Unavailable("The server's answer ends in the middle of its JSON.", status=200)
        what = "more than one JSON document" if error.msg.startswith("Extra data") else "no JSON"
    except (ValueError, RecursionError):
        what = "JSON that cannot be read"
    else:
        what = "no JSON object"
    beginning = " ".join(text[:SHOWN_CHARACTERS].split())
    return BadAnswer(f"The server's answer is {what}: {beginning}", hint="Check the base URL and its API.", status=200)
