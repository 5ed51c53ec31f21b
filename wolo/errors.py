"""Every error wolo raises on purpose: what went wrong in a sentence, and a hint how to go on.

WoloError
├── UsageError             the command line or a setting asks for something impossible; nothing was sent
│   └── ConfigError        a settings file, variable or rule is wrong
├── ProviderError          the model's provider said no; the kind says why
│   ├── AuthError          the key is missing, wrong or not allowed here
│   ├── RateLimited        too many requests just now
│   ├── QuotaExhausted     the plan or balance is used up; may say when it resets
│   ├── ContextOverflow    the conversation no longer fits the model's window
│   ├── ContentRefused     the provider's content policy refused
│   ├── BadRequest         the provider rejected the request itself
│   │   └── Unexplained    it gave no reason
│   ├── BadAnswer          what came back is not a usable answer (HTML page, empty, cut at the limit)
│   └── Unavailable        connection, server error, stream that ended early or stalled
│       └── Unreachable    no connection, or it broke before any byte of an answer
├── SessionError           the store: unknown, locked, full, damaged or newer than this wolo
├── ExtensionError         a file a user added cannot be used
└── ToolError              a word to the model: it becomes the result of the call
"""

from __future__ import annotations

from typing import ClassVar


class WoloError(Exception):
    """The root. `message` is one sentence for people; `hint` says what to do now (may be empty)."""

    kind: ClassVar[str] = "error"
    exit_code: int = 1

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


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


class ProviderError(WoloError):
    """`retryable` says whether another try can help, `delay_s` how long the provider asked to wait (None: not said)."""

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
        """The provider's own code, always as text ("1302", "rate_limit_exceeded")."""
        self.delay_s = delay_s
        self.resets_at = resets_at
        """When a limit resets: ISO 8601 with offset."""
        self.field = field
        """The optional request field that a 400 names, if it names one that we added."""


class AuthError(ProviderError):
    kind = "auth"


class RateLimited(ProviderError):
    kind = "rate_limited"
    exit_code = 75
    retryable = True


class QuotaExhausted(ProviderError):
    """Exit 75 when the provider says when it resets, 1 when only a person can fix it (no balance)."""

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
    """Some servers answer so when a request is longer than the window."""


class BadAnswer(ProviderError):
    kind = "bad_answer"


class Unavailable(ProviderError):
    kind = "unavailable"
    exit_code = 75
    retryable = True


class Unreachable(Unavailable):
    """Nothing was answered, so another try costs nothing; a gap in the network ends by itself."""
