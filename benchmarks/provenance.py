"""How well and how fast passages are found in prompts.

Random passages are put into prompts in 26 writings (Python reprs, JSON, XML, wrapped, cut, in sentences ...)
beside as many passages that stay out, and found again. Without a file the passages are random words; with one
(JSON lines with `contexts`, a list of texts) they are people's.

    python benchmarks/provenance.py [--texts passages.jsonl] [--rounds 60]
"""

from __future__ import annotations

import argparse
import json
import random
import textwrap
import time
from collections.abc import Callable
from html import escape
from pathlib import Path

from steelyard.recording.provenance import find_passages

Texts = list[str]
Writing = Callable[[Texts, random.Random], str]


def documents(texts: Texts) -> str:
    """A list of documents as Python shows it."""
    shown = (
        f"Document(id='d{n}', metadata={{'source': 'a{n}.md'}}, page_content={t!r})"
        for n, t in enumerate(texts)
    )
    return f"[{', '.join(shown)}]"


def halves(text: str, head: bool) -> str:
    """The first or the second half of the words."""
    parts = text.split(" ")
    middle = max(8, len(parts) // 2)
    return " ".join(parts[:middle] if head else parts[-middle:])


def sentences(text: str, rng: random.Random) -> str:
    """About a third of the sentences, at least one of twelve words or else all."""
    parts = [part for part in text.replace("? ", ". ").split(". ") if part]
    kept = [part for part in parts if rng.random() < 0.33]
    if not any(len(part.split()) >= 12 for part in kept):
        kept += [part for part in parts if len(part.split()) >= 12][:1] or parts
    return ". ".join(kept)


def shuffled(text: str, rng: random.Random) -> str:
    """The same sentences in another order."""
    parts = text.split(". ")
    rng.shuffle(parts)
    return ". ".join(parts)


def xml(text: str, n: int) -> str:
    """One passage as an XML element."""
    return f'<document index="{n}"><source>a{n}</source><content>{escape(text)}</content></document>'


WRITINGS: dict[str, Writing] = {
    "joined": lambda t, r: "\n\n".join(t),
    "joined by spaces": lambda t, r: " ".join(t),
    "reordered": lambda t, r: "\n\n".join(r.sample(t, len(t))),
    "repr of list": lambda t, r: repr(t),
    "repr of documents": lambda t, r: documents(t),
    "repr of pairs": lambda t, r: repr([(text, 0.5) for text in t]),
    "repr, ASCII": lambda t, r: ascii(t),
    "repr in repr": lambda t, r: repr(repr(t)),
    "JSON": lambda t, r: json.dumps([{"text": text} for text in t]),
    "JSON, not ASCII": lambda t, r: json.dumps([{"text": text} for text in t], ensure_ascii=False, indent=2),
    "JSON in JSON": lambda t, r: json.dumps(json.dumps(t)),
    "JSON in repr": lambda t, r: repr([json.dumps({"content": text}) for text in t]),
    "XML": lambda t, r: "".join(xml(text, n) for n, text in enumerate(t)),
    "XML twice": lambda t, r: escape("".join(xml(text, n) for n, text in enumerate(t))),
    "HTML, numbered entities": lambda t, r: "<br>".join(text.replace("'", "&#39;") for text in t),
    "numbered": lambda t, r: "\n".join(f"[{n}] {text}" for n, text in enumerate(t, 1)),
    "Markdown quotes": lambda t, r: "\n\n".join(
        "> " + textwrap.fill(text, 80, initial_indent="") for text in t
    ),
    "Markdown emphasis": lambda t, r: "\n".join(f"- **{text}**" for text in t),
    "wrapped": lambda t, r: "\n\n".join(textwrap.fill(text, 60) for text in t),
    "indented": lambda t, r: textwrap.indent("\n\n".join(textwrap.fill(text, 70) for text in t), "\t  "),
    "white space": lambda t, r: "\n".join(text.replace(" ", "  \u00a0") for text in t),
    "lower case": lambda t, r: "\n".join(text.lower() for text in t),
    "first half": lambda t, r: "\n".join(halves(text, True) for text in t),
    "second half": lambda t, r: "\n".join(halves(text, False) for text in t),
    "sentences": lambda t, r: "\n".join(sentences(text, r) for text in t),
    "sentences shuffled": lambda t, r: "\n".join(shuffled(text, r) for text in t),
}


def passages_from(path: Path | None) -> Texts:
    """The texts to measure with, each once."""
    if path is not None:
        rows = (json.loads(line) for line in path.read_text().splitlines())
        texts = (text for row in rows for text in row["contexts"])
        return list(dict.fromkeys(text for text in texts if len(text.split()) > 3))
    rng = random.Random(1)
    words = ["".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randint(2, 9))) for _ in range(5000)]
    return [". ".join(" ".join(rng.choices(words, k=15)) for _ in range(20)) for _ in range(400)]


def accuracy(texts: Texts, rounds: int) -> None:
    """Print recall and precision for each writing."""
    print(f"{'writing':26} {'recall':>7} {'precision':>9} {'undecided':>9}")
    for name, write in WRITINGS.items():
        rng = random.Random(name)
        hits = misses = false = unknown = 0
        for _ in range(rounds):
            at = rng.randrange(max(1, len(texts) - 40))
            chosen = rng.sample(texts[at : at + 40], min(10, len(texts)))
            inside = chosen[:5]
            prompt = f"Answer from the context.\n\nContext:\n{write(inside, rng)}\n\nQuestion: who was it?"
            for n, sighting in enumerate(find_passages(chosen, [prompt], question="who was it?")):
                hits += n < 5 and bool(sighting.found)
                misses += n < 5 and not sighting.found
                false += n >= 5 and bool(sighting.found)
                unknown += sighting.found is None
        print(f"{name:26} {hits / (hits + misses):7.4f} {hits / max(1, hits + false):9.4f} {unknown:9d}")


def mixed(texts: Texts, rest: str, rng: random.Random) -> str:
    """JSON, JSON in a Python repr, halves, other orders and repetitions in one prompt; five stay out."""
    escaped = json.dumps([{"text": text} for text in texts[:5]]) + repr([json.dumps(texts[3])])
    cut = "\n".join(halves(text, True) for text in texts[5:9])
    turned = "\n".join(shuffled(text, rng) for text in texts[9:13])
    return "\n".join([rest, escaped, cut, turned, texts[13], texts[13], texts[14], rest])


def speed() -> None:
    """Print milliseconds for 20 passages of 300 words against a prompt of about 8,000 words."""
    rng = random.Random(2)
    words = ["".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randint(2, 9))) for _ in range(5000)]
    texts = [" ".join(rng.choices(words, k=300)) for _ in range(20)]
    rest = " ".join(rng.choices(words, k=2000))
    quoted = [
        text.replace("a", "\N{LATIN SMALL LETTER A WITH ACUTE}").replace(" b", '.\n"b') for text in texts
    ]
    signs = [chr(code) for code in range(0x4E00, 0x5600)]
    chinese = ["".join(rng.choices(signs, k=300)) for _ in range(20)]
    filling = "".join(rng.choices(signs, k=5000))
    for name, passages, prompt in (
        ("as text", texts, "\n\n".join([rest, *texts])),
        ("as repr", texts, rest + documents(texts)),
        ("5 of them", texts, rest + rest + rest + "\n\n".join(texts[:5]) + rest),
        ("mixed", quoted, mixed(quoted, rest, rng)),
        ("half, Chinese", chinese, filling + "\n".join(chinese[:10])),
        ("1 MB", texts, " ".join([rest] * 80) + repr(texts)),
    ):
        taken = []
        for _ in range(40):
            start = time.thread_time()
            find_passages(passages, [prompt])
            taken.append(1000 * (time.thread_time() - start))
        taken.sort()
        print(
            f"20 passages, {name:14} {len(prompt):>9,} characters: {taken[0]:.2f} ms, median {taken[20]:.2f}"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--texts", type=Path)
    parser.add_argument("--rounds", type=int, default=60)
    given = parser.parse_args()
    accuracy(passages_from(given.texts), given.rounds)
    speed()
