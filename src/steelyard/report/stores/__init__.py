"""Where results and labels are kept: one file for each kind of database, behind the same Protocols.

`open_results` and `open_labels` choose by the address. A database more implements `ResultsReader` and
`LabelStore`, is named in `_open.py`, and passes `tests/report/test_stores.py`.
"""

from steelyard.report.stores._open import open_labels, open_results
from steelyard.report.stores._sqlite import SQLiteResults
from steelyard.report.stores._sqlite_labels import SQLiteLabels

__all__ = ["SQLiteLabels", "SQLiteResults", "open_labels", "open_results"]
