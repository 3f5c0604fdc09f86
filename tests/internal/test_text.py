"""Texts as they may be shown: no character acts, and no key is left."""

from __future__ import annotations

import sqlite3
import time
import unicodedata
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard._internal.text import (
    error_place,
    error_words,
    printable,
    redacted,
    redacted_url,
    shorten,
    visible,
)
from steelyard.errors import SinkError


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


KEY = "planted-key-93f1"


@pytest.mark.parametrize(
    "text",
    [
        f"https://user:{KEY}@host/v1 cannot be reached",
        f"GET https://host/v1?api_key={KEY}&page=2",
        f"https://host/?a=1&access_token={KEY}",
        f"Authorization: Bearer {KEY}",
        f"authorization: basic {KEY}==",
        f'{{"api_key": "{KEY}"}}',
        f"DD-API-KEY: {KEY}",
        f"password={KEY}; host=db",
        f"Incorrect API key provided: sk-proj-{KEY}",
        f"lsv2_pt_{KEY} is not a key",
        f"the server said {KEY}",
    ],
)
def test_keys_leave_a_text(text: str) -> None:
    shown = redacted(text, secrets=[KEY] if text.startswith("the server") else [])
    assert "93f1" not in shown
    assert "***" in shown


def test_ordinary_text_stays() -> None:
    text = "The monkey: a key figure at https://host/path?page=2; tokens: 12; basic facts, bearer of news"
    assert redacted(text, secrets=["a", ""]) == text


def test_addresses_are_shown_without_user_query_and_fragment() -> None:
    assert redacted_url(f"https://u:{KEY}@host:8080/a/b?api_key={KEY}#{KEY}") == "https://host:8080/a/b"
    assert KEY not in redacted_url(f"http://[{KEY}")
    assert KEY not in redacted_url(f"sqlite:///file.db?key={KEY}")
    assert KEY not in redacted_url(f"nats:token={KEY}")


def test_errors_are_shown_by_type_and_status() -> None:
    assert error_words(ValueError(KEY)) == "ValueError"
    assert error_words(SinkError(KEY, cause="unreachable")) == "SinkError (unreachable)"
    for status, words in ((429, "ValueError (429)"), ("x" * 81, "ValueError"), (0, "ValueError")):
        error = ValueError(KEY)
        error.status_code = status  # type: ignore[attr-defined]
        assert error_words(error) == words
    assert error_words(OSError(28, "No space left on device", KEY)) == "OSError (No space left on device)"
    with closing(sqlite3.connect(":memory:")) as db, pytest.raises(sqlite3.OperationalError) as caught:
        db.execute(f'SELECT "{KEY}" FROM nowhere')
    assert error_words(caught.value) == "OperationalError (SQLITE_ERROR)"


def test_time_grows_with_the_length_only() -> None:
    def seconds(times: int) -> float:
        text = ("://" + "a" * 50 + "api_key" * 50 + "=" + "bearer " * 20 + "sk-" * 50) * times
        started = time.thread_time()
        redacted(text)
        return time.thread_time() - started

    small = min(seconds(20) for _ in range(3))
    assert min(seconds(80) for _ in range(3)) < 12 * small


def test_of_two_keys_of_which_one_begins_the_other_nothing_is_left() -> None:
    for keys in (["plain-words", "plain-words-and-more"], ["plain-words-and-more", "plain-words"]):
        assert redacted("plain-words-and-more, plain-words", secrets=keys) == "***, ***"


def test_an_error_of_a_user_is_shown_by_where_it_was_raised() -> None:
    def raises() -> None:
        raise ValueError(KEY)

    with pytest.raises(ValueError) as caught:
        raises()
    line = raises.__code__.co_firstlineno + 1
    assert error_place(caught.value) == f"ValueError ({__file__}, line {line})"
    assert error_place(ValueError(KEY)) == "ValueError"
