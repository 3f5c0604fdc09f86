"""The embedded judge: answers by comparing words, shows its evidence, and says what it cannot do."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from steelyard._internal.loops import CpuThrottle
from steelyard.errors import Cause
from steelyard.judge._static import Vectors, cosine, load, nearest
from steelyard.judge._word import Word, rule, weight
from steelyard.judge._words import entities
from steelyard.judge.local._finding import Finding
from steelyard.judge.local._material import Line, Memory, ReadText, pieces
from steelyard.judge.local._verifier import VERSION, verify
from steelyard.judge.overlap import COMMON, coverage
from steelyard.questions import (
    Answer,
    Capabilities,
    Claims,
    Contradicted,
    Entities,
    Level,
    Noncommittal,
    Part,
    Question,
    Relevant,
    Reply,
    Request,
    Same,
    Sufficient,
    Supported,
    Texts,
    Unanswered,
    Useful,
    View,
    YesNo,
)
from steelyard.scores import Evidence, Usage
from steelyard.text import affirms, asserted, evades, is_polar, iter_sentences, iter_statements, spread

THRESHOLD = 0.5
"""Score from which something counts as found: the middle of the range, .45 to .6, in which the verdicts on
the worked examples (`tests/parts/local_worked.py`) are right most often; not fitted to any data set."""
RELEVANT = 0.3
"""Score from which a sentence counts as relevant: lower, for one sentence rarely takes up all of a question.
With it the worked examples in `tests/judge/local/test_judge.py` come out right; not fitted either."""
_COVERED = (0.05, 0.3, 0.5, 0.7)
"""Shares of a question's telling words at which passages are surely about something else, about its subject,
hold part of what is asked, or all of it.

On 200 questions of HaluEval the passages of another question have less than .19 in 95 of 100 cases, their own
without the sentences that name the answer .51 in the middle, and their own .78.
"""
_FRAGMENT = 4
"""Words from which an answer says by itself what it is about."""

_MOST_WORK = 10_000_000
"""Characters times questions: some seconds of a core at most, and more than any ordinary turn has."""

_MOST_HELD = 50
"""Sentences of one text that are held against others, evenly spread over it if there are more."""
_MOST_READ = 1_000
"""Sentences of a text that are looked at for claims, evenly spread over it if there are more."""

_Work = Generator[None, None, Answer]


class LocalJudge:
    """A judge without a model, a key or a network: a lexical verifier over words and static word vectors.

    Every verdict comes with the passage it rests on and with what is missing or turned round. Its probability
    is the verifier's raw score, not a calibrated one. It reads English best; other scripts are compared word
    by word, or character by character where words are not spaced. What it cannot do honestly (rate, choose,
    invent questions) it leaves to other judges.

    The vectors (16 MB, memory-mapped) are loaded at the first question, once per process; `warm` does it
    earlier, where a tenth of a second matters less.
    """

    name = "local-lexical"
    prompt_version = VERSION

    def __init__(self, *, max_share: float | None = None) -> None:
        """Make a judge.

        Args:
            max_share: Largest share of one core it may use while it works, in (0, 1]. Set it if the judge
                runs inside an application that serves people; None to finish as soon as possible.

        Raises:
            ConfigurationError: If the share is out of range.
        """
        self._pace = CpuThrottle(max_share)
        self._memory = Memory()

    @property
    def capabilities(self) -> Capabilities:
        """Yes/no questions, claims and entities; each question by itself."""
        return Capabilities(
            kinds=frozenset(_ANSWERS),
            independent=True,
            max_questions=10_000,
            max_characters=10_000_000,
            max_work=_MOST_WORK,
            calibrated=False,
        )

    def warm(self) -> None:
        """Load the vectors and the table of word frequencies now.

        Raises:
            MissingDependency: If the package with the vectors is not there.
        """
        load()
        weight("")

    async def answer(self, request: Request) -> Reply:
        """Answer every question, in small slices with pauses between them."""
        answers = await self._pace.drive(
            _Reading(request.view, self._memory, load()).answers(request.questions)
        )
        return Reply(answers=answers, usage=Usage(requests=1))

    async def aclose(self) -> None:
        """Forget the texts read last."""
        self._memory = Memory()


class _Reading:
    """One view and the questions about it."""

    def __init__(self, view: View, memory: Memory, vectors: Vectors) -> None:
        self._view = view
        self._memory = memory
        self._vectors = vectors

    def answers(self, questions: Mapping[str, Question]) -> Generator[None, None, dict[str, Answer]]:
        """Answer the questions one after the other, step by step."""
        found: dict[str, Answer] = {}
        for key, question in questions.items():
            yield
            if (work := _ANSWERS.get(type(question))) is None:
                detail = f"cannot answer {question.kind!r} questions"
                found[key] = Unanswered(cause="unsupported", detail=detail)
            else:
                found[key] = yield from work(self, question)
        return found

    def _texts(self, part: Part, place: int | None = None) -> list[str]:
        """The texts of a part of the view, or the one at a place."""
        found = getattr(self._view, part) or ()
        texts = [found] if isinstance(found, str) else [context.text for context in found]
        return texts if place is None else texts[place : place + 1] if place >= 0 else []

    def _supported(self, question: Supported) -> _Work:
        said = affirms(question.claim)
        texts = self._texts(question.by, question.passage)
        # "Yes." claims what the question asks; taken alone it has no words to look for.
        if said is not None and texts and is_polar(asked := self._view.question or ""):
            claim = asked.strip(" ?？¿").partition(" ")[2] + "."
            return (yield from self._held(claim, texts, question.by, question.passage or 0, replies=said))
        return (yield from self._held(question.claim, texts, question.by, question.passage or 0))

    def _same(self, question: Same) -> _Work:
        texts = ["\n\n".join(question.listed)] if question.listed else self._texts(question.among)
        return (yield from self._held(question.claim, texts, question.among))

    def _held(
        self, claim: str, texts: Sequence[str], by: Part, first: int = 0, *, replies: bool | None = None
    ) -> _Work:
        """A claim against texts, of which the first is number `first` of its part.

        Of a bare yes or no (`replies`) what the question asks about is the claim. A no needs evidence that
        says otherwise: that nothing is said of it is not enough.
        """
        if not texts:
            return _nothing(by)
        finding, read = yield from self._find(claim, texts)
        found = finding.probability
        if replies:
            # What forbids a yes keeps it below one half, however many of the words are there.
            found = finding.order_free * (1 if finding.not_contradicted else 0.49)
        elif replies is False:
            found = max(THRESHOLD, finding.conflict) if finding.conflict >= THRESHOLD else 0.3
        return _verdict(found, finding.reason, _evidence(finding, read, by, first))

    def _contradicted(self, question: Contradicted) -> _Work:
        texts = self._texts(question.by)
        if not texts:
            return _nothing(question.by)
        finding, read = yield from self._find(question.claim, texts)
        evidence = _evidence(finding, read, question.by, 0) if finding.conflict >= THRESHOLD else ()
        return _verdict(finding.conflict, finding.reason, evidence)

    def _find(
        self, claim: str, texts: Sequence[str]
    ) -> Generator[None, None, tuple[Finding, list[ReadText]]]:
        """The worst finding over the sentences of a claim, which is one sentence as a rule."""
        read = yield from self._memory.read(texts, self._vectors)
        # "According to the text" and "probably" are words of the answer that no source has.
        (said,) = yield from self._memory.read([asserted(claim) or claim], self._vectors)
        # One unsupported sentence makes a claim of several unsupported.
        worst: Finding | None = None
        for line in spread(said.lines, _MOST_HELD):
            finding = yield from verify(line, read)
            worst = finding if worst is None else min(worst, finding, key=lambda found: found.probability)
        return worst or Finding(), read

    def _useful(self, question: Useful) -> _Work:
        """Whether the passage has the words of at least one sentence of what was arrived at.

        Penalties do not count: what this passage lacks another may bring. A few words ("Paris") are held
        against the passage together with the question, for they alone may stand anywhere.
        """
        passages = self._texts("contexts", question.context)
        (toward,) = self._texts(question.toward) or [""]
        if not passages or not toward:
            return _nothing("contexts" if not passages else question.toward)
        read = yield from self._memory.read(passages, self._vectors)
        goal, asked = yield from self._memory.read([toward, self._view.question or ""], self._vectors)
        best, score = Finding(), 0.0
        for line in spread(goal.lines, _MOST_HELD):
            finding = yield from verify(line, read)
            if finding.signals.mean > score:
                best, score = finding, finding.signals.mean
        if asked.lines and sum(len(line.words) for line in goal.lines) < _FRAGMENT:
            # The last line: in a long message the question comes at its end.
            around = yield from verify(asked.lines[-1], read)
            score = (score + around.signals.mean) / 2
        return _verdict(score, best.reason, _evidence(best, read, "contexts", question.context))

    def _relevant(self, question: Relevant) -> _Work:
        if not self._view.question:
            return _nothing("question")
        asked, said = yield from self._memory.read([self._view.question, question.text], self._vectors)
        score, reason = yield from relevance(asked, said, alone=question.of == "answer")
        return YesNo(value=score >= RELEVANT, probability=score, reason=reason)

    def _sufficient(self, question: Sufficient) -> _Work:
        """Which of the words that a question is made of the passages have, together.

        What they say of them is not understood: passages about the right things that lack the one fact asked
        for are taken for sufficient.
        """
        texts = self._texts("contexts")
        if not texts or not self._view.question:
            return _nothing("contexts" if not texts else "question")
        (asked,) = yield from self._memory.read([self._view.question], self._vectors)
        read = yield from self._memory.read(texts, self._vectors)
        have = frozenset[str]().union(*(text.stems for text in read))
        found = coverage((word for line in asked.lines for word in line.words), have)
        chances = _between_levels(found.share)
        missing = f"the contexts do not mention {', '.join(found.missing[:5])}" if found.missing else ""
        return Level(value=max(chances, key=chances.__getitem__), probabilities=chances, reason=missing)

    def _claims(self, question: Claims) -> _Work:
        """The sentences of a text that state something."""
        found: list[str] = []
        for text in self._texts(question.of):
            for sentence in iter_statements(text, self._view.question or "", most=_MOST_READ):
                yield
                if sentence is not None:
                    found.append(sentence.text)
        return Texts(items=tuple(found))

    def _entities(self, question: Entities) -> _Work:
        found: dict[str, str] = {}
        for text in self._texts(question.of):
            for sentence in pieces(text):
                yield
                for entity in entities(sentence.text, self._vectors.proper):
                    # One entity once, however it is written; the first writing is shown.
                    found.setdefault(" ".join(entity.casefold().split()), entity)
        return Texts(items=tuple(found.values()))

    def _noncommittal(self, _: Noncommittal) -> _Work:
        if not self._view.answer:
            return _nothing("answer")
        evading = total = 0
        for sentence in iter_sentences(self._view.answer):
            yield
            total += len(sentence.text)
            evading += len(sentence.text) if evades(sentence.text) else 0
        # An answer without a letter or digit ("...", "-") says nothing at all.
        share = evading / total if total else 1.0
        return _verdict(share, f"{share:.0%} of the answer is in evading sentences")


_ANSWERS: Mapping[type[Question], Callable[[_Reading, Any], _Work]] = {
    Supported: _Reading._supported,
    Contradicted: _Reading._contradicted,
    Same: _Reading._same,
    Useful: _Reading._useful,
    Relevant: _Reading._relevant,
    Sufficient: _Reading._sufficient,
    Noncommittal: _Reading._noncommittal,
    Claims: _Reading._claims,
    Entities: _Reading._entities,
}
"""What it answers, and how."""


def _between_levels(share: float) -> dict[float, float]:
    """The two levels of sufficiency that a share of the question's words lies between, by nearness."""
    above = next((at for at, bar in enumerate(_COVERED) if share < bar), len(_COVERED))
    if above in (0, len(_COVERED)):
        return {float(max(0, above - 1)): 1.0}
    low, high = _COVERED[above - 1], _COVERED[above]
    near = (share - low) / (high - low)
    return {float(above - 1): 1 - near, float(above): near}


def _nothing(part: Part) -> Unanswered:
    cause: Cause = f"missing_{part}"  # type: ignore[assignment]
    return Unanswered(cause=cause, detail=f"there is no {part.replace('_', ' ')} to look at")


def _verdict(found: float, reason: str, evidence: tuple[Evidence, ...] = ()) -> YesNo:
    return YesNo(value=found >= THRESHOLD, probability=min(1.0, found), reason=reason, evidence=evidence)


def _evidence(finding: Finding, texts: Sequence[ReadText], by: Part, offset: int) -> tuple[Evidence, ...]:
    window = finding.window
    if window is None:
        return ()
    source = texts[window.text]
    lines: tuple[Line, ...] = source.lines[window.first : window.last]
    start, end = lines[0].start, lines[-1].end
    found = Evidence(start=start, end=end, text=source.text[start:end], notes=finding.notes)
    if by == "contexts":
        return (replace(found, context=window.text + offset),)
    place = {"in": by, "passage": window.text + offset} if by == "reference_contexts" else {"in": by}
    return (replace(found, notes={**finding.notes, **place}),)


_MOST_LINES = 50
"""Sentences of a statement that are held against the question, evenly spread over it if there are more."""
_TOUCHES = 0.25
"""Score from which a sentence has to do with the question."""
_WANTED = re.compile(
    r"(?P<number>when|how (?:many|much|old|long|far|high)|(?:what|which) year|what date)"
    r"|(?P<name>\b(?:who|whom|whose|where|which) )"
)
"""What asks for a number, or for a name."""


def relevance(asked: ReadText, said: ReadText, *, alone: bool) -> Generator[None, None, tuple[float, str]]:
    """Hold a sentence against a question.

    The score is the share of the question's telling words that the sentence has, or has something similar to,
    averaged with their cosine. A sentence that brings the number or name asked for gets half of what is
    missing.

    `alone` where it may be all there is, as in the answer "In 1879."
    """
    if not asked.lines or not said.lines:
        return 0.0, "there are no words to compare"
    # The longest sentence of a message asks; "Hello!" and "Thanks." stand around it.
    question = max(asked.lines, key=lambda line: len(line.words))
    best: tuple[float, list[str]] = (0.0, [])
    question.look_up()
    for line in spread(said.lines, _MOST_LINES):
        yield
        line.look_up()
        yield
        best = max(best, _score(question, line), key=lambda pair: pair[0])
    score, shared = best
    reason = f"shares {', '.join(shared[:5])}" if shared else "shares no telling word"
    # A number of another topic is not an answer.
    if (new := _brought(asked, said)) and (alone or score >= _TOUCHES):
        score += (1 - score) / 2
        reason += f"; has {new.surface!r} where a {new.kind} is asked for"
    return min(1.0, max(0.0, score)), reason


def _brought(asked: ReadText, said: ReadText) -> Word | None:
    """The first number or name that a sentence brings where the question asks for one; numbers go first."""
    wanted = max((match.lastgroup or "" for match in _WANTED.finditer(asked.text.casefold())), default="")
    words = (word for line in said.lines for word in line.words)
    return next((word for word in words if word.kind == wanted and word.stem not in asked.stems), None)


def _score(question: Line, line: Line) -> tuple[float, list[str]]:
    telling = [(place, word) for place, word in enumerate(question.words) if word.stem not in rule("asking")]
    if not telling:
        return max(0.0, cosine(question.mean, line.mean)), []
    likest = nearest(question.vectors, line.vectors).tolist()
    total = sum(word.weight for _, word in telling)
    found = (
        sum(word.weight * (1.0 if word.stem in line.stems else likest[place]) for place, word in telling)
        / total
    )
    shared = [word.surface for _, word in telling if word.stem in line.stems and word.weight > COMMON]
    return (found + max(0.0, cosine(question.mean, line.mean))) / 2, shared
