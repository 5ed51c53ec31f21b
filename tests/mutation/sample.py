"""Changes sampled lines of wolo, one at a time, and reports which changes no test of their room notices.

    python tests/mutation/sample.py              all of the sample
    python tests/mutation/sample.py --every 3    a third of it
    python tests/mutation/sample.py --since REF  of the lines that changed since a commit

The seed and the code decide the sample. A change that survives and does not matter (it cannot be seen from outside) is listed in
`survivors.txt`; any other survivor ends the run with exit status 1.
"""

from __future__ import annotations

import argparse
import ast
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
SEED = 20
SIZE = 60
TIMEOUT_S = 900
SURVIVORS = Path(__file__).with_name("survivors.txt")
RUN_ELSEWHERE = ("embedded_server.py", "launcher.py", "namespace_launcher.py", "watcher.py", "__main__.py")
"""Programs of their own: a process that has not been forked runs the installed file, not the changed one."""
TESTS = {
    "__init__": ["architecture/test_public_names.py"],
    "cli": ["cli", "end_to_end/test_exit_codes.py", "end_to_end/test_terminal.py"],
    "commands": ["commands", "end_to_end/test_typed_commands.py"],
    "conversation": ["conversation", "commands", "end_to_end/test_the_main_job.py"],
    "diagnostics": ["diagnostics", "cli/test_doctor.py", "cli/test_models.py", "end_to_end/test_checking_sessions.py"],
    "errors": ["config", "models"],
    "frontends": ["frontends", "end_to_end/test_repl.py", "end_to_end/test_panels.py"],
    "messages": ["messages", "formats"],
    "replay": ["replay", "end_to_end/test_replay.py"],
}
"""Folders and files below `tests/` where they are not those of the room's name."""
OPPOSITE = {
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.Lt: ">=",
    ast.GtE: "<",
    ast.Gt: "<=",
    ast.LtE: ">",
    ast.Is: "is not",
    ast.IsNot: "is",
    ast.In: "not in",
    ast.NotIn: "in",
}


@dataclass(frozen=True)
class Mutant:
    path: Path
    """Below the root."""
    line: int
    begin: int
    end: int
    """Offsets in the bytes of the file."""
    old: str
    new: str

    @property
    def room(self) -> str:
        return Path(self.path.parts[1]).stem

    def applied(self, source: bytes) -> bytes:
        return source[: self.begin] + self.new.encode() + source[self.end :]

    def __str__(self) -> str:
        return f"{self.path}: {' '.join(self.old.split())} -> {self.new}"


def mutants_of(path: Path) -> Iterator[Mutant]:
    source = (ROOT / path).read_bytes()
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    tree = ast.parse(source)
    bodies = [
        each
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for each in function.body
    ]
    for body in bodies:
        for node in ast.walk(body):
            text = _changed(node)
            if text is not None and isinstance(node, ast.expr | ast.stmt):
                begin = starts[node.lineno - 1] + node.col_offset
                end = starts[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)
                yield Mutant(path, node.lineno, begin, end, source[begin:end].decode(), text)


def _changed(node: ast.AST) -> str | None:
    """Python that says something else; None where nothing is to be changed."""
    match node:
        case ast.Compare(left=left, ops=[operator], comparators=[right]) if type(operator) in OPPOSITE:
            return f"({ast.unparse(left)}) {OPPOSITE[type(operator)]} ({ast.unparse(right)})"
        case ast.BoolOp(op=operator, values=values):
            word = " or " if isinstance(operator, ast.And) else " and "
            return word.join(f"({ast.unparse(each)})" for each in values)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return f"({ast.unparse(operand)})"
        case ast.Constant(value=bool(value)):
            return str(not value)
        case ast.Constant(value=int(value)):
            return str(value + 1)
        case ast.Expr(value=ast.Call() | ast.Await()) | ast.AugAssign() | ast.Continue() | ast.Break():
            return "pass"
        case ast.Return(value=ast.expr()):
            return "return None"
        case _:
            return None


def changed_lines(since: str) -> set[tuple[Path, int]]:
    """Lines of wolo that are new since the commit, by file and number."""
    diff = subprocess.run(
        ["git", "diff", "-U0", since, "--", "wolo"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    lines: set[tuple[Path, int]] = set()
    path = Path()
    for line in diff.splitlines():
        if line.startswith("+++ b/"):
            path = Path(line.removeprefix("+++ b/"))
        elif hunk := re.match(r"@@ \S+ \+(\d+)(?:,(\d+))? @@", line):
            begin, size = int(hunk[1]), int(hunk[2] or 1)
            lines.update((path, number) for number in range(begin, begin + size))
    return lines


def sample(since: str = "") -> list[Mutant]:
    """As many of each room, as far as it goes; with `since`, among the lines that changed since that commit."""
    lines = changed_lines(since) if since else None
    chance = random.Random(SEED)
    by_room: dict[str, list[Mutant]] = {}
    for path in sorted((ROOT / "wolo").rglob("*.py")):
        if path.name not in RUN_ELSEWHERE:
            for mutant in mutants_of(path.relative_to(ROOT)):
                if lines is not None and (mutant.path, mutant.line) not in lines:
                    continue
                by_room.setdefault(mutant.room, []).append(mutant)
    for found in by_room.values():
        chance.shuffle(found)
    chosen: list[Mutant] = []
    while len(chosen) < SIZE and any(by_room.values()):
        chosen += [found.pop() for _, found in sorted(by_room.items()) if found]
    return chosen[:SIZE]


def tests_of(mutant: Mutant) -> list[str]:
    """The tests of its room, those of its file first."""
    rooms = [f"tests/{each}" for each in TESTS.get(mutant.room, [mutant.room])]
    nearest = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "tests").rglob(f"test_{mutant.path.stem}.py"))
    return [*(path for path in nearest if "end_to_end" not in path), *rooms]


def failing(copy: Path, tests: list[str]) -> str:
    """The file of the first test that fails on the copy; empty when none does. One that hangs fails."""
    argv = [sys.executable, "-m", "pytest", "-qx", "-p", "no:cacheprovider", "-m", "not soak and not real_model", *tests]
    try:
        done = subprocess.run(argv, cwd=copy, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        return "timeout"
    failed = [line.split()[1].partition("::")[0] for line in done.stdout.splitlines() if line.startswith(("FAILED ", "ERROR "))]
    return next(iter(failed), f"exit status {done.returncode}") if done.returncode else ""


def judge(copy: Path, mutant: Mutant) -> str:
    """`caught`, `survived`, or `skipped` where the tests of that file fail without the change, too."""
    source = (copy / mutant.path).read_bytes()
    (copy / mutant.path).write_bytes(mutant.applied(source))
    found = failing(copy, tests_of(mutant))
    (copy / mutant.path).write_bytes(source)
    if not found:
        return "survived"
    return "skipped" if found.startswith("tests/") and failing(copy, [found]) else "caught"


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--every", type=int, default=1, help="only every n-th of the sample")
    parser.add_argument("--since", default="", metavar="REF", help="only lines that changed since this commit")
    args = parser.parse_args()
    mutants = sample(args.since)[:: args.every]
    allowed = set(SURVIVORS.read_text().splitlines())
    verdicts: dict[str, list[str]] = {"caught": [], "survived": [], "skipped": []}
    with tempfile.TemporaryDirectory(prefix="wolo-mutants-") as folder:
        Path(folder).chmod(0o755)  # some tests run as another user
        copy = Path(folder) / "wolo"
        shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(".git", ".venv", ".*_cache", "__pycache__", ".hypothesis"))
        for mutant in mutants:
            verdict = judge(copy, mutant)
            verdicts[verdict].append(str(mutant))
            print(f"{verdict:<9} {mutant} (line {mutant.line})", flush=True)
    unknown = [each for each in verdicts["survived"] if each not in allowed]
    counts = ", ".join(f"{len(found)} {verdict}" for verdict, found in verdicts.items())
    print(f"{counts}; {len(unknown)} survivors are not in {SURVIVORS.name}")
    return 1 if unknown else 0


if __name__ == "__main__":
    sys.exit(main())
