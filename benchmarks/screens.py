"""What a screen saves, and whether its intervals hold, on recorded verdicts beside labels of people.

    python benchmarks/screens.py FOLDER [--runs 200] [--learnt | --labels]

FOLDER holds `halubench_judged.jsonl` (answers with recorded verdicts of several judges) and
`grounding_dev.jsonl` (answers labelled by people), each row with `question`, `contexts` and `answer`; nothing
of them is shipped. Each run draws 3,000 turns with replacement, has the dear judge look at a twentieth to a
tenth of them as a Monitor would, and holds the interval against the mean over all rows.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from steelyard.calibration import Lesson, findings_of, fit_screen
from steelyard.calibration._screens import LEAST
from steelyard.engine import evaluate_one
from steelyard.judge import LocalJudge, StaticEmbedder
from steelyard.metrics import Faithfulness
from steelyard.online._screening import Allocation
from steelyard.record import Context, Record
from steelyard.scores import Score
from steelyard.stats import assisted_sample, auroc, weighted_mean

_Array = npt.NDArray[np.float64]
_TURNS = 3000
_FLOOR = 0.3


@dataclass(frozen=True)
class Case:
    """A dear judge's verdicts and what a screen said of the same answers."""

    name: str
    dear: _Array
    cheap: _Array
    judged: float = 0.08
    later: _Array | None = None
    """What the screen says in the second half, where it changes midway."""
    fitted: npt.NDArray[np.bool_] | None = None
    """Which answers a map has served; none if None."""


def main() -> None:
    """Print a row for each case."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("folder", type=Path)
    options.add_argument("--runs", type=int, default=200)
    options.add_argument("--only", default="", help="only cases with these words in their name")
    options.add_argument("--learnt", action="store_true", help="what a screen learns, in place of the cases")
    options.add_argument(
        "--labels", action="store_true", help="labels in the judge's place, in place of cases"
    )
    given = options.parse_args()
    if given.learnt:
        return learnt(given.folder)
    if given.labels:
        return labels(given.folder)
    heads = ("rows", "corr", "AUROC", "covered", "alone", "calls", "wider")
    print(f"{'case':<58}", *(f"{head:>7}" for head in heads))
    for case in cases(given.folder):
        if given.only in case.name:
            print(row(case, given.runs), flush=True)


def row(case: Case, runs: int) -> str:
    """Coverage with and without the screen, and the share of dear calls for the same half-width."""
    truth = float(case.dear.mean())
    found = [run(case, seed) for seed in range(runs)]
    covered = np.mean([low <= truth <= high for (low, high, _), _ in found])
    alone = np.mean([low <= truth <= high for _, (low, high, _) in found])
    # n times the squared half-width is what one call is worth: the same for any n.
    calls = np.mean([n * (high - low) ** 2 for (low, high, n), _ in found])
    calls /= np.mean([n * (high - low) ** 2 for _, (low, high, n) in found])
    known = np.isfinite(case.cheap)
    steady = known.all() and case.cheap.std() > 0
    corr = np.corrcoef(case.dear, case.cheap)[0, 1] if steady else 0.0
    good = case.dear[known] >= 0.5
    area = auroc(case.cheap[known].tolist(), good.tolist()).value if known.any() else 0.5
    wide = np.sqrt(calls)
    figures = [f"{corr:.2f}", f"{area:.2f}", f"{covered:.3f}", f"{alone:.3f}", f"{calls:.2f}", f"{wide:.3f}"]
    return " ".join([f"{case.name:<58}", *(f"{one:>7}" for one in (len(case.dear), *figures))])


def run(case: Case, seed: int) -> tuple[tuple[float, float, int], tuple[float, float, int]]:
    """One run with the screen, and one with as many calls at random without."""
    draw = np.random.default_rng(seed)
    rows = draw.integers(0, len(case.dear), _TURNS)
    dear, cheap = case.dear[rows], case.cheap[rows].copy()
    makes = [""] * _TURNS if case.fitted is None else case.fitted[rows].tolist()
    if case.later is not None:
        cheap[_TURNS // 2 :] = case.later[rows][_TURNS // 2 :]
    allocation, place = Allocation(_FLOOR), draw.random(_TURNS)
    inclusion, judged = np.full(_TURNS, np.nan), np.full(_TURNS, np.nan)
    for at in range(_TURNS):
        said = None if np.isnan(cheap[at]) else float(cheap[at])
        share = min(case.judged * allocation.share({"m": said}), 1.0)
        if place[at] < share:
            inclusion[at], judged[at] = share, dear[at]
            allocation.learn("m", said, float(dear[at]), share)
    found = assisted_sample(cheap, np.ones(_TURNS), judged, inclusion, makes=makes).estimate()
    plain = draw.random(_TURNS) < case.judged
    bare = weighted_mean(dear[plain].tolist(), np.full(int(plain.sum()), case.judged).tolist())
    assert found is not None and bare is not None
    return (found.low, found.high, found.n), (bare.low, bare.high, bare.n)


def cases(folder: Path) -> Iterator[Case]:
    """Real pairs of judges, then screens that are worth nothing or less."""
    judged = [json.loads(line) for line in (folder / "halubench_judged.jsonl").open()]
    labelled = [json.loads(line) for line in (folder / "grounding_dev.jsonl").open()]
    for one in (*judged, *labelled):
        one["words"] = len(one["answer"].split())
    scores = asyncio.run(local_scores([*judged, *labelled]))
    local = [float("nan") if score.value is None else score.value for score in scores]
    gpt = [_verdict(one, "base_gpt-4o_numsamples1") for one in judged]
    mini = [_verdict(one, "base_gpt-4o-mini_numsamples1") for one in judged]
    people = [float(one["label_supported"]) for one in judged]
    of_judged, of_labelled = local[: len(judged)], local[len(judged) :]
    sonnet = [_verdict(one, "cot_3.5sonnet_numsamples1") for one in judged]
    ragas = [_verdict(one, "ragas_faithfulness") for one in judged]
    yield _case("gpt-4o by gpt-4o-mini", gpt, mini)
    yield _case("people by gpt-4o", people, gpt)
    short, ragtruth, hard = (
        [one["subset"] in names for one in judged]
        for names in ({"halueval"}, {"RAGTruth"}, {"FinanceBench", "pubmedQA"})
    )
    for name, dear, where in (
        ("gpt-4o by local, short answers (HaluEval)", gpt, short),
        ("gpt-4o by local, tables, yes-no (FinanceBench, PubMedQA)", gpt, hard),
        ("gpt-4o by local, long answers (RAGTruth)", gpt, ragtruth),
        ("sonnet by local, long answers (RAGTruth)", sonnet, ragtruth),
        ("ragas by local, long answers (RAGTruth)", ragas, ragtruth),
        ("people by local, long answers (RAGTruth)", people, ragtruth),
    ):
        yield _case(name, dear, of_judged, where)
        yield _learnt(name, judged, scores[: len(judged)], dear, where)
    for name, judge in {
        "Claude Sonnet": "base_3.5sonnet_numsamples1",
        "Lynx": "lynx",
        "Ragas": "ragas_faithfulness",
    }.items():
        others = [_verdict(one, judge) for one in judged]
        yield _case(f"gpt-4o by {name}, long answers (RAGTruth)", gpt, others, ragtruth)
    yield _case("gpt-4o by people, long answers (RAGTruth)", gpt, people, ragtruth)
    truth = [_labelled(one) for one in labelled]
    for name, where in {
        "up to 30 words": [one["words"] <= 30 for one in labelled],
        "more than 30 words": [one["words"] > 30 for one in labelled],
    }.items():
        yield _case(f"people by local, {name}", truth, of_labelled, where)
        yield _learnt(f"people by local, {name}", labelled, scores[len(judged) :], truth, where)
    draw = np.random.default_rng(0)
    base = _case("", gpt, mini)
    for name, cheap in {
        "says the same of all": np.full(len(base.dear), 0.5),
        "says anything": draw.random(len(base.dear)),
        "is wrong on purpose": 1 - base.cheap,
        "fails on a third": np.where(draw.random(len(base.dear)) < 1 / 3, np.nan, base.cheap),
        "fails on all": np.full(len(base.dear), np.nan),
    }.items():
        yield Case(f"gpt-4o by a screen that {name}", base.dear, cheap)
    yield Case("gpt-4o by a screen that turns around midway", base.dear, base.cheap, later=1 - base.cheap)
    yield Case("gpt-4o by gpt-4o-mini, 3 % judged", base.dear, base.cheap, judged=0.03)
    yield Case(
        "gpt-4o by a screen that says anything, 3 % judged", base.dear, draw.random(len(base.dear)), 0.03
    )


def _learnt(
    name: str,
    rows: Sequence[Mapping[str, Any]],
    scores: Sequence[Score],
    dear: Sequence[float],
    where: Sequence[bool],
) -> Case:
    """The screen after 200 verdicts: each answer by a map that saw none of the answers over its documents."""
    turns = [
        Turn(one, score, judged)
        for one, score, judged, kept in zip(rows, scores, dear, where, strict=True)
        if kept and score.value is not None and np.isfinite(judged)
    ]
    cheap, fitted = _by_others(turns)
    return Case(f"{name}, learnt", np.array([turn.judged for turn in turns]), cheap, fitted=fitted)


def _by_others(turns: list[Turn]) -> tuple[_Array, npt.NDArray[np.bool_]]:
    """What is expected of each answer by a map of 200 over other documents, and whether there was one."""
    draw = np.random.default_rng(0)
    fold = _of_documents(turns, lambda count: draw.permutation(count) % 10)
    cheap, fitted = np.array([turn.found["value"] for turn in turns]), np.zeros(len(turns), bool)
    for number in range(10):
        others = np.flatnonzero(fold != number)
        # Of fewer than 200 some are seen twice; cross-validation keeps them in one fold. What is refused is
        # drawn again: half of the answers by a map and half by the value would tell of neither.
        drawn = (draw.choice(others, 200, replace=len(others) < 200).tolist() for _ in range(5))
        made = (fit_screen([turns[at].lesson for at in lessons]) for lessons in drawn)
        known = next((one for one in made if one is not None), None)
        if known is None:
            continue
        for at in np.flatnonzero(fold == number):
            cheap[at], fitted[at] = known.expected(turns[at].found), True
    return cheap, fitted


class Turn:
    """An answer that both judges have seen."""

    def __init__(self, row: Mapping[str, Any], score: Score, judged: float) -> None:
        self.document = "\n".join(row["contexts"])
        self.found, self.judged = findings_of(score), judged

    @property
    def lesson(self) -> Lesson:
        return Lesson(found=self.found, judged=self.judged, inclusion=1.0, session=self.document)


def _of_documents(
    turns: Sequence[Turn], assign: Callable[[int], npt.NDArray[np.int64]]
) -> npt.NDArray[np.int64]:
    """What each answer's document was assigned."""
    codes = np.unique([turn.document for turn in turns], return_inverse=True)[1]
    return assign(int(codes.max()) + 1)[codes]


def _verdict(one: Mapping[str, Any], judge: str) -> float:
    """1 for supported."""
    found = one["judges"].get(judge)
    return float("nan") if found is None else float(found)


def _case(
    name: str, dear: Sequence[float], cheap: Sequence[float], where: Sequence[bool] | None = None
) -> Case:
    kept = np.isfinite(np.array(dear, float)) & np.isfinite(np.array(cheap, float))
    if where is not None:
        kept &= np.array(where, bool)
    return Case(name, np.array(dear, float)[kept], np.array(cheap, float)[kept])


def learnt(folder: Path) -> None:
    """AUROC against people of what the local judge says, and of what it says after 200 of their verdicts.

    No answer that is held against people is over a document that the map has seen.
    """
    labelled = [json.loads(line) for line in (folder / "grounding_dev.jsonl").open()]
    judged = [json.loads(line) for line in (folder / "halubench_judged.jsonl").open()]
    ragtruth = [one for one in judged if one["subset"] == "RAGTruth"]
    for name, rows, label, count in (
        ("more than 30 words", [one for one in labelled if len(one["answer"].split()) > 30], _labelled, 200),
        ("up to 30 words", [one for one in labelled if len(one["answer"].split()) <= 30], _labelled, 200),
        # These are few, so that the map is made of fewer than a Monitor waits for.
        ("RAGTruth", ragtruth, _supported, 100),
        ("RAGTruth, gpt-4o's verdicts", ragtruth, lambda one: _verdict(one, "base_gpt-4o_numsamples1"), 100),
    ):
        scores = asyncio.run(local_scores(rows))
        turns = [
            Turn(one, score, label(one))
            for one, score in zip(rows, scores, strict=True)
            if score.value is not None
        ]
        before, after, refused = [], [], 0
        for seed in range(_DRAWS):
            order = np.argsort(_of_documents(turns, np.random.default_rng(seed).permutation), kind="stable")
            seen = {turns[at].document for at in order[:count]}
            rest = [turn for turn in turns if turn.document not in seen]
            good = [turn.judged >= 0.5 for turn in rest]
            known = fit_screen([turns[at].lesson for at in np.resize(order[:count], LEAST)])
            refused += known is None
            raw = auroc([turn.found["value"] for turn in rest], good).value
            before.append(raw)
            after.append(
                raw if known is None else auroc([known.expected(turn.found) for turn in rest], good).value
            )
        print(
            f"{name}: {len(turns)} answers, {_DRAWS} draws of {count}: AUROC {np.mean(before):.3f} before, "
            f"{np.mean(after):.3f} after; refused {refused} times; {_known_to(turns)}"
        )


def _known_to(turns: list[Turn]) -> str:
    """95 % intervals of AUROC and of the calls a screen leaves, if documents were drawn again."""
    said, judged = _by_others(turns)[0], np.array([turn.judged for turn in turns])
    codes = _of_documents(turns, lambda count: np.arange(count))
    of_one = [np.flatnonzero(codes == code) for code in range(int(codes.max()) + 1)]
    draw, areas, calls = np.random.default_rng(1), [], []
    for _ in range(1000):
        rows = np.concatenate([of_one[at] for at in draw.integers(0, len(of_one), len(of_one))])
        areas.append(auroc(said[rows].tolist(), (judged[rows] >= 0.5).tolist()).value)
        calls.append(1 - np.corrcoef(said[rows], judged[rows])[0, 1] ** 2)
    (low, high), (least, most) = (np.percentile(one, (2.5, 97.5)) for one in (areas, calls))
    return f"over the documents AUROC {low:.2f} to {high:.2f}, 1 - r2 {least:.2f} to {most:.2f}"


_DRAWS = 60


def labels(folder: Path) -> None:
    """What a screen learns if people's labels take the place of the judge's verdicts on a share of turns.

    Correlation with the judge decides how wide intervals are, AUROC is against people; both on answers over
    documents that the map has not seen. A map that is refused leaves the screen's own value, as in a Monitor.
    """
    rows = [json.loads(line) for line in (folder / "halubench_judged.jsonl").open()]
    scores = asyncio.run(local_scores(rows))
    for judge in ("base_gpt-4o_numsamples1", "base_3.5sonnet_numsamples1", "ragas_faithfulness"):
        for subset in ("", "RAGTruth"):
            turns, people = [], []
            for one, score in zip(rows, scores, strict=True):
                verdict = _verdict(one, judge)
                if score.value is not None and np.isfinite(verdict) and subset in ("", one["subset"]):
                    turns.append(Turn(one, score, verdict))
                    people.append(_supported(one))
            count = min(200, len(turns) * 6 // 10)
            print(f"{judge}, {subset or 'all'}: {len(turns)} answers, {_DRAWS} draws of {count}")
            for share in (0.0, 0.1, 0.3, 1.0):
                found = [_with_labels(turns, np.array(people), count, share, seed) for seed in range(_DRAWS)]
                corr, area, refused = np.mean(found, axis=0)
                print(
                    f"  {share:4.0%} labels: corr {corr:.3f}, AUROC {area:.3f}, refused {refused:.2f}",
                    flush=True,
                )


def _with_labels(
    turns: Sequence[Turn], people: _Array, count: int, share: float, seed: int
) -> tuple[float, float, bool]:
    """Correlation with the judge, AUROC against people, and whether the map was refused."""
    draw = np.random.default_rng(seed)
    order = np.argsort(_of_documents(turns, draw.permutation), kind="stable")
    taught, labelled = order[:count].tolist(), draw.random(len(turns)) < share
    lessons = [
        replace(turns[at].lesson, judged=float(people[at])) if labelled[at] else turns[at].lesson
        for at in np.resize(taught, LEAST).tolist()
    ]
    known = fit_screen(lessons)
    seen = {turns[at].document for at in taught}
    rest = [at for at, turn in enumerate(turns) if turn.document not in seen]
    said = [turns[at].found["value"] if known is None else known.expected(turns[at].found) for at in rest]
    corr = np.corrcoef([turns[at].judged for at in rest], said)[0, 1]
    return float(corr), auroc(said, (people[rest] >= 0.5).tolist()).value, known is None


def _labelled(one: Mapping[str, Any]) -> float:
    return 1.0 - float(one["label_unsupported"])


def _supported(one: Mapping[str, Any]) -> float:
    return float(one["label_supported"])


async def local_scores(rows: Sequence[Mapping[str, Any]]) -> list[Score]:
    """Faithfulness of each answer by the local judge, with what it found of each claim."""
    judge, embedder, found = LocalJudge(), StaticEmbedder(), []
    for one in rows:
        record = Record(
            question=one.get("question") or "",
            answer=one["answer"],
            contexts=tuple(Context(text=text) for text in one["contexts"]),
        )
        made = await evaluate_one(record, [Faithfulness()], judge=judge, embedder=embedder, diagnosing=False)
        found.append(made.scores[0])
    return found


if __name__ == "__main__":
    main()
