"""Labels that people gave in Phoenix or Langfuse, from what those tools' own interfaces hand out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

_GOOD = """
good correct yes true pass passed supported faithful factual relevant positive thumbs_up thumbs-up up 👍 ok
grounded
"""
_BAD = """
bad incorrect no false fail failed not_supported unfaithful irrelevant negative thumbs_down thumbs-down down
👎 wrong hallucinated hallucination unsupported ungrounded
"""
_WORDS = {**dict.fromkeys(_GOOD.split(), True), **dict.fromkeys([*_BAD.split(), "not supported"], False)}


@dataclass(frozen=True, kw_only=True, slots=True)
class PersonLabel:
    """What one person says of a turn, or of one metric's score of it."""

    record_id: str
    value: Literal["good", "bad"]
    who: str
    metric: str | None = None
    """The metric that is meant; None for the whole turn."""
    claim: None = None
    """These tools have no labels of single claims."""
    drawn: None = None
    """They do not say how turns were chosen."""


def read_annotations(
    data: Any,
    *,
    records: Mapping[str, str],
    metrics: Iterable[str] = (),
    problems: list[str] | None = None,
) -> list[PersonLabel]:
    """Labels out of a reply of Phoenix (`span_annotations`) or Langfuse (`scores`), read from JSON.

    Only what people gave counts: in Phoenix `annotator_kind` HUMAN, in Langfuse `source` ANNOTATION. An
    annotation with the name of a metric is of that metric, any other of the whole turn. It is good by its
    label (`good`, `correct`, `yes` ...), and without one by a score of at least one half.

    Args:
        data: The reply, or the list in its `data`.
        records: Record ids by trace id and by span id.
        metrics: Names of metrics there are.
        problems: Where annotations that cannot be used are reported.

    Returns:
        One label for each annotation that could be used; of the same person on the same thing the last one.
    """
    rows = data.get("data") if isinstance(data, Mapping) else data
    known = frozenset(metrics)
    told = problems if problems is not None else []
    if not isinstance(rows, list):
        told.append("this is not a list of annotations, nor a reply with one in 'data'")
        return []
    found: dict[tuple[str, str | None, str], PersonLabel] = {}
    for place, row in enumerate(rows):
        label = _label(row, records, known) if isinstance(row, Mapping) else "it is not an object"
        if isinstance(label, str):
            told.append(f"annotation {place + 1}: {label}")
        elif label is not None:
            found[(label.record_id, label.metric, label.who)] = label
    return list(found.values())


def _label(
    row: Mapping[str, Any], records: Mapping[str, str], metrics: frozenset[str]
) -> PersonLabel | str | None:
    """The label, or why there is none; None for what no person gave."""
    given = _of_phoenix(row) if "annotator_kind" in row else _of_langfuse(row)
    if given is None:
        return "it is neither of Phoenix nor of Langfuse"
    if not given.by_person:
        return None
    record = next((records[one] for one in given.places if isinstance(one, str) and one in records), None)
    if record is None:
        return "no evaluated turn has its trace or span"
    good = _is_good(given.word, given.number)
    if good is None:
        return f"neither its label nor its score says good or bad: {str(given.word)[:40]!r}"
    name = row.get("name")
    return PersonLabel(
        record_id=record,
        value="good" if good else "bad",
        who=str(given.who or "somebody"),
        metric=name if isinstance(name, str) and name in metrics else None,
    )


class _Given(NamedTuple):
    """An annotation, whatever product it is of. The span comes before its trace: it says more of the turn."""

    by_person: bool
    places: Sequence[Any]
    who: object
    word: object
    number: object


def _of_phoenix(row: Mapping[str, Any]) -> _Given:
    result = row["result"] if isinstance(row.get("result"), Mapping) else row
    places = (row.get("span_id"), row.get("trace_id"))
    by_person = row["annotator_kind"] == "HUMAN"
    return _Given(by_person, places, row.get("user_id"), result.get("label"), result.get("score"))


def _of_langfuse(row: Mapping[str, Any]) -> _Given | None:
    if "source" not in row or ("traceId" not in row and "observationId" not in row):
        return None
    places = (row.get("observationId"), row.get("traceId"))
    by_person = row["source"] == "ANNOTATION"
    return _Given(by_person, places, row.get("authorUserId"), row.get("stringValue"), row.get("value"))


def _is_good(word: object, number: object) -> bool | None:
    if isinstance(word, str) and word.strip():
        return _WORDS.get(word.strip().casefold())
    # True is an int to Python.
    if isinstance(number, bool):
        return number
    # Other scales, such as one to five stars, do not say where good begins.
    if isinstance(number, int | float) and 0 <= number <= 1:
        return number >= 0.5
    return None
