"""Reading values of any framework: messages, documents, passages, questions and answers."""

# `import x as x`: for the other rooms of the project, and not public.
from steelyard.recording.reading._literals import read_shown as read_shown
from steelyard.recording.reading._messages import Message as Message
from steelyard.recording.reading._messages import Role as Role
from steelyard.recording.reading._messages import arguments_in as arguments_in
from steelyard.recording.reading._messages import earlier_messages as earlier_messages
from steelyard.recording.reading._messages import has_history as has_history
from steelyard.recording.reading._messages import messages_in as messages_in
from steelyard.recording.reading._messages import since_last_asked as since_last_asked
from steelyard.recording.reading._messages import spoken as spoken
from steelyard.recording.reading._messages import text_in as text_in
from steelyard.recording.reading._messages import texts_of as texts_of
from steelyard.recording.reading._passages import contexts_of as contexts_of
from steelyard.recording.reading._passages import documents_in as documents_in
from steelyard.recording.reading._passages import has_documents as has_documents
from steelyard.recording.reading._passages import passages_of as passages_of
from steelyard.recording.reading._passages import searched_by_provider as searched_by_provider
from steelyard.recording.reading._questions import ASKED_NAMES as ASKED_NAMES
from steelyard.recording.reading._questions import asked_in as asked_in
from steelyard.recording.reading._questions import is_question as is_question
from steelyard.recording.reading._shapes import Leaf as Leaf
from steelyard.recording.reading._shapes import attribute as attribute
from steelyard.recording.reading._shapes import does_something as does_something
from steelyard.recording.reading._shapes import is_document as is_document
from steelyard.recording.reading._shapes import is_message_mapping as is_message_mapping
from steelyard.recording.reading._shapes import is_schema as is_schema
from steelyard.recording.reading._shapes import leaves_in as leaves_in
from steelyard.recording.reading._shapes import state_of as state_of
from steelyard.recording.reading._shapes import strings_in as strings_in
from steelyard.recording.reading._values import ANSWERS as ANSWERS
from steelyard.recording.reading._values import DOCUMENT_TEXTS as DOCUMENT_TEXTS
from steelyard.recording.reading._values import PASSAGE_IDS as PASSAGE_IDS
from steelyard.recording.reading._values import PASSAGE_SCORES as PASSAGE_SCORES
from steelyard.recording.reading._values import PASSAGE_TEXTS as PASSAGE_TEXTS
from steelyard.recording.reading._values import number_of as number_of
from steelyard.recording.reading._values import text_under as text_under
