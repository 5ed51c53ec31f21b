"""The snippets of docs/guide/ci.md are what the systems they are for accept."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
WORKFLOW, GITLAB = re.findall(r"```yaml\n(.*?)```", (ROOT / "docs/guide/ci.md").read_text(encoding="utf-8"), re.DOTALL)
TOOLS = Path(sys.executable).parent


def complaints(text: str, tmp_path: Path, tool: str, *args: str) -> str:
    file = tmp_path / ".github" / "workflows" / "pipeline.yml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    done = subprocess.run([TOOLS / tool, *args, file], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    return "" if done.returncode == 0 else done.stdout + done.stderr


@pytest.mark.parametrize(
    ("text", "args"),
    [(WORKFLOW, ("vendor.github-workflows",)), (GITLAB, ("vendor.gitlab-ci", "--data-transform", "gitlab-ci"))],
    ids=["github", "gitlab"],
)
def test_a_snippet_fits_the_schema(tmp_path: Path, text: str, args: tuple[str, ...]) -> None:
    assert complaints(text, tmp_path, "check-jsonschema", "--builtin-schema", *args) == ""


@pytest.mark.skipif(sys.platform != "linux", reason="actionlint has wheels for Linux")
def test_workflow_uses_declared_inputs_and_outputs(tmp_path: Path) -> None:
    """The linter knows those of an action in the repository itself."""
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    (tmp_path / "action.yml").write_text((ROOT / "action.yml").read_text(encoding="utf-8"), encoding="utf-8")
    local = WORKFLOW.replace("OWNER/wolo@main", "./")
    assert complaints(local, tmp_path, "actionlint") == ""
    assert "unknown-input" in complaints(local.replace("max-cost:", "unknown-input:"), tmp_path, "actionlint")
    assert "nothing" in complaints(local.replace("outputs.patch", "outputs.nothing"), tmp_path, "actionlint")


def test_workflow_puts_no_foreign_text_into_shell_lines() -> None:
    steps = [step for job in yaml.safe_load(WORKFLOW)["jobs"].values() for step in job["steps"]]
    assert not [step["run"] for step in steps if "${{" in step.get("run", "")]


@pytest.mark.parametrize("file", sorted((ROOT / ".github" / "workflows").glob("*.yml")), ids=lambda file: file.stem)
def test_workflows_of_the_project_name_commits(tmp_path: Path, file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    assert complaints(text, tmp_path, "check-jsonschema", "--builtin-schema", "vendor.github-workflows") == ""
    assert [name for name in re.findall(r"uses: *(\S+)", text) if not re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", name)] == []
    steps = [step for job in yaml.safe_load(text)["jobs"].values() for step in job["steps"]]
    assert not [step["run"] for step in steps if "${{" in step.get("run", "")]
    if sys.platform == "linux":
        subprocess.run(["git", "init", "-q", tmp_path], check=True)
        assert complaints(text, tmp_path, "actionlint") == ""


PINNED = sorted((ROOT / ".ci" / "requirements").glob("*.txt"))


@pytest.mark.parametrize("file", PINNED, ids=lambda file: file.name)
def test_every_requirement_is_pinned_by_hashes(file: Path) -> None:
    requirements = file.read_text(encoding="utf-8").replace("\\\n", "").splitlines()
    assert requirements
    assert [
        line for line in requirements if not re.fullmatch(r"[\w.-]+(\[[\w,-]+\])?==\S+ .*--hash=sha256:[0-9a-f]{64}", line)
    ] == []
    assert "://" not in file.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("file", "groups", "extras"),
    [("run", (), ()), ("demo", ("build",), ("local",)), ("test", ("build", "test", "check"), ("local",))],
)
def test_pinned_requirements_cover_the_project(file: str, groups: tuple[str, ...], extras: tuple[str, ...]) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wanted = list(project["project"]["dependencies"])
    wanted += [line for group in groups for line in project["dependency-groups"][group]]
    wanted += [line for extra in extras for line in project["project"]["optional-dependencies"][extra]]
    names = {re.split(r"[^\w.-]", line, maxsplit=1)[0].lower().replace("_", "-") for line in wanted}
    pinned = {line.partition("==")[0].partition("[")[0] for line in (PINNED[0].parent / f"{file}.txt").read_text().splitlines()}
    assert names <= pinned, "run `make requirements`"


def test_the_image_starts_from_digests() -> None:
    bases = re.findall(r"(?m)^FROM (\S+)", (ROOT / "Dockerfile").read_text(encoding="utf-8"))
    assert bases
    assert [base for base in bases if not re.fullmatch(r"[\w./:-]+@sha256:[0-9a-f]{64}", base)] == []


@pytest.mark.parametrize("file", ["Makefile", "Dockerfile", "action.yml"])
def test_packages_are_installed_by_hash(file: str) -> None:
    text = (ROOT / file).read_text(encoding="utf-8").replace("\\\n", " ")
    installs = re.findall(r"(?:pip (?:install|download)).*", text)
    assert installs
    allowed = ("--require-hashes", "--no-deps", "install -q uv")  # uv makes the hashes
    assert [line for line in installs if not any(each in line for each in allowed)] == []
