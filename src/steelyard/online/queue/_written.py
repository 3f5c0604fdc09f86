"""A selected turn as text, for queues that store it."""

from __future__ import annotations

import json

from steelyard.online.queue._turns import Selected
from steelyard.record import record_from_dict, record_to_dict


def turn_to_json(turn: Selected) -> str | None:
    """A turn as one line of JSON; None where it cannot be written down."""
    data = {"sampling_position": turn.sampling_position, "rate": turn.rate}
    try:
        line = json.dumps(
            {**data, "record": record_to_dict(turn.record)}, ensure_ascii=False, separators=(",", ":")
        )
        line.encode()  # a lone surrogate somewhere would fail in the store, and take the others along
        return line
    except Exception:  # noqa: BLE001 - a hostile record may raise anything; the others are stored
        return None


def turn_from_json(body: str | bytes) -> Selected:
    """The turn again. Raises whatever a damaged text makes it raise."""
    data = json.loads(body)
    # Schema 1 called it `place`; turns that waited through an update still do.
    position = data["sampling_position"] if "sampling_position" in data else data["place"]
    return Selected(record_from_dict(data["record"]), position, data["rate"])
