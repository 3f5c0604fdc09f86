"""Stored results in a browser, and the labels that people give them.

>>> from steelyard.view import app
>>> application = app("steelyard.db")  # doctest: +SKIP
"""

from steelyard.view._app import app
from steelyard.view.labelling import export_labels, import_labels

__all__ = ["app", "export_labels", "import_labels"]
