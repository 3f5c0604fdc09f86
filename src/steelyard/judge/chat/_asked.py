"""Questions as a chat model is asked them: with a nonce in the keys, and with some whose answers are known.

In the reply, keys end in letters that no author can know, so that an answer is told from what was shown by
where it stands and never by what it says: a text that quotes verdicts quotes none of these keys. They are
derived from the material with a secret of this process, so that the same material makes the same prompt
(which caches need).
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from steelyard.questions import Contradicted, Noncommittal, Predicate, Question, Request, Same

KNOWN_QUESTIONS: Mapping[str, Question] = {
    "q901": Predicate(criterion="Is the number 7 larger than the number 2?", needs=frozenset()),
    "q902": Predicate(criterion="Is the number 3 larger than the number 8?", needs=frozenset()),
}
"""They need nothing in view, and no request is as long as their keys.

One goes along whose right answer is not the one that a text would ask for which speaks to the judge. To
look for the words of such texts alone missed 48 of 61 of them, in 40 languages and disguises.
"""
KNOWN_ANSWERS: Mapping[str, bool] = {"q901": True, "q902": False}
"""What a judge that judges says to them, by their keys."""

_SECRET = secrets.token_bytes(16)
_LETTERS = 5


@dataclass(frozen=True, slots=True, repr=False)
class PreparedRequest:
    """A request as a model is asked."""

    request: Request
    """The questions under their own keys, with those whose answers are known."""
    nonce: str
    """What every key of the reply ends in."""

    def on_the_wire(self) -> Request:
        """The request with the keys of the reply, for its schema."""
        named = {f"{key}{self.nonce}": question for key, question in self.request.questions.items()}
        return replace(self.request, questions=named)


def asked(request: Request) -> PreparedRequest:
    """Make a request ready, with a question that tells whether the judge obeys what it reads."""
    no_is_good = {isinstance(one, Contradicted | Noncommittal) for one in request.questions.values()}
    known = {f"q90{2 - is_no}": KNOWN_QUESTIONS[f"q90{2 - is_no}"] for is_no in sorted(no_is_good)}
    questions = {**request.questions, **known}
    return PreparedRequest(replace(request, questions=questions), _nonce(list(shown(request))))


def without_nonce(key: str) -> str:
    """A question's own key, from one of the reply."""
    return key.partition("_")[0]


def shown(request: Request) -> Iterator[str]:
    """Every text of others that a request shows."""
    view = request.view
    yield from (context.text for context in (*(view.contexts or ()), *(view.reference_contexts or ())))
    yield from filter(None, (view.question, view.answer, view.reference))
    for question in request.questions.values():
        if question.quoted:
            yield question.quoted
        if isinstance(question, Same):
            yield from question.listed


def _nonce(texts: list[str]) -> str:
    """Some letters that are in none of the texts; a digit would run into the number in a key."""
    digest = hashlib.blake2b(key=_SECRET, digest_size=_LETTERS)
    for text in texts[:1]:
        digest.update(text.encode("utf-8", "replace"))
    while True:
        letters = "".join(chr(ord("a") + byte % 26) for byte in digest.digest())
        if not any(letters in text.casefold() for text in texts):
            return f"_{letters}"
        digest.update(b"again")
