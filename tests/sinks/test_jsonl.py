from __future__ import annotations

import asyncio
import io
import json
import logging
from pathlib import Path
from typing import Any

import pytest

from sinks.making import make_evaluation, make_score
from steelyard.errors import ConfigurationError
from steelyard.sinks import JSONLSink, read_jsonl


def test_the_last_line_of_a_record_counts(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    sink = JSONLSink(path)
    asyncio.run(sink.write([make_evaluation("a", make_score(value=0.1)), make_evaluation("b")]))
    asyncio.run(sink.write([make_evaluation("a", make_score(value=0.9))]))
    assert [one.record_id for one in read_jsonl(path)] == ["b", "a"]
    assert [one["faithfulness"].value for one in read_jsonl(path)] == [0.75, 0.9]


def test_a_half_written_line_spoils_only_itself(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "out.jsonl"
    path.write_text('{"record_id": "torn", "sco')
    asyncio.run(JSONLSink(path).write([make_evaluation("a")]))
    with caplog.at_level(logging.WARNING, "steelyard"):
        assert [one.record_id for one in read_jsonl(path)] == ["a"]
    assert "1 lines hold no evaluation" in caplog.text


def test_what_cannot_be_written_is_said_once_and_counted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    sink = JSONLSink(tmp_path / "out.jsonl")
    odd: Any = None
    with caplog.at_level(logging.WARNING, "steelyard"):
        asyncio.run(sink.write([make_evaluation(name).replace(usage=odd) for name in "ab"]))
        asyncio.run(sink.write([make_evaluation("c").replace(usage=odd), make_evaluation("d")]))
    assert (sink.counts.refused, len(caplog.records)) == ({"unstorable": 6}, 1)
    assert [one.record_id for one in read_jsonl(tmp_path / "out.jsonl")] == ["d"]


def test_a_stream_is_flushed_and_stays_open() -> None:
    stream = io.StringIO()
    sink = JSONLSink(stream)
    asyncio.run(sink.write([make_evaluation("a")]))
    asyncio.run(sink.aclose())
    assert json.loads(stream.getvalue())["scores"][0]["metric"] == "faithfulness"


def test_wrong_targets_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="42"):
        JSONLSink(42)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match=r"gone/x\.jsonl"):
        asyncio.run(JSONLSink(tmp_path / "gone" / "x.jsonl").write([make_evaluation("a")]))
    with pytest.raises(ConfigurationError, match="cannot be read"):
        next(read_jsonl(tmp_path / "missing.jsonl"))
