"""What commands and pages say of one fixed store, word by word: whatever changes a figure is seen here.

Where a change is meant, `OUTPUTS=write pytest tests/cli/test_outputs.py` writes them anew; the
difference is part of what is reviewed.
"""

from __future__ import annotations

import io
import json
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console
from starlette.testclient import TestClient

from cli.running import Steelyard
from filled import Makers, filled
from kept import FILES, check, read, words_of
from report.parts import by_judge, results, screened_traffic, turn
from steelyard.alarms import AlarmEvent
from steelyard.cli.commands._demo import write_fortnight
from steelyard.engine import Results
from steelyard.golden import (
    Case,
    CaseResult,
    EarlierScores,
    Gate,
    GoldenSet,
    MetricResult,
    Run,
    junit_xml,
    markdown_summary,
)
from steelyard.golden._gate import GateCheck, Repeated
from steelyard.metrics import Faithfulness, Hallucination
from steelyard.online import Spool
from steelyard.online.queue._turns import Selected
from steelyard.probing import JudgeCheck
from steelyard.record import Record
from steelyard.report import explain_verdict, print_figures, render_html
from steelyard.report.figures import FindingFigure, MetricFigure, ReportFigures, WorstTurns
from steelyard.report.lights import cause_words, change_words, deploy_words, what_words
from steelyard.report.turn import turn_view, verdict_words
from steelyard.results import open_labels
from steelyard.results.labels import Label, LabelValue
from steelyard.scores import Evidence, Usage, Verdict, evaluation_to_json
from steelyard.stats import Difference, Estimate
from steelyard.view import app

END = 1_760_000_000.0
RECORDS = [
    {
        "question": "Where is it?",
        "answer": "In Rome.",
        "contexts": ["It is in Rome."],
        "reference": "In Rome.",
    },
    {"question": "Who came?", "answer": "I do not know.", "contexts": ["Nobody came."]},
    {"question": "When?", "answer": "In 1950.", "contexts": []},
    {"question": "", "answer": "", "contexts": []},
]
APP = """
def answer(question):
    return {"answer": "In Rome." if "Where" in question else "In 1950.", "contexts": ["It is in Rome."]}
"""
TABLE = """prompt,answer,docs,id,shop
Where is it?,In Rome.,"[""It is in Rome.""]",1,a
Where is it?,In Rome.,It is in Rome.,1,a
When?,,,3,a
Who?,Nobody.,"[""Nobody"",",4,a
Why?,So.,,5,b
"""
CASES = (
    Case(question="Where is it?", reference="In Rome."),
    Case(question="When did it come?", reference="In 1830."),
    Case(question="Where will it go?", kind="unanswerable"),
)
COMMANDS = {
    "report": "report --by version",
    "report_week": "report --since 2025-10-02 --by judge --metric faithfulness",
    "plan": "plan --width .02",
    "config": "config --json",
    "gaps": "gaps",
    "explain": "explain demo-0007",
    "calibrate": "calibrate --out c.json",
    "score": "score turns.jsonl --metrics faithfulness,context_recall --out s.jsonl",
    "score_away": "score turns.jsonl --judge openai:m --metrics faithfulness --base-url http://127.0.0.1:1",
    "score_plan": "score turns.jsonl --judge openai:gpt-4o-mini --metrics all --plan",
    "backfill": "backfill turns.jsonl --judge openai:gpt-4o-mini --plan",
    "labels": "labels export labels.csv",
    "golden_mine": "golden mine shop --n 12",
    "compare": "compare a.json b.json",
    "test": "test cases.jsonl --app outputs_app:answer --gate faithfulness=0.9",
    "report_file": "report --by version --until 2025-10-05 --evidence known --out report.html",
    "explain_none": "explain nobody",
    "gaps_lines": "gaps --jsonl --since 2025-10-02",
    "calibrate_metric": "calibrate labels.csv --metric faithfulness --out d.json",
    "score_bar": "score turns.jsonl --metrics context_recall --fail-under context_recall=0.9 --out -",
    "backfill_table": "backfill t.csv --map question=prompt,contexts=docs --where shop=a --db t.db --yes",
    "labels_lines": "labels export labels.jsonl",
    "labels_import": "labels import labels.jsonl --db copy.db",
    "label": "label --db copy.db --who Dee --count 3",
    "label_claims": "label --db copy.db --who Dee --count 2 --metric faithfulness",
    "golden_mine_some": "golden mine some.jsonl --n 8 --failing 0.5 --uncertain 0.25 --metric faithfulness",
    "golden_review": "golden review some.jsonl --as ann",
    "golden_diff": "golden diff cases.jsonl some.jsonl",
    "test_files": "test cases.jsonl --app outputs_app:answer --measure --passes 2 --repeat app --timeout 9"
    " --json t.json --junit t.xml --markdown t.md --threshold faithfulness=0.9",
    "test_plan": "test cases.jsonl --plan --gate faithfulness --baseline a.json --fall 0.2 --power 0.8",
    "compare_lines": "compare a.json b.json --json --fail-on-worse",
    "queue": "queue --spool queue.db",
    "queue_list": "queue list --spool queue.db",
    "queue_replay": "queue replay --spool queue.db --cause why",
    "queue_drop": "queue drop --spool queue.db",
    "prune": "prune --keep 500 copy.db",
    "config_table": "config",
}
WRITTEN = {"labels.csv", "labels.jsonl", "copy.db", "some.jsonl", "queue.db"}
"""What commands go on with that others left."""
TYPED = "g\nb\ne\nIn Rome.\ns\nk\nw\nn\nq\n"
"""What is answered where a command asks."""
PAGES = ["/", "/?by=judge", "/turns", "/sessions?order=worst", "/turn?id=demo-0007", "/compare?by=version"]
PAGES += ["/compare?by=judge", "/session?id=s6", "/judges", "/coverage", "/api/queue", "/api/queue/so-far"]
PAGES += ["/?since=2025-10-01T00:00&until=2025-10-05T00:00&tag=web&metric=faithfulness", "/trace/none"]
PAGES += [
    "/turn?id=demo-0007&metric=context_precision&claim=1",
    "/turn?id=none",
    "/api/queue/turn?id=demo-0007",
]
PAGES += ["/turns?sort=metric:faithfulness&columns=time&columns=cost&status=failed", "/api/state"]
PAGES += ["/turns?sort=-metric:context_precision&metric=faithfulness&judge=other&id=r&time=1759900000"]
PAGES += ["/label", "/label?metric=faithfulness&claim=0", "/alarms", "/session?id=none"]
PAGES += ["/turns.jsonl?status=failed", "/turns?sort=cost&at=2&text=warranty", "/turns?columns=nothing"]
PAGES += ["/turn?id=demo-0007&sort=cost&at=2"]
PAGES += ["/api/queue?metric=faithfulness", "/compare?by=time&a_since=2025-09-28&b_since=2025-10-02"]
PAGES += ["/compare?by=judge&a=demo&b=other&metric=faithfulness", "/turns?since=never"]
PAGES += ["/coverage?judge=other", "/turns.csv?judge=other&status=failed", "/coverage?since=2025-10-05T00:00"]


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("outputs")
    path = folder / "steelyard.db"
    write_fortnight(str(path), now=END)
    # Besides: turns that a screen saw, another judge, scores without a value, and labels of single claims.
    others = [turn(1000 + n, None if n % 3 else n / 40, at=END - 3600 * n, inclusion=0.5) for n in range(40)]
    results(path, [*screened_traffic()[:300], *(by_judge(one, "other") for one in others)])
    said: list[tuple[str, int, LabelValue]] = [(who, 0, "supported") for who in ("Ann", "Bo")]
    said += [("Ann", 1, "supported"), ("Bo", 1, "not_supported"), ("Cy", 1, "not_supported")]
    labels = open_labels(str(path))
    for seed in range(3):
        labels.put_check(filled(JudgeCheck, Random(seed), MAKERS), checked_at=END + seed)
    labels.put(
        Label(
            record_id="demo-0007", metric="faithfulness", claim=claim, value=value, who=who, labelled_at=END
        )
        for who, claim, value in said
    )
    lines = [json.dumps({"id": f"r{number}", **one}) for number, one in enumerate(RECORDS)]
    (folder / "outputs_app.py").write_text(APP)
    for seed, name in enumerate(("a.json", "b.json")):
        run(Random(seed), better=0.4 * seed).save(folder / name)
    GoldenSet(name="cases", cases=CASES).save(folder / "cases.jsonl")
    (folder / "turns.jsonl").write_text("\n".join([*lines, "{half"]))
    (folder / "t.csv").write_text(TABLE)
    shutil.copy(path, folder / "copy.db")
    spool = Spool(folder / "queue.db")
    spool.put([Selected(Record(id=name, question=name), 0.0, 1.0) for name in "abcd"])
    for cause, leased in zip(["why", "why", "other"], spool.lease_turns(3), strict=True):
        spool.dead_letter(leased, cause)
    spool.close()
    return folder


def run(draw: Random, better: float) -> Run:
    """Twelve cases by three metrics, of which one is better; of one case each run has its own."""
    cases = []
    for number in range(12):
        values = {"own": draw.random(), "faithfulness": 0.5 * draw.random() + better, "noise": 0.3}
        metrics = {
            name: MetricResult(values=(round(value, 3),), threshold=0.6, explanation="so")
            for name, value in values.items()
        }
        name = f"c{number}" if number else f"only at {better}"
        cases.append(CaseResult(id=name, question=f"Question {number}?", metrics=metrics, tags=("one",)))
    return Run(golden="cases", version=str(better), app="app", judge="judge", cases=tuple(cases))


RUN: set[str] = set()
"""The commands that were run in this process."""


def _before(name: str) -> Iterator[str]:
    """The commands that a command goes on from, in order."""
    own, names = WRITTEN.intersection(COMMANDS[name].split()), list(COMMANDS)
    for earlier in names[: names.index(name)]:
        if not own.isdisjoint(COMMANDS[earlier].split()):
            yield from (*_before(earlier), earlier)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_says_what_it_said(
    name: str, stored: Path, steelyard: Steelyard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(stored)
    monkeypatch.syspath_prepend(str(stored))
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    for earlier in _before(name):
        if earlier not in RUN:
            monkeypatch.setattr("sys.stdin", io.StringIO(TYPED))
            steelyard(*COMMANDS[earlier].split())
            RUN.add(earlier)
    RUN.add(name)
    monkeypatch.setattr("sys.stdin", io.StringIO(TYPED))
    before = {path: path.stat().st_mtime_ns for path in stored.iterdir()}
    found = steelyard(*COMMANDS[name].split())
    made = [path for path in sorted(stored.iterdir()) if path.stat().st_mtime_ns != before.get(path)]
    texts = [f"{path.name}:\n{read(path)}" for path in made if path.suffix in FILES]
    check(name, "\n".join([f"{found.status}\n{found.out}\n{found.err}", *texts]))


@pytest.mark.parametrize("path", PAGES)
def test_a_page_shows_what_it_showed(path: str, stored: Path) -> None:
    client = TestClient(app(stored / "steelyard.db"), base_url="http://127.0.0.1")
    if path.split("?")[0] == "/":
        client.get(f"/api/closer{path[1:]}")  # waits for what the page shows if it is there
    page = client.get(path)
    name = "page_" + (re.sub(r"\W+", "_", path).strip("_") or "overview")
    check(name, f"{page.status_code}\n{words_of(page.text)}")


def estimate(draw: Random) -> Estimate:
    low, value, high = sorted(round(draw.random(), 3) for _ in range(3))
    return Estimate(value=value, low=low, high=high, n=draw.choice([5, 30, 2000]), effective_n=4.5)


def difference(draw: Random) -> Difference:
    first, second, margin = draw.random(), draw.random(), draw.random() / 2
    ends = {"low": second - first - margin, "high": second - first + margin}
    return Difference(first=first, second=second, value=second - first, n=draw.choice([5, 200]), **ends)


def worst(draw: Random) -> WorstTurns:
    turns = tuple(turn(draw.randint(1, 99), round(draw.random(), 2)) for _ in range(2))
    return WorstTurns(metric="faithfulness", turns=turns)


def on_a_terminal(figures: ReportFigures, width: int = 110) -> str:
    console = Console(file=io.StringIO(), width=width)
    print_figures(console, figures)
    return console.file.getvalue()  # type: ignore[attr-defined, no-any-return]


def on_a_page(figures: ReportFigures) -> str:
    of_each = tuple(WorstTurns(metric=one.metric, turns=()) for one in figures.metrics)
    return words_of(render_html(replace(figures, worst=of_each, by=figures.by or "version")))


def evidence(draw: Random) -> Evidence:
    notes = {"missing_numbers": ["12"], "missing_names": ["Ann", "Bo"], "negation_flip": True}
    start = draw.randint(0, 30)
    return Evidence(
        context=draw.choice([None, 0, 0, 7]),
        start=start,
        end=start + draw.randint(1, 20),
        located=draw.random() < 0.5,
        notes={name: notes[name] for name in draw.sample(sorted(notes), draw.randint(0, 2))},
    )


def of_a_verdict(verdict: Verdict) -> str:
    one = turn(1, 0.5)
    score = replace(one.scores[0], verdicts=(verdict,))
    shown = turn_view(replace(one, scores=(score,)), score.metric)
    passages = [asdict(shown["answer"]), *map(asdict, shown["contexts"]), *map(asdict, shown["claims"])]
    return json.dumps([verdict_words(verdict), explain_verdict(verdict), *passages])


def of_an_alarm(event: AlarmEvent) -> str:
    plain = event.to_dict()
    told = [plain.pop("text"), json.dumps(event.to_slack()), *(f"{name}: {plain[name]}" for name in plain)]
    return "\n".join(told)


MAKERS: Makers = {
    Estimate: estimate,
    Difference: difference,
    Evidence: evidence,
    WorstTurns: worst,
    Usage: lambda _: Usage(),
}
TOLD: dict[str, tuple[type, int, Callable[[Any], str]]] = {
    "figures": (ReportFigures, 4, on_a_terminal),
    "figures_narrow": (ReportFigures, 2, lambda one: on_a_terminal(one, 62)),
    "figures_page": (ReportFigures, 3, on_a_page),
    "findings": (FindingFigure, 16, lambda one: f"{what_words(one)} {cause_words(one)} {deploy_words(one)}"),
    "changes": (MetricFigure, 12, change_words),
    "verdicts": (Verdict, 40, of_a_verdict),
    "run": (Run, 4, markdown_summary),
    "run_junit": (Run, 4, junit_xml),
    "alarms": (AlarmEvent, 5, of_an_alarm),
}
"""Values of which each field is anything, how many of them, and what is said of one."""


@pytest.mark.parametrize("name", TOLD)
def test_what_figures_of_any_kind_say_is_what_they_said(name: str) -> None:
    kind, count, said = TOLD[name]
    check(f"any_{name}", "\n".join(said(filled(kind, Random(seed), MAKERS)) for seed in range(count)))


def gate(draw: Random) -> str:
    """What becomes of a gate over some cases, with scores of earlier runs or without."""
    metric, bar = draw.choice([(Faithfulness(), 0.7), (Hallucination(), 0.3)])
    middle = draw.choice([0.3, 0.68, 0.9])
    cases = [f"c{number}" for number in range(draw.choice([5, 30, 200]))]

    def some(most: int) -> dict[str, list[float]]:
        return {one: [min(1.0, middle + 0.3 * (draw.random() - 0.5)) for _ in range(most)] for one in cases}

    earlier = {one: {metric.name: values} for one, values in some(draw.choice([1, 3])).items()}
    known = EarlierScores(scores=earlier if draw.random() < 0.5 else {})
    least = draw.choice([bar, None]) if known.scores else bar
    repeat: Repeated = draw.choice(["app", "judge", "nothing"])
    has = draw.choice([0.6, 0.97, 0.97])
    found = GateCheck(
        Gate(metric=metric.name, least=least),
        metric,
        weights=dict.fromkeys(cases, 1.0),
        repeat=repeat,
        earlier=known,
    )
    for one, values in some(1 if repeat == "nothing" else 3).items():
        for value in values if draw.random() < has else []:
            found.add(one, value)
    result = found.result(same_answers=draw.random() < 0.1)
    ends = [None if end is None else round(end, 3) for end in (result.mean, result.low, result.high)]
    return f"{result.gate}: {result.outcome} {ends} {result.chance} {found.is_open} {result.why}"


def test_gates_say_what_they_said() -> None:
    check("any_gates", "\n".join(gate(Random(seed)) for seed in range(50)))


def test_results_say_what_they_said() -> None:
    draw, shown = Random(1), list[str]()
    for count in (0, 1, 30):
        turns = [turn(number, draw.choice([None, round(draw.random(), 2)])) for number in range(count)]
        scores = [replace(one.scores[0], metric="own", threshold=None, passed=None) for one in turns]
        some = [one.replace(scores=(*one.scores, other)) for one, other in zip(turns, scores, strict=True)]
        found = Results(some)
        shown += [f"{count} turns", str(found), words_of(found._repr_html_())]
    check("any_results", "\n".join(shown))


SETUPS: dict[str, tuple[float, str]] = {
    "nothing": (0, ""),
    "now": (30, 'judge = "local"\nsinks = ["sqlite:steelyard.db"]\nsample_rate = 0.1'),
    "hours": (7_300, 'sinks = ["jsonl:scored.jsonl", "opentelemetry"]\nmetrics = ["faithfulness"]'),
    "days": (200_000, 'sinks = ["jsonl:scored.jsonl", "sqlite:none.db"]\nmetrics = ["faithfulness"]'),
    "away": (60, 'judge = "openai:m"\nbase_url = "http://127.0.0.1:1"\nsinks = []'),
    "wrong": (0, 'judge = "nobody:m"\nsinks = ["sqlite:missing/a.db", "opentelemetry", "nowhere"]'),
    "one": (0, 'sinks = ["opentelemetry"]\nmetrics = ["no_such"]'),
}
"""Settings, and how many seconds after the last turn a doctor looks at them."""


@pytest.mark.parametrize("name", SETUPS)
def test_doctor_says_what_it_said(
    name: str, stored: Path, steelyard: Steelyard, monkeypatch: pytest.MonkeyPatch
) -> None:
    since, settings = SETUPS[name]
    monkeypatch.chdir(stored)
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.setattr(
        "steelyard.cli._checkup.time", SimpleNamespace(time=lambda: END + since, monotonic=int)
    )
    scores = [turn(1, 0.5, at=END), turn(2, None, at=END - 100), turn(3, None, at=END - 90_000)]
    (stored / "scored.jsonl").write_text("".join(f"{evaluation_to_json(one)}\n" for one in scores))
    (stored / "steelyard.toml").write_text(settings)
    try:
        found = steelyard("doctor")
    finally:
        (stored / "steelyard.toml").unlink()
    check(f"doctor_{name}", f"{found.status}\n{found.out}\n{found.err}")
