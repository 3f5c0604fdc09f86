"""Words that are forms of one another though no rule of spelling says so, English."""

from __future__ import annotations

_UNITS = """
zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
seventeen eighteen nineteen twenty
"""
_TENS = "thirty forty fifty sixty seventy eighty ninety"
_ORDINALS = "zeroth first second third fourth fifth sixth seventh eighth ninth tenth"
NUMBERS: dict[str, str] = {
    **{word: str(value) for value, word in enumerate(_UNITS.split())},
    **{word: str(value * 10) for value, word in enumerate(_TENS.split(), start=3)},
    **{word: str(value) for value, word in enumerate(_ORDINALS.split())},
}
"""Number words to digits."""
COUNTS = frozenset((_UNITS + _TENS).split()) - {"zero", "one", "two"}
"""Number words that a text must have; one and two are often said of what the text merely lists."""

_FORMS = """
be am is are was were been being|have has had having|do does did done doing|go goes went gone|say said
make made|take took taken|come came|see saw seen|get got gotten|give gave given|find found|think thought
tell told|become became|leave left|feel felt|bring brought|begin began begun|keep kept|hold held
write wrote written|stand stood|hear heard|mean meant|meet met|run ran|pay paid|sit sat|speak spoke spoken
lead led|grow grew grown|lose lost|fall fell fallen|send sent|build built|understand understood
draw drew drawn|break broke broken|spend spent|rise rose risen|drive drove driven|buy bought
wear wore worn|choose chose chosen|win won|teach taught|catch caught|fight fought|sell sold|fly flew flown
throw threw thrown|know knew known|show shown|sing sang sung|swim swam swum|drink drank drunk
eat ate eaten|forget forgot forgotten|steal stole stolen|shoot shot|sleep slept|seek sought
hide hid hidden|bear bore born borne|die dying|lie lying|man men|woman women|child children|person people
life lives|wife wives|leaf leaves|foot feet|tooth teeth|mouse mice|century centuries
"""
_PLACES = """
america american americans|africa african africans|asia asian asians|europe european europeans
australia australian australians|austria austrian austrians|argentina argentine argentinian
belgium belgian belgians|brazil brazilian brazilians|britain british briton britons|bulgaria bulgarian
canada canadian canadians|chile chilean|china chinese|colombia colombian|croatia croatian
cuba cuban cubans|denmark danish dane danes|egypt egyptian egyptians|england english|ethiopia ethiopian
finland finnish finn finns|france french|germany german germans|greece greek greeks|hungary hungarian
iceland icelandic|india indian indians|indonesia indonesian|iran iranian iranians|iraq iraqi iraqis
ireland irish|israel israeli israelis|italy italian italians|jamaica jamaican|japan japanese|kenya kenyan
korea korean koreans|lebanon lebanese|malaysia malaysian|mexico mexican mexicans|morocco moroccan
netherlands dutch|nigeria nigerian|norway norwegian norwegians|pakistan pakistani|peru peruvian
philippines philippine filipino|poland polish|portugal portuguese|romania romanian|russia russian russians
scotland scottish scots|serbia serbian|spain spanish|sweden swedish swede swedes|switzerland swiss
syria syrian syrians|thailand thai|turkey turkish turks|ukraine ukrainian|vietnam vietnamese|wales welsh
rome roman romans|paris parisian|london londoner
"""
_MONTHS = """
january jan|february feb|march mar|april apr|june jun|july jul|august aug|september sept sep|october oct
november nov|december dec
"""
FORMS: dict[str, str] = {
    form: group.split()[0]
    for line in (_FORMS + _PLACES + _MONTHS).split("\n")
    for group in line.split("|")
    for form in group.split()[1:]
}
"""Irregular forms, people of a place and short months, each to the word that stands for all of them."""
