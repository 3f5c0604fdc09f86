"""Reading values of any framework: messages, documents, passages, questions and answers."""

from steelyard.recording.reading._documents import contexts_of, documents_in
from steelyard.recording.reading._hosted import searched_by_provider
from steelyard.recording.reading._literals import read_shown
from steelyard.recording.reading._messages import (
    Message,
    Role,
    arguments_in,
    earlier_messages,
    has_history,
    messages_in,
    spoken,
    text_in,
    texts_of,
)
from steelyard.recording.reading._names import (
    ANSWERS,
    DOCUMENT_TEXTS,
    PASSAGE_IDS,
    PASSAGE_SCORES,
    PASSAGE_TEXTS,
    text_under,
)
from steelyard.recording.reading._passages import MOST_BLOCK, passages_of
from steelyard.recording.reading._questions import ASKED_NAMES, asked_in, is_question
from steelyard.recording.reading._shapes import (
    Leaf,
    attribute,
    is_document,
    is_message_mapping,
    leaves_in,
    state_of,
    strings_in,
)

__all__ = [
    "ANSWERS",
    "ASKED_NAMES",
    "DOCUMENT_TEXTS",
    "MOST_BLOCK",
    "PASSAGE_IDS",
    "PASSAGE_SCORES",
    "PASSAGE_TEXTS",
    "Leaf",
    "Message",
    "Role",
    "arguments_in",
    "asked_in",
    "attribute",
    "contexts_of",
    "documents_in",
    "earlier_messages",
    "has_history",
    "is_document",
    "is_message_mapping",
    "is_question",
    "leaves_in",
    "messages_in",
    "passages_of",
    "read_shown",
    "searched_by_provider",
    "spoken",
    "state_of",
    "strings_in",
    "text_in",
    "text_under",
    "texts_of",
]
