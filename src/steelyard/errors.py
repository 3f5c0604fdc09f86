"""Every error Steelyard raises, in one tree.

```
SteelyardError
├── ConfigurationError      a wrong option, found when it is given (also a ValueError)
│   └── MissingDependency   an optional package is not installed; the message names the extra
├── InvalidRecord           a line or object that is not a record (also a ValueError)
├── InvalidGoldenSet        a file or object that does not hold golden cases (also a ValueError)
├── SinkError               results could not be delivered; `cause` is a stable word for why
├── Unanswerable            a metric lacks an answer; the batcher makes a Score of it
└── JudgeError              a judge gave no usable reply; `cause` is the word that ends up on the Score
    ├── JudgeUnavailable    transient: unreachable, timeout, 5xx
    │   └── RateLimited     429, with the server's Retry-After where it sent one
    ├── JudgeRejected       permanent: wrong key, unknown model, bad request
    └── MalformedReply      the judge replied with something that is not an answer
```

Nothing in this tree ever reaches the application whose turns are recorded; it is for people who
configure Steelyard or call its engine themselves.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal, get_args

__all__ = [
    "ConfigurationError",
    "InvalidGoldenSet",
    "InvalidRecord",
    "JudgeError",
    "JudgeRejected",
    "JudgeUnavailable",
    "MalformedReply",
    "MissingDependency",
    "RateLimited",
    "SinkError",
    "SteelyardError",
    "Unanswerable",
]

TransientCause = Literal["breaker_open", "rate_limited", "server_error", "timeout", "unreachable"]
"""Why a request failed, where asking again later may help."""

Cause = Literal[
    TransientCause,
    # The server refuses, and will refuse again.
    "bad_request",
    "quota_exceeded",
    "redirected",
    "too_large",
    "unauthorized",
    "unknown_model",
    # The reply, or one answer in it, cannot be used.
    "malformed_answer",
    "instructed",
    "malformed_reply",
    "missing_answer",
    "refused",
    # The judge cannot answer this kind of question, or lacks the part of the record that it is about.
    "unsupported",
    "missing_contexts",
    "missing_question",
    "missing_reference",
    "missing_reference_contexts",
    # The time for the record ran out, or code of a judge or a metric raised.
    "deadline",
    "judge_error",
    "metric_error",
]
"""Why a question has no answer; metrics add words of their own on their Scores (`no_claims`)."""

TRANSIENT_CAUSES: frozenset[str] = frozenset(get_args(TransientCause))
"""The causes of a failed Score after which scoring the turn again may help."""


class SteelyardError(Exception):
    """The root of every error this package raises.

    All of them can be copied and pickled, so they reach whoever waits for a process of a pool.
    """

    def __reduce__(self) -> tuple[Any, ...]:
        # By default Python would call the class with the message alone.
        return _again, (type(self), self.args, self.__dict__)


def _again(kind: type[SteelyardError], args: tuple[object, ...], state: dict[str, object]) -> SteelyardError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(state)
    return error


class ConfigurationError(SteelyardError, ValueError):
    """An option cannot mean what was given; raised where it is given."""


class MissingDependency(ConfigurationError):
    """An optional package is needed and not installed."""

    def __init__(self, package: str, *, extra: str) -> None:
        super().__init__(f"{package!r} is not installed; run: pip install 'steelyard[{extra}]'")
        self.package = package
        self.extra = extra


class InvalidRecord(SteelyardError, ValueError):
    """Some input is not a record; the message says why."""


class Unanswerable(SteelyardError):
    """Raised inside a metric, by `steelyard.questions.require`, when an answer that it needs is missing.

    Attributes:
        cause: Why there is no answer.
        detail: The same in a sentence for people; may be empty.
    """

    def __init__(self, form: str, *, cause: Cause, detail: str = "") -> None:
        super().__init__(f"{form}: {detail or cause}")
        self.cause: Cause = cause
        self.detail = detail


class InvalidGoldenSet(SteelyardError, ValueError):
    """A file or object does not hold golden cases; the message says where and why."""


class JudgeError(SteelyardError):
    """A judge gave no usable reply.

    Attributes:
        cause: A short stable word for it (`"timeout"`, `"unauthorized"`), used on Scores and in counts.
        requests: How many requests it took to find out; retries add to it, so that the bill stays whole.
        transient: Whether asking again later may help.
        retry_after: Seconds the server asked us to wait before that, or None if it did not say.
    """

    transient: ClassVar[bool] = False
    retry_after: float | None = None

    def __init__(self, message: str, *, cause: Cause) -> None:
        super().__init__(message)
        self.cause: Cause = cause
        self.requests = 1


class JudgeUnavailable(JudgeError):
    """The judge could not be reached or failed in a way that may pass."""

    transient = True


class RateLimited(JudgeUnavailable):
    """The judge asked us to slow down."""

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message, cause="rate_limited")
        self.retry_after = retry_after


class JudgeRejected(JudgeError):
    """The judge refuses in a way that trying again will not change."""


class MalformedReply(JudgeError):
    """The judge replied, but with nothing that can be read as answers."""

    def __init__(self, message: str) -> None:
        super().__init__(message, cause="malformed_reply")


class SinkError(SteelyardError):
    """Results could not be delivered.

    Attributes:
        cause: A short stable word for it (`"unauthorized"`, `"unreachable"`), for counts.
    """

    def __init__(self, message: str, *, cause: str) -> None:
        super().__init__(message)
        self.cause = cause


SkipReason = Literal[
    "closed",
    "duplicate",
    "mask_failed",
    "missing_input",
    "never",
    "not_rag",
    "over_budget",
    "queue_full",
    "queue_unavailable",
    "sampled_out",
    "spool_full",
    "status_cancelled",
    "status_error",
    "status_interrupted",
    "throttled",
    "unreadable",
]
"""Why a turn that a Monitor saw is not judged; docs/how-to/tune.md says what each means."""

DeadCause = Literal["poison", "unreadable", "unstorable"]
"""Why a picked turn cannot be evaluated, where no exception says it: it was leased again and again without
any outcome, its stored form cannot be read, or it cannot be written. Other causes are names of exceptions."""
