"""No function of ours that reads text takes time with the square of it, whatever is repeated in it.

The functions are found in the package: every public one of a module that takes a text, also inside of what it
is made of (a Record, a list of messages). They are called with texts of one piece, again and again, in all
scripts. Regular expressions have a test of their own, which finds them in the code.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import gc
import importlib
import inspect
import pkgutil
import time
import types
import typing
import warnings
from collections import abc
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from repeated import PIECES, TELLING, repeated

PACKAGES = ("steelyard", "steelyard_langchain", "steelyard_llamaindex", "steelyard_opentelemetry")
SHORT, LONG = 2_000, 64_000
UNNOTICED = 0.0005
"""Seconds that a text of 2,000 characters may take, whatever the growth; most take a tenth of it."""
NOT_TEXTS = {
    "steelyard.cli": "what commands print is tried with hostile texts by tests of theirs",
    "steelyard._internal.forks": "acts on the process",
    "steelyard._internal.lifecycle": "acts on the process",
    "steelyard.alarms._targets": "sends to an address that the operator names",
    "steelyard_opentelemetry._payload.named": "its names are written in the code",
}
"""What is not tried, by the beginning of its name, and why."""


KNOWN = {
    "steelyard.text._sentences.sentences",
    "steelyard.judge.chat._parse.find",
    "steelyard.judge.overlap.locate_all",
    "steelyard.judge._words.words",
    "steelyard.record._limits.record_to_json",
    "steelyard.recording.building._decide.decide",
    "steelyard.recording.provenance._sections.sections",
    "steelyard_langchain._extract.answer_of",
    "steelyard_opentelemetry._build.record_of",
}
"""Some of those that it must find."""

hints_of = functools.cache(typing.get_type_hints)


class Unmakeable(Exception):
    """No value of a type can be made of a text."""


def functions() -> dict[str, Callable[..., Any]]:
    """The public functions of all modules, by name."""
    found: dict[str, Callable[..., Any]] = {}
    for package in map(importlib.import_module, PACKAGES):
        for entry in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
            if entry.name.endswith("__main__"):
                continue
            module = importlib.import_module(entry.name)
            for name, value in list(vars(module).items()):
                if inspect.isfunction(value) and value.__module__ == entry.name and not name.startswith("_"):
                    found[f"{entry.name}.{name}"] = value
    return {name: one for name, one in found.items() if not name.startswith(tuple(NOT_TEXTS))}


class Caller:
    """Calls a function with a text at every place that takes one."""

    def __init__(self, function: Callable[..., Any]) -> None:
        try:
            kinds = hints_of(inspect.unwrap(function))
        except NameError as error:
            raise Unmakeable from error
        self._function = function
        self._kinds = {
            name: (kinds.get(name, Any), parameter.kind)
            for name, parameter in inspect.signature(function).parameters.items()
            if parameter.default is parameter.empty
            and parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL)
        }
        if not any("str" in str(kind) or dataclasses.is_dataclass(kind) for kind, _ in self._kinds.values()):
            raise Unmakeable

    def seconds(self, text: str) -> float:
        """What one call takes, its generator used up."""
        made = {name: (made_of(kind, text), how) for name, (kind, how) in self._kinds.items()}
        named = {name: one for name, (one, how) in made.items() if how is inspect.Parameter.KEYWORD_ONLY}
        placed = [one for name, (one, _) in made.items() if name not in named]
        begun = time.thread_time()
        result = self._function(*placed, **named)
        if isinstance(result, types.GeneratorType):
            for _ in result:
                pass
        return time.thread_time() - begun


def made_of(kind: Any, text: str, depth: int = 0) -> Any:
    """A value of a type, with the text wherever a text can stand."""
    if depth > 6:
        raise Unmakeable
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    simple = {str: text, Any: text, object: text, bool: False, int: 3, float: 0.5, None: None}
    if kind in simple:
        return simple[kind]
    if origin in (typing.Union, types.UnionType):
        return text if str in inner else made_of(inner[0], text, depth + 1)
    if origin is typing.Literal:
        return inner[0]
    if origin is tuple and Ellipsis not in inner:
        return tuple(made_of(one, text, depth + 1) for one in inner)
    if origin in (dict, abc.Mapping):
        return {made_of(inner[0], text, depth + 1): made_of(inner[1], text, depth + 1)}
    if origin is not None and issubclass(origin, abc.Iterable):
        several = [made_of(inner[0], one, depth + 1) for one in (text, text[: len(text) // 2])]
        return origin(several) if origin in (set, frozenset, tuple) else several
    if origin is abc.Callable:
        return lambda *_, **__: made_of(inner[1], text, depth + 1)
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return next(iter(kind))
    if dataclasses.is_dataclass(kind):
        return _filled(kind, text, depth + 1)
    raise Unmakeable


def _filled(kind: Any, text: str, depth: int) -> Any:
    """A dataclass with all fields that can be filled in."""
    kinds, given, tried = hints_of(kind), {}, {}
    for field in dataclasses.fields(kind):
        needed = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        if needed:
            given[field.name] = made_of(kinds[field.name], text, depth)
        elif field.init:
            tried[field.name] = kinds[field.name]
    made = kind(**given)
    for name, hint in tried.items():
        # One after the other: a class may refuse a text in some of its fields.
        try:
            made = kind(**given, **{name: made_of(hint, text, depth)})
        except Exception:  # noqa: BLE001
            continue
        given[name] = getattr(made, name)
    return made


def outcome(caller: Caller, piece: str, size: int) -> float | None:
    """Seconds of one call; None where the function refuses such a text."""
    try:
        return caller.seconds(repeated(piece, size))
    except Exception:  # noqa: BLE001
        return None


def grows_too_fast(caller: Caller, piece: str, size: int) -> bool:
    """Whether four times the text takes much more than four times as long, however often it is tried."""
    first = outcome(caller, piece, size)
    if first is None or first < UNNOTICED * size / SHORT:
        return False
    if (outcome(caller, piece, 4 * size) or 0.0) < 8 * first:
        return False
    # Twice as long as well: a compressor takes longer from a certain length on, and then no more.
    for beginning in (size, size, 2 * size):
        short, long = (
            min(outcome(caller, piece, n) or 0.0 for _ in range(2)) for n in (beginning, 4 * beginning)
        )
        if long < 8 * short + UNNOTICED:
            return False
    return True


@pytest.fixture(autouse=True)
def _alone(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(str(tmp_path))  # some take a text for the name of a file
    gc.disable()  # it goes through all that the whole process holds, at a moment of chance
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
    gc.enable()


@pytest.mark.timeout(900)
@pytest.mark.parametrize("size", [SHORT, pytest.param(LONG, marks=pytest.mark.slow)])
def test_what_reads_text_takes_time_with_its_length(size: int) -> None:
    pieces = {kind: piece for kind, piece in PIECES.items() if size == LONG or kind in TELLING}
    read: set[str] = set()
    slow: dict[str, str] = {}
    for name, function in functions().items():
        try:
            caller = Caller(function)
            made = [outcome(caller, text, 200) for text in ("x y. ", "1", "三")]
        except Unmakeable:
            continue
        if all(one is None for one in made):
            continue
        read.add(name)
        for kind, piece in pieces.items():
            if grows_too_fast(caller, piece, size):
                slow[name] = kind
                break
    assert not slow
    # It finds them by itself: were it blind, it would find nothing to be slow.
    assert len(read) > 200 and read >= KNOWN, (len(read), KNOWN - read)


def test_what_takes_time_with_the_square_is_found() -> None:
    def squared(text: str) -> int:
        return sum(1 for one in text for other in text[:1_000_000] if one is other)

    # In one of a few tries: another program may take the processor while the short text is read.
    assert any(grows_too_fast(Caller(squared), "ab", 300) for _ in range(5))
