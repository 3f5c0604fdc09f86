"""Embedders: MiniLM in this process, and any server that speaks OpenAI's protocol."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from judge.asked import closing
from judge_server import Fault, JudgeServer
from steelyard.errors import ConfigurationError, MalformedReply
from steelyard.judge import MiniLMEmbedder, OpenAIEmbedder, StaticEmbedder, _minilm, _static
from steelyard.metrics import AnswerSimilarity
from steelyard.record import Record
from steelyard.scores import Usage
from steelyard.testing import ScriptedJudge

pytest.importorskip("onnxruntime", reason="the extra minilm is not installed")


def embed(*texts: str, batch: int = 32) -> list[list[float]]:
    vectors, usage = asyncio.run(MiniLMEmbedder(batch=batch).embed(texts))
    assert usage.requests == 1
    return [list(vector) for vector in vectors]


def dot(one: list[float], other: list[float]) -> float:
    return math.fsum(x * y for x, y in zip(one, other, strict=True))


def test_meaning_counts_more_than_words() -> None:
    physician, doctor, bank = embed(
        "The physician examined her patient.",
        "A doctor looked at the sick woman.",
        "The bank raised its rates.",
    )
    assert len(physician) == 384
    assert dot(physician, physician) == pytest.approx(1)
    assert dot(physician, doctor) > 0.6 > 0.2 > dot(physician, bank)


def test_batches_and_padding_do_not_change_a_vector() -> None:
    texts = ["Short.", "A sentence of middling length about a bridge.", "word " * 900, ""]
    together, one_by_one = embed(*texts), embed(*texts, batch=1)
    for left, right in zip(together, one_by_one, strict=True):
        assert dot(left, right) == pytest.approx(1, abs=0.02)
        assert all(map(math.isfinite, left))


def test_it_serves_a_metric() -> None:
    def nobody(*_: object) -> None:
        raise AssertionError("similarity asks no judge")

    record = Record(answer="The doctor was late.", reference="The physician did not arrive on time.")
    score = asyncio.run(
        AnswerSimilarity().score(record, judge=ScriptedJudge(nobody), embedder=MiniLMEmbedder())
    )
    assert score.value is not None
    assert score.value > 0.5


def test_a_changed_model_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(_minilm, "_SHA256", "0" * 64)
    _minilm._load.cache_clear()
    with pytest.raises(ConfigurationError, match="reinstall"):
        embed("anything")
    header = json.dumps({"embedding.weight": {"dtype": "F32", "shape": [1, 1], "data_offsets": [0, 4]}})
    file = tmp_path / _static._WEIGHTS
    file.parent.mkdir()
    file.write_bytes(len(header).to_bytes(8, "little") + header.encode() + bytes(4))
    monkeypatch.setattr(_static, "_folder", lambda: tmp_path)
    monkeypatch.setattr(_static, "_vectors", None)
    with pytest.raises(ConfigurationError, match="'F16' was expected; reinstall"):
        asyncio.run(StaticEmbedder().embed(["anything"]))


@pytest.mark.parametrize("before", ["é" * 1000, "w " * 500, "é" * 999 + " "])
def test_of_a_text_that_is_read_in_pieces_every_word_counts(before: str) -> None:
    """With or without a blank where a piece ends."""
    bare, more = asyncio.run(StaticEmbedder().embed([before, f"{before}7"]))[0]
    assert list(bare) != list(more)


def embedded(
    server: JudgeServer, texts: list[str], **options: Any
) -> tuple[Sequence[Sequence[float]], Usage]:
    embedder = OpenAIEmbedder(base_url=server.url, **options)
    return closing(embedder, embedder.embed(texts))


def as_lists(body: dict[str, Any]) -> None:
    for at, row in enumerate(body["data"]):
        row["embedding"] = [float(at), 1.0]


def test_one_vector_per_text_in_order() -> None:
    with JudgeServer() as server:
        (one, two), usage = embedded(server, ["a", "b"], dimensions=32)
        server.faults.append(Fault(edit=lambda body: body["data"].reverse()))
        (again, _), _ = embedded(server, ["a", "b"])
    assert len(one) == 32
    assert one == again != two
    assert server.received[0].body["dimensions"] == 32
    assert usage.requests == 1


def test_servers_without_base64_send_lists() -> None:
    with JudgeServer() as server:
        server.faults.append(Fault(edit=as_lists))
        vectors, _ = embedded(server, ["a", "b"])
    assert vectors == [[0.0, 1.0], [1.0, 1.0]]


def test_many_texts_go_in_batches() -> None:
    with JudgeServer() as server:
        vectors, usage = embedded(server, [str(n) for n in range(5)], batch=2)
    assert [len(r.body["input"]) for r in server.received] == [2, 2, 1]
    assert [len(vectors), usage.requests] == [5, 3]


def test_a_fault_that_passes_is_retried_and_counted() -> None:
    with JudgeServer() as server:
        server.faults.append(Fault(status=429, headers={"retry-after": "0"}))
        _, usage = embedded(server, ["a"])
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
            embedded(server, ["a", "b"])


def test_a_name_says_a_length_that_was_chosen() -> None:
    for length, name in ((8, "openai:e:8"), (None, "openai:e")):
        assert OpenAIEmbedder("e", base_url="http://127.0.0.1:9", dimensions=length).name == name
