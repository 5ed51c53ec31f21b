"""The quick check of a folder's names never passes a file that the judge would not let a search show."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.guard.test_judge import SECRET, judge, rules
from wolo.guard.modes import Ceiling
from wolo.guard.protected_paths import SECRET_BELOW, SECRET_ENDINGS, SECRET_FOLDERS, SECRET_NAMES, is_secret

FOLDERS = (
    *(
        "",
        "src",
        "Src/deep",
        "private",
        "drafts/new",
        "own",
        "own/below",
        "above",
        "above/own",
        "[id]",
        "proc",
        ".config",
        ".docker",
    ),
    *("library", "Library/Keychains", ".config/gcloud", ".config/gh/x", "sub/.ssh", ".AWS/x", "../outside"),
)
NAMES = (
    *("a.py", "notes.md", "Straße", "hub", "hosts.yml", "config.json", "environ", "x.pub", "service_account.py", "account.csv"),
    *(
        ".env.example",
        "id_rsa.pub",
        ".e\u200cnv",
        "ID_RSA.old",
        "Client-Secret.yml",
        "x.KEY",
        "adminsdk.properties",
        "id_ed25519_sk",
    ),
    *(Path(path).name for path in SECRET.split()),
)
RULES = (
    "deny read:private/**",
    "ask read:**/*.md",
    "allow read:**",
    "allow read:.env",
    "deny read:src/a.py",
    "allow read:../outside/**",
)
CEILINGS = (
    Ceiling(source="the agent x", mode="plan"),
    Ceiling(source="the agent x", rules=tuple(rules("deny read:**/hub"))),
    Ceiling(source="the agent x", rules=tuple(rules("allow read:src/**")), defaults=(("read", "deny"),)),
    Ceiling(source="the agent x", defaults=(("read", "ask"), ("write", "deny")), asks_nobody=True),
)


@given(
    folder=st.sampled_from(FOLDERS),
    names=st.lists(st.sampled_from(NAMES), max_size=4, unique=True),
    texts=st.lists(st.sampled_from(RULES), max_size=3),
    mode=st.sampled_from(["plan", "ask", "yolo"]),
    ceilings=st.lists(st.sampled_from(CEILINGS), max_size=2),
)
def test_names_that_pass_together_are_readable_each(
    tmp_path: Path, folder: str, names: list[str], texts: list[str], mode: str, ceilings: list[Ceiling]
) -> None:
    root = tmp_path / "work"
    guarded = judge(root, *texts, mode=mode, own=(root / "own", root / "above" / "own"), free=(root / "own" / "below",))
    for ceiling in ceilings:
        guarded = guarded.under(ceiling)
    place = tmp_path / "outside" if folder == "../outside" else root / folder
    if guarded.all_readable(place, names):
        assert [name for name in names if not guarded.readable(place / name)] == []


@pytest.mark.parametrize("folder", ["lib", "src", "src/[id]", "docs/v1.2/ü"])
def test_ordinary_names_pass_together(tmp_path: Path, folder: str) -> None:
    names = ["a.py", "README.md", "Makefile", "package.json", "x.test.ts", ".gitignore", "AGENTS.md"]
    guarded = judge(tmp_path, "deny read:private/**", "ask read:drafts/**", own=(tmp_path / "state" / "wolo",))
    guarded = guarded.under(Ceiling(source="the agent x", mode="plan"))
    assert guarded.all_readable(tmp_path / folder, names)
    assert not guarded.all_readable(tmp_path / folder, [*names, ".env"])
    for other in ("private", "drafts", "state", "state/wolo"):
        assert not guarded.all_readable(tmp_path / other, names)
    assert not guarded.all_readable(tmp_path.parent, names)


@pytest.mark.parametrize(
    "path",
    [
        *(f"{folder}/x" for folder in SECRET_FOLDERS),
        *(f"home{path}x" if path.endswith("/") else f"home{path}" for path in SECRET_BELOW),
        *(f"sub/{name}" for name in (*SECRET_NAMES, *SECRET.split(), "x-adminsdk.json", "credential.json", "secret.yml")),
        *(f"sub/x{ending}" for ending in SECRET_ENDINGS),
    ],
)
def test_no_secret_passes_among_others(path: str) -> None:
    root = Path("/srv/work")  # the name of a test's folder would be a sign of a secret
    secret = root / path
    if is_secret(str(secret)):
        assert not judge(root).all_readable(secret.parent, ["a.py", secret.name, "b.py"])
