"""The golden set: cases in a file of JSON lines, with a header and a version made of their content."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from steelyard._internal.typed import adapter
from steelyard.errors import InvalidGoldenSet
from steelyard.golden._case import Case

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
        """Refuse two cases of one id.

        Raises:
            InvalidGoldenSet: Naming the id.
        """
        seen: set[str] = set()
        for case in self.cases:
            if case.id in seen:
                raise InvalidGoldenSet(f"two cases have the id {case.id!r}")
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
        path = Path(path)
        header = {_MARK: GOLDEN_SCHEMA, "name": self.name, "version": self.version, "cases": len(self)}
        lines = [header, *map(case_to_dict, self.cases)]
        text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
        # In the same folder: a rename is one step only within a file system.
        beside = path.with_name(f".{path.name}.new")
        beside.write_text(text, encoding="utf-8")
        beside.replace(path)

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
                raise InvalidGoldenSet(f"{path}, line {number}: not JSON: {error}") from None
            # Only at the top: further down it is a case that happens to have that key.
            if isinstance(data, dict) and _MARK in data and not cases and not header:
                header = _checked(data, path)
                continue
            cases.append(case_from_dict(data, where=f"{path}, line {number}"))
        name = str(header.get("name") or path.stem)
        return cls(cases=tuple(cases), name=name, declared_version=header.get("version"))


def case_to_dict(case: Case) -> dict[str, Any]:
    """A case as plain JSON values; fields that say nothing are left out.

    Raises:
        InvalidGoldenSet: If its metadata has no JSON form.
    """
    try:
        data: dict[str, Any] = adapter(Case).dump_python(case, mode="json", exclude_defaults=True)
    except ValueError as error:
        raise InvalidGoldenSet(f"the case {case.id!r} has no JSON form: {type(error).__name__}") from None
    return data


def case_from_dict(data: object, *, where: str = "case") -> Case:
    """Read a case; fields that it does not know are passed over.

    Raises:
        InvalidGoldenSet: Naming the field that has the wrong shape, never its content.
    """
    from pydantic import ValidationError

    if not isinstance(data, Mapping):
        raise InvalidGoldenSet(f"{where}: a case is a JSON object, not {type(data).__name__}")
    given = {name: value for name, value in data.items() if value is not None}
    try:
        case: Case = adapter(Case).validate_python(given)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        path = ".".join(map(str, first["loc"]))
        raise InvalidGoldenSet(f"{where}: {path!r}: {first['msg'].lower()}") from None
    if not case.question.strip():
        raise InvalidGoldenSet(f"{where}: a case needs a question")
    probability = case.inclusion_probability
    if probability is not None and not 0 < probability <= 1:
        raise InvalidGoldenSet(f"{where}: 'inclusion_probability' must be above 0 and at most 1")
    return case


def _checked(header: Mapping[str, Any], path: Path) -> Mapping[str, Any]:
    schema = header[_MARK]
    if not isinstance(schema, int) or schema > GOLDEN_SCHEMA:
        raise InvalidGoldenSet(f"{path}: its form {schema!r} is newer than {GOLDEN_SCHEMA}; update steelyard")
    return header


@dataclass(frozen=True, kw_only=True, slots=True)
class Difference:
    """What changed from one version of a set to another, by case id."""

    added: tuple[str, ...]
    """Only in the newer one."""
    removed: tuple[str, ...]
    """Only in the older one."""
    changed: Mapping[str, tuple[str, ...]]
    """In both: the names of the fields that differ."""

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.changed)


def diff(old: GoldenSet, new: GoldenSet) -> Difference:
    """Compare two versions of a set, case by case."""
    before = {case.id: case_to_dict(case) for case in old}
    after = {case.id: case_to_dict(case) for case in new}
    both = [name for name in after if name in before and before[name] != after[name]]
    return Difference(
        added=tuple(name for name in after if name not in before),
        removed=tuple(name for name in before if name not in after),
        changed={name: _fields(before[name], after[name]) for name in both},
    )


def _fields(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[str, ...]:
    names: Iterable[str] = {**before, **after}
    return tuple(name for name in names if before.get(name) != after.get(name))
