from __future__ import annotations

import importlib.util
import subprocess
import sys
from importlib.metadata import entry_points
from types import SimpleNamespace
from typing import Any

import pytest
from llama_index_instrumentation import get_dispatcher
from llamaindex_parts import PARIS, QUESTION, Receiver, Scripted, engine

import steelyard_llamaindex
from steelyard.errors import ConfigurationError, MissingDependency
from steelyard_llamaindex import attach, detach, instrument, uninstrument


def test_instrumenting_twice_records_once() -> None:
    before = len(get_dispatcher().span_handlers)
    instrument(first := Receiver())
    instrument(second := Receiver())
    engine().query(QUESTION)
    uninstrument()
    uninstrument()
    engine().query(QUESTION)
    assert (len(first.drafts), len(second.drafts)) == (0, 1)
    assert len(get_dispatcher().span_handlers) == before


def test_without_a_monitor_the_default_one(monkeypatch: pytest.MonkeyPatch) -> None:
    receiver = Receiver()
    monkeypatch.setattr("steelyard.online.default_monitor", lambda: receiver)
    instrument()
    engine().query(QUESTION)
    uninstrument()
    assert len(receiver.drafts) == 1


def test_other_handlers_stay() -> None:
    from llama_index.core.instrumentation.event_handlers import NullEventHandler

    own = NullEventHandler()
    get_dispatcher().add_event_handler(own)
    instrument(Receiver())
    uninstrument()
    assert own in get_dispatcher().event_handlers
    get_dispatcher().event_handlers.remove(own)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"monitor": object()}, "submit"),
        ({"tool_contexts": "web"}, "'web'"),
        ({"on_record": 1}, "on_record"),
        ({"ttl": 0}, "ttl"),
        ({"max_open": -1}, "max_open"),
        ({"ttl": "soon"}, "'soon'"),
    ],
)
def test_wrong_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        instrument(**({"monitor": Receiver()} | options))


def test_nodes_have_the_text_that_the_prompt_shows() -> None:
    from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
    from llamaindex_parts import Fixed, texts

    class Dated(Fixed):
        def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
            return [NodeWithScore(node=TextNode(text=PARIS, metadata={"year": 2024}), score=1.0)]

    instrument(receiver := Receiver())
    engine(retriever=Dated()).query(QUESTION)
    (found,) = Dated().retrieve(QUESTION)
    Scripted().complete(f"Context: {found.text}\n\nQuestion: {QUESTION}")
    uninstrument()
    whole, bare = receiver.records
    assert texts(whole) == [f"year: 2024\n\n{PARIS}"]
    assert texts(bare) == [PARIS]


def test_on_record_may_change_the_record(caplog: pytest.LogCaptureFixture) -> None:
    instrument(receiver := Receiver(), on_record=lambda record: record.replace(metadata={"seen": True}))
    engine().query(QUESTION)
    instrument(unchanged := Receiver(), on_record=lambda record: record.replace(nonsense=1))
    engine().query(QUESTION)
    uninstrument()
    assert receiver.record.metadata == {"seen": True}
    assert unchanged.record.metadata == {}
    assert "on_record raised" in caplog.text


def test_attached_by_entry_point() -> None:
    (found,) = entry_points(group="steelyard.recorders", name="llamaindex")
    assert found.load() is steelyard_llamaindex
    attach(receiver := Receiver())
    engine().query(QUESTION)
    detach()
    engine().query(QUESTION)
    assert len(receiver.drafts) == 1


def test_without_llama_index(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    for record_with in (attach, instrument):
        with pytest.raises(MissingDependency, match="llamaindex"):
            record_with(Receiver())


def test_importing_and_attaching_do_not_import_llama_index() -> None:
    code = (
        "import sys, steelyard_llamaindex as s\n"
        "assert not [m for m in sys.modules if m.startswith('llama_index')]\n"
        "class R:\n    def submit(self, turn): pass\n"
        "s.attach(R())\n"
        "assert 'llama_index.core' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_size_grows_with_what_is_kept() -> None:
    instrument(receiver := Receiver())
    engine("d1").query(QUESTION)
    engine("d1", "d2", "d3").query(QUESTION)
    uninstrument()
    small, large = (draft.size for draft in receiver.drafts)
    assert 0 < small < large


def test_unknown_name() -> None:
    with pytest.raises(AttributeError, match="nonsense"):
        _ = SimpleNamespace(module=steelyard_llamaindex).module.nonsense
