"""Tables of verdicts, and a failure told to people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from generator.verdicts import OUTCOMES, Judgement, Verdict

_COLUMNS = (*OUTCOMES, "false_known")
_FEW = 20


def counts(verdicts: Iterable[Verdict]) -> Counter[str]:
    """How many turns came out how."""
    made: Counter[str] = Counter()
    for verdict in verdicts:
        made[verdict.outcome] += 1
        made["turns"] += verdict.truth is not None
        made["false_known"] += bool(verdict.false_known)
        made["session"] += verdict.session is True
        made["session_wrong"] += verdict.session is False
        made["session_missing"] += bool(verdict.truth and verdict.truth.session) and verdict.session is None
    return made


def table(judgements: list[Judgement]) -> str:
    """Verdicts by recorder and by part, the worst parts first."""
    verdicts = [verdict for judgement in judgements for verdict in judgement.verdicts]
    head = f"{'':42}{'turns':>7}" + "".join(f"{name:>12}" for name in _COLUMNS)
    made = counts(verdicts)
    sessions = (f"{made[kind]} {kind}" for kind in ("session", "session_wrong", "session_missing"))
    lines = [head, _row("all", made), ", ".join(sessions), ""]
    by_part: dict[str, list[Verdict]] = {}
    wrong: Counter[str] = Counter()
    for judgement in judgements:
        for axis, option in judgement.run.choices.parts():
            by_part.setdefault(f"{axis}={option}", []).extend(judgement.verdicts)
        if any(verdict.record is None for verdict in judgement.verdicts):
            causes = {name: number for name, number in judgement.run.receiver.diagnosed.items() if number}
            wrong.update({f"diagnosed: {name}": number for name, number in causes.items()})
        for verdict in judgement.verdicts:
            wrong.update(f"{verdict.outcome}: {each}" for each in verdict.wrong)
    rows = [(name, counts(found)) for name, found in by_part.items()]
    rows = [row for row in rows if row[1]["turns"] >= _FEW]
    rows.sort(key=lambda row: row[1]["right"] / row[1]["turns"])
    lines += [_row(name, count) for name, count in rows]
    lines += ["", *(f"{count:6} {what}" for what, count in wrong.most_common(25))]
    return "\n".join(lines)


def _row(name: str, count: Counter[str]) -> str:
    turns = max(1, count["turns"])
    shares = "".join(f"{count[column]:>5} {100 * count[column] / turns:5.1f}%" for column in _COLUMNS)
    return f"{name:42}{count['turns']:>7}{shares}"


def told(judgement: Judgement) -> Iterator[str]:
    """A failing application, in words: its parts, then prompt, truth and record of each turn that failed."""
    choices = judgement.run.choices
    yield f"{choices.framework} seed {choices.seed}: " + ", ".join(f"{a}={o}" for a, o in choices.parts())
    for verdict in judgement.verdicts:
        if verdict.outcome in ("right", "said") and not verdict.false_known:
            continue
        yield f"\n{verdict.outcome} {', '.join(verdict.wrong)}"
        if truth := verdict.truth:
            yield f"  prompt     {truth.prompt!r}"
            yield f"  question   {truth.question!r}"
            yield f"  contexts   {list(truth.contexts)}"
            yield f"  unshown    {list(truth.unshown)}"
            yield f"  answer     {truth.answer!r}"
        if record := verdict.record:
            yield f"  recorded   {record.question!r} / {record.standalone_question!r}"
            yield f"    contexts {record.contexts_source} {[context.text for context in record.contexts]}"
            yield f"    answer   {record.answer!r} ({record.status})"
            yield f"    notes    {list(record.notes)}"
        if verdict.false_known:
            yield f"    false    {list(verdict.false_known)}"
