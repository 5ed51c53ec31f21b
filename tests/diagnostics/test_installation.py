"""Commands that update wolo or add an extra, by the way it was installed."""

from __future__ import annotations

from pathlib import Path

import pytest

from wolo.diagnostics.installation import Installation, install_command, plan_update


@pytest.mark.parametrize(
    ("files", "installer", "origin", "command"),
    [
        ((), "pip", {}, "/v/bin/python -m pip install --upgrade wolo-cli"),
        ((), "uv", {}, "uv pip install --python /v/bin/python --upgrade wolo-cli"),
        (("uv-receipt.toml",), "uv", {}, "uv tool upgrade wolo-cli"),
        (("pipx_metadata.json",), "pip", {}, "pipx upgrade wolo-cli"),
        ((), "pip", {"url": "https://example.com/wolo.git", "vcs_info": {"vcs": "git"}}, "git+https://example.com/wolo.git"),
        ((), "pip", {"url": "file:///src/my%20wolo", "dir_info": {"editable": True}}, "git -C '/src/my wolo' pull"),
        (
            (),
            "pip",
            {"url": "file:///src/wolo", "dir_info": {}},
            "pull --ff-only && /v/bin/python -m pip install --upgrade /src/wolo",
        ),
        ((), "debian", {}, "package manager"),
        (("lib/self-contained",), "pip", {}, "wolo update --yes"),
    ],
)
def test_update_knows_how_wolo_was_installed(
    tmp_path: Path, files: tuple[str, ...], installer: str, origin: dict[str, object], command: str
) -> None:
    for name in files:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert command in plan_update(Installation(tmp_path, "/v/bin/python", installer, origin)).text


@pytest.mark.parametrize(
    ("files", "installer", "origin", "command"),
    [
        ((), "pip", {}, ["/v/bin/python", "-m", "pip", "install", "wolo-cli[local]"]),
        ((), "uv", {}, ["uv", "pip", "install", "--python", "/v/bin/python", "wolo-cli[local]"]),
        (("uv-receipt.toml",), "uv", {}, ["uv", "tool", "install", "--force", "wolo-cli[local]"]),
        (("pipx_metadata.json",), "pip", {}, ["pipx", "install", "--force", "wolo-cli[local]"]),
        (
            (),
            "pip",
            {"url": "file:///src/wolo", "dir_info": {"editable": True}},
            ["/v/bin/python", "-m", "pip", "install", "-e", "/src/wolo[local]"],
        ),
    ],
)
def test_an_extra_is_installed_where_wolo_is(
    tmp_path: Path, files: tuple[str, ...], installer: str, origin: dict[str, object], command: list[str]
) -> None:
    for name in files:
        (tmp_path / name).touch()
    assert install_command(Installation(tmp_path, "/v/bin/python", installer, origin), "local") == command
