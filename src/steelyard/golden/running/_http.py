"""An application behind an HTTP endpoint: a question is posted as JSON, the reply is JSON or text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from steelyard._internal.redact import redacted_url
from steelyard.errors import ConfigurationError, SteelyardError
from steelyard.golden._case import Case
from steelyard.golden.running._app import App, messages

# An endpoint may stream without end.
_LARGEST = 8 * 1024 * 1024


class EndpointError(SteelyardError):
    """The endpoint did not answer, or answered with an HTTP error."""


def http_app(
    url: str,
    *,
    question_field: str = "question",
    answer_field: str | None = None,
    contexts_field: str | None = None,
    headers: Mapping[str, str] | None = None,
    timeout: float = 60.0,
) -> App:
    """An endpoint as an application.

    A case is posted as `{"question": ..., "history": [{"role", "content"}]}`. The reply is read like that of
    a function; name its fields where they have other names.

    Args:
        url: The address, posted to as it is. Redirects are not followed.
        question_field: Under which name the question is sent.
        answer_field: Where the answer is in the reply, e.g. `data.answer`.
        contexts_field: Where the contexts are.
        headers: Sent along, e.g. an authorization.
        timeout: Seconds for one reply.

    Raises:
        ConfigurationError: If an option cannot mean what was given.
    """
    if not question_field:
        raise ConfigurationError("question_field must not be empty")
    import urllib3

    # Not retried: a second request may count, cost or write something a second time.
    pool = urllib3.PoolManager(num_pools=1, maxsize=16, retries=False)
    shown = redacted_url(url)

    def call(case: Case) -> Any:
        body = {question_field: case.question, "history": messages(case)}
        try:
            reply = pool.request(
                "POST",
                url,
                json=body,
                headers={"Content-Type": "application/json", **(headers or {})},
                timeout=timeout,
                redirect=False,
                preload_content=False,
            )
            data = reply.read(_LARGEST)
            reply.release_conn()
        except urllib3.exceptions.HTTPError as error:
            raise EndpointError(f"{shown}: {type(error).__name__}") from None
        if reply.status >= 300:
            raise EndpointError(f"{shown} replied {reply.status}")
        return _picked(_parsed(data, reply.headers.get("Content-Type", "")), answer_field, contexts_field)

    return App(name=shown, call=call, takes_history=True)


def _parsed(data: bytes, kind: str) -> object:
    text = data.decode("utf-8", "replace")
    if "json" not in kind:
        return text
    try:
        parsed: object = json.loads(text)
    except (ValueError, RecursionError):
        raise EndpointError("the endpoint's reply is not JSON") from None
    return parsed


def _picked(reply: object, answer: str | None, contexts: str | None) -> object:
    if answer is None and contexts is None:
        return reply
    picked = {"answer": _at(reply, answer or "answer")}
    return picked | {"contexts": _at(reply, contexts)} if contexts else picked


def _at(value: object, path: str) -> object:
    for name in path.split("."):
        if isinstance(value, list) and name.isdigit() and int(name) < len(value):
            value = value[int(name)]
        else:
            value = value.get(name) if isinstance(value, Mapping) else None
    return value
