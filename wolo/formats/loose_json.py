"""JSON read with patience, for what servers send outside of their own rules."""

from __future__ import annotations

import json
from typing import Any


def read_object(data: bytes) -> dict[str, Any] | None:
    """Whatever can be understood as a JSON object, halves of characters included; of a list its first object."""
    try:
        document = json.loads(data.decode("utf-8-sig", "replace"), strict=False)
    except (ValueError, RecursionError):
        return None
    if isinstance(document, list):
        document = next((each for each in document if isinstance(each, dict)), None)
    return document if isinstance(document, dict) else None
