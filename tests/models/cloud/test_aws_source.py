"""Sources of AWS credentials: what botocore knows, and what is refused without it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from wolo.errors import ConfigError, Unavailable
from wolo.models.cloud.aws_source import AwsSource

CHAIN = """
class Session:
    number = 0
    def get_credentials(self):
        {body}
    def get_frozen_credentials(self):
        self.number += 1
        self.access_key, self.secret_key, self.token = "AK", "SK", f"t{{self.number}}"
        return self
"""


@pytest.fixture
def chain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package with the interface of botocore's sessions, where nobody has installed it."""
    folder = tmp_path / "packages" / "botocore"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(str(folder.parent))
    yield folder / "session.py"
    for name in ("botocore", "botocore.session"):
        sys.modules.pop(name, None)


async def test_chain_of_botocore_is_asked_each_time(chain: Path) -> None:
    chain.write_text(CHAIN.format(body="return self"))
    source = AwsSource({"AWS_ACCESS_KEY_ID": "other", "AWS_SECRET_ACCESS_KEY": "other"})
    tokens = [(await source.fetch()) for _ in range(2)]
    assert [(each.access_key, each.token, each.is_fresh()) for each in tokens] == [("AK", "t1", False), ("AK", "t2", False)]
    assert source.shared_name == ""


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("raise ValueError('bad\\noutput.')", "cannot be loaded: bad output."),
        ("return None", "No credentials of AWS were found."),
    ],
)
async def test_failure_of_botocore_is_one_sentence(chain: Path, body: str, words: str) -> None:
    chain.write_text(CHAIN.format(body=body.replace("\n", "\\n")))
    with pytest.raises(ConfigError, match=words):
        await AwsSource({}).fetch()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("role_arn = arn:aws:iam::1:role/x\nsource_profile = y", "role_arn need botocore"),
        ("credential_process = /bin/x", "credential_process need botocore"),
        ("sso_session = acme\nsso_account_id = 1\nsso_role_name = r", "is not logged in"),
        ("sso_start_url = https://x", "names no sso_account_id"),
    ],
)
async def test_profile_that_cannot_be_used_is_named(line: str, words: str) -> None:
    (Path.home() / ".aws").mkdir()
    (Path.home() / ".aws/config").write_text(f"[default]\n{line}\n")
    with pytest.raises(ConfigError, match=words):
        await AwsSource({}).fetch()


async def test_keys_of_the_credentials_file_are_used() -> None:
    (Path.home() / ".aws").mkdir()
    (Path.home() / ".aws/config").write_text("[profile work]\nregion = x\n")
    (Path.home() / ".aws/credentials").write_text("[work]\naws_access_key_id = AK\naws_secret_access_key = S%K\n")
    found = await AwsSource({"AWS_PROFILE": "work"}).fetch()
    assert (found.access_key, found.secret_key, found.token, found.expires_at) == ("AK", "S%K", "", None)


@pytest.mark.parametrize("content", [b"[profile", b"\xff\xfe", b"key = 1"])
async def test_damaged_profiles_are_named(content: bytes) -> None:
    (Path.home() / ".aws").mkdir()
    (Path.home() / ".aws/config").write_bytes(content)
    with pytest.raises(ConfigError, match=r"\.aws/config cannot be read"):
        await AwsSource({}).fetch()


async def test_missing_profile_is_named() -> None:
    with pytest.raises(ConfigError, match="no AWS profile `nope`"):
        await AwsSource({"AWS_PROFILE": "nope"}).fetch()


@pytest.mark.parametrize("url", ["http://evil.example.com/x", "ftp://127.0.0.2.example.com/", "http://"])
async def test_container_server_elsewhere_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="not asked without encryption"):
        await AwsSource({"AWS_CONTAINER_CREDENTIALS_FULL_URI": url}).fetch()


async def test_closed_port_is_named_as_the_server() -> None:
    with pytest.raises(Unavailable, match=r"The credentials server of the container at .* did not answer"):
        await AwsSource({"AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://127.0.0.1:1/x"}).fetch()
