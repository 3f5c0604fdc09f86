"""Whether attributes of a turn were cut at a length limit, which nothing that is exported says.

An SDK with `OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT`, or a backend, cuts every text at the same length. So the
longest texts of a turn are then equally long, or what should be JSON ends in its middle, or the longest one
breaks off where another text goes on.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from steelyard_opentelemetry._payload import MOST, Broken, decode
from steelyard_opentelemetry._span import Span

_SHORTEST = 16
_ENDS = tuple(".!?\u3002\uff01\uff1f\u061f:;\"'`)]}>\u201d\u2019\u00bb*|")
_TAIL = 200
_LAST, _LEAST = 24, 8


@dataclass(frozen=True, slots=True, repr=False)
class Cut:
    """The texts that were cut, and where."""

    length: int = 0
    """At how many characters; 0 where nothing was cut."""
    texts: tuple[str, ...] = ()
    """The cut texts."""

    def ends(self, text: str) -> bool:
        """Whether a text is one of those that were cut, or the end of one."""
        tail = text.strip()[-_TAIL:]
        return bool(tail) and any(cut.rstrip().endswith(tail) for cut in self.texts)


def find_cut(spans: Sequence[Span]) -> Cut:
    """Look at the texts of some spans of one process."""
    every = dict.fromkeys(itertools.chain.from_iterable(map(_texts, spans)))
    limits = {span.limit for span in spans}
    if None not in limits:
        known = tuple(text for text in every if len(text) in limits)
        return Cut(max(map(len, known)), known) if known else Cut()
    length = max(map(len, every), default=0)
    texts = tuple(text for text in every if len(text) == length)
    return Cut(length, texts) if length >= _SHORTEST and _is_cut(texts, length, every) else Cut()


def _is_cut(texts: Sequence[str], length: int, every: Iterable[str]) -> bool:
    if length <= MOST and any(isinstance(decode(text), Broken) and not _is_closed(text) for text in texts):
        return True
    open_ended = [text for text in texts if not text.rstrip().endswith(_ENDS)]
    if not open_ended:
        return False
    return len(texts) > 1 or any(_goes_on(open_ended[0], text) for text in every)


def _is_closed(text: str) -> bool:
    """Whether a list or an object ends as it began: what is not JSON then was never meant to be."""
    shown = text.strip()
    return (shown[:1], shown[-1:]) in (("[", "]"), ("{", "}"))


def _goes_on(text: str, other: str) -> bool:
    """Whether another text holds how this one ends, and goes on in the same line."""
    line = text[text.rfind("\n") + 1 :].lstrip()[-_LAST:]
    at = other.find(line) if len(line) >= _LEAST and other != text else -1
    rest = other[at + len(line) : at + len(line) + 2] if at >= 0 else ""
    return rest[:1].isalnum() or (rest[:1] == " " and rest[1:].isalnum())


def _texts(span: Span) -> Iterator[str]:
    for attributes in (span.attributes, *(event.attributes for event in span.events)):
        for value in attributes.values():
            items = value if isinstance(value, (list, tuple)) else (value,)
            yield from (item for item in items if isinstance(item, str))
