"""The text that the demo asks about, and the questions it asks."""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib.resources import files

QUESTIONS = (
    "How is the weight read from a steelyard?",
    "Where were many Roman steelyards found?",
    "In which year did Roberval show his balance in Paris?",
    "Does it matter where the load lies on the pan of a Roberval balance?",
    "How much did the lead balls of Cavendish weigh?",
    "What is the international prototype of the kilogram made of?",
    "Is a platinum cylinder still needed to define the kilogram?",
    "What was the Kibble balance called before it was renamed?",
    "How many milligrams is a carat?",
    "Who patented a platform scale to weigh wagons of hemp?",
    "What did a letter of half an ounce cost in the penny post?",
    "When was the Computing-Tabulating-Recording Company renamed IBM?",
    "What is the acceleration of free fall at the equator?",
    "What did the astronauts on Skylab sit on?",
    "Who invented the strain gauge?",
    "How many pounds is a stone?",
)
"""Questions that the text answers."""

UNANSWERABLE = (
    "How much does a blue whale weigh?",
    "Which battery does a bathroom scale take?",
    "Who sang the first opera in Milan?",
    "How many calories are in a banana?",
)
"""Questions that it does not answer."""


@dataclass(frozen=True, slots=True)
class Passage:
    """One passage of the text."""

    id: str
    """Its number, as `weighing-07`."""
    title: str
    """Its heading."""
    text: str = field(repr=False)
    """A few sentences."""


def passages() -> tuple[Passage, ...]:
    """The whole text, written for this package; it has the package's licence."""
    raw = files("steelyard.cli.demo").joinpath("weighing.txt").read_text(encoding="utf-8")
    pieces = (piece.partition("\n") for piece in raw.lstrip("# ").split("\n# "))
    return tuple(
        Passage(id=f"weighing-{number:02}", title=title.strip(), text=" ".join(text.split()))
        for number, (title, _, text) in enumerate(pieces, start=1)
    )
