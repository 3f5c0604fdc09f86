"""The judges that answer questions, and the embedders; and judges by name.

Each loads its libraries when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from steelyard._internal.lazy import lazy_exports
from steelyard.errors import ConfigurationError
from steelyard.questions import Judge

if TYPE_CHECKING:
    from steelyard.judge._minilm import MiniLMEmbedder
    from steelyard.judge._openai import OpenAIEmbedder
    from steelyard.judge._static import StaticEmbedder
    from steelyard.judge.chat import ChatJudge
    from steelyard.judge.decisions import DecisionsJudge
    from steelyard.judge.local._judge import LocalJudge
    from steelyard.judge.pair import PairJudge, PairLabels

__all__ = [
    "ChatJudge",
    "DecisionsJudge",
    "LocalJudge",
    "MiniLMEmbedder",
    "OpenAIEmbedder",
    "PairJudge",
    "PairLabels",
    "StaticEmbedder",
    "judge_from",
]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "ChatJudge": "steelyard.judge.chat",
        "DecisionsJudge": "steelyard.judge.decisions",
        "LocalJudge": "steelyard.judge.local._judge",
        "MiniLMEmbedder": "steelyard.judge._minilm",
        "OpenAIEmbedder": "steelyard.judge._openai",
        "PairJudge": "steelyard.judge.pair",
        "PairLabels": "steelyard.judge.pair",
        "StaticEmbedder": "steelyard.judge._static",
    },
)

HERE = ("local", "pair")
"""Kinds of judge that run in this process."""
_CLASSES = {
    "local": "LocalJudge",
    "openai": "ChatJudge",
    "decisions": "DecisionsJudge",
    "pair": "PairJudge",
}


def kind_of(name: str) -> tuple[str, str]:
    """The kind of judge that a name stands for, and the model in it, if any.

    Raises:
        ConfigurationError: If there is no such kind.
    """
    kind, _, model = name.partition(":")
    kind = {"chat": "openai"}.get(kind.strip().lower(), kind.strip().lower())
    if kind not in _CLASSES:
        raise ConfigurationError(
            f"no judge {name!r}; there are 'local', 'openai:MODEL', 'decisions:MODEL' and 'pair:FILE'"
        )
    return kind, model.strip()


def judge_from(
    spec: str | Judge,
    *,
    model: str | None = None,
    base_url: str | None = None,
    api_key: str | None = None,
    concurrency: int | None = None,
    **options: Any,
) -> Judge:
    """The judge that a name stands for.

    Args:
        spec: `local`, `openai:MODEL` (also `chat:MODEL`), `decisions:MODEL` (also `decisions` alone),
            `pair:FILE` for an ONNX model; or a judge, which is handed back.
        model: The model, if the name has none.
        base_url: Where the server is.
        api_key: Its key.
        concurrency: Requests in flight at most; a judge that runs in this process has no requests.
        options: Further options of the judge's class.

    Raises:
        ConfigurationError: If there is no such judge, or the options do not go with it.
    """
    if not isinstance(spec, str):
        if not isinstance(spec, Judge):
            raise ConfigurationError(
                f"judge={spec!r} is not a Judge: it needs name, capabilities and answer()"
            )
        if model or base_url or api_key or concurrency or options:
            raise ConfigurationError(f"{spec!r} is a judge already; give its options to its own class")
        return spec
    kind, named = kind_of(spec)
    given = {"base_url": base_url, "api_key": api_key, "model": named or model, "concurrency": concurrency}
    given = {name: value for name, value in given.items() if value is not None} | options
    try:
        # The package loads what a class needs only now.
        made: Judge = __getattr__(_CLASSES[kind])(**_checked(kind, given, spec))
        return made
    except TypeError as error:
        raise ConfigurationError(f"judge {spec!r}: {error}; leave out what it does not take") from error


def _checked(kind: str, given: dict[str, Any], spec: str) -> dict[str, Any]:
    """The options for a kind of judge; one that runs in this process has no server."""
    if kind in HERE:
        given = {name: value for name, value in given.items() if name != "concurrency" and value is not None}
        if given.keys() & {"base_url", "api_key"} or (kind == "local" and given):
            raise ConfigurationError(f"judge {spec!r} runs here; leave out its server, key and model")
    if kind in ("openai", "pair") and "model" not in given:
        raise ConfigurationError(
            f"judge {spec!r} needs a model, as in 'openai:gpt-4o-mini' and 'pair:FOLDER/model.onnx'"
        )
    return given
