"""Numbers as values: with their units in one measure, spelled out or in digits.

A quantity is compared by what it measures ("6,200 cm" is "62 m", and is not "6,200 m"). Factors are those
of the International System of Units and of the yard and pound agreement of 1959.
"""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation

from steelyard.judge.local.words._folding import fold

_UNITS = """
m 1 m metre metres meter meters mètre mètres metro metros meter metern
m 1000 km kilometre kilometres kilometer kilometers kilomètre kilomètres kilómetro kilómetros kilometern
m 0.01 cm centimetre centimetres centimeter centimeters centimètre centimètres centímetros zentimeter
m 0.001 mm millimetre millimetres millimeter millimeters millimètres milímetros
m 1609.344 mile miles mi
m 0.3048 ft foot feet
m 0.0254 inch inches
m 0.9144 yard yards yd
g 1 g gram grams gramme grammes gramm gramos
g 1000 kg kilogram kilograms kilogramme kilogrammes kilogramm kilo kilos kilogramos
g 0.001 mg milligram milligrams milligramm
g 1000000 t tonne tonnes tonnen toneladas
g 453.59237 lb lbs pound pounds
g 28.349523125 oz ounce ounces
l 1 l litre litres liter liters litros litern
l 0.001 ml millilitre millilitres milliliter milliliters mililitros
l 0.01 cl centilitre centilitres
l 0.1 dl decilitre decilitres
s 1 s sec secs second seconds sekunde sekunden seconde secondes segundo segundos
s 60 min mins minute minutes minuten minuto minutos
s 3600 h hr hrs hour hours stunde stunden heure heures hora horas
s 86400 day days tag tage tagen jour jours día días dia dias
s 604800 week weeks woche wochen semaine semaines semana semanas
mon 1 month months monat monate monaten mois mes meses
mon 12 year years jahr jahre jahren ans année années año años
mon 120 decade decades
mon 1200 century centuries
c 1 °c celsius
f 1 °f fahrenheit
% 1 % percent percents prozent procent
pp 1 prozentpunkt prozentpunkte prozentpunkten
m2 1 m² m2 sqm
m2 1000000 km² km2
m2 0.0001 cm² cm2
m2 10000 ha hectare hectares hektar hectárea hectáreas
m2 4046.8564224 acre acres
m3 1 m³ m3
km/h 1 km/h kmh kph
km/h 3.6 m/s
km/h 1.609344 mph
usd 1 $ dollar dollars usd us$
eur 1 € euro euros eur
gbp 1 £ gbp
inr 1 ₹ rupee rupees rs inr रुपये रुपए
jpy 1 yen jpy 円
cny 1 yuan rmb cny 元
chf 1 franc francs franken chf
try 1 ₺ lira liras tl
krw 1 ₩ krw
sek 1 kronor sek
nok 1 kroner nok
b 1 byte bytes
b 1000 kb kilobyte kilobytes
b 1000000 mb megabyte megabytes
b 1000000000 gb gigabyte gigabytes
b 1000000000000 tb terabyte terabytes
w 1 w watt watts
w 1000 kw kilowatt kilowatts
w 1000000 mw megawatt megawatts
"""
UNITS: dict[str, tuple[str, Decimal]] = {
    name: (dimension, Decimal(factor))
    for dimension, factor, *names in (line.split() for line in _UNITS.strip().splitlines())
    for name in names
}
"""Names of units to their dimension and how many of its base unit they are."""

CURRENCIES = frozenset(
    {"usd", "us$", "eur", "gbp", "inr", "rs", "jpy", "rmb", "cny", "chf", "krw", "sek", "nok"}
)
"""Names of currencies that may stand before an amount."""
SYMBOLS = frozenset("$€£₹₺₩")
"""Signs of currencies that are of one currency."""

_SCALES = """
100 hundr hundert|1000 thousand k tausend tsd|12 dozen|10000 万 萬|100000 lakh lac लाख|10000000 cror करोड़
1000000 million m millionen millon millones mio milion milioni milyon miljoen milhao milhoes
100000000 亿 億|1000000000 billion bn milliard milliarden mrd miliardi milyar miljard
1000000000000 trillion billionen
"""
SCALES: dict[str, int] = {
    fold(name): int(factor)
    for line in _SCALES.strip().replace("\n", "|").split("|")
    for factor, *names in [line.split()]
    for name in names
}
"""What multiplies the number before it, by its stem."""
ONES = frozenset({"hundred", "thousand", "million", "billion", "trillion", "dozen", "lakh", "crore"})
"""What is a number behind "a"."""

POWERS = {"square": 2, "sq": 2, "cubic": 3}
"""What stands before a length that is an area or a volume."""
_PLAIN = re.compile(r"-?\d+(?:\.\d+)?")


def measure(value: str, unit: str) -> str | None:
    """A number with its unit as an amount of the base unit, e.g. `62 m`; None where there is no such unit."""
    power, _, name = unit.rpartition(" ")
    known = UNITS.get(name)
    if known is None or not _PLAIN.fullmatch(value):
        return None
    (dimension, factor), exponent = known, POWERS.get(power, 1)
    try:
        amount = Decimal(value) * factor**exponent
    except InvalidOperation:
        return None
    return f"{plain(amount)} {dimension}{exponent if exponent > 1 else ''}"


def plain(amount: Decimal) -> str:
    """An amount without an exponent and without zeros that say nothing."""
    text = f"{amount:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
