"""Text files in every layout, read through `read_series`."""

import csv
import io
import sys
import warnings
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from causalformer.data import read_series
from causalformer.errors import DataError, DataWarning


class TestSeparators:
    @pytest.mark.parametrize("separator", [",", ";", "\t", " ", "   ", ", ", " ; ", " \t "])
    @pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
    def test_each_is_found(self, write, separator, line_end):
        lines = [["a", "b", "c"], ["1.5", "-2", "3e-1"], ["4", "5.25", "6"]]
        made = read_series(write(line_end.join(separator.join(line) for line in lines)))
        assert made.names == ("a", "b", "c")
        assert made.values.tolist() == [[1.5, -2, 0.3], [4, 5.25, 6]]

    @pytest.mark.parametrize("separator", [";", "\t", " "])
    def test_decimal_comma(self, write, separator):
        text = f"a{separator}b\n1,5{separator}2\n-0,25{separator}3,125\n"
        assert read_series(write(text)).values.tolist() == [[1.5, 2], [-0.25, 3.125]]

    def test_decimal_comma_that_shows_late(self, write):
        text = "a;b\n" + "1;2\n" * 100 + "1,5;2\n"
        assert read_series(write(text)).values.tolist()[-1] == [1.5, 2.0]

    def test_decimal_comma_beside_truth_values(self, write):
        made = read_series(write("a;b\n1,5;True\n2,5;false\n"))
        assert made.values.tolist() == [[1.5, 1.0], [2.5, 0.0]]

    def test_dates_with_spaces_do_not_split(self, write):
        made = read_series(write("date,a,b\n2024-01-01 00:00,1,2\n2024-01-01 01:00,3,4\n"))
        assert made.names == ("a", "b")
        assert made.time is not None
        assert str(made.time[1]).startswith("2024-01-01T01:00")

    def test_a_separator_at_every_line_end(self, write):
        assert read_series(write("a;b;\n1;2;\n3;4;\n")).names == ("a", "b")

    def test_blank_lines_are_skipped(self, write):
        assert read_series(write("\n\na,b\n\n1,2\n\n3,4\n\n  \n")).values.tolist() == [
            [1, 2],
            [3, 4],
        ]

    def test_savetxt_output_reads_back(self, tmp_path):
        values = np.random.default_rng(0).normal(size=(50, 4))
        np.savetxt(tmp_path / "a.txt", values, fmt="%25.17g")
        made = read_series(tmp_path / "a.txt")
        assert made.names == ("x0", "x1", "x2", "x3")
        np.testing.assert_array_equal(made.values, values)


class TestHeader:
    def test_numbers_alone_are_data(self, write):
        made = read_series(write("1.5,2\n3,4\n"))
        assert made.names == ("x0", "x1")
        assert made.n_slots == 2

    @pytest.mark.parametrize("first", ["1.5,,2", "NA,1.5,nan", "inf,-1e5,+2", "True,false,1"])
    def test_missing_infinite_and_truth_values_are_data(self, write, first):
        assert read_series(write(f"{first}\n1,2,3.5\n")).n_slots == 2

    @pytest.mark.parametrize("start", [0, 1])
    def test_counted_columns_over_fractions_are_a_header(self, write, start):
        names = tuple(str(i + start) for i in range(5))
        made = read_series(write(",".join(names) + "\n" + "0.5,1,2,3,4\n" * 3))
        assert made.names == names
        assert made.n_slots == 3

    def test_the_fraction_may_come_late(self, write):
        made = read_series(write("0,1\n" + "5,6\n" * 1000 + "0.5,1\n"))
        assert made.names == ("0", "1")
        assert made.n_slots == 1001

    def test_counted_columns_over_whole_numbers_are_data_with_a_warning(self, write):
        path = write("0,1,2\n5,6,7\n8,9,10\n")
        with pytest.warns(DataWarning, match="kept as data: choose `header=True`"):
            made = read_series(path)
        assert made.n_slots == 3
        assert read_series(path, header=True).names == ("0", "1", "2")
        assert read_series(path, header=False).n_slots == 3

    def test_one_counted_row_alone_is_data(self, write):
        assert read_series(write("0,1,2\n")).n_slots == 1

    @pytest.mark.parametrize("first", ["0,2,1", "0.0,1.0,2.0", "1,2,4", "0,0,0"])
    def test_other_whole_numbers_are_data(self, write, first):
        assert read_series(write(f"{first}\n0.5,1.5,2.5\n")).n_slots == 2

    def test_a_frame_written_with_its_index(self, tmp_path):
        frame = pd.DataFrame(np.random.default_rng(0).normal(size=(9, 3)))
        frame.to_csv(tmp_path / "a.csv")
        made = read_series(tmp_path / "a.csv")
        assert made.names == ("0", "1", "2")
        np.testing.assert_array_equal(made.values, frame.to_numpy())
        assert made.time is not None
        assert made.time.tolist() == list(range(9))

    @pytest.mark.parametrize("dates", [("2024-01-01", "2024-01-02"), ("Jan 2024", "Feb 2024")])
    def test_dates_do_not_make_a_header(self, write, dates):
        made = read_series(write(f"{dates[0]},1,2\n{dates[1]},3,4\n"))
        assert made.names == ("x1", "x2")
        assert made.values.tolist() == [[1, 2], [3, 4]]
        assert made.time is not None

    def test_text_among_fractions_is_a_header_with_a_warning(self, write):
        with pytest.warns(DataWarning, match=r"taken as the header.*1\.5.*header=False"):
            assert read_series(write("1.5,abc\n1,2\n3,4\n")).names == ("1.5", "abc")

    @pytest.mark.parametrize("first", ["0x10,2", "1_000,2", "1.2.3,4"])
    def test_a_misspelt_number_does_not_lose_its_row_in_silence(self, write, first):
        with pytest.warns(DataWarning, match="taken as the header"):
            read_series(write(f"{first}\n3,4\n5,6\n"))

    def test_one_counted_cell_is_no_header(self, write):
        assert read_series(write("1\n2\n3.5\n")).n_slots == 3

    def test_years_may_be_names(self, write):
        made = read_series(write("t,2010,2011\n1,5,6\n2,7,8\n"))
        assert made.names == ("2010", "2011")

    def test_header_forced(self, write):
        path = write("1.5,2.5\n3,4\n")
        assert read_series(path, header=True).names == ("1.5", "2.5")
        with pytest.raises(DataError, match="column 'x0' holds text: 'a' in row 1"):
            read_series(write("a,b\n3,4\n"), header=False)


class TestEncodings:
    @pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "latin-1"])
    def test_names_with_accents(self, write, encoding):
        made = read_series(write("température,sol\n1.5,2\n3,4\n", encoding=encoding))
        assert made.names == ("température", "sol")

    def test_binary_files_are_refused(self, write):
        with pytest.raises(DataError, match=r"some\.csv is not a text file"):
            read_series(write(b"PK\x03\x04\x00\x00\x00"))


name_texts = st.text(
    st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), min_size=1, max_size=8
).map(str.strip)
odd_names = st.lists(
    # a name must not read as a value, and not as time
    name_texts.map(lambda text: f"s{text}"),
    min_size=2,
    max_size=5,
    unique=True,
)
finite = st.floats(allow_nan=False, allow_infinity=False)


@settings(max_examples=60)
@given(data=st.data(), names=odd_names, separator=st.sampled_from([",", ";", "\t"]))
def test_csv_round_trip(tmp_path_factory, data, names, separator):
    row = st.lists(finite, min_size=len(names), max_size=len(names))
    values = data.draw(st.lists(row, min_size=1, max_size=6))
    with_header = data.draw(st.booleans())
    text = io.StringIO()
    writer = csv.writer(
        text,
        delimiter=separator,
        lineterminator=data.draw(st.sampled_from(["\n", "\r\n"])),
        quoting=data.draw(st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL])),
    )
    if with_header:
        writer.writerow(names)
    writer.writerows(values)
    path = tmp_path_factory.mktemp("trip") / "a.csv"
    path.write_bytes(text.getvalue().encode("utf-8"))
    made = read_series(path, header=with_header or None)
    assert made.names == (
        tuple(names) if with_header else tuple(f"x{i}" for i in range(len(names)))
    )
    np.testing.assert_array_equal(made.values, values)
    if with_header:
        assert read_series(path).names == tuple(names)


class TestBadText:
    @pytest.mark.parametrize("text", ["", "\n\n", "  \n", "\ufeff"])
    def test_empty_file(self, write, text):
        with pytest.raises(DataError, match=r"some\.csv is empty"):
            read_series(write(text))

    @pytest.mark.parametrize("header", [None, True])
    def test_header_only(self, write, header):
        with pytest.raises(DataError, match="header but no rows"):
            read_series(write("a,b\n"), header=header)

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("a,b,c\n1,2,3\n1,2\n", "line 3: 2 fields found, 3 expected"),
            ("a,b,c\n\n1,2,3\n1,2,3,4\n", "line 4: 4 fields found, 3 expected as in line 1"),
            ("a b c\n1 2 3\n1 2\n", "line 3: 2 fields found, 3 expected"),
            ("a,b\n1,2,3\n1,2,3\n", "line 2: 3 fields found, 2 expected"),
            ("a,b\n" + "1,2\n" * 500 + "1,2,3\n", "line 502: 3 fields found"),
            ("# a b\n1.5 2\n2 3\n", "remove comment lines"),
        ],
    )
    def test_ragged_lines_are_named(self, write, text, message):
        with pytest.raises(DataError, match=message) as caught:
            read_series(write(text))
        assert "some.csv" in str(caught.value)

    @pytest.mark.parametrize("row", [1, 400])
    def test_text_names_column_value_and_row(self, write, row):
        lines = ["1.5,2.5"] * (row - 1) + ["1.5,abc", "1,2"]
        with pytest.raises(DataError, match=f"column 'b' holds text: 'abc' in row {row};"):
            read_series(write("a,b\n" + "\n".join(lines)))

    def test_a_text_column_is_no_time(self, write):
        with pytest.raises(DataError, match="column 'place' holds text: 'north' in row 1"):
            read_series(write("place,a\nnorth,1\nsouth,2\n"))

    def test_duplicate_names(self, write):
        with pytest.raises(DataError, match=r"'a' \(columns 1, 3\).*'b' \(columns 2, 4\)"):
            read_series(write("a,b,a,b\n1,2,3,4\n"))

    def test_spaces_within_numbers_are_text(self, write):
        with pytest.raises(DataError, match="column 'a' holds text: '1 000'"):
            read_series(write("a,b\n1 000,5\n2 000,6\n"))

    def test_empty_cells_become_nan(self, write):
        made = read_series(write("a,b\n1,\nNA,2\n,null\n"))
        np.testing.assert_array_equal(made.values, [[1, np.nan], [np.nan, 2], [np.nan, np.nan]])

    def test_huge_numbers(self, write):
        made = read_series(write("a,b\n123456789012345678901234567890,1e400\n-1,5e-324\n"))
        assert made.values.tolist() == [[123456789012345678901234567890.0, np.inf], [-1.0, 5e-324]]


class TestBombs:
    """Files made to hang or to fill the memory are read or refused at once."""

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("a,b\n" + "1" * 100_000 + "x,2\n1,2\n", "column 'a' holds text"),
            ('a,b\n"' + "1 jan " * 20_000 + '\n",2\n1,2\n', "column 'a' holds text"),
            ("a,b\n" + "1-1-1 " * 20_000 + ",2\n1,2\n", "column 'a' holds text"),
            ("a,b\n" + "x" * 1_000_000 + ",2\n1,2\n", "field limit"),
            ("a,b\n" + '"' * 1_000_001 + ",2\n1,2\n", "quotation mark"),
            (",".join("x" * 200_000) + "\n", "more than 100000 columns"),
            ("," * 200_000 + "\n" + "," * 200_000, "more than 100000 columns"),
            ("a,b\n1,\0\n", "not a text file"),
        ],
    )
    def test_they_are_refused_in_a_short_line(self, write, text, message):
        with pytest.raises(DataError, match=message) as caught:
            read_series(write(text))
        assert len(str(caught.value)) < 500

    def test_many_equal_names_make_a_short_message(self, write):
        with pytest.raises(DataError, match="and 4995 more") as caught:
            read_series(write(",".join(["a"] * 5000) + "\n" + ",".join(["1"] * 5000)))
        assert len(str(caught.value)) < 500

    def test_names_of_many_digits(self, write):
        names = ("1" * 5000, "abc", "2" * 5000)
        with pytest.warns(DataWarning, match="taken as the header"):
            assert read_series(write(",".join(names) + "\n1,2,3\n")).names == names

    def test_many_blank_lines_before_the_first(self, write):
        assert read_series(write("\n" * 100 + "a,b\n1,2\n")).names == ("a", "b")


def test_the_work_in_python_does_not_grow_with_the_rows(tmp_path):
    def calls(n_rows):
        values = np.random.default_rng(0).normal(size=(n_rows, 10))
        path = tmp_path / f"{n_rows}.csv"
        path.write_text("\n".join(",".join(map(repr, row)) for row in values.tolist()))
        events = Counter()
        sys.setprofile(lambda _, event, __: events.update([event]))
        try:
            read = read_series(path)
        finally:
            sys.setprofile(None)
        np.testing.assert_array_equal(read.values, values)
        return events

    calls(1000)  # the first reading imports what it needs
    assert calls(4000) == calls(1000)


def test_good_files_read_without_a_warning(write):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read_series(write("date;a;b\n1.2.2024;1,5;2\n13.2.2024;2,5;3\n"))
