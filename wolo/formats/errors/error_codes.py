"""Codes and types that mean the same wherever they stand: with any status, in a body, in a stream, behind any proxy."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from wolo.errors import (
    AuthError,
    BadAnswer,
    BadRequest,
    ContentRefused,
    ContextOverflow,
    ProviderError,
    QuotaExhausted,
    RateLimited,
    Unavailable,
)

Kind = type[ProviderError]

CODES: Mapping[str, Kind] = {
    # OpenAI and those who took its names
    "rate_limit_exceeded": RateLimited,
    "insufficient_quota": QuotaExhausted,
    "billing_hard_limit_reached": QuotaExhausted,
    "billing_not_active": QuotaExhausted,
    "exceeded_current_quota_error": QuotaExhausted,
    "invalid_api_key": AuthError,
    "invalid_authentication_error": AuthError,
    "unsupported_country_region_territory": AuthError,
    "context_length_exceeded": ContextOverflow,
    "contextwindowexceedederror": ContextOverflow,
    "content_filter": ContentRefused,
    "content_policy_violation": ContentRefused,
    "responsibleaipolicyviolation": ContentRefused,
    "engine_overloaded_error": RateLimited,
    "service_tier_capacity_exceeded": RateLimited,
    "request_quota_exceeded": RateLimited,
    "token_quota_exceeded": RateLimited,
    "too_many_requests_error": RateLimited,
    "budget_exceeded": QuotaExhausted,
    "model_not_found": BadRequest,
    "tool_use_failed": BadAnswer,
    # Anthropic
    "rate_limit_error": RateLimited,
    "overloaded_error": Unavailable,
    "billing_error": QuotaExhausted,
    "authentication_error": AuthError,
    "permission_error": AuthError,
    "request_too_large": ContextOverflow,
    # Google
    "api_key_invalid": AuthError,
    "api_key_expired": AuthError,
    "unauthenticated": AuthError,
    "permission_denied": AuthError,
    "service_disabled": AuthError,
    # Amazon
    "throttlingexception": RateLimited,
    "toomanyrequestsexception": RateLimited,
    "servicequotaexceededexception": QuotaExhausted,
    "accessdeniedexception": AuthError,
    "expiredtokenexception": AuthError,
    "unrecognizedclientexception": AuthError,
    "modelnotreadyexception": Unavailable,
    "modeltimeoutexception": Unavailable,
    "serviceunavailableexception": Unavailable,
    "internalserverexception": Unavailable,
    "modelerrorexception": Unavailable,
    # DashScope
    "arrearage": QuotaExhausted,
    "data_inspection_failed": ContentRefused,
    "datainspectionfailed": ContentRefused,
    "invalidapikey": AuthError,
    "throttling.ratequota": RateLimited,
    "throttling.burstrate": RateLimited,
}

ANOTHER_TRY = frozenset({"tool_use_failed"})
"""The model wrote a call that its server could not read: mostly it writes a better one the next time."""


def kind_of(codes: Iterable[str], status: int) -> tuple[str, Kind] | None:
    """The first code that says something, as it was written, and its kind.

    A request that is too large for any minute is refused as one of too many with 413: only a smaller one helps.
    """
    for written in codes:
        code = re.sub(r"^.*[#/]", "", written).partition(":")[0].strip().lower()
        if code in CODES and not (status == 413 and CODES[code] is RateLimited):
            return code, CODES[code]
    return None
