"""A function moves to another file with its imports, and whoever imports it follows."""

from __future__ import annotations

from pathlib import Path

import pytest

from wolo.models.local.moves import moved_text, next_moved
from wolo.models.local.simple_context import list_names

SLUG = "def slug(text):\n    return re.sub(' ', '-', text)"
FILES = {
    "utils.py": f"import re\nimport sys\n\n\n{SLUG}\n\n\ndef end():\n    sys.exit(1)\n",
    "texts.py": "def shout(text):\n    return text.upper()\n",
    "main.py": "from utils import end, slug\n\nprint(slug('a b'))\nend()\n",
}


def _move(folder: Path, request: str) -> list[str]:
    written: list[str] = []
    while path := next_moved(request, names := list_names(folder), written):
        text = moved_text(request, names, written, path, names.whole(path))
        assert text is not None
        (folder / path).write_text(text)
        written.append(path)
    return written


@pytest.mark.parametrize(
    "request_",
    [
        "Move slug from utils.py to texts.py",
        "Mova a função slug de utils.py para texts.py e ajuste main.py",
        "把 utils.py 里的 slug 移到 texts.py",
    ],
)
def test_new_place_is_written_first_imports_follow(tmp_path: Path, request_: str) -> None:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    assert _move(tmp_path, request_) == ["texts.py", "utils.py", "main.py"]
    assert (tmp_path / "texts.py").read_text() == f"import re\n\n{FILES['texts.py']}\n\n{SLUG}\n"
    assert (tmp_path / "utils.py").read_text() == "import sys\n\n\ndef end():\n    sys.exit(1)\n"
    assert (tmp_path / "main.py").read_text() == FILES["main.py"].replace(
        "from utils import end, slug", "from utils import end\nfrom texts import slug"
    )


def test_old_file_goes_on_using_what_moved(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("def one():\n    return 1\n\n\ndef two():\n    return one() * 2\n")
    assert _move(tmp_path, "move one from a.py to b.py") == ["b.py", "a.py"]
    assert (tmp_path / "b.py").read_text() == "def one():\n    return 1\n"
    assert (tmp_path / "a.py").read_text() == "from b import one\ndef two():\n    return one() * 2\n"


def test_without_two_files_nothing_moves(tmp_path: Path) -> None:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    for request in (
        "move slug out of utils.py",
        "move slug and end from utils.py to texts.py",
        "rename slug in utils.py and main.py",
    ):
        assert next_moved(request, list_names(tmp_path), ()) == ""
