"""The view room: stored results in a browser, and the labels that people give them.

>>> from steelyard.view import app
>>> application = app("steelyard.db")  # doctest: +SKIP
"""

from steelyard.view._app import app
from steelyard.view._exchange import export_labels, import_labels
from steelyard.view._labels import Label, LabelStore, LabelValue
from steelyard.view._listing import TurnFilter, TurnRow, list_turns

__all__ = [
    "Label",
    "LabelStore",
    "LabelValue",
    "TurnFilter",
    "TurnRow",
    "app",
    "export_labels",
    "import_labels",
    "list_turns",
]
