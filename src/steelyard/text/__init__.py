"""What a sentence is and whether it states something, the same for metrics and judges."""

# `import x as x`: for the other rooms of the project, and not public.
from steelyard.text._sentences import Sentence as Sentence
from steelyard.text._sentences import iter_sentences as iter_sentences
from steelyard.text._sentences import sentences as sentences
from steelyard.text._statements import affirms as affirms
from steelyard.text._statements import asserted as asserted
from steelyard.text._statements import evades as evades
from steelyard.text._statements import is_polar as is_polar
from steelyard.text._statements import iter_statements as iter_statements
from steelyard.text._statements import spread as spread
from steelyard.text._statements import statements as statements
from steelyard.text._statements import states as states
from steelyard.text._statements import unhedged as unhedged
