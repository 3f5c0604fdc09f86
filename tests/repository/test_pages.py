"""Pages that a tired reader likes: short, in plain words, each in the navigation of the site."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from steelyard import Context, Record, evaluate
from steelyard.metrics import Faithfulness

DOCS = Path(__file__).parents[2] / "docs"
PAGES = {str(path.relative_to(DOCS)): path.read_text(encoding="utf-8") for path in DOCS.rglob("*.md")}
MOST_WORDS = 1_200
LONG = ("reference/", "check/")
"""What is looked up, or checked, may be longer than what is read."""

HIGHEST_GRADE = 9.0


@pytest.mark.parametrize("name", [name for name in PAGES if not name.startswith(LONG)])
def test_a_page_is_short(name: str) -> None:
    assert len(PAGES[name].split()) <= MOST_WORDS


@pytest.mark.parametrize("name", [name for name in PAGES if not name.startswith("reference/python/")])
def test_a_page_is_easy_to_read(name: str) -> None:
    text = prose(PAGES[name])
    if len(text.split()) >= 100:  # the formula is made for texts of a hundred words and more
        assert grade(text) <= HIGHEST_GRADE


def test_the_start_page_shows_what_the_local_judge_says() -> None:
    """Its turn, the claims with their evidence, the verdicts, the cause."""
    page = PAGES["index.md"].replace("*", "")
    question, answer = re.findall(r"^> (.+)$", page, re.MULTILINE)
    rows = re.findall(
        r"^\| (.+?) \| \"(.+?)\" \| (not )?supported, probability (\S+) \|$", page, re.MULTILINE
    )
    assert answer == " ".join(claim for claim, *_ in rows)
    passage = Context(text=" ".join(evidence for _, evidence, *_ in rows))
    record = Record(question=question, contexts=(passage,), answer=answer)
    [found] = evaluate([record], metrics=[Faithfulness(claims="sentences")], judge="local", progress=False)
    verdicts = found["faithfulness"].verdicts
    assert [verdict.value for verdict in verdicts] == [not negated for _, _, negated, _ in rows]
    assert [f"{verdict.probability:.2f}".lstrip("0") for verdict in verdicts] == [shown for *_, shown in rows]
    assert found.diagnosis is not None
    assert f"The cause is `{found.diagnosis.cause}`" in page


def test_each_page_is_in_the_navigation_once() -> None:
    site = tomllib.loads((DOCS.parent / "zensical.toml").read_text(encoding="utf-8"))
    assert sorted(_pages_of(site["project"]["nav"])) == sorted(PAGES)


def _pages_of(navigation: Any) -> list[str]:
    if isinstance(navigation, str):
        return [navigation]
    parts = navigation.values() if isinstance(navigation, dict) else navigation
    return [page for part in parts for page in _pages_of(part)]


def prose(page: str) -> str:
    """The sentences of a page: without code, tables, headings and addresses; a name in code is one word."""
    text = re.sub(r"^```.*?^```$", "", page, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"^(\||#|!\[|<|:::).*$", "", text, flags=re.MULTILINE)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"`[^`]*`", "name", text)
    return re.sub(r"^ *(?:[-*]|\d+\.) (.*)", r"\n\1", text, flags=re.MULTILINE)


def grade(text: str) -> float:
    """Flesch-Kincaid's grade level (Kincaid, Fishburne, Rogers & Chissom 1975).

    0.39 words per sentence + 11.8 syllables per word - 15.59. A sentence ends at `.`, `!` or `?`, or
    with its paragraph or list item.
    """
    pieces = re.split(r"[.!?](?=\s|$|\))|\n\s*\n", text)
    sentences = [found for piece in pieces if (found := re.findall(r"[A-Za-z][A-Za-z'’-]*", piece))]
    words = [word for sentence in sentences for word in sentence]
    syllables = sum(map(_syllables, words))
    return 0.39 * len(words) / len(sentences) + 11.8 * syllables / len(words) - 15.59


def _syllables(word: str) -> int:
    """Groups of vowels, less a silent `e`, `es` or `ed` at the end; one at least.

    Of 26,893 words of these pages that CMU's dictionary of pronunciations has, 35,317 against its 35,221.
    """
    word = word.lower()
    groups = len(re.findall(r"[aeiouy]+", word))
    silent = re.search(r"[^aeiouytdl]ed$|[^aeiouylsxzcgh]es$|[^aeiouyl]e$", word)
    return max(1, groups - bool(silent))


def test_the_picture_of_the_demo_moves_only_for_those_who_want_it() -> None:
    picture = (DOCS / "images" / "demo.svg").read_text(encoding="utf-8")
    still, moving = picture.split("@media (prefers-reduced-motion: no-preference) {")
    assert "@keyframes" in moving and "animation" not in still
    assert "://" not in moving.partition("</style>")[2] and len(picture) < 100_000
