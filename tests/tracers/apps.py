"""The applications of the bed: one question of each tenant, whose name is in all that its turn says."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

NAME = re.compile(r"tenant\d{4}")
LEFT = "tenant9999"


def tenants(mode: int) -> tuple[str, ...]:
    """Twenty names that no other mode has."""
    return tuple(f"tenant{mode:02}{number:02}" for number in range(20))


def asked(tenant: str) -> str:
    return f"What is the opening code of {tenant}?"


def found(text: str) -> str:
    return f"The opening code of {_named(text)} is 7{_named(text)[-2:]}1."


def said(prompt: str) -> str:
    return f"The code that {_named(prompt)} opens with is 7{_named(prompt)[-2:]}1."


def _named(text: str) -> str:
    return str(NAME.findall(text)[-1])


@dataclass
class App:
    """One application, called in each of the ways that its framework has."""

    call: Callable[[str], object]
    acall: Callable[[str], Awaitable[object]]
    stream: Callable[[str], Iterator[object]]
    astream: Callable[[str], AsyncIterator[object]]


def _langchain_parts() -> tuple[Any, Any]:
    """A retriever and a model."""
    from langchain_core.documents import Document
    from langchain_core.messages import AIMessage
    from langchain_core.retrievers import BaseRetriever

    from fakes.langchain_models import SpeakingModel

    class Shelf(BaseRetriever):
        def _get_relevant_documents(self, query: str, **_: Any) -> list[Document]:
            mark(query)
            return [Document(page_content=found(query))]

        async def _aget_relevant_documents(self, query: str, **_: Any) -> list[Document]:
            await asyncio.sleep(0.001)
            return self._get_relevant_documents(query)

    class Speaker(SpeakingModel):
        @property
        def _identifying_params(self) -> dict[str, Any]:
            return {"model_name": "speaker-1"}  # without a name, the official instrumentor passes it over

        def reply_to(self, messages: Any, manager: Any) -> AIMessage:
            return AIMessage(said(messages[-1].content))

        async def _agenerate(self, messages: Any, *_: Any, **__: Any) -> Any:
            await asyncio.sleep(0.001)
            return self._generate(messages)

        async def _astream(self, messages: Any, *_: Any, **__: Any) -> AsyncIterator[Any]:
            for chunk in self._stream(messages):
                await asyncio.sleep(0)
                yield chunk

    return Shelf(), Speaker()


def langchain(callbacks: Callable[[], list[Any]]) -> App:
    """A chain of a retriever, a prompt and a model.

    Args:
        callbacks: What is passed to each call.
    """
    from langchain_core.output_parsers import StrOutputParser
    from langchain_core.prompts import ChatPromptTemplate
    from langchain_core.runnables import RunnablePassthrough

    shelf, speaker = _langchain_parts()
    prompt = ChatPromptTemplate.from_template("Context: {context}\n\nQuestion: {question}")
    join = shelf | (lambda documents: "\n\n".join(each.page_content for each in documents))
    chain = {"context": join, "question": RunnablePassthrough()} | prompt | speaker | StrOutputParser()

    def config() -> Any:
        return {"callbacks": callbacks()}

    return App(
        call=lambda text: chain.invoke(text, config()),
        acall=lambda text: chain.ainvoke(text, config()),
        stream=lambda text: chain.stream(text, config()),
        astream=lambda text: chain.astream(text, config()),
    )


def langgraph(callbacks: Callable[[], list[Any]]) -> App:
    """The same as the nodes of a graph."""
    from langgraph.graph import END, START, StateGraph

    shelf, speaker = _langchain_parts()

    def look(state: dict[str, Any]) -> dict[str, Any]:
        return {**state, "documents": shelf.invoke(state["question"])}

    def speak(state: dict[str, Any]) -> dict[str, Any]:
        text = f"Context: {state['documents'][0].page_content}\n\nQuestion: {state['question']}"
        return {"answer": speaker.invoke(text).content}

    graph: Any = StateGraph(dict)
    graph.add_node("look", look).add_node("speak", speak)
    built = graph.add_edge(START, "look").add_edge("look", "speak").add_edge("speak", END).compile()

    def config() -> Any:
        return {"callbacks": callbacks()}

    return App(
        call=lambda text: built.invoke({"question": text}, config()),
        acall=lambda text: built.ainvoke({"question": text}, config()),
        stream=lambda text: built.stream({"question": text}, config()),
        astream=lambda text: built.astream({"question": text}, config()),
    )


def _llamaindex_parts() -> tuple[Any, Any]:
    """A retriever and a model."""
    from llama_index.core.retrievers import BaseRetriever
    from llama_index.core.schema import NodeWithScore, TextNode

    from fakes.llamaindex_models import CompletionModel

    class Shelf(BaseRetriever):
        def _retrieve(self, query_bundle: Any) -> Any:
            mark(query_bundle.query_str)
            return [NodeWithScore(node=TextNode(text=found(query_bundle.query_str)), score=0.9)]

        async def _aretrieve(self, query_bundle: Any) -> Any:
            await asyncio.sleep(0.001)
            return self._retrieve(query_bundle)

    class Speaker(CompletionModel):
        slow: float = 0.001

        def says(self, prompt: str) -> str:
            return said(prompt)

    return Shelf(), Speaker()


def llamaindex(_: Callable[[], list[Any]]) -> App:
    """A query engine."""
    from llama_index.core.query_engine import RetrieverQueryEngine
    from llama_index.core.response_synthesizers import get_response_synthesizer

    shelf, speaker = _llamaindex_parts()

    def engine(*, streaming: bool = False, use_async: bool = False) -> RetrieverQueryEngine:
        synthesizer = get_response_synthesizer(llm=speaker, streaming=streaming, use_async=use_async)
        return RetrieverQueryEngine(retriever=shelf, response_synthesizer=synthesizer)

    whole, streamed, astreamed = engine(), engine(streaming=True), engine(streaming=True, use_async=True)

    def stream(text: str) -> Iterator[object]:
        response: Any = streamed.query(text)
        yield from response.response_gen

    async def astream(text: str) -> AsyncIterator[object]:
        response: Any = await astreamed.aquery(text)
        async for piece in response.async_response_gen():
            yield piece

    return App(call=whole.query, acall=whole.aquery, stream=stream, astream=astream)


def mark(query: str) -> None:
    """Put the tenant's name on Datadog's span, which has no texts."""
    datadog = sys.modules.get("ddtrace")
    if datadog is not None and (span := datadog.tracer.current_span()) is not None:
        span.set_tag("tenant", _named(query))


def sync(app: App, around: Any, tenants: Sequence[str]) -> None:
    """One after the other, as in a script or a notebook."""
    for tenant in tenants:
        with around(tenant):
            app.call(asked(tenant))


def threads(app: App, around: Any, tenants: Sequence[str]) -> None:
    """All at once, in threads."""

    def one(tenant: str) -> None:
        with around(tenant):
            app.call(asked(tenant))

    with ThreadPoolExecutor(len(tenants)) as pool:
        list(pool.map(one, tenants))


def tasks(app: App, around: Any, tenants: Sequence[str]) -> None:
    """Some one after the other, then all others at once in tasks that begin in the same context."""

    async def one(tenant: str) -> None:
        with around(tenant):
            await app.acall(asked(tenant))

    async def all_of_them() -> None:
        for tenant in tenants[:4]:
            await one(tenant)
        await asyncio.gather(*map(one, tenants[4:]))

    asyncio.run(all_of_them())


def stream(app: App, around: Any, tenants: Sequence[str]) -> None:
    """One after the other; the first is left before its end, and kept."""
    left = app.stream(asked(LEFT))
    next(left)
    for tenant in tenants:
        with around(tenant):
            list(app.stream(asked(tenant)))


def turns(app: App, around: Any, tenants: Sequence[str]) -> None:
    """All at once in one thread, a piece of each in turn."""
    streams = [app.stream(asked(tenant)) for tenant in tenants]
    while streams:
        streams = [each for each in streams if next(each, None) is not None]


def streamed_tasks(app: App, around: Any, tenants: Sequence[str]) -> None:
    """All at once, in tasks, streamed."""

    async def one(tenant: str) -> None:
        with around(tenant):
            async for _ in app.astream(asked(tenant)):
                pass

    async def all_of_them() -> None:
        for tenant in tenants[:4]:
            await one(tenant)
        await asyncio.gather(*map(one, tenants[4:]))

    asyncio.run(all_of_them())


MODES: dict[str, Callable[[App, Any, Sequence[str]], None]] = {
    "sync": sync,
    "threads": threads,
    "async": tasks,
    "stream": stream,
    "streams in turn": turns,
    "async stream": streamed_tasks,
}
APPS: dict[str, Callable[[Callable[[], list[Any]]], App]] = {
    "langchain": langchain,
    "langgraph": langgraph,
    "llamaindex": llamaindex,
}
