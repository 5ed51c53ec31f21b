"""Tells from the words of a request whether it asks for work, and from the calls of a turn whether work was done."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final, Literal

from wolo.messages.message import Message
from wolo.messages.parts import ToolPart
from wolo.models.local.checks.asked_parts import asked_parts, asks_to_know
from wolo.models.local.checks.senses import is_order, means, pattern_of

Work = Literal["", "change", "run", "both"]
"""Effect that a request asks for: changed files, a command, either of them; empty: an answer."""

_LEAD: Final = re.compile(
    r"(?:(?:please|kindly|now|then|also|just|next|first|finally|hi|hello|hey|ok|okay|and|so|(?:can|could|would|will) you"
    r"|i(?: would|'d)? (?:want|need|like) you to|you (?:should|must|have to)|let'?s"
    r"|help me(?: to)?|go ahead and|wolo)\b[,:]?\s*)*",
    re.I,
)
_CHANGE: Final = re.compile(
    r"write|create|make|generate|build|implement|develop|program|code|add|change|modify|edit|update|fix|repair|correct|rename"
    r"|replace|remove|delete|refactor|convert|improve|extend|rewrite|move|insert|append|translate|sort|split|merge|extract"
    r"|simplify|optimi[sz]e|clean|format|document|debug|save|store|put|turn|set|increase|decrease|port|complete|finish"
)
_RUN: Final = re.compile(r"run|execute|start|install|commit|launch|rerun")
_BY_RUNNING: Final = re.compile(r"\b(?:run|running|execut\w+)\b", re.I)
_PROSE: Final = re.compile(
    r"\b(?:poem|haiku|limerick|joke|story|song|sentence|word|paragraph|essay|e-?mail|letter|suggestions?|guess|case|sense|sure"
    r"|explanation|summary|comparison|regex|expression|answer|question|example"
    r"|gedicht|geschichte|witz|brief|poema|cuento|chiste|carta|poème|histoire|blague|lettre|história|piada|стих\w*|письмо|قصيدة)\b|诗|俳句|詩",
    re.I,
)
_CODE: Final = re.compile(
    r"\b(?:files?|folder|director(?:y|ies)|scripts?|programs?|apps?|application|game|web ?page|website|project|bugs?|tests?"
    r"|read ?me|makefile|dockerfile|module|package)\b",
    re.I,
)
_NAME: Final = re.compile(r"[\w/~-]\.(?!(?:g|e|com|org|net|io)\b)[A-Za-z]\w{0,4}\b")
_FAULT: Final = re.compile(
    r"\b(?:crash\w*|fails|failing|broken|wrong|bug|(?:does not|doesn't) work"
    r"|should (?:return|print|be|give|handle|say|raise|accept))\b",
    re.I,
)
_ASKING: Final = re.compile(
    r"\s*(?:how|what|why|where|which|who|is|are|does|do|explain|describe|tell|show|list|find|summar\w+)\b", re.I
)
FILES: Final = re.compile(
    r"\bfiles?\b|datei|ordner|verzeichnis|archivo|fichero|carpeta|fichier|dossier|arquivo|pasta|файл|папк|ملف|مجلد|文件|目录|ファイル|フォルダ",
    re.I,
)
_LOOKING: Final = re.compile(
    r"(?:ls|cat|head|tail|pwd|echo|printf|grep|rg|find|wc|which|type|file|stat|tree|python3?|node|bash|sh|ruby|pytest|less|diff|date"
    r"|git (?:status|log|diff|show|branch))\b"
)
_SHOWING: Final = re.compile(
    r"(?:ls|cat|head|tail|pwd|echo|printf|grep|rg|find|wc|which|type|file|stat|tree|diff|date$|df|du|free|uptime|uname|ps|id|whoami|lsof|sort|uniq|cut|nl"
    r"|git (?:status|log|diff|show|blame|ls-files|remote -v$|branch(?: -[avr]+)?$))(?![\w-])"
)
_ACTING: Final = re.compile(
    r"[<>&;$`{\\\r\n]|[\"']-|\w[\"']{2}\w|\s-(?:o|O|R\b|C\b|[Ii]\b|s\b|set?\b|delete|exec|ok|fprint|fls)|\b(?:file|tree|sort)\s.*-\w*[CoR]"
    r"|\s--(?:ou|comp|pre|host|ext|textconv|set|follow|open)|\buniq\s+[^-\s]\S*\s+\S|\btail\b.*\s-\w*[fF]|/dev/"
)
"""Redirections, further commands, quotes that hide an option, and options that write, run a program or never end."""
_READING: Final = "read grep glob todo ask present_plan fetch web_search skill find_tools expand_message remember"


def asks_for(request: str) -> Work:
    """The effect that the words ask for, of whatever object: "create a calculator", "make it faster", „Ändere a.py“."""
    if asks_to_know(request):
        return ""
    clauses = re.split(r"[.!?;:]\s+|\n|,\s*|\b(?:and|then)\b", request.strip())
    verbs = {word for clause in clauses if (word := _first_word(clause))}
    changes, runs = any(map(_CHANGE.fullmatch, verbs)), any(map(_RUN.fullmatch, verbs))
    if changes and _PROSE.search(request) and not _names_file(request):
        changes = False
    if not changes and not runs:  # "average([]) crashes. It should return 0."
        changes = bool(_FAULT.search(request)) and "?" not in request and not _ASKING.match(request)
    if (
        not changes and not runs and (not means(request, "inform") or is_order(request))
    ):  # other languages: stems, and names of what is to be made
        parts = asked_parts(request)
        changes = means(request, "work") or bool((parts.functions or parts.calls) and _names_file(request))
        changes = changes and (_names_file(request) or not _PROSE.search(request))
    if changes:
        return "both" if runs or _BY_RUNNING.search(request) else "change"
    return "run" if runs else ""


def asks_for_files(request: str) -> Work:
    """As `asks_for`, of files and programs only: an answer may hold a function, but no bug is fixed by words."""
    work = asks_for(request)
    return work if _names_file(request) or _CODE.search(request) else ""


def wants_answer(request: str) -> bool:
    """A question, or an order to explain, in any language that is known."""
    if asks_to_know(request) or asks_for(request):
        return asks_to_know(request)
    begin = _LEAD.match(request.strip())
    order = request.strip()[begin.end() if begin else 0 :]
    return not is_order(order) and (means(order, "inform") or _ASKING.match(order) is not None)


def is_about_words(request: str) -> bool:
    """A question for a command, or one in another language than English without a file or folder: no command answers it."""
    if re.match(r"\s*(?:which|what)\b[\w ]{,20}\bcommand\b", request, re.I) or pattern_of("how_to").search(request):
        return asks_to_know(request)
    return asks_to_know(request) and not _ASKING.match(request) and not FILES.search(request)


def is_about_files(request: str) -> bool:
    return FILES.search(request) is not None


def is_harmless(command: str) -> bool:
    """Tells whether a command, or a chain of pipes, only shows something: what may answer a question."""
    return not _ACTING.search(command) and all(_SHOWING.match(each.strip()) for each in command.split("|"))


def was_done(work: Work, calls: Iterable[ToolPart]) -> bool:
    """Tells whether the effect happened, or a person or a rule did not allow it."""
    return any(_counts(work, call) for call in calls)


def calls_since_prompt(messages: Sequence[Message]) -> list[ToolPart]:
    begins = max((at for at, message in enumerate(messages) if message.is_prompt), default=-1)
    return [call for message in messages[begins + 1 :] for call in message.calls]


def _counts(work: Work, call: ToolPart) -> bool:
    if call.outcome in ("denied_by_person", "denied_by_rule"):
        return True
    if call.tool != "shell":
        return not call.is_error and call.tool not in _READING.split()
    if work == "run":
        return call.outcome != "invalid"
    command = str(call.input.get("command", "")).strip()
    only_looks = _LOOKING.match(command) and not re.search(r">|&&|;|\btee\b|-delete\b|-exec", command)
    return not call.is_error and (work == "both" or not only_looks)


def _first_word(clause: str) -> str:
    begin = _LEAD.match(clause.strip())
    found = re.match(r"[A-Za-z]+", clause.strip()[begin.end() if begin else 0 :])
    return found[0].lower() if found else ""


def _names_file(request: str) -> bool:
    return _NAME.search(request) is not None
