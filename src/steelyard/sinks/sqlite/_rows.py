"""How an Evaluation becomes rows of any SQL database with our tables, and back."""

from __future__ import annotations

import json
import math
import numbers
import sqlite3
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

from steelyard._internal.json_pieces import json_pieces, json_value
from steelyard.errors import InvalidRecord
from steelyard.record import text_of
from steelyard.scores import Evaluation, Score, clean_score, evaluation_from_dict, evaluation_to_dict

_IN_COLUMNS: Final = (
    *("status", "value", "passed", "label", "threshold", "direction", "standard_error", "cause"),
    *("inclusion_probability", "explanation", "options"),
)
_MADE: Final = ("judge", "embedder", "prompt_version", "metric_version", "fuse", "calibrated")
"""What the columns of a Score hold is not in its body."""
_WORDS: Final = (
    b'"direction":"higher","inclusion_probability":1.0,"id":"","metric":"context_relevancy"'
    b'{"schema":1,"record_id":"","scores":[{"metric":"faithfulness","verdicts":[{"about":"","kind":"relevant",'
    b'{"about":"","kind":"useful","value":true,"probability":0.9,"reason":"","evidence":[{"context":0,"start":0,'
    b'"end":,"text":"","notes":{"missing_numbers":[],"missing_names":[],"negation_flip":false,'
    b'"antonym_flip":null,"signals":{"window":1.0,"everywhere":1.0,"pairs":1.0,"sequence":1.0,"soft":1.0,'
    b'"cosine":1.0}}}]},{"about":"","kind":"supported","value":false,"usage":{"requests":1,"questions":,'
    b'"seconds":},"evaluated_at":,"duration":,"trace":{"trace_id":"","span_id":"","run_id":"",'
    b'"framework":"langchain"},"record":{"id":"","contexts":[{"text":"","id":"","score":0.,"rank":0}],'
    b'"contexts_source":"in_prompt","status":"ok"'
)
"""Words to begin the compression with: without them, each body would spell out the names of its fields once.
They are a part of the schema; a change makes all bodies unreadable."""
# Larger whole numbers than SQLite's raise OverflowError, and would cost the whole Evaluation.
_LARGEST_INTEGER: Final = 2**63 - 1
_ONCE_GUESSED: Final = "contexts_from_prompt"
# A body that was damaged, or made to, must not fill the memory when it is unpacked.
_LARGEST_BODY: Final = 64 * 1024 * 1024


def write_evaluation(connection: sqlite3.Connection, evaluation: Evaluation) -> None:
    """Insert an Evaluation or replace the rows of the same results; in the caller's transaction.

    Raises:
        InvalidRecord: If a value in it cannot be stored. Nothing was written then.
    """
    first, rows, packed = rows_of(evaluation)
    insert = "INSERT INTO bodies (record_id, body) VALUES (?, ?)"
    body = connection.execute(insert, (first["record_id"], packed)).lastrowid
    written = connection.execute(
        f"{_upsert('evaluations', 'record_id', first)} RETURNING turn", {**first, "body": body}
    )
    ((turn,),) = written.fetchall()
    for row in rows:
        connection.execute(_upsert("scores", "id", row), {**row, "turn": turn, "body": body})
    for row in screened_rows(evaluation, first):
        connection.execute(_upsert("screened", "record_id, metric", row), row)
    # The body that was replaced, unless a score of another metric still rests on it.
    connection.execute(
        "DELETE FROM bodies WHERE record_id = :record_id AND id <> :body "
        "AND id NOT IN (SELECT body FROM scores WHERE record_id = :record_id)",
        {"record_id": first["record_id"], "body": body},
    )


def rows_of(evaluation: Evaluation) -> tuple[dict[str, Any], list[dict[str, Any]], bytes]:
    """The row of the `evaluations` table, those of `scores`, and the body; of any SQL database.

    Raises:
        InvalidRecord: If a value in it cannot be stored.
    """
    try:
        whole = _whole(evaluation)
        rows = [
            score_row(score, evaluation, whole, position) for position, score in enumerate(evaluation.scores)
        ]
        first = evaluation_row(evaluation, whole)
        return first, rows, pack(whole)
    except Exception as error:  # noqa: BLE001 - odd values may raise anything, out of their own methods too
        raise InvalidRecord(f"an evaluation cannot be stored: {type(error).__name__}") from None


def screened_rows(evaluation: Evaluation, first: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The rows of the `screened` table: the value that a fitted screen expects of the judge, or its own.

    Args:
        evaluation: The turn.
        first: Its row of the `evaluations` table.
    """
    return [
        {
            "record_id": first["record_id"],
            "metric": score.metric,
            "happened_at": first["happened_at"],
            "value": score.value if score.calibrated_value is None else score.calibrated_value,
            "inclusion_probability": score.inclusion_probability,
            "judge": score.provenance.judge if score.provenance else "",
            "fitted": score.calibration or "",
        }
        for score in map(clean_score, evaluation.screen)
    ]


def read_evaluation(
    connection: sqlite3.Connection, row: Mapping[str, Any], *, metric: str | None = None
) -> Evaluation:
    """The Evaluation again, from its row of the `evaluations` table.

    Raises:
        InvalidRecord: If what is stored is not an Evaluation.
    """
    record_id = row["record_id"]
    found = connection.execute(
        "SELECT * FROM scores WHERE record_id = :id AND (:metric IS NULL OR metric = :metric) "
        "ORDER BY position, rowid",
        {"id": record_id, "metric": metric},
    ).fetchall()
    # Scores that were written at other times, by backfill say, are in bodies of their own.
    wanted = {row["body"], *(score["body"] for score in found)}
    stored = {
        body: one[0]
        for body in wanted
        if (one := connection.execute("SELECT body FROM bodies WHERE id = ?", (body,)).fetchone())
    }
    return evaluation_from_rows(row, found, stored)


def evaluation_from_rows(
    row: Mapping[str, Any], found: Sequence[Mapping[str, Any]], stored: Mapping[int, bytes]
) -> Evaluation:
    """The Evaluation again.

    Args:
        row: Its row of the `evaluations` table; tags and metadata as JSON text.
        found: Its rows of the `scores` table, in order.
        stored: By id, the bodies that these rows name.

    Raises:
        InvalidRecord: If what is stored is not an Evaluation.
    """
    record_id = row["record_id"]
    wanted = {row["body"], *(score["body"] for score in found)}
    if not wanted <= set(stored):
        raise InvalidRecord("a part of an evaluation is not there")
    bodies = {body: unpack(stored[body]) for body in wanted}
    data = bodies[row["body"]]
    if isinstance(data.get("record"), dict):
        data["record"] |= {"question": row["question"] or "", "answer": row["answer"] or ""}
        if row["metadata"]:
            data["record"]["metadata"] = _metadata(row["metadata"])
    parts = {
        (body, stored_id(score, record_id)): score
        for body in wanted
        for score in bodies[body].get("scores", [])
    }
    try:
        scores = [_score(score, parts[score["body"], score["id"]]) for score in found]
    except KeyError:
        raise InvalidRecord("a score is not in its evaluation") from None
    return evaluation_from_dict({**data, "scores": scores})


def _metadata(text: str) -> object:
    try:
        return json.loads(text)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidRecord(f"the metadata of a record cannot be read: {type(error).__name__}") from None


def _score(row: Mapping[str, Any], part: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON form of a Score from its columns and its part of a body."""
    score = {**part, **{name: row[name] for name in _IN_COLUMNS if row[name] is not None}}
    if row["passed"] is not None:
        score["passed"] = bool(row["passed"])
    if row["judge"] is not None:
        made = {name: row[name] for name in _MADE if row[name] is not None}
        score["provenance"] = {**made, "calibrated": bool(row["calibrated"])}
    return score


def evaluation_row(evaluation: Evaluation, data: Mapping[str, Any]) -> dict[str, Any]:
    """The row of the `evaluations` table; content is there only if the Evaluation still has its record."""
    trace, usage = evaluation.trace, evaluation.usage
    return {
        "record_id": text_of(evaluation.record_id),
        "happened_at": data.get("happened_at", data["evaluated_at"]),
        "evaluated_at": data["evaluated_at"],
        "session": data.get("session"),
        "user_hash": data.get("user"),
        "tenant": data.get("tenant"),
        "evidence": data.get("evidence"),
        "diagnosis": _diagnosed(evaluation),
        "duration": _real(evaluation.duration) or 0.0,
        "trace_id": trace and _text(trace.trace_id),
        "span_id": trace and _text(trace.span_id),
        "run_id": trace and _text(trace.run_id),
        "framework": trace and _text(trace.framework),
        "record_status": evaluation.record and _text(evaluation.record.status),
        **_content(data.get("record")),
        "requests": _integer(usage.requests),
        "questions": _integer(usage.questions),
        "reasked": _integer(usage.reasked),
        "prompt_tokens": _integer(usage.prompt_tokens),
        "completion_tokens": _integer(usage.completion_tokens),
        "cached_tokens": _integer(usage.cached_tokens),
        "cost": _real(usage.cost),
        "seconds": _real(usage.seconds) or 0.0,
        "body": None,
    }


def _diagnosed(evaluation: Evaluation) -> str | None:
    """The cause of a bad turn, `fine` for a good one; None for one that nobody diagnosed."""
    found = evaluation.diagnosis
    return None if found is None else found.cause or "fine"


def _content(record: object) -> dict[str, str | None]:
    """The columns of a record, taken out of it: each text is stored once, and what is left is the body."""
    if record is None:
        return dict.fromkeys(("question", "answer", "tags", "metadata"))
    texts = record if isinstance(record, dict) else {}
    metadata = texts.pop("metadata", None)
    return {
        "question": text_of(texts.pop("question", "")),
        "answer": text_of(texts.pop("answer", "")),
        # Each tag once, as each of them gives an entry in the index.
        "tags": _json(list(dict.fromkeys(texts.get("tags", [])))),
        "metadata": _json(metadata) if metadata else None,
    }


def score_row(score: Score, evaluation: Evaluation, data: Mapping[str, Any], position: int) -> dict[str, Any]:
    """The row of the `scores` table."""
    made = score.provenance
    return {
        "id": stored_id({"id": score.id, "metric": score.metric}, evaluation.record_id),
        "turn": None,
        "record_id": text_of(evaluation.record_id),
        "position": position,
        "happened_at": data.get("happened_at", data["evaluated_at"]),
        "evaluated_at": data["evaluated_at"],
        "metric": text_of(score.metric),
        "status": text_of(score.status),
        "value": _real(score.value),
        "passed": None if score.passed is None else int(bool(score.passed)),
        "label": _text(score.label),
        "threshold": _real(score.threshold),
        "direction": text_of(score.direction),
        "standard_error": _real(score.standard_error),
        "inclusion_probability": _real(score.inclusion_probability) or 1.0,
        "cause": _text(score.cause),
        "explanation": text_of(score.explanation),
        "options": text_of(score.options),
        "judge": made and _text(made.judge),
        "embedder": made and _text(made.embedder),
        "prompt_version": made and _text(made.prompt_version),
        "metric_version": made and _text(made.metric_version),
        "fuse": made and _text(made.fuse),
        "calibrated": made and int(bool(made.calibrated)),
        "body": None,
    }


def stored_id(score: Mapping[str, Any], record_id: str) -> str:
    """The key of a Score; those that were made without an id have one by record and metric."""
    return text_of(score.get("id") or f"{record_id}:{score.get('metric')}")


def pack(data: object) -> bytes:
    """JSON, compressed. Odd values become what JSON has: numbers of numpy numbers, everything else text."""
    pieces = json_pieces(data, allow_nan=False, default=plain_value)
    # Bodies are written once and read seldom; a smaller file is also read faster.
    deflate = zlib.compressobj(level=9, zdict=_WORDS)
    return deflate.compress(b"".join(text_of(piece).encode() for piece in pieces)) + deflate.flush()


def unpack(body: object) -> dict[str, Any]:
    """What was packed.

    Raises:
        InvalidRecord: If it is not a compressed JSON object, or larger than 64 MiB.
    """
    try:
        inflate = zlib.decompressobj(zdict=_WORDS)
        data = json_value(inflate.decompress(body, _LARGEST_BODY))  # type: ignore[arg-type]
    except (zlib.error, TypeError, ValueError, RecursionError) as error:
        raise InvalidRecord(f"the body of an evaluation cannot be read: {type(error).__name__}") from None
    if not isinstance(data, dict):
        raise InvalidRecord("the body of an evaluation is not a JSON object")
    return data


def told_in(body: object) -> tuple[float | None, str | None]:
    """When the turn of an old body happened, and how its passages are known; None for what it does not say.

    Bodies without a word of evidence say it by the record in them, if that was stored.
    """
    try:
        record = unpack(body).get("record")
    except InvalidRecord:
        return None, None
    if not isinstance(record, dict):
        return None, None
    timings = record.get("timings")
    at = timings.get("started_at") if isinstance(timings, dict) else None
    found = float(at) if isinstance(at, float | int) and math.isfinite(at) else None
    source = record.get("contexts_source")
    kind = "none" if not record.get("contexts") else source if source in ("told", "guessed") else "known"
    # What was cut out of a prompt was once told by a note alone.
    if kind == "known" and any(str(note).startswith(_ONCE_GUESSED) for note in record.get("notes") or ()):
        kind = "guessed"
    return found, kind


def plain_value(value: object) -> object:
    """What JSON has no form for, in a form that it has; for `json.dumps(default=...)`."""
    if type(value).__module__ == "numpy" and hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real):
        return float(value)
    return text_of(value)


def _whole(evaluation: Evaluation) -> dict[str, Any]:
    """The JSON form, without what the columns of the Scores hold."""
    data = evaluation_to_dict(evaluation)
    known = {*_IN_COLUMNS, "provenance"}
    scores = [{name: item for name, item in score.items() if name not in known} for score in data["scores"]]
    for score in scores:
        if verdicts := score.get("verdicts"):
            score["verdicts"] = [_compact(verdict) for verdict in verdicts]
    return {**data, "scores": scores}


def _compact(verdict: dict[str, Any]) -> dict[str, Any]:
    """A verdict with six digits of its probability: the others are noise, and an eighth of a body."""
    probability = verdict.get("probability")
    if not isinstance(probability, float):
        return verdict
    return {**verdict, "probability": round(probability, 6)}


def _json(value: object) -> str:
    return text_of(json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=plain_value))


def _text(value: object) -> str | None:
    return None if value is None else text_of(value)


def _real(value: Any) -> float | None:
    number = None if value is None else float(value)
    if number is not None and not math.isfinite(number):
        raise ValueError("not a finite number")
    return number


def _integer(value: Any) -> int:
    return max(-_LARGEST_INTEGER, min(_LARGEST_INTEGER, int(value or 0)))


def _upsert(table: str, key: str, row: Mapping[str, Any]) -> str:
    """The statement that inserts a row or replaces the one with the same key."""
    changes = ", ".join(f"{name} = excluded.{name}" for name in row if name not in key.split(", "))
    values = ", ".join(f":{name}" for name in row)
    insert = f"INSERT INTO {table} ({', '.join(row)}) VALUES ({values})"
    return f"{insert} ON CONFLICT ({key}) DO UPDATE SET {changes}"
