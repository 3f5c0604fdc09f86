"""What turns are cut by: tags, tenants, frameworks, metadata and clusters of questions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import chain

from steelyard._internal.threads import run_anywhere
from steelyard.report.queries import SampledScore
from steelyard.stats import cluster, name_clusters

ABOUT = "questions about"
"""The attribute of clusters of questions."""
# A field with more values (an id, a time) cuts no slice of any size.
_VALUES = 30
_LEAST = 10  # turns below which a slice is an anecdote
_QUESTIONS = 800  # embedding them must not take longer than the rest of the report

Columns = dict[tuple[str, str], list[str | None]]
"""By attribute and value, for each turn the value if it has it."""


def columns_of(scores: Sequence[SampledScore], clusters: dict[str, str]) -> Columns:
    """A column for each frequent value of an attribute, as a turn may have several tags."""
    columns: Columns = {}
    for name in sorted(set[str]().union(*(score.attributes for score in scores))):
        columns |= _of_attribute(name, [score.attributes.get(name, ()) for score in scores])
    topics = sorted(set(clusters.values()))
    if len(topics) > 1:
        about = [clusters.get(score.question) for score in scores]
        columns |= {(ABOUT, value): [value if one == value else None for one in about] for value in topics}
    return columns


def _of_attribute(name: str, given: Sequence[Sequence[str]]) -> Columns:
    counts = Counter(chain.from_iterable(given))
    if name != "tag" and len(counts) > _VALUES:
        return {}  # an id or a text: every turn has its own
    return {
        (name, value): [value if value in values else None for values in given]
        for value, count in counts.most_common(_VALUES)
        if count >= _LEAST
    }


def clusters_of(questions: Sequence[str]) -> dict[str, str]:
    """The name of each question's cluster, over the most frequent questions."""
    counts = Counter(question for question in questions if question.strip())
    chosen = sorted(counts, key=lambda question: (-counts[question], question))[:_QUESTIONS]
    if len(chosen) < 8:
        return {}
    from steelyard.judge import StaticEmbedder

    vectors, _ = run_anywhere(StaticEmbedder().embed(chosen))
    labels = cluster(vectors).tolist()
    names = name_clusters(chosen, labels)
    return {
        question: names[label] or f"cluster {label + 1}"
        for question, label in zip(chosen, labels, strict=True)
    }
