"""Marks of a request that are literal in any language: quotes, calls, names of files and code, examples of results."""

from __future__ import annotations

import ast
import re
from typing import Final

QUOTES: Final = re.compile(
    r"“([^“”\n]+)”|„([^„“”\n]+)[“”]|«\s*+([^«»\n]+)»|「([^」\n]+)」|『([^』\n]+)』|\"([^\"\n]+)\"|`([^`\n]+)`"
    r"|(?<![\w'])'([^'\n]+)'(?!\w)"
)
FILE_NAME: Final = re.compile(r"(?:[\w-]+/)*[\w-]*\.[A-Za-z]\w{0,4}(?![\w(])|\b[\w-]+(?:/[\w-]+)+/?|\b[\w-]+/(?!\w)", re.ASCII)
CALL: Final = re.compile(r"(?<![\w.])([A-Za-z_]\w*)\(([^()]*)\)", re.ASCII)
_CALL_RESULT: Final = re.compile(rf"{CALL.pattern}(?:[^\"'“«.;\n]{{0,25}}(?:\"[^\"\n]*\"|'[^'\n]*'))?")
SNAKE: Final = re.compile(r"(?<![\w./-])[A-Za-z]\w*_\w*(?![\w(]|[./-]\w)", re.ASCII)
_GIVES: Final = (
    r"(?:->|→|=>|gives|becomes|returns|ergibt|wird zu|se convierte en|devuelve|devient|donne|renvoie"
    r"|vira|retorna|становится|даёт|变成|変換)"
)
RESULT_EXAMPLE: Final = re.compile(
    rf"(?<![\w.(])(?P<quote>[`'\"])(?P<text>[^`'\"\n]{{1,60}})(?P=quote) ?{_GIVES} ?"
    r"(?P<other>[`'\"])(?P<value>[^`'\"\n]{1,60})(?P=other)"
    r"|(?<![\w.(])(?P<word>[^\s`'\"“”«»,:()]{1,60}) ?(?:->|→|=>|becomes|wird zu) ?(?P<result>[^\s`'\"“”«»,()]{1,60})"
)
"""An argument and its result: `aaab -> a3b1`."""


def is_class_name(name: str) -> bool:
    return name[:1].isupper() and not name.isupper()


def prose_of(request: str) -> str:
    """Put `_` for quoted texts, calls, file names and identifiers of the request."""
    for pattern in (QUOTES, CALL, FILE_NAME, SNAKE):
        request = pattern.sub(" _ ", request)
    return request


def mentioned_names(request: str) -> set[str]:
    """Collect words of the request that could be names of code or data; not those of files."""
    return set(re.findall(r"[A-Za-z_][\w-]*", FILE_NAME.sub(" ", request), re.ASCII))


def without_literal_calls(request: str) -> str:
    """Leave out calls with literal arguments and their results, whose quotes are no texts to be written."""
    request = _CALL_RESULT.sub(lambda match: " " if match[2].strip() and is_literal(match[2]) else match[0], request)
    return CALL.sub(lambda match: match[0] if not match[2].strip() or not is_literal(match[2]) else match[1], request)


def result_examples(request: str) -> list[tuple[str, str]]:
    """Find arguments and results as they are written, without quotes."""
    examples = [match.groupdict() for match in RESULT_EXAMPLE.finditer(request)]
    return [(each["text"] or each["word"], each["value"] or each["result"].rstrip(".;:!?")) for each in examples]


def words_of_examples(request: str) -> set[str]:
    return {word for example in result_examples(request) for word in example}


def num_of(word: str, text: str) -> int:
    """Count how often the text has the word, outside of longer ones."""
    return len(re.findall(rf"(?<!\w){re.escape(word)}(?!\w)", text))


def is_literal(arguments: str) -> bool:
    """Tells whether these are literals, with commas."""
    try:
        ast.literal_eval(f"({arguments},)")
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return False
    return True
