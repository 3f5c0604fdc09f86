r"""Texts as words that no writing of them changes: what matching compares.

A prompt may hold a passage as Python shows it, as JSON (also JSON in JSON), as XML, wrapped, or indented.
Each of these writings maps to the same words, because the same reading is applied to both sides: a run of
backslashes and the letter after it is one escape however often it was escaped, entities are resolved until
none is left, tags and punctuation separate, letters are compatible forms (NFKC) in lower case. Scripts
without spaces (Chinese, Japanese, Thai, Lao, Khmer, Burmese) give one word a character.

Everything is linear in the length of the text, whatever the text.
"""

from __future__ import annotations

import html
import re
from unicodedata import is_normalized, normalize

_ESCAPE = re.compile(r"""\\+(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|x([0-9a-fA-F]{2})|[nrtbfv'"/])?""")
_ENTITY = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
_ENTITY_LEVELS = 3
_TAG = re.compile(r"<[A-Za-z/!?][^<>]{0,200}>")
_SURROGATE = re.compile("([\ud800-\udbff])([\udc00-\udfff])|[\ud800-\udfff]")
# A run is cut at 256: a normalisation sorts combining marks, in time that grows with the square of their run.
_BEYOND_ASCII = re.compile("[\x00-\x7f]?[^\x00-\x7f]{1,256}")
_SPACELESS = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
_WORD = re.compile(f"[{_SPACELESS}]|[^\\W_{_SPACELESS}]+")
_AT_ONCE = 10_000
"""Characters whose words are found in one call."""
_IS_SPACELESS = re.compile(f"[{_SPACELESS}]")
_MOST_BETWEEN = 64
_ASCII = {code: chr(code).lower() if chr(code).isalnum() else " " for code in range(128)}


def words(text: str) -> list[str]:
    """The words of a text, in order, the same for every writing of it."""
    text = unescaped(text)
    if "<" in text:
        text = _TAG.sub(" ", text)
    if text.isascii():
        return text.translate(_ASCII).split()
    return _split(_compatible(text).casefold())


def _split(text: str) -> list[str]:
    """The words of a text beyond ASCII: what separates is replaced, one character at a time.

    Texts in one language use few such characters, and replacing each is twice as fast as looking for words.
    """
    letters = set(text)
    between = [one for one in letters if not one.isalnum() and one != " "]
    if len(between) > _MOST_BETWEEN or _IS_SPACELESS.search("".join(letters)):
        if len(text) <= _AT_ONCE:
            return _WORD.findall(text)
        # The application's threads get their turn between two steps of a loop, not within a call.
        return [found.group() for found in _WORD.finditer(text)]
    for one in between:
        text = text.replace(one, " ")
    return text.split()


def unescaped(text: str) -> str:
    r"""A text without the escapes of JSON, Python, XML and HTML, however often it was escaped.

    >>> unescaped(r'[Document(page_content=\"one\\ntwo &amp;lt;3\")]')
    '[Document(page_content="one\ntwo <3")]'
    """
    if "\\" in text:
        text = _ESCAPE.sub(_character, text)
    for _ in range(_ENTITY_LEVELS):
        if "&" not in text or (plainer := _ENTITY.sub(_entity, text)) == text:
            break
        text = plainer
    # Piece by piece: a codec would hold the interpreter until the whole text is done.
    return text if text.isascii() else _SURROGATE.sub(_paired, text)


def is_spaceless(word: str) -> bool:
    """Whether a word of `words` is a character of a script without spaces."""
    return len(word) == 1 and not word.isascii() and _IS_SPACELESS.match(word) is not None


def _paired(match: re.Match[str]) -> str:
    """The character that two surrogates stand for; one alone stands for none."""
    if match[1] is None:
        return "\N{REPLACEMENT CHARACTER}"
    return chr(0x10000 + ((ord(match[1]) - 0xD800) << 10) + (ord(match[2]) - 0xDC00))


_NAMED = {"n": "\n", "r": "\r", "t": "\t", "'": "'", '"': '"', "/": "/"}


def _character(match: re.Match[str]) -> str:
    digits = match[1] or match[2] or match[3]
    if digits is None:
        last = match[0][-1]
        return " " if last == "\\" else _NAMED.get(last, " ")
    code = int(digits, 16)
    return chr(code) if code <= 0x10FFFF else "\N{REPLACEMENT CHARACTER}"


def _entity(match: re.Match[str]) -> str:
    return html.unescape(match[0])


def _compatible(text: str) -> str:
    if is_normalized("NFKC", text):
        return text
    known: dict[str, str] = {}

    def fold(match: re.Match[str]) -> str:
        run = match[0]
        if run not in known:
            known[run] = normalize("NFKC", run)
        return known[run]

    return _BEYOND_ASCII.sub(fold, text)
