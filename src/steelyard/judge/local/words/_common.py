"""Words of other languages that say as little as "the" and "of" do, and are not in the table of English."""

from __future__ import annotations

from steelyard.judge.local.words._folding import fold

_WORDS = """
der die das den dem des ein eine einen einem einer eines und oder ist sind war waren wird wurde wurden
werden im
am zum zur vom mit von zu auf bei nach aus für über unter durch sich es er sie wir ihr auch als wie dass
hat haben
le la les un une du de des au aux et ou est sont était dans pour par sur avec que qui ce cette ces il
elle ils son
sa ses leur été ont
el los las una unos unas del al y o es son fue en con por para que se su sus lo como más está han era
il lo gli i uno della delle dello dei degli nel nella alla al e è sono di che per si suo sua è stato
os as um uma do da dos das no na nos nas ao em com foi são seu sua à
het een van en is zijn was op te voor met aan dat die der door bij uit ook naar wordt
och att det som en ett är av på för med til av og er et den var ble blev
i w na z do się jest są to że o od przez
bir ve bu da de ile için olarak olan ki mi dır dir
в на и с по к у из за от для это был была было были как его её о об что
की का के को में से है हैं था थी थे ने यह और पर हो इस एक ही भी इसे
في من على إلى عن هذا هذه التي الذي كان كانت هو هي أن إن ما مع و
של את על אל הוא היא זה עם גם או
και το τα η ο του της των στο στη στην σε με για από που είναι ήταν
"""
LITTLE = 2.0
"""What one of them tells: as much as "with"."""
_ENGLISH = "die i is was war on son van door met do to no as her am in an a are era den par pour com con dos"
COMMON = frozenset(map(fold, _WORDS.split())) - frozenset(_ENGLISH.split())
"""The commonest words of some twenty languages, folded, without those that are words of English too."""
PARTICLES = frozenset({"los", "las", "la", "el", "le", "les", "de", "du", "da", "di", "del", "san"})
"""Those that are part of a name where they have a capital: "Los Angeles"."""
