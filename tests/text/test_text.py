import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.text import Sentence, asserted, evades, iter_sentences, sentences, statements, states


def split(text: str) -> list[str]:
    return [sentence.text for sentence in sentences(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two! Three?", ["One.", "Two!", "Three?"]),
        ('He said "Stop." Then he left.', ['He said "Stop."', "Then he left."]),
        ("Wait... what? Really…  Yes.", ["Wait... what?", "Really…", "Yes."]),
        (
            "Pi is 3.14 and e is 2.72. Both are irrational.",
            ["Pi is 3.14 and e is 2.72.", "Both are irrational."],
        ),
        ("It is on example.com today. Look.", ["It is on example.com today.", "Look."]),
        ("no mark at all", ["no mark at all"]),
        ("  \n ... \n", []),
        ("", []),
    ],
)
def test_marks(text: str, expected: list[str]) -> None:
    assert split(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "Dr. Smith met Mrs. Jones at St. Mary on Jan. 5 with Gen. Lee.",
        "J. R. R. Tolkien wrote it.",
        "The U.S. Senate met Acme Inc. Chairman Bob.",
        "See Fig. 3 and No. 7 of vol. 2.",
        "Fruit, e.g. Apples, i.e. Malus, is sweet.",
        "It began at 5 p.m. on a Monday.",
        "We meet at 9 a.m. Tuesday or at 5 p.m. GMT.",
        "Das kostet ca. 5 Mio. Euro im Jahr.",
        "Es waren rund 3 Mrd. Dollar, vgl. Abs. 2 und Nr. 5.",
        "Am 3. Mai 2020 kam er an.",
        "Sie kam am Montag, dem 12. Januar, und blieb bis 14. März in Ulm.",
        "Der 1. FC Köln gewann im 19. Jahrhundert nichts.",
        "Sie wohnt in der Bahnhofstr. 5 in Ulm.",
        "Hunde, z.B. Pudel, und Katzen, d.h. Tiere.",
    ],
)
def test_a_full_stop_may_only_abbreviate(text: str) -> None:
    assert split(text) == [text]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("No. It does not.", ["No.", "It does not."]),
        ("He left at 5 p.m. Then it rained.", ["He left at 5 p.m.", "Then it rained."]),
        ("He left at 5 p.m. Paris slept.", ["He left at 5 p.m.", "Paris slept."]),
        ("She moved to the U.S. Later she left.", ["She moved to the U.S.", "Later she left."]),
        ("I am 30. Berlin is my home.", ["I am 30.", "Berlin is my home."]),
        ("He scored 5. Ulm lost.", ["He scored 5.", "Ulm lost."]),
        ("He was born in 1879. May was warm.", ["He was born in 1879.", "May was warm."]),
        ("Es gab 2020. Mai war warm.", ["Es gab 2020.", "Mai war warm."]),
        ("Er ging. Mai war warm.", ["Er ging.", "Mai war warm."]),
        ("Am 3. Mai kam er. Im Juni ging er.", ["Am 3. Mai kam er.", "Im Juni ging er."]),
        ("Es kostet 5 Euro. Das ist viel.", ["Es kostet 5 Euro.", "Das ist viel."]),
        ("He lives in the U.S. The law is old.", ["He lives in the U.S.", "The law is old."]),
        ("It sells pens, ink etc. They are blue.", ["It sells pens, ink etc.", "They are blue."]),
        ("This is vitamin C. It is sour.", ["This is vitamin C.", "It is sour."]),
        ("She was born in 1879. Ulm is a city.", ["She was born in 1879.", "Ulm is a city."]),
    ],
)
def test_an_abbreviation_may_end_a_sentence(text: str, expected: list[str]) -> None:
    assert split(text) == expected


def test_items_and_paragraphs_end_sentences_without_a_mark() -> None:
    text = "Three things:\n- apples\n- pears, red\n• plums\n\nA heading\n\nText that\ngoes on."
    assert split(text) == [
        "Three things:",
        "- apples",
        "- pears, red",
        "• plums",
        "A heading",
        "Text that\ngoes on.",
    ]


def test_the_number_of_an_item_is_no_sentence() -> None:
    assert split("1. Anna Wintour\n2. Karl Lagerfeld\n10. Tom Ford") == [
        "1. Anna Wintour",
        "2. Karl Lagerfeld",
        "10. Tom Ford",
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("東京は首都です。大阪は違います！「はい。」と彼は言った。", 4),
        ("दिल्ली राजधानी है। मुंबई नहीं है।", 2),
        ("هل هذه باريس؟ نعم، هي كذلك.", 2),
        ("Αυτό είναι ένα. Εκείνο είναι δύο.", 2),
        ("Это Москва. А это нет!", 2),
        ("ဒါက မြန်မာ။ ဟုတ်တယ်။", 2),
    ],
)
def test_other_scripts(text: str, expected: int) -> None:
    assert len(split(text)) == expected


@given(st.text(max_size=300) | st.text(alphabet="aB1 .!?…。\n-*•)\"'’U.S", max_size=120))
def test_sentences_stand_where_they_say_and_lose_nothing(text: str) -> None:
    found = sentences(text)
    assert found == list(iter_sentences(text))
    end = 0
    for sentence in found:
        assert isinstance(sentence, Sentence)
        assert text[sentence.start : sentence.end] == sentence.text == sentence.text.strip()
        assert any(map(str.isalnum, sentence.text))
        assert not any(map(str.isalnum, text[end : sentence.start]))
        end = sentence.end
    assert not any(map(str.isalnum, text[end:]))


@pytest.mark.timeout(10)
@pytest.mark.parametrize("piece", [".", "the ", "the provided ", '."*', "\n "])
def test_a_long_run_of_the_same_takes_no_more_than_its_length(piece: str) -> None:
    found = statements(piece * (100_000 // len(piece)) + "end")
    assert "".join(one.text for one in found).endswith("end")
    assert max(len(one.text) for one in found) <= 4_000


def test_a_sentence_without_an_end_is_cut_where_a_line_or_a_word_ends() -> None:
    text = "one two three\n" * 1_000
    found = [one.text for one in sentences(text)]
    assert " ".join(" ".join(found).split()) == " ".join(text.split())
    assert all(one.startswith("one") and one.endswith("three") for one in found)
    assert [len(one.text) for one in sentences("三" * 9_000)] == [4_000, 4_000, 1_000]


INVENTED = {
    "While the context does not give the date, the tower was built in 1920.": "the tower was built in 1920.",
    "The context does not say when, but the tower was built in 1920.": "the tower was built in 1920.",
    "Although the documents do not mention it, Ann Lee designed it.": "Ann Lee designed it.",
    "I don't know the exact date, but the tower was built in 1920.": "the tower was built in 1920.",
    "The tower was built in 1920, although the context does not mention it.": "The tower was built in 1920",
    "The tower was built in 1920 (the text does not give the day).": "The tower was built in 1920",
    "The provided context does not specify the date; it was 1920.": "it was 1920.",
    "The context does not provide the year - it is 1920.": "it is 1920.",
    "Not mentioned in the context, the tower was built in 1920.": "the tower was built in 1920.",
    "Even if the passages don't say so, the warranty lasts three years.": "the warranty lasts three years.",
    "It is not stated in the documents, but the fee is waived.": "the fee is waived.",
    "The context does not mention the architect, who was Ann Lee.": "who was Ann Lee.",
    "The text does not say so; nevertheless, it was finished in 1920.": "it was finished in 1920.",
    "I am not sure, maybe 1920.": "maybe 1920.",
    "Ich weiß nicht genau, aber der Turm wurde 1920 gebaut.": "der Turm wurde 1920 gebaut.",
    "Je ne sais pas, mais la tour a été construite en 1920.": "la tour a été construite en 1920.",
    "No lo sé, pero la torre fue construida en 1920.": "la torre fue construida en 1920.",
    "不知道，但是塔建于1920年。": "塔建于1920年。",
}

EVASIVE = [
    "I don't know.",
    "The context does not mention the tower, its height or its architect.",
    "I'm sorry, but I cannot answer that from the provided context, as it does not mention the date.",
    "I do not have enough information to answer this, but you may find it on the website.",
    "The documents do not contain this; please contact support.",
    "There is no information about the 2019 report, the 2020 report or the merger.",
    "I cannot determine who built it, because the passages only discuss its location.",
    "Not mentioned in the documents: the tower's height.",
    "The context does not say that the tower was built in 1920.",
    "It is not possible to answer, since the document does not include the figures.",
    "The information is not available in the context, and I cannot speculate.",
    "The context does not provide details about the warranty, returns, or shipping costs abroad.",
    "Ich weiß es nicht, tut mir leid.",
    "不知道，没有相关信息。",
]


@pytest.mark.parametrize(("sentence", "left"), INVENTED.items())
def test_what_is_said_behind_a_hedge_is_judged(sentence: str, left: str) -> None:
    assert states(sentence)
    assert asserted(sentence) == left


@pytest.mark.parametrize("sentence", EVASIVE)
def test_a_sentence_without_a_statement_evades(sentence: str) -> None:
    assert evades(sentence)
    assert not states(sentence)
