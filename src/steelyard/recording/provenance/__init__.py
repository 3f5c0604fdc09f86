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
- `is_turn`: whether a root is a turn of its own;
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

# `import x as x`: for the other rooms of the project, and not public.
from steelyard.recording.provenance._calls import AnswerCalls as AnswerCalls
from steelyard.recording.provenance._calls import ModelCall as ModelCall
from steelyard.recording.provenance._calls import calls_behind as calls_behind
from steelyard.recording.provenance._calls import form_of as form_of
from steelyard.recording.provenance._calls import is_intermediate_output as is_intermediate_output
from steelyard.recording.provenance._calls import json_strings as json_strings
from steelyard.recording.provenance._calls import strip_code_fence as strip_code_fence
from steelyard.recording.provenance._evidence import MOST_PASSAGES as MOST_PASSAGES
from steelyard.recording.provenance._evidence import MOST_PROMPT as MOST_PROMPT
from steelyard.recording.provenance._find import find_passages as find_passages
from steelyard.recording.provenance._find import is_printed as is_printed
from steelyard.recording.provenance._find import place_of as place_of
from steelyard.recording.provenance._guesses import guessed_passages as guessed_passages
from steelyard.recording.provenance._guesses import guessed_question as guessed_question
from steelyard.recording.provenance._guesses import has_empty_place as has_empty_place
from steelyard.recording.provenance._guesses import holds_passages as holds_passages
from steelyard.recording.provenance._guesses import labelled_question as labelled_question
from steelyard.recording.provenance._guesses import names_both as names_both
from steelyard.recording.provenance._guesses import names_question_within as names_question_within
from steelyard.recording.provenance._guesses import numbered_parts as numbered_parts
from steelyard.recording.provenance._guesses import parts_of_blocks as parts_of_blocks
from steelyard.recording.provenance._notes import NOTES as NOTES
from steelyard.recording.provenance._notes import Note as Note
from steelyard.recording.provenance._notes import sentence as sentence
from steelyard.recording.provenance._provenance import Origin as Origin
from steelyard.recording.provenance._provenance import is_turn as is_turn
from steelyard.recording.provenance._provenance import notes_on_predecessors as notes_on_predecessors
from steelyard.recording.provenance._provenance import trace_provenance as trace_provenance
from steelyard.recording.provenance._sections import sections as sections
from steelyard.recording.provenance._sections import split_chat_template as split_chat_template
from steelyard.recording.provenance._words import finds_nothing as finds_nothing
from steelyard.recording.provenance._words import holds_replies as holds_replies
from steelyard.recording.provenance._words import is_history as is_history
from steelyard.recording.provenance._words import is_spaceless as is_spaceless
from steelyard.recording.provenance._words import may_find_nothing as may_find_nothing
from steelyard.recording.provenance._words import names_passages as names_passages
from steelyard.recording.provenance._words import names_speaker as names_speaker
from steelyard.recording.provenance._words import only_counts as only_counts
from steelyard.recording.provenance._words import only_speech as only_speech
from steelyard.recording.provenance._words import plain as plain
from steelyard.recording.provenance._words import plain_line as plain_line
from steelyard.recording.provenance._words import unescaped as unescaped
from steelyard.recording.provenance._words import word_count as word_count
from steelyard.recording.provenance._words import words as words
from steelyard.recording.reading._passages import passages_of as passages_of
