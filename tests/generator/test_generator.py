"""Random applications give true records; and the generator tells true records from false ones."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

import programs
from generator.bed import NAMES, WRITTEN, Bed
from generator.choices import Choices, draw
from generator.receiving import Receiver, Run
from generator.shrinking import shrink
from generator.telling import counts, told
from generator.verdicts import Judgement, Verdict, judge
from steelyard.record import Context, Record

IMPORTS = {
    "langchain": "import langchain.agents\nimport langchain_core.runnables\nimport langgraph.graph",
    "llamaindex": "import llama_index.core",
    "plain": "import openai\nimport langchain_core.runnables",
    "written": "import openai\nimport opentelemetry.sdk.trace",
}
BED = Bed("langchain")
QUICK = {"langchain": 120, "llamaindex": 60, **dict.fromkeys(NAMES[2:], 13), WRITTEN: 60}
"""How many applications run in every test run."""
BOUNDS = {
    "langchain": {"silent": 0.005, "crossed": 0.0, "false_known": 0.0},
    "llamaindex": {"silent": 0.01, "crossed": 0.0, "false_known": 0.005},
    "plain": {"silent": 0.0, "missing": 0.0, "crossed": 0.0, "false_known": 0.0},
    "written": {"silent": 0.02, "missing": 0.0, "crossed": 0.0, "false_known": 0.02},
    "spans": {"silent": 0.0, "missing": 0.0, "crossed": 0.0, "false_known": 0.0},
}
"""What the recorders reach: shares of turns. They are lowered as the recorders get better."""
MANY = 5000
GOALS = {"silent": 0.003, "missing": 0.0, "crossed": 0.0, "false_known": 0.0}
"""What is reached over many applications, with 97 % of the turns right of which anybody could know."""
ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.timeout(3600)


def plain(**options: str) -> Judgement:
    """A simple application of LangChain."""
    choices = draw("langchain", {axis: found[:1] for axis, found in BED.axes.items()}, 7)
    return BED.run(choices.replace(**options))


def shares(name: str, number: int) -> dict[str, float]:
    """Run applications, those of spans in a process of their own: which shares of turns came out how."""
    if name.startswith("spans:"):
        command = ["-m", "tests.generator", "--json", "--seed", "1", "--n", str(number), "--framework", name]
        done = programs.run(command, source=IMPORTS[name.split(":")[-1]], ours=True, cwd=ROOT)
        assert done.returncode == 0, done.stderr
        made = Counter(json.loads(done.stdout.splitlines()[-1]))
    else:
        bed = Bed(name)
        judgements = list(bed.judgements(number, seed=1))
        made = counts(verdict for judgement in judgements for verdict in judgement.verdicts)
        made["broken"] = len(bed.broken)
    # A context that an instrumentor leaves current may break the next application of its process.
    assert made["broken"] <= (number // 200 if name.startswith("spans:") else 0)
    right = made["right"] / (made["turns"] - made["unseen"])
    return {"right": right, **{outcome: made[outcome] / made["turns"] for outcome in GOALS}}


@pytest.mark.parametrize("name", QUICK)
def test_records_of_random_applications_are_true(name: str) -> None:
    reached, (kind, *_, last) = shares(name, QUICK[name]), [*name.split(":"), *name.split(":")[-1:]]
    bounds = BOUNDS[last if last in ("plain", "written") else kind]
    assert all(reached[outcome] <= bound for outcome, bound in bounds.items()), reached


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in QUICK if name != WRITTEN])
def test_records_of_many_applications_reach_the_goals(name: str) -> None:
    reached = shares(name, MANY)
    assert reached["right"] >= 0.97, reached
    assert all(reached[outcome] <= bound for outcome, bound in GOALS.items()), reached


def changed(judgement: Judgement, change: Record | None) -> Verdict:
    """The verdict where another record had been handed over for the first turn."""
    run = judgement.run
    receiver = Receiver([(run.turns[0].id, change)] if change else [])
    return judge(Run(run.choices, run.turns, receiver, run.shows)).verdicts[0]


def test_verdicts_tell_true_records_from_false_ones() -> None:
    judgement = plain(retriever="base", template="plain")
    (verdict,) = judgement.verdicts
    truth, record = verdict.truth, verdict.record
    assert verdict.outcome == "right" and truth and record
    assert changed(judgement, None).outcome == "missing"
    assert changed(judgement, record.replace(question="Why?")).outcome == "silent"
    noted = record.replace(question="Why?", notes=("question_unknown: it was not found",))
    assert changed(judgement, noted).outcome == "said"
    assert changed(judgement, record.replace(answer="No.", notes=noted.notes)).outcome == "silent"
    lacking = record.replace(contexts=record.contexts[:1])
    assert changed(judgement, lacking).wrong == ("contexts: lacking",)
    turned = record.replace(contexts=record.contexts[::-1])
    assert changed(judgement, turned).wrong == ("contexts: order",)
    shard = replace(record.contexts[0], text=record.contexts[0].text[:30])
    assert changed(judgement, record.replace(contexts=(shard,))).wrong == ("contexts: shard or twice",)
    invented = changed(judgement, record.replace(contexts=(*record.contexts, Context(text="Be brief."))))
    assert invented.wrong == ("contexts: invented",) and invented.false_known == ("Be brief.",)
    whole = Context(text="\n\n".join(context.text for context in record.contexts))
    assert changed(judgement, record.replace(contexts=(whole,))).outcome == "right"


def test_a_text_of_another_tenant_is_crossed() -> None:
    judgement = plain(retriever="base", template="plain", tenants="2")
    ours, theirs = (verdict.record for verdict in judgement.verdicts)
    assert ours and theirs
    assert changed(judgement, ours.replace(contexts=theirs.contexts)).outcome == "crossed"
    assert changed(judgement, ours.replace(question=theirs.question)).outcome == "crossed"


def test_the_same_seed_makes_the_same_application() -> None:
    first, again = (next(iter(BED.judgements(1, seed=3))) for _ in range(2))
    assert [t.prompt for t in first.run.turns] == [t.prompt for t in again.run.turns]
    assert dict(first.run.choices.parts()) == dict(again.run.choices.parts())


def test_a_failure_is_shrunk_to_its_smallest_application() -> None:
    def forgetful(choices: Choices) -> Judgement:
        judgement = BED.run(choices)
        if judgement.run.choices["joining"] == "json":
            return judge(replace(judgement.run, receiver=Receiver()))
        return judgement

    options = {"joining": "json", "turns": "3", "tenants": "2", "history": "dicts", "style": "code"}
    failed = forgetful(plain(retriever="base", template="plain", **options).run.choices)
    smallest = shrink(failed, BED.axes, forgetful)
    kept = {axis: option for axis, option in smallest.run.choices.parts() if axis in options}
    assert kept["joining"] == "json"
    assert {kept.get("turns"), kept.get("tenants"), kept.get("style")} == {"1", "plain"}
    assert any(line.startswith("\nmissing") for line in told(smallest))
