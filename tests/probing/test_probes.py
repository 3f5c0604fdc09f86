"""The probe set that ships: what it holds, and what becomes of an edited one."""

from __future__ import annotations

import asyncio
import json
from collections import Counter, defaultdict
from importlib.resources import files
from pathlib import Path

import pytest

from steelyard.errors import ConfigurationError
from steelyard.judge import LocalJudge
from steelyard.online._canaries import candidates
from steelyard.probing import Probe, load_probes
from steelyard.questions import Request, Supported, View, YesNo
from steelyard.record import Context

KINDS = {
    *("number", "unit", "number_words", "date", "name", "role_swap", "attribute_swap", "negation"),
    *("quantifier", "modality", "time_order", "cause", "merged_facts", "invented_detail", "paraphrase"),
    *("list", "table", "code", "hedged_claim", "yes_no", "language", "evasive", "injection"),
}
PROBES = load_probes().probes


def pairs() -> dict[str, list[Probe]]:
    found: dict[str, list[Probe]] = defaultdict(list)
    for probe in PROBES:
        found[probe.pair].append(probe)
    return found


def copied(folder: Path) -> Path:
    for name in ("texts.jsonl", "pairs.jsonl"):
        (folder / name).write_bytes((files("steelyard.probing") / "data" / name).read_bytes())
    return folder


def test_the_set_holds_at_least_400_probes_of_every_kind() -> None:
    assert len(PROBES) >= 400
    counts = Counter(probe.kind for probe in PROBES)
    assert set(counts) == KINDS
    assert min(counts.values()) >= 12
    assert {"de", "fr", "es", "zh", "ar"} <= {p.language for p in PROBES if p.kind == "language"}


def test_ids_are_unique() -> None:
    assert len({probe.id for probe in PROBES}) == len(PROBES)


def test_half_of_every_kind_is_true() -> None:
    for kind in KINDS:
        truths = [probe.expected for probe in PROBES if probe.kind == kind]
        assert sum(truths) * 2 == len(truths), kind


def test_twins_differ_in_their_claim_and_truth_and_share_the_rest() -> None:
    for twins in pairs().values():
        one, other = twins
        assert {one.expected, other.expected} == {True, False}
        assert one.without_address().claim.casefold() != other.without_address().claim.casefold()
        first, second = one.without_address(), other.without_address()
        assert (first.contexts, first.question) == (second.contexts, second.question)
        assert (first.kind, first.language, first.asks) == (second.kind, second.language, second.asks)


def test_no_probe_is_asked_twice() -> None:
    asked = Counter((p.contexts, p.question, p.claim.casefold(), p.asks) for p in PROBES)
    assert [key for key, count in asked.items() if count > 1] == []


def test_every_text_has_passages_whose_order_can_be_swapped() -> None:
    assert all(len(probe.contexts) >= 2 for probe in PROBES)


def test_an_address_can_be_taken_out_again() -> None:
    addressed = [probe for probe in PROBES if probe.address]
    assert addressed and {probe.kind for probe in addressed} == {"injection"}
    for probe in addressed:
        assert probe.address in " ".join((*probe.contexts, probe.claim))
        plain = probe.without_address()
        assert probe.address not in " ".join((*plain.contexts, plain.claim))


def test_an_edited_set_is_refused_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = copied(tmp_path)
    (folder / "data").mkdir()
    copied(folder / "data")
    edited = (folder / "data" / "pairs.jsonl").read_text(encoding="utf-8").replace("320", "321", 1)
    (folder / "data" / "pairs.jsonl").write_text(edited, encoding="utf-8")
    monkeypatch.setattr("steelyard.probing._probes.files", lambda _: folder)
    with pytest.raises(
        ConfigurationError, match=r"was edited: its hash is \w{12}, this version ships \w{12}"
    ):
        load_probes()


def test_a_set_of_your_own_carries_its_own_hash(tmp_path: Path) -> None:
    folder = copied(tmp_path)
    same = load_probes(folder)
    assert same.published and same.version == load_probes().version
    lines = (folder / "pairs.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    (folder / "pairs.jsonl").write_text("".join(lines[:20]), encoding="utf-8")
    own = load_probes(folder)
    assert not own.published
    assert (len(own.probes), own.version) != (len(same.probes), same.version)
    assert len(own.probes) == 40


def test_the_hash_does_not_depend_on_line_ends(tmp_path: Path) -> None:
    folder = copied(tmp_path)
    for path in folder.glob("*.jsonl"):
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert load_probes(folder).published


PAIR = {"id": "a-1", "kind": "name", "text": "t", "true": "A.", "false": "B."}


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        (["{"], "pairs.jsonl, line 1: not JSON"),
        (["[]"], "pairs.jsonl, line 1: no 'id'"),
        ([json.dumps(PAIR | {"false": ""})], "pairs.jsonl, line 1: no 'false'"),
        ([json.dumps(PAIR | {"text": "u"})], "pair 'a-1': there is no text 'u'"),
        ([json.dumps(PAIR | {"address": "x", "address_in": "title"})], "address_in='title'"),
        ([json.dumps(PAIR), json.dumps(PAIR)], "two pairs have the id 'a-1'"),
        ([], "holds no pairs"),
    ],
)
def test_what_is_not_a_probe_set_is_refused_by_line(tmp_path: Path, lines: list[str], told: str) -> None:
    text = {"id": "t", "language": "en", "question": "What?", "contexts": ["A.", "C."]}
    (tmp_path / "texts.jsonl").write_text(json.dumps(text), encoding="utf-8")
    (tmp_path / "pairs.jsonl").write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(ConfigurationError) as refused:
        load_probes(tmp_path)
    assert told in str(refused.value)


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="no probe set in .*nowhere"):
        load_probes(tmp_path / "nowhere")


SECOND = Path(__file__).parents[2] / "benchmarks" / "probes"


def test_the_local_judge_tells_most_kinds_of_a_set_it_was_not_made_for() -> None:
    found = load_probes(SECOND)
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


@pytest.mark.parametrize("count", [5, 6, 79, 80])
def test_as_many_canaries_are_tried_as_were_asked_for_half_of_them_true(count: int) -> None:
    tried = candidates(PROBES, count)
    assert len({probe.id for probe in tried}) == len(tried) == count
    assert abs(2 * sum(probe.expected for probe in tried) - count) <= 1
