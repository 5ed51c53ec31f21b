"""Defines all errors that wolo raises on purpose, each with a message and a hint.

WoloError
├── UsageError             invalid command line or setting; nothing was sent
│   └── ConfigError        invalid settings file, variable or rule
├── ProviderError          the provider rejected or failed the request
│   ├── AuthError          API key missing, invalid or not permitted
│   ├── RateLimited        too many requests
│   ├── QuotaExhausted     plan or balance exhausted; may state the reset time
│   ├── ContextOverflow    the conversation exceeds the context window
│   ├── ContentRefused     refused by the provider's content policy
│   ├── BadRequest         the provider rejected the request itself
│   │   └── Unexplained    rejected without a reason
│   ├── BadAnswer          unusable response (HTML page, empty, truncated)
│   └── Unavailable        connection or server error, stream ended early or stalled
│       └── Unreachable    no connection, or it broke before the response
├── SessionError           session unknown or locked; store full, damaged or newer than this wolo
├── ExtensionError         an extension file is invalid
└── ToolError              for the model: becomes the result of the call
"""

from __future__ import annotations

from typing import ClassVar


class WoloError(Exception):
    """Base class. `message` is one sentence for the user; `hint` suggests what to do (may be empty)."""

    kind: ClassVar[str] = "error"
    exit_code: int = 1

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message, self.hint = message, hint


class UsageError(WoloError):
    kind = "usage"
    exit_code = 2


class ConfigError(UsageError):
    kind = "config"


class SessionError(WoloError):
    kind = "session"
    exit_code = 3


class ExtensionError(WoloError):
    kind = "extension"
    exit_code = 2


class ToolError(WoloError):
    kind = "tool"


LONGEST_WAIT_S = 120.0
"""A provider that requests a longer wait is reported to the user instead."""


class ProviderError(WoloError):
    """`retryable`: another attempt can help; `delay_s`: wait requested by the provider (None: not stated)."""

    kind = "provider"
    retryable: bool = False

    def __init__(
        self,
        message: str,
        *,
        hint: str = "",
        status: int | None = None,
        code: str | None = None,
        delay_s: float | None = None,
        resets_at: str | None = None,
        field: str | None = None,
    ) -> None:
        super().__init__(message, hint=hint)
        self.status = status
        """HTTP status, when there was one."""
        self.code = code
        """The provider's code, always as text ("1302", "rate_limit_exceeded")."""
        self.delay_s = delay_s
        self.resets_at = resets_at
        """The time at which a limit resets: ISO 8601 with offset."""
        self.field = field
        """The optional request field that a 400 response names, if it is one we added."""


class AuthError(ProviderError):
    kind = "auth"


class RateLimited(ProviderError):
    kind = "rate_limited"
    exit_code = 75
    retryable = True


class QuotaExhausted(ProviderError):
    """Exit code 75 if the provider states a reset time, 1 if only the user can fix it (no balance)."""

    kind = "quota"

    def __init__(self, message: str, *, temporary: bool, **details: str | int | float | None) -> None:
        super().__init__(message, **details)  # type: ignore[arg-type]  # the same keywords, checked by the base
        self.exit_code = 75 if temporary else 1


class ContextOverflow(ProviderError):
    kind = "context_overflow"


class ContentRefused(ProviderError):
    kind = "content_refused"


class BadRequest(ProviderError):
    kind = "bad_request"


class Unexplained(BadRequest):
    """Some servers answer this way when a request exceeds the context window."""


class BadAnswer(ProviderError):
    kind = "bad_answer"


class Unavailable(ProviderError):
    kind = "unavailable"
    exit_code = 75
    retryable = True


class Unreachable(Unavailable):
    """No response was received, so retrying is free; network gaps end by themselves."""
