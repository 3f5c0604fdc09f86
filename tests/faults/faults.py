"""The faults: where each one sits in a chain, and which causes name it."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

from faults.corpus import Case, Passage, cases, elsewhere, likeness, passages

Fault = Literal["none", "missing", "narrow", "reversed", "cut", "unshown", "altered", "elsewhere"]
FAULTS: tuple[Fault, ...] = get_args(Fault)

EXPECTED: dict[Fault, frozenset[str | None]] = {
    "none": frozenset({None}),
    "missing": frozenset({"passage_not_found"}),
    "narrow": frozenset({"passage_lost"}),
    "reversed": frozenset({"passage_lost"}),
    "cut": frozenset({"passage_cut"}),
    "unshown": frozenset({"passages_not_shown"}),
    "altered": frozenset({"contradicted", "invented"}),
    "elsewhere": frozenset({"outside_collection"}),
}
"""The causes that name a fault; that the answer says something else than its source may be called either."""

DONT_KNOW = "I could not find that in the documents."


@dataclass(frozen=True)
class Setting:
    """One turn to run."""

    fault: Fault
    case: Case
    seed: int
    text: str = "harbour"
    """Which text the chain searches."""
    own_words: bool = False
    """Whether the model answers in words of its own, where the text has them; else in the passage's."""

    @property
    def index(self) -> list[Passage]:
        """What the index holds."""
        held = list(passages(self.text))
        random.Random(self.seed).shuffle(held)
        return [one for one in held if self.fault != "missing" or one != self.case.passage]

    @property
    def fetched(self) -> int:
        """How many passages the index returns."""
        return 3 if self.fault in ("none", "missing", "cut") else 6

    @property
    def kept(self) -> int:
        """How many of them the step after it keeps."""
        return {"narrow": 1, "reversed": 2}.get(self.fault, 3)

    def search(self, query: str) -> list[Passage]:
        """The passages most like a query, the best first; with a narrow k, the best of them is second."""
        best = sorted(self.index, key=lambda one: -likeness(query, one.text))[: self.fetched]
        return [best[1], best[0], *best[2:]] if self.fault == "narrow" else best

    def rerank(self, found: Sequence[Passage]) -> list[Passage]:
        """What is left after the second step, in its order."""
        return list(reversed(found) if self.fault == "reversed" else found)[: self.kept]

    def shown(self, texts: Sequence[str]) -> str:
        """What the prompt has of some passages."""
        if self.fault == "unshown":
            return ""
        if self.fault == "cut":
            # The sentence that answers, and all behind it, does not fit.
            text = next((text for text in texts if self.case.answer in text), "")
            if not text:
                return "\n\n".join(texts)  # of a size that a framework tries
            others = [other for other in texts if other != text]
            return "\n\n".join([*others, text[: max(20, text.index(self.case.answer))]])
        return "\n\n".join(texts)

    def reply(self, prompt: str) -> str:
        """What the model says: the sentence that answers if it was shown; else it declines or makes it up."""
        if self.case.answer and self.case.answer in prompt:
            return self.wrong(self.case) if self.fault == "altered" else self.right
        if self.seed % 2:
            return DONT_KNOW
        others = [one for one in cases(self.text) if one != self.case]
        return self.wrong(random.Random(self.seed).choice(others))

    @property
    def right(self) -> str:
        """The right answer, as this model puts it."""
        return (self.own_words and self.case.said) or self.case.answer

    def wrong(self, case: Case) -> str:
        """A wrong answer to a question."""
        return case.wrong or altered(case.answer)


def settings(
    fault: Fault, number: int, seed: int, *, text: str = "harbour", own_words: bool = False
) -> list[Setting]:
    """Turns with a fault, drawn at random."""
    draw = random.Random(f"{fault} {seed}")
    pool = elsewhere(text) if fault == "elsewhere" else [one for one in cases(text) if _is_found(one, text)]
    if fault == "cut":
        # A first sentence begins behind the heading alone: of that passage nothing would be left.
        pool = [case for case in pool if case.passage and case.answer != case.passage.sentences[0]]
    return [
        Setting(fault, draw.choice(list(pool)), draw.randrange(1_000_000), text, own_words)
        for _ in range(number)
    ]


def _is_found(case: Case, text: str) -> bool:
    """Whether the index returns the passage first, so that the chain is fine without a fault."""
    plain = Setting("none", case, 0, text)
    return replace(plain, fault="altered").search(case.question)[0] == case.passage


_SWAPS = (("not ", ""), (" is ", " is not "), (" are ", " are not "), (" must ", " need not "))


def altered(sentence: str) -> str:
    """A sentence with its number changed, or turned round if it has none."""
    digits = [word for word in sentence.split() if word.strip(".,:").isdigit()]
    if digits:
        number = digits[0].strip(".,:")
        return sentence.replace(number, str(int(number) + 17), 1)
    turned = next((pair for pair in _SWAPS if pair[0] in sentence), None)
    return (
        sentence.replace(*turned, 1) if turned else f"It is not true that {sentence[0].lower()}{sentence[1:]}"
    )
