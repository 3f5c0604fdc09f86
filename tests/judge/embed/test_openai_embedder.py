"""OpenAIEmbedder on the wire."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from judge_server import Fault, JudgeServer
from steelyard.errors import ConfigurationError, MalformedReply
from steelyard.judge import OpenAIEmbedder
from steelyard.questions import Embedder
from steelyard.scores import Usage


def embed(server: JudgeServer, texts: list[str], **options: Any) -> tuple[Sequence[Sequence[float]], Usage]:
    async def main(embedder: Embedder) -> tuple[Sequence[Sequence[float]], Usage]:
        try:
            return await embedder.embed(texts)
        finally:
            await embedder.aclose()

    return asyncio.run(main(OpenAIEmbedder(base_url=server.url, **options)))


def as_lists(body: dict[str, Any]) -> None:
    for at, row in enumerate(body["data"]):
        row["embedding"] = [float(at), 1.0]


def test_one_vector_per_text_in_order() -> None:
    with JudgeServer() as server:
        (one, two), usage = embed(server, ["a", "b"], dimensions=32)
        server.faults.append(Fault(edit=lambda body: body["data"].reverse()))
        (again, _), _ = embed(server, ["a", "b"])
    assert len(one) == 32
    assert one == again != two
    assert server.received[0].body["dimensions"] == 32
    assert usage.requests == 1


def test_servers_without_base64_send_lists() -> None:
    with JudgeServer() as server:
        server.faults.append(Fault(edit=as_lists))
        vectors, _ = embed(server, ["a", "b"])
    assert vectors == [[0.0, 1.0], [1.0, 1.0]]


def test_many_texts_go_in_batches() -> None:
    with JudgeServer() as server:
        vectors, usage = embed(server, [str(n) for n in range(5)], batch=2)
    assert [len(r.body["input"]) for r in server.received] == [2, 2, 1]
    assert [len(vectors), usage.requests] == [5, 3]


def test_a_fault_that_passes_is_retried_and_counted() -> None:
    with JudgeServer() as server:
        server.faults.append(Fault(status=429, headers={"retry-after": "0"}))
        _, usage = embed(server, ["a"])
    assert usage.requests == 2


@pytest.mark.parametrize(
    "edit",
    [
        lambda body: body["data"].pop(),
        lambda body: body.update(data=None),
        lambda body: body["data"][0].update(index=5),
        lambda body: body["data"][0].update(embedding="not base64!"),
        lambda body: body["data"][0].update(embedding=["x"]),
        lambda body: body["data"][0].update(embedding=None),
    ],
)
def test_what_are_no_vectors_has_a_name(edit: Any) -> None:
    with JudgeServer() as server:
        server.faults.append(Fault(edit=edit))
        with pytest.raises(MalformedReply):
            embed(server, ["a", "b"])


def test_names_and_options() -> None:
    assert OpenAIEmbedder("e", base_url="http://127.0.0.1:9", dimensions=8).name == "openai:e:8"
    with pytest.raises(ConfigurationError):
        OpenAIEmbedder(base_url="http://127.0.0.1:9", batch=0)
