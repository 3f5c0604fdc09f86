"""How well and how fast the local judge tells supported answers from unsupported ones.

    python benchmarks/local_judge.py --data FOLDER

FOLDER holds JSON lines with people's judgements; what is not there is left out:

- `grounding_dev.jsonl`: answers with `label_unsupported`. AUROC per task, at answer level (risk = the worst
  claim) and, where `sentence_labels` are given, at sentence level; and answers a second of process time.
- `qags.jsonl`: sentences with votes. AUROC over sentences.
- `halubench_judged.jsonl`: answers with `label_supported` and the recorded verdicts of other judges.
  Accuracy, value >= 0.5 read as supported, on the rows where all of them have a verdict.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from steelyard.judge import LocalJudge
from steelyard.metrics import Faithfulness
from steelyard.questions import Claims, Request, Supported, Texts, View, YesNo
from steelyard.record import Context, Record
from steelyard.text import sentences

HARD = ("qags_cnndm", "qags_xsum", "wice", "faithbench", "fever_sym")
EASY = ("begin_wow", "begin_cmu-dog", "begin_topicalchat", "halueval_qa")

Row = dict[str, Any]
Scored = list[tuple[bool, float]]


def auroc(scored: Scored) -> float:
    """Probability that a supported answer scores above an unsupported one; ties count half."""
    ordered = sorted(scored, key=lambda pair: pair[1])
    ranks: dict[float, list[int]] = defaultdict(list)
    for rank, (_, score) in enumerate(ordered, start=1):
        ranks[score].append(rank)
    mean = {score: sum(places) / len(places) for score, places in ranks.items()}
    yes = [mean[score] for label, score in scored if label]
    no = len(scored) - len(yes)
    return (sum(yes) - len(yes) * (len(yes) + 1) / 2) / (len(yes) * no) if yes and no else float("nan")


async def judge_claims(judge: LocalJudge, row: Row, claims: Sequence[str] | None = None) -> list[float]:
    """The probability of each claim of a row's answer, or of the claims given."""
    contexts = tuple(Context(text=text) for text in row["contexts"])
    if claims is None:
        view = View(question=row["question"] or None, answer=row["answer"])
        found = (await judge.answer(Request(view=view, questions={"c": Claims()}))).answers["c"]
        assert isinstance(found, Texts)
        claims = found.items or [sentence.text for sentence in sentences(row["answer"])]
    questions = {str(place): Supported(claim=claim) for place, claim in enumerate(claims)}
    reply = await judge.answer(
        Request(view=View(question=row["question"] or None, contexts=contexts), questions=questions)
    )
    answers = list(reply.answers.values())
    return [answer.probability or 0.0 for answer in answers if isinstance(answer, YesNo)]


async def grounding(rows: Sequence[Row]) -> None:
    """Answer and sentence level AUROC, and speed."""
    answers: dict[str, Scored] = defaultdict(list)
    lines: dict[str, Scored] = defaultdict(list)
    seconds, timed = 0.0, 0
    LocalJudge().warm()
    for row in rows:
        judge = LocalJudge()
        begun = time.process_time()
        risks = await judge_claims(judge, row)
        if 200 <= sum(len(text.split()) for text in row["contexts"]) <= 400:
            seconds, timed = seconds + time.process_time() - begun, timed + 1
        answers[row["task"]].append((not row["label_unsupported"], min(risks, default=0.0)))
        labelled = [(text, label) for text, label in row["sentence_labels"] if text.strip()]
        if len(labelled) > 1:
            found = [await judge_claims(judge, row, [text]) for text, _ in labelled]
            lines[row["task"]] += [
                (not label, p[0]) for (_, label), p in zip(labelled, found, strict=True) if p
            ]
    print(f"answer level AUROC over {len(rows)} answers:")
    _table(answers)
    print(f"  mean of {', '.join(HARD)}: {_mean(answers, HARD):.3f} (wanted: .69)")
    print(f"  mean of {', '.join(EASY)}: {_mean(answers, EASY):.3f} (wanted: .93)")
    print("sentence level AUROC, answers of several sentences:")
    _table(lines)
    print(
        f"speed: {timed / seconds:.0f} answers a second of process time, nothing remembered,"
        f" over {timed} answers with contexts of 200 to 400 words (wanted: 100)"
    )


def _mean(scored: dict[str, Scored], tasks: Iterable[str]) -> float:
    values = [auroc(scored[task]) for task in tasks if task in scored]
    return sum(values) / len(values) if values else float("nan")


def _table(scored: dict[str, Scored]) -> None:
    for task, pairs in sorted(scored.items()):
        print(f"  {task:20} {auroc(pairs):.3f}  ({len(pairs)})")


async def votes(rows: Sequence[Row]) -> None:
    """AUROC over the voted sentences of QAGS."""
    scored: dict[str, Scored] = defaultdict(list)
    judge = LocalJudge()
    for row in rows:
        source = "xsum" if "xsum" in row["id"] else "cnndm"
        for sentence in row["sentences"]:
            found = await judge_claims(judge, row, [sentence["sentence"]])
            scored[source] += [(bool(sentence["label"]), p) for p in found]
    print("sentence level AUROC over QAGS votes:")
    _table(scored)


async def beside(rows: Sequence[Row]) -> None:
    """Accuracy beside the recorded judges."""
    right: dict[str, list[bool]] = defaultdict(list)
    judge, metric = LocalJudge(), Faithfulness()
    unscored = 0
    everyone = {name for row in rows for name in row["judges"]}
    for row in rows:
        if any(row["judges"].get(name) is None for name in everyone):
            continue
        contexts = tuple(Context(text=text) for text in row["contexts"])
        record = Record(question=row["question"], contexts=contexts, answer=row["answer"])
        score = await metric.score(record, judge=judge)
        if score.value is None:
            unscored += 1
            continue
        verdicts = {"local-lexical": score.value, **row["judges"]}
        for name, value in verdicts.items():
            right[name].append((value >= 0.5) == bool(row["label_supported"]))
    count = len(right["local-lexical"])
    print(f"accuracy on {count} rows where every judge has a verdict ({unscored} left out: no claim):")
    for name, hits in sorted(right.items(), key=lambda pair: -sum(pair[1])):
        print(f"  {name:32} {sum(hits) / len(hits):.3f}")


def read(path: Path) -> list[Row]:
    """The rows of a JSON lines file; none where it is not there."""
    if not path.is_file():
        return []
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def main() -> None:
    """Measure with whatever data there is."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with the JSON lines files")
    folder: Path = parser.parse_args().data
    for name, measure in (
        ("grounding_dev.jsonl", grounding),
        ("qags.jsonl", votes),
        ("halubench_judged.jsonl", beside),
    ):
        if rows := read(folder / name):
            asyncio.run(measure(rows))


if __name__ == "__main__":
    main()
