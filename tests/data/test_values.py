"""Numbers and dates in words, whatever the spelling."""

import numpy as np
import pytest

from softlearning.data.values import date_style, number_style, parse_dates, parse_number


@pytest.mark.parametrize(
    ("words", "style", "first"),
    [
        (["1", "-2.5", "1e-3", ".5", "7."], "plain", 1.0),
        (["1,5", "2"], "comma", 1.5),
        (["1,500", "2"], "thousands", 1500.0),
        (["0,500", "2"], "comma", 0.5),
        (["1.500,25", "2"], "point", 1500.25),
        (["1 500,25", "2"], "space", 1500.25),
        (["1'500.25", "2"], "space", 1500.25),
        (["50%", "2.5%"], "plain %", 0.5),
        (["50 %", "2,5 %"], "comma %", 0.5),
        (["$1,500", "$2"], "thousands $", 1500.0),
        (["2 €", "1.500,5 €"], "point €", 2.0),
        (["1_000", "2"], "", None),
        (["1", "two"], "", None),
        (["007", "010"], "", None),
        (["1,2,3", "4"], "", None),
        (["-", "?"], "", None),
        (["+", "1"], "", None),
        (["e5", "1"], "", None),
        (["1.2.3", "1"], "", None),
    ],
)
def test_numbers_in_local_spelling(words, style, first):
    assert number_style(words) == style
    if style:
        assert parse_number(words[0], style) == pytest.approx(first)


@pytest.mark.parametrize(
    ("words", "style"),
    [
        (["2024-01-31", "2024-02-01T10:00:00Z"], "ISO8601"),
        (["31/01/2024", "01/02/2024"], "%d/%m/%Y"),
        (["01/31/2024", "01/02/2024"], "%m/%d/%Y"),
        (["01/02/2024", "02/01/2024"], "%d/%m/%Y"),
        (["Jan 31, 2024", "Feb 1, 2024"], "%b %d, %Y"),
        (["31.01.2024 10:30", "01.02.2024 08:00"], "%d.%m.%Y %H:%M"),
        (["May 2024", "Jun 2024"], "%b %Y"),
        (["1/2/24 10:30", "13/2/24 08:00"], "%d/%m/%y %H:%M"),
        (["10:30:00", "11:45:10"], ""),
        (["2020/21", "2021/22"], ""),
        (["room 12", "room 13"], ""),
        (["2024-01-31", "soon 1"], ""),
        (["192.168.0.1", "10.0.0.12"], ""),
    ],
)
def test_dates_in_local_spelling(words, style):
    assert date_style(words) == style


@pytest.mark.parametrize(
    ("words", "style", "first"),
    [
        (["1.4k", "900", "2M"], "plain", 1400.0),
        (["(1,999)", "2,000"], "thousands", -1999.0),
        (["1,150 sqft", "900 sqft"], "thousands sqft", 1150.0),
        (["€ 1.234,50", "€ 7,00"], "point €", 1234.5),
        (["-$3", "$297,000"], "thousands $", -3.0),
        (["USD 5", "USD 1,000"], "thousands USD", 5.0),
        (["12 km", "3 mi"], "", None),
        (["4A", "5A"], "", None),
        (["k1", "k2"], "", None),
        (["(5", "6)"], "", None),
        (["$5 %", "$6 %"], "", None),
    ],
)
def test_amounts_with_units_and_abbreviations(words, style, first):
    assert number_style(words) == style
    if style:
        assert parse_number(words[0], style) == pytest.approx(first)


def test_a_plain_number_is_welcome_unless_it_might_be_a_percentage():
    assert parse_number("950", "thousands sqft") == 950
    with pytest.raises(ValueError, match=r"'0\.5' is not a number"):
        parse_number("0.5", "plain %")
    with pytest.raises(ValueError, match="'3 mi' is not a number"):
        parse_number("3 mi", "plain km")


def test_dates_in_several_formats_are_read_each_in_its_own():
    words = ["2024-01-31", "31.12.2023", "Feb 1, 2024", "2024-03-01"]
    style = date_style(words)
    assert style.split("|") == ["ISO8601", "%d.%m.%Y", "%b %d, %Y"]
    days = parse_dates(words, style).astype("datetime64[D]").astype(str)
    assert days.tolist() == ["2024-01-31", "2023-12-31", "2024-02-01", "2024-03-01"]
    assert date_style(["12/31/2024", "31/12/2024"]) == ""


def test_no_date_comes_from_the_clock():
    assert np.isnat(parse_dates(["now", "today", "NOW"], "ISO8601")).all()
