"""An application under test: a function, a chain, a query engine, a workflow or an HTTP endpoint."""

from __future__ import annotations

import asyncio
import importlib
import inspect
import json
import sys
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from steelyard._internal.text import redacted_url
from steelyard.errors import ConfigurationError, SteelyardError
from steelyard.golden._set import Case
from steelyard.record import Context, Record
from steelyard.recording.reading import ANSWERS, DOCUMENT_TEXTS, contexts_of

_CONTEXTS = (
    *("contexts", "retrieved_contexts", "source_documents", "source_nodes", "documents", "context"),
    *("sources", "retrieval_context"),
)


class OddReply(SteelyardError):
    """An application handed back something in which no answer can be found."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AppReply:
    """An application's answer."""

    answer: str = field(repr=False)
    contexts: tuple[Context, ...] = ()
    """What the application says it retrieved; empty where it says nothing of that."""


def read_reply(value: object) -> AppReply:
    """The answer in what an application returned.

    Strings, messages, Records, responses of query engines, pairs of answer and contexts, and mappings or
    objects with fields of the usual names (`answer`, `response`, `output`, `result`; `contexts`,
    `source_documents`, `source_nodes`) are understood.
    """
    if isinstance(value, Record):
        return AppReply(answer=value.answer, contexts=value.contexts)
    if isinstance(value, str):
        return AppReply(answer=value)
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], str):
        return AppReply(answer=value[0], contexts=_contexts(value[1]))
    answer = _answer(value)
    if answer is None:
        kind = "None" if value is None else f"a {type(value).__name__}"
        keys = f" with the keys {sorted(map(str, value))[:8]}" if isinstance(value, Mapping) else ""
        raise OddReply(
            f"the application returned {kind}{keys}, in which there is no answer; return a string, a "
            "mapping with 'answer' and 'contexts', or a steelyard Record"
        )
    found = next((_field(value, name) for name in _CONTEXTS if _field(value, name)), ())
    return AppReply(answer=answer, contexts=_contexts(found))


def _joined(pieces: list[Any]) -> object:
    if pieces and all(isinstance(piece, Mapping) for piece in pieces):
        merged: dict[str, Any] = {}
        for piece in pieces:
            for key, value in piece.items():
                # Texts come in pieces; what else is streamed, contexts for one, comes whole.
                merged[key] = merged[key] + value if isinstance(merged.get(key), str) else value
        return merged
    texts = [piece if isinstance(piece, str) else _text(piece) for piece in pieces]
    return "".join(text for text in texts if text)


def _answer(value: object) -> str | None:
    for name in (*ANSWERS, "text", "content"):
        found = _field(value, name)
        if isinstance(found, str):
            return found
        # A message or a document as the answer; mappings are looked into below.
        if found is not None and not isinstance(found, Mapping | Sequence) and (text := _text(found)):
            return text
        if isinstance(found, Mapping) and (inner := _answer(found)) is not None:
            return inner
    if isinstance(messages := _field(value, "messages"), Sequence) and messages:
        # Of a graph's state: its last message is what the user is shown.
        return _text(messages[-1])
    return _text(value)


def _field(value: object, name: str) -> Any:
    if isinstance(value, Mapping):
        return value.get(name)
    # Their attributes are methods (`tuple.count`), never a field of a reply.
    return None if isinstance(value, list | tuple | int | float) else getattr(value, name, None)


def _text(value: object) -> str | None:
    node = _field(value, "node")
    if node is not None:
        return _text(node)
    for name in ("text", "content", *DOCUMENT_TEXTS):
        found = _field(value, name)
        if isinstance(found, str):
            return found
        if isinstance(found, list) and found:
            parts = [part if isinstance(part, str) else _field(part, "text") for part in found]
            return "".join(part for part in parts if isinstance(part, str))
    get = getattr(value, "get_content", None)
    content = get() if callable(get) else None
    return content if isinstance(content, str) else None


def _contexts(found: object) -> tuple[Context, ...]:
    if isinstance(found, str):
        return (Context(text=found, rank=0),) if found else ()
    if not isinstance(found, Sequence):
        return ()
    given = [{"text": one.text, "id": one.id} if isinstance(one, Context) else one for one in found]
    return tuple(contexts_of(given))


_LARGEST = 8 * 1024 * 1024  # an endpoint may stream without end
_SECONDS = 3600.0  # the run's own limit for a case comes first


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
                "POST", url, json=body, timeout=_SECONDS, redirect=False, preload_content=False
            )
            data = reply.read(_LARGEST)
            reply.release_conn()
        except urllib3.exceptions.HTTPError as error:
            raise EndpointError(f"{shown}: {type(error).__name__}") from None
        if reply.status >= 300:
            raise EndpointError(f"{shown} replied {reply.status}")
        found: Any = data.decode("utf-8", "replace")
        if "json" in reply.headers.get("Content-Type", ""):
            try:
                found = json.loads(found)
            except (ValueError, RecursionError):
                raise EndpointError("the endpoint's reply is not JSON") from None
        if answer_field is None and contexts_field is None:
            return found
        picked = {"answer": _at(found, answer_field or "answer")}
        return picked | {"contexts": _at(found, contexts_field)} if contexts_field else picked

    return App(name=shown, call=call, takes_history=True)


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


def app_from(target: object, *, options: Mapping[str, Any] | None = None) -> App:
    """The application that an object, a name or an address stands for.

    Args:
        target: A function of a question (sync or async; a parameter called `history`, `chat_history` or
            `case` is given those), an object with `invoke`, `query`, `chat` or `run` (a LangChain chain, a
            LlamaIndex engine or workflow), `"module:name"` of either, or the address of an HTTP endpoint. A
            function without parameters makes the application.
        options: For an HTTP endpoint: see `http_app`.
    """
    if isinstance(target, App):
        return target
    if isinstance(target, str):
        if target.startswith(("http://", "https://")):
            return http_app(target, **(options or {}))
        return _adapted(load_object(target), target)
    return _adapted(target, getattr(target, "__name__", type(target).__name__))


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


def _adapted(target: object, name: str) -> App:
    # A factory: a function that takes no question cannot be the application itself.
    if inspect.isfunction(target) and not inspect.signature(target).parameters:
        made = target()
        if inspect.iscoroutine(made):
            made = asyncio.run(made)
        return _adapted(made, name)
    for method, adapter in _ADAPTERS.items():
        if callable(getattr(target, method, None)) and not inspect.isfunction(target):
            return adapter(target, name)
    if callable(target):
        return _function(target, name)
    raise ConfigurationError(
        f"app {name!r} is a {type(target).__name__}: it can neither be called, nor has it "
        "invoke, query, chat or run"
    )


def _function(target: Callable[..., Any], name: str) -> App:
    named = list(inspect.signature(target).parameters)
    wanted = [parameter for parameter in named if parameter in _CONTEXT_NAMES]
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
    streamed: Iterable[Any] | None = getattr(found, "response_gen", None)
    # LlamaIndex; a chat engine's whole reply has a stream too, which would only repeat it.
    if streamed is not None and not hasattr(found, "is_dummy_stream"):
        text = _joined(list(streamed))
        return {"answer": text, "source_nodes": getattr(found, "source_nodes", None)}
    return _joined(list(found)) if isinstance(found, Iterator) else found


async def _awaited(call: Callable[[Case], Any], case: Case) -> Any:
    found = call(case)
    if inspect.isawaitable(found):
        found = await found
    if isinstance(found, AsyncIterator):
        return _joined([piece async for piece in found])
    return _joined(list(found)) if isinstance(found, Iterator) else found


def _chain(target: Any, name: str) -> App:
    """A LangChain runnable: its input is the question, or a mapping or messages that hold it."""
    try:
        schema = target.get_input_jsonschema()
        # A type of somebody's own stands beside the schema, which only names it.
        schema = schema.get("$defs", {}).get(schema.get("$ref", "").rpartition("/")[2], schema)
        keys = schema.get("properties", {}) if schema.get("type") == "object" else {}
    except Exception:  # noqa: BLE001 - a chain of somebody's own; then its input is the question
        keys = {}
    question = next((key for key in _QUESTION_KEYS if key in keys), None)
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


def _chat(target: Any, name: str) -> App:
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


def _workflow(target: Any, name: str) -> App:
    """A LlamaIndex agent (`user_msg`) or workflow (`query`, `question` or `input`)."""
    names = set(inspect.signature(target.run).parameters)
    key = "user_msg" if "user_msg" in names else next((k for k in _QUESTION_KEYS if k in names), "query")

    call = partial(_awaited, lambda case: target.run(**{key: case.question}))
    return App(name=name, call=call, takes_history=False, is_async=True)


# In this order: a LangChain runnable has `invoke` and may have a `query` as well.
_ADAPTERS: Mapping[str, Callable[[Any, str], App]] = {
    "invoke": _chain,
    "query": lambda target, name: _function(target.query, name),
    "chat": _chat,
    "run": _workflow,
}
