"""The question algebra: what a metric may ask, with meaning instead of prompt strings.

Every question says four things about the record's material:

- `needs`: the parts that are in view when it is asked; this is its own view, whatever is asked beside it,
- `admits`: further parts that may be in view for the sake of a question that shares the request,
- `shows`: the parts it gives away by itself (a claim is a piece of the answer),
- `hides`: the parts that must stay out of view, because they would give the verdict away or bias it.

Only questions that are always asked in the first round admit anything (extractions, and the second of two
ratings), so that what company adds is known whatever fails later; it stands on the Score (`Score.also_seen`)
and in its id. A request may hold several questions as long as nothing in its view is hidden from any of them
(see `_packing`). Questions are values: equal questions are asked once. A question with a non-zero `sample` is
an independent repeat: it is never merged with its twin, and shares a request with it only where the judge
answers each question by itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Literal, get_args

from steelyard.questions._answer import ChosenOption, Level, Texts, Vector, YesNo

Part = Literal["question", "contexts", "answer", "reference", "reference_contexts"]
"""A part of a record that a judge may be shown."""
PARTS: frozenset[Part] = frozenset(get_args(Part))
"""All of them."""

_NONE: frozenset[Part] = frozenset()


def _parts(*parts: Part) -> frozenset[Part]:
    return frozenset(parts)


@dataclass(frozen=True, kw_only=True)
class Question:
    """What every question has."""

    kind: ClassVar[str]
    """The kind's name in messages and in keys of the cache; it does not change with the class's name."""
    form: ClassVar[type]
    """The class of its answer."""
    extracts: ClassVar[bool] = False
    """Whether other questions are made out of its answer; extractions are asked before everything else."""

    sample: int = 0
    """0, or the number of an independent repeat."""

    @property
    def shows(self) -> frozenset[Part]:
        """Parts that the question itself gives away."""
        return _NONE

    @property
    def admits(self) -> frozenset[Part]:
        """Parts that may be in view beside `needs`."""
        return _NONE

    @property
    def quoted(self) -> str | None:
        """The words of the record that it holds, to be treated as data; None where all words are ours."""
        return None

    if TYPE_CHECKING:
        # For types alone: some kinds compute these and some take them as fields, and a property that is
        # inherited would forbid the field.
        @property
        def needs(self) -> frozenset[Part]:
            """Parts that must be in view."""

        @property
        def hides(self) -> frozenset[Part]:
            """Parts that must not be in view."""


@dataclass(frozen=True, kw_only=True)
class _AboutClaim(Question):
    """A question about a claim that is checked against a text.

    The user's question and the text that the claim was taken from are in view: "In 1879." or "It closed
    then." says nothing by itself, and neither of the two gives a verdict away.
    """

    form = YesNo
    claim: str = field(repr=False)
    """The claim, a full sentence."""
    by: Literal["contexts", "reference_contexts", "reference", "answer"] = "contexts"
    """What it is checked against."""
    of: Part = "answer"
    """What the claim was taken from."""

    @property
    def quoted(self) -> str:
        return self.claim

    @property
    def needs(self) -> frozenset[Part]:
        return _parts("question", self.by, self.of)

    @property
    def shows(self) -> frozenset[Part]:
        return _parts(self.of)

    @property
    def hides(self) -> frozenset[Part]:
        return _parts("answer", "reference", "reference_contexts", "contexts") - {self.of, self.by}


@dataclass(frozen=True, kw_only=True)
class Supported(_AboutClaim):
    """Does this claim follow from the given passages (or the reference) alone?

    The question of attribution: "according to the source, the claim" (Rashkin et al. 2023, arXiv:2112.12870).
    """

    kind = "supported"
    passage: int | None = None
    """Index of the one passage to hold it against; None for all of them together."""


@dataclass(frozen=True, kw_only=True)
class Contradicted(_AboutClaim):
    """Do the given passages say something that cannot be true together with this claim?

    Contradiction as in natural language inference (Bowman et al. 2015, arXiv:1508.05326); silence is none.
    """

    kind = "contradicted"


@dataclass(frozen=True, kw_only=True)
class Useful(Question):
    """Did this passage help to arrive at the given answer (or reference) to the question?"""

    kind = "useful"
    form = YesNo
    context: int
    """Index of the passage."""
    toward: Literal["answer", "reference"] = "answer"

    @property
    def needs(self) -> frozenset[Part]:
        """The user's question, the passages, and the text that they may have been useful for."""
        return _parts("question", "contexts", self.toward)

    @property
    def hides(self) -> frozenset[Part]:
        """Answers and references other than the one meant."""
        return _parts("answer", "reference", "reference_contexts") - {self.toward}


@dataclass(frozen=True, kw_only=True)
class Relevant(Question):
    """Does this sentence help to answer the question?

    The text that it was taken from is not in view: its sentences are, since all of them are asked about.
    """

    kind = "relevant"
    form = YesNo
    text: str = field(repr=False)
    """The sentence or statement."""
    of: Literal["contexts", "answer"] = "contexts"
    """What it was taken from."""
    needs = _parts("question")

    @property
    def quoted(self) -> str:
        """The sentence or statement."""
        return self.text

    @property
    def shows(self) -> frozenset[Part]:
        """What it was taken from: all of its sentences are asked about."""
        return _parts(self.of)

    @property
    def hides(self) -> frozenset[Part]:
        """References, and the answer where passages are judged: the question alone decides what is needed."""
        other = _parts("answer") if self.of == "contexts" else _NONE
        return _parts("reference", "reference_contexts") | other


@dataclass(frozen=True, kw_only=True)
class Same(Question):
    """Is this claim also made, in whatever words, by the given text?"""

    kind = "same"
    form = YesNo
    claim: str = field(repr=False)
    among: Literal["answer", "reference"]
    """The text to look for it in."""
    of: Part
    """What the claim was taken from."""
    listed: tuple[str, ...] = field(default=(), repr=False)
    """The claims of that text, which are then shown in its place: claims are compared with claims."""
    hides = _parts("contexts", "reference_contexts")

    @property
    def quoted(self) -> str:
        """The claim."""
        return self.claim

    @property
    def needs(self) -> frozenset[Part]:
        """Both texts, with the user's question; the question alone where the claims of one are listed."""
        return _parts("question") if self.listed else _parts("question", self.among, self.of)

    @property
    def shows(self) -> frozenset[Part]:
        """Both texts: the claim is from the one, and the list from the other."""
        return _parts(self.of, self.among)


@dataclass(frozen=True, kw_only=True)
class Rating(Question):
    """Which of these described levels fits? The levels, not the number, carry the meaning."""

    kind = "rating"
    form = Level
    instruction: str
    """What is rated, in one or two sentences."""
    levels: tuple[tuple[float, str], ...]
    """Value and description of each level, lowest first."""
    needs: frozenset[Part]
    """What must be in view."""
    hides: frozenset[Part] = _NONE
    """What must stay out of view."""
    admits: frozenset[Part] = _NONE
    """What may be in view besides; leave it empty unless it is asked in a metric's first round."""
    swapped: bool = False
    """Whether the material is shown in reverse order, so that the order favours neither of two ratings."""


@dataclass(frozen=True, kw_only=True)
class Sufficient(Rating):
    """Could the question be answered from the passages alone, wholly or in part, and what do they lack?

    Sufficient context after Joren et al. 2025 (arXiv:2411.06037), in more than two levels: "nothing" says
    whether the passages are about the question's subject at all. The reason of the answer is what is missing.
    """

    kind = "sufficient"
    instruction: str = "With nothing but these contexts, how much of the question could somebody answer?"
    levels: tuple[tuple[float, str], ...] = (
        (0.0, "none of it, and the contexts are about something else"),
        (1.0, "none of it, though the contexts are about its subject"),
        (2.0, "part of it"),
        (3.0, "all of it"),
    )
    needs: frozenset[Part] = _parts("question", "contexts")
    # An answer or a reference would give away what is to be looked for.
    hides: frozenset[Part] = _parts("answer", "reference", "reference_contexts")


@dataclass(frozen=True, kw_only=True)
class Predicate(Question):
    """Is this criterion met?"""

    kind = "predicate"
    form = YesNo
    criterion: str
    """A yes/no question about what is in view."""
    needs: frozenset[Part]
    hides: frozenset[Part] = _NONE


@dataclass(frozen=True, kw_only=True)
class Choose(Question):
    """Which of these options fits best?"""

    kind = "choose"
    form = ChosenOption
    instruction: str
    options: tuple[str, ...]
    needs: frozenset[Part]
    hides: frozenset[Part] = _NONE


@dataclass(frozen=True, kw_only=True)
class Claims(Question):
    """The stand-alone factual claims of a text, pronouns resolved with the question in view.

    "In 1879." to "When was Einstein born?" makes the claim "Einstein was born in 1879."
    """

    kind = "claims"
    form = Texts
    extracts = True
    of: Literal["answer", "reference", "contexts"] = "answer"

    @property
    def needs(self) -> frozenset[Part]:
        """The text; of an answer or a reference the question too, which may hold half of what they say."""
        return _parts("contexts") if self.of == "contexts" else _parts("question", self.of)

    @property
    def admits(self) -> frozenset[Part]:
        """Other texts that claims are taken from, so that their extractions may share a request."""
        return _extractable(self.of) - self.needs

    @property
    def hides(self) -> frozenset[Part]:
        """All parts beside which claims might not be taken from the text alone."""
        return _parts("answer", "reference", "contexts", "reference_contexts") - _extractable(self.of)


def _extractable(of: Part) -> frozenset[Part]:
    """What may be in view beside a text while its claims are extracted: answer and reference do no harm."""
    return _parts("contexts") if of == "contexts" else _parts("answer", "reference")


@dataclass(frozen=True, kw_only=True)
class Entities(Question):
    """The named entities of a text: people, places, organisations, dates, numbers, works."""

    kind = "entities"
    form = Texts
    extracts = True
    of: Literal["answer", "reference", "contexts"] = "reference"

    @property
    def needs(self) -> frozenset[Part]:
        """The text that is searched."""
        return _parts(self.of)

    @property
    def admits(self) -> frozenset[Part]:
        """Question, answer and reference, so that extractions may share a request."""
        return _parts("question", "answer", "reference") - self.needs

    @property
    def hides(self) -> frozenset[Part]:
        """The passages, unless they are what is searched."""
        return _NONE if self.of == "contexts" else _parts("contexts")


@dataclass(frozen=True, kw_only=True)
class GeneratedQuestions(Question):
    """Questions that the answer would answer, written without knowing the real one."""

    kind = "generated_questions"
    form = Texts
    extracts = True
    count: int = 3
    """How many are asked for; fewer are taken, since a mean over one is a mean as well."""
    needs = _parts("answer")
    admits = _parts("contexts")
    hides = _parts("question", "reference", "reference_contexts")


@dataclass(frozen=True, kw_only=True)
class Noncommittal(Question):
    """Does the answer evade the question: does it say that it does not know, or nothing to the point?"""

    kind = "noncommittal"
    form = YesNo
    needs = _parts("question", "answer")
    admits = _parts("reference")
    hides = _parts("contexts", "reference_contexts")


@dataclass(frozen=True, kw_only=True)
class Embed(Question):
    """The embedding of a text; answered by the embedder, not by the judge."""

    kind = "embed"
    form = Vector
    text: str = field(repr=False)
    needs = _NONE
    hides = _NONE


QUESTION_KINDS: frozenset[type[Question]] = frozenset(
    {
        *(Supported, Contradicted, Useful, Relevant, Same, Noncommittal, Predicate),
        *(Rating, Sufficient, Choose),
        *(Claims, Entities, GeneratedQuestions),
    }
)
"""Every kind that a judge can be asked; `Embed` goes to the embedder."""
