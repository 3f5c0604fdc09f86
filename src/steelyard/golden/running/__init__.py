"""Putting a golden set to an application, recorded and judged."""

# `import x as x`: for the other rooms of the project, and not public.
from steelyard.golden.running._app import App as App
from steelyard.golden.running._app import app_from as app_from
from steelyard.golden.running._app import load_object as load_object
from steelyard.golden.running._app import read_reply as read_reply
from steelyard.golden.running._outputs import HOW_TO_ASK as HOW_TO_ASK
from steelyard.golden.running._outputs import NOTHING_ASKED as NOTHING_ASKED
