"""Signatures equal botocore's, which wrote `signatures_by_botocore.json` with the same keys and times."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from wolo.models.cloud.aws_source import sign
from wolo.models.cloud.credentials import Credentials
from wolo.models.http.transport import HttpCall

DATA = json.loads(Path(__file__).with_name("signatures_by_botocore.json").read_text("utf-8"))


@pytest.mark.parametrize("row", DATA["rows"], ids=lambda row: row["name"])
def test_signature_is_that_of_botocore(row: dict[str, Any]) -> None:
    credentials = Credentials(row["token"], DATA["access_key"], DATA["secret_key"])
    now = datetime.strptime(row["date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    headers = sign(HttpCall(url=row["url"], body=row["body"].encode()), credentials, row["region"], "bedrock", now)
    assert headers["authorization"] == row["authorization"]
    assert headers["x-amz-date"] == row["date"]
