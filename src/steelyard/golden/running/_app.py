"""An application under test: a function, a chain, a query engine, a workflow or an HTTP endpoint."""

from __future__ import annotations

import asyncio
import importlib
import inspect
import json
import sys
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from steelyard._internal.redact import redacted_url
from steelyard.errors import ConfigurationError, SteelyardError
from steelyard.golden._set import Case
from steelyard.golden.running._reply import join_async_pieces, join_pieces

# An endpoint may stream without end.
_LARGEST = 8 * 1024 * 1024
# The run's own limit for a case comes first.
_SECONDS = 3600.0


class EndpointError(SteelyardError):
    """The endpoint did not answer, or answered with an HTTP error."""


def http_app(url: str, *, answer_field: str | None = None, contexts_field: str | None = None) -> App:
    """An endpoint as an application.

    A case is posted as `{"question": ..., "history": [{"role", "content"}]}`. The reply is read like that of
    a function; name its fields where they have other names (`data.answer`). Redirects are not followed.
    """
    import urllib3

    # Not retried: a second request may count, cost or write something a second time.
    pool = urllib3.PoolManager(num_pools=1, maxsize=16, retries=False)
    shown = redacted_url(url)

    def call(case: Case) -> Any:
        body = {"question": case.question, "history": messages(case)}
        try:
            reply = pool.request(
                "POST",
                url,
                json=body,
                timeout=_SECONDS,
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


_CONTEXT_NAMES = ("history", "chat_history", "case")
_QUESTION_KEYS = ("question", "input", "query", "user_input")
_HISTORY_KEYS = ("chat_history", "history")


@dataclass(frozen=True, kw_only=True, slots=True)
class App:
    """How to put a case to an application."""

    name: str
    call: Callable[[Case], Any]
    """Puts a case to it; called in a thread, or in the loop where it returns a coroutine."""
    takes_history: bool
    """Whether it is told what was said before."""
    is_async: bool = False
    """Whether `call` returns a coroutine."""
    alone: bool = False
    """Whether it keeps a conversation in itself, so that only one case may be put to it at a time."""


def app_from(
    target: object, *, input_key: str | None = None, options: Mapping[str, Any] | None = None
) -> App:
    """The application that an object, a name or an address stands for.

    Args:
        target: A function of a question (sync or async; a parameter called `history`, `chat_history` or
            `case` is given those), an object with `invoke`, `query`, `chat` or `run` (a LangChain chain, a
            LlamaIndex engine or workflow), `"module:name"` of either, or the address of an HTTP endpoint. A
            function without parameters makes the application.
        input_key: The key of a chain's input under which it expects the question, where it cannot be told.
        options: For an HTTP endpoint: see `http_app`.
    """
    if isinstance(target, App):
        return target
    if isinstance(target, str):
        if target.startswith(("http://", "https://")):
            return http_app(target, **(options or {}))
        return _adapted(load_object(target), target, input_key)
    return _adapted(target, getattr(target, "__name__", type(target).__name__), input_key)


def load_object(spec: str, *, what: str = "app") -> object:
    """What `module:name` names, seen from the working directory."""
    module, _, name = spec.partition(":")
    if not (module and name):
        raise ConfigurationError(f"{what} {spec!r} is not of the form module:name")
    here = str(Path.cwd())
    # As `python -m` does: the application is in the working directory.
    if here not in sys.path:
        sys.path.insert(0, here)
    if module.endswith(".py"):
        module = module.removesuffix(".py").replace("/", ".")
    try:
        found: object = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            f"{what} {spec!r}: no module is named {error.name!r}; run from its folder, or install it"
        ) from None
    except AttributeError:
        raise ConfigurationError(
            f"{what} {spec!r}: the module {module!r} has no {name!r}; name something that is in it"
        ) from None
    return found


def _adapted(target: object, name: str, input_key: str | None) -> App:
    # A factory: a function that takes no question cannot be the application itself.
    if inspect.isfunction(target) and not _parameters(target):
        made = target()
        if inspect.iscoroutine(made):
            made = asyncio.run(made)
        return _adapted(made, name, input_key)
    for method, adapter in _ADAPTERS.items():
        if callable(getattr(target, method, None)) and not inspect.isfunction(target):
            return adapter(target, name, input_key)
    if callable(target):
        return _function(target, name)
    raise ConfigurationError(
        f"app {name!r} is a {type(target).__name__}: it can neither be called, nor has it "
        "invoke, query, chat or run"
    )


def _parameters(target: Callable[..., Any]) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(target).parameters.values())
    # Builtins and C functions tell no signature; they are called with the question alone.
    except (ValueError, TypeError):
        return [inspect.Parameter("question", inspect.Parameter.POSITIONAL_ONLY)]


def _function(target: Callable[..., Any], name: str) -> App:
    parameters = _parameters(target)
    named = [parameter.name for parameter in parameters]
    wanted = [parameter for parameter in named if parameter in _CONTEXT_NAMES]
    # A first parameter of that name is where the question goes, whatever it is called.
    if named and named[0] in _CONTEXT_NAMES and named[0] != "case":
        wanted = []
    bare = getattr(target, "__call__", target)  # noqa: B004 - an object's own async __call__
    is_async = inspect.iscoroutinefunction(target) or inspect.iscoroutinefunction(bare)

    def call(case: Case) -> Any:
        more = {key: case if key == "case" else messages(case) for key in wanted}
        return target(**more) if named[:1] == ["case"] else target(case.question, **more)

    if is_async or inspect.isasyncgenfunction(target):
        return App(name=name, call=partial(_awaited, call), takes_history=bool(wanted), is_async=True)
    return App(name=name, call=partial(_drained, call), takes_history=bool(wanted))


def messages(case: Case) -> list[dict[str, str]]:
    """What was said before, as role and content."""
    return [{"role": message.role, "content": message.text} for message in case.history]


def _drained(call: Callable[[Case], Any], case: Case) -> Any:
    """The reply; a stream is read to its end here, where it is recorded."""
    found = call(case)
    if (streamed := _stream_of(found)) is not None:
        text = join_pieces(iter(streamed))
        return {"answer": text, "source_nodes": getattr(found, "source_nodes", None)}
    return join_pieces(found) if isinstance(found, Iterator) else found


def _stream_of(found: object) -> Iterable[Any] | None:
    """The pieces of a LlamaIndex reply that streams."""
    if hasattr(found, "is_dummy_stream"):  # a chat engine's whole reply, whose stream would only repeat it
        return None
    pieces: Iterable[Any] | None = getattr(found, "response_gen", None)
    return pieces


async def _awaited(call: Callable[[Case], Any], case: Case) -> Any:
    found = call(case)
    if inspect.isawaitable(found):
        found = await found
    if isinstance(found, AsyncIterator):
        return await join_async_pieces(found)
    return join_pieces(found) if isinstance(found, Iterator) else found


def _chain(target: Any, name: str, input_key: str | None) -> App:
    """A LangChain runnable: its input is the question, or a mapping or messages that hold it."""
    keys = [input_key] if input_key else _input_keys(target)
    question = next((key for key in _QUESTION_KEYS if key in keys), input_key)
    history = next((key for key in _HISTORY_KEYS if key in keys), None)

    def call(case: Case) -> Any:
        if question is None and "messages" in keys:
            asked = {"role": "user", "content": case.question}
            return target.invoke({"messages": [*messages(case), asked]})
        if question is None:
            return target.invoke(case.question)
        given: dict[str, Any] = {question: case.question}
        if history is not None:
            # LangChain's placeholders take pairs of role and text.
            given[history] = [(message.role, message.text) for message in case.history]
        return target.invoke(given)

    takes = history is not None or (question is None and "messages" in keys)
    return App(name=name, call=partial(_drained, call), takes_history=takes)


def _input_keys(target: Any) -> list[str]:
    """The names of the fields of a chain's input; none where it takes a bare question."""
    try:
        schema = target.get_input_jsonschema()
    except Exception:  # noqa: BLE001 - a chain of somebody's own; then its input is the question
        return []
    return list(schema.get("properties", ())) if schema.get("type") == "object" else []


def _engine(target: Any, name: str, _: str | None) -> App:
    return App(
        name=name, call=partial(_drained, lambda case: target.query(case.question)), takes_history=False
    )


def _chat(target: Any, name: str, _: str | None) -> App:
    """A chat engine: it keeps the conversation in itself, so each case starts a new one."""

    def call(case: Case) -> Any:
        # Or the cases before would be part of this one's conversation.
        if callable(reset := getattr(target, "reset", None)):
            reset()
        if not case.history:
            return target.chat(case.question)
        # Only here: importing LlamaIndex takes seconds, and most applications are something else.
        from llama_index.core.llms import ChatMessage

        told = [ChatMessage(role=message.role, content=message.text) for message in case.history]
        return target.chat(case.question, chat_history=told)

    return App(name=name, call=partial(_drained, call), takes_history=True, alone=True)


def _workflow(target: Any, name: str, _: str | None) -> App:
    """A LlamaIndex agent (`user_msg`) or workflow (`query`, `question` or `input`)."""
    names = {parameter.name for parameter in _parameters(target.run)}
    key = "user_msg" if "user_msg" in names else next((k for k in _QUESTION_KEYS if k in names), "query")

    def call(case: Case) -> Any:
        return target.run(**{key: case.question})

    return App(name=name, call=partial(_awaited, call), takes_history=False, is_async=True)


# In this order: a LangChain runnable has `invoke` and may have a `query` as well.
_ADAPTERS: Mapping[str, Callable[[Any, str, str | None], App]] = {
    "invoke": _chain,
    "query": _engine,
    "chat": _chat,
    "run": _workflow,
}
