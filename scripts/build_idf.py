"""Build the word frequency table of the local judge.

Source: the English list of the package `wordfreq` 3.1.1 by Robyn Speer (https://github.com/rspeer/wordfreq),
whose data may be redistributed under CC BY-SA 4.0 with the attributions that
`src/steelyard/judge/words/english.NOTICE` repeats. The table is a rounded extract of it, under the same
licence.

    pip install wordfreq==3.1.1
    python scripts/build_idf.py

`wordfreq` is needed for this script only, never by the installed package. The output is the same, byte for
byte, on every run.
"""

from __future__ import annotations

import gzip
import itertools
from pathlib import Path

from wordfreq import top_n_list, zipf_frequency

TARGET = Path(__file__).parent.parent / "src/steelyard/judge/words/english.txt.gz"
MOST = 60_000
RAREST = 3.0
"""Zipf scale: a word that occurs once in a million words. Rarer ones all weigh the same."""

HEADER = """\
# English word frequencies: "zipf x 10" and the words of that frequency, one level a line.
# Rounded from wordfreq 3.1.1 (https://github.com/rspeer/wordfreq), CC BY-SA 4.0; see english.NOTICE.
"""


def main() -> None:
    """Write the table and say how large it is."""
    words = [word for word in top_n_list("en", MOST) if word.replace("'", "").isalpha()]
    levels = ((round(zipf_frequency(word, "en") * 10), word) for word in words)
    kept = [pair for pair in levels if pair[0] >= RAREST * 10]
    lines = [
        f"{level} {' '.join(sorted(word for _, word in group))}\n"
        for level, group in itertools.groupby(sorted(kept, key=lambda pair: -pair[0]), lambda pair: pair[0])
    ]
    TARGET.write_bytes(gzip.compress((HEADER + "".join(lines)).encode(), mtime=0))
    print(f"{len(kept)} words, {TARGET.stat().st_size} bytes: {TARGET.name}")


if __name__ == "__main__":
    main()
