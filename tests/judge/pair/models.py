"""Small ONNX models of sentence pairs, made on the spot: they compare words and nothing else."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")


WORDS = (
    "berlin paris tower is in stands high metres 330 tall wide 100 filler word sits lies near a the building"
)


def write_tokenizer(path: Path, *, limit: int | None = None) -> Path:
    vocabulary = {word: place for place, word in enumerate([*SPECIAL, *WORDS.split()])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    if limit:
        tokenizer.enable_truncation(limit)
    tokenizer.save(str(path))
    return path


def write_model(
    path: Path,
    columns: Sequence[str] = ("entailed", "neutral", "contradicted"),
    *,
    claim_first: bool = False,
    vocabulary: int = 100_000,
    rank: int = 2,
    inputs: Sequence[str] = ("input_ids", "attention_mask", "token_type_ids"),
) -> Path:
    """A model whose scores go by the share of the claim's words that the text has.

    Args:
        path: Where it is written.
        columns: Its labels, in order.
        claim_first: Whether it takes the first text for the claim.
        vocabulary: Ids from here on make it fail, as an embedding table does.
        rank: 2 for one row a pair; 3 for something else.
        inputs: What it wants.
    """
    claim, text = (0, 1) if claim_first else (1, 0)
    nodes = [
        # Ids beyond the table fail in Gather, as with a real embedding.
        helper.make_node("Gather", ["table", "input_ids"], ["known"]),
        helper.make_node("Equal", ["token_type_ids", "claim"], ["is_claim0"]),
        helper.make_node("Equal", ["token_type_ids", "text"], ["is_text0"]),
        helper.make_node("Greater", ["input_ids", "last_special"], ["is_word"]),
        helper.make_node("And", ["is_claim0", "is_word"], ["is_claim"]),
        helper.make_node("And", ["is_text0", "is_word"], ["is_text"]),
        helper.make_node("Unsqueeze", ["known", "two"], ["down"]),
        helper.make_node("Unsqueeze", ["known", "one"], ["across"]),
        helper.make_node("Equal", ["down", "across"], ["same"]),
        helper.make_node("Unsqueeze", ["is_text", "one"], ["texts"]),
        helper.make_node("And", ["same", "texts"], ["hits"]),
        helper.make_node("Cast", ["hits"], ["hits_f"], to=TensorProto.FLOAT),
        helper.make_node("ReduceMax", ["hits_f"], ["found"], axes=[2], keepdims=0),
        helper.make_node("Cast", ["is_claim"], ["claim_f"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["found", "claim_f"], ["found_claim"]),
        helper.make_node("ReduceSum", ["found_claim", "one"], ["hit_count"], keepdims=1),
        helper.make_node("ReduceSum", ["claim_f", "one"], ["claim_count0"], keepdims=1),
        helper.make_node("Max", ["claim_count0", "unit"], ["claim_count"]),
        helper.make_node("Div", ["hit_count", "claim_count"], ["share"]),
        helper.make_node("Mul", ["share", "slope_e"], ["e0"]),
        helper.make_node("Add", ["e0", "offset_e"], ["entailed"]),
        helper.make_node("Sub", ["share", "middle"], ["off"]),
        helper.make_node("Abs", ["off"], ["far"]),
        helper.make_node("Mul", ["far", "slope_c"], ["c0"]),
        helper.make_node("Add", ["c0", "offset_c"], ["contradicted"]),
        helper.make_node("Mul", ["share", "zero"], ["neutral"]),
        helper.make_node("Concat", list(columns), ["rows"], axis=1),
    ]
    shape: list[str | int] = ["batch", len(columns)]
    if rank == 3:
        nodes.append(helper.make_node("Unsqueeze", ["rows", "one"], ["logits"]))
        shape.insert(1, 1)
    else:
        nodes.append(helper.make_node("Identity", ["rows"], ["logits"]))
    numbers: dict[str, npt.NDArray[Any]] = {
        "table": np.arange(vocabulary, dtype=np.int64),
        "claim": np.array([claim], np.int64),
        "text": np.array([text], np.int64),
        "last_special": np.array([3], np.int64),
        "one": np.array([1], np.int64),
        "two": np.array([2], np.int64),
        "unit": np.array([1.0], np.float32),
        "zero": np.array([0.0], np.float32),
        "slope_e": np.array([30.0], np.float32),
        "offset_e": np.array([-25.0], np.float32),
        "middle": np.array([0.65], np.float32),
        "slope_c": np.array([-30.0], np.float32),
        "offset_c": np.array([6.0], np.float32),
    }
    graph = helper.make_graph(
        nodes,
        "pairs",
        [helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "length"]) for name in inputs],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, shape)],
        [numpy_helper.from_array(number, name) for name, number in numbers.items()],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
    made.ir_version = 8
    onnx.save(made, str(path))
    return path


def write_pair(folder: Path, columns: Sequence[str] = ("entailed", "neutral", "contradicted")) -> Path:
    """A folder with a model, its tokenizer and what its labels mean, as exporters leave it."""
    (folder / "onnx").mkdir(parents=True)
    write_model(folder / "onnx" / "model.onnx", columns)
    write_tokenizer(folder / "tokenizer.json")
    names = {"entailed": "ENTAILMENT", "contradicted": "contradiction"}
    labels = {place: names.get(name, name) for place, name in enumerate(columns)}
    config = {"id2label": labels if len(columns) > 1 else {0: "LABEL_0"}}
    (folder / "config.json").write_text(json.dumps(config))
    return folder
