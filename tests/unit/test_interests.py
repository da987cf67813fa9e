from __future__ import annotations

import networkx
import numpy as np
import pandas
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omen.errors import InvalidInput
from omen.interests import Interests, distinct, encode, group, label_array, label_keys
from omen.overlay import Overlay

labels_of_one_kind = st.one_of(st.integers(-(2**63), 2**63 - 1), st.integers(0, 9)), st.text(max_size=3)


@st.composite
def pairs_of_labels(draw: st.DrawFn) -> list[tuple[int | str, int | str]]:
    node, topic = draw(st.sampled_from(labels_of_one_kind)), draw(st.sampled_from(labels_of_one_kind))
    return draw(st.lists(st.tuples(node, topic), max_size=20))


@settings(max_examples=80, deadline=None)
@given(pairs_of_labels())
def test_interests_give_back_their_pairs_sorted_and_once(pairs: list[tuple[int | str, int | str]]) -> None:
    interests = Interests.from_pairs(pairs)
    assert interests.pairs() == sorted(set(pairs))
    assert interests.nodes.tolist() == sorted({node for node, _ in pairs})
    assert interests.topics.tolist() == sorted({topic for _, topic in pairs})


@settings(max_examples=40, deadline=None)
@given(pairs_of_labels())
def test_rows_of_nodes_and_of_topics_say_the_same(pairs: list[tuple[int | str, int | str]]) -> None:
    interests = Interests.from_pairs(pairs)
    by_node = {(n, int(t)) for n in range(interests.node_count) for t in interests.topics_of(n)}
    by_topic = {(int(n), t) for t in range(interests.topic_count) for n in interests.subscribers_of(t)}
    assert by_node == by_topic
    assert interests.node_offsets[-1] == interests.topic_offsets[-1] == interests.subscription_count
    for rows, offsets in (
        (interests.node_topics, interests.node_offsets),
        (interests.topic_nodes, interests.topic_offsets),
    ):
        assert rows.dtype == np.int32
        assert offsets.dtype == np.int64
        assert all((np.diff(row) > 0).all() for row in np.split(rows, offsets[1:-1]))


def test_nodes_without_topics_count() -> None:
    interests = Interests.from_pairs([(2, "a")], nodes=[3, 1, 2, 2])
    assert interests.nodes.tolist() == [1, 2, 3]
    assert interests.topics_of(0).tolist() == []
    assert repr(interests) == "Interests(3 nodes, 1 topics, 1 subscriptions)"


def test_numbers_are_ordered_by_value_and_text_by_code_point() -> None:
    assert Interests.from_pairs([(10, 0), (9, 0), (-1, 0)]).nodes.tolist() == [-1, 9, 10]
    assert Interests.from_pairs([("10", 0), ("9", 0), ("é", 0), ("z", 0)]).nodes.tolist() == ["10", "9", "z", "é"]


def test_two_arrays_are_as_good_as_pairs() -> None:
    interests = Interests.from_pairs((np.array([2, 1], dtype=np.uint8), np.array(["x", "y"])))
    assert interests == Interests.from_pairs([(1, "y"), (2, "x")])
    assert interests != Interests.from_pairs([(1, "y"), (2, "y")])
    assert interests != "interests"


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([(1, "a"), ("1", "a")], "nodes must be all whole numbers or all text, found int, str"),
        ([(1, 1.5)], "topics must be all whole numbers or all text, found float"),
        ([(None, 1)], "found NoneType"),
        ([(True, 1)], "found bool"),
        ([(2**63, 1)], "beyond 64 bits"),
        ([(1, 2, 3)], "exactly a node and a topic"),
        (["ab"], "exactly a node and a topic"),
        ((np.array([1, 2]), np.array([1])), "2 nodes but 1 topics"),
        ((np.array([2**64 - 1], dtype=np.uint64), np.array([1])), "node 18446744073709551615 is beyond 64 bits"),
    ],
)
def test_labels_that_are_not_of_one_kind_are_refused(pairs: list[tuple[int, int]], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        Interests.from_pairs(pairs)


def test_a_pair_of_an_unlisted_node_is_refused_and_named() -> None:
    with pytest.raises(InvalidInput, match="node 7 has topics but is not among the nodes given"):
        Interests.from_pairs([(1, 1), (7, 1)], nodes=[1, 2])


def test_numpy_text_becomes_plain_text() -> None:
    labels = label_array([np.str_("b"), "a"])
    assert [type(label) for label in labels.tolist()] == [str, str]


def test_codes_of_unknown_labels_are_minus_one() -> None:
    assert encode(np.array([1, 3]), np.array([3, 2, 9, 1])).tolist() == [1, -1, -1, 0]
    assert encode(np.array([1, 3]), label_array(["1"])).tolist() == [-1]
    assert encode(np.array([], dtype=np.int64), np.array([1])).tolist() == [-1]


def test_keys_depend_on_the_label_alone() -> None:
    assert label_keys(label_array([5, -1])).tolist() == [5, 2**64 - 1]
    alone, among = label_keys(label_array(["b"])), label_keys(label_array(["a", "b", "\ud800"]))
    assert alone[0] == among[1]
    assert len(set(among.tolist())) == 3


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 9)), max_size=30))
def test_group_makes_ascending_rows_and_keeps_doubles(rows: list[tuple[int, int]]) -> None:
    table = np.array(rows, dtype=np.int32).reshape(-1, 2)
    offsets, values = group(table[:, 0], table[:, 1], 7)
    assert [row.tolist() for row in np.split(values, offsets[1:-1])] == [
        sorted(value for key, value in rows if key == wanted) for wanted in range(7)
    ]
    assert distinct(table[:, 1].astype(np.int64)).tolist() == sorted({value for _, value in rows})


def test_interests_travel_to_pandas_and_back() -> None:
    interests = Interests.from_pairs([("a", 3), ("a", 1), ("b", 3)])
    frame = interests.to_pandas()
    assert frame.to_dict("list") == {"node": ["a", "a", "b"], "topic": [1, 3, 3]}
    assert Interests.from_pandas(frame.rename(columns={"node": "who"}), node="who") == interests


def test_pandas_tables_without_a_column_or_with_gaps_are_refused() -> None:
    with pytest.raises(InvalidInput, match="no column 'topic': it has node"):
        Interests.from_pandas(pandas.DataFrame({"node": [1]}))
    with pytest.raises(InvalidInput, match="column 'topic' holds missing values"):
        Interests.from_pandas(pandas.DataFrame({"node": [1], "topic": [None]}))
    with pytest.raises(InvalidInput, match="no column 'v'"):
        Overlay.from_pandas(pandas.DataFrame({"u": [1]}), [1])


def test_interests_become_a_bipartite_graph() -> None:
    graph = Interests.from_pairs([(1, 1), (2, 1)], nodes=[1, 2, 3]).to_networkx()
    assert set(graph.edges) == {(("node", 1), ("topic", 1)), (("node", 2), ("topic", 1))}
    assert networkx.is_bipartite(graph)
    assert ("node", 3) in graph


def test_topics_by_node_hold_every_node_and_labels_alone() -> None:
    interests = Interests.from_pairs([(2, "tea"), (2, "jazz"), (7, "tea")], nodes=[2, 5, 7])
    assert interests.topics_by_node() == {2: ["jazz", "tea"], 5: [], 7: ["tea"]}
    assert interests.counts() == {"nodes": 3, "topics": 2, "subscriptions": 3}


def test_the_first_nodes_leave_out_topics_that_none_of_them_wants() -> None:
    interests = Interests.from_pairs(
        [("ann", "tea"), ("bob", "jazz"), ("cid", "rum")], nodes=["ann", "bob", "abe", "cid"]
    )
    first = interests.first_nodes(3)
    assert first == Interests.from_pairs([("ann", "tea"), ("bob", "jazz")], nodes=["abe", "ann", "bob"])
    assert interests.first_nodes(4) == interests
    assert interests.first_nodes(1).topics_by_node() == {"abe": []}
