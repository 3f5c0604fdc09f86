"""Passages in prompts: found whatever the prompt did to them, and not found where they were not."""

from __future__ import annotations

import base64
import json
import random
import textwrap
import time
from collections.abc import Callable
from html import escape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recording.provenance.passages import ALL, BALANCE, KILN, PRESS, TIDE, found
from steelyard.recording.provenance import MOST_PASSAGES, MOST_PROMPT, find_passages


def shown(texts: list[str]) -> str:
    return "[" + ", ".join(f"Document(metadata={{'n': 1}}, page_content={text!r})" for text in texts) + "]"


def elements(texts: list[str]) -> str:
    return "".join(f'<document index="{n}">{escape(text)}</document>' for n, text in enumerate(texts))


WRITINGS: dict[str, Callable[[list[str]], str]] = {
    "as it is": "\n\n".join,
    "joined by spaces": " ".join,
    "reversed": lambda texts: "\n".join(reversed(texts)),
    "repr of a list": repr,
    "repr of a tuple": lambda texts: repr(tuple((text, 0.4) for text in texts)),
    "repr of documents": shown,
    "repr in ASCII": ascii,
    "repr of a repr": lambda texts: repr(repr(texts)),
    "JSON": lambda texts: json.dumps([{"id": 1, "text": text} for text in texts]),
    "JSON beyond ASCII": lambda texts: json.dumps(texts, ensure_ascii=False, indent=2),
    "JSON in JSON": lambda texts: json.dumps({"result": json.dumps(texts)}),
    "JSON in JSON in JSON": lambda texts: json.dumps(json.dumps(json.dumps(texts))),
    "XML": elements,
    "XML escaped twice": lambda texts: escape(elements(texts)),
    "JSON with escaped XML": lambda texts: json.dumps(elements(texts)).replace("&", "\\u0026"),
    "numbered": lambda texts: "\n".join(f"[{n}] {text}" for n, text in enumerate(texts)),
    "Markdown": lambda texts: "\n".join(f"> **{text}**" for text in texts),
    "wrapped": lambda texts: "\n\n".join(textwrap.fill(text, 40) for text in texts),
    "indented": lambda texts: textwrap.indent("\n".join(texts), "\t\t"),
    "other white space": lambda texts: "\n".join(text.replace(" ", " \u00a0\r\n") for text in texts),
    "upper case": lambda texts: "\n".join(text.upper() for text in texts),
    "first half": lambda texts: "\n".join(text[: len(text) // 2] for text in texts),
    "second half": lambda texts: "\n".join(text[len(text) // 2 :] for text in texts),
    "middle": lambda texts: "\n".join(f"...{text[40:-40]}..." for text in texts),
    "one sentence": lambda texts: "\n".join(max(text.split(". "), key=len) for text in texts),
}


@pytest.mark.parametrize("name", WRITINGS)
def test_passages_are_found_however_the_prompt_writes_them_and_others_are_not(name: str) -> None:
    prompt = f"Use the context.\n\n{WRITINGS[name]([BALANCE, PRESS])}\n\nQuestion: what is a kiln?"
    assert found(ALL, prompt, question="what is a kiln?") == [True, True, False, False]


def test_the_order_is_that_of_the_prompt_and_the_share_what_was_seen() -> None:
    half = KILN[: len(KILN) // 2]
    tide, kiln, press = find_passages([TIDE, KILN, PRESS], [f"{half}\n\n{TIDE}"])
    assert kiln.position is not None and tide.position is not None
    assert kiln.position < tide.position
    assert (tide.seen, press.seen, press.position) == (1.0, 0.0, None)
    assert 0.4 < kiln.seen < 0.6


def test_a_header_that_all_passages_share_finds_none_of_those_that_were_not_there() -> None:
    header = "Annual report of the Example Company for the year 2024, all rights reserved by the owner.\n"
    passages = [header + text for text in ALL]
    assert found(passages, f"Context: {passages[2]}") == [False, False, True, False]


def test_chunks_that_overlap_are_told_apart() -> None:
    text = " ".join(ALL).split(" ")
    chunks = [" ".join(text[at : at + 40]) for at in range(0, 80, 25)]
    assert found(chunks, f"Context:\n{chunks[1]}") == [False, True, False, False]


def test_a_passage_inside_another_counts_where_it_stands_by_itself() -> None:
    part = "Potters stack the ware with care, close the door with bricks"
    assert found([KILN, part], KILN) == [True, False]
    assert found([KILN, part], f"{KILN}\n\n{KILN}") == [True, False]
    assert found([KILN, part], f"{part}.\n\n{PRESS}") == [False, True]
    assert found([KILN, part], f"{KILN}\n\n{PRESS}\n\n{part}") == [True, True]


def test_a_parent_is_not_found_where_only_its_parts_are() -> None:
    parent = f"{BALANCE} {KILN} {PRESS}"
    assert found([parent, BALANCE, KILN], f"{KILN}\n--\n{BALANCE}") == [False, True, True]


def test_the_same_passage_twice_is_found_twice_or_not_at_all() -> None:
    assert found([KILN, TIDE, KILN], KILN) == [True, False, True]


def test_the_question_repeated_in_a_passage_proves_nothing() -> None:
    question = "What is the name of the heat at which clay hardens for good in an oven?"
    passage = f"Q: {question} A: Nobody gave it a name so far, as we know."
    assert found([passage, question], f"Context: {TIDE}\nQuestion: {question}", question=question) == [
        False,
        None,
    ]


def test_common_phrases_are_not_evidence() -> None:
    one = "She is an American singer, songwriter and actress who was born in Ohio and lives in Texas today."
    two = "Ruth is an American singer, songwriter and actress from Alaska with eleven albums and a farm."
    assert found([one, two], f"Context: {two}") == [False, True]


def test_empty_and_one_word_passages_are_not_decided() -> None:
    assert found(["", "  \n", "Paris", "42", "..."], "Paris is not 42 ...") == [None] * 5


def test_two_and_three_words_count_only_where_they_are_set_off() -> None:
    assert found(["Tools are APIs."], "['Memory\\nis short', 'Tools are APIs.']") == [True]
    assert found(["the capital"], "Paris is the capital of France.") == [False]


CHINESE = [
    "\u6746\u79e4\u662f\u4e00\u79cd\u4e0d\u7b49\u81c2\u7684\u5929\u5e73\uff0c\u79e4\u7823\u5728\u957f"
    "\u81c2\u4e0a\u6ed1\u52a8\u3002",
    "\u5370\u5237\u673a\u7528\u538b\u529b\u628a\u58a8\u6c34\u5370\u5728\u7eb8\u4e0a\uff0c\u6d3b\u5b57"
    "\u6765\u81ea\u7f8e\u56e0\u8328\u3002",
]
ARABIC = [
    "\u0627\u0644\u0645\u064a\u0632\u0627\u0646 \u0627\u0644\u0642\u0628\u0627\u0646\u064a \u0644\u0647 "
    "\u0630\u0631\u0627\u0639\u0627\u0646 \u063a\u064a\u0631 "
    "\u0645\u062a\u0633\u0627\u0648\u064a\u064a\u0646 \u0648\u0647\u0648 "
    "\u0642\u062f\u064a\u0645 \u062c\u062f\u0627",
    "\u0627\u0644\u0645\u0637\u0628\u0639\u0629 \u062a\u0636\u0639 \u0627\u0644\u062d\u0628\u0631 "
    "\u0639\u0644\u0649 \u0627\u0644\u0648\u0631\u0642 \u0628\u0627\u0644\u0636\u063a\u0637 "
    "\u0627\u0644\u0634\u062f\u064a\u062f",
]


@pytest.mark.parametrize("texts", [CHINESE, ARABIC], ids=["Chinese", "Arabic"])
@pytest.mark.parametrize("write", [str, repr, ascii, json.dumps, textwrap.fill])
def test_other_scripts_are_told_apart(texts: list[str], write: Callable[[str], str]) -> None:
    assert found(texts, f"Context: {write(texts[0])}") == [True, False]
    assert found(texts, f"Context: {write(texts[1])}") == [False, True]


@pytest.mark.parametrize(
    "prompt",
    [
        base64.b64encode(random.Random(1).randbytes(300_000)).decode(),
        "\\" * 50_001,
        "\\u12",
        "\\ud83d" * 20_000,
        "\ud800" * 20_000,
        "&#" + "9" * 20_000 + ";",
        "&amp;" * 20_000,
        "<" * 50_000,
        "[" * 50_000,
        "e" + "\u0301\u0323" * 50_000,
        "\\U99999999 \\xZZ \\",
        "\0\x01",
        "",
    ],
    ids=range(13),
)
def test_no_prompt_raises_or_finds_what_is_not_there(prompt: str) -> None:
    start = time.thread_time()
    assert found(ALL, prompt) == [False] * 4
    assert found([BALANCE], f"{prompt} {BALANCE} {prompt}") == [True]
    assert time.thread_time() - start < 5


@given(st.text(), st.text(), st.lists(st.text(), max_size=4))
def test_any_texts_give_one_sighting_a_passage(prompt: str, question: str, passages: list[str]) -> None:
    sightings = find_passages(passages, [prompt], question=question)
    assert len(sightings) == len(passages)
    assert all(0 <= sighting.seen <= 1 for sighting in sightings)


WORD = st.text(alphabet="abcdefgh", min_size=3, max_size=9)


@given(st.lists(st.lists(WORD, min_size=12, max_size=40, unique=True), min_size=2, max_size=6), st.data())
def test_random_passages_are_found_in_any_writing(rows: list[list[str]], data: st.DataObject) -> None:
    passages = [f"{n}x{n} ".join(["", *row]) for n, row in enumerate(rows)]
    inside = data.draw(st.lists(st.sampled_from(range(len(rows))), unique=True))
    write = data.draw(st.sampled_from([repr, json.dumps, " ".join, elements]))
    prompt = write([passages[n] for n in inside])
    assert found(passages, prompt) == [n in inside for n in range(len(rows))]


ABSENT = "The keeper's house was sold to a sailor from the mainland, who painted its door green in spring."
TOWER_IN_CHINESE, FERRY_IN_CHINESE = (
    "灯塔建于一八一一年,灯光可见十八海里。",
    "渡船每天早上七点从北港出发,周日除外。",
)
TOWER_IN_ARABIC, FERRY_IN_ARABIC = (
    "بنيت المنارة عام ألف وثمانمئة وأحد عشر على الجزيرة",
    "تغادر العبارة الميناء الشمالي كل صباح ما عدا الأحد",
)
TOWER = "The lighthouse was built in 1811 and its light is seen for eighteen miles."
IMAGE = "data:image/png;base64," + "iVBORw0KGgoAAAANSUhEUgAA" * 400


@pytest.mark.parametrize(
    ("prompt", "there", "absent"),
    [
        (f"Context: {TOWER}", [TOWER], [ABSENT]),
        (f"Context: {TOWER}\n{TOWER}", [TOWER, TOWER], [ABSENT]),
        (f"Context: {TOWER} It is open.", [f"{TOWER} It is open."], [TOWER, ABSENT]),
        (f"上下文: {TOWER_IN_CHINESE}", [TOWER_IN_CHINESE], [FERRY_IN_CHINESE]),
        (f"السياق: {TOWER_IN_ARABIC}", [TOWER_IN_ARABIC], [FERRY_IN_ARABIC]),
        (f"{IMAGE}\n{TOWER}", [TOWER], [ABSENT, IMAGE[:60] + "another" + IMAGE[200:260]]),
        (f"{json.dumps(TOWER)[:-1]}\\u00", [TOWER], [ABSENT]),
        (f"&lt;doc&gt;{TOWER}&#", [TOWER], [ABSENT]),
        (f"{TOWER} The keeper's house was sold to a sailor.", [TOWER], [ABSENT[60:]]),
    ],
)
def test_bad_input_gives_no_false_match(prompt: str, there: list[str], absent: list[str]) -> None:
    """Also where all that is looked for stands whole in the prompt, and is found without hashing."""
    assert [sighting.found for sighting in find_passages(there, [prompt])] == [True] * len(there)
    every = find_passages([*there, *absent], [prompt])
    assert [sighting.found for sighting in every] == [True] * len(there) + [False] * len(absent)
    nothing = find_passages(["", " ", "1811"], [prompt])
    assert all(sighting.found is None for sighting in nothing)


def test_passages_with_one_heading_are_told_apart_by_the_rest() -> None:
    heading = (
        "Do not answer questions about {} without a ticket. If you do not know the answer, please say so."
    )
    first = f"{heading.format('Drenuvik')} The valve must be replaced after 43 hours."
    longer = f"{heading.format('Ganodal')} The valve of Ganodal must be replaced after 92 hours of operation."
    other = "Nothing of this stands in the prompt, which keeps all of them on the long way."
    found = find_passages([longer, first, other], [f"Excerpts:\n{first}\n\n{longer}\n\nQuestion: Why?"])
    assert [one.found for one in found] == [True, True, False]
    assert (found[1].position or 0) < (found[0].position or 0)


def test_passages_that_stand_whole_are_seen_as_by_their_words() -> None:
    """Letter for letter, by their words and by shingles tell the same order and shares."""
    texts = [TOWER, ABSENT, " ".join(reversed(TOWER.split()))]
    prompt = f"Read this.\n{texts[2]}\n\n{texts[0]}\n\n{texts[1]}"
    nowhere = "It stands nowhere, this passage of some more words."
    letters, in_words = find_passages(texts, [prompt]), find_passages(texts, [prompt.replace(". ", ".  ")])
    for seen in (letters, in_words, find_passages([*texts, nowhere], [prompt])[:3]):
        assert [one.seen for one in seen] == [1.0, 1.0, 1.0]
        assert sorted(range(3), key=[one.position or 0 for one in seen].__getitem__) == [2, 0, 1]


def test_no_passage_stands_in_two_prompts_or_within_longer_words() -> None:
    first = "In summer the last ferry to the outer islands leaves the old pier"
    passage = f"{first} \0 at noon."
    for prompts in ([first, "at noon."], [f"With{passage}"]):
        (there,) = find_passages([passage], prompts)
        assert there.seen < 1.0


@given(
    st.lists(
        st.sampled_from(["pier", "Ägir", "über", "ß", "café", "été", "—", "„", "…", "№", "_", "\x1d"]),
        max_size=60,
    )
)
def test_words_beyond_ascii_are_split_alike_with_few_and_with_many_marks(parts: list[str]) -> None:
    text, marks = " ".join(["one two three four", *parts]), "".join(map(chr, range(0x2190, 0x2200)))
    for tail in ("", f" {marks} é"):
        (there,) = find_passages([text], [f"Pages: {text}{tail}"])
        assert there.found
        assert there.seen == 1.0


def test_a_character_at_the_end_of_a_piece_of_a_long_prompt_is_seen() -> None:
    passage = "The old pier is 5 metres a水b above the tide."
    (there,) = find_passages([passage], ["x" * (99_998 - passage.index("水")) + f" {passage}"])
    assert there.seen == 1.0


def test_the_share_seen_counts_each_word_once() -> None:
    words = [f"word{number}" for number in range(60)]
    prompt = " ".join([*words[:20], "elsewhere", *words[30:50]])
    (there,) = find_passages([" ".join(words)], [prompt])
    assert there.found
    assert there.seen == pytest.approx(40 / 60)


def test_positions_go_on_from_one_prompt_to_the_next() -> None:
    texts = ["five six seven eight", "one two three four"]
    found = find_passages(texts, ["zero one two three four", "x y five six seven eight z"])
    assert [one.position for one in found] == [7, 1]


@pytest.mark.parametrize("seed", range(20))
def test_shares_are_those_of_a_plain_count(seed: int) -> None:
    """A word counts where it is in any four words in a row that the prompt holds too, often or once."""
    rng = random.Random(seed)
    known = [f"word{number}" for number in range(25)]
    prompt = rng.choices(known, k=rng.choice([10, 400, 3000]))
    at = rng.randrange(len(prompt) - 8)
    passages = [prompt[at : at + 8], *(rng.choices(known, k=rng.randint(8, 60)) for _ in range(6))]
    fours = set(zip(prompt, prompt[1:], prompt[2:], prompt[3:], strict=False))
    sightings = find_passages(list(map(" ".join, passages)), [" ".join(prompt)])
    for row, sighting in zip(passages, sightings, strict=True):
        seen = {n + k for n in range(len(row) - 3) if tuple(row[n : n + 4]) in fours for k in range(4)}
        assert sighting.seen == pytest.approx(len(seen) / len(row))
        if sighting.found:
            begin = sighting.position or 0
            assert tuple(prompt[begin : begin + 4]) in fours


@pytest.mark.parametrize("mark", ["\\\\n", "\\\\\\\\n", "\\\\u00e9", '\\\\\\\\\\\\"', "\\\\x2d", "\\\\"])
def test_few_and_many_kinds_of_escapes_are_read_alike(mark: str) -> None:
    text = f"one{mark}two{mark} three four {mark}five six"
    many = "".join(f" \\\\u{code:04x}" for code in range(0x2190, 0x21F0))
    for tail in ("", many):
        (there,) = find_passages([text], [f"Pages: {text} .{tail}"])
        assert (there.found, there.seen) == (True, 1.0)


def test_data_under_a_label_is_one_passage_and_not_two() -> None:
    bare = '{"name": "Soruzen", "text": "In the trial the dose was halved for 40 of the patients."}'
    labelled = f"Source 1:\n{bare}"
    prompt = f"Answer from the sources.\n------\n{labelled}\n------\nQuery: How long does it take?\nAnswer: "
    assert [seen.found for seen in find_passages([bare, labelled], [prompt])] == [False, True]


def test_ten_thousand_passages_and_texts_beyond_the_bounds_end() -> None:
    rng = random.Random(3)
    many = [" ".join(str(rng.random()) for _ in range(10)) for _ in range(10_000)]
    sightings = find_passages(many, ["\n".join(many[:50])])
    assert [n for n, sighting in enumerate(sightings) if sighting.found] == list(range(50))
    assert found([KILN, "a " * MOST_PASSAGES, TIDE], KILN) == [True, None, False]
    assert found([KILN], "b " * (MOST_PROMPT // 2) + KILN) == [False]


def test_short_passages_of_a_long_prompt_stand_in_its_order() -> None:
    texts = [f"Item {number}" for number in range(1000)]
    prompt = "\n".join(f"- {text}" for text in texts)
    sightings = find_passages(texts[::-1], [prompt])
    assert all(sighting.found for sighting in sightings)
    places = [sighting.position or 0 for sighting in sightings]
    assert places == sorted(places, reverse=True) and len(set(places)) == 1000
    assert max(places) == pytest.approx(1998, abs=5)


FILLING = " ".join(f"{n} barrels of herring left the quay on day {n * 7};" for n in range(400))
"""So much text that passages are compared as arrays."""


@pytest.mark.parametrize(
    ("passage", "other"),
    [
        ("Die Straße am Großen Platz ist weiß gekalkt", "Die Straße am Großen Markt bleibt heiß und breit"),
        ("ΟΔΥΣΣΕΥΣ ΠΛΕΕΙ ΠΡΟΣ ΤΗΝ ΙΘΑΚΗ ΜΕΤΑ ΑΠΟ ΧΡΟΝΙΑ", "ΑΧΙΛΛΕΥΣ ΜΕΝΕΙ ΕΙΣ ΤΗΝ ΤΡΟΙΑΝ ΑΝΕΥ ΤΩΝ ΦΙΛΩΝ"),
        ("ตาชั่งจีนใช้ชั่งน้ำหนักของในตลาดเก่า", "เตาเผาต้องใช้ไฟแรงสองวันหนึ่งคืนเต็ม"),
        ("".join(map(chr, range(0x20000, 0x20008))), "\U00020010" * 9),
        ("the scale \N{BALLOT BOX} weighs \N{CAT FACE} forty pounds of wool", "the scale holds eleven hens"),
        (
            "\N{LATIN SMALL LIGATURE FI}ve \uff11\uff12 kilos were put on the pan",
            "six 12 kilos fell off the cart",
        ),
    ],
    ids=["German", "Greek", "Thai", "beyond the basic plane", "signs", "compatible forms"],
)
def test_a_long_prompt_in_any_script_and_case_shows_its_passage_and_no_other(
    passage: str, other: str
) -> None:
    prompt = f"{FILLING}\n{passage.casefold()}\n{FILLING}"
    assert found([passage, other], prompt) == [True, False]
    assert found([passage, other], f"{FILLING}\n{json.dumps(passage)}") == [True, False]


def test_positions_are_words_of_the_prompts_however_long_these_are() -> None:
    lead = "Use the following context"
    first, second = find_passages([TIDE, KILN], ["Be brief.", f"{lead} {TIDE} {FILLING}", f"{lead} {KILN}"])
    assert first.position == 2 + 4
    assert second.position == 2 + 4 + len(TIDE.split()) + len(FILLING.split()) + 4


def test_long_words_that_a_polynomial_takes_for_each_other_are_told_apart() -> None:
    """The Thue-Morse word and its opposite have one value for every base, modulo a power of two."""
    word, swapped = "a", {97: "b", 98: "a"}
    for _ in range(12):
        word += word.translate(swapped)
    opposite = word.translate(swapped)
    passage, twin = " ".join([word] * 8), " ".join([opposite] * 8)
    assert found([passage], f"{FILLING} {twin}") == [False]
    assert found([passage], f"{FILLING} {passage}") == [True]


def test_a_passage_beyond_the_bound_is_undecided_beside_a_small_one() -> None:
    huge = "word " * 1_000_000
    assert [one.found for one in find_passages([huge], ["A short prompt."])] == [None]
    small = "Rome has seven hills and a river."
    assert [one.found for one in find_passages([small, huge], [f"Say: {small}"])] == [True, None]
