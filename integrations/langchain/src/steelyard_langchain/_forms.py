"""Forms that models filled in, as a run returned them: objects of the host, and beside what else was made."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from steelyard.record import to_json_value
from steelyard.recording.building import is_telling, named_in_form
from steelyard.recording.provenance import ModelCall, is_intermediate_output, strip_code_fence
from steelyard.recording.reading import state_of, strings_in

_RAW = {"raw", "parsed", "parsing_error"}


def filled_form(outputs: Any, inputs: Any, calls: Iterable[ModelCall]) -> str:
    """What a run returned as JSON, where that is a form which a model filled in; empty where it is none.

    A state that holds a form beside what else was made on the way is none.
    """
    shown = _shown(outputs)
    forms = [form for form in _forms(calls) if _holds(shown, form)] if shown else ()
    if not forms or _says_more(shown, (inputs, *forms)):
        return ""
    filled = {name: value for name, value in shown.items() if any(name in form for form in forms)}
    # A state keeps what it was given beside the form; a form's own defaults are numbers and words.
    beside = [shown[name] for name in shown.keys() - filled.keys()]
    has_more = any(isinstance(one, (list, dict)) and one for one in beside)
    return json.dumps(filled if has_more else shown, ensure_ascii=False)


def last_form(outputs: Any, calls: Sequence[ModelCall]) -> str:
    """The form as JSON that a model filled in last, where a state holds it once beside what else was made."""
    if not calls or is_intermediate_output(calls[-1].replies):
        return ""
    held = [one for one in _shown(outputs).values() for form in _forms(calls[-1:]) if _holds(one, form)]
    return json.dumps(held[0], ensure_ascii=False) if len(held) == 1 else ""


def called_form(calls: Sequence[ModelCall]) -> str:
    """What the arguments of the last call's tools name as an answer."""
    said = (one for call in calls[-1:] for one in call.arguments)
    return next((text for one in said if (text := named_in_form(one)) != one), "")


def _shown(outputs: Any) -> Mapping[str, Any]:
    """The fields of what a run returned, with models in it as what they hold."""
    state = state_of(outputs)
    if state is not None and state.keys() == _RAW:  # `with_structured_output(include_raw=True)`
        state = state_of(state["parsed"])
    shown = to_json_value(_dumped(state))
    return shown if isinstance(shown, Mapping) else {}


def _forms(calls: Iterable[ModelCall]) -> Iterator[Mapping[str, Any]]:
    return filter(None, (_mapping(text) for call in calls for text in call.replies))


def _says_more(shown: Any, known: Iterable[Any]) -> bool:
    """Whether a text stands in a value, and in none of these."""
    texts = {text for value in known for _, text in strings_in(value)}
    return any(text not in texts and is_telling(text) for _, text in strings_in(shown))


def _dumped(value: Any, depth: int = 4) -> Any:
    """A value whose models, at some depth, are given as what they hold."""
    if depth <= 0 or value is None or isinstance(value, (str, int, float)):
        return value
    if isinstance(value, Mapping):
        return {name: _dumped(one, depth - 1) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_dumped(one, depth - 1) for one in value]
    try:
        return value.model_dump(mode="json")
    except Exception:  # noqa: BLE001 - not a model, or one of the host's that cannot be dumped
        return value


def _holds(shown: Any, filled: Any) -> bool:
    """Whether a form is what a model filled in, perhaps with defaults beside it, at any depth."""
    if isinstance(filled, Mapping):
        return isinstance(shown, Mapping) and all(
            _holds(shown.get(name), value) for name, value in filled.items()
        )
    if isinstance(filled, list):
        return isinstance(shown, list) and len(shown) == len(filled) and all(map(_holds, shown, filled))
    return bool(shown == filled)


def _mapping(text: str) -> Mapping[str, Any]:
    try:
        value = json.loads(strip_code_fence(text))
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
