"""Numbers as values: with their units in one measure, spelled out or in digits, dates as day and month.

A quantity is compared by what it measures ("6,200 cm" is "62 m", and is not "6,200 m"), a date by its month
and day in whatever order they are written. Factors are those of the International System of Units and of the
yard and pound agreement of 1959.
"""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation

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
% 1 % percent prozent
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

_MONTHS = """
january jan januar janvier enero gennaio janeiro januari|february feb februar février fevrier febrero febbraio
march mar märz marz mars marzo março maart|april apr avril abril aprile|may mai mayo maggio maio mei
june jun juni juin junio giugno junho|july jul juli juillet julio luglio julho
august aug août aout agosto augustus|september sept sep septembre septiembre settembre setembro
october oct oktober octobre octubre ottobre outubro|november nov novembre noviembre novembro
december dec dezember décembre decembre diciembre dicembre dezembro
"""
MONTHS: dict[str, int] = {
    name: number
    for number, names in enumerate(_MONTHS.strip().replace("\n", "|").split("|"), start=1)
    for name in names.split()
}
"""Names of months to their number, in the larger languages of Europe."""

_PLAIN = re.compile(r"-?\d+(?:\.\d+)?")


def measure(value: str, unit: str) -> str | None:
    """A number with its unit as an amount of the base unit, e.g. `62 m`; None where there is no such unit.

    Args:
        value: Digits, as words are compared by.
        unit: The word after it, folded.
    """
    known = UNITS.get(unit)
    if known is None or not _PLAIN.fullmatch(value):
        return None
    try:
        amount = Decimal(value) * known[1]
    except InvalidOperation:
        return None
    return f"{plain(amount)} {known[0]}"


def plain(amount: Decimal) -> str:
    """An amount without an exponent and without zeros that say nothing."""
    text = f"{amount:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
