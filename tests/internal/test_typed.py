"""Long JSON, in pieces; what reads and writes dataclasses, and forks."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard._internal.typed import Adapter, PiecewiseDecoder, adapter, json_pieces, json_value

LONG = "x" * 60_000
plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=30,
)


def long(value: object) -> list[object]:
    """A list and an object that no window holds, around a value."""
    return [value, {"a": value, LONG: [LONG] * 3, "b": [value] * 40}, value]


@settings(max_examples=60, deadline=None)
@given(plain)
def test_what_is_written_in_pieces_is_read_in_pieces(value: object) -> None:
    for given_value in (value, long(value)):
        text = "".join(json_pieces(given_value))
        assert text == json.dumps(given_value, ensure_ascii=False, separators=(",", ":"))
        assert json_value(text) == given_value
        if text.isascii():
            assert json_value(text.encode("ascii")) == given_value


@pytest.mark.parametrize("end", ["]", "", "]]", ",]", "] x", '"', "}", "nul]", ",NaN"])
def test_long_text_that_is_not_json_is_refused_as_short_text_is(end: str) -> None:
    text = f'[{{"a": [1, 2]}}, "{LONG}"{end}'
    try:
        expected = json.loads(text)
    except ValueError as error:
        with pytest.raises(ValueError) as caught:
            json_value(text)
        assert str(caught.value) == str(error)
    else:
        assert json_value(text) == expected


def test_characters_that_stand_across_pieces_are_read_whole() -> None:
    for start in range(4):
        text = json.dumps(["a" * start + "\U0001f600中é" * 100_000], ensure_ascii=False)
        assert json_value(text.encode()) == json_value(b"\xef\xbb\xbf" + text.encode()) == json.loads(text)
    with pytest.raises(ValueError):
        json_value(text.encode()[:-3])


def test_long_text_is_not_read_in_one_call(monkeypatch: pytest.MonkeyPatch) -> None:
    text = json.dumps([[LONG, number] for number in range(50)])
    expected = json.loads(text)
    monkeypatch.delattr(json, "loads")
    assert json_value(text) == json_value(text.encode()) == expected


def test_hooks_and_limits_hold_in_pieces_too() -> None:
    def refuse(name: str) -> Any:
        raise ValueError(name)

    decoder = PiecewiseDecoder(parse_constant=refuse, object_pairs_hook=tuple)
    assert decoder.decode(f'{{"a": {{"b": 1}}, "c": "{LONG}"}}') == (("a", (("b", 1),)), ("c", LONG))
    with pytest.raises(ValueError, match="NaN"):
        decoder.decode(f'["{LONG}", NaN]')
    with pytest.raises(ValueError):
        "".join(json_pieces([LONG, float("nan")]))
    with pytest.raises(RecursionError):
        json_value("[" * 100_000)
    assert len(list(json_pieces(["x"] * 10))) == 1
    assert max(map(len, json_pieces([LONG] * 100))) < 2 * len(LONG)


@dataclass(frozen=True)
class Part:
    """A dataclass of its own, so that what reads and writes it was not used before."""

    text: str = "a"


class Slow:
    """Reads and writes, once it is told to go on."""

    def __init__(self) -> None:
        self.begun, self.goes_on = threading.Event(), threading.Event()

    def dump_python(self, value: object, **options: Any) -> object:
        self.begun.set()
        assert self.goes_on.wait(60)
        return value

    def validate_python(self, value: object) -> object:
        return self.dump_python(value)


def fork(then: Callable[[], None]) -> None:
    child = os.fork()
    if child == 0:
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    then()


@pytest.mark.parametrize("use", ["dump_python", "validate_python"])
def test_a_fork_waits_for_what_is_read_or_written_for_the_first_time(use: str) -> None:
    slow, forked = Slow(), threading.Event()
    made = Adapter(slow)  # type: ignore[arg-type]
    using = threading.Thread(target=getattr(made, use), args=("a",))
    using.start()
    assert slow.begun.wait(60)
    forking = threading.Thread(target=fork, args=(forked.set,))
    forking.start()
    assert not forked.wait(0.5)
    slow.goes_on.set()
    assert forked.wait(60)
    using.join()
    forking.join()


def test_a_dataclass_is_written_and_read_alike_the_first_time_and_later() -> None:
    for _ in range(2):
        assert adapter(Part).dump_python(Part(), exclude_defaults=True) == {}
        assert adapter(Part).validate_python({"text": "b"}) == Part("b")
