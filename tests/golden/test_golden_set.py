"""Golden sets: files that are read as they were written, other tools' forms, versions and differences."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.errors import InvalidGoldenSet
from steelyard.golden import Case, GoldenSet, Message, Run, diff, golden_from, golden_to

LAMP = Case(question="Who lit the lamp?", reference="Ada.", reference_contexts=("Ada lit the lamp.",))
FOLLOW_UP = Case(
    question="And when?",
    history=(Message(role="user", text="Who lit the lamp?"), Message(role="assistant", text="Ada.")),
    source="synthetic",
    kind="follow_up",
    inclusion_probability=0.25,
)
CASES = GoldenSet(name="lamps", cases=(LAMP, FOLLOW_UP))

texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30).filter(str.strip)
cases = st.builds(
    Case,
    question=texts,
    reference=st.none() | texts,
    contexts=st.lists(texts, max_size=3).map(tuple),
    tags=st.lists(texts, max_size=3).map(tuple),
    source=st.sampled_from(["person", "synthetic", "production"]),
    inclusion_probability=st.none() | st.floats(0.001, 1),
    metadata=st.dictionaries(texts, st.integers() | texts, max_size=3),
)


@given(case=cases)
def test_a_case_is_read_as_it_was_written(case: Case) -> None:
    written = json.loads(json.dumps(golden_to([case], form="steelyard")))
    assert golden_from(written).cases == (case,)


def test_a_set_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "lamps.jsonl"
    CASES.save(path)
    again = GoldenSet.load(path)
    assert again == CASES
    assert again.declared_version == again.version == CASES.version
    assert [child.name for child in tmp_path.iterdir()] == ["lamps.jsonl"]


def test_the_version_follows_the_content_and_not_the_order() -> None:
    turned = GoldenSet(cases=CASES.cases[::-1])
    assert turned.version == CASES.version
    assert GoldenSet(cases=(replace(LAMP, reference="Eva."), FOLLOW_UP)).version != CASES.version


def test_an_edited_file_is_told_by_its_version(tmp_path: Path) -> None:
    path = tmp_path / "lamps.jsonl"
    CASES.save(path)
    path.write_text(path.read_text().replace("Ada lit", "Eva lit"))
    again = GoldenSet.load(path)
    assert again.declared_version == CASES.version != again.version


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("nonsense", "line 2: not JSON"),
        ('["a"]', "line 2: a case is a JSON object, not list"),
        ('{"reference": "x"}', "line 2: 'question': field required"),
        ('{"question": " "}', "line 2: a case needs a question"),
        ('{"question": "q", "inclusion_probability": 0}', "line 2: 'inclusion_probability' must be above 0"),
        ('{"question": "q", "source": "elsewhere"}', "line 2: 'source'"),
        ('{"question": "q", "contexts": "one text"}', "line 2: 'contexts'"),
    ],
)
def test_a_line_that_is_not_a_case_is_named(tmp_path: Path, line: str, why: str) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text(f'{{"steelyard_golden": 1}}\n{line}\n')
    with pytest.raises(InvalidGoldenSet, match=why):
        GoldenSet.load(path)


def test_a_newer_form_and_repeated_ids_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "new.jsonl"
    path.write_text('{"steelyard_golden": 99}\n')
    with pytest.raises(InvalidGoldenSet, match="newer than 1"):
        GoldenSet.load(path)
    path.write_text('{"steelyard_run": 99, "what": "comes later"}')
    with pytest.raises(InvalidGoldenSet, match="99 is newer"):
        Run.load(path)
    with pytest.raises(InvalidGoldenSet, match="two cases have the id"):
        GoldenSet(cases=(LAMP, LAMP))


def test_the_difference_of_two_versions_names_cases_and_fields() -> None:
    other = Case(question="Why?")
    found = diff(CASES, GoldenSet(cases=(replace(LAMP, reference="Eva."), other)))
    assert (found.added, found.removed) == ((other.id,), (FOLLOW_UP.id,))
    assert found.changed == {LAMP.id: ("reference",)}
    assert not diff(CASES, CASES)


def test_cases_of_nobody_are_unreviewed() -> None:
    assert CASES.unreviewed == (FOLLOW_UP,)
    assert not GoldenSet(cases=(LAMP, replace(FOLLOW_UP, reviewed_by="Ada"))).unreviewed
    assert (LAMP.weight, FOLLOW_UP.weight) == (1.0, 4.0)


@pytest.mark.parametrize("form", ["ragas", "deepeval", "steelyard"])
def test_other_tools_forms_come_back_as_they_went(form: str) -> None:
    rows = golden_to([LAMP], form=form)  # type: ignore[arg-type]
    assert golden_from(rows).cases == (LAMP,)
    objects = [SimpleNamespace(**row) for row in rows]
    if form != "steelyard":
        assert golden_from(SimpleNamespace(samples=objects)).cases == (LAMP,)
        assert golden_from(pd.DataFrame(rows)).cases == (LAMP,)


def test_a_conversation_is_not_one_case() -> None:
    with pytest.raises(InvalidGoldenSet, match="conversation"):
        golden_from([{"user_input": [{"role": "user", "content": "hi"}]}])
    with pytest.raises(InvalidGoldenSet, match="does not hold cases"):
        golden_from("some text")
