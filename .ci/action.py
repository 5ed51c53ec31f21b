"""Runs wolo for the GitHub Action: inputs come as WOLO_ACTION_… variables, outputs go to the runner's files.

No input becomes part of a shell line, and the agent gets none of the runner's own variables and files.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape, quoteattr

OPTIONS = {
    "MODEL": "--model",
    "MODE": "--mode",
    "BASE_URL": "--base-url",
    "API": "--api",
    "MAX_TURNS": "--max-turns",
    "MAX_COST": "--max-cost",
    "MAX_TOKENS": "--max-tokens",
    "MAX_SECONDS": "--max-seconds",
    "JSON_SCHEMA": "--json-schema",
    "VERIFY": "--verify",
}
"""Inputs and the options they become."""
RUNNERS_OWN = re.compile(r"GITHUB_(?:ENV|PATH|OUTPUT|STATE|STEP_SUMMARY)|ACTIONS_.*|INPUT_.*|WOLO_ACTION_.*")
"""Files and tokens that control the job; the agent's commands have no use for them."""
NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
FAILED = (1, 4, 5)
"""Exit codes that say something about the task; others are errors of the run."""


def main(environ: Mapping[str, str]) -> int:
    given = {name.removeprefix("WOLO_ACTION_"): value for name, value in environ.items() if name.startswith("WOLO_ACTION_")}
    folder = Path(tempfile.mkdtemp(prefix="wolo-", dir=environ.get("RUNNER_TEMP")))
    before = tree_of(folder)
    result = run(given, environ)
    patch = folder / "wolo.patch"
    patch.write_bytes(difference(before, tree_of(folder) if before else None))
    (folder / "result.json").write_text(json.dumps(result, indent=1), encoding="utf-8")
    (folder / "junit.xml").write_text(junit(given.get("PROMPT", ""), result), encoding="utf-8")
    outputs = {
        "result": str(result.get("result") or ""),
        "structured-output": json.dumps(result["structured_output"]) if result.get("structured_output") is not None else "",
        "session-id": str(result.get("session_id") or ""),
        "exit-code": str(result["exit_code"]),
        "cost": "" if result.get("total_cost_usd") is None else str(result["total_cost_usd"]),
        "changed": "true" if patch.stat().st_size else "false",
        "patch": str(patch),
        "junit": str(folder / "junit.xml"),
        "folder": str(folder),
    }
    if "GITHUB_OUTPUT" in environ:
        append(environ["GITHUB_OUTPUT"], "".join(assignment(name, value) for name, value in outputs.items()))
    if "GITHUB_STEP_SUMMARY" in environ and given.get("SUMMARY") != "false":
        append(environ["GITHUB_STEP_SUMMARY"], summary(result, patch))
    return 0 if given.get("ALLOW_FAILURE") == "true" else int(result["exit_code"])


def run(given: Mapping[str, str], environ: Mapping[str, str]) -> dict[str, Any]:
    """The result object of `wolo --json`; an object like it when wolo printed none."""
    command = ["wolo", "--json"]
    command += [f"{option}={given[name]}" for name, option in OPTIONS.items() if given.get(name)]
    if given.get("MENTIONS") != "true":
        command.append("--no-mentions")
    if given.get("TRUST") == "true":
        command.append("--trust")
    kept = {name: value for name, value in environ.items() if not RUNNERS_OWN.fullmatch(name)}
    if given.get("API_KEY"):
        kept["WOLO_API_KEY"] = given["API_KEY"]
    pause = secrets.token_hex(16)
    print(f"::stop-commands::{pause}", flush=True)  # lines of the log that begin with :: are text until the token comes
    with subprocess.Popen([*command, "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=kept) as process:
        for number in (signal.SIGINT, signal.SIGTERM):  # the job is cancelled: wolo saves the session, the outputs are written
            signal.signal(number, lambda number, _: process.send_signal(number))
        printed, _ = process.communicate(given.get("PROMPT", "").encode())
    print(f"::{pause}::", flush=True)
    try:
        found = json.loads(printed)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        found = {"error": {"message": "wolo printed no result.", "hint": ""}}
    code = process.returncode if process.returncode >= 0 else 128 - process.returncode
    return {"result": "", **found, "exit_code": code}


def git(*args: str, index: Path | None = None) -> bytes | None:
    """The output of a git command; None where it fails, with git's reason in the log."""
    env = {**os.environ, "GIT_INDEX_FILE": str(index)} if index else None
    try:
        done = subprocess.run(["git", *args], capture_output=True, env=env, check=False)
    except FileNotFoundError:
        print("No patch: git is not installed", file=sys.stderr)
        return None
    if done.returncode:
        print("No patch:", " ".join(done.stderr.decode(errors="replace").split()), file=sys.stderr)
    return None if done.returncode else done.stdout


def tree_of(folder: Path) -> str | None:
    """All files of the repository that git does not ignore, as a tree; the index stays as it is."""
    root, index = git("rev-parse", "--show-toplevel"), git("rev-parse", "--git-path", "index")
    if not root or not index:
        return None
    copy, present = folder / "index", Path(os.fsdecode(index.rstrip(b"\n")))
    if present.is_file():
        copy.write_bytes(present.read_bytes())
    added = git("-C", os.fsdecode(root.rstrip(b"\n")), "add", "--all", index=copy)
    tree = git("write-tree", index=copy) if added is not None else None
    copy.unlink(missing_ok=True)
    return tree.decode().strip() if tree else None


def difference(before: str | None, after: str | None) -> bytes:
    """A patch for `git apply`; empty without a repository."""
    if before is None or after is None:
        return b""
    return git("diff", "--binary", "--no-color", "--no-ext-diff", "--no-textconv", before, after) or b""


def assignment(name: str, value: str) -> str:
    """An output in the runner's form for several lines; the delimiter cannot be guessed by what the model writes."""
    end = f"end_{secrets.token_hex(16)}"
    return f"{name}<<{end}\n{value}\n{end}\n"


def append(path: str, text: str) -> None:
    with open(path, "a", encoding="utf-8", errors="replace", newline="\n") as file:
        file.write(text)


def trouble(result: Mapping[str, Any]) -> str:
    """Why the run was no success, in a line; empty when it was."""
    if result["exit_code"] == 0:
        return ""
    error = result.get("error") or {}
    said = " ".join(filter(None, (error.get("message"), error.get("hint"))))
    return said or str(result.get("subtype") or f"exit code {result['exit_code']}")


def summary(result: Mapping[str, Any], patch: Path) -> str:
    """Markdown for the page of the job."""
    cost = result.get("total_cost_usd")
    facts = [f"exit code {result['exit_code']}", f"{result.get('num_turns', 0)} turns"]
    facts += [] if cost is None else [f"${cost:.4f}"]
    lines = ["## wolo", "", " · ".join(facts), ""]
    lines += [f"**{trouble(result)}**", ""] if trouble(result) else []
    lines += [str(result.get("result") or ""), ""]
    lines += [f"- `{name}`" for name in result.get("files_changed") or ()]
    text = patch.read_text(encoding="utf-8", errors="replace")
    if 0 < len(text) < 60_000:
        fence = "`" * (max([2, *(len(run) for run in re.findall("`+", text))]) + 1)
        lines += ["", "<details><summary>Patch</summary>", "", f"{fence}diff", text.rstrip("\n"), fence, "", "</details>"]
    return "\n".join(lines) + "\n"


def junit(prompt: str, result: Mapping[str, Any]) -> str:
    """One test case for the task, and one for each failure that `verify` found new."""
    title = (prompt.strip().splitlines() or ["prompt"])[0][:120]
    code, wrong = result["exit_code"], trouble(result)
    kind = ("failure" if code in FAILED else "error") if code else ""
    inner = f"<{kind} message={attribute(wrong)}/>" if kind else ""
    seconds = f"{(result.get('duration_ms') or 0) / 1000:.3f}"
    cases = [f'<testcase classname="wolo" name={attribute(title)} time="{seconds}">{inner}']
    cases[0] += f"<system-out>{xml(str(result.get('result') or ''))}</system-out></testcase>"
    found = [str(name) for name in (result.get("verification") or {}).get("new_failures") or ()]
    cases += [
        f'<testcase classname="wolo.verify" name={attribute(name)}><failure message="new failure"/></testcase>' for name in found
    ]
    counts = f'tests="{len(cases)}" failures="{len(found) + (kind == "failure")}" errors="{int(kind == "error")}"'
    head = f'<testsuite name="wolo" {counts} time="{seconds}">'
    return "\n".join(['<?xml version="1.0" encoding="UTF-8"?>', head, *cases, "</testsuite>", ""])


def xml(text: str) -> str:
    return escape(NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text))


def attribute(text: str) -> str:
    return quoteattr(NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text))


if __name__ == "__main__":
    sys.exit(main(os.environ))
