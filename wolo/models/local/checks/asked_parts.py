"""Parts of a request that its result can be compared with, in any language: names, calls, quoted texts, numbers and places."""

from __future__ import annotations

import builtins
import keyword
import re
from pathlib import PurePath
from typing import Final

from msgspec import Struct

from wolo.models.local.checks.marks import (
    CALL,
    FILE_NAME,
    QUOTES,
    SNAKE,
    is_class_name,
    is_literal,
    prose_of,
    without_literal_calls,
    words_of_examples,
)
from wolo.models.local.checks.senses import GOES, is_question, means, pattern_of, stems

_NUMBER: Final = re.compile(r"(?<![\w.,+*/=:(\[-])-?\d+(?:\.\d+)?(?![\w(]|[.,]\d| ?[-+*/%])", re.ASCII)
_AFTER_NOUN: Final = re.compile(
    r"\b(?:function|method|class|constant|variable)s? (?:called |named )([A-Za-z_]\w+)"
    r"|\b(?:[Cc]lasse?|[Kk]lasse|[Cc]lase) ([A-Z]\w+)|(?:类|クラス|класс\w*|الصنف|الفئة) ?([A-Z]\w+)"
    r"|(?:\b(?:[Pp]aramet\w+|par[áâ]metro|paramètre|argument\w*)|параметр\w*|аргумент\w*|参数|引数|パラメータ|(?:ال)?معامل) ?"
    r"(?!optional|opcional|optionnel|nuevo|novo|nouveau)([a-z]\w+)(?= ?=| (?:with|mit|con|avec|com|со?) | ?[\u0600-\uffff])"
)
_MARKED: Final = re.compile(
    r"\*[./]|[./]\*|\w://|^[\w.-]+/$|^[\w.-]+[<>=~!]=\S|^[^,]+(?:,[^,]+){2,}$|^\d+(?:\.\d+){2,}$|^\d+:\d+$|^[A-Z_]{2,}=\S"
)
"""Text that is meant as it is written, also without quotes: `*.log`, `build/`, `pear,12,0.80`, `2.1.0`."""
_PARAMETER: Final = re.compile(r"\*{0,2}([A-Za-z_]\w*)\s*(?:[:=].*)?", re.ASCII)


class AskedFunction(Struct, frozen=True):
    name: str
    parameters: tuple[str, ...]
    arguments: str = ""
    """As they are written."""

    @property
    def is_class(self) -> bool:
        return is_class_name(self.name)


class AskedParts(Struct, frozen=True, kw_only=True):
    functions: tuple[AskedFunction, ...] = ()
    """Written with parameters: `add(a, b)`."""
    names: tuple[str, ...] = ()
    """Further identifiers."""
    calls: tuple[str, ...] = ()
    """Calls with literal arguments: `average([])`."""
    quoted: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()
    """As they are written, outside of names, calls, quotes and formulas."""
    marked: tuple[str, ...] = ()
    """Texts without quotes that only a literal meaning explains."""

    @property
    def identifiers(self) -> tuple[str, ...]:
        called = (call.partition("(")[0] for call in self.calls)
        return tuple(dict.fromkeys((*(each.name for each in self.functions), *self.names, *called)))


def clauses_of(request: str) -> list[str]:
    """Sentences, numbered items, and parts behind an "and" that ask for further work."""
    number, sentence = r"(?:^|[\s,;:])(?:\d[.)]|[-*•])\s+", r"(?<!\.\w\.)(?<!\. B\.)(?<=[.;!?])\s+|(?<=[。；！？])|\n+"
    orders = "|".join(stems()[sense][0] for sense in ("add", "remove", "rename", "move"))
    verbs = rf"(?:{orders}|set|change|make|create|write|setz|änder|cambi|chang|mets|измени)\w*\s"
    further = rf",?\s(?:and|und|y|et|e|и)\s(?=(?:then |also |please )?{verbs})"
    return [each for each in re.split(f"{number}|{sentence}|{further}", request, flags=re.I) if re.search(r"\w", each)]


def asks_to_know(request: str) -> bool:
    """A question, in any language, that does not ask for work, politely or not: it names nothing that is to be made."""
    if not is_question(request) or means(request, "polite") or asked_parts(request).functions:
        return False
    asking = [each for each in re.split(r"(?<=[.!?？؟。])\s*", prose_of(request)) if is_question(each)]
    return not asking or any(means(each, "inform", "count") or not means(each, "work") for each in asking)


def asked_parts(request: str) -> AskedParts:
    quoted = [next(filter(None, each)).strip() for each in QUOTES.findall(without_literal_calls(request))]
    files = set(FILE_NAME.findall(request))
    unquoted = QUOTES.sub(" ", request)
    functions, names, calls = dict[str, AskedFunction](), list[str](), list[str]()
    for name, inside in CALL.findall(request):
        if name in dir(builtins) or keyword.iskeyword(name):
            continue
        arguments = [part.strip() for part in inside.split(",") if part.strip()]
        parameters = [_PARAMETER.fullmatch(part) for part in arguments]
        if inside.strip() and is_literal(inside):
            (names if is_class_name(name) else calls).append(name if is_class_name(name) else f"{name}({inside})")
        elif all(parameters):
            functions.setdefault(name, AskedFunction(name, tuple(each[1] for each in parameters if each), inside))
    names += [next(filter(None, each)) for each in _AFTER_NOUN.findall(request)]
    names += [each for each in SNAKE.findall(unquoted) if not any(each in file for file in files)]
    names += [each for each in quoted if re.fullmatch(r"[A-Za-z_]\w*", each, re.ASCII) and f"`{each}`" in request]
    stripped = FILE_NAME.sub(" ", CALL.sub(" ", unquoted))
    of_examples = words_of_examples(request)
    names = [name for name in names if name not in of_examples]
    return AskedParts(
        functions=tuple(functions.values()),
        names=tuple(dict.fromkeys(name for name in names if name not in functions and not keyword.iskeyword(name))),
        calls=tuple(dict.fromkeys(calls)),
        quoted=tuple(dict.fromkeys(each for each in quoted if each not in files and not CALL.fullmatch(each))),
        numbers=tuple(dict.fromkeys(_NUMBER.findall(stripped))),
        marked=tuple(
            dict.fromkeys(each for word in re.findall("[!-~]+", unquoted) if _MARKED.search(each := word.strip(".,;:!?()")))
        ),
    )


def marked_lines(request: str, path: str) -> tuple[str, ...]:
    """Texts that are meant as they are written; in a list of ignored files also names such as `.env`."""
    parts = asked_parts(request).marked
    if not PurePath(path).name.endswith("ignore"):
        return parts
    words = (word.strip("`'\",;:!?()") for word in request.split())
    names = [
        word for word in words if re.fullmatch(r"\.\w[\w.-]*(?<!\.)/?|\*\.\w+|[\w-]+/", word) and word != PurePath(path).name
    ]
    return tuple(dict.fromkeys((*names, *parts)))


def named_functions(request: str, text: str) -> tuple[AskedFunction, ...]:
    """Functions with the parameters that the request gives; for a call such as `mean([])` with those that the text defines."""
    parts = asked_parts(request)
    call = parts.calls[0].partition("(")[0] if len(parts.calls) == 1 and not parts.functions else ""
    definition = re.search(rf"(?m)^def ({call}\([^()]*\))", text) if call else None
    return asked_parts(definition[1]).functions if definition else parts.functions


def asked_folder(request: str) -> str:
    """The folder that the request names as a place: `in the folder src`, `src/`; empty if none."""
    if explicit := re.search(r"(?<![\w./~-])((?:[\w-]+/)+)(?![\w./])", request, re.ASCII):
        return explicit[1].rstrip("/")
    sense = pattern_of("folder").pattern
    name = r"[`'\"“„«「 ]*([A-Za-z][A-Za-z0-9_-]*)(?![A-Za-z0-9_.(])"
    after = re.search(
        rf"(?:{sense})(?:\w*\s+|[^\W\x00-\x7f]*)(?:called |named |namens |llamada |nommé |chamada )?{name}",
        request,
        re.IGNORECASE,
    )
    before = re.search(rf"([A-Za-z][\w-]*)[`'\"”“»」 ]*(?:{sense})", request, re.IGNORECASE | re.ASCII)
    match = after or (before if before and not _NO_FOLDER.fullmatch(before[1]) else None)
    return "" if match is None or _NO_FOLDER.fullmatch(match[1]) else match[1]


_NO_FOLDER: Final = re.compile(
    r"the|an?|this|that|my|of|in|with|and|for|to|is|new|den|de[mr]|die|das|im|la|el|los|un[ae]?|le|o|uma|n[ao]|d[eoa]|en|dans|em|und"
    r"|y|et|e|mit|con|avec|com|its|your|our|where|which|here|current|same|project|working|home|root|parent|whole|des|del|du|se",
    re.IGNORECASE,
)


def asked_names(request: str) -> list[str]:
    """Functions and other identifiers that a result has to hold; not where something is removed or renamed."""
    parts = asked_parts(request)
    return [] if means(request, *GOES) else [*(each.name for each in parts.functions), *parts.names]
