"""Months and days of the week in the larger languages, by number: "Montag" and "Monday" are the same day."""

from __future__ import annotations

from steelyard.judge.local.words._folding import fold

_WEEKDAYS = """
monday mondays montag montags lundi lundis lunes lunedi maandag måndag mandag pazartesi понедельник
понедельникам الاثنين सोमवार 星期一 礼拜一 周一 週一 月曜日 月曜 월요일|
tuesday tuesdays dienstag dienstags mardi mardis martes martedi dinsdag tisdag tirsdag salı вторник
вторникам الثلاثاء मंगलवार 星期二 礼拜二 周二 週二 火曜日 火曜 화요일|
wednesday wednesdays mittwoch mittwochs mercredi mercredis miércoles mercoledi woensdag onsdag çarşamba
среда среду الأربعاء बुधवार 星期三 礼拜三 周三 週三 水曜日 水曜 수요일|
thursday thursdays donnerstag donnerstags jeudi jeudis jueves giovedi donderdag torsdag perşembe четверг
четвергам الخميس गुरुवार 星期四 礼拜四 周四 週四 木曜日 木曜 목요일|
friday fridays freitag freitags vendredi vendredis viernes venerdi vrijdag fredag cuma пятница пятницу
الجمعة शुक्रवार 星期五 礼拜五 周五 週五 金曜日 金曜 금요일|
saturday saturdays samstag samstags sonnabend sonnabends samedi samedis sábado sábados sabato zaterdag
lördag lørdag cumartesi суббота субботу السبت शनिवार 星期六 礼拜六 周六 週六 土曜日 土曜 토요일|
sunday sundays sonntag sonntags dimanche dimanches domingo domingos domenica zondag söndag søndag
воскресенье воскресеньям الأحد रविवार 星期日 星期天 礼拜天 周日 週日 日曜日 日曜 일요일
"""
_DAYS: dict[str, int] = {
    fold(name): number for number, names in enumerate(_WEEKDAYS.split("|"), start=1) for name in names.split()
}


def weekday(folded: str) -> int | None:
    """Which day of the week a word names, Monday being 1; Korean has its particle in the same word."""
    found = _DAYS.get(folded)
    return _DAYS.get(folded[:3]) if found is None and folded[1:3] == "요일" else found


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
