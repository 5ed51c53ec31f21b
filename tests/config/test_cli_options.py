"""Values of options as the command line gives them."""

from __future__ import annotations

from pathlib import Path

import pytest

from wolo.config.cli_options import directories, text_or_file
from wolo.errors import UsageError


def test_text_is_literal_or_the_file_containing_it() -> None:
    Path("prompt.md").write_text("From the file.")
    assert text_or_file({"system_prompt": "Be brief."}, "system_prompt") == "Be brief."
    assert text_or_file({"system_prompt": "@prompt.md"}, "system_prompt") == "From the file."
    assert text_or_file({}, "system_prompt") == ""
    with pytest.raises(UsageError, match=r"--system-prompt: missing\.md cannot be read"):
        text_or_file({"system_prompt": "@missing.md"}, "system_prompt")


def test_missing_directory_is_named_as_it_was_typed() -> None:
    with pytest.raises(UsageError, match="--add-dir: there is no directory ~/missing/"):
        directories({"add_dir": ["~/missing/"]}, "add_dir")
