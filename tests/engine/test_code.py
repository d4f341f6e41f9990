"""The code writer, by what it writes."""

from __future__ import annotations

from cepheid.kernels.code import Code
from cepheid.kernels.compile import load


def test_blocks_are_indented_and_never_empty() -> None:
    code = Code()
    with code.block("for i in range(3):"):
        with code.block("if i:"):
            code.line("x = i")
        with code.block("else:"):
            pass
    assert code.source == "for i in range(3):\n    if i:\n        x = i\n    else:\n        pass\n"


def test_a_template_takes_the_level_where_it_stands() -> None:
    code = Code(level=1)
    code.text("\nif a:\n    b = 1\n\nc = 2\n")
    assert code.lines == ["    if a:", "        b = 1", "", "    c = 2"]


def test_lines_that_end_deeper_have_what_follows_inside() -> None:
    code = Code()
    code.add(["if a:", "    if b:"])
    with code.deeper(2):
        pass
    code.line("c = 1")
    assert code.lines == ["if a:", "    if b:", "        pass", "c = 1"]


def test_names_are_given_once_even_if_lines_begin_anew() -> None:
    code = Code(prefix="t")
    first = code.let(None, "1")
    lines, level = code.cut()
    second = code.let("x", "2")
    assert (lines, level) == (["t1 = 1"], 0)
    assert (first, second, code.lines) == ("t1", "x2", ["x2 = 2"])


def test_plain_kernels_index_without_a_call_and_keep_other_names() -> None:
    source = "\n\ndef menu(x):\n    return x + 1\n\n\ndef kernel(a, i):\n    return menu(a[u(i)])\n"
    kernel = load(source, jit=False)
    assert kernel([5, 6], 1) == 7
