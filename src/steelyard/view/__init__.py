"""The view room: stored results in a browser, and the labels that people give them.

>>> from steelyard.view import app
>>> application = app("steelyard.db")  # doctest: +SKIP
"""

from steelyard.report import Label, LabelValue, open_labels
from steelyard.report import SQLiteLabels as LabelStore
from steelyard.view._app import app
from steelyard.view._exchange import export_labels, import_labels

__all__ = [
    "Label",
    "LabelStore",
    "LabelValue",
    "app",
    "export_labels",
    "import_labels",
    "open_labels",
]
