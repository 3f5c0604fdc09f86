"""The Record: one RAG turn, as an immutable value.

Building a Record costs next to nothing, because recorders build it on the host's own thread: nothing is
copied, checked or cut here. `steelyard.record.clean` caps and repairs a Record, in the background.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal
from uuid import uuid4

from steelyard._internal.text import shorten
from steelyard.errors import ConfigurationError

_SHORTEST: Final = 16
"""Characters of a key: ids of users are few enough to try all of them against a short one."""
_HASHED: Final = re.compile("user-[0-9a-f]{32}")


def is_hashed(user: object) -> bool:
    """Whether this is what `with_hashed_user` makes of a user."""
    return isinstance(user, str) and _HASHED.fullmatch(user) is not None


def with_hashed_user(record: Record, key: str) -> Record:
    """The record with its user as HMAC-SHA256 under the key, cut to 128 bits; without a key, with none."""
    if record.user is None or (key and is_hashed(record.user)):
        return record
    if not key:
        return record.replace(user=None)
    digest = hmac.digest(key.encode(), str(record.user).encode("utf-8", "replace"), "sha256")
    return record.replace(user=f"user-{digest.hex()[:32]}")


def check_user_key(key: object, name: str = "user_key") -> None:
    """Refuse a key that could be guessed.

    Raises:
        ConfigurationError: If it is neither empty nor at least 16 characters long. It is not repeated.
    """
    if key != "" and (not isinstance(key, str) or len(key) < _SHORTEST):
        raise ConfigurationError(
            f"{name} must be a text of at least {_SHORTEST} characters; "
            "make one with `python -c 'import secrets; print(secrets.token_urlsafe())'`"
        )


_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def text_of(value: object) -> str:
    """Any object as valid Unicode without NULs; an object that cannot be shown becomes a short note."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        value = bytes(value).decode("utf-8", errors="replace")
    elif not isinstance(value, str):
        value = "" if value is None else _shown(value)
    elif type(value) is not str:
        value = str.__str__(value)  # a subclass (LangChain's TextAccessor, an enum) may act unlike a string
    if value.isascii() and "\0" not in value:
        return value
    return _UNSTORABLE.sub("\N{REPLACEMENT CHARACTER}", value)


def _shown(value: object) -> str:
    try:
        return str(value)
    except Exception:  # noqa: BLE001 - a user's __str__ may raise anything
        return f"<{type(value).__name__} that cannot be shown>"


Status = Literal["ok", "error", "cancelled", "truncated", "interrupted"]
ContextsSource = Literal["in_prompt", "retrieved", "tool", "told", "guessed"]
Evidence = Literal["known", "told", "guessed"]
_TEXTS = ("text", "page_content", "content", "document")
"""Where what is given as a context may have its text."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Context:
    """One retrieved passage."""

    text: str = field(repr=False)
    """What the passage says."""
    id: str | None = None
    """The document's own id, where the retriever gave one."""
    score: float | None = None
    """The retriever's own score; its scale and direction are the retriever's."""
    rank: int | None = None
    """Position in its retrieval, from 0."""
    query: str | None = field(default=None, repr=False)
    """The query that found it, where it differs from the question."""
    hop: int = 0
    """Which retrieval of the turn found it, from 0."""
    seen: float | None = None
    """The share of its text, from 0 to 1, that was found in what the model was sent; None where that is not
    known."""

    @property
    def in_prompt(self) -> bool | None:
        """Whether any of its text was found in what the model was sent; None where that is not known."""
        return None if self.seen is None else self.seen > 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Stage:
    """One inner retrieval step that the turn's contexts came out of (multi-query, ensemble, compression)."""

    name: str
    """The component's name."""
    query: str = field(repr=False)
    """What it was asked."""
    contexts: tuple[Context, ...] = ()
    """What it returned."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TraceRef:
    """Where in the host's traces a turn lives; it travels through unchanged, onto the Evaluation."""

    trace_id: str | None = None
    """W3C trace id, 32 lower-case hex digits."""
    span_id: str | None = None
    """W3C span id of the turn's span, 16 lower-case hex digits."""
    sampled: bool = True
    """The W3C sampled flag of that span."""
    run_id: str | None = None
    """The framework's own id of the run."""
    framework: str | None = None
    """Which recorder saw it: `langchain`, `llamaindex`, `opentelemetry`, or the user's word."""

    def __post_init__(self) -> None:
        # OpenTelemetry's span contexts hold integers.
        for name, digits in (("trace_id", 32), ("span_id", 16)):
            value = getattr(self, name)
            # By `type`, since `isinstance` runs code of the object.
            if issubclass(type(value), int):
                object.__setattr__(self, name, f"{value:0{digits}x}" if 0 < value < 16**digits else None)
            elif value is not None and type(value) is not str:
                object.__setattr__(self, name, _plain_text(value))


@dataclass(frozen=True, kw_only=True, slots=True)
class Timings:
    """When a turn ran and how long its parts took."""

    started_at: float | None = None
    """Unix time in seconds."""
    total: float | None = None
    """Seconds from the question to the end of the answer."""
    retrieval: float | None = None
    """Seconds spent retrieving, summed over retrievals."""
    generation: float | None = None
    """Seconds spent in language models, summed over calls."""


def _new_id() -> str:
    return uuid4().hex


@dataclass(frozen=True, kw_only=True, slots=True)
class Record:
    """What was asked, what the model was given and what it answered, in one RAG turn.

    An empty text means "not there": metrics that need it are `not_applicable`, never 0.
    """

    id: str = field(default_factory=_new_id)
    """Unique per turn; results are keyed by it."""
    question: str = field(default="", repr=False)
    """The user's own words."""
    standalone_question: str | None = field(default=None, repr=False)
    """The question rewritten to stand without the conversation; metrics use it where there is one."""
    contexts: tuple[Context, ...] = ()
    """The passages to judge by: those in the prompt, in its order, where that is known; otherwise all that
    were retrieved, best first. Texts, mappings and documents with a text, and pairs of these and a score are
    taken for Contexts."""
    contexts_source: ContextsSource = "retrieved"
    """How `contexts` was found: in the prompt of the answer, by a retriever or a tool whose result was not
    found there, told by the application, or guessed: cut out of a prompt with no source seen."""
    retrieved: tuple[Context, ...] = ()
    """Everything retrieved, where it is more than `contexts`; otherwise empty."""
    stages: tuple[Stage, ...] = ()
    """Inner retrievals, where one retriever was built out of others."""
    answer: str = field(default="", repr=False)
    """What the user was shown."""
    reference: str | None = field(default=None, repr=False)
    """The expected answer, where somebody knows it."""
    reference_contexts: tuple[Context, ...] = ()
    """The expected passages, where somebody knows them."""
    status: Status = "ok"
    """How the turn ended; only `ok` and `truncated` turns are judged."""
    error: str | None = field(default=None, repr=False)
    """What went wrong, as `Type: message`, where `status` is `error`."""
    trace: TraceRef | None = None
    """Where the turn lives in the host's traces."""
    timings: Timings | None = None
    """When it ran and for how long."""
    session: str | None = None
    """The conversation it belongs to, by the application's own id; turns of one may resemble each other."""
    user: str | None = field(default=None, repr=False)
    """Who asked, by the application's own id. It is stored only as a keyed hash, and only where a Monitor has
    a `user_key`; otherwise it is dropped before anything is written."""
    tenant: str | None = None
    """The customer or organisation it belongs to, where one application serves several."""
    tags: tuple[str, ...] = field(default=(), repr=False)
    """The user's tags."""
    metadata: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """The user's metadata; plain JSON values."""
    notes: tuple[str, ...] = ()
    """What the recorder could not find or is not sure of, and why."""
    origins: Mapping[str, tuple[str, ...]] = field(default_factory=dict, repr=False)
    """From where `question`, `answer` and each of `contexts` were taken, as far as the recorder tells:
    `retriever faiss`, `tool search`, `input, question`. For people; nothing is decided by it."""
    truncated: tuple[str, ...] = ()
    """Names of the fields that were cut to fit the limits; empty for a whole record."""

    def __post_init__(self) -> None:
        if type(self.id) is not str:
            # A database's integers, say; decisions and results are keyed by it.
            object.__setattr__(self, "id", _plain_text(self.id) or _new_id())
        # People write lists, and plain strings for contexts; what they meant is clear.
        for name in ("contexts", "retrieved", "reference_contexts"):
            value = getattr(self, name)
            if type(value) is not tuple or (value and type(value[0]) is not Context):
                object.__setattr__(self, name, _as_contexts(value))
        for name in ("stages", "tags", "notes", "truncated"):
            value = getattr(self, name)
            if type(value) is list:
                object.__setattr__(self, name, tuple(value))

    def __str__(self) -> str:
        """The turn for people, in some lines; `repr` leaves out what it says, since that may be logged."""
        return shown(self)

    @property
    def asked(self) -> str:
        """The question as metrics use it: the stand-alone form if there is one."""
        return self.standalone_question or self.question

    @property
    def evidence(self) -> Evidence | None:
        """What kind of evidence the contexts are; None if there are none."""
        if not self.contexts:
            return None
        source = self.contexts_source
        return source if source in ("told", "guessed") else "known"

    @property
    def trace_id(self) -> str | None:
        """The W3C trace id, if the turn has one."""
        return self.trace.trace_id if self.trace else None

    def replace(self, **changes: Any) -> Record:
        """A copy with some fields changed."""
        return replace(self, **changes)

    @classmethod
    def from_ragas(cls, sample: object) -> Record:
        """A Record from a Ragas `SingleTurnSample`, or any object with attributes of those names."""
        ids = getattr(sample, "retrieved_context_ids", None)
        return cls(
            question=getattr(sample, "user_input", None) or "",
            contexts=_contexts(getattr(sample, "retrieved_contexts", None), ids),
            answer=getattr(sample, "response", None) or "",
            reference=getattr(sample, "reference", None),
            reference_contexts=_contexts(
                getattr(sample, "reference_contexts", None), getattr(sample, "reference_context_ids", None)
            ),
        )

    @classmethod
    def from_deepeval(cls, case: object) -> Record:
        """A Record from a DeepEval `LLMTestCase`, or any object with attributes of those names."""
        return cls(
            question=getattr(case, "input", None) or "",
            contexts=_contexts(getattr(case, "retrieval_context", None)),
            answer=getattr(case, "actual_output", None) or "",
            reference=getattr(case, "expected_output", None),
            reference_contexts=_contexts(getattr(case, "context", None)),
            tags=tuple(getattr(case, "tags", None) or ()),
        )


def _plain_text(value: object) -> str:
    """An object as a string of no other class; empty where there is none."""
    try:
        return "" if value is None else str.__str__(value if isinstance(value, str) else str(value))
    except Exception:  # noqa: BLE001 - an object of the application's may raise anything
        return ""


def _as_contexts(value: object) -> tuple[Context, ...]:
    """Contexts from what people write and stores return: lists, strings, mappings, documents, or nothing."""
    if isinstance(value, str | Context | Mapping):
        value = (value,)
    if not isinstance(value, list | tuple):
        return ()
    # A store that is asked several questions at once returns a list for each.
    items = (part for item in value for part in (item if isinstance(item, list) else (item,)))
    return tuple(_as_context(item) for item in items if item is not None)


def _as_context(item: Any) -> Context:
    if isinstance(item, Context):
        return item
    if isinstance(item, tuple) and len(item) == 2 and isinstance(item[1], int | float):
        return replace(_as_context(item[0]), score=float(item[1]))
    if isinstance(item, str):
        return Context(text=item)
    text = next((text for name in _TEXTS if isinstance(text := _part(item, name), str)), None)
    if text is None:
        return Context(text=text_of(item))
    return Context(text=text, id=_part(item, "id"), score=_part(item, "score"))


def _part(item: Any, name: str) -> Any:
    try:
        return item.get(name) if isinstance(item, Mapping) else getattr(item, name, None)
    except Exception:  # noqa: BLE001 - an object of the application's own may raise anything
        return None


def _contexts(texts: Sequence[Any] | None, ids: Sequence[object] | None = None) -> tuple[Context, ...]:
    """Texts as contexts in rank order, with their ids where there is one for each.

    DeepEval's `RetrievedContextData` is an object with a `context`, the text, and a `source`.
    """
    given = texts or ()
    texts = [getattr(text, "context", text) for text in given]
    ids = ids if ids and len(ids) == len(texts) else [getattr(text, "source", None) for text in given]
    names = [None if name is None else str(name) for name in ids]
    pairs = enumerate(zip(texts, names, strict=True))
    return tuple(Context(text=text, id=name, rank=rank) for rank, (text, name) in pairs)


_WIDTH = 200
_MOST_CONTEXTS = 10


def shown(record: Record) -> str:
    """The turn in some lines: question, answer, contexts, notes; each cut to 200 characters.

    No character of it acts as code in a terminal.
    """
    named = [
        (f"turn {record.id}", record.status + (f", {record.error}" if record.error else "")),
        ("question", record.question),
        ("stand-alone question", record.standalone_question),
        ("answer", record.answer),
        ("reference", record.reference),
        *((f"context {rank}", context.text) for rank, context in enumerate(record.contexts[:_MOST_CONTEXTS])),
        ("more contexts", max(len(record.contexts) - _MOST_CONTEXTS, 0)),
        *(("note", note) for note in record.notes),
    ]
    return "\n".join(f"{shorten(name, _WIDTH)}: {shorten(str(said), _WIDTH)}" for name, said in named if said)
