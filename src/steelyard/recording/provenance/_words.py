"""Texts as words that no writing of them changes, and their lines: what matching compares.

A prompt may hold a passage as Python shows it, as JSON (also JSON in JSON), as XML, wrapped, or indented.
Each of these writings maps to the same words, because the same reading is applied to both sides: a run of
backslashes and the letter after it is one escape however often it was escaped, entities are resolved until
none is left, tags and punctuation separate, letters are compatible forms (NFKC) in lower case. Scripts
without spaces (Chinese, Japanese, Thai, Lao, Khmer, Burmese) give one word a character.

Everything is linear in the length of the text, whatever the text.

Also which names hold passages, and which texts of a search say that it found none.
"""

from __future__ import annotations

import html
import re
from functools import lru_cache
from unicodedata import is_normalized, normalize

# Written so that it begins with one plain character: text between escapes is then skipped many times faster.
_ESCAPE = re.compile(r"""(\\\\*(?:u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|x[0-9a-fA-F]{2}|[nrtbfv'"/])?)""")
_ENTITY = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
_ENTITY_LEVELS = 3  # `&amp;lt;` was escaped twice, by a page and by a template around it
_TAG = re.compile(r"<[A-Za-z/!?][^<>]{0,200}>")
_SURROGATE = re.compile("([\ud800-\udbff])([\udc00-\udfff])|[\ud800-\udfff]")
# A run is cut at 256: a normalisation sorts combining marks, in time that grows with the square of their run.
_BEYOND_ASCII = re.compile("[\x00-\x7f]?[^\x00-\x7f]{1,256}")
_SPACELESS = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
_IS_SPACELESS = re.compile(f"[{_SPACELESS}]")
_OTHERS = re.compile(f"([^{_SPACELESS}]+)")
_RUNS = re.compile(f"([{_SPACELESS}]{{1,1000}})|[^{_SPACELESS}]+")
_AT_ONCE = 100_000
"""Characters that one call looks at: the application's threads get their turn between two calls."""
_MOST_BETWEEN = 200  # with more, one expression over the text is faster than replacing one by one
_FOREIGN_BETWEEN = re.compile(f"[^\\w{_SPACELESS}]")
_BETWEEN = re.compile(f"(?:[^\\w{_SPACELESS}]|_)+")
# `str.translate` with a table of plain ASCII is many times faster than a regular expression.
_ASCII = {code: chr(code).lower() if chr(code).isalnum() else " " for code in range(128)}
_ASCII_BYTES = bytes(range(128))
_ASCII_BETWEEN = [chr(code) for code in range(128) if not chr(code).isalnum() and code != 32]


def words(text: str) -> list[str]:
    """The words of a text, in order, the same for every writing of it."""
    text = legible(text)
    # Lower case comes with the table; other scripts need casefold, and take the slower way.
    return text.translate(_ASCII).split() if text.isascii() else _split(text.casefold())


def legible(text: str) -> str:
    """A text without escapes and tags, in compatible characters: its words, and what is between them."""
    text = unescaped(text)
    if "<" in text:
        text = _TAG.sub(" ", text)
    return text if text.isascii() else _compatible(text)


def _split(text: str) -> list[str]:
    """The words of a text beyond ASCII: what separates is replaced, one character at a time.

    Texts in one language use few such characters, and replacing each is faster than looking for words.
    """
    foreign = "".join(_beyond_ascii(text))
    between = _FOREIGN_BETWEEN.findall(foreign)
    # Symbols of every kind, as in tables drawn with characters.
    if len(between) > _MOST_BETWEEN:
        text = _BETWEEN.sub(" ", text)
    else:
        for one in (*_ASCII_BETWEEN, *between):
            text = text.replace(one, " ")
    if not _IS_SPACELESS.search(foreign):
        return text.split()
    found: list[str] = []
    if len(text) <= _AT_ONCE:
        # Odd pieces lie between those of scripts with spaces, and each character in them is a word.
        for at, piece in enumerate(_OTHERS.split(text)):
            found += piece.split() if at % 2 else piece
    else:
        once: dict[str, str] = {}  # a character that stands there often is one object, not many
        for run in _RUNS.finditer(text):
            found += map(once.setdefault, run[0], run[0]) if run[1] else run[0].split()
    return found


def _beyond_ascii(text: str) -> set[str]:
    """The characters of a text that are not ASCII; bytes are sifted many times faster than characters."""
    found: set[str] = set()
    for at in range(0, len(text), _AT_ONCE):
        foreign = text[at : at + _AT_ONCE].encode("utf-8", "surrogatepass").translate(None, _ASCII_BYTES)
        found.update(foreign.decode("utf-8", "surrogatepass"))
    return found


def unescaped(text: str) -> str:
    r"""A text without the escapes of JSON, Python, XML and HTML, however often it was escaped.

    >>> unescaped(r'[Document(page_content=\"one\\ntwo &amp;lt;3\")]')
    '[Document(page_content="one\ntwo <3")]'
    """
    if "\\" in text:
        text = _without_escapes(text)
    # Until nothing changes, but not for ever: each level is one more escaping around the text.
    for _ in range(_ENTITY_LEVELS):
        if "&" not in text or (plainer := _ENTITY.sub(lambda match: html.unescape(match[0]), text)) == text:
            break
        text = plainer
    return _SURROGATE.sub(_paired, text) if _has_surrogates(text) else text


def word_count(text: str) -> int:
    r"""How many words a text has by its blanks; in scripts without any, about two characters are a word.

    >>> word_count("How long is it?"), word_count("\u4e0a\u9650\u662f\u516d\u5341\u4e5d")
    (4, 4)
    """
    count = len(text.split())
    return count if text.isascii() else count + len(_IS_SPACELESS.findall(text)) // 2


def is_spaceless(word: str) -> bool:
    """Whether a word of `words` is a character of a script without spaces."""
    return len(word) == 1 and not word.isascii() and _IS_SPACELESS.match(word) is not None


def _has_surrogates(text: str) -> bool:
    if text.isascii():
        return False
    try:
        for at in range(0, len(text), _AT_ONCE):
            # The encoder finds a lone surrogate without a Python object for each character.
            text[at : at + _AT_ONCE].encode()
    except UnicodeEncodeError:
        return True
    return False


def _paired(match: re.Match[str]) -> str:
    """The character that two surrogates stand for; one alone stands for none."""
    if match[1] is None:
        return "\N{REPLACEMENT CHARACTER}"
    return chr(0x10000 + ((ord(match[1]) - 0xD800) << 10) + (ord(match[2]) - 0xDC00))


_SHORTEST_CODE = 3  # `\x41` is the shortest that has a code; what is shorter has a name, as `\n`
_NAMED = {"n": "\n", "r": "\r", "t": "\t", "'": "'", '"': '"', "/": "/"}


def _without_escapes(text: str) -> str:
    known = _Characters()
    # A split makes one list of all pieces; over a long text that holds the interpreter for too long.
    if len(text) > _AT_ONCE:
        return _ESCAPE.sub(lambda match: known[match[0]], text)
    parts = _ESCAPE.split(text)
    parts[1::2] = [known[escape] for escape in parts[1::2]]
    return "".join(parts)


class _Characters(dict[str, str]):
    """What each escape stands for; a text has many, of few kinds."""

    def __missing__(self, escape: str) -> str:
        self[escape] = found = _character(escape)
        return found


def _character(escape: str) -> str:
    body = escape.lstrip("\\")
    if len(body) < _SHORTEST_CODE:
        # An escape of no known letter parts words, as the backslash alone does.
        return _NAMED.get(body, " ")
    code = int(body[1:], 16)
    return chr(code) if code <= 0x10FFFF else "\N{REPLACEMENT CHARACTER}"


def _compatible(text: str) -> str:
    # Most texts are in this form already, and the check does not copy them.
    if is_normalized("NFKC", text):
        return text
    known: dict[str, str] = {}

    def fold(match: re.Match[str]) -> str:
        run = match[0]
        if run not in known:
            known[run] = normalize("NFKC", run)
        return known[run]

    return _BEYOND_ASCII.sub(fold, text)


_LEAD = re.compile(r"(?:\d{1,3}\s{0,3}[.):]|[-*\N{BULLET}])\s{0,9}")
_SPOKEN = re.compile(
    r"(?im)^\W{0,9}(?:MessageRole\.)?(human|user|customer|you|ai|assistant|bot|chatbot|model|system)"
    r"(?:[ \t]?\(\w{1,20}\))?[ \t]?[:\uff1a]"
)
_MODELS = frozenset(("ai", "assistant", "bot", "chatbot", "model"))
MOST_KEPT = 20_000
"""Characters of a text whose plain form is kept for a while."""
_QUOTES = " \t\"'`*"


def plain(text: str) -> str:
    """A text in lower case, with one blank wherever it has white space."""
    return _plain(text) if len(text) <= MOST_KEPT else " ".join(text.casefold().split())


@lru_cache(maxsize=64)
def _plain(text: str) -> str:
    # The same passages and prompts are compared a dozen times while a Record is built.
    return " ".join(text.casefold().split())


def plain_line(text: str) -> str:
    """A line without its number, its bullet and its quotes, as `plain` writes it."""
    return plain(_LEAD.sub("", text.strip(), count=1).strip(_QUOTES))


def names_speaker(line: str) -> bool:
    """Whether a line says who speaks, and nothing else."""
    found = _SPOKEN.match(line)
    return found is not None and not line[found.end() :].strip()


def names_model(label: str) -> bool:
    """Whether a label says that a model speaks."""
    return label.strip().casefold() in _MODELS


def holds_replies(text: str) -> bool:
    """Whether what a model said is written down in a text, as of an earlier exchange."""
    return any(found[1].casefold() in _MODELS for found in _SPOKEN.finditer(text))


def is_history(text: str) -> bool:
    r"""Whether a text is a conversation that was written down: each of its parts says who speaks.

    >>> [is_history(text) for text in ("Human: Hi\nAI: Hello!", "User: a person who uses a service.")]
    [True, False]
    """
    speakers = [match[0].strip(" \t:*#-\uff1a").casefold() for match in _SPOKEN.finditer(text[:20_000])]
    return len(set(speakers)) > 1 and _SPOKEN.match(text.lstrip()) is not None


def only_speech(text: str) -> str:
    """What a person says in a text that begins with who speaks, if nobody else speaks in it.

    >>> only_speech("User: How many hills?"), only_speech("Hills: how many?")
    ('How many hills?', '')
    """
    speaker, _, speech = text.partition(":")
    is_persons = names_speaker(f"{speaker}:") and not names_model(speaker)
    return speech.strip() if is_persons and not is_history(text) else ""


_PASSAGES = re.compile(
    r"(?:\w{1,40}_)?(?:contexts?|documents?|docs?|passages|chunks|snippets|excerpts|sources|facts|evidence|knowledge"
    r"|results?|rows|records|memories|findings)(?:_str|_text)?",
    re.IGNORECASE,
)

_LONGEST_STATEMENT = 200  # characters; what is longer tells something
_WORD = r"(?:[\w-]{1,30} )"
_HITS = (
    r"(?:results?|documents?|docs?|match(?:es)?|hits?|passages?|information|info|data|records?|entries|rows?"
    r"|articles?|content|contexts?|sources?|chunks?|pages?|papers?|files?|items?|answers?|memor(?:y|ies))\b"
)
# "No information is available for children" tells something of children.
_THERE = r"available(?! (?:for|to|in|on) (?!(?:th[aei]|your)))"
_FOUND = rf"(?: (?:was|were|is|are|ha(?:s|ve) been))? (?:found|returned|retrieved|matched|{_THERE})\b"
_BARE = r"(?![ \t]{0,8}\w)"  # the statement is over; "No data is stored" goes on
_STATEMENTS = (
    rf"(?:no|zero|0) {_WORD}{{0,3}}{_HITS}(?:{_FOUND}|(?<= results) for\b|{_BARE}"
    r"| (?:for|match(?:ed|ing)) (?:this|the|that|your) (?:query|question|request|search|topic)\b)",
    rf"(?:no|zero|0) {_WORD}{{1,4}}(?:(?:was|were|is|are) )?(?:found|returned|matched){_BARE}",
    rf"(?:found|returned|retrieved) 0 {_WORD}{{0,3}}{_HITS}",
    r"(?:nothing|none)(?: (?:was|were|relevant|similar)){0,2} (?:found|returned|match(?:ed|es))\b",
    r"(?:(?:i|we) )?(?:(?:could|did|can)(?: ?not|n.t)|(?:was |were )?unable to|failed to) (?:find|locate)"
    rf" (?:anything\b|{_WORD}{{0,3}}{_HITS})",
    rf"{_WORD}{{0,5}}not found{_BARE}",
    rf"empty (?:response|results?){_BARE}",
    rf"{_WORD}{{0,5}}(?:came (?:back|up) (?:empty|with nothing)|(?:returned|yielded|gave|produced|had|has)"
    rf" (?:nothing|no {_WORD}{{0,2}}{_HITS}|an empty \w{{1,20}})){_BARE}",
    r"(?:i(?:.m| am) sorry\W{1,3})?i (?:do not|don.t|cannot|can.t) (?:know|help|answer)\b",
    rf"(?:es wurden? )?keine? {_WORD}{{0,2}}(?:ergebnisse?|treffer|dokumente?|informationen)\b",
    rf"(?:es wurde )?nichts {_WORD}?gefunden\b",
    rf"aucune? {_WORD}{{0,2}}(?:r\u00e9sultats?|documents?|informations?)\b",
    rf"{_WORD}{{0,3}}rien {_WORD}?trouv\u00e9\b",
    rf"(?:no (?:se|he|hay|hemos) {_WORD}{{0,2}}(?:encontr\w{{1,8}}|resultados?|nada)|sin resultados)\b",
    rf"(?:nessun {_WORD}?risultato|nenhum {_WORD}?resultado|nada {_WORD}?encontrado)\b",
    rf"(?:geen {_WORD}{{0,2}}resultaten|niets {_WORD}?gevonden)\b",
    # Chinese (not found, searched up, matched), Japanese and Korean (cannot be found, there is no result).
    r"[^\s\u3002\uff0c,]{0,12}[\uff0c, ]{0,2}[\u672a\u6ca1\u6c92]\u6709?\u80fd?"
    r"(?:\u627e\u5230|\u68c0\u7d22\u5230|\u641c\u7d22\u5230|\u67e5\u8be2\u5230|\u67e5\u5230|\u5339\u914d\u5230)",
    r"[^\u3002\n]{0,12}(?:\u6ca1\u6709|\u65e0|\u7121)[^\u3002\n]{0,8}(?:\u7ed3\u679c|\u7d50\u679c)",
    r"[^\u3002\n]{0,30}\u898b\u3064\u304b\u308a\u307e\u305b\u3093",
    r"[^.\n]{0,30}(?:\ucc3e\uc744 \uc218 \uc5c6|\uacb0\uacfc\uac00 \uc5c6)",
)
_NOTHING = re.compile(
    r"(?:(?:sorry|unfortunately|error|note|leider|malheureusement|d\u00e9sol\u00e9|lo siento)\W{1,3})?"
    r"(?:(?:there (?:are|is|were|was)|(?:we )?found) )?"
    rf"(?:{'|'.join(_STATEMENTS)})",
    re.IGNORECASE,
)
_END = re.compile(r"[.!?](?:\s|$)|[\u3002\uff01\n]")
_ADVICE = re.compile(
    r"(?:please|try|suggestions?|consider|check|refine|rephrase|use|make sure|you (?:can|may|might))\b",
    re.IGNORECASE,
)
_BUT = re.compile(r"\b(?:but|however|instead|although)\b", re.IGNORECASE)


def names_passages(key: str) -> bool:
    """Whether applications keep passages under such a name.

    >>> [names_passages(name) for name in ("retrieved_docs", "sql_result", "web_results", "answer")]
    [True, True, True, False]
    """
    return _PASSAGES.fullmatch(key) is not None


def finds_nothing(text: str) -> bool:
    """Whether all that a search says is that it found nothing.

    Only short statements that begin so, and go on with nothing but advice.

    >>> [finds_nothing(text) for text in ("No good documents found for 'lens'.", "No data is shared.")]
    [True, False]
    """
    # What several searches say is joined by blank lines.
    first, *more = text.strip().split("\n\n")
    is_short = len(text) <= _LONGEST_STATEMENT
    return _states(first) and all(
        _states(one) or (is_short and _ADVICE.match(one.strip()) is not None) for one in more
    )


def only_counts(text: str) -> bool:
    """Whether all that a search says is how many it found.

    >>> [only_counts(text) for text in ("Found 2 relevant chunks", "Found 2 in the harbour", "0 in stock")]
    [True, False, False]
    """
    return finds_nothing(re.sub(r"\d{1,9}", "0", text[: _LONGEST_STATEMENT + 1]))


def may_find_nothing(text: str) -> bool:
    """Whether a paragraph begins as one that says nothing was found, and goes on without a number.

    What follows mostly tells the model what to do then.

    >>> [may_find_nothing(f"No documents found. {rest}") for rest in ("Say so.", "The nearest is in 12 km.")]
    [True, False]
    """
    first, stop, rest = text.strip().partition(". ")
    is_short = len(text) <= 2 * _LONGEST_STATEMENT and "\n" not in text.strip()
    return is_short and bool(stop) and _states(f"{first}.") and not any(map(str.isdigit, rest))


def _states(text: str) -> bool:
    told = text.strip("\"'[](){} \t\n").replace("_", " ") if len(text) <= _LONGEST_STATEMENT else ""
    if not _NOTHING.match(told) or _BUT.search(told):
        return False
    rest = _END.split(told, maxsplit=1)[1:]
    others = (one.strip() for one in rest if one.strip())
    return all(_ADVICE.match(one) or _NOTHING.match(one) for one in others)
