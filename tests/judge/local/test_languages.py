"""Other languages and scripts, and words that look like negations and are none."""

from __future__ import annotations

import pytest

from local_worked import check_twins, supported


@pytest.mark.parametrize(
    ("true", "false", "text"),
    [
        ("Işık Kütüphanesi İzmir'dedir.", "Işık Kütüphanesi Bursa'dadır.", "IŞIK Kütüphanesi İzmir'dedir."),
        ("KÜTÜPHANE IRMAK KENARINDADIR.", "KÜTÜPHANE DENİZ KENARINDADIR.", "Kütüphane ırmak kenarındadır."),
        ("दुकान रविवार को बंद नहीं रहती।", "दुकान रविवार को बंद रहती है।", "दुकान रविवार को बंद नहीं रहती।"),
        ("كتب محمد الرسالة.", "كتب خالد الرسالة.", "كَتَبَ مُحَمَّدٌ الرِّسالَةَ."),
        ("公司有12万名用户。", "公司有21万名用户。", "公司有120000名用户。"),
        (
            "タオルの貸し出しは行っていない。",
            "タオルの貸し出しは行っている。",
            "タオルの貸し出しは行っていない。",
        ),
        ("駅まで歩けません。", "駅まで歩けます。", "駅まで歩けません。"),
        ("A loja não abre aos domingos.", "A loja abre aos domingos.", "A loja não abre aos domingos."),
        (
            "Das Museum ist montags geschlossen.",
            "Das Museum ist dienstags geschlossen.",
            "Montags ist das Museum geschlossen.",
        ),
        (
            "Η βιβλιοθήκη δεν ανοίγει την Κυριακή.",
            "Η βιβλιοθήκη ανοίγει την Κυριακή.",
            "Η βιβλιοθήκη δεν ανοίγει την Κυριακή.",
        ),
        ("הספרייה לא פתוחה בשבת.", "הספרייה פתוחה בשבת.", "הספרייה לא פתוחה בשבת."),
        ("ร้านไม่เปิดวันจันทร์", "ร้านเปิดวันจันทร์", "ร้านไม่เปิดวันจันทร์"),
        (
            "Cửa hàng không mở cửa vào thứ Hai.",
            "Cửa hàng mở cửa vào thứ Hai.",
            "Cửa hàng không mở cửa vào thứ Hai.",
        ),
    ],
)
def test_other_languages_and_scripts(true: str, false: str, text: str) -> None:
    check_twins(true, false, text)


@pytest.mark.parametrize(
    ("true", "false", "text"),
    [
        ("Sia wrote the song.", "Sia covered the song.", '"Never Give Up" is a song that Sia wrote.'),
        (
            "A note was found in the drawer.",
            "No note was found in the drawer.",
            "A note was found in the drawer, and the drawer was locked.",
        ),
        (
            "The song Never Shout is from Joplin.",
            "The song Never Shout is not from Joplin.",
            "The song Never Shout is from Joplin.",
        ),
        ("The soup was nice and hot.", "The soup was nice and cold.", "The soup was nice and hot."),
        ("Yeah it weighs 40 kg.", "Yeah it weighs 44 kg.", "It weighs 40 kg."),
        ("Oak is a band.", "Oak is not a band.", "Oak is a hard rock band from Harrow."),
        ("The room no. 12 is closed.", "The room no. 21 is closed.", "The room no. 12 is closed."),
        (
            "The paper is on a failed attempt to rescue the crew.",
            "The crew was not rescued in an attempt.",
            "The paper is on a failed attempt to rescue the crew.",
        ),
    ],
)
def test_what_negates_and_what_only_looks_like_it(true: str, false: str, text: str) -> None:
    check_twins(true, false, text)


@pytest.mark.parametrize("hidden", ["\u00ad", "\u200b", "\ufe0f", "\u3164", "\U000e0041", "\u180e", "\u202e"])
def test_what_cannot_be_seen_does_not_part_a_word(hidden: str) -> None:
    text = "The ferry does not cross the river in winter."
    assert supported(text.replace("not", f"n{hidden}ot"), text).value
    crossed = text.replace("does not cross", "crosses")
    assert not supported(crossed, text.replace("not", f"n{hidden}ot")).value
