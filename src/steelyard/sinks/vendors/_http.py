"""What sinks for vendors' HTTP APIs share: JSON over the standard library, in a thread of their own.

No client library is needed for a handful of requests a second, and none could be shared: each vendor's SDK
brings its own.
"""

from __future__ import annotations

import base64
import http.client
import json
import os
import urllib.error
import urllib.parse
import urllib.request
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from steelyard._internal.worker_thread import WorkerThread
from steelyard.errors import ConfigurationError, SinkError
from steelyard.record import text_of
from steelyard.recording import unrecorded
from steelyard.scores import Evaluation, Score
from steelyard.sinks._described import made_how

_CAUSES = {401: "unauthorized", 403: "unauthorized", 404: "not_found", 409: "conflict", 429: "rate_limited"}
_LARGEST_REPLY = 16 * 1024 * 1024


class HTTPSink(ABC):
    """A sink that posts JSON. What a vendor's format has no place for is in `left_out`, by reason."""

    name: str

    def __init__(
        self, name: str, url: str, *, headers: Mapping[str, str], timeout: float, explanations: bool
    ) -> None:
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigurationError(f"{name}: {url!r} is no http(s) URL")
        self.name = name
        self._url = url.rstrip("/")
        self._headers = {"Content-Type": "application/json", "Accept": "application/json", **headers}
        self._timeout = timeout
        self._explanations = explanations
        self._left_out: Counter[str] = Counter()
        self._lane = WorkerThread(f"steelyard-{name}", around=unrecorded)
        self._opener = urllib.request.build_opener(_NoRedirect)

    @property
    def left_out(self) -> Mapping[str, int]:
        """Scores that were not sent, by reason: `no_trace`, `no_value`, or the server's refusal."""
        return dict(self._left_out)

    async def write(self, evaluations: Sequence[Evaluation]) -> None:
        """Send them.

        Raises:
            SinkError: If the server could not be reached or refuses; sending again is safe.
        """
        await self._lane.run(lambda: self._send(evaluations))

    async def aclose(self) -> None:
        """Let the thread go."""
        self._lane.close()

    @abstractmethod
    def _send(self, evaluations: Sequence[Evaluation]) -> None:
        """Send them; runs in the sink's thread."""

    def _comment(self, score: Score) -> str | None:
        return text_of(score.explanation) if self._explanations and score.explanation else None

    def _request(self, method: str, path: str, payload: object = None) -> Any:
        """One request; the parsed reply.

        Raises:
            SinkError: If there is no good one.
        """
        body = None if payload is None else json.dumps(payload, allow_nan=False).encode()
        request = urllib.request.Request(f"{self._url}{path}", body, self._headers, method=method)
        try:
            with self._opener.open(request, timeout=self._timeout) as reply:
                return _parsed(reply.read(_LARGEST_REPLY))
        except urllib.error.HTTPError as error:
            with error:
                said = error.read(300).decode("utf-8", "replace")
            cause = _CAUSES.get(error.code, "unavailable" if error.code >= 500 else "rejected")
            raise SinkError(f"{self.name}: HTTP {error.code} from {path}: {said}", cause=cause) from None
        except (OSError, http.client.HTTPException) as error:
            cause = "timeout" if "timed out" in str(error) else "unreachable"
            raise SinkError(f"{self.name}: {self._url} cannot be reached: {error}", cause=cause) from error


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """The key in the headers is for one server only, so a redirect is an error."""

    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        return None


def _parsed(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        return None


def given_or_env(value: str | None, *variables: str, what: str, default: str | None = None) -> str:
    """An option, else the vendor's own environment variable.

    Raises:
        ConfigurationError: If there is neither, nor a default.
    """
    found = value or next((os.environ[name] for name in variables if os.environ.get(name)), default)
    if not found:
        raise ConfigurationError(f"no {what}: pass it, or set {' or '.join(variables)}")
    return found


def basic(user: str, password: str) -> str:
    """The value of a Basic `Authorization` header."""
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def timestamp(seconds: float) -> str:
    """Unix time as ISO 8601 in UTC."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def details(score: Score, evaluation: Evaluation) -> dict[str, Any]:
    """How a number was made and weighed, for a vendor's metadata field; no content."""
    given = {
        "steelyard.evaluation.id": score.id,
        "steelyard.record.id": evaluation.record_id,
        "steelyard.evaluation.status": score.status,
        "steelyard.evaluation.cause": score.cause,
        "steelyard.evaluation.threshold": score.threshold,
        "steelyard.evaluation.standard_error": score.standard_error,
        "steelyard.evaluation.inclusion_probability": score.inclusion_probability,
        **made_how(score),
    }
    return {name: item for name, item in given.items() if item not in (None, "")}
