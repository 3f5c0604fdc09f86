"""One turn of an application: its texts, and what happens in it. Written down before it runs."""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field


@dataclass(kw_only=True)
class Turn:
    """What is asked, what is found, what is shown and what is said.

    The application's parts look here for what to return, so that the truth about a turn is written by nobody
    who watches it.
    """

    id: str
    tenant: str
    thread: str
    threaded: bool = False
    """Whether the framework is told the thread."""
    question: str
    """The user's own words."""
    rewritten: str
    """What a model makes of the question, where one is asked to."""
    queries: tuple[str, ...]
    """What is searched for, one for each hop."""
    found: tuple[tuple[str, ...], ...]
    """The passages that each hop brings."""
    shown: tuple[str, ...]
    """Those of them that the application puts before the model that answers."""
    nothing: str
    """What a tool says that found nothing."""
    answer: str
    """What the user is shown."""
    draft: str
    """What is said first, where a first try is thrown away."""
    echoes: bool = False
    """Whether the model says back what it was sent."""
    before: tuple[Turn, ...] = ()
    """The turns of the same conversation before this one."""
    wholes: list[str] = field(default_factory=list)
    """Whole texts that came from outside a model, as they came: a tool's result, a filled-in variable."""
    prompt: str = ""
    """What the model was sent that made the answer."""
    relayed: list[str] = field(default_factory=list)
    """What models were sent whose replies stand in that prompt or in the answer."""
    tries: int = 0
    """How often an answer was made."""

    @property
    def history(self) -> list[tuple[str, str]]:
        """Questions and answers before this turn."""
        return [(turn.question, turn.answer) for turn in self.before]

    def find(self, query: str) -> tuple[str, ...]:
        """What a search brings."""
        places = [at for at, each in enumerate(self.queries) if each in query]
        return self.found[places[-1] if places else 0]

    def everything(self) -> tuple[str, ...]:
        """All that its searches can bring."""
        return tuple(dict.fromkeys(text for hop in self.found for text in hop))

    def came(self, whole: str) -> str:
        """Note a text that came from outside, and pass it on."""
        self.wholes.append(whole)
        return whole


NOW: ContextVar[Turn | None] = ContextVar("generator_turn", default=None)
"""The turn that the present task or thread works on; not set in a batch, whose turns say so by metadata."""

TURNS: dict[str, Turn] = {}
"""The turns of the application that runs, by id."""


def begin(turns: Sequence[Turn]) -> None:
    TURNS.clear()
    TURNS.update({turn.id: turn for turn in turns})
