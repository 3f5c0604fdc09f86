"""The tables of a results database, the same for SQLite and Postgres; an Evaluation as their rows, and back.

The columns of `evaluations` and `scores` are for queries. What they do not hold (contexts, verdicts,
evidence) is in `bodies`: one row for each Evaluation that was written, compressed as a whole. Claims are
sentences of the answer, evidence is a piece of a context, and several metrics judge the same claims, so that
one by one they would take several times as much. Results go by `happened_at`, when the turn began; where
nothing says, that is `evaluated_at`.
"""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Callable, Mapping
from typing import Any, Final

from steelyard._internal.typed import json_pieces, json_value
from steelyard.errors import InvalidRecord
from steelyard.record import text_of
from steelyard.scores import Evaluation, Score, clean_score, evaluation_from_dict, evaluation_to_dict

_TABLES: Final = (
    """CREATE TABLE IF NOT EXISTS bodies (
        id {serial} PRIMARY KEY, record_id text NOT NULL, body {blob} NOT NULL
    )""",
    """CREATE TABLE IF NOT EXISTS evaluations (
        turn {serial} PRIMARY KEY, record_id text NOT NULL UNIQUE,
        happened_at {real} NOT NULL, evaluated_at {real} NOT NULL, duration {real} NOT NULL,
        session text, user_hash text, tenant text, evidence text, diagnosis text,
        trace_id text, span_id text, run_id text, framework text,
        record_status text, question text, answer text, tags {json}, metadata {json},
        requests bigint NOT NULL, questions bigint NOT NULL, reasked bigint NOT NULL,
        prompt_tokens bigint NOT NULL, completion_tokens bigint NOT NULL, cached_tokens bigint NOT NULL,
        cost {real}, seconds {real} NOT NULL, body bigint NOT NULL
    )""",
    """CREATE TABLE IF NOT EXISTS scores (
        id text NOT NULL UNIQUE, turn bigint NOT NULL, record_id text NOT NULL, position integer NOT NULL,
        happened_at {real} NOT NULL, evaluated_at {real} NOT NULL,
        metric text NOT NULL, status text NOT NULL, value {real}, passed integer, label text,
        threshold {real}, direction text NOT NULL, standard_error {real},
        inclusion_probability {real} NOT NULL, cause text, explanation text NOT NULL, options text NOT NULL,
        judge text, embedder text, prompt_version text, metric_version text, fuse text, calibrated integer,
        body bigint NOT NULL
    )""",
    # What screens said: beside `scores` and not among them, so that no figure takes one for the other.
    """CREATE TABLE IF NOT EXISTS screened (
        record_id text NOT NULL, metric text NOT NULL, happened_at {real} NOT NULL, value {real},
        inclusion_probability {real} NOT NULL, judge text NOT NULL, fitted text NOT NULL,
        PRIMARY KEY (record_id, metric)
    ){compact}""",
    """CREATE TABLE IF NOT EXISTS ledger (
        run text NOT NULL PRIMARY KEY, host text NOT NULL, pid integer NOT NULL,
        started_at {real} NOT NULL, updated_at {real} NOT NULL, counts text NOT NULL
    )""",
    """CREATE TABLE IF NOT EXISTS judge_checks (
        id {serial} PRIMARY KEY, checked_at {real} NOT NULL, judge text NOT NULL, figures text NOT NULL
    )""",
    """CREATE TABLE IF NOT EXISTS labels (
        record_id text NOT NULL, metric text, claim integer, value text NOT NULL,
        note text NOT NULL, who text NOT NULL, labelled_at {real} NOT NULL, drawn {real}
    )""",
)
_INDEXES: Final = (
    "bodies_by_record ON bodies (record_id)",
    # With the evidence turns are counted and found by it without a look at the table.
    "evaluations_by_time ON evaluations (happened_at, record_id, evidence)",
    "evaluations_by_diagnosis ON evaluations (diagnosis, happened_at, record_id) WHERE diagnosis IS NOT NULL",
    "evaluations_by_session ON evaluations (session, happened_at) WHERE session IS NOT NULL",
    "evaluations_by_tenant ON evaluations (tenant, happened_at) WHERE tenant IS NOT NULL",
    "evaluations_by_user ON evaluations (user_hash, happened_at) WHERE user_hash IS NOT NULL",
    "evaluations_by_trace ON evaluations (trace_id) WHERE trace_id IS NOT NULL",
    "scores_by_record ON scores (record_id, position)",
    # With the turn every so many-th score is found without a look at the others.
    "scores_by_metric_and_time ON scores (metric, happened_at, value, turn)",
    "scores_without_value ON scores (metric, status, cause, happened_at, turn, inclusion_probability) "
    "WHERE status != 'scored'",
    "scores_not_passed ON scores (metric, happened_at) WHERE passed = 0",
    "screened_by_metric_and_time ON screened (metric, happened_at)",
)
_ONE_LABEL: Final = (
    "CREATE UNIQUE INDEX IF NOT EXISTS labels_by_what_and_who ON labels "
    "(record_id, coalesce(metric, ''), coalesce(claim, -1), who)"
)
COUNT_REPLAY: Final = (
    "CREATE TABLE IF NOT EXISTS replays (day TEXT PRIMARY KEY, calls INTEGER NOT NULL)",
    """INSERT INTO replays (day, calls) VALUES (:day, 1)
    ON CONFLICT (day) DO UPDATE SET calls = replays.calls + 1 WHERE replays.calls < :most RETURNING calls""",
)
"""One more call of a day, in one step, so that no two processes both make the last one; made by the first."""
STORE_COUNTS: Final = """INSERT INTO ledger (run, host, pid, started_at, updated_at, counts)
    VALUES (:run, :host, :pid, :started_at, :updated_at, :counts) ON CONFLICT (run)
    DO UPDATE SET updated_at = excluded.updated_at, counts = excluded.counts"""
"""The counts of one Monitor."""


def schema(**types: str) -> list[str]:
    """Statements that make what is not there yet."""
    tables = [table.format(**types) for table in _TABLES]
    return [*tables, *(f"CREATE INDEX IF NOT EXISTS {index}" for index in _INDEXES), _ONE_LABEL]


def upsert(table: str, key: str, row: Mapping[str, Any]) -> str:
    """The statement that inserts a row or replaces the one with the same key."""
    changes = ", ".join(f"{name} = excluded.{name}" for name in row if name not in key.split(", "))
    values = ", ".join(f":{name}" for name in row)
    insert = f"INSERT INTO {table} ({', '.join(row)}) VALUES ({values})"
    return f"{insert} ON CONFLICT ({key}) DO UPDATE SET {changes}"


Execute = Callable[[str, Any], Any]
"""Runs a statement whose values are named as in `:since`, and returns the driver's cursor."""
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
# A body that was damaged, or made to, must not fill the memory when it is unpacked.
_LARGEST_BODY: Final = 64 * 1024 * 1024


def rows_of(evaluation: Evaluation) -> tuple[dict[str, Any], list[dict[str, Any]], bytes]:
    """The row of the `evaluations` table, those of `scores`, and the body; of any SQL database."""
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
    """The rows of the `screened` table: the value that a fitted screen expects of the judge, or its own."""
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


def stored_evaluation(execute: Execute, record_id: str) -> Evaluation | None:
    """One turn with all its scores; None where there is none of this id."""
    found = _named(execute("SELECT * FROM evaluations WHERE record_id = :id", {"id": record_id}))
    return evaluation_of_row(execute, found[0]) if found else None


def evaluation_of_row(execute: Execute, row: Mapping[str, Any], *, metric: str | None = None) -> Evaluation:
    """The Evaluation again, from its row of the `evaluations` table; with the scores of one metric."""
    which, values = "", {"id": row["record_id"]}
    if metric is not None:
        which, values = "AND metric = :metric", {**values, "metric": metric}
    query = f"SELECT * FROM scores WHERE record_id = :id {which} ORDER BY position, id"
    found = _named(execute(query, values))
    bodies = _bodies(execute, {row["body"], *(score["body"] for score in found)})
    data = bodies[row["body"]]
    if isinstance(data.get("record"), dict):
        data["record"] |= {"question": row["question"] or "", "answer": row["answer"] or ""}
        if row["metadata"]:
            data["record"]["metadata"] = _metadata(row["metadata"])
    parts = {
        (body, stored_id(score, row["record_id"])): score
        for body, whole in bodies.items()
        for score in whole.get("scores", [])
    }
    try:
        scores = [_score(score, parts[score["body"], score["id"]]) for score in found]
    except KeyError:
        raise InvalidRecord("a score is not in its evaluation") from None
    return evaluation_from_dict({**data, "scores": scores})


def _bodies(execute: Execute, wanted: set[Any]) -> dict[Any, dict[str, Any]]:
    """Scores that were written at other times, by backfill say, are in bodies of their own."""
    known = ", ".join(str(body) for body in wanted if isinstance(body, int)) or "NULL"
    stored = dict(execute(f"SELECT id, body FROM bodies WHERE id IN ({known})", {}).fetchall())
    if not wanted <= set(stored):
        raise InvalidRecord("a part of an evaluation is not there")
    return {body: unpack(stored[body]) for body in wanted}


def _named(cursor: Any) -> list[dict[str, Any]]:
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def _metadata(stored: object) -> object:
    """Postgres gives the mapping itself."""
    try:
        return json.loads(stored) if isinstance(stored, str) else stored
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
    """JSON, compressed."""
    pieces = json_pieces(data)
    # Bodies are written once and read seldom; a smaller file is also read faster.
    deflate = zlib.compressobj(level=9, zdict=_WORDS)
    return deflate.compress(b"".join(text_of(piece).encode() for piece in pieces)) + deflate.flush()


def unpack(body: object) -> dict[str, Any]:
    """What was packed."""
    try:
        inflate = zlib.decompressobj(zdict=_WORDS)
        data = json_value(inflate.decompress(body, _LARGEST_BODY))  # type: ignore[arg-type]
    except (zlib.error, TypeError, ValueError, RecursionError) as error:
        raise InvalidRecord(f"the body of an evaluation cannot be read: {type(error).__name__}") from None
    if not isinstance(data, dict):
        raise InvalidRecord("the body of an evaluation is not a JSON object")
    return data


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
    return text_of(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def _text(value: object) -> str | None:
    return None if value is None else text_of(value)


def _real(value: Any) -> float | None:
    number = None if value is None else float(value)
    if number is not None and not math.isfinite(number):
        raise ValueError("not a finite number")
    return number


def _integer(value: Any) -> int:
    return max(-_LARGEST_INTEGER, min(_LARGEST_INTEGER, int(value or 0)))
