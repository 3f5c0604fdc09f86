"""Numbers, units and money, however they are written; and tables that hold them."""

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
        ("The fee is £35.", "The fee is $35.", "A fee of £35 is charged. The fee is due at once."),
        ("The fee is 35 euros.", "The fee is 35 dollars.", "The fee is €35."),
        ("The fee is EUR 35.", "The fee is USD 35.", "The fee is 35 €."),
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


@pytest.mark.parametrize(
    ("true", "false", "text"),
    [
        ("The rent in Bremm is 390 euros.", "The rent in Bremm is 510 euros.", TOWNS),
    ],
)
def test_rows_keep_their_amounts(true: str, false: str, text: str) -> None:
    check_twins(true, false, text)
