import re

import pytest

from causalformer.errors import DataError
from causalformer.names import check_names, listed, printable_name


@pytest.mark.parametrize(
    ("names", "problem"),
    [
        (("a", "b", "a", "b"), "x.csv: names given more than once: 'a' (columns 1, 3), 'b' (col"),
        (("a", 1), "x.csv: names must be text, not 1"),
        ("abc", "x.csv: `names` is the single text 'abc'; give one name per series"),
        (("\ud800",), "x.csv: name '\\ud800' cannot be written as UTF-8"),
    ],
)
def test_unusable_names_are_refused(names, problem):
    with pytest.raises(DataError, match=re.escape(problem)):
        check_names(names, "x.csv")


def test_any_other_text_is_a_name():
    check_names(("", " ", "\x00", "😀", "two\nlines"), "x.csv")


def test_long_lists_are_cut():
    assert listed("abc", most=3) == "a, b, c"
    assert listed("abcd", most=3) == "a, b, c and 1 more"


def test_control_characters_are_shown_as_escapes():
    assert printable_name("a\u202eb\x1b") == r"a\u202eb\x1b"
