"""Where an answer came from, by evidence in texts instead of by position.

Pure functions without a framework, for all recorders:

- `find_passages`: which passages stand in a prompt, whatever the prompt did to them;
- `passages_of`: the passages in a tool's result or a block of a prompt;
- `split_chat_template`: a prompt without the marks of a local model's template;
- `calls_behind`: which model calls made the answer;
- `guessed_passages`, `guessed_question`, `has_empty_place`: what a prompt seems to hold, where nothing tells;
- `holds_passages`: whether it has a section that is named as passages are;
- `names_passages`: whether a text is evidence, by the name it stands under;
- `finds_nothing`: whether it only says that there is none;
- `classify_root`: whether a root is a turn of its own;
- `notes_on_predecessors`: whether it goes on from what a model replied in an earlier one;
- `trace_provenance`: the first and third together, as the context fields of a Record with notes.

    >>> from steelyard.record import Context
    >>> from steelyard.recording.provenance import ModelCall, trace_provenance
    >>> retrieved = [Context(text="Rome has seven hills."), Context(text="Paris lies on a river.")]
    >>> calls = [
    ...     ModelCall(prompts=("Is 'Paris lies on a river.' relevant?",), reply="no"),
    ...     ModelCall(prompts=("[Document(page_content='Rome has seven hills.')]",), reply="Seven."),
    ... ]
    >>> found = trace_provenance(retrieved, calls, answer="Seven.", question="How many hills has Rome?")
    >>> [one.text for one in found.contexts], found.contexts_source, found.notes
    (['Rome has seven hills.'], 'in_prompt', ())

Bounds: 4,000,000 characters of passages and of prompts, 2,000,000 of one block; what is beyond is not decided
and noted. All of it takes time linear in the lengths, and none of it raises, whatever the text.
"""

from steelyard.recording.provenance._calls import (
    AnswerCalls,
    ModelCall,
    calls_behind,
    is_intermediate_output,
    json_strings,
    strip_code_fence,
)
from steelyard.recording.provenance._follows import notes_on_predecessors
from steelyard.recording.provenance._guesses import (
    guessed_passages,
    guessed_question,
    has_empty_place,
    holds_passages,
    labelled_question,
    names_both,
)
from steelyard.recording.provenance._lines import is_history, names_speaker, plain, plain_line
from steelyard.recording.provenance._notes import NOTES, Note, sentence
from steelyard.recording.provenance._provenance import Origin, trace_provenance
from steelyard.recording.provenance._sections import sections, split_chat_template
from steelyard.recording.provenance._tools import finds_nothing, names_passages
from steelyard.recording.provenance._turn import RootKind, RootReason, classify_root
from steelyard.recording.provenance._words import word_count
from steelyard.recording.provenance.matching import (
    MOST_PASSAGES,
    MOST_PROMPT,
    PassageMatch,
    find_passages,
    is_printed,
)
from steelyard.recording.reading._passages import MOST_BLOCK, passages_of

__all__ = [
    "MOST_BLOCK",
    "MOST_PASSAGES",
    "MOST_PROMPT",
    "NOTES",
    "AnswerCalls",
    "ModelCall",
    "Note",
    "Origin",
    "PassageMatch",
    "RootReason",
    "RootKind",
    "calls_behind",
    "find_passages",
    "finds_nothing",
    "guessed_passages",
    "guessed_question",
    "has_empty_place",
    "holds_passages",
    "is_intermediate_output",
    "is_printed",
    "labelled_question",
    "names_both",
    "is_history",
    "classify_root",
    "json_strings",
    "names_passages",
    "names_speaker",
    "notes_on_predecessors",
    "passages_of",
    "plain",
    "plain_line",
    "sections",
    "sentence",
    "split_chat_template",
    "trace_provenance",
    "strip_code_fence",
    "word_count",
]
