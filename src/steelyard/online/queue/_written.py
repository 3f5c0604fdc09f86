"""A selected turn and its result as text, for queues that store them."""

from __future__ import annotations

from steelyard._internal.json_pieces import json_pieces, json_value
from steelyard.online.queue._turns import Selected
from steelyard.record import record_from_dict, record_to_dict
from steelyard.scores import Evaluation, evaluation_to_dict


def turn_to_json(turn: Selected) -> bytes | None:
    """A turn as one line of JSON; None where it cannot be written down."""
    data = {"sampling_position": turn.sampling_position, "rate": turn.rate}
    try:
        # A lone surrogate somewhere cannot be encoded: it would fail in the store, and take others along.
        return _encoded({**data, "record": record_to_dict(turn.record)})
    except Exception:  # noqa: BLE001 - a hostile record may raise anything; the others are stored
        return None


def turn_from_json(body: str | bytes) -> Selected:
    """The turn again. Raises whatever a damaged text makes it raise."""
    data = json_value(body)
    # Schema 1 called it `place`; turns that waited through an update still do.
    position = data["sampling_position"] if "sampling_position" in data else data["place"]
    return Selected(record_from_dict(data["record"]), position, data["rate"])


def result_to_json(evaluation: Evaluation) -> bytes:
    """An Evaluation as one line of JSON."""
    return _encoded(evaluation_to_dict(evaluation))


def _encoded(data: object) -> bytes:
    """JSON in UTF-8, encoded piece by piece, so that other threads run while a long turn is written."""
    return b"".join(piece.encode() for piece in json_pieces(data))
