"""Where results and labels are kept: one file for each kind of database, behind the same methods.

`open_results` and `open_labels` choose by the address. A database more implements `ResultsReader` and
`LabelStore`, is named in `_open.py`, and passes `tests/report/test_stores.py`.
"""
