"""GLM's business codes: they decide, whatever the HTTP status, because status 429 covers money and crowds alike."""

from __future__ import annotations

from collections.abc import Mapping

from wolo.errors import (
    AuthError,
    BadRequest,
    ContentRefused,
    ContextOverflow,
    ProviderError,
    QuotaExhausted,
    RateLimited,
    Unavailable,
)

GLM_CODES: Mapping[str, tuple[type[ProviderError], bool]] = {
    **dict.fromkeys(("1000", "1001", "1002", "1003", "1004"), (AuthError, False)),
    **dict.fromkeys(("1100", "1110", "1111", "1112", "1121"), (AuthError, False)),  # the account is locked or missing
    "1113": (QuotaExhausted, False),  # no balance, or a plan's key on the general endpoint
    "1120": (Unavailable, True),  # the account cannot be reached just now
    **dict.fromkeys(("1200", "1230"), (Unavailable, True)),
    **dict.fromkeys(("1210", "1211", "1212", "1213", "1214", "1215"), (BadRequest, False)),
    "1220": (AuthError, False),
    **dict.fromkeys(("1221", "1222", "1231"), (BadRequest, False)),
    "1234": (Unavailable, True),
    "1261": (ContextOverflow, False),
    **dict.fromkeys(("1300", "1301"), (ContentRefused, False)),
    **dict.fromkeys(("1302", "1303", "1305", "1312"), (RateLimited, True)),
    **dict.fromkeys(("1304", "1308", "1309", "1310", "1311", "1313"), (QuotaExhausted, False)),
    **dict.fromkeys(("1316", "1317", "1318", "1319", "1320", "1321"), (QuotaExhausted, False)),
}
"""Code → kind, and whether another try can help."""

GLM_FINAL = r"1[23]\d\d"
"""The families of codes about parameters, content and plans: also what is new in them does not change by asking again."""

TEMPORARY_QUOTAS = frozenset({"1304", "1308", "1310", "1316", "1317", "1318", "1319", "1320", "1321"})
"""Windows that come to an end by themselves, even where the message does not say when."""
