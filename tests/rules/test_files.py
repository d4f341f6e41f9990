"""Rules from files: which belongs to which, and all that is wrong in one go."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

import cepheid as cep
from cepheid.rules.load.files import read

PAIR = "PATTERN A a ; B b WITHIN 5"
BIG = "PATTERN A a ; B b WHERE b.x > :low WITHIN 5"


def write(folder: Path, **files: str) -> Path:
    """Files by their names, `_dot_` for the dot and `_in_` for the slash."""
    for name, text in files.items():
        path = folder / name.replace("_in_", "/").replace("_dot_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def names(path: Path) -> list[str]:
    return list(cep.RuleSet.load(path))


def found(path: Path) -> list[str]:
    with pytest.raises(cep.RuleSetError) as error:
        cep.RuleSet.load(path)
    rendered = [finding.render() for finding in error.value.findings]
    assert str(error.value) == "\n\n".join(rendered)
    return [text.replace(f"{path}/", "") for text in rendered]


class TestFiles:
    def test_a_folder_with_folders(self, tmp_path: Path) -> None:
        write(
            tmp_path,
            z_dot_cep=f"INTO last {PAIR}",
            b_in_two_dot_cep=f"INTO second {PAIR}\n\nINTO third {PAIR}",
            b_in_pair_dot_cep=PAIR,
            notes_dot_txt="no rule",
        )
        write(tmp_path / ".hidden", x_dot_cep="wrong")
        assert names(tmp_path) == ["pair", "second", "third", "last"]

    def test_a_file(self, tmp_path: Path) -> None:
        write(tmp_path, pair_dot_cep=PAIR, two_dot_cep=f"INTO a {PAIR} INTO b {PAIR}")
        assert names(tmp_path / "pair.cep") == ["pair"]
        assert names(tmp_path / "two.cep") == ["a", "b"]

    def test_a_table_is_for_the_query_of_its_name(self, tmp_path: Path) -> None:
        write(
            tmp_path,
            all_dot_cep=f"INTO pair {PAIR}\nINTO big {BIG}",
            tables_in_big_dot_csv="rule,low,severity\nbig-de,10,high\nbig-fr,20,low",
        )
        rules = cep.RuleSet.load(tmp_path)
        assert list(rules) == ["pair", "big-de", "big-fr"]
        assert rules["big-fr"].params == {"low": 20}
        assert rules["big-fr"].origin == f"{tmp_path}/tables/big.csv, row 2"
        assert rules["pair"].origin == f"{tmp_path}/all.cep:1"

    def test_a_table_may_be_a_folder(self, tmp_path: Path) -> None:
        write(tmp_path, big_dot_cep=BIG)
        folder = tmp_path / "big.parquet"
        folder.mkdir()
        for part, low in enumerate((10, 20)):
            pa.parquet.write_table(pa.table({"low": [low]}), folder / f"part-{part}.parquet")
        (folder / "_SUCCESS").touch()
        rules = cep.RuleSet.load(tmp_path)
        assert [rule.params["low"] for rule in rules.values()] == [10, 20]

    def test_a_table_without_rows_has_no_rules(self, tmp_path: Path) -> None:
        write(tmp_path, pair_dot_cep=PAIR, big_dot_cep=BIG, big_dot_csv="rule,low\n")
        assert names(tmp_path) == ["pair"]
        assert cep.RuleSet.load(tmp_path).check() == ()

    def test_a_file_may_begin_with_a_byte_order_mark(self, tmp_path: Path) -> None:
        (tmp_path / "pair.cep").write_bytes(b"\xef\xbb\xbf" + PAIR.replace(" ", "\r\n").encode())
        assert names(tmp_path) == ["pair"]

    def test_of_a_single_file_only_tables_that_it_needs(self, tmp_path: Path) -> None:
        """What has the same name may well be events."""
        write(tmp_path, pair_dot_cep=PAIR, pair_dot_csv="ts,type\n1,A\n2,B")
        write(tmp_path, big_dot_cep=BIG, big_dot_csv="low\n10\n20")
        assert names(tmp_path / "pair.cep") == ["pair"]
        assert names(tmp_path / "big.cep") == ["big-1", "big-2"]

    def test_values_for_all_rules(self, tmp_path: Path) -> None:
        query = "PATTERN A a WHERE a.x > :low AND a.y < :high"
        write(tmp_path, one_dot_cep=query, many_dot_cep=query, many_dot_csv="low\n10\n20")
        rules = cep.RuleSet.load(tmp_path, {"low": 1, "high": 9, "other": 0})
        assert {name: rule.params for name, rule in rules.items()} == {
            "many-1": {"low": 10, "high": 9},
            "many-2": {"low": 20, "high": 9},
            "one": {"low": 1, "high": 9},
        }


class TestFindings:
    def test_everything_of_every_file(self, tmp_path: Path) -> None:
        write(
            tmp_path,
            a_dot_cep=f"INTO fine {PAIR}\n\nINTO bad PATTERN A a ;\nINTO fine {PAIR}",
            b_dot_cep=f"{PAIR}\nINTO big {BIG}",
            big_dot_csv="rule,lo\nx,1\nfine,2\nx,3",
            c_dot_cep="PATTERN A a ; B b WITHIN 5 fortnights",
            other_dot_csv="low\n1",
        )
        assert found(tmp_path) == [
            "CEP104: the query ends too early\n"
            "  a.cep:3:23\n"
            "  3 | INTO bad PATTERN A a ;\n"
            "    |                       ^ expected a pattern",
            "b.cep: line 1: this query has no name\n"
            "  a file has several queries if each begins with INTO and a name",
            "CEP109: unknown unit `fortnights`\n"
            "  c.cep:1:28\n"
            "  1 | PATTERN A a ; B b WITHIN 5 fortnights\n"
            "    |                            ^^^^^^^^^^ write one of microseconds, milliseconds, "
            "seconds, minutes, hours, days, weeks",
            "CEP216: the name `fine` is taken: a.cep:1 has it\n"
            "  a.cep:4:6\n"
            "  4 | INTO fine PATTERN A a ; B b WITHIN 5\n"
            "    |      ^^^^ give it another name",
            "other.csv: no query is called `other`\n  begin one with INTO other",
            "CEP206: the parameter `:low` has no column in big.csv\n"
            "  b.cep:2:40\n"
            "  2 | INTO big PATTERN A a ; B b WHERE b.x > :low WITHIN 5\n"
            "    |                                        ^^^^ did you mean `lo`?",
            "big.csv, row 2: the name `fine` is taken: a.cep:1 has it\n"
            "  give every rule a different name",
            "big.csv, row 3: the name `x` is taken: row 1 has it\n"
            "  give every rule a different name",
        ]

    def test_what_is_right_is_there_beside_what_is_wrong(self, tmp_path: Path) -> None:
        write(tmp_path, a_dot_cep=f"INTO fine {PAIR}\nINTO bad PATTERN")
        assert [template.name for template in read(tmp_path).templates] == ["fine"]

    def test_a_query_named_as_a_numbered_rule(self, tmp_path: Path) -> None:
        write(tmp_path, a_dot_cep=f"INTO `big-2` {PAIR} INTO big {BIG}", big_dot_csv="low\n1\n2")
        assert found(tmp_path) == [
            "big.csv, row 2: the name `big-2` is taken: a.cep:1 has it\n"
            "  give every rule a different name"
        ]

    def test_files_of_one_name(self, tmp_path: Path) -> None:
        write(tmp_path, pair_dot_cep=PAIR, x_in_pair_dot_cep=PAIR)
        assert found(tmp_path) == [
            "x/pair.cep: the name `pair` is taken: pair.cep:1 has it\n"
            "  begin it with INTO and another name"
        ]

    def test_two_tables_for_a_query(self, tmp_path: Path) -> None:
        write(tmp_path, big_dot_cep=BIG, big_dot_csv="low\n1", x_in_big_dot_csv="low\n2")
        assert found(tmp_path) == [
            "x/big.csv: the query `big` has a table already: big.csv\n  keep one of them"
        ]

    def test_a_misspelled_table(self, tmp_path: Path) -> None:
        write(tmp_path, large_dot_cep=PAIR, lagre_dot_csv="low\n1")
        assert found(tmp_path) == ["lagre.csv: no query is called `lagre`\n  did you mean `large`?"]

    def test_a_table_that_cannot_be_read(self, tmp_path: Path) -> None:
        write(tmp_path, big_dot_cep=BIG, big_dot_csv="low,high\n1\n")
        (finding,) = found(tmp_path)
        assert finding.startswith("big.csv: the table can't be read: ")
        write(tmp_path, big_dot_csv="rule,low\n1,2")
        (tmp_path / "big.csv").rename(tmp_path / "big.parquet")
        (finding,) = found(tmp_path)
        assert finding.startswith("big.parquet: the table can't be read: ")

    def test_a_forgotten_quote_spoils_one_query(self, tmp_path: Path) -> None:
        text = (
            f"INTO a PATTERN A a WHERE a.x = 'oops\nINTO b {PAIR}\nINTO c PATTERN C c WHERE c.x = "
        )
        write(tmp_path, a_dot_cep=text + "'fine'")
        assert found(tmp_path) == [
            "CEP107: this string is never closed\n"
            "  a.cep:1:32\n"
            "  1 | INTO a PATTERN A a WHERE a.x = 'oops\n"
            "    |                                ^ add a closing '"
        ]

    def test_a_string_over_lines_is_a_string(self, tmp_path: Path) -> None:
        write(tmp_path, a_dot_cep=f"INTO a PATTERN A a WHERE a.x = 'one\nINTO b {PAIR}'")
        assert names(tmp_path) == ["a"]

    def test_no_rules(self, tmp_path: Path) -> None:
        (tmp_path / "empty").mkdir()
        assert found(tmp_path / "empty") == [
            f"{tmp_path}/empty: there are no rules in this folder\n"
            "  queries are in files whose names end with .cep"
        ]
        assert found(tmp_path / "nowhere") == [
            f"{tmp_path}/nowhere: there is no such file or folder"
        ]
        write(tmp_path, a_dot_cep="-- nothing yet\n")
        assert "CEP101: this query is empty" in found(tmp_path)[0]

    def test_a_file_that_is_no_text(self, tmp_path: Path) -> None:
        (tmp_path / "a.cep").write_bytes(b"PATTERN \xff")
        assert found(tmp_path) == ["a.cep: the file can't be read: it isn't UTF-8 text"]


def test_thousands_of_queries_on_one_line_are_read_in_linear_time(tmp_path: Path) -> None:
    """Each is a part of the text, not a copy of all that stands before it."""
    count = 2000
    write(tmp_path, a_dot_cep=" ".join(f"INTO r{i} PATTERN A" for i in range(count)))
    loaded = read(tmp_path)
    assert len(loaded.templates) == count
    assert sum(len(template.query.text) for template in loaded.templates) < 30 * count
    assert (
        loaded.templates[-1].query.column
        == sum(len(f"INTO r{i} PATTERN A ") for i in range(count - 1)) + 1
    )


class TestLenient:
    """errors="skip": what is wrong is left out and reported, and everything else is loaded."""

    def test_wrong_rules_are_left_out(self, tmp_path: Path) -> None:
        write(
            tmp_path,
            a_dot_cep=f"INTO one {PAIR}\n\nINTO two PATTERN A a WITHIN\n\nINTO big {BIG}",
            big_dot_csv="rule,low\na,1\nb,2\na,3\n",
            alone_dot_csv="rule,low\n",
        )
        with pytest.warns(UserWarning, match="the rule is left out") as warned:
            rules = cep.RuleSet.load(tmp_path, errors="skip")
        assert list(rules) == ["one", "a", "b"]
        assert rules["a"].params == {"low": 1}
        assert [finding.rows for finding in rules.skipped] == [(), (), (3,)]
        assert len(warned) == 3
        with pytest.raises(cep.RuleSetError):
            cep.RuleSet.load(tmp_path)

    def test_a_right_set_skips_nothing(self, tmp_path: Path) -> None:
        write(tmp_path, pair_dot_cep=PAIR)
        assert cep.RuleSet.load(tmp_path, errors="skip").skipped == ()

    def test_nothing_left_is_an_error(self, tmp_path: Path) -> None:
        write(tmp_path, pair_dot_cep="PATTERN A a WITHIN")
        with pytest.raises(cep.RuleSetError):
            cep.RuleSet.load(tmp_path, errors="skip")

    def test_another_word_is_an_error(self, tmp_path: Path) -> None:
        write(tmp_path, pair_dot_cep=PAIR)
        with pytest.raises(cep.OptionError, match='it is "raise" or "skip"'):
            cep.RuleSet.load(tmp_path, errors="ignore")  # type: ignore[arg-type]


class TestMisfits:
    """One bad cell of a table spoils its row, not the column."""

    def test_a_bad_cell(self, tmp_path: Path) -> None:
        cells = [str(n) for n in range(40)]
        cells[7] = "n/a"
        table = "rule,low\n" + "".join(f"r{n},{cell}\n" for n, cell in enumerate(cells))
        write(tmp_path, big_dot_cep=BIG, big_dot_csv=table)
        (finding,) = found(tmp_path)
        assert finding == (
            "big.csv, row 8: `low` is `n/a`, and the other values are numbers\n"
            "  an empty field is no value"
        )
        with pytest.warns(UserWarning, match="row 8"):
            rules = cep.RuleSet.load(tmp_path, errors="skip")
        assert len(rules) == 39 and rules["r8"].params == {"low": 8} and "r7" not in rules

    @pytest.mark.parametrize(
        ("cells", "values"),
        [
            (["DE", "FR", "NA", "5"], ["DE", "FR", "NA", "5"]),
            (["007", "1", "2", "3"], ["007", "1", "2", "3"]),
            (["1.5", "", "2", "3"], [1.5, None, 2.0, 3.0]),
        ],
    )
    def test_columns_that_stay(
        self, tmp_path: Path, cells: list[str], values: list[object]
    ) -> None:
        table = "rule,low\n" + "".join(f"r{n},{cell}\n" for n, cell in enumerate(cells))
        write(tmp_path, big_dot_cep=BIG, big_dot_csv=table)
        rules = cep.RuleSet.load(tmp_path)
        assert [rule.params["low"] for rule in rules.values()] == values
