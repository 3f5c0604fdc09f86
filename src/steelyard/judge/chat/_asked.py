"""Questions as a chat model is asked them: with a nonce in the keys, and with some whose answers are known.

In the reply, keys end in letters that no author can know, so that an answer is told from what was shown by
where it stands and never by what it says: a text that quotes verdicts quotes none of these keys. They are
derived from the material with a secret of this process, so that the same material makes the same prompt
(which caches need).
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, replace

from steelyard.judge.chat._instructed import KNOWN_QUESTIONS, speaks_to_a_judge
from steelyard.questions import Request, Same

_SECRET = secrets.token_bytes(16)
_LETTERS = 5


@dataclass(frozen=True, slots=True, repr=False)
class Asked:
    """A request as a model is asked."""

    request: Request
    """The questions under their own keys, with those whose answers are known."""
    nonce: str
    """What every key of the reply ends in."""

    def on_the_wire(self) -> Request:
        """The request with the keys of the reply, for its schema."""
        named = {f"{key}{self.nonce}": question for key, question in self.request.questions.items()}
        return replace(self.request, questions=named)


def asked(request: Request) -> Asked:
    """Make a request ready. Whether the judge obeys what it reads is asked where a text speaks to a judge."""
    texts = list(shown(request))
    if speaks_to_a_judge(texts):
        request = replace(request, questions={**request.questions, **KNOWN_QUESTIONS})
    return Asked(request, _nonce(texts))


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
