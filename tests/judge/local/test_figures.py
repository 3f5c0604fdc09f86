"""Numbers, money, dates and times, however they are written; and tables and lists that hold them."""

from __future__ import annotations

import pytest

from local_worked import check_twins


@pytest.mark.parametrize(
    ("true", "false", "text"),
    [
        (
            "Das Haus kostete 1.250.000 Mark.",
            "Das Haus kostete 12.500.000 Mark.",
            "Das Haus kostete 1,25 Millionen Mark.",
        ),
        ("Der Weg ist 1.234,5 Meter lang.", "Der Weg ist 1.243,5 Meter lang.", "Der Weg ist 1234,5 m lang."),
        ("Der Weg ist 3,5 km lang.", "Der Weg ist 35 km lang.", "Der Weg ist 3500 Meter lang."),
        (
            "The path is 3.5 km long.",
            "The path is 35 km long.",
            "Der Weg ist 3,5 km lang. The path is 3,5 km long.",
        ),
        (
            "La ville compte 1 234 567 habitants.",
            "La ville compte 1 243 567 habitants.",
            "La ville compte 1.234.567 habitants.",
        ),
        ("The loan is 12,50,000 rupees.", "The loan is 1,25,000 rupees.", "The loan is ₹1,250,000."),
        ("The loan is 12.5 lakh rupees.", "The loan is 12.5 crore rupees.", "The loan is 12,50,000 rupees."),
        (
            "The fund holds 3 crore rupees.",
            "The fund holds 3 lakh rupees.",
            "The fund holds 30,000,000 rupees.",
        ),
        ("The prize is 1'500 francs.", "The prize is 1'050 francs.", "The prize is CHF 1,500."),
        ("The fee is £35.", "The fee is $35.", "A fee of £35 is charged. The fee is due at once."),
        ("The fee is 35 euros.", "The fee is 35 dollars.", "The fee is €35."),
        ("The fee is EUR 35.", "The fee is USD 35.", "The fee is 35 €."),
        ("The fee is 35 pounds.", "The fee is 53 pounds.", "The fee is £35."),
        (
            "The rate rose by 2 percentage points.",
            "The rate rose by 2 percent.",
            "The rate rose by 2 percentage points.",
        ),
        ("The rate is 12 %.", "The rate is 21 %.", "The rate is 12 per cent."),
        (
            "The lake covers 62 km².",
            "The lake covers 62 square miles.",
            "The lake covers 62 square kilometres.",
        ),
        ("It opened on 25/12/2024.", "It opened on 24/12/2024.", "It opened on 25 December 2024."),
        (
            "It opened on December 25th, 2024.",
            "It opened on December 26th, 2024.",
            "It opened on 12/25/2024.",
        ),
        ("It opened on 2024/12/25.", "It opened on 2024/12/24.", "It opened on 25 December 2024."),
        (
            "3. Mai 1911 war der Tag der Eröffnung.",
            "4. Mai 1911 war der Tag der Eröffnung.",
            "Der Tag der Eröffnung war der 3. Mai 1911.",
        ),
        ("A dozen people came.", "Twenty people came.", "12 people came."),
        ("Version 2.10 is required.", "Version 2.1 is required.", "Version 2.10 is required."),
    ],
)
def test_a_number_is_the_same_however_it_is_written_and_another_one_is_not(
    true: str, false: str, text: str
) -> None:
    check_twins(true, false, text)


TOWNS = (
    "Inhabitants and rent by town, in euros:\n\n"
    "| Town | Inhabitants | Rent | 2020 | 2021 |\n|---|---|---|---|---|\n"
    "| Arlen | 4,100 | 510 | 88 | 91 |\n| Bremm | 850 | 390 | 70 | 64 |\n| Corve | 12,300 | 720 | 15 | 15 |"
)
STORES = (
    "The shed holds these stores:\n\n"
    "1. 40 kg of flour\n2. 12 kg of beans\n3. 6 tins of coffee\n4. 3 coils of rope"
)


@pytest.mark.parametrize(
    ("true", "false", "text"),
    [
        ("The rent in Bremm is 390 euros.", "The rent in Bremm is 510 euros.", TOWNS),
        ("Item 3 is 6 tins of coffee.", "Item 2 is 6 tins of coffee.", STORES),
    ],
)
def test_rows_and_items_keep_their_amounts(true: str, false: str, text: str) -> None:
    check_twins(true, false, text)
