"""Passages in prompts that are long, or many: positions, bounds and the time that it takes."""

from __future__ import annotations

import json
import random
import time

import pytest

from recording.provenance.passages import KILN, TIDE, found
from steelyard.recording.provenance import MOST_PASSAGES, MOST_PROMPT, find_passages


def test_ten_thousand_passages_and_texts_beyond_the_bounds_end() -> None:
    rng = random.Random(3)
    many = [" ".join(str(rng.random()) for _ in range(10)) for _ in range(10_000)]
    sightings = find_passages(many, ["\n".join(many[:50])])
    assert [n for n, sighting in enumerate(sightings) if sighting.found] == list(range(50))
    assert found([KILN, "a " * MOST_PASSAGES, TIDE], KILN) == [True, None, False]
    assert found([KILN], "b " * (MOST_PROMPT // 2) + KILN) == [False]


@pytest.mark.parametrize(("words", "sizes"), [(300, (25, 100)), (2, (500, 2000))])
def test_time_grows_with_the_length_not_with_its_square(words: int, sizes: tuple[int, int]) -> None:
    def seconds(size: int) -> float:
        rng = random.Random(size)
        texts = [" ".join(str(rng.randrange(9000)) for _ in range(words)) for _ in range(size)]
        prompt = repr(texts[::2]) * 4
        taken = []
        for _ in range(3):
            start = time.thread_time()
            find_passages(texts, [prompt])
            taken.append(time.thread_time() - start)
        return min(taken)

    one, four = map(seconds, sizes)
    assert four < 10 * one + 0.02


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
        (
            "\U00020000\U00020001\U00020002\U00020003\U00020004\U00020005\U00020006\U00020007",
            "\U00020010" * 9,
        ),
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
    word = "a"
    for _ in range(12):
        word += word.translate({97: "b", 98: "a"})
    opposite = word.translate({97: "b", 98: "a"})
    passage, twin = " ".join([word] * 8), " ".join([opposite] * 8)
    assert found([passage], f"{FILLING} {twin}") == [False]
    assert found([passage], f"{FILLING} {passage}") == [True]


def test_a_passage_beyond_the_bound_is_undecided_beside_a_small_one() -> None:
    huge = "word " * 1_000_000
    assert [one.found for one in find_passages([huge], ["A short prompt."])] == [None]
    small = "Rome has seven hills and a river."
    assert [one.found for one in find_passages([small, huge], [f"Say: {small}"])] == [True, None]
