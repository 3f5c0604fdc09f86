"""Judges by name, as the command line and configuration files write them."""

from __future__ import annotations

from typing import Any

from steelyard.errors import ConfigurationError
from steelyard.questions import Judge

_HERE = ("local", "pair")


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
    kind, _, named = spec.partition(":")
    remote = {"base_url": base_url, "api_key": api_key, **options}
    if concurrency is not None and kind.strip().lower() not in _HERE:
        remote["concurrency"] = concurrency
    try:
        return _make(kind.strip().lower(), named.strip() or model, remote, spec)
    except TypeError as error:
        raise ConfigurationError(f"judge {spec!r}: {error}; leave out what it does not take") from error


def _make(kind: str, model: str | None, remote: dict[str, Any], spec: str) -> Judge:
    if kind == "local":
        if model or any(value is not None for value in remote.values()):
            raise ConfigurationError("the local judge has no model and no server; leave them out")
        from steelyard.judge.local._judge import LocalJudge

        return LocalJudge()
    if kind in ("openai", "chat"):
        if not model:
            raise ConfigurationError(f"judge {spec!r} needs a model: 'openai:gpt-4o-mini'")
        from steelyard.judge.chat import ChatJudge

        return ChatJudge(model, **remote)
    if kind == "decisions":
        from steelyard.judge.decisions import DecisionsJudge

        return DecisionsJudge(model, **remote) if model else DecisionsJudge(**remote)
    if kind == "pair":
        return _pair(model, remote, spec)
    raise ConfigurationError(
        f"no judge {spec!r}; there are 'local', 'openai:MODEL', 'decisions:MODEL' and 'pair:FILE'"
    )


def _pair(file: str | None, remote: dict[str, Any], spec: str) -> Judge:
    given = {name: value for name, value in remote.items() if value is not None}
    if not file:
        raise ConfigurationError(f"judge {spec!r} needs a model: 'pair:FOLDER/model.onnx'")
    if "base_url" in given or "api_key" in given:
        raise ConfigurationError(f"judge {spec!r} runs here; leave out its server and key")
    from steelyard.judge.pair._judge import PairJudge

    return PairJudge(file, **given)
