"""Recognizes checks in a command line (tests, linters, type checkers, builds), and commands that may edit files."""

from __future__ import annotations

import re
import shlex
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise, takewhile
from typing import TYPE_CHECKING

from msgspec import Struct

from wolo.guard.shell.parser import TooComplex, parse
from wolo.guard.shell.words import SHELLS, name_of, unquote
from wolo.messages.terminal_text import escaped_line

if TYPE_CHECKING:
    from tree_sitter import Node

_PLAIN = frozenset(
    """
    actionlint ansible-lint ava basedpyright behave busted clang-tidy cppcheck ctest detekt elm-test eslint flake8 golangci-lint
    hadolint jest ktlint lint-imports luacheck markdownlint mocha mypy nox pest phpstan phpunit prove pyflakes pylint pyright
    pytest py.test pytype rspec rubocop shellcheck staticcheck stylelint swiftlint tap tox trial tsc vitest vue-tsc yamllint
    """.split()  # noqa: SIM905
)
_SUBCOMMANDS = {
    "bazel": "build test",
    "biome": "check ci lint",
    "buf": "build lint",
    "cabal": "build check test",
    "cargo": "bench build check clippy nextest test",
    "cmake": "--build",
    "composer": "test validate",
    "crystal": "spec",
    "dart": "analyze test",
    "deno": "check lint test",
    "dotnet": "build test",
    "dune": "build test",
    "flutter": "analyze test",
    "forge": "build test",
    "gleam": "build check test",
    "go": "build test vet",
    "hardhat": "compile test",
    "helm": "lint",
    "lein": "check test",
    "meson": "compile test",
    "mix": "compile credo dialyzer test",
    "ng": "build lint test",
    "playwright": "test",
    "cypress": "run",
    "pre-commit": "run",
    "rails": "test",
    "ruff": "check",
    "sbt": "compile test",
    "stack": "build test",
    "swift": "build test",
    "terraform": "validate",
    "ty": "check",
    "zig": "build test",
}
_BY_OPTION = {"black": "--check", "isort": "--check --check-only", "prettier": "--check -c", "gofmt": "-l -d", "node": "--test"}
"""Programs that check only with one of these options; without it the first four are formatters."""
_TARGETS = frozenset(
    """
    devbox gmake gradle gradlew hatch inv invoke just lerna make mise moon mvn mvnw ninja nx rake rush task turbo
    """.split()  # noqa: SIM905
)
_SCRIPTS = frozenset({"npm", "pnpm", "yarn", "bun"})
_RUN = frozenset({"run", "run-script"})
_SCRIPT_VALUES = frozenset("--prefix --filter -F --cwd -C --dir --workspace -w workspace".split())  # noqa: SIM905
"""Words in front of a value that is not the script."""
_TARGET = (
    r"(?:[\w.-]*[:_-])?(?:all|build|checks?|ci|compile|e2e|lint|package|specs?|tests?|type-?check|types|unit|validate|verify|vet)"
    r"(?:[:_-][\w.:-]*)?"
)
"""Names of targets and scripts that check."""
_TEST_FILE = r"(?:.*/)?(?:tests?|test_[\w-]+|[\w-]+[._-]tests?|run_?tests?|[\w-]+\.spec)\.(?:py|[cm]?[jt]s|rb|php|sh|pl)"
_CHECK_SCRIPT = (
    r"(?!/bin/|/usr/)(?:.*/)?(?:[\w.-]*[_-])?(?:checks?|ci|e2e|lint|tests?|type-?check|validate|verify)(?:[_-][\w-]*)?(?:\.\w+)?"
)
"""A script of the project; without an interpreter its path has a slash."""
_INTERPRETERS = r"(?:python|pypy|node|ruby|php|perl|tsx|ts-node|bash|sh)[\d.]*"
_MODULE_RUNNERS = frozenset({"unittest", "pytest", "compileall", "py_compile"})
_PREFIXES = frozenset(
    """
    uv:run poetry:run pipenv:run pdm:run rye:run hatch:run bundle:exec pnpm:exec pnpm:dlx yarn:run yarn:exec bun:run bun:x
    npm:exec coverage:run direnv:exec composer:run composer:run-script pipx:run
    """.split()  # noqa: SIM905
)
_ELSEWHERE = frozenset(
    """
    conda:run mamba:run micromamba:run docker:compose docker:exec docker:run docker-compose:exec docker-compose:run podman:exec
    podman:run kubectl:exec mise:exec mise:x nix:develop nix:shell nix-shell opam:exec ssh su xargs
    """.split()  # noqa: SIM905
)
"""They run a command in an environment or on a machine, and end with its exit status."""
_READERS = frozenset("cat echo find grep head ls printf rg tail which".split())  # noqa: SIM905
_WRAPPERS = frozenset("env time nice nohup command exec sudo stdbuf timeout npx bunx pnpx uvx xvfb-run".split())  # noqa: SIM905

_DESCRIBES = frozenset(
    """
    --version -V --help -h --collect-only --co --dry-run --just-print --recon --listTests --list-tests --fixtures --markers
    --setup-plan --print-config --show-files --show-settings --showConfig --init
    """.split()  # noqa: SIM905
)
"""Options with which nothing is checked."""
_PASSES = r"--exit-zero|--issues-exit-code[= ]0|--ignore-errors"
"""Options with which the exit status is 0 in any case."""
_PIPEFAIL = r"(?:^|[;&\n])\s*set\s+(?:[-+]\w+\s+)*-\w*o\s+pipefail\b"
_WRITES_ASIDE = frozenset(
    """
    [ apt apt-get awk basename biome black brew bundle cargo cat cd chmod clang-format cmake composer cut date diff dirname docker
    dprint du echo eslint export fd file find gem git go gofmt gradle gradlew grep head isort jq ls make mkdir mvn mvnw ninja node
    npm nvm pip pip3 pnpm poetry prettier printf ps pwd pyenv rg ruff rustfmt set sleep sort source stat stylua swiftformat tail
    terraform test touch tree true uniq uv wc which yapf yarn
    """.split()  # noqa: SIM905
)
"""Readers, formatters, package managers and version control: what such a command writes is no edit of the model."""
_EDITS = (
    r"\b(?:sed|perl|ruby)\b[^|;]*\s-\w*i|\b(?:patch|tee|dd|ed|ex|truncate)\s|\bgit (?:apply|am)\b"
    r"|(?:^|[;&|]\s*)(?:cp|mv|rm|ln|install)\s"
)
MOST_CHARS = 40
"""Length of a command or path in a sentence."""


class LineCheck(Struct, frozen=True):
    """A check in a command line."""

    label: str
    """The command alone, without redirections and assignments."""
    key: str
    """The same for each way to start the same check on the same operands."""
    is_read: bool
    """The exit status of the line is 0 only if this check passed."""


class LineFacts(Struct, frozen=True):
    checks: tuple[LineCheck, ...] = ()
    edits_last: bool = False
    """A command after the last check may edit files."""
    edits: bool = False
    """A command may edit files: not only checks, formatters, builds and readers."""


@lru_cache(maxsize=512)
def read_line(line: str) -> LineFacts:
    """Returns no facts for a line that cannot be parsed."""
    try:
        root = parse(line)
    except TooComplex:
        return LineFacts()
    checks: list[LineCheck] = []
    position_of_check = position_of_edit = -1
    setting = re.search(_PIPEFAIL, line)
    commands = [
        *_commands(
            root, is_read=True, pipefail=setting is not None and "|" not in line[: setting.end()] and "+o pipefail" not in line
        )
    ]
    starts = [node.start_byte for node, _ in commands]
    redirected = {bisect_right(starts, at) - 1 for at in _redirections(root)}
    for position, (node, is_read) in enumerate(commands):
        # Without assignments and redirections
        skipped = ("variable_assignment", "file_redirect", "herestring_redirect", "heredoc_redirect")
        texts = [(child.text or b"").decode("utf-8", "replace") for child in node.children if child.type not in skipped]
        argv = [shlex.split(text)[0] if text[:1] == "'" and text.count("'") == 2 else unquote(text) for text in texts if text]
        inner = _passed_line(argv)
        nested = read_line(inner) if inner else LineFacts()
        check = check_of(argv)
        for each in (check, *nested.checks) if check else nested.checks:
            checks.append(each if is_read or not each.is_read else LineCheck(each.label, each.key, is_read=False))
            position_of_check = position
        if check is None and (position in redirected or (nested.edits if inner else _may_edit(node, argv))):
            position_of_edit = position + nested.edits_last
    edits_last = position_of_edit > position_of_check
    return LineFacts(tuple(checks), edits_last=edits_last, edits=position_of_edit >= 0)


def _redirections(node: Node) -> Iterator[int]:
    if node.type == "file_redirect":
        target = node.child_by_field_name("destination")
        is_output = any(child.type in (">", ">>", ">|", "&>", "&>>") for child in node.children)
        if is_output and target is not None and not re.fullmatch(rb"/dev/\w+", target.text or b""):
            yield node.start_byte
    for child in node.children:
        yield from _redirections(child)


def _may_edit(command: Node, argv: Sequence[str]) -> bool:
    rest = _unwrap(list(argv))
    if rest[1:2] == ["-m"]:
        rest = rest[2:]
    is_aside = not rest or name_of(rest[0]) in _WRITES_ASIDE
    return not is_aside or re.search(_EDITS, (command.text or b"").decode("utf-8", "replace")) is not None


def names_edit(line: str, name: str) -> bool:
    """True when the line edits in place, or names the file."""
    return name in line or re.search(_EDITS, line) is not None


def check_of(argv: Sequence[str]) -> LineCheck | None:
    """The check that a command is, after wrappers such as `uv run` and `timeout 60`."""
    rest = _unwrap(list(argv))
    program = name_of(rest[0]) if rest else ""
    operands = [each for each in rest[1:] if not each.startswith("-")]
    if program and not _RUN.isdisjoint(argv[: len(argv) - len(rest)]) and re.fullmatch(_TARGET, rest[0]):
        program, operands = "scripts", [rest[0], *operands]
    elif program and re.fullmatch(_INTERPRETERS, program) and "-m" in rest[1:-1]:
        rest = _unwrap(rest[rest.index("-m") + 1 :])
        program, operands = name_of(rest[0]), [each for each in rest[1:] if not each.startswith("-")]
        if program not in _MODULE_RUNNERS and check_of(rest) is None:
            return None
    elif program and re.fullmatch(_INTERPRETERS, program) and operands and not _has_option(rest, _BY_OPTION.get(program, "")):
        is_django = operands[0].endswith("manage.py") and operands[1:2] == ["test"]
        if not is_django and (
            re.fullmatch(f"{_TEST_FILE}|{_CHECK_SCRIPT}", operands[0]) is None or re.search(r"\s-(?:c|e)\b", " ".join(rest))
        ):
            return None
        program = "tests"
    elif program in _SCRIPTS:
        if not (operands := _script(program, rest)):
            return None
        program = "scripts"
    elif program in _TARGETS:
        targets = [each for each in operands if "=" not in each] or ["all"]
        if not any(re.fullmatch(_TARGET, each) for each in targets):
            return None
    elif program in _SUBCOMMANDS:
        if not any(each in _SUBCOMMANDS[program].split() for each in rest[1:2]) and not _has_option(rest, "--check"):
            return None
    elif program in _BY_OPTION:
        if not _has_option(rest, _BY_OPTION[program]):
            return None
    elif program not in _PLAIN:
        path = rest[0] if rest else ""
        if not (re.fullmatch(_TEST_FILE, path) or ("/" in path and re.fullmatch(_CHECK_SCRIPT, path))):
            return None
    is_dry = program in ("make", "gmake", "ninja", "just") and "-n" in rest
    if is_dry or _DESCRIBES.intersection(rest[: rest.index("--")] if "--" in rest else rest):
        return None
    label = " ".join(argv)
    is_read = re.search(_PASSES, label) is None and not (program in ("make", "gmake") and "-i" in rest)
    return LineCheck(label=clip(label), key=" ".join((program, *sorted(operands))), is_read=is_read)


def _script(program: str, argv: Sequence[str]) -> list[str]:
    """The script that checks, with its operands; empty if there is none. `npm ci` and `bun build` are no scripts."""
    pairs = pairwise((*argv, ""))
    values = {value for option, value in pairs if option in _SCRIPT_VALUES and (option != "-w" or program == "npm")}
    words = [each for each in argv[1:] if not each.startswith("-") and each not in (*values, "workspace")]
    is_run = not _RUN.isdisjoint(words[:1])
    words = words[1:] if is_run else words
    name = words[0] if words else ""
    if not is_run and program in ("npm", "bun") and name not in ("t", "tst", "test"):
        return []
    return words if name in ("t", "tst") or re.fullmatch(_TARGET, name) else []


def clip(text: str) -> str:
    """One line that fits into a sentence, without control sequences."""
    text = escaped_line(" ".join(text.split()))
    return text if len(text) <= MOST_CHARS else f"{text[: MOST_CHARS - 1]}…"


def _has_option(argv: Sequence[str], options: str) -> bool:
    return any(each in options.split() for each in argv[1:])


def _unwrap(argv: list[str]) -> list[str]:
    while argv:
        if ":".join((name_of(argv[0]), *argv[1:2])) in _PREFIXES:
            argv = argv[2:]
        elif name_of(argv[0]) in _WRAPPERS:
            argv = argv[1:]
        else:
            return argv
        while argv and (argv[0].startswith("-") or re.fullmatch(r"[\d.]+[smh]?|\w+=.*", argv[0])):
            is_valued = argv[0] in ("--with", "--group", "--extra", "-p", "--python", "-u", "-n", "-k", "-s")
            argv = argv[2 if is_valued else 1 :]
    return argv


def _passed_line(argv: Sequence[str]) -> str:
    """The line that `bash -c LINE` runs, or the check that another program runs elsewhere; empty for other commands."""
    rest = _unwrap(list(argv))
    if len(rest) > 2 and name_of(rest[0]) in SHELLS:
        return next((text for option, text in pairwise(rest[1:]) if re.fullmatch(r"-\w*c", option)), "")
    if rest and not _ELSEWHERE.isdisjoint((name_of(rest[0]), ":".join((name_of(rest[0]), *rest[1:2])))):
        words = list(takewhile(lambda word: name_of(word) not in _READERS, rest))
        for at in range(1, len(words)):
            if re.search(r"\s", words[at]) and read_line(words[at]).checks:
                return words[at]
            if check_of(rest[at:]):
                is_detached = name_of(rest[0]) in ("docker", "podman") and not {"-d", "--detach"}.isdisjoint(words[:at])
                return shlex.join(rest[at:]) + " &" * is_detached
    return ""


def _commands(node: Node, *, is_read: bool, pipefail: bool) -> Iterator[tuple[Node, bool]]:
    """Commands in order; true: the line ends with 0 only if this one does."""
    children = [child for child in node.children if child.is_named]
    match node.type:
        case "command":
            yield node, is_read
        case "program" | "subshell" | "compound_statement":
            stops, resets = False, any((child.text or b"").startswith(b"set +") for child in children)
            for at, child in enumerate(children):
                stops = stops or (not resets and (child.text or b"").startswith(b"set -e"))
                following = child.next_sibling
                is_waited = following is None or following.type != "&"
                is_last = at == len(children) - 1
                yield from _commands(child, is_read=is_read and is_waited and (is_last or stops), pipefail=pipefail)
        case "list":
            is_and = any(child.type == "&&" for child in node.children)
            for child in children:
                yield from _commands(child, is_read=is_read and is_and, pipefail=pipefail)
        case "pipeline":
            for at, child in enumerate(children):
                yield from _commands(child, is_read=is_read and (pipefail or at == len(children) - 1), pipefail=pipefail)
        case "redirected_statement":
            for child in children[:1]:
                yield from _commands(child, is_read=is_read, pipefail=pipefail)
        case _:
            for child in children:
                yield from _commands(child, is_read=False, pipefail=pipefail)
