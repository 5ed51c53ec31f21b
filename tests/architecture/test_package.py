"""The package as an index shows it, and the sections of the documentation site."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from tests.components import find, require
from wolo.cli.options import OPTIONS

ROOT = Path(__file__).parents[2]
HOME = "https://git.example.com/someone/wolo"
ZIP = "wolo-1.2.3-windows-x86_64.zip"

_ADDRESS = {"type": "string", "pattern": "^[Hh][Tt][Tt][Pp][Ss]?://.+$", "maxLength": 2048}
_LOCALE = {"type": "string", "pattern": "^[a-zA-Z]{2,3}(-[a-zA-Z]{1,8})*$", "maxLength": 20}
_IN_EACH = {
    "PackageIdentifier": {
        "type": "string",
        "pattern": r'^[^.\s\\/:*?"<>|]{1,32}(\.[^.\s\\/:*?"<>|]{1,32}){1,7}$',
        "maxLength": 128,
    },
    "PackageVersion": {"type": "string", "pattern": r'^[^\\/:*?"<>|]+$', "maxLength": 128},
    "ManifestVersion": {"const": "1.10.0"},
}
_INSTALLER = {
    "Architecture": {"enum": ["x86", "x64", "arm", "arm64", "neutral"]},
    "InstallerUrl": _ADDRESS,
    "InstallerSha256": {"type": "string", "pattern": "^[A-Fa-f0-9]{64}$"},
}
_NESTED = {
    "RelativeFilePath": {"type": "string", "minLength": 1, "maxLength": 512},
    "PortableCommandAlias": {"type": "string", "minLength": 1, "maxLength": 40},
}


def _exactly(**properties: Any) -> dict[str, Any]:
    """No other fields: winget has more, whose form is not written down here."""
    return {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}


WINGET = {
    "Wolo.Wolo.yaml": _exactly(**_IN_EACH, DefaultLocale=_LOCALE, ManifestType={"const": "version"}),
    "Wolo.Wolo.locale.en-US.yaml": _exactly(
        **_IN_EACH,
        PackageLocale=_LOCALE,
        Publisher={"type": "string", "minLength": 2, "maxLength": 256},
        PackageName={"type": "string", "minLength": 2, "maxLength": 256},
        PackageUrl=_ADDRESS,
        License={"type": "string", "minLength": 3, "maxLength": 512},
        ShortDescription={"type": "string", "minLength": 3, "maxLength": 256},
        Moniker={"type": "string", "minLength": 1, "maxLength": 40},
        Tags={"type": "array", "items": {"type": "string", "minLength": 1, "maxLength": 40}, "maxItems": 16, "uniqueItems": True},
        ManifestType={"const": "defaultLocale"},
    ),
    "Wolo.Wolo.installer.yaml": _exactly(
        **_IN_EACH,
        Platform={
            "type": "array",
            "items": {"enum": ["Windows.Desktop", "Windows.Universal"]},
            "maxItems": 2,
            "uniqueItems": True,
        },
        MinimumOSVersion={"type": "string", "pattern": r"^(0|[1-9][0-9]{0,4})(\.(0|[1-9][0-9]{0,4})){0,3}$"},
        InstallerType={"const": "zip"},
        NestedInstallerType={"const": "portable"},
        NestedInstallerFiles={"type": "array", "items": _exactly(**_NESTED), "minItems": 1, "maxItems": 1024},
        ArchiveBinariesDependOnPath={"type": "boolean"},
        Installers={"type": "array", "items": _exactly(**_INSTALLER), "minItems": 1, "maxItems": 1024},
        ManifestType={"const": "installer"},
    ),
}
"""Of the fields in use: what the schemas of winget's manifests require (microsoft/winget-cli, schemas/JSON/manifests/v1.10.0)."""


def load(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def metadata() -> Any:
    return load(ROOT / ".ci" / "project_metadata.py")


@pytest.fixture
def dist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Archives as `make dist` names them, with their recipes and checksums, signed."""
    subprocess.run([require("ssh-keygen"), "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / "key"], check=True)
    monkeypatch.setenv("WOLO_SIGNING_KEY", str(tmp_path / "key"))
    monkeypatch.setenv("WOLO_RELEASES", f"{HOME}/releases/latest/download")
    out = tmp_path / "dist"
    out.mkdir()
    for name in (wheel := "wolo_cli-1.2.3-py3-none-any.whl", "wolo_cli-1.2.3.tar.gz", "wolo-1.2.3-linux-x86_64.tar.gz", ZIP):
        (out / name).write_text(name)
    program = load(ROOT / ".ci" / "packaging" / "make_dist.py")
    program.write_recipes(out, out / wheel)
    program.write_checksums(out)
    return out


def test_recipes_are_what_their_programs_read(dist: Path) -> None:
    checksum = hashlib.sha256(b"wolo_cli-1.2.3.tar.gz").hexdigest()
    for command, name in (([require("ruby"), "-c"], "wolo.rb"), ([require("nix-instantiate"), "--parse"], "wolo.nix")):
        done = subprocess.run([*command, dist / name], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        text = (dist / name).read_text()
        assert f"{HOME}/releases/download/v1.2.3/wolo" in text
        assert not re.search("@[A-Z0-9_]+@", text)
    assert checksum in (dist / "wolo.rb").read_text()
    assert 'name = "aarch64"; sha256 = "";' in (dist / "wolo.nix").read_text()


def test_winget_manifests_have_the_form_of_winget(dist: Path) -> None:
    manifests = {name: yaml.safe_load((dist / name).read_text()) for name in WINGET}
    for name, schema in WINGET.items():
        jsonschema.Draft7Validator(schema).validate(manifests[name])
    assert sorted(WINGET) == sorted(path.name for path in dist.glob("*.yaml"))
    [installer] = manifests["Wolo.Wolo.installer.yaml"]["Installers"]
    assert installer["InstallerUrl"] == f"{HOME}/releases/download/v1.2.3/{ZIP}"
    assert installer["InstallerSha256"] == hashlib.sha256(ZIP.encode()).hexdigest()
    assert {manifest["PackageVersion"] for manifest in manifests.values()} == {"1.2.3"}


def test_checksums_are_signed_for_every_file(dist: Path, tmp_path: Path) -> None:
    listed = [line.split()[1] for line in (dist / "SHA256SUMS").read_text().splitlines()]
    assert sorted([*listed, "SHA256SUMS", "SHA256SUMS.sig"]) == sorted(path.name for path in dist.iterdir())
    signers = tmp_path / "allowed_signers"
    signers.write_text(f"wolo {(tmp_path / 'key.pub').read_text()}")
    verify = [require("ssh-keygen"), "-Y", "verify", "-f", signers, "-I", "wolo", "-n", "wolo", "-s", dist / "SHA256SUMS.sig"]
    assert load(ROOT / ".ci" / "packaging" / "make_dist.py").signer() == (tmp_path / "key.pub").read_text().strip()
    sums = (dist / "SHA256SUMS").read_bytes()
    assert subprocess.run(verify, input=sums, capture_output=True, check=False).returncode == 0
    assert subprocess.run(verify, input=sums + b"\n", capture_output=True, check=False).returncode != 0


def test_the_manual_page_names_every_option() -> None:
    page = (ROOT / "docs" / "reference" / "wolo.1").read_text(encoding="utf-8").replace("\\-", "-")
    missing = [option.name for option in OPTIONS if f".B {', '.join(option.spellings)}" not in page]
    assert missing == []
    if program := find("man"):
        utf8 = {**os.environ, "LC_ALL": "C.UTF-8"}  # where the page has characters that ASCII has not
        done = subprocess.run(
            [program, "--warnings", "-l", "-"], input=page, capture_output=True, text=True, check=False, env=utf8
        )
        assert (done.returncode, done.stderr) == (0, "")


def test_links_of_the_description_are_absolute(metadata: Any) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    text = metadata.describe(readme, HOME, "abc")
    assert f"![wolo at work]({HOME}/raw/abc/docs/wolo.svg)" in text
    assert f"[security]({HOME}/blob/abc/docs/guide/security.md)" in text
    assert not re.findall(r"\]\((?!https?:|#)", text)


def test_description_without_a_repository_has_no_dead_links(metadata: Any) -> None:
    text = metadata.describe("![a](docs/a.svg) [b](docs/b.md#c) [d](https://example.com) [e](#f)", "", "main")
    assert text == " b [d](https://example.com) [e](#f)"


@pytest.mark.parametrize(
    ("remote", "address"),
    [
        ("git@git.example.com:someone/wolo.git", HOME),
        ("ssh://git@git.example.com/someone/wolo", HOME),
        (f"{HOME}.git", HOME),
        (f"{HOME}/", HOME),
        ("https://token@git.example.com/someone/wolo", ""),
        ("/srv/wolo", ""),
        ("", ""),
    ],
)
def test_address_comes_from_git(
    metadata: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, remote: str, address: str
) -> None:
    monkeypatch.delenv("WOLO_REPOSITORY", raising=False)
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    if remote:
        subprocess.run(["git", "-C", tmp_path, "remote", "add", "origin", remote], check=True)
    assert metadata.find_repository(str(tmp_path)) == address
    monkeypatch.setenv("WOLO_REPOSITORY", HOME)
    assert metadata.find_repository(str(tmp_path)) == HOME


def test_package_names_its_authors() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["authors"]
    assert {"readme", "urls"} <= {*project["dynamic"]}


def test_sections_of_the_site_have_an_index() -> None:
    assert all((ROOT / "docs" / name / "index.md").is_file() for name in ("guide", "api", "reference", "formats", "design"))
    assert (ROOT / "docs" / "decisions" / "README.md").is_file()
    ranked = re.search(r"boost: ([0-9.]+)", (ROOT / "docs" / "decisions" / ".meta.yml").read_text(encoding="utf-8"))
    assert ranked is not None
    assert float(ranked[1]) < 1
