from __future__ import annotations

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from steelyard._internal.text import printable, shorten, visible


def test_terminal_sequences_are_taken_apart() -> None:
    assert printable("\x1b[2J\x1b]0;title\x07gone\x9b31m") == "�[2J�]0;title�gone�31m"


def test_no_character_reorders_or_breaks_a_line() -> None:
    assert printable("a\u202eb\u2066c\u200fd\u2028e\u2029f\x85g") == "a�b�c�d e f g"


def test_lines_are_kept_where_they_are_asked_for() -> None:
    assert printable("a\r\nb\tc\u2028d\x1b", lines=True) == "a\nb\tc\nd�"
    assert printable("a\r\n  b\tc") == "a b c"


def test_scripts_and_emoji_are_left_alone() -> None:
    text = "naïve 東京 हिन्दी می‌خواهم 👩‍🔬 שלום"
    assert printable(text) == text


@given(st.text(st.characters(codec=None, categories=["Cc", "Cf", "Cs", "Zl", "Zp", "L"])))
def test_nothing_that_acts_is_left(text: str) -> None:
    shown = printable(text)
    assert not {unicodedata.category(letter) for letter in shown} & {"Cc", "Zl", "Zp", "Cs"}
    assert not {unicodedata.bidirectional(letter) for letter in shown} & {
        *("RLO", "LRO", "RLE", "LRE", "PDF", "RLI", "LRI", "FSI", "PDI"),
    }


@given(st.text(st.characters(codec=None, categories=["Cc", "Cf", "Cs", "Zl", "Zp", "L"])))
def test_what_is_made_visible_keeps_every_position(text: str) -> None:
    shown = visible(text)
    assert len(shown) == len(text)
    assert all(new in (old, " ", "\N{REPLACEMENT CHARACTER}") for old, new in zip(text, shown, strict=True))
    assert not {unicodedata.category(letter) for letter in shown.replace("\n", "").replace("\t", "")} & {
        *("Cc", "Zl", "Zp", "Cs"),
    }


def test_a_shortened_text_is_one_harmless_line_of_that_width() -> None:
    assert shorten("one\n\x1b[2Jtwo", 40) == "one �[2Jtwo"
    assert shorten("one two three", 8) == "one two…"
    assert len(shorten("x" * 10_000, 50)) == 50
