"""Small tasks for local models, drawn by seed: twelve kinds, nine languages, files of up to 400 lines.

The seed settles everything: `draw(17)` is the same task on every machine. Rules of wolo are made with seeds 0–99; seeds
1000–1099 are for measuring alone.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field

LANGUAGES = ("en", "de", "es", "fr", "pt", "zh", "ja", "ru", "ar")


@dataclass(frozen=True)
class Task:
    kind: str
    name: str
    prompt: str
    check: str
    """Python that raises if the work is wrong. `load(path)`, `run(path, *arguments)`, `read(path)` and `answer` are defined."""
    files: dict[str, str] = field(default_factory=dict)
    kept: str = "pass"
    """The same for content that nobody asked to lose."""


@dataclass(frozen=True)
class Draft:
    """A task before its sentence: the slots of the template, and the rest."""

    slots: dict[str, object]
    check: str
    files: dict[str, str] = field(default_factory=dict)
    kept: str = "pass"


def draw(seed: int) -> Task:
    dice = random.Random(seed)
    kind = KINDS[seed % len(KINDS)]
    language = "en" if dice.random() < 0.4 else dice.choice(LANGUAGES[1:])
    draft = _DRAFTS[kind](dice)
    sentences = _SENTENCES["tested" if "name" in draft.slots and kind == "place" else kind]
    sentence = sentences[LANGUAGES.index(language)].format(**draft.slots)
    return Task(kind, f"{seed} {language}", sentence, draft.check, draft.files, draft.kept)


# Parts

_VERBS = [
    "scale",
    "shift",
    "blend",
    "trim",
    "score",
    "weigh",
    "mix",
    "fold",
    "rank",
    "pack",
    "stamp",
    "grade",
    "tally",
    "clamp",
    "route",
]
_NOUNS = [
    "price",
    "speed",
    "label",
    "depth",
    "signal",
    "ticket",
    "crate",
    "garden",
    "packet",
    "orbit",
    "ledger",
    "lantern",
    "harbor",
    "needle",
    "meadow",
]
_PHRASES = ["green light", "cold water", "all is well", "seven stones", "late train", "open door", "paper boat", "north wind"]
_FORMULAS = (
    ("a, b", "a * {n} + b", ((2, 3), (5, 1))),
    ("a, b", "(a - b) * {n}", ((9, 4), (2, 6))),
    ("value", "value ** 2 + {n}", ((3,), (0,))),
    ("text", "text[::-1] + '{n}'", (("abc",), ("x",))),
    ("items", "len(items) * {n}", (([1, 2, 3],), ([],))),
    ("text", "text.upper() * {small}", (("ab",), ("q",))),
)


@dataclass(frozen=True)
class Formula:
    name: str
    arguments: str
    body: str
    calls: str
    """Assertions about `m`, the loaded module."""

    @property
    def head(self) -> str:
        return f"{self.name}({self.arguments})"


def _formula(dice: random.Random, owner: str = "m") -> Formula:
    name = f"{dice.choice(_VERBS)}_{dice.choice(_NOUNS)}"
    arguments, body, samples = dice.choice(_FORMULAS)
    body = body.format(n=dice.randint(3, 90), small=dice.randint(2, 4))
    results = [eval(f"(lambda {arguments}: {body})")(*sample) for sample in samples]  # our own table
    calls = "; ".join(
        f"assert {owner}.{name}({', '.join(map(repr, sample))}) == {result!r}"
        for sample, result in zip(samples, results, strict=True)
    )
    return Formula(name, arguments, body, calls)


def _module(dice: random.Random, size: int) -> tuple[str, list[Formula], str]:
    """A Python module of about `size` lines: its text, its functions, and the name of a constant in it."""
    constant, number = f"{dice.choice(_NOUNS).upper()}_LIMIT", dice.randint(10, 999)
    lines = [f'"""Helpers for a {dice.choice(_NOUNS)}."""', "", f"{constant} = {number}", 'TITLE = "unused"', ""]
    functions: dict[str, Formula] = {}
    while not functions or len(lines) < size:
        each = _formula(dice)
        if each.name in functions:
            continue
        functions[each.name] = each
        lines += ["", f"def {each.head}:", f'    """Part {len(functions)}."""', f"    return {each.body}", ""]
    last = list(functions.values())[-1]
    lines += ["", 'if __name__ == "__main__":', f"    print({_call(last)})", ""]
    return "\n".join(lines), list(functions.values()), constant


def _call(formula: Formula) -> str:
    return formula.calls.partition("m.")[2].partition(" == ")[0]


def _kept(path: str, functions: list[Formula], constant: str, *without: str) -> str:
    whole = "; ".join(each.calls for each in functions if each.name not in without)
    held = "" if constant in without else f"; assert isinstance(m.{constant}, int)"
    return f"m = load({path!r}); {whole or 'pass'}{held}; assert m.TITLE == 'unused'"


def _file(dice: random.Random, ending: str) -> str:
    return f"{dice.choice(_NOUNS)}_{dice.choice(_NOUNS)}.{ending}"


def _size(dice: random.Random) -> int:
    return dice.choice((12, 25, 40, 80, 160, 380))


# Kinds


def _function(dice: random.Random) -> Draft:
    path, each = _file(dice, "py"), _formula(dice)
    return Draft({"path": path, "head": each.head, "body": each.body}, f"m = load({path!r}); {each.calls}")


def _class(dice: random.Random) -> Draft:
    path, name = _file(dice, "py"), dice.choice(_NOUNS).capitalize() + dice.choice(_NOUNS).capitalize()
    method, number = dice.choice(_VERBS), dice.randint(2, 40)
    slots = {"path": path, "name": name, "method": method, "body": f"self.start + {number} * n"}
    return Draft(slots, f"m = load({path!r}); assert m.{name}(5).{method}(3) == {5 + 3 * number}")


def _output(dice: random.Random) -> Draft:
    path, phrase, count = _file(dice, dice.choice(("py", "py", "sh"))), dice.choice(_PHRASES), dice.randint(2, 6)
    check = f"assert run({path!r}).splitlines() == [{phrase!r}] * {count}, run({path!r})"
    return Draft({"path": path, "phrase": phrase, "count": count}, check)


def _argument(dice: random.Random) -> Draft:
    path, number = _file(dice, "py"), dice.randint(3, 60)
    check = f"assert run({path!r}, '7').split()[-1] == '{7 * number}' and run({path!r}, '12').split()[-1] == '{12 * number}'"
    return Draft({"path": path, "number": number}, check)


def _addition(dice: random.Random) -> Draft:
    path, each = _file(dice, "py"), _formula(dice)
    text, functions, constant = _module(dice, _size(dice))
    kept = _kept(path, functions, constant, each.name)
    return Draft({"path": path, "head": each.head, "body": each.body}, f"m = load({path!r}); {each.calls}", {path: text}, kept)


def _constant(dice: random.Random) -> Draft:
    path, number = _file(dice, "py"), dice.randint(1000, 9999)
    text, functions, constant = _module(dice, _size(dice))
    check = f"assert load({path!r}).{constant} == {number}"
    slots = {"path": path, "name": constant, "number": number}
    return Draft(slots, check, {path: text}, _kept(path, functions, constant, constant))


def _renaming(dice: random.Random) -> Draft:
    path, (text, functions, constant) = _file(dice, "py"), _module(dice, _size(dice))
    old, new = functions[-1], f"{dice.choice(_VERBS)}_all"
    calls = old.calls.replace(f"m.{old.name}", f"m.{new}")
    check = f"m = load({path!r}); {calls}; assert not hasattr(m, {old.name!r}); run({path!r})"
    slots = {"path": path, "old": old.name, "new": new}
    return Draft(slots, check, {path: text}, _kept(path, functions, constant, old.name))


def _repair(dice: random.Random) -> Draft:
    path, (text, functions, constant) = _file(dice, "py"), _module(dice, _size(dice))
    name, number = f"{dice.choice(_VERBS)}_pair", dice.randint(2, 30)
    bad, good = f"return left + right - {number}", 20 + 6 - number
    broken = text.replace("\n\ndef ", f"\n\ndef {name}(left, right):\n    {bad.replace('+', '*')}\n\n\ndef ", 1)
    check = f"m = load({path!r}); assert m.{name}(20, 6) == {good}; assert m.{name}(3, 3) == {6 - number}"
    slots = {"path": path, "name": name, "good": good, "wrong": 20 * 6 - number, "body": f"left + right - {number}"}
    return Draft(slots, check, {path: broken}, _kept(path, functions, constant, name))


def _data(dice: random.Random) -> Draft:
    ending, keys = dice.choice(("json", "toml", "yaml", "ini")), dice.sample(_NOUNS, 6)
    values = [dice.randint(1, 900) for _ in keys]
    path, rows, number = _file(dice, ending), dict(zip(keys, values, strict=True)), dice.randint(1000, 9999)
    text = {
        "json": json.dumps(rows, indent=2) + "\n",
        "toml": "# settings\n" + "".join(f"{key} = {value}\n" for key, value in rows.items()),
        "yaml": "# settings\n" + "".join(f"{key}: {value}\n" for key, value in rows.items()),
        "ini": "[main]\n" + "".join(f"{key} = {value}\n" for key, value in rows.items()),
    }[ending]
    key = dice.choice((dice.choice(keys), dice.choice([noun for noun in _NOUNS if noun not in keys])))
    mark = ":" if ending in ("json", "yaml") else "="
    row = r"rows = dict(re.findall(r'^\W*(\w+)\W*[:=]\s*(\d+),?\s*$', read(" + repr(path) + "), re.M))"
    valid = f"\njson.loads(read({path!r}))" if ending == "json" else ""
    others = {name: str(value) for name, value in rows.items() if name != key}
    kept = f"{row}\nassert {others!r}.items() <= rows.items(), rows"
    return Draft(
        {"path": path, "key": key, "number": number, "mark": mark},
        f"{row}\nassert rows.get({key!r}) == '{number}', rows{valid}",
        {path: text},
        kept,
    )


def _prose(dice: random.Random) -> Draft:
    path, phrase = _file(dice, "md"), dice.choice(_PHRASES)
    heading = dice.choice(_NOUNS).capitalize()
    sections = [
        noun.capitalize()
        for noun in dice.sample(_NOUNS, dice.choice((2, 5, 30 if dice.random() < 0.2 else 9)) % 15)
        if noun.capitalize() != heading
    ]
    lines = [f"# The {dice.choice(_NOUNS)}", ""]
    for number, section in enumerate(sections):
        lines += [
            f"## {section}",
            "",
            f"Note {number}: {dice.choice(_PHRASES)}, {dice.choice(_PHRASES)}.",
            f"- item {number}",
            "",
        ]
    check = (
        f"lines = [line.strip() for line in read({path!r}).splitlines() if line.strip()]\n"
        f"assert any(line.lstrip('# ') == {heading!r} and line.startswith('#') for line in lines[-3:]), lines[-3:]\n"
        f"assert {phrase!r} in lines[-1], lines[-1]"
    )
    kept = f"now = read({path!r}).splitlines()\nassert all(line in now for line in {lines!r} if line)"
    return Draft({"path": path, "heading": heading, "phrase": phrase}, check, {path: "\n".join(lines)}, kept)


def _question(dice: random.Random) -> Draft:
    if dice.random() < 0.3:
        a, b = dice.randint(11, 40), dice.randint(2, 9)
        return Draft({"about": f"{a} + {b}", "path": "Python"}, f"assert '{a + b}' in answer, answer")
    path, (text, _, constant) = _file(dice, "py"), _module(dice, dice.choice((12, 25, 40, 80)))
    number = text.partition(f"{constant} = ")[2].partition("\n")[0]
    return Draft({"about": constant, "path": path}, f"assert {number!r} in answer, answer", {path: text})


def _folder(dice: random.Random) -> Draft:
    folder, name, each = dice.choice(_NOUNS), dice.choice(_VERBS), _formula(dice)
    path = f"{folder}/{name}.py"
    check = f"m = load({path!r}); {each.calls}; assert not os.path.exists('{name}.py')"
    return Draft({"folder": folder, "path": f"{name}.py", "head": each.head, "body": each.body}, check)


def _pytest(dice: random.Random) -> Draft:
    path, each = _file(dice, "py"), _formula(dice)
    check = (
        f"m = load({path!r}); {each.calls}\nassert {each.name!r} in read('test_{path}')\n"
        f"subprocess.run([sys.executable, '-m', 'pytest', '-q', 'test_{path}'], check=True, capture_output=True, timeout=60)"
    )
    slots = {"path": path, "head": each.head, "body": each.body, "name": each.name}
    return Draft(slots, check)


_DRAFTS: dict[str, Callable[[random.Random], Draft]] = {
    "function": _function,
    "class": _class,
    "output": _output,
    "argument": _argument,
    "addition": _addition,
    "constant": _constant,
    "renaming": _renaming,
    "repair": _repair,
    "data": _data,
    "prose": _prose,
    "question": _question,
    "place": lambda dice: _folder(dice) if dice.random() < 0.6 else _pytest(dice),
}
KINDS = tuple(_DRAFTS)

_SENTENCES: dict[str, tuple[str, ...]] = {
    "function": (
        "Write {path} with a function {head} that returns {body}.",
        "Schreibe {path} mit einer Funktion {head}, die {body} zurückgibt.",
        "Crea {path} con una función {head} que devuelve {body}.",
        "Écris {path} avec une fonction {head} qui renvoie {body}.",
        "Crie {path} com uma função {head} que devolve {body}.",
        "写一个 {path}，里面有函数 {head}，返回 {body}。",
        "{path} を作成し、{body} を返す関数 {head} を書いてください。",
        "Создай {path} с функцией {head}, которая возвращает {body}.",
        "اكتب {path} وفيه الدالة {head} التي تعيد {body}.",
    ),
    "class": (
        "Write {path} with a class {name}(start) that has a method {method}(n), which returns {body}.",
        "Schreibe {path} mit einer Klasse {name}(start), deren Methode {method}(n) {body} zurückgibt.",
        "Crea {path} con una clase {name}(start) cuyo método {method}(n) devuelve {body}.",
        "Écris {path} avec une classe {name}(start) dont la méthode {method}(n) renvoie {body}.",
        "Crie {path} com uma classe {name}(start) cujo método {method}(n) devolve {body}.",
        "写一个 {path}，包含类 {name}(start)，它的方法 {method}(n) 返回 {body}。",
        "{path} にクラス {name}(start) を書いてください。メソッド {method}(n) は {body} を返します。",
        "Создай {path} с классом {name}(start), метод {method}(n) которого возвращает {body}.",
        "اكتب {path} وفيه الصنف {name}(start) ودالته {method}(n) تعيد {body}.",
    ),
    "output": (
        'Make {path}: it prints "{phrase}" exactly {count} times, each on its own line.',
        "Erstelle {path}: es gibt genau {count} Mal „{phrase}“ aus, jedes Mal in einer eigenen Zeile.",
        "Crea {path}: imprime «{phrase}» exactamente {count} veces, cada vez en su propia línea.",
        "Crée {path} : il affiche « {phrase} » exactement {count} fois, chaque fois sur sa propre ligne.",
        'Crie {path}: imprime "{phrase}" exatamente {count} vezes, cada uma em sua linha.',
        "创建 {path}：把“{phrase}”打印 {count} 次，每次一行。",
        "{path} を作成してください。「{phrase}」を {count} 回、一行ずつ表示します。",
        "Создай {path}: он печатает «{phrase}» ровно {count} раз, каждый раз с новой строки.",
        'أنشئ {path}: يطبع "{phrase}" {count} مرات، كل مرة في سطر.',
    ),
    "argument": (
        "Write {path}. It takes a number as its argument on the command line and prints that number times {number}.",
        "Schreibe {path}. Es nimmt eine Zahl als Argument der Befehlszeile und gibt das {number}-fache aus.",
        "Crea {path}. Recibe un número como argumento de la línea de comandos e imprime ese número por {number}.",
        "Écris {path}. Il prend un nombre en argument de la ligne de commande et affiche ce nombre multiplié par {number}.",
        "Crie {path}. Recebe um número como argumento da linha de comando e imprime esse número vezes {number}.",
        "写 {path}。它从命令行参数 (sys.argv) 得到一个数字，打印这个数字乘以 {number} 的结果。",
        "{path} を書いてください。コマンドライン引数 (sys.argv) の数字に {number} を掛けて表示します。",
        "Создай {path}. Он получает число как аргумент командной строки и печатает это число, умноженное на {number}.",
        "اكتب {path}. يأخذ عددا من سطر الأوامر (sys.argv) ويطبع العدد مضروبا في {number}.",
    ),
    "addition": (
        "Add a function {head} to {path}. It returns {body}.",
        "Ergänze {path} um eine Funktion {head}, die {body} zurückgibt.",
        "Añade a {path} una función {head} que devuelve {body}.",
        "Ajoute à {path} une fonction {head} qui renvoie {body}.",
        "Acrescente a {path} uma função {head} que devolve {body}.",
        "在 {path} 中添加函数 {head}，返回 {body}。",
        "{path} に {body} を返す関数 {head} を追加してください。",
        "Добавь в {path} функцию {head}, которая возвращает {body}.",
        "أضف إلى {path} الدالة {head} التي تعيد {body}.",
    ),
    "constant": (
        "In {path}, {name} should be {number}.",
        "In {path} soll {name} den Wert {number} haben.",
        "En {path}, {name} debe valer {number}.",
        "Dans {path}, {name} doit valoir {number}.",
        "Em {path}, {name} deve valer {number}.",
        "把 {path} 里的 {name} 改成 {number}。",
        "{path} の {name} を {number} に変更してください。",
        "В {path} значение {name} должно быть {number}.",
        "في {path} يجب أن تكون قيمة {name} هي {number}.",
    ),
    "renaming": (
        "Rename the function {old} in {path} to {new}, also where it is called.",
        "Benenne die Funktion {old} in {path} in {new} um, auch dort, wo sie aufgerufen wird.",
        "Renombra la función {old} de {path} a {new}, también donde se llama.",
        "Renomme la fonction {old} de {path} en {new}, aussi là où elle est appelée.",
        "Renomeie a função {old} de {path} para {new}, também onde é chamada.",
        "把 {path} 里的函数 {old} 重命名为 {new}，调用的地方也要改。",
        "{path} の関数 {old} の名前を {new} に変更してください。呼び出している所も同じです。",
        "Переименуй функцию {old} в {path} в {new}, также там, где она вызывается.",
        "أعد تسمية الدالة {old} في {path} إلى {new} وكذلك حيث تستدعى.",
    ),
    "repair": (
        "{name}(20, 6) in {path} returns {wrong}, but it should return {good}: {body}. Fix it.",
        "{name}(20, 6) in {path} gibt {wrong} zurück, richtig wäre {good}: {body}. Behebe das.",
        "{name}(20, 6) en {path} devuelve {wrong}, pero debe devolver {good}: {body}. Corrígelo.",
        "{name}(20, 6) dans {path} renvoie {wrong} au lieu de {good} : {body}. Corrige cela.",
        "{name}(20, 6) em {path} devolve {wrong}, mas deve devolver {good}: {body}. Corrija.",
        "{path} 里的 {name}(20, 6) 返回 {wrong}，应该返回 {good}：{body}。请修复。",
        "{path} の {name}(20, 6) は {wrong} を返しますが、正しくは {good} です：{body}。直してください。",
        "{name}(20, 6) в {path} возвращает {wrong}, а должно быть {good}: {body}. Исправь.",
        "{name}(20, 6) في {path} تعيد {wrong} والصحيح {good}: {body}. أصلحها.",
    ),
    "data": (
        "Set `{key}` to {number} in {path}.",
        "Setze `{key}` in {path} auf {number}.",
        "Pon `{key}` a {number} en {path}.",
        "Mets `{key}` à {number} dans {path}.",
        "Coloque `{key}` em {number} no {path}.",
        "把 {path} 中的 `{key}` 设为 {number}。",
        "{path} の `{key}` を {number} にしてください。",
        "Установи `{key}` в {path} равным {number}.",
        "اجعل `{key}` في {path} يساوي {number}.",
    ),
    "prose": (
        'At the end of {path}, add a section "{heading}" with the sentence "{phrase}".',
        "Füge am Ende von {path} einen Abschnitt „{heading}“ mit dem Satz „{phrase}“ an.",
        "Al final de {path}, añade una sección «{heading}» con la frase «{phrase}».",
        "À la fin de {path}, ajoute une section « {heading} » avec la phrase « {phrase} ».",
        'No fim de {path}, acrescente uma seção "{heading}" com a frase "{phrase}".',
        "在 {path} 末尾添加一节“{heading}”，内容是“{phrase}”。",
        "{path} の最後に「{heading}」という節を追加し、「{phrase}」という文を書いてください。",
        "В конец {path} добавь раздел «{heading}» с предложением «{phrase}».",
        'أضف في نهاية {path} قسما "{heading}" فيه الجملة "{phrase}".',
    ),
    "question": (
        "What is {about} in {path}? Answer in one sentence.",
        "Wie viel ist {about} in {path}? Antworte in einem Satz.",
        "¿Cuánto es {about} en {path}? Responde en una frase.",
        "Combien vaut {about} dans {path} ? Réponds en une phrase.",
        "Quanto é {about} em {path}? Responda em uma frase.",
        "{path} 中 {about} 是多少？用一句话回答。",
        "{path} で {about} はいくつですか？一文で答えてください。",
        "Чему равно {about} в {path}? Ответь одним предложением.",
        "ما قيمة {about} في {path}؟ أجب بجملة واحدة.",
    ),
    "place": (
        "In the folder {folder}, create {path} with a function {head} that returns {body}.",
        "Lege im Ordner {folder} die Datei {path} mit einer Funktion {head} an, die {body} zurückgibt.",
        "En la carpeta {folder}, crea {path} con una función {head} que devuelve {body}.",
        "Dans le dossier {folder}, crée {path} avec une fonction {head} qui renvoie {body}.",
        "Na pasta {folder}, crie {path} com uma função {head} que devolve {body}.",
        "在文件夹 {folder} 中创建 {path}，包含函数 {head}，返回 {body}。",
        "フォルダ {folder} に {path} を作成し、{body} を返す関数 {head} を書いてください。",
        "В папке {folder} создай {path} с функцией {head}, которая возвращает {body}.",
        "في المجلد {folder} أنشئ {path} وفيه الدالة {head} التي تعيد {body}.",
    ),
    "tested": (
        "Write {path} with {head}, which returns {body}, and test_{path}, which tests {name} with pytest.",
        "Schreibe {path} mit {head}, das {body} zurückgibt, und test_{path}, das {name} mit pytest prüft.",
        "Crea {path} con {head}, que devuelve {body}, y test_{path}, que prueba {name} con pytest.",
        "Écris {path} avec {head}, qui renvoie {body}, et test_{path}, qui teste {name} avec pytest.",
        "Crie {path} com {head}, que devolve {body}, e test_{path}, que testa {name} com pytest.",
        "写 {path}，其中 {head} 返回 {body}，再写 test_{path}，用 pytest 测试 {name}。",
        "{body} を返す {head} を {path} に書き、pytest で {name} を試す test_{path} も書いてください。",
        "Создай {path} с {head}, возвращающей {body}, и test_{path}, который проверяет {name} через pytest.",
        "اكتب {path} وفيه {head} التي تعيد {body} واكتب test_{path} الذي يختبر {name} باستخدام pytest.",
    ),
}
