"""The demo's chains over a small text about weighing. LangChain is needed from here on."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableParallel, RunnablePassthrough

from steelyard.text import sentences

_FOLDER = files("steelyard.cli.demo")
_ASKED = json.loads(_FOLDER.joinpath("weighing.json").read_text(encoding="utf-8"))
INVENTED: Mapping[str, str] = _ASKED["answered"]
"""The questions that the text answers, each with an answer that has a fact invented in each sentence."""
UNANSWERABLE: Sequence[str] = _ASKED["unanswered"]
"""Questions that it does not answer."""

DONT_KNOW = "I do not know."
"""What the quoting model says if no passage fits."""

_PROMPT = ChatPromptTemplate.from_messages(
    [
        (
            "system",
            "Answer from the passages alone, in one or two sentences. "
            f"If they do not hold the answer, say only: {DONT_KNOW}",
        ),
        ("human", "{passages}\n\nQuestion: {question}"),
    ]
)
_QUOTED = re.compile(r"^\[\d+\] ", re.MULTILINE)
_FILLER_WORDS = """
a an and are as at be by can did do does for from had has have how i in into is it its many much not of on one
or still that the their them they this to was were what when where which who with would year
"""
_FILLER = frozenset(_FILLER_WORDS.split())
_FITS = 0.4
_AS_GOOD = 0.85


@cache
def passages() -> tuple[Document, ...]:
    """The whole text, written for this package; it has the package's licence."""
    raw = _FOLDER.joinpath("weighing.txt").read_text(encoding="utf-8")
    pieces = (piece.partition("\n") for piece in raw.lstrip("# ").split("\n# "))
    return tuple(
        Document(id=f"weighing-{number:02}", page_content=f"{title.strip()}\n{' '.join(text.split())}")
        for number, (title, _, text) in enumerate(pieces, start=1)
    )


class PassageRetriever(BaseRetriever):
    """Searches the text by words."""

    k: int = 4

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        text = passages()
        scores = _fits(query, [_words(passage.page_content) for passage in text])
        best = sorted(zip(scores, text, strict=True), key=lambda pair: -pair[0])[: self.k]
        return [passage for score, passage in best if score]


class WrongWayReranker(BaseRetriever):
    """Fetches more passages than it keeps, and keeps those that fit least."""

    inner: BaseRetriever
    """Where they come from, the best first."""

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        return self.inner.invoke(query, config={"callbacks": run_manager.get_child()})[:-3:-1]


class QuotingModel(BaseChatModel):
    """A chat model that quotes the passages in its prompt, or says that it does not know."""

    invents: bool = False
    """Answer with an invented fact in each sentence where it knows something."""

    @property
    def _llm_type(self) -> str:
        return "demo"

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        material, _, question = messages[-1].text.rpartition("\n\nQuestion: ")
        answer = quote(question, [piece.strip() for piece in _QUOTED.split(material) if piece.strip()])
        if self.invents:
            answer = INVENTED.get(question, answer)
        return ChatResult(generations=[ChatGeneration(message=AIMessage(content=answer))])


def build_chain(retriever: BaseRetriever | None = None, *, invents: bool = False) -> Runnable[str, str]:
    """Question in, answer out; over another retriever than the one that fits if it is given."""
    material: Runnable[str, dict[str, Any]] = RunnableParallel(
        passages=(retriever or PassageRetriever()) | _numbered, question=RunnablePassthrough()
    )
    return material | _PROMPT | QuotingModel(invents=invents) | StrOutputParser()


def misled() -> Runnable[str, str]:
    """A chain with a reranker that puts the best passages last, and a cut behind it."""
    return build_chain(WrongWayReranker(inner=PassageRetriever(k=8)))


def _numbered(documents: list[Document]) -> str:
    return "\n\n".join(f"[{at}] {document.page_content}" for at, document in enumerate(documents, start=1))


def quote(question: str, given: Sequence[str]) -> str:
    """The sentence that holds most of what a question asks about, and another of that passage as good.

    Each passage has its heading on a line of its own. A word in the rest of a passage counts for half; if
    less than two fifths of the question are met, nothing fits.
    """
    found = [
        (at, sentence.text, _words(sentence.text), _words(passage))
        for at, passage in enumerate(given)
        for sentence in sentences(passage.partition("\n")[2])
    ]
    own = _fits(question, [words for _, _, words, _ in found])
    around = _fits(question, [words for _, _, _, words in found])
    fits = [(one + other) / 2 for one, other in zip(own, around, strict=True)]
    best = max(fits, default=0.0)
    if best < _FITS:
        return DONT_KNOW
    place = found[fits.index(best)][0]
    good = [
        text
        for (at, text, _, _), fit in zip(found, fits, strict=True)
        if at == place and fit >= _AS_GOOD * best
    ]
    return " ".join(good[:2])


def _words(text: str) -> set[str]:
    """Content words, cut to something like their stem."""
    return {word[:5] for word in re.findall(r"\w+", text.lower()) if word not in _FILLER}


def _fits(question: str, texts: Sequence[set[str]]) -> list[float]:
    """How much of a question each text meets; a word counts for more the fewer texts have it."""
    asked = _words(question)
    rarity = {word: math.log(1 + len(texts) / (0.5 + sum(word in text for text in texts))) for word in asked}
    whole = sum(rarity.values()) or 1.0
    return [sum(rarity[word] for word in asked & text) / whole for text in texts]
