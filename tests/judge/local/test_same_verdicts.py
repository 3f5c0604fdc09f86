"""The same claims get the same verdicts in every release: what they rest on, and what speaks against them.

The other tests here hold what the judge promises; a weight or an end of a word that is a little off changes
no verdict of theirs, but some line here. Whoever means to change a rule writes the lines anew with
`OUTPUTS=write pytest tests/judge/local/test_same_verdicts.py`: the difference tells what the rule does.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from local_worked import JUDGE, SUPPORTED, UNSUPPORTED
from steelyard.questions import (
    Answer,
    Claims,
    Contradicted,
    Entities,
    Level,
    Noncommittal,
    Question,
    Relevant,
    Request,
    Same,
    Sufficient,
    Supported,
    Texts,
    Useful,
    View,
    YesNo,
)
from steelyard.record import Context
from steelyard.scores import Evidence

PROBES = Path(__file__).parents[3] / "benchmarks" / "probes"
NUMBER = re.compile(r"(?<=: )(\d\.\d{4})(?=;|$)")
KEPT = Path(__file__).with_name("same_verdicts.txt")


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def of_evidence(evidence: Evidence) -> str:
    said = {name: value for name, value in evidence.notes.items() if value and name != "signals"}
    place = f"{evidence.context}:{evidence.start}-{evidence.end}"
    return " ".join([place, *(f"{name}={value}" for name, value in said.items())])


def told(answer: Answer) -> str:
    """An answer in a line."""
    if isinstance(answer, Texts):
        return json.dumps([f"{text[:12]}..{text[-12:]}" for text in answer.items], ensure_ascii=False)
    if isinstance(answer, Level):
        return f"{answer.value:.4f}"
    assert isinstance(answer, YesNo) and answer.probability is not None, answer
    return "; ".join([f"{answer.probability:.4f}", *map(of_evidence, answer.evidence)])


def in_parts(line: str) -> tuple[object, ...]:
    """A line whose probability is compared by what no processor's order of adding changes."""
    before, number, after = NUMBER.split(line, maxsplit=1) if NUMBER.search(line) else (line, "0", "")
    return before, pytest.approx(float(number), abs=2e-4), after


def asked(view: View, questions: dict[str, Question]) -> Iterator[str]:
    reply = asyncio.run(JUDGE.answer(Request(view=view, questions=questions)))
    yield from (f"  {name}: {told(answer)}" for name, answer in reply.answers.items())


def lines() -> Iterator[str]:
    pairs = rows(PROBES / "pairs.jsonl")
    for turn in rows(PROBES / "texts.jsonl"):
        claims = {
            f"{one['id']} {side}": one[side]
            for one in pairs
            if one["text"] == turn["id"]
            for side in ("true", "false")
        }
        contexts = tuple(Context(text=text) for text in turn["contexts"])
        view = View(
            question=turn["question"],
            contexts=contexts,
            answer=turn["contexts"][0],
            reference=turn["contexts"][-1],
        )
        yield turn["id"]
        yield from asked(view, {name: Supported(claim=claim) for name, claim in claims.items()})
        yield from asked(
            view,
            {f"against {name}": Contradicted(claim=claim) for name, claim in [*claims.items()][:4]}
            | {
                f"same {name}": Same(claim=claim, among="answer", of="answer")
                for name, claim in [*claims.items()][:4]
            }
            | {f"useful {place}": Useful(context=place) for place in range(len(contexts))}
            | {f"relevant {n}": Relevant(text=text) for n, text in enumerate([*claims.values()][:3])}
            | {"enough": Sufficient(), "evades": Noncommittal(), "claims": Claims(), "names": Entities()},
        )
    for number, (passage, claim) in enumerate([*SUPPORTED, *UNSUPPORTED]):
        yield from asked(
            View(contexts=(Context(text=passage),)), {f"worked {number}": Supported(claim=claim)}
        )
    for twins in rows(Path(__file__).with_name("twins.jsonl")):
        claims = {f"{kind} {n}": claim for kind, *both in twins["twins"] for n, claim in enumerate(both)}
        view = View(contexts=(Context(text=twins["text"]),))
        yield from asked(view, {name: Supported(claim=claim) for name, claim in claims.items()})


def test_the_same_claims_get_the_same_verdicts() -> None:
    found = list(lines())
    if os.environ.get("OUTPUTS") == "write":
        KEPT.write_text("\n".join(found) + "\n", encoding="utf-8")
    kept = KEPT.read_text("utf-8").splitlines()
    assert [*map(in_parts, found)] == [*map(in_parts, kept)], "if that was meant, write them anew"
