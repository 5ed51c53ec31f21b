"""Changes that a request states in full: values, exchanges of texts, renamings and removals."""

from __future__ import annotations

import difflib
import keyword
import re
from typing import Final

from wolo.models.local.checks.asked_parts import asked_parts
from wolo.models.local.checks.marks import FILE_NAME, num_of
from wolo.models.local.checks.senses import means, pattern_of, stems

NEW_PARAMETER: Final = re.compile(
    r"(?:\b(?:[Pp]aram[eèé]t\w+|par[áâ]metro|argument\w*)|параметр\w*|аргумент\w*|参数|引数|パラメータ|(?:ال)?معامل) ?"
    r"(?:called |named |namens |llamado |nommé |chamado )?(?:optional \w+ )?[`'\"「“]?([a-z]\w+)"
    r"|[`'\"「“]?([a-z]\w+)[`'\"」”]? ?(?:parameter|argument|パラメータ|引数|参数)\b"
)
ALIKE: Final = 0.85
_NOUN: Final = (
    r"(?:function|method|class|funktion|methode|klasse|funci[óo]n|m[ée]todo|clase|fonction|m[ée]thode|função|функци|метод|класс"
    r"|(?:ال)?دالة)(?!\w* (?:call|comment|docstring|body))\w*"
)
_IT: Final = (
    r"it|them|th(?:at|is|e) function|diese \w+|es[ts]?a funci[óo]n|cette fonction|essa função|эту функцию"
    "|sie|es|ihn|ela|ele|la|lo|le|её|ее|его|lei"
)
_NOUN_CJK: Final = "(?:函数|方法|类|関数|メソッド|クラス)?"
_BECOMES: Final = r"(?:[=:]|(?:to|into|auf|zu|in|durch|a|à|en|par|por|para|con|на|إلى|is|=)(?= )|改为|改成|设为|设成|为|を|に)"
_VALUE: Final = r"(-?\d+(?:\.\d+)?(?![\w:]|[.,]\d)|\b(?:True|False|None|true|false|null)\b|\"[^\"\n]*\")"


def asked_values(request: str, old: str) -> dict[str, str]:
    """Find values that the request gives to constants, and to keys of the old file, by name: `set DEBUG to False`."""
    pairs = re.findall(rf"(?<![\w./-])([A-Za-z_][\w-]*)[`'\"”»」]* ?({_BECOMES})? ?{_VALUE}", request) if old else ()
    return {
        name: value
        for name, link, value in pairs
        if (link and name.isupper()) or re.search(rf"(?m)^[ \"']*{name}[\"']? *[:=] *[^\s{{\[]", old)
    }


def asked_exchange(request: str, old: str) -> tuple[str, str] | None:
    """Find the old and the new value, where the request wants one in the place of the other."""
    parts, link = asked_parts(request), pattern_of("instead").search(request)
    values = {*parts.numbers, *parts.quoted, *parts.marked} - {*parts.names}
    for end in (r"\w{3,}(?=\W{1,3}_)", r"(?<=_)\W{1,3}(\w{3,})"):  # the words beside the link
        values |= {*re.findall(end, pattern_of("instead").sub("_", request, count=1))} if link else set()
    known = [each for each in values if num_of(each, old)]
    fresh = [each for each in values if each not in known]
    numbers = {each for each in fresh if each.isdigit()}
    fresh = [each for each in fresh if not any(num_of(number, each) for number in numbers - {each})]  # 9090 of "9090:80"
    fresh = [each for each in fresh if each in numbers or not any(num_of(each, other) for other in fresh if other != each)]
    if len(known) != 1 or len(fresh) != 1:
        return _asked_correction(request, old)
    becomes = re.search(rf"{re.escape(known[0])}.*?{_BECOMES}\W*(?:\w+ )?{re.escape(fresh[0])}", request, re.S)
    return (known[0], fresh[0]) if link or becomes or _is_alike(known[0], fresh[0]) else None


def _asked_correction(request: str, old: str) -> tuple[str, str] | None:
    """The only path or name of the file that the request also writes in another way: `contact.htm`, `contact.html`."""
    words = [each for each in dict.fromkeys(re.findall(r"[\w./-]*\w", request)) if re.search(r"\w[./_-]\w", each)]
    known = [each for each in words if num_of(each, old)]
    pairs = [(one, other) for one in known for other in words if other not in known and _is_alike(one, other)]
    return pairs[0] if len(pairs) == 1 else None


def _is_alike(one: str, other: str) -> bool:
    return difflib.SequenceMatcher(None, one, other).ratio() >= ALIKE


def removes(request: str, name: str, text: str = "") -> bool:
    """Check whether the request removes the definition of this name, not something in it, from the text that has it."""
    latin, others = stems()["remove"]
    request = FILE_NAME.sub(" _ ", request)
    place = rf"{_NOUN}|from|in|aus|von|de|del|du|dans|en|da|do|из|в|من"
    rest = rf"\W?(?:\s*$|[.,;:!?،؛]|\s+(?:{place})(?!\w))"
    before = re.search(rf"(?<!\w)(?:{latin})\w*\s+(?:\S+\s+)?(?:{_NOUN}\s+)?\W?{name}{rest}", request, re.I)
    after = re.search(rf"(?<!\w){name}\W?\s?{_NOUN_CJK}を?(?:{others})", request, re.A)
    verb, please = rf"(?:{latin})\w*(?: of)?", r"(?:please|bitte|por favor|s.il \w+ pla\S+|per favore|пожалуйста)?"
    bound = {*re.findall(r"(?:\bimport |\bdef |\bclass |[(,] *|^ *)(\w+)", text, re.M)} - {name, *keyword.kwlist}
    known = {*re.findall(r"\w+", request)} & bound
    if (
        before
        and before[0][-1:].isalpha()
        and re.match(rf"\W*(?:\w+\W+)?(?:__all__|{'|'.join(known) or '__all__'})(?!\w)", request[before.end() :])
    ):
        before = None  # only a use of it
    is_alone = num_of(name, text) < 2 and not known and not pattern_of("inner").search(request)
    it = (
        is_alone
        and pattern_of("unused").search(request)
        and re.search(
            rf"(?<!\w){name}(?!\w).*?(?<!\w)(?:(?:{_IT}) {verb}|{verb}(?:-l[aeo]|[ -](?:{_IT})(?!\w)|\W*{please}\W*$))",
            request,
            re.I | re.S,
        )
    )
    return bool(before or after or it or re.search(rf"(?:{others})除?{_NOUN_CJK}\s?\W?{name}\W?(?:$|[。，,.])", request, re.A))


# Renaming


def asked_rename(request: str, old: str) -> tuple[str, str] | None:
    """Find the old and the new name, where the request renames something of the file."""
    if not means(request, "rename"):
        return None
    candidates = re.findall(r"(?<![\w./-])[A-Za-z_]\w*(?![\w/-]|\.\w)", request, re.ASCII)
    defined = [
        name
        for name in dict.fromkeys(candidates)
        if re.search(rf"(?m)\b(?:def|class) {name}\b|^{name} *[:=]|\bself\.{name}\b|^from .* import .*\b{name}\b", old)
        or re.search(rf"(?m)^import (\w+)$[\s\S]*?(?<![\w.])\1\.{name}\b", old)
    ]
    loose = (name for name in dict.fromkeys(candidates) if re.search(r"_|[a-z][A-Z]", name))
    defined = defined or [name for name in loose if re.search(rf"(?<![\w'\"]){name}(?![\w'\"])", old)]
    parts, known = asked_parts(request), defined
    new = [name for name in dict.fromkeys((*parts.identifiers, *parts.quoted)) if name not in known and name.isidentifier()]
    if len(known) > 1 and new:  # the one right before its new name
        between, last = rf"(?:(?!\b(?:{'|'.join(known)})\b).){{0,60}}?\b", "|".join(new)
        defined = [name for name in known if re.search(rf"\b{name}\b{between}(?:{last})\b", request)]
    if len(defined) != 1 or re.search(rf"\b(?:in|inside|within|en|dans|em|в) (?:\w+ ){{,2}}{defined[0]}\b(?!\.\w)", request):
        return None  # something in it
    after = re.search(
        rf"\b{defined[0]}\b.{{0,80}}?(?<!\w)(?:(?:to|into|as|zu|nach|in|en|a|à|para|por|в|на|إلى)\b|为|成|を|に)\W*([A-Za-z_]\w*)(?!\w|[.-]\w)",
        request,
        re.ASCII,
    )
    if len(new) != 1 and after:
        new = [after[1]]
    return (defined[0], new[0]) if len(new) == 1 and not keyword.iskeyword(new[0]) else None


def apply_rename(text: str, rename: tuple[str, str]) -> str:
    """Rename in code, not inside longer names, and a function of a module not where it is an attribute."""
    name = rename[0]
    of_module = rf"(?m)^(?:async )?def {name}\b|^from .* import .*\b{name}\b"
    is_bare = re.search(of_module, text) and not re.search(rf"(?m)^\s+(?:async )?def {name}\b|\bself\.{name}\b|^import ", text)
    return re.sub(rf"(?<![\w{'.' if is_bare else ''}]){name}(?!\w)", rename[1], text)
