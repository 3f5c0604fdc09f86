"""Spans on a Phoenix server, by its REST API."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import quote, urlencode

import urllib3

from steelyard._internal.redact import error_words, redacted_url
from steelyard.backfill._traced import Tracing
from steelyard.errors import ConfigurationError

_PAGE: Final = 500
_LARGEST: Final = 256 * 1024 * 1024
_SECONDS: Final = 60.0


class PhoenixServer:
    """A project of a Phoenix server; the key is `PHOENIX_API_KEY`, where the server asks for one."""

    def __init__(self, url: str, *, project: str) -> None:
        self.name = f"{redacted_url(url).rstrip('/')} project {project!r}"
        self._address = f"{url.rstrip('/')}/v1/projects/{quote(project, safe='')}/spans"
        key = os.environ.get("PHOENIX_API_KEY")
        self._headers = {"accept": "application/json"} | ({"authorization": f"Bearer {key}"} if key else {})

    def lines(self) -> Iterator[bytes]:
        """Every span as OTLP/JSON.

        Raises:
            ConfigurationError: If the server does not answer, or not as Phoenix does.
        """
        cursor: str | None = None
        tracing = Tracing()
        # Without redirects, which would send the key to another server.
        with urllib3.PoolManager(timeout=_SECONDS, retries=urllib3.Retry(3, redirect=0)) as pool:
            while True:
                page = self._page(pool, cursor)
                spans = page.get("data")
                yield from (_line(tracing, span) for span in spans or () if isinstance(span, dict))
                before, cursor = cursor, page.get("next_cursor")
                # A server that gives the same cursor again would be asked for ever.
                if not cursor or cursor == before:
                    return

    def _page(self, pool: urllib3.PoolManager, cursor: str | None) -> dict[str, Any]:
        query = urlencode({"limit": _PAGE, **({"cursor": cursor} if cursor else {})})
        try:
            reply = pool.request(
                "GET", f"{self._address}?{query}", headers=self._headers, preload_content=False
            )
            # One byte more than is allowed shows that there is more.
            body = reply.read(_LARGEST + 1)
            reply.release_conn()
        except urllib3.exceptions.HTTPError as error:
            raise ConfigurationError(f"{self.name} cannot be reached: {error_words(_cause(error))}") from None
        if reply.status != 200:
            raise ConfigurationError(f"{self.name}: HTTP {reply.status} instead of spans")
        if len(body) > _LARGEST:
            raise ConfigurationError(f"{self.name}: {_PAGE} spans have more than {_LARGEST >> 20} MiB")
        try:
            page = json.loads(body)
        except (ValueError, RecursionError):
            page = None
        if not isinstance(page, dict):
            raise ConfigurationError(f"{self.name}: the reply is not Phoenix's list of spans")
        return page


def _line(tracing: Tracing, span: Mapping[str, Any]) -> bytes:
    context = span.get("context")
    context = context if isinstance(context, dict) else {}
    attributes = dict(span["attributes"]) if isinstance(span.get("attributes"), dict) else {}
    attributes.setdefault("openinference.span.kind", span.get("span_kind") or "CHAIN")
    failed = span.get("status_code") == "ERROR"
    return tracing.line(
        trace_id=str(context.get("trace_id") or ""),
        span_id=str(context.get("span_id") or ""),
        parent_id=span.get("parent_id") or None,
        name=str(span.get("name") or ""),
        start=span.get("start_time"),
        end=span.get("end_time"),
        attributes=attributes,
        error=str(span.get("status_message") or "Error") if failed else "",
    )


def _cause(error: BaseException) -> BaseException:
    """What lies behind an error of urllib3: the refused connection rather than that it was tried so often."""
    reason = getattr(error, "reason", None)
    inner = reason if isinstance(reason, BaseException) else error.__cause__
    return error if inner is None else _cause(inner)
