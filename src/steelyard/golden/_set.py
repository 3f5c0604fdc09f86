"""The golden set: cases in a file of JSON lines, with a header and a version made of their content."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

from steelyard._internal.files import replace_file
from steelyard._internal.typed import adapter, read
from steelyard.errors import InvalidGoldenSet, InvalidRecord
from steelyard.record import Context, Record

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
    if hasattr(source, "columns"):
        return list(source.to_dict("records"))  # type: ignore[attr-defined]  # a pandas frame
    samples = getattr(source, "samples", None) or getattr(source, "test_cases", None) or source
    if not isinstance(samples, Iterable) or isinstance(samples, str | bytes | Mapping):
        raise InvalidGoldenSet(
            f"a {type(source).__name__} does not hold cases; give a list of cases, a frame or a data set"
        )
    # A Ragas testset wraps each sample in one more object.
    rows = (getattr(sample, "eval_sample", sample) for sample in samples)
    names = {*_RAGAS.values(), *_DEEPEVAL.values(), "tags"}
    return [
        row if isinstance(row, Mapping) else {name: getattr(row, name, None) for name in names}
        for row in rows
    ]


def _ours(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row under our names; values that say nothing, NaN too, are left out."""
    found = given = {key: value for key, value in row.items() if _tells(value)}
    names = next((form for form in _FORMS.values() if form["question"] in given), None)
    if names is not None:
        found = {ours: given[theirs] for ours, theirs in names.items() if theirs in given}
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


Source = Literal["person", "synthetic", "production"]
"""Who thought of a case: a person, a model, or the users of the application."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Message:
    """One earlier message of a conversation."""

    role: Literal["user", "assistant"]
    """Who said it."""
    text: str = field(repr=False)
    """What was said."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """A question with what a good answer to it must hold against.

    Example:
        >>> Case(question="When was it built?", reference="In 1811.").id
        '4ca32e3e2637a27f'
    """

    question: str = field(repr=False)
    """What is asked."""
    id: str = ""
    """Unique in its set; made from the question and the history where none is given."""
    history: tuple[Message, ...] = ()
    """The conversation before the question, oldest first."""
    reference: str | None = field(default=None, repr=False)
    """The expected answer."""
    reference_contexts: tuple[str, ...] = field(default=(), repr=False)
    """The passages that a good answer rests on."""
    contexts: tuple[str, ...] = field(default=(), repr=False)
    """What was retrieved, for a case whose retrieval is part of it."""
    answer: str | None = field(default=None, repr=False)
    """What was answered, for a case from production or an earlier run."""
    tags: tuple[str, ...] = ()
    """Words to slice by."""
    source: Source = "person"
    """Who thought of it."""
    kind: str = ""
    """What sort of question it is, such as `single_passage`, `comparison` or `unanswerable`."""
    inclusion_probability: float | None = None
    """For a case that was drawn: the probability with which it was; its inverse is the weight of the case."""
    reviewed_by: str | None = None
    """The person who has looked at it; None: nobody yet."""
    metadata: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """Anything else; plain JSON values."""

    def __post_init__(self) -> None:
        if not self.id:
            told = "\x1f".join(
                [*(f"{message.role}:{message.text}" for message in self.history), self.question]
            )
            object.__setattr__(self, "id", sha256(told.encode("utf-8", "replace")).hexdigest()[:16])

    @property
    def weight(self) -> float:
        """How many turns of production it stands for; 1 if it was not drawn."""
        return 1 / self.inclusion_probability if self.inclusion_probability else 1.0

    @property
    def unanswerable(self) -> bool:
        """Whether a good answer says that it cannot be answered."""
        return self.kind in ("unanswerable", "false_premise")

    def record(self, *, answer: str | None = None, contexts: tuple[Context, ...] | None = None) -> Record:
        """The case as a Record, with an application's answer and contexts if they are given."""
        found = tuple(Context(text=text, rank=rank) for rank, text in enumerate(self.contexts))
        expected = tuple(Context(text=text, rank=rank) for rank, text in enumerate(self.reference_contexts))
        return Record(
            id=self.id,
            question=self.question,
            contexts=found if contexts is None else contexts,
            answer=(self.answer or "") if answer is None else answer,
            reference=self.reference,
            reference_contexts=expected,
            tags=self.tags,
        )


GOLDEN_SCHEMA = 1
"""Version of the file's form; a reader refuses a newer one."""

_MARK = "steelyard_golden"


@dataclass(frozen=True, kw_only=True)
class GoldenSet:
    """Cases that are kept together, in order.

    Example:
        >>> cases = GoldenSet(name="lamps", cases=(Case(question="Who lit it?", reference="Ada."),))
        >>> len(cases), cases.version == GoldenSet(name="other", cases=cases.cases).version
        (1, True)
    """

    cases: tuple[Case, ...]
    """The cases; their ids are unique."""
    name: str = "golden"
    """What the set is called."""
    declared_version: str | None = field(default=None, compare=False)
    """The version in the header of its file; another than `version` if the file was edited since."""

    def __post_init__(self) -> None:
        seen: set[str] = set()
        for case in self.cases:
            if case.id in seen:
                raise InvalidGoldenSet(f"two cases have the id {case.id!r}; give one of them another")
            seen.add(case.id)

    def __len__(self) -> int:
        return len(self.cases)

    def __iter__(self) -> Iterator[Case]:
        return iter(self.cases)

    @property
    def version(self) -> str:
        """The first 12 hex digits of SHA-256 over the cases' content, whatever their order."""
        # Sorted, since the order of cases is nothing that a version is about.
        lines = sorted(json.dumps(case_to_dict(case), sort_keys=True) for case in self.cases)
        return sha256("\n".join(lines).encode()).hexdigest()[:12]

    @property
    def unreviewed(self) -> tuple[Case, ...]:
        """The cases that nobody has looked at; those of a person need no review."""
        return tuple(case for case in self.cases if case.source != "person" and not case.reviewed_by)

    def save(self, path: str | Path) -> None:
        """Write the set; the file is complete or as it was before.

        Raises:
            OSError: If it cannot be written.
        """
        header = {_MARK: GOLDEN_SCHEMA, "name": self.name, "version": self.version, "cases": len(self)}
        lines = [header, *map(case_to_dict, self.cases)]
        text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
        replace_file(path, text, private=True)

    @classmethod
    def load(cls, path: str | Path) -> GoldenSet:
        """Read a set; a file of cases without a header is one too.

        Raises:
            InvalidGoldenSet: Naming the line that is not a case, or a schema newer than this reader.
            OSError: If it cannot be read.
        """
        path = Path(path)
        header: Mapping[str, Any] = {}
        cases: list[Case] = []
        # Editors on Windows put a byte order mark before the first line.
        for number, line in enumerate(path.read_text(encoding="utf-8-sig").splitlines(), start=1):
            if not line.strip():
                continue
            try:
                data = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise InvalidGoldenSet(
                    f"{path}, line {number}: not JSON: {error}; write one JSON object a line"
                ) from None
            # Only at the top: further down it is a case that happens to have that key.
            if isinstance(data, dict) and _MARK in data and not cases and not header:
                header, schema = data, data[_MARK]
                if not isinstance(schema, int) or schema > GOLDEN_SCHEMA:
                    raise InvalidGoldenSet(
                        f"{path}: its form {schema!r} is newer than {GOLDEN_SCHEMA}; update steelyard"
                    )
                continue
            cases.append(case_from_dict(data, where=f"{path}, line {number}"))
        name = str(header.get("name") or path.stem)
        return cls(cases=tuple(cases), name=name, declared_version=header.get("version"))


def case_to_dict(case: Case) -> dict[str, Any]:
    """A case as plain JSON values; fields that say nothing are left out."""
    try:
        data: dict[str, Any] = adapter(Case).dump_python(case, mode="json", exclude_defaults=True)
    except ValueError as error:
        raise InvalidGoldenSet(
            f"the case {case.id!r} has no JSON form: {type(error).__name__}; "
            "leave out of its metadata what is not JSON"
        ) from None
    return data


def case_from_dict(data: object, *, where: str = "case") -> Case:
    """Read a case; fields that it does not know are passed over."""
    if not isinstance(data, Mapping):
        raise InvalidGoldenSet(
            f"{where}: a case is a JSON object, not {type(data).__name__}; write one JSON object a line"
        )
    given = {name: value for name, value in data.items() if value is not None}
    try:
        case = read(Case, given, what="case")
    except InvalidRecord as error:
        raise InvalidGoldenSet(f"{where}: {error}; correct that line") from None
    if not case.question.strip():
        raise InvalidGoldenSet(f"{where}: a case needs a question")
    probability = case.inclusion_probability
    if probability is not None and not 0 < probability <= 1:
        raise InvalidGoldenSet(f"{where}: 'inclusion_probability' must be above 0 and at most 1")
    return case


@dataclass(frozen=True, kw_only=True, slots=True)
class SetChanges:
    """What changed from one version of a set to another, by case id."""

    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: Mapping[str, tuple[str, ...]]
    """In both: the names of the fields that differ."""

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.changed)


def diff(old: GoldenSet, new: GoldenSet) -> SetChanges:
    """Compare two versions of a set, case by case."""
    before = {case.id: case_to_dict(case) for case in old}
    after = {case.id: case_to_dict(case) for case in new}
    changed = {}
    for name in before.keys() & after.keys():
        one, other = before[name], after[name]
        if fields := tuple(field for field in {**one, **other} if one.get(field) != other.get(field)):
            changed[name] = fields
    return SetChanges(
        added=tuple(name for name in after if name not in before),
        removed=tuple(name for name in before if name not in after),
        changed={name: changed[name] for name in after if name in changed},
    )
