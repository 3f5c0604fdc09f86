"""Packing: nothing hidden is ever shown, every question is in exactly one group, and groups are few."""

from __future__ import annotations

import itertools
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.questions import (
    Capabilities,
    Claims,
    Contradicted,
    Entities,
    GeneratedQuestions,
    Group,
    Noncommittal,
    Part,
    Predicate,
    Question,
    Rating,
    Relevant,
    Same,
    Sufficient,
    Supported,
    Useful,
    View,
    pack,
)
from steelyard.questions._packing import split
from steelyard.record import Context

PARTS: tuple[Part, ...] = ("question", "contexts", "answer", "reference", "reference_contexts")


@st.composite
def predicates(draw: st.DrawFn) -> Predicate:
    needs = draw(st.frozensets(st.sampled_from(PARTS), min_size=1, max_size=3))
    hides = draw(st.frozensets(st.sampled_from([part for part in PARTS if part not in needs]) | st.nothing()))
    number = draw(st.integers(0, 1000))
    return Predicate(criterion=f"Is {number} so?", needs=needs, hides=hides, sample=draw(st.integers(0, 3)))


real = st.one_of(
    st.builds(Supported, claim=st.sampled_from("abc"), of=st.sampled_from(["answer", "reference"])),
    st.builds(Useful, context=st.integers(0, 4), toward=st.sampled_from(["answer", "reference"])),
    st.just(Noncommittal()),
    st.just(GeneratedQuestions()),
    st.just(Same(claim="a", among="reference", of="answer")),
    st.just(Same(claim="b", among="answer", of="reference")),
)
rounds = st.lists(st.one_of(predicates(), real), min_size=1, max_size=16, unique=True)


def shown(group: Group) -> frozenset[Part]:
    return group.parts.union(*(question.shows for question in group.questions))


def may_see(question: Question, visible: frozenset[Part]) -> bool:
    own = question.needs | question.shows | question.admits
    return not visible & question.hides and visible <= own


@given(rounds, st.booleans())
def test_nothing_hidden_is_shown(questions: list[Question], independent: bool) -> None:
    for group in pack(questions, fuse="view", independent=independent):
        for question in group.questions:
            assert question.needs <= group.parts
            assert may_see(question, shown(group))
        if not independent:
            assert len({question.sample for question in group.questions} - {0}) <= 1


@given(rounds, st.sampled_from(["view", "record", "off"]), st.booleans())
def test_every_question_is_in_one_group(questions: list[Question], fuse: str, independent: bool) -> None:
    groups = pack(questions, fuse=fuse, independent=independent)  # type: ignore[arg-type]
    packed = [question for group in groups for question in group.questions]
    assert len(packed) == len(questions)
    assert set(packed) == set(questions)


@given(rounds)
def test_no_two_requests_could_be_one(questions: list[Question]) -> None:
    groups = pack(questions, fuse="view", independent=True)
    for one, other in itertools.combinations(groups, 2):
        both = Group(one.parts | other.parts, (*one.questions, *other.questions))
        assert not all(may_see(question, shown(both)) for question in both.questions)


@given(rounds)
def test_record_mode_needs_one_group_and_one_more_for_each_further_repeat(questions: list[Question]) -> None:
    groups = pack(questions, fuse="record", independent=False)
    assert len(groups) == max(1, len({question.sample for question in questions} - {0}))
    assert len(pack(questions, fuse="record", independent=True)) == 1


def test_company_adds_nothing_to_a_view_that_a_question_does_not_admit() -> None:
    alone = pack([Supported(claim="a")], fuse="view", independent=False)
    others = [Noncommittal(), Useful(context=0), Useful(context=0, toward="reference")]
    others += [Same(claim="a", among="reference", of="answer"), GeneratedQuestions()]
    beside = pack([Supported(claim="a"), *others], fuse="view", independent=False)
    (group,) = [group for group in beside if Supported(claim="a") in group.questions]
    assert group.parts == alone[0].parts == {"question", "contexts", "answer"}


def test_what_a_record_lacks_keeps_nothing_apart() -> None:
    levels = ((0.0, "bad"), (1.0, "good"))
    both = Rating(instruction="i", levels=levels, needs=frozenset({"contexts", "answer"}))
    asked = [Supported(claim="a"), both]
    there: frozenset[Part] = frozenset({"contexts", "answer"})
    assert len(pack(asked, fuse="view", independent=False)) == 2
    assert len(pack(asked, fuse="view", independent=False, present=there)) == 1


@settings(deadline=None, max_examples=5)
@given(st.lists(predicates(), min_size=30, max_size=60, unique=True))
def test_no_mixture_holds_up_the_loop(questions: list[Predicate]) -> None:
    started = time.thread_time()
    pack(questions, fuse="view", independent=False)
    assert time.thread_time() - started < 10


def test_many_repeats_of_many_views_are_packed_at_once() -> None:
    needs = [frozenset({part}) for part in PARTS]
    free: list[Question] = [Predicate(criterion=f"p{n}", needs=needs[n % 5]) for n in range(10)]
    repeats = [
        Rating(instruction="r", levels=((0, "a"), (1, "b")), needs=needs[n % 5], sample=n)
        for n in range(1, 12)
    ]
    started = time.thread_time()
    groups = pack([*free, *repeats], fuse="view", independent=False)
    assert len(groups) == 11
    assert time.thread_time() - started < 10


HIDDEN: list[tuple[Question, set[Part]]] = [
    (Supported(claim="a"), {"reference", "reference_contexts"}),
    (Supported(claim="a", of="reference"), {"answer", "reference_contexts"}),
    (Supported(claim="a", by="reference"), {"contexts", "reference_contexts"}),
    (Contradicted(claim="a"), {"reference", "reference_contexts"}),
    (Useful(context=0), {"reference", "reference_contexts"}),
    (Useful(context=0, toward="reference"), {"answer", "reference_contexts"}),
    (Relevant(text="a"), {"answer", "reference", "reference_contexts"}),
    (Relevant(text="a", of="answer"), {"reference", "reference_contexts"}),
    (Same(claim="a", among="reference", of="answer"), {"contexts", "reference_contexts"}),
    (Sufficient(), {"answer", "reference", "reference_contexts"}),
    (Claims(), {"contexts", "reference_contexts"}),
    (Claims(of="contexts"), {"answer", "reference", "reference_contexts"}),
    (Entities(), {"contexts"}),
    (GeneratedQuestions(), {"question", "reference", "reference_contexts"}),
    (Noncommittal(), {"contexts", "reference_contexts"}),
]
"""What would give an answer away, or sway it."""


@pytest.mark.parametrize(("question", "hidden"), HIDDEN, ids=lambda one: getattr(one, "kind", ""))
def test_what_would_give_the_answer_away_is_in_no_request(question: Question, hidden: set[Part]) -> None:
    for part in PARTS:
        other = Predicate(criterion="Is it so?", needs=frozenset({part}))
        groups = pack([question, other], fuse="view", independent=True)
        mine = next(group for group in groups if question in group.questions)
        assert not hidden & shown(mine)
        if part in hidden:
            assert len(groups) == 2
    assert set(question.hides) >= hidden and not question.needs & hidden


def test_claims_that_are_listed_stand_for_the_texts_they_are_of() -> None:
    (group,) = pack(
        [Same(claim="a", among="reference", of="answer", listed=("b",))], fuse="view", independent=True
    )
    assert group.parts == {"question"}


@given(st.lists(st.integers(1, 2_000), min_size=1, max_size=40), st.integers(2_000, 20_000))
def test_a_request_has_no_more_questions_than_fit_beside_its_material(sizes: list[int], most: int) -> None:
    asked = tuple(Supported(claim=f"{number} " + "a" * size) for number, size in enumerate(sizes))
    view = View(question="q", contexts=(Context(text="c" * 1_000),))
    able = Capabilities(kinds=frozenset({Supported}), max_questions=30, max_characters=most)
    pieces = list(split(Group(frozenset({"contexts"}), asked), view, able))
    assert [one for piece in pieces for one in piece.questions] == list(asked)
    for piece in pieces:
        written = sum(len(one.quoted or "") for one in piece.questions)
        assert len(piece.questions) == 1 or written + min(1_001, most * 4 // 5) <= most
