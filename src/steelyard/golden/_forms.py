"""Golden sets from and for other tools: Ragas, DeepEval, pandas, Hugging Face datasets, by duck typing.

None of these packages is imported to read from them. Writing gives plain dictionaries with their field names,
which their own constructors take: `SingleTurnSample(**row)`, `Golden(**row)`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from steelyard.errors import InvalidGoldenSet
from steelyard.golden._set import Case, GoldenSet, case_from_dict, case_to_dict

Form = Literal["steelyard", "ragas", "deepeval"]

_RAGAS: Mapping[str, str] = {
    "question": "user_input",
    "contexts": "retrieved_contexts",
    "answer": "response",
    "reference": "reference",
    "reference_contexts": "reference_contexts",
}
_DEEPEVAL: Mapping[str, str] = {
    "question": "input",
    "contexts": "retrieval_context",
    "answer": "actual_output",
    "reference": "expected_output",
    "reference_contexts": "context",
}
_FORMS: Mapping[str, Mapping[str, str]] = {"ragas": _RAGAS, "deepeval": _DEEPEVAL}


def golden_from(source: object, *, name: str = "golden") -> GoldenSet:
    """A golden set out of what other tools hold their cases in.

    Args:
        source: A Ragas `EvaluationDataset` or testset, a list of `SingleTurnSample`, of DeepEval's `Golden`
            or `LLMTestCase`, a pandas frame, a Hugging Face `Dataset`, or a list of dictionaries; columns by
            our names, Ragas' or DeepEval's.
        name: What the set is called.

    Raises:
        InvalidGoldenSet: If one of its rows is not a case.
    """
    rows = _rows(source)
    cases = [case_from_dict(_ours(row), where=f"row {number}") for number, row in enumerate(rows)]
    return GoldenSet(cases=tuple(cases), name=name)


def golden_to(cases: Iterable[Case], *, form: Form) -> list[dict[str, Any]]:
    """The cases as dictionaries with another tool's field names; empty fields are left out."""
    if form == "steelyard":
        return [case_to_dict(case) for case in cases]
    names = _FORMS[form]
    rows = []
    for case in cases:
        values = {theirs: getattr(case, ours) for ours, theirs in names.items()}
        rows.append({key: list(v) if isinstance(v, tuple) else v for key, v in values.items() if v})
    return rows


def _rows(source: object) -> Sequence[Mapping[str, Any]]:
    for method in ("to_dict", "to_list"):
        if method == "to_dict" and hasattr(source, "columns"):
            return list(source.to_dict("records"))  # type: ignore[attr-defined]  # a pandas frame
        if method == "to_list" and hasattr(source, "to_list"):
            return list(source.to_list())
    samples = getattr(source, "samples", None) or getattr(source, "test_cases", None) or source
    if not isinstance(samples, Iterable) or isinstance(samples, str | bytes | Mapping):
        raise InvalidGoldenSet(
            f"a {type(source).__name__} does not hold cases; give a list of cases, a frame or a data set"
        )
    return [_fields(sample) for sample in samples]


def _fields(sample: object) -> Mapping[str, Any]:
    """One row's fields; a Ragas testset wraps each sample in one more object."""
    sample = getattr(sample, "eval_sample", sample)
    if isinstance(sample, Mapping):
        return sample
    names = {*_RAGAS.values(), *_DEEPEVAL.values(), "additional_metadata", "tags", "name"}
    return {name: value for name in names if (value := getattr(sample, name, None)) is not None}


def _ours(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row under our names; values that say nothing, NaN too, are left out."""
    given = {key: value for key, value in row.items() if _tells(value)}
    names = next((form for form in _FORMS.values() if form["question"] in given), None)
    found = (
        given if names is None else {ours: given[theirs] for ours, theirs in names.items() if theirs in given}
    )
    if names is not None:
        found["tags"] = given.get("tags", ())
        found["source"] = given.get("source", "synthetic" if "synthesizer_name" in row else "person")
    if isinstance(found.get("question"), list):
        raise InvalidGoldenSet(
            "a case has one question; this sample is a conversation of several turns; "
            "put the earlier turns into history"
        )
    return {
        key: list(value) if hasattr(value, "tolist") and hasattr(value, "shape") else value
        for key, value in found.items()
    }


def _tells(value: object) -> bool:
    if value is None or (isinstance(value, float) and value != value):
        return False
    return not isinstance(value, str | list | tuple) or bool(value)
