"""Boxes of random trees: none overlaps another, all are inside, order and depth are kept."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st

from cepheid.explain.boxes import PAGE, Box, Item, Layout, arrange
from tests.examples import examples

APART, BETWEEN = 24, 40
SIZES = st.integers(40, 260)
ITEMS = st.recursive(
    st.builds(Item, SIZES, SIZES),
    lambda inputs: st.builds(
        Item, SIZES, SIZES, st.lists(inputs, min_size=1, max_size=4).map(tuple)
    ),
    max_leaves=25,
)


def overlap(one: Box, other: Box, room: float = 0.0) -> bool:
    return (
        one.x < other.x + other.width + room
        and other.x < one.x + one.width + room
        and one.y < other.y + other.height + room
        and other.y < one.y + one.height + room
    )


def count(item: Item) -> int:
    return 1 + sum(map(count, item.inputs))


def deep(leaves: int) -> Item:
    tree = Item(200, 70)
    for _ in range(leaves - 1):
        tree = Item(200, 70, (tree, Item(150, 50)))
    return tree


def bushy(leaves: int) -> Item:
    if leaves == 1:
        return Item(150, 50)
    return Item(200, 70, (bushy(leaves // 2), bushy(leaves - leaves // 2)))


@settings(max_examples=examples("layouts"))
@given(ITEMS)
def test_boxes_keep_apart_and_inside(item: Item) -> None:
    layout = arrange(item, APART, BETWEEN)
    assert len(layout.boxes) == count(item)
    for one, other in combinations(layout.boxes, 2):
        assert not overlap(one, other, APART - 0.01)
    for box in layout.boxes:
        assert box.x >= -0.01 and box.x + box.width <= layout.width + 0.01
        assert box.y >= -0.01 and box.y + box.height <= layout.height + 0.01


@settings(max_examples=examples("layouts"))
@given(ITEMS)
def test_inputs_stand_past_the_band_of_their_parent_and_in_order(item: Item) -> None:
    layout = arrange(item, APART, BETWEEN)
    inputs: dict[int, list[Box]] = {}
    for box in layout.boxes[1:]:
        assert box.parent is not None
        inputs.setdefault(box.parent, []).append(box)
    for parent, boxes in inputs.items():
        starts = [box.x if layout.sideways else box.y for box in boxes]
        assert all(start >= layout.boxes[parent].band + BETWEEN - 0.01 for start in starts)
        middles = [_across(layout, box) for box in boxes]
        assert middles == sorted(middles)


def _across(layout: Layout, box: Box) -> float:
    return box.y + box.height / 2 if layout.sideways else box.x + box.width / 2


def test_the_root_of_a_small_tree_is_above_the_middle_of_its_inputs() -> None:
    root, left, right = arrange(Item(100, 40, (Item(80, 40), Item(120, 40)))).boxes
    assert root.x + 50 == (left.x + 40 + right.x + 60) / 2
    assert root.y == 0 and left.y == right.y == 80


def test_a_deep_plan_of_40_classes_fits_a_page() -> None:
    layout = arrange(deep(40))
    assert not layout.sideways
    assert layout.width <= PAGE


def test_a_bushy_plan_of_12_classes_is_drawn_sideways_and_fits_a_page() -> None:
    layout = arrange(bushy(12))
    assert layout.sideways
    assert layout.width <= PAGE + 200


def test_a_bushy_plan_of_40_classes_takes_the_narrowest_way() -> None:
    assert arrange(bushy(40)).width < 40 * 150 / 2
