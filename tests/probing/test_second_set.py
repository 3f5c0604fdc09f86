"""The local judge on the second probe set, whose texts and claims its rules were not written for."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from pathlib import Path

from steelyard.judge import LocalJudge
from steelyard.probing import load_probes
from steelyard.questions import Request, Supported, View, YesNo
from steelyard.record import Context

PROBES = Path(__file__).parents[2] / "benchmarks" / "probes"


def test_the_local_judge_tells_most_kinds_of_a_set_it_was_not_made_for() -> None:
    found = load_probes(PROBES)
    assert len(found.probes) == 480
    assert not found.published
    right: dict[str, list[bool]] = defaultdict(list)
    judge = LocalJudge()
    for probe in found.probes:
        view = View(question=probe.question, contexts=tuple(Context(text=text) for text in probe.contexts))
        request = Request(view=view, questions={"s1": Supported(claim=probe.claim)})
        answer = asyncio.run(judge.answer(request)).answers["s1"]
        right[probe.kind].append(isinstance(answer, YesNo) and answer.value is probe.expected)
    every = [hit for hits in right.values() for hit in hits]
    assert sum(every) >= 0.75 * len(every)
    shares = {kind: sum(hits) / len(hits) for kind, hits in right.items()}
    assert min(shares.values()) >= 0.5, shares
    assert all(share > 0.55 for kind, share in shares.items() if kind != "paraphrase"), shares
