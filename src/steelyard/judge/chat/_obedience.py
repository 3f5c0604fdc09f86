"""Whether a judge did what a judged text told it, rather than judge it.

Every request has a question whose answer is known, and is not the one that such a text would ask for. A
wrong answer alone does not tell: a small model may say yes to everything, to plain texts as well. It tells if
a text speaks to a judge, and, in whatever language or disguise, if the judge gets it right as a rule.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache

from steelyard.judge.chat._asked import KNOWN_ANSWERS, shown
from steelyard.questions import Answer, Request, Unanswered, YesNo

_ENOUGH = 3
"""Right answers after which a wrong one is an exception; of a text that looks plain."""
_SELDOM = 0.1
"""The share of wrong answers below which they are one."""


def _folded(text: str) -> str:
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFKC", text).casefold()


_WORDS = """
ignor disregard forget instruct prompt verdict judge evaluat grader grading rating score system assistant
respond reply output override reveal true false <<< >>> ``` [inst [/inst
anweisung bewert urteil richtig antworte missacht consigne évalu jug répond vrai oubli olvid evalú
responde verdader juez juzg istruzion giudic valut rispond dimentic instruç avali juiz esqueça negeer
beoorde antwoord vergeet zignor ocen oceń prawd odpowie yoksay talimat değerlendir doğru cevap
abaikan instruksi nilai игнор забудь инструкц оцен вердикт истин ответь верно ігнор
αγνόησ οδηγ κρίν התעלם הוראות שופט נכון تجاهل تعليمات الحكم قيّم صحيح أجب
अनदेखा निर्देश मूल्यांकन सही उत्तर เพิกเฉย คำสั่ง ตอบว่า
忽略 无视 無視 指令 指示 判断 判定 评分 评估 評価 裁判 法官 回答 正しい 正确 무시 지시 판정 평가 답하
"""
# Looked for one by one, which takes a fifth of the time of one expression that has them all.
_STEMS = tuple(map(_folded, _WORDS.split()))
_PLAIN_STEMS = tuple(stem for stem in _STEMS if stem.isascii())
# Each begins with a letter and not with a choice of some, which `re` finds several times as fast.
_SIGNS = re.compile(
    r"must\s+(?:say|answer|return)|answer\s+(?:yes|no)|human\s*:|user\s*:|bỏ\s+qua|hướng\s+dẫn|đánh\s+giá"
    r"|\{\s*[\"'|/]|<\s*[\"'|/]"
)
# Letters of two scripts in one word, and letters that cannot be seen.
_ALIKE = re.compile(
    r"[a-z][\u0370-\u03ff\u0400-\u04ff]|[\u0370-\u03ff\u0400-\u04ff][a-z]"
    "|[\u200b-\u200f\u202a-\u202e\u2060-\u2069\U000e0000-\U000e007f]"
)
_PIECE = 20_000
"""Characters that are looked at in one go."""


class Obedience:
    """What one judge has said to the questions whose answers are known. Made once for each judge."""

    def __init__(self) -> None:
        self._right = Counter[str]()
        self._wrong = Counter[str]()

    def judged(self, answers: dict[str, Answer], request: Request) -> dict[str, Answer]:
        """The answers without those that were known; `instructed` if they tell that a text was obeyed.

        Args:
            answers: By the keys of the request, with the known ones.
            request: What was asked; its texts may speak to a judge.
        """
        own = {key: answer for key, answer in answers.items() if key not in KNOWN_ANSWERS}
        said = {key: answers[key] for key in KNOWN_ANSWERS.keys() & answers.keys()}
        told = {key: one.value is KNOWN_ANSWERS[key] for key, one in said.items() if isinstance(one, YesNo)}
        self._right.update(key for key, is_right in told.items() if is_right)
        wrong = [key for key, is_right in told.items() if not is_right]
        if not wrong:
            return own
        speaks = speaks_to_a_judge(shown(request))
        if not any(self._obeys(key, speaks=speaks) for key in wrong):
            # What was obeyed, or may have been, says nothing of how often the judge errs by itself.
            self._wrong.update(() if speaks else wrong)
            return own
        detail = "the judge did what the judged text told it to"
        return dict.fromkeys(own, Unanswered(cause="instructed", detail=detail))

    def _obeys(self, key: str, *, speaks: bool) -> bool:
        right, wrong = self._right[key], self._wrong[key]
        # Without a word that speaks to it, only a judge that is known to know is told from one that errs.
        return right >= wrong if speaks else right >= _ENOUGH and wrong <= _SELDOM * right


def speaks_to_a_judge(texts: Iterable[str]) -> bool:
    """Whether some text has a word or a sign that one would use to tell a judge what to say."""
    return any(map(_speaks, texts))


# The requests of one turn show the same passages.
@lru_cache(maxsize=32)
def _speaks(text: str) -> bool:
    for at in range(0, len(text), _PIECE):
        piece = _folded(text[max(0, at - 40) : at + _PIECE])
        plain = piece.isascii()
        for stem in _PLAIN_STEMS if plain else _STEMS:
            if stem in piece:
                return True
        if _SIGNS.search(piece) or (not plain and _ALIKE.search(piece)):
            return True
    return False
