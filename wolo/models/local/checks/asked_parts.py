"""Parts of a request that its result can be compared with, in any language: names, calls, quoted texts, numbers and places."""

from __future__ import annotations

import ast
import builtins
import contextlib
import itertools
import keyword
import re
from collections.abc import Iterator
from pathlib import PurePath
from typing import Final, Literal

from msgspec import Struct

_QUOTES: Final = re.compile(
    r"“([^“”\n]+)”|„([^„“”\n]+)[“”]|«\s*([^«»\n]+?)\s*»|「([^」\n]+)」|『([^』\n]+)』|\"([^\"\n]+)\"|`([^`\n]+)`"
    r"|(?<![\w'])'([^'\n]+)'(?!\w)"
)
_FILE_NAME: Final = re.compile(r"(?:[\w-]+/)*[\w-]*\.[A-Za-z]\w{0,4}(?![\w(])|\b[\w-]+(?:/[\w-]+)+/?|\b[\w-]+/(?!\w)", re.ASCII)
_CALL: Final = re.compile(r"(?<![\w.])([A-Za-z_]\w*)\(([^()]*)\)", re.ASCII)
_STATED: Final = re.compile(
    r"\)[`'\"]? ?(?:->|→|=>|==|should (?:be|return|give)|muss|soll|debe|deve|doit|должн\w+)[ :`]*"
    r"(\[[^\n]*?\](?!\])|\{[^\n}]*\}|\([^\n)]*\)|\"[^\"\n]*\"|'[^'\n]*'|-?\d+(?:\.\d+)?|True|False|None)"
)
"""The result of a call: `add(1, 2) -> 3`."""
_CALL_RESULT: Final = re.compile(rf"{_CALL.pattern}(?:[^\"'“«.;\n]{{0,25}}(?:\"[^\"\n]*\"|'[^'\n]*'))?")
_NUMBER: Final = re.compile(r"(?<![\w.,+*/=:(\[-])-?\d+(?:\.\d+)?(?![\w(]|[.,]\d| ?[-+*/%])", re.ASCII)
_SNAKE: Final = re.compile(r"(?<![\w./-])[A-Za-z]\w*_\w*(?![\w(]|[./-]\w)", re.ASCII)
_AFTER_NOUN: Final = re.compile(
    r"\b(?:function|method|class|constant|variable)s? (?:called |named )([A-Za-z_]\w+)"
    r"|\b(?:[Cc]lasse?|[Kk]lasse|[Cc]lase) ([A-Z]\w+)|(?:类|クラス|класс\w*|الصنف|الفئة) ?([A-Z]\w+)"
    r"|(?:\b(?:[Pp]aramet\w+|par[áâ]metro|paramètre|argument\w*)|параметр\w*|аргумент\w*|参数|引数|パラメータ|(?:ال)?معامل) ?"
    r"(?!optional|opcional|optionnel|nuevo|novo|nouveau)([a-z]\w+)(?= ?=| (?:with|mit|con|avec|com|со?) | ?[\u0600-\uffff])"
)
NEW_PARAMETER: Final = re.compile(
    r"(?:\b(?:[Pp]aram[eèé]t\w+|par[áâ]metro|argument\w*)|параметр\w*|аргумент\w*|参数|引数|パラメータ|(?:ال)?معامل) ?"
    r"(?:called |named |namens |llamado |nommé |chamado )?(?:optional \w+ )?[`'\"「“]?([a-z]\w+)"
    r"|[`'\"「“]?([a-z]\w+)[`'\"」”]? ?(?:parameter|argument|パラメータ|引数|参数)\b"
)
_MARKED: Final = re.compile(
    r"\*[./]|[./]\*|\w://|^[\w.-]+/$|^[\w.-]+[<>=~!]=\S|^[^,]+(?:,[^,]+){2,}$|^\d+(?:\.\d+){2,}$|^\d+:\d+$|^[A-Z_]{2,}=\S"
)
"""Text that is meant as it is written, also without quotes: `*.log`, `build/`, `pear,12,0.80`, `2.1.0`."""
PLACEHOLDER: Final = re.compile(r"\b[A-Z]{3,}\b")
"""A word of a quoted text in small letters that stands for another."""
_LISTED: Final = re.compile(r"\(((?:[\w-]{1,12}, ?)(?:[\w-]{1,12}, ?)+(?:\w+ )?[\w-]{1,12})(?=[,)])")
"""Three values or more, in parentheses."""
_OPTION: Final = re.compile(
    r"flag|option|switch|schalter|opci[óo]n|opção|opzion|опци|флаг|ключ|选项|オプション|フラグ|خيار", re.I
)
_RAISES: Final = (
    r"(?:rais|throw|wirf|werf|auslös|lanz|lanç|lèv|lever|soulev|sollev|выбр|выда|вызы|抛|投げ|発生|送出|ارم|يرمي|أطلق)"
)
_RAISED: Final = re.compile(
    rf"{_RAISES}[^.;!?\n]{{0,40}}?\b([A-Z]\w*(?:Error|Exception))\b|\b([A-Z]\w*(?:Error|Exception))\b[^.;!?\n]{{0,20}}?{_RAISES}"
)
"""An error that code is to raise."""
_COMMAND: Final = re.compile(r"(?:python3?|node|bash|sh|make|npm|npx|pip|pytest|git|cargo|go) |\./")
"""A quoted command, which is to be run and not to be written."""
_OF_ERROR: Final = re.compile(r"\b[A-Z]\w*(?:Error|Exception|Warning)\b|^Traceback")
"""A quoted message of an error, which is not to be written."""
_TARGET: Final = re.compile(
    r"(?<![\w-])(?!(?:new|the|an?|no|another|phony|make|ein|das|une?|uma?|el)[ -])[`'\"]?([a-z][\w-]*)[`'\"]?[- ][Tt]arget\b"
    r"|\b(?:[Tt]arget|objetivo|cible|alvo|цель)[ :]*[`'\"«]?(?!(?:for|to|that|which|in)\b)([a-z][\w-]*)"
)
"""A target of a Makefile."""
EQUATION: Final = re.compile(r"(?<![\w.])\d+ [-+x×*/] \d+ = \d+(?![\w.]\d)")
_NOUN: Final = (
    r"(?:function|method|class|funktion|methode|klasse|funci[óo]n|m[ée]todo|clase|fonction|m[ée]thode|função|функци|метод|класс"
    r"|(?:ال)?دالة)(?!\w* (?:call|comment|docstring|body))\w*"
)
_IT: Final = (
    r"it|them|th(?:at|is|e) function|diese \w+|es[ts]?a funci[óo]n|cette fonction|essa função|эту функцию"
    "|sie|es|ihn|ela|ele|la|lo|le|её|ее|его|lei"
)
_UNUSED: Final = re.compile(
    r"unused|no longer|any ?more|n[o']t (?:used|needed)|nobody|no one|dead|obsolete|nicht mehr|unbenutzt|überflüssig"
    r"|ya no|nadie|ningu[ée]m|não"
    r"|n'est plus|inutile|personne|больше не|не нужн|никто|不再|没用|没有用|使わ|使って(?:い)?ない|不要|لم تعد|لا تستخدم",
    re.I,
)
_INNER: Final = re.compile(
    r"import|variable|param|arg[ou]ment|comment|kommentar|comentario|docstring|\bline|zeile|línea|ligne|строк|переменн|импорт|параметр"
    r"|аргумент|变量|変数|导入|参数|引数|注释|コメント|行|متغير|معامل",
    re.I,
)
"""Parts of a definition."""
_NOUN_CJK: Final = "(?:函数|方法|类|関数|メソッド|クラス)?"
_INSTEAD: Final = re.compile(
    r"\b(?:instead(?: of)?|rather than|statt(?:dessen)?|anstelle von|en (?:lugar|vez) de|en su lugar|au lieu de|à la place"
    r"|em (?:vez|lugar) de|no lugar|invece|вместо)\b|بدلاً? من|代替|而不是|ではなく|代わりに",
    re.I,
)
_BECOMES: Final = r"(?:[=:]|(?:to|into|auf|zu|in|durch|a|à|en|par|por|para|con|на|إلى|is|=)(?= )|改为|改成|设为|设成|为|を|に)"
_VALUE: Final = r"(-?\d+(?:\.\d+)?(?![\w:]|[.,]\d)|\b(?:True|False|None|true|false|null)\b|\"[^\"\n]*\")"
_EXAMPLE: Final = re.compile(
    r"(?:\bfor example|\be\.g\.|\bsuch as|\bbecomes?\b|\bz\. ?B\.|\bzum beispiel|\bwird zu"
    r"|\b(?:por|p\.) ?ej|\bpar exemple|\bpor exemplo"
    r"|например|例如|比如|例えば|مثلا|->|→|=>).*?(?:[.;。](?=\s|$)|$)",
    re.IGNORECASE,
)
"""An example in a request, whose texts and numbers need not be in the result."""
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
_PROGRAMS: Final = frozenset((".py", ".sh", ".bash", ".js", ".mjs", ".ts", ".rb", ".go", ".rs", ".c", ".cpp", ".java"))
_PARAMETER: Final = re.compile(r"\*{0,2}([A-Za-z_]\w*)\s*(?:[:=].*)?", re.ASCII)
_OF_FORMULAS: Final = (
    "len sum min max abs round sorted reversed int float str bool list tuple set dict range enumerate zip any all divmod ord chr"
    " map filter True False None self if else for in not"
)
"""Names of a formula beside parameters; none that does more than calculate."""
_SUM: Final = (ast.Expression, ast.BinOp, ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Mod)
TIMES: Final = r"(?<![\w.])(\d{1,3}) ?(?:times|mal|veces|fois|vezes|раза?|مرات|مرة)\b|(?<![\w.])(\d{1,3}) ?(?:次|遍|回)"
MOST_BETWEEN: Final = 30
"""Characters between a text and how often it is wanted."""
MOST_WORDS: Final = 400
"""Words of a request among which a formula is looked for."""
LONGEST_FORMULA: Final = 16
"""Words."""
LAST_LINES: Final = 3
"""Lines without blank ones that count as the end."""
NEAR_SMALL: Final = 12
"""Numbers up to this one may be written as so many lines."""

Sense = Literal[
    "remove",
    "rename",
    "rewrite",
    "move",
    "add",
    "type_hint",
    "at_end",
    "heading",
    "output",
    "command_line",
    "folder",
    "method",
    "polite",
    "inform",
    "work",
]
_STEMS: Final[dict[Sense, tuple[str, str]]] = {
    "remove": (
        "remov|delet|drop|without|get\\w* rid|throw\\w* (?:\\w+ )?(?:away|out)|take out"
        "|rimuov|elimin|cancell|entfern|lösch|elimin|borr|quita|supprim|enlèv|retir|apag|exclu|удал|убер|احذف|أزل|أزيل|usuń|verwijder",
        "删|移除|去掉|削除|取り除|消して",
    ),
    "rename": (
        "renam|umbenenn|benenn|umzubenenn|renombr|cambia el nombre|renomm|renome|rinomin|переимен|أعد تسمية|إعادة تسمية|hernoem",
        "重命名|改名|名前を.{0,40}(?:変|に)|リネーム",
    ),
    "rewrite": (
        "replac|rewrit|translat|shorten|summar|simplif|refactor|ersetz|"
        "schreib\\w* .{0,40}neu|übersetz|kürz|vereinfach|reemplaz|sustitu"
        "|reescrib|traduc|acort|simplific|remplac|réécri|tradui|raccourc|substitu|reescrev|traduz|encurt|замен|перепиш|переведи|сократи"
        "|упрост|استبدل|ترجم|اختصر|أعد كتابة",
        "替换|改写|翻译|缩短|简化|置き換え|書き直|翻訳|短く",
    ),
    "move": (
        "mov(?:e|es|ed|ing|a|er|as)\\b|verschieb|mueve|déplac|перенес|перемест|sposta|انقل|نقل",
        "移动|移到|移動|移し",
    ),
    "add": (
        "add|append|insert|note\\b|mention|includ|put\\b|füg|ergänz|vermerk|notier|nimm\\b.*\\bauf\\b|añad|agreg|anot|ajout|insèr|mentionn"
        "|acrescent|adicion|inclu|aggiung|добав|допиши|внеси|أضف|إضافة",
        "添加|增加|加上|加入|加一|追加|追記|加え",
    ),
    "type_hint": (
        "type.?hint|type annotation|annotat|typhinweis|typannotation|typangabe"
        "|anotaci\\w+ de tipo|annotations? de typ|indications? de type"
        "|anotaç\\w+ de tipo|аннотаци\\w+ тип|подсказк\\w+ тип|تلميحات",
        "类型注解|类型提示|类型标注|型ヒント|型注釈",
    ),
    "at_end": (
        "at the end|to the end|at the bottom|append|am ende|ans ende|anhäng|"
        "al final|in fondo|alla fine|à la fin|en fin de|no fim|no final|ao final"
        "|в кон(?:ец|це)|(?:في |إلى )?نهاية|آخر",
        "末尾|最后|最後|结尾|末に",
    ),
    "heading": (
        "heading|section|sezion|headline|title|titolo|überschrift|abschnitt|kapitel|secci|encabez|apartado|títul|titre|seç|cabeçalho|раздел|заголов"
        "|قسم|عنوان",
        "标题|一节|章节|小节|見出し|節|セクション",
    ),
    "output": (
        "print|output|display|shows?\\b|stamp|gibt\\b.*\\baus\\b|ausg(?:eb|ib)|druck|imprim|muestr|mostr|affich|exib|печата|вывод|вывед"
        "|выводит|напечата|يطبع|اطبع|تطبع|يعرض",
        "打印|输出|显示|表示|出力|プリント",
    ),
    "command_line": (
        "command.?line|argv|befehlszeile|kommandozeile|línea de (?:comandos|órdenes)|ligne de commande|linha de comando"
        "|командн\\w+ строк|سطر الأوامر",
        "命令行|コマンドライン",
    ),
    "folder": (
        "folder|director(?:y|io)|subfolder|ordner|verzeichnis|carpeta|dossier|répertoire|pasta|diretório|папк|каталог|директори"
        "|(?:ال)?مجلد|المجلد",
        "文件夹|目录|フォルダー?|ディレクトリ",
    ),
    "method": ("method|méthode|método|метод|طريقة|دالة", "方法|メソッド"),
    "polite": (
        "(?:can|could|would|will) (?:you|u|ya)\\b|please|pls|plz|bitte|por favor|s.il (?:te|vous) pla|per favore|пожалуйста"
        "|kannst|könntest|können sie|könnten|würdest|"
        "puedes|podrías|podría|peux-tu|pouvez|pourr(?:ais|iez)"
        "|tu peux|pode|poderia|можешь|можете|мог(?:ли)? бы|не мог|هل يمكنك|هل تستطيع|من فضلك",
        "能不能|可以.{0,60}吗|能.{0,60}吗|くれ(?:ます|ません)|もらえ|いただけ",
    ),
    "inform": (
        "explain|describ|summar|tell|show|read\\b|review|look|check|see\\b|open\\b|inspect|analy|compare|count|list\\b|view|think|help"
        "|what|why|how|which|who|where|when|^(?:is|are|does|do)\\b|hi\\b|hello|thank"
        "|erklär|beschreib|zeig|lies\\b|sag|fasse|nenn|wie\\b|was\\b|warum|wer\\b|wo\\b|welche"
        "|explic|describe|resum|lee\\b|dime|muéstra|qué|cuál|cuánt|cómo|por qué|quién|dónde"
        "|expliqu|décri|résum|lis\\b|dis-moi|montre|que\\b.*-t-|quel|combien|comment|pourquoi"
        "|explique|descrev|leia|diga|o que|qual|quanto|como\\b|por que"
        "|объясн|опиш|расскаж|прочита|скаж|покаж|что\\b|как\\b|чему|почему|сколько|какой|какая|кто\\b|где\\b"
        "|اشرح|صف\\b|لخص|اقرأ|أخبر|ما\\b|ماذا|كيف|لماذا|كم\\b|من\\b(?! فضلك)|أين",
        "解释|说明|描述|总结|告诉|什么|多少|为什么|怎么|如何|哪|説明|教えて|要約|何|なぜ|どう|いくつ",
    ),
    "work": (
        "schreib|erstell|erzeug|mach|füge|ergänz|änder|behebe|reparier|korrigier|setz|leg|benenn|bau|baue|implementier"
        "|escrib|crea|haz|añad|agreg|cambi|arregl|corrig|corríg|modific|pon\\b|implementa|genera"
        "|écri|crée|cree|fais|ajout|modifi|corrig|répar|mets|change|renomm|génère"
        "|escrev|cri[ae]|faç|faz|acrescent|adicion|mud|altera|corrij|coloqu|ger[ae]"
        "|созда|напиш|сделай|добав|измени|исправ|поменя|установ|переимен|реализ"
        "|أنشئ|اكتب|اصنع|أضف|غيّر|غير\\b|أصلح|عدّل|عدل|اجعل|احذف",
        "创建|写一|写 |编写|添加|增加|修改|改成|设为|修复|重命名|删除|生成|把|作成|書いて|作って|追加|変更|直して|修正",
    ),
}
"""Stems of words by what they mean, in nine languages; a hint beside names, quotes and marks, which need no language."""
_SENSES: Final = {sense: re.compile(rf"(?<!\w)(?:{latin})|{others}", re.IGNORECASE) for sense, (latin, others) in _STEMS.items()}


def _is_class(name: str) -> bool:
    return name[:1].isupper() and not name.isupper()


class AskedFunction(Struct, frozen=True):
    name: str
    parameters: tuple[str, ...]
    arguments: str = ""
    """As they are written."""

    @property
    def is_class(self) -> bool:
        return _is_class(self.name)


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
    number, sentence = r"(?:^|[\s,;:])(?:\d[.)]|[-*•])\s+", r"(?<!\.\w\.)(?<!\. B\.)(?<=[.;!])\s+|(?<=[。；！])|\n+"
    stems = "|".join(_STEMS[sense][0] for sense in ("add", "remove", "rename", "move"))
    verbs = rf"(?:{stems}|set|change|make|create|write|setz|änder|cambi|chang|mets|измени)\w*\s"
    further = rf",?\s(?:and|und|y|et|e|и)\s(?=(?:then |also |please )?{verbs})"
    return [each for each in re.split(f"{number}|{sentence}|{further}", request, flags=re.I) if re.search(r"\w", each)]


def means(request: str, sense: Sense) -> bool:
    """Check for a word of this sense outside of quotes and names; `inform`: among the first words."""
    words = prose_of(request)
    if sense == "inform":
        words = " ".join(words.split()[:4])[:40]
    return _SENSES[sense].search(words) is not None


def prose_of(request: str) -> str:
    """The request without quoted texts, calls, file names and identifiers."""
    for pattern in (_QUOTES, _CALL, _FILE_NAME, _SNAKE):
        request = pattern.sub(" _ ", request)
    return request


def mentioned_names(request: str) -> set[str]:
    """Words of the request that could be names of code or data; not those of files."""
    return set(re.findall(r"[A-Za-z_][\w-]*", _FILE_NAME.sub(" ", request), re.ASCII))


def is_question(request: str) -> bool:
    """A sentence ends with a question mark, outside of quotes and code."""
    return re.search(r"\?(?=[\s)\]»”\"']|$)|[？؟]|^\s*¿", prose_of(request)) is not None


def asks_to_know(request: str) -> bool:
    """A question, in any language, that does not ask politely for work: it names nothing that is to be made."""
    if not is_question(request):
        return False
    return not means(request, "polite") and not asked_parts(request).functions


def _literal_calls_removed(request: str) -> str:
    """The request without calls with literal arguments and their results, whose quotes are no texts to be written."""
    request = _CALL_RESULT.sub(lambda match: " " if match[2].strip() and is_literal(match[2]) else match[0], request)
    return _CALL.sub(lambda match: match[0] if not match[2].strip() or not is_literal(match[2]) else match[1], request)


def asked_parts(request: str) -> AskedParts:
    quoted = [next(filter(None, each)).strip() for each in _QUOTES.findall(_literal_calls_removed(request))]
    files = set(_FILE_NAME.findall(request))
    unquoted = _QUOTES.sub(" ", request)
    functions, names, calls = dict[str, AskedFunction](), list[str](), list[str]()
    for name, inside in _CALL.findall(request):
        if name in dir(builtins) or keyword.iskeyword(name):
            continue
        arguments = [part.strip() for part in inside.split(",") if part.strip()]
        parameters = [_PARAMETER.fullmatch(part) for part in arguments]
        if inside.strip() and is_literal(inside):
            (names if _is_class(name) else calls).append(name if _is_class(name) else f"{name}({inside})")
        elif all(parameters):
            functions.setdefault(name, AskedFunction(name, tuple(each[1] for each in parameters if each), inside))
    names += [next(filter(None, each)) for each in _AFTER_NOUN.findall(request)]
    names += [each for each in _SNAKE.findall(unquoted) if not any(each in file for file in files)]
    names += [each for each in quoted if re.fullmatch(r"[A-Za-z_]\w*", each, re.ASCII) and f"`{each}`" in request]
    stripped = _FILE_NAME.sub(" ", _CALL.sub(" ", unquoted))
    of_examples = _words_of_examples(request)
    names = [name for name in names if name not in of_examples]
    return AskedParts(
        functions=tuple(functions.values()),
        names=tuple(dict.fromkeys(name for name in names if name not in functions and not keyword.iskeyword(name))),
        calls=tuple(dict.fromkeys(calls)),
        quoted=tuple(dict.fromkeys(each for each in quoted if each not in files and not _CALL.fullmatch(each))),
        numbers=tuple(dict.fromkeys(_NUMBER.findall(stripped))),
        marked=tuple(
            dict.fromkeys(each for word in re.findall("[!-~]+", unquoted) if _MARKED.search(each := word.strip(".,;:!?()")))
        ),
    )


def result_examples(request: str) -> list[tuple[str, str]]:
    """Arguments and results as they are written, without quotes."""
    examples = [match.groupdict() for match in RESULT_EXAMPLE.finditer(request)]
    return [(each["text"] or each["word"], each["value"] or each["result"].rstrip(".;:!?")) for each in examples]


def _words_of_examples(request: str) -> set[str]:
    return {word for example in result_examples(request) for word in example}


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


def asked_values(request: str, old: str) -> dict[str, str]:
    """Values that the request gives to constants, and to keys of the old file, by name: `set DEBUG to False`."""
    pairs = re.findall(rf"(?<![\w./-])([A-Za-z_][\w-]*)[`'\"”»」]* ?({_BECOMES})? ?{_VALUE}", request) if old else ()
    return {
        name: value
        for name, link, value in pairs
        if (link and name.isupper()) or re.search(rf"(?m)^[ \"']*{name}[\"']? *[:=] *[^\s{{\[]", old)
    }


def asked_exchange(request: str, old: str) -> tuple[str, str] | None:
    """The old and the new value, where the request wants one in the place of the other."""
    parts, link = asked_parts(request), _INSTEAD.search(request)
    values = {*parts.numbers, *parts.quoted, *parts.marked} - {*parts.names}
    for end in (r"\w{3,}(?=\W{1,3}_)", r"(?<=_)\W{1,3}(\w{3,})"):  # the words beside the link
        values |= {*re.findall(end, _INSTEAD.sub("_", request, count=1))} if link else set()
    known = [each for each in values if num_of(each, old)]
    fresh = [each for each in values if each not in known]
    numbers = {each for each in fresh if each.isdigit()}
    fresh = [each for each in fresh if not any(num_of(number, each) for number in numbers - {each})]  # 9090 of "9090:80"
    fresh = [each for each in fresh if each in numbers or not any(num_of(each, other) for other in fresh if other != each)]
    if len(known) != 1 or len(fresh) != 1:
        return None
    becomes = re.search(rf"{re.escape(known[0])}.*?{_BECOMES}\W*{re.escape(fresh[0])}", request, re.S)
    return (known[0], fresh[0]) if link or becomes else None


def num_of(word: str, text: str) -> int:
    """How often the text has the word, outside of longer ones."""
    return len(re.findall(rf"(?<!\w){re.escape(word)}(?!\w)", text))


def removes(request: str, name: str, text: str = "") -> bool:
    """Check whether the request removes the definition of this name, not something in it, from the text that has it."""
    latin, others = _STEMS["remove"]
    request = _FILE_NAME.sub(" _ ", request)
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
    is_alone = num_of(name, text) < 2 and not known and not _INNER.search(request)
    it = (
        is_alone
        and _UNUSED.search(request)
        and re.search(
            rf"(?<!\w){name}(?!\w).*?(?<!\w)(?:(?:{_IT}) {verb}|{verb}(?:-l[aeo]|[ -](?:{_IT})(?!\w)|\W*{please}\W*$))",
            request,
            re.I | re.S,
        )
    )
    return bool(before or after or it or re.search(rf"(?:{others})除?{_NOUN_CJK}\s?\W?{name}\W?(?:$|[。，,.])", request, re.A))


def is_literal(arguments: str) -> bool:
    """Tells whether these are literals, with commas."""
    try:
        ast.literal_eval(f"({arguments},)")
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return False
    return True


def named_functions(request: str, text: str) -> tuple[AskedFunction, ...]:
    """Functions with the parameters that the request gives; for a call such as `mean([])` with those that the text defines."""
    parts = asked_parts(request)
    call = parts.calls[0].partition("(")[0] if len(parts.calls) == 1 and not parts.functions else ""
    definition = re.search(rf"(?m)^def ({call}\([^()]*\))", text) if call else None
    return asked_parts(definition[1]).functions if definition else parts.functions


def asked_formula(request: str, text: str = "") -> str:
    """The expression over the parameters of `named_functions` that the request states: `a * 3 + b`; empty if none or several."""
    names = {name for each in named_functions(request, text) for name in each.parameters}
    formulas = set(_expressions(request, names)) if names else set()
    return formulas.pop() if len(formulas) == 1 else ""


def asked_sum(request: str) -> str:
    """The sum of numbers that a question states, with its value: `30 + 9 = 39`; empty if none."""
    for text in _expressions(request, set()) if asks_to_know(request) else ():
        if re.search(r"\d[-/%]\d", text):  # a date, a range
            continue
        nodes = list(ast.walk(ast.parse(text, mode="eval")))
        if all(isinstance(node, _SUM) or type(getattr(node, "value", None)) in (int, float) for node in nodes):
            with contextlib.suppress(ArithmeticError, ValueError):
                value = eval(text, {})  # numbers and five operators
                return f"{text} = {value if isinstance(value, int) else format(value, '.12g')}"
    return ""


def repeat_count(request: str) -> int:
    """How often the request wants its only quoted text: `"a" exactly 3 times`, `3 times "a"`; 0 if it does not say so."""
    quotes = list(_QUOTES.finditer(request))
    if len(quotes) != 1:
        return 0
    begin, end = quotes[0].span()
    before, after = re.search(rf"(?:{TIMES})\W{{0,3}}$", request[:begin], re.I), re.search(TIMES, request[end:], re.I)
    is_near = after and after.start() <= MOST_BETWEEN and not re.search(r"[,.;:，。；：]", request[end : end + after.start()])
    match = before or (after if is_near else None)
    return int(match[1] or match[2]) if match else 0


def _expressions(request: str, names: set[str]) -> Iterator[str]:
    """Calculations in the prose of a request that use these names and all of them are known, the longest first."""
    known = names | set(_OF_FORMULAS.split())
    words = re.sub(r"[^\x00-\x7f]+", " \0 ", request).split()
    stretch: list[str] = []
    for word in (*words[:MOST_WORDS], "\0"):
        unquoted = re.sub(r"'[^']*'|\"[^\"]*\"|\.[A-Za-z_]\w*|\d[\w.]*", "", word)
        if "\0" not in word and known.issuperset(re.findall(r"[A-Za-z_]\w*", unquoted)):
            stretch.append(word)
            continue
        yield from _calculation(stretch, names)
        stretch = []


def _calculation(words: list[str], names: set[str]) -> Iterator[str]:
    spans = sorted(itertools.combinations(range(min(len(words), LONGEST_FORMULA) + 1), 2), key=lambda span: span[0] - span[1])
    for first, last in spans:
        text = " ".join(words[first:last]).strip("`").rstrip(".,;:!?").strip("`")
        if text[:1] in ("", "+", "-"):  # the rest of a calculation with unknown names
            continue
        with contextlib.suppress(SyntaxError, ValueError, RecursionError, MemoryError):
            tree = ast.parse(text, mode="eval")
            used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
            if isinstance(tree.body, ast.BinOp | ast.Call | ast.Subscript | ast.IfExp) and (used & names or not names):
                yield text
                return


def stated_results(request: str) -> dict[str, str]:
    """Literals that the request gives as results of calls, by the call as in `asked_parts`."""
    results = {}
    for match in _CALL.finditer(request):
        stated = _STATED.match(request, match.end() - 1)
        if stated and match[2].strip() and is_literal(match[2]) and is_literal(stated[1]):
            results[f"{match[1]}({match[2]})"] = stated[1]
    return results


def expected_values(request: str) -> tuple[str, ...]:
    """Literals that the request gives outside of calls: results of these."""
    quoted = [next(filter(None, each)).strip() for each in _QUOTES.findall(_CALL.sub(" ", request))]
    return (*asked_parts(request).numbers, *quoted, *re.findall(r"(?<![\w.])(?:True|False|None)(?!\w)", request))


def asked_folder(request: str) -> str:
    """The folder that the request names as a place: `in the folder src`, `src/`; empty if none."""
    if explicit := re.search(r"(?<![\w./~-])((?:[\w-]+/)+)(?![\w./])", request, re.ASCII):
        return explicit[1].rstrip("/")
    sense = _SENSES["folder"].pattern
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


def missing_parts(request: str, path: str, text: str, old: str = "") -> list[str]:
    """Parts of the request that the new text of its only file lacks, as ends of "it has no …"; `old`: the text before."""
    parts, is_code = asked_parts(request), PurePath(path).suffix.lower() == ".py"
    goes = means(request, "remove") or means(request, "rename") or means(request, "rewrite")
    missing: list[str] = []
    if is_code:
        missing += _missing_functions(parts, text, old, may_go=goes)
    for name in parts.names:
        if not _has_name(text, name) and not _has_name(old, name) and not (goes and len(parts.names) == 1):
            missing.append(name)
    texts = missing_texts(request, text, old)
    if PurePath(path).name == "Makefile":
        targets = [next(filter(None, each)) for each in _TARGET.findall(request)]
        missing += [f"target {each}" for each in targets if not re.search(rf"(?m)^{re.escape(each)}\s*:(?:.*\S|.*\n\t)", text)]
    for listed in _LISTED.findall(_CALL.sub(" ", request)) if is_code else ():
        values = [each.split()[-1] for each in listed.split(",") if each.strip()]
        in_one, fresh = "".join(values), re.sub(r'"""[\s\S]*?"""|#.*', "", text.replace(old.strip(), "") if old else text)
        if in_one.lower() not in fresh.lower() and not all(
            re.search(rf"(?<!\w){re.escape(each)}(?!\w)", fresh) for each in values
        ):
            missing.append(listed)
    if PurePath(path).suffix.lower() not in _PROGRAMS:  # a folder is the place of a file
        is_list = PurePath(path).name.startswith(".")
        marked = marked_lines(request, path)
        texts += [each for each in marked if each not in text + old and (is_list or not each.endswith("/"))]
    for name, value in asked_values(request, old).items():
        if not re.search(rf"(?m)^[ \"']*(?:\w+ )?{name}\b.*{re.escape(value.strip(chr(34)))}", text):
            missing.append(f"{name} = {value}")
    if (exchange := asked_exchange(request, old)) and num_of(exchange[0], text) >= num_of(exchange[0], old):
        missing.append(f"{exchange[1]} instead of {exchange[0]}")
    missing += _unchanged_sections(request, path, text, old)
    defined = r"(?m)^\s*(?:def|class|function|func) (\w+)"
    missing += [
        f"removal of {name}"
        for name in re.findall(defined, old)
        if removes(request, name, old) and name in re.findall(defined, text)
    ]
    if PurePath(path).suffix.lower() in _PROGRAMS and means(request, "output"):  # a number may be computed: its output counts
        texts = [each for each in texts if each.startswith("“") and not EQUATION.fullmatch(each[1:-1])]
    missing += texts
    if PurePath(path).suffix.lower() in _PROGRAMS:
        missing += [each for each in re.findall(r"(?<!\S)--[a-z][\w-]+", request) if _OPTION.search(request) and each not in text]
        raised = [each[0] or each[1] for each in _RAISED.findall(request)]
        missing += [f"raise {each}" for each in raised if num_of(each, text) <= num_of(each, old)]
    if means(request, "command_line") and is_code and not re.search(r"\bargv\b|argparse|\bclick\b|fileinput", text):
        missing.append("argument of the command line (sys.argv)")
    if parts.quoted and PurePath(path).suffix.lower() in (".md", ".txt", ".rst"):
        missing += _misplacement(request, parts.quoted, text)
    return list(dict.fromkeys(missing))


def _unchanged_sections(request: str, path: str, text: str, old: str) -> list[str]:
    """The first section that the request names, if none of those has changed."""
    heads = re.findall(r"\[[\w.-]+\]", request)
    if (
        path.endswith(".md")
        and text.count("\n") > old.count("\n")
        and not any(means(request, sense) for sense in ("remove", "rename", "rewrite", "at_end", "heading"))
    ):
        words = set(re.findall(r"\w{4,}", prose_of(request).lower()))
        heads += [line for line in re.findall(r"(?m)^##+ .+$", old) if words & set(re.findall(r"\w+", line.lower()))]
    if PurePath(path).suffix.lower() in (".ini", ".cfg", ".toml"):
        words = set(re.findall(r"[\w.-]*\w", request.lower()))
        named = [head for head in re.findall(r"(?m)^\[[^\]]+\]", old) if head.strip("[]").lower() in words]
        heads += named if len(named) == 1 else []
    heads = [head for head in heads if _section(old, head)]
    is_same = heads and all(_section(text, head) == _section(old, head) for head in heads)
    return [f"change in {heads[0]}"] if is_same else []


def _section(text: str, head: str) -> str:
    """The lines of a section of INI, TOML or Markdown, with those below it and its head; empty if there is none."""
    next_one = r"\[" if head.startswith("[") else f"#{{2,{len(head.split()[0])}}} "
    match = re.search(rf"(?ms)^{re.escape(head)}(?!\w).*?(?=^{next_one}|\Z)", text)
    return match[0].rstrip() if match else ""


def _misplacement(request: str, quoted: tuple[str, ...], text: str) -> list[str]:
    """A heading that is none, and a text that is not at the end."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    headings = [re.sub("^#+ ", "", line) for line in lines if line.startswith("#")]
    is_heading = not means(request, "heading") or quoted[0].lstrip("# ") in headings or not any("#" in line for line in lines)
    missing = [] if is_heading else [f"heading “{quoted[0]}”"]
    if means(request, "at_end") and not any(quoted[-1] in line for line in lines[-LAST_LINES:]):
        missing.append(f"“{quoted[-1]}” at the end")
    return missing


def asked_names(request: str) -> list[str]:
    """Functions and other identifiers that a result has to hold; not where something is removed or renamed."""
    parts = asked_parts(request)
    if any(means(request, sense) for sense in ("remove", "rename", "rewrite")):
        return []
    return [*(each.name for each in parts.functions), *parts.names]


def missing_texts(request: str, text: str, old: str = "") -> list[str]:
    """Quoted texts and numbers of the request that are neither in the text nor were in the old one.

    A word in capitals stands for another where the rest of a text has small letters: `Hello, NAME!`.
    """
    parts, of_examples = asked_parts(_EXAMPLE.sub(" ", request)), _words_of_examples(request)
    plain, missing = _plain(f"{text}\n{old}"), []
    for each in parts.quoted:
        pieces = PLACEHOLDER.split(_plain(each)) if re.search("[a-z]", each) else [_plain(each)]
        if (
            each not in of_examples
            and not (_OF_ERROR.search(each) or _COMMAND.match(each))
            and not all(piece in plain for piece in pieces)
            and not re.search(r"[*?{}<>]|\.\w{1,4}$", each)
        ):
            missing.append(f"“{each}”")
    if parts.calls:  # the numbers are results of these calls
        return missing
    numbers = {float(each) for each in re.findall(r"\d+(?:\.\d+)?", f"{text}\n{old}".replace("_", ""))}
    near = numbers | {each + shift for each in numbers for shift in (-1, 1)}
    return missing + [each for each in parts.numbers if abs(float(each)) > NEAR_SMALL and abs(float(each)) not in near]


def _plain(text: str) -> str:
    return " ".join(text.replace("\\", "").split())


def _has_name(text: str, name: str) -> bool:
    return re.search(rf"(?<![A-Za-z0-9_]){re.escape(name)}(?![A-Za-z0-9_])", text) is not None


def _missing_functions(parts: AskedParts, text: str, old: str, *, may_go: bool) -> list[str]:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    defined = {
        node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    }
    bound = {alias.asname or alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names}
    bound |= {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    missing = []
    for each in parts.functions:
        node = defined.get(each.name)
        if node is None:
            was_there = re.search(rf"\b(?:def|class) {each.name}\b", old)
            if each.name not in bound and not (may_go and was_there):
                missing.append(("class " if each.is_class else "function ") + each.name)
            continue
        accepted = _parameters(node)
        if accepted is not None:
            missing += [f"argument {name} of {each.name}" for name in each.parameters if name not in accepted]
    return missing


def _parameters(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> set[str] | None:
    if isinstance(node, ast.ClassDef):
        inits = [each for each in node.body if isinstance(each, ast.FunctionDef) and each.name == "__init__"]
        if not inits:
            return None if node.bases or node.decorator_list else set()
        node = inits[0]
    arguments = node.args
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
    return {each.arg for each in every if each}
