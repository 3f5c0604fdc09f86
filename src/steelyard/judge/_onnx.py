"""ONNX models on the CPU: opened in one place, with errors that name the file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from steelyard._internal.redact import error_words
from steelyard.errors import ConfigurationError, MissingDependency


def open_session(model: Path | bytes, *, threads: int, extra: str) -> Any:
    """A session of onnxruntime.

    Args:
        model: The file, or what is in it.
        threads: Cores to use.
        extra: The extra of ours that installs onnxruntime, for the error.

    Raises:
        MissingDependency: If onnxruntime is not installed.
        ConfigurationError: If the file is not there or is not a model.
    """
    try:
        import onnxruntime
    except ImportError:
        raise MissingDependency("onnxruntime", extra=extra) from None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 4  # what goes wrong is raised, and said once, by us
    if isinstance(model, Path) and not model.is_file():
        raise ConfigurationError(f"there is no model {str(model)!r}; check its path")
    source = model if isinstance(model, bytes) else str(model)
    try:
        return onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # noqa: BLE001 - the library's errors have no base class of their own
        name = "the given bytes" if isinstance(model, bytes) else repr(str(model))
        raise ConfigurationError(
            f"{name} is not an ONNX model that runs: {error_words(error)}; export it again, or name another"
        ) from None
