"""What every application of the corpus knows about: an island, its ferry and its lighthouse.

Passages hold what prompts escape: line breaks, both kinds of quotes, letters beyond ASCII, ampersands.
"""

from __future__ import annotations

import re
import zlib

FERRY = 'The ferry "Signe" leaves Nordhavn at 7:15.\nOn Sundays it doesn\'t leave before 9:40.'
FARES = "Grown-ups pay 12 euros for the crossing & dogs pay €3.\nChildren under six travel free."
STORM = (
    "When the wind exceeds 20 m/s, the harbour master closes the pier.\n\nTickets stay valid the next day."
)
MUSEUM = "The lighthouse museum on Skarholm opens daily from 10 to 16. It shows a Fresnel lens from 1868."
BIKES = "Beside the quay, Lindström's shop hires out bicycles: 15 euros a day, <helmets> included."
NEWS = "This week the quay is being rebuilt: boats moor at the eastern breakwater instead."
PASSAGES = (FERRY, FARES, STORM, MUSEUM, BIKES, NEWS)

MARKS = {
    FERRY: "Signe",
    FARES: "Grown-ups",
    STORM: "harbour master",
    MUSEUM: "Fresnel",
    BIKES: "hires out",
    NEWS: "breakwater",
}
"""A word of each passage that stands in no other and that nothing escapes."""

SUNDAY = "When does the first ferry leave on Sundays?"
SUNDAY_ANSWER = "On Sundays the first ferry leaves at 9:40."
DOG = "12 euros for a grown-up and 3 for a dog."
PRICE = "How much is the crossing for a family with a dog?"
PRICE_ANSWER = "Two grown-ups and a dog pay 27 euros; small children travel free."
LENS = "What is special about the lighthouse museum?"
LENS_ANSWER = "Its lens, which was built in 1868."
MOOR = "Where do boats moor this week?"
MOOR_ANSWER = "At the eastern end of the harbour, while work goes on."

_WORD = re.compile(r"\w+")
_WIDTH = 128


def embed(text: str) -> list[float]:
    """A vector of the words in a text, the same on every machine."""
    vector = [0.001] * _WIDTH
    for word in _WORD.findall(text.lower()):
        vector[zlib.crc32(word.encode()) % _WIDTH] += 1.0
    return vector


def marks_in(text: str) -> list[str]:
    """The passages of which something stands in a text, in its order."""
    found = [(text.find(mark), passage) for passage, mark in MARKS.items() if mark in text]
    return [passage for _, passage in sorted(found)]
