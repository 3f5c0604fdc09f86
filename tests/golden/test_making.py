"""Golden cases from documents: what a model writes is verified, criticised, counted, resumed."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from cli.running import Steelyard
from judge_server import Fault, JudgeServer, Received
from steelyard.errors import ConfigurationError, JudgeRejected
from steelyard.golden import GoldenSet
from steelyard.golden.making import KINDS, Passage, make, plan, quotas, read_passages
from steelyard.judge.chat import ChatWriter

SUBJECTS = (
    *("kettle", "lantern", "anvil", "compass", "violin", "barrel", "ladder", "saddle", "plough", "bellows"),
    *("loom", "pulley", "chisel", "sundial", "abacus", "spindle", "goblet", "trumpet", "rudder", "hammer"),
)
PASSAGES = [
    Passage(
        id=f"p{n}",
        text=f"The {subject} of Merrow is kept in room {n + 10} of the old mill. It was made in {1700 + n} "
        f"by a smith called Orla{n}, who also mended clocks for the town.",
    )
    for n, subject in enumerate(SUBJECTS)
]
_BLOCK = re.compile(
    r"^(?:<<<)?([0-9a-f]{6,}) (c\d+) (?:passage|question)[^\n]*\n(.*?)\n(?=\1)", re.DOTALL | re.MULTILINE
)


def blocks(request: Received) -> dict[str, list[str]]:
    """The texts of each key, whatever stands between the delimiters."""
    found: dict[str, list[str]] = {}
    text = request.body["messages"][1]["content"]
    for _, key, body in _BLOCK.findall(text):
        found.setdefault(key, []).append(body)
    return found


def wanted_of(name: str, system: str) -> str:
    """What is asked for under a key."""
    wanted = re.search(rf"{name}: (.*?)(?:; c\d+:|\. Ask as)", system, re.DOTALL)
    assert wanted is not None
    return wanted.group(1)


class Model:
    """A model that writes honest cases; subclasses and switches spoil some."""

    def __init__(self) -> None:
        self.count = Counter[str]()
        self.spoil: dict[str, Any] = {}

    def __call__(self, request: Received) -> object:
        assert request.schema is not None and "logprobs" not in request.body
        names = list(request.schema["properties"])
        shape = request.schema["$defs"]["one"]["properties"]
        texts = blocks(request)
        if "known" in shape:
            self.count["closed"] += 1
            return {name: self.spoil.get("known", {"known": False, "answer": ""}) for name in names}
        if "answerable" in shape:
            self.count["critic"] += 1
            verdict = {"answerable": True, "right": True, "alone": True, **self.spoil.get("verdict", {})}
            return {
                name: {**verdict, "answerable": "price" not in texts[name][0] and verdict["answerable"]}
                for name in names
            }
        self.count["write"] += 1
        system = request.body["messages"][0]["content"]
        return {name: self.case(name, texts[name], system) for name in names}

    def case(self, name: str, passages: list[str], system: str) -> dict[str, Any]:
        kind = wanted_of(name, system)
        first = passages[0]
        found = re.match(r"The (\w+) .*? room (\d+) .*? made in (\d+) by a smith called (\w+),", first)
        assert found is not None
        subject, room, year, smith = found.groups()
        sentence = [f"The {subject} of Merrow is kept in room {room} of the old mill."]
        question, reference, history = f"In which room is the {subject} of Merrow?", f"In room {room}.", []
        if "something else" in wanted_of(name, system):
            question, reference = f"Who made the {subject} of Merrow in {year}?", f"{smith} did."
        if "each of its two" in kind or "compares" in kind:
            other = re.match(r"The (\w+) .*? room (\d+) ", passages[1])
            assert other is not None
            sentence.append(f"The {other[1]} of Merrow is kept in room {other[2]} of the old mill.")
            verb = "Compare" if "compares" in kind else "Where are"
            question = f"{verb} the rooms of the {subject} and the {other[1]} of Merrow?"
        elif "conversation" in kind:
            history = [
                {"role": "user", "text": f"What is the {subject} of Merrow?"},
                {"role": "assistant", "text": "An old thing."},
            ]
            question = f"And in which room is that {subject}?"
        elif "does not answer" in kind:
            question, reference = f"What was the price of the {subject} of Merrow?", "That is not known."
        elif "takes for granted" in kind:
            question = f"Why is the {subject} of Merrow in the church?"
        made = {"question": question, "reference": reference, "sentences": sentence, "history": history}
        return {**made, **self.spoil.get("case", {})}


def make_with(model: Model, n: int = 10, **options: Any) -> Any:
    with JudgeServer(model) as server:
        server.faults.extend(options.pop("faults", []))
        writer = ChatWriter(options.pop("writer", "m"), base_url=server.url, retries=0, concurrency=2)
        return make(options.pop("passages", PASSAGES), writer=writer, n=n, **options)


@pytest.fixture
def steelyard(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Steelyard:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    return Steelyard(capfd, monkeypatch)


def test_exactly_n_cases_of_every_kind_rest_on_sentences_of_the_documents() -> None:
    made = make_with(Model(), n=20)
    assert len(made.golden) == 20
    assert Counter(case.kind for case in made.golden) == quotas(20)
    texts = [passage.text for passage in PASSAGES]
    for case in made.golden:
        assert case.source == "synthetic" and not case.reviewed_by
        assert all(any(sentence in text for text in texts) for sentence in case.reference_contexts)
        assert len(case.reference_contexts) == KINDS[case.kind].passages
        assert bool(case.history) == (case.kind == "follow_up")
    assert made.requests_per_case is not None and made.requests_per_case <= 1.2


class Gullible(Model):
    """Finds an answer to every question, and has one idea for comparisons."""

    def __call__(self, request: Received) -> object:
        found = super().__call__(request)
        assert isinstance(found, dict)
        return {
            name: {**one, "answerable": True} if "answerable" in one else one for name, one in found.items()
        }

    def case(self, name: str, passages: list[str], system: str) -> dict[str, Any]:
        made = super().case(name, passages, system)
        if made["question"].startswith("Compare"):
            made["question"] = "Compare all of the rooms of the mill of Merrow."
        return made


@pytest.mark.parametrize("seed", range(3))
def test_kinds_that_nothing_can_be_made_of_are_replaced_one_for_one(seed: int) -> None:
    made = make_with(Gullible(), n=20, seed=seed)
    assert len(made.golden) == 20
    found = Counter(case.kind for case in made.golden)
    assert found["unanswerable"] == 0 and found["comparison"] == 1


def test_the_same_seed_makes_the_same_set_and_another_makes_another() -> None:
    sets = [make_with(Model(), seed=seed).golden.version for seed in (1, 1, 2)]
    assert sets[0] == sets[1] != sets[2]


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        ({"case": {"sentences": ["The kettle was kept elsewhere."]}}, "quotation not word for word"),
        ({"case": {"sentences": []}}, "quotation not word for word"),
        ({"case": {"question": ""}}, "not written"),
        ({"case": {"sentences": "x"}}, "not written"),
        ({"case": {"question": "Always the same?"}}, "near-duplicate"),
        ({"verdict": {"answerable": False}}, "not answerable from its sentences"),
        ({"verdict": {"right": False}}, "reference does not follow"),
        ({"verdict": {"alone": False}}, "not understandable alone"),
        ({"verdict": {"alone": "perhaps"}}, "not criticised"),
    ],
)
def test_what_is_wrong_with_a_case_is_counted_by_reason(spoil: dict[str, Any], reason: str) -> None:
    model = Model()
    model.spoil = spoil
    made = make_with(model, n=4, shares={"single_passage": 1}, passages=PASSAGES[:4])
    assert len(made.golden) < 4 and made.rejected[reason] >= 4
    assert made.wanted == 4


def test_a_question_that_needs_no_documents_is_rejected() -> None:
    model = Model()
    model.spoil = {"known": {"known": True, "answer": "it is in room 10"}}
    made = make_with(model, n=2, shares={"single_passage": 1}, passages=PASSAGES[:1])
    assert made.rejected["answerable without the documents"] >= 1


def test_interrupted_work_goes_on_and_asks_nothing_twice(tmp_path: Path) -> None:
    journal = tmp_path / "cases.replies"
    model = Model()
    whole = make_with(Model(), n=10, seed=3)
    broken = [Fault(), Fault(), Fault(), *[Fault(status=400, message="context length")] * 60]
    with pytest.raises(JudgeRejected, match="context length"):
        make_with(model, n=10, seed=3, journal=journal, faults=broken)
    journal.write_text(journal.read_text() + '{"key": "half of a li')
    again = make_with(model, n=10, seed=3, journal=journal)
    assert len(again.golden) == 10 and again.resumed >= 1
    assert again.golden.version == whole.golden.version
    third = make_with(model, n=10, seed=3, journal=journal)
    assert third.usage.requests == 0 and third.golden.version == whole.golden.version
    other = make_with(model, n=10, seed=3, journal=journal, writer="another model")
    assert other.resumed == 0 and other.usage.requests > 0
    assert journal.stat().st_mode & 0o077 == 0


def test_a_writer_that_cannot_be_used_is_named() -> None:
    with pytest.raises(JudgeRejected, match="check the key"):
        make_with(Model(), n=4, faults=[Fault(status=401)] * 9)


def test_cases_of_a_request_that_fails_are_rejected_by_its_cause() -> None:
    made = make_with(Model(), n=4, faults=[Fault(), Fault(status=500)])
    assert len(made.golden) == 4
    assert sum(n for why, n in made.rejected.items() if why.startswith("judge: ")) > 0


def test_a_case_stands_where_only_the_request_without_its_passages_failed() -> None:
    class Odd(Model):
        def __call__(self, request: Received) -> object:
            assert request.schema is not None
            closed = "known" in request.schema["$defs"]["one"]["properties"]
            return "no reply" if closed else super().__call__(request)

    made = make_with(Odd(), n=4)
    assert len(made.golden) == 4 and not made.rejected


def test_the_plan_comes_near_to_what_is_sent() -> None:
    planned = plan(PASSAGES, n=20)
    made = make_with(Model(), n=20)
    assert planned.requests == pytest.approx(made.usage.requests, rel=0.2)
    assert planned.usage.prompt_tokens == pytest.approx(made.usage.prompt_tokens, rel=0.5)


def test_documents_are_read_in_passages(tmp_path: Path) -> None:
    with (tmp_path / "large.txt").open("wb") as large:
        large.truncate(64 * 1024 * 1024 + 1)
    with pytest.raises(ConfigurationError, match="larger than 64 MiB"):
        read_passages(tmp_path)
    (tmp_path / "large.txt").unlink()
    (tmp_path / "a.md").write_text(f"# Rooms\n\n{PASSAGES[0].text}\n\n# Empty\n\n## Short\n\nToo short.\n")
    (tmp_path / "b.txt").write_text(f"{PASSAGES[1].text}\n\n{PASSAGES[0].text * 9}")
    same = (PASSAGES[2].text, PASSAGES[2].text.upper())
    (tmp_path / "c.jsonl").write_text("".join(f'{{"text": "{text}"}}\n' for text in same))
    (tmp_path / "d.bin").write_bytes(b"\x00")
    found = read_passages(tmp_path)
    assert found[0].text == f"Rooms: {PASSAGES[0].text}"
    assert max(len(passage.text) for passage in found) <= 1_400
    assert len({passage.text for passage in found}) == len(found) == 5


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.md", "Tiny.", "no passage of at least 60"),
        ("a.md", "", "no passage of at least 60"),
        ("a.bin", "x" * 100, "holds no documents"),
        ("a.jsonl", "{", "line 1: not JSON"),
    ],
)
def test_documents_without_anything_to_ask_about_are_refused(
    tmp_path: Path, name: str, text: str, said: str
) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(ConfigurationError, match=said):
        read_passages(tmp_path)


def test_what_stands_in_several_documents_is_a_passage_of_the_first(tmp_path: Path) -> None:
    boilerplate = "# Opening hours\n\nWe are open from nine to five on every day of the week but Sunday."
    for name in ("b.md", "a.md", "c.md"):
        (tmp_path / name).write_text(boilerplate if name != "c.md" else boilerplate.upper())
    (found,) = read_passages(tmp_path)
    assert found.id.startswith("a.md") and found.text.startswith("Opening hours: We are open")


@pytest.mark.parametrize("shares", [{"riddle": 1}, {"comparison": -1}, {"comparison": 0}])
def test_shares_that_mean_nothing_are_refused(shares: dict[Any, float]) -> None:
    with pytest.raises(ConfigurationError):
        quotas(10, shares)


def test_what_is_left_over_goes_to_the_kinds_with_the_largest_remainders() -> None:
    shares: dict[Any, float] = {"comparison": 0.1, "single_passage": 0.3, "false_premise": 0.6}
    assert quotas(9, shares) == {"comparison": 1, "single_passage": 3, "false_premise": 5}


def test_the_command_shows_a_plan_first_and_sends_nothing(steelyard: Steelyard, tmp_path: Path) -> None:
    (tmp_path / "docs.jsonl").write_text("".join(f'{{"text": "{one.text}"}}\n' for one in PASSAGES))
    model = Model()
    with JudgeServer(model) as server:
        judge = (
            "--judge",
            "openai:m",
            "--base-url",
            server.url,
            "--out",
            tmp_path / "cases.jsonl",
            "--n",
            "6",
        )
        planned = steelyard("golden", "make", tmp_path / "docs.jsonl", *judge)
        assert planned.status == 2 and not server.received
        assert "6 cases from 20 passages" in planned.err and "add --yes" in planned.err
        done = steelyard("golden", "make", tmp_path / "docs.jsonl", *judge, "--yes")
        # Nothing is asked that could not be kept.
        asked = len(server.received)
        again = steelyard("golden", "make", tmp_path / "docs.jsonl", *judge, "--yes")
        assert (again.status, len(server.received)) == (2, asked) and "exists; give another" in again.err
        model.spoil = {"case": {"question": ""}}
        other = (*judge[:5], tmp_path / "others.jsonl", "--n", "2")
        fewer = steelyard("golden", "make", tmp_path / "docs.jsonl", *other, "--yes")
    assert fewer.status == 1 and "no case was accepted" in fewer.out
    assert done.status == 0, done.err
    assert "6 of 6 cases" in done.out and "for each accepted case" in done.out
    assert len(GoldenSet.load(tmp_path / "cases.jsonl").unreviewed) == 6


@pytest.mark.parametrize("judge", [(), ("--judge", "local"), ("--judge", "openai:gpt-4o-mini")])
def test_without_a_key_the_way_that_needs_none_is_named(
    steelyard: Steelyard, tmp_path: Path, judge: tuple[str, ...]
) -> None:
    done = steelyard("golden", "make", tmp_path, *judge)
    assert done.status == 2
    assert "needs a model that writes" in done.err and "steelyard golden mine" in done.err
