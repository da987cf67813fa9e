from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omen.errors import InvalidInput, OmenError
from omen.interests import Interests
from omen.kernels.sampling import build_guide, draw_topics
from omen.workloads import Popularity, Sizes, generate_interests, generate_rows
from omen.workloads.specs import Floats

POPULARITIES = ["uniform", "zipf:2", "zipf:0.5", "expo", "expo:0.1", "expo:5"]
SIZES = ["0", "7", "uniform:0:40", "powerlaw:10:90", "powerlaw:1:30:1.5"]


def successive_sampling(probabilities: Floats, size: int) -> dict[tuple[int, ...], float]:
    """How likely each set is, added up over all orders in which it can be drawn."""
    chances: dict[tuple[int, ...], float] = {}
    for order in itertools.permutations(range(probabilities.size), size):
        chance, left = 1.0, 1.0
        for topic in order:
            chance *= probabilities[topic] / left
            left -= probabilities[topic]
        key = tuple(sorted(order))
        chances[key] = chances.get(key, 0.0) + chance
    return chances


@pytest.mark.parametrize("path", ["rejection", "tree", "keys"])
@pytest.mark.parametrize("popularity", ["uniform", "zipf:2", "expo:1"])
@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_every_path_of_the_kernel_samples_successively(path: str, popularity: str, size: int) -> None:
    trials = 40_000
    logs = Popularity.parse(popularity).log_weights(5)
    probabilities = Popularity.parse(popularity).probabilities(5)
    cdf = np.cumsum(probabilities)
    failures = 10_000 if path == "rejection" else -1
    weights = np.zeros(5) if path == "keys" else np.exp(logs)
    offsets = np.arange(trials + 1, dtype=np.int64) * size
    drawn = draw_topics(0, 17, offsets, cdf, build_guide(cdf), weights, logs, failures).reshape(trials, size)
    chances = successive_sampling(probabilities, size)
    found = dict.fromkeys(chances, 0)
    for row in drawn.tolist():
        found[tuple(row)] += 1
    for key, chance in chances.items():
        assert abs(found[key] - trials * chance) < 4.5 * np.sqrt(trials * chance) + 1


@pytest.mark.parametrize("popularity", POPULARITIES)
@pytest.mark.parametrize("sizes", SIZES)
def test_rows_are_the_same_however_the_nodes_are_split(popularity: str, sizes: str) -> None:
    chosen = (100, Popularity.parse(popularity), Sizes.parse(sizes), 5)
    nodes, topics = generate_rows(0, 300, *chosen)
    for cuts in ([0, 300], [0, 1, 2, 299, 300], [0, 150, 150, 300], [*range(0, 301, 7), 300]):
        parts = [generate_rows(a, b, *chosen) for a, b in itertools.pairwise(cuts)]
        assert np.array_equal(np.concatenate([part[0] for part in parts]), nodes)
        assert np.array_equal(np.concatenate([part[1] for part in parts]), topics)


@pytest.mark.parametrize("popularity", POPULARITIES)
@pytest.mark.parametrize("sizes", SIZES)
def test_rows_are_sorted_without_doubles_and_of_the_sizes_asked_for(popularity: str, sizes: str) -> None:
    wanted = Sizes.parse(sizes)
    nodes, topics = generate_rows(10, 400, 100, Popularity.parse(popularity), wanted, 3)
    keys = nodes * 100 + topics
    assert (np.diff(keys) > 0).all()
    assert ((topics >= 0) & (topics < 100)).all() and ((nodes >= 10) & (nodes < 400)).all()
    counts = np.bincount(nodes - 10, minlength=390)
    assert counts.min() >= wanted.smallest and counts.max() <= wanted.largest


def test_rows_of_a_seed_never_change() -> None:
    nodes, topics = generate_rows(0, 4, 12, Popularity.parse("zipf:1"), Sizes.parse("uniform:2:5"), 2024)
    rows = [topics[nodes == node].tolist() for node in range(4)]
    assert rows == [[0, 1, 4, 5], [0, 1, 2, 3, 9], [0, 1, 2, 3, 7], [0, 9]]


def test_seeds_differ() -> None:
    chosen = (100, Popularity.parse("uniform"), Sizes.parse("10"))
    assert not np.array_equal(generate_rows(0, 50, *chosen, 1)[1], generate_rows(0, 50, *chosen, 2)[1])


def test_single_draws_follow_the_popularity() -> None:
    for popularity in map(Popularity.parse, POPULARITIES):
        _, topics = generate_rows(0, 100_000, 50, popularity, Sizes.parse("1"), 9)
        expected = popularity.probabilities(50) * 100_000
        assert (np.abs(np.bincount(topics, minlength=50) - expected) < 5 * np.sqrt(expected) + 2).all()


@pytest.mark.parametrize("topics", [10, 200, 1000, 5000])
def test_nyse_gives_the_most_popular_tenth_55_percent(topics: int) -> None:
    probabilities = Popularity.parse("expo").probabilities(topics)
    assert probabilities[: topics // 10].sum() == pytest.approx(0.55, abs=1e-9)
    assert probabilities.sum() == pytest.approx(1)


def test_power_law_sizes_follow_the_exponent() -> None:
    cdf = Sizes.parse("powerlaw:10:90").cdf()
    shares = np.diff(cdf, prepend=0.0)
    assert shares[0] / shares[10] == pytest.approx(4)
    nodes, _ = generate_rows(0, 50_000, 100, Popularity.parse("uniform"), Sizes.parse("powerlaw:10:90"), 1)
    found = np.bincount(np.bincount(nodes, minlength=50_000), minlength=91)[10:] / 50_000
    assert np.abs(found - shares).max() < 0.01


def test_generated_interests_equal_those_built_from_the_rows() -> None:
    chosen = (60, Popularity.parse("zipf:2"), Sizes.parse("uniform:0:4"), 8)
    built = Interests.from_pairs(generate_rows(0, 40, *chosen), nodes=range(40))
    made = generate_interests(40, 60, "zipf:2", "uniform:0:4", 8)
    assert made == built
    assert np.array_equal(made.topic_nodes, built.topic_nodes)
    assert np.array_equal(made.topic_offsets, built.topic_offsets)
    assert made.node_topics.dtype == np.int32 and made.topics.dtype == np.int64


def test_weights_beyond_floating_point_are_still_drawn_in_full() -> None:
    nodes, topics = generate_rows(0, 20, 2000, Popularity.parse("expo:50"), Sizes.parse("1990"), 1)
    assert np.bincount(nodes).tolist() == [1990] * 20
    assert (np.bincount(topics, minlength=2000)[:1900] == 20).all()


@pytest.mark.parametrize(
    "call",
    [
        lambda: generate_interests(10, 5, "uniform", 6),
        lambda: generate_interests(0, 5, "uniform", 2),
        lambda: generate_interests(5, 0, "uniform", 0),
        lambda: generate_interests(2**31, 5, "uniform", 1),
        lambda: generate_interests(5, 5, "uniform", 2, seed=-1),
        lambda: generate_interests(5, 5, "uniform", 2, seed=2**64),
        lambda: generate_rows(5, 4, 5, Popularity("uniform"), Sizes("fixed", 1, 1), 0),
    ],
)
def test_impossible_workloads_are_refused(call) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InvalidInput):
        call()


@pytest.mark.parametrize("text", [*POPULARITIES, "zipf:0", "expo:0.05", "expo:1e-07"])
def test_popularity_prints_as_it_was_written(text: str) -> None:
    assert str(Popularity.parse(text)) == text


@pytest.mark.parametrize("text", [*SIZES, "powerlaw:1:1:0"])
def test_sizes_print_as_they_were_written(text: str) -> None:
    assert str(Sizes.parse(text)) == text


@pytest.mark.parametrize(
    "text",
    ["", "zipf", "zipf:", "zipf:x", "zipf:-1", "zipf:nan", "zipf:1:2", "uniform:1", "expo:1e9", "Zipf:2", "expo:٣"],
)
def test_bad_popularity_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="popularity"):
        Popularity.parse(text)


@pytest.mark.parametrize(
    "text",
    (
        *("", "x", "-1", "1.5", "uniform", "uniform:1", "uniform:5:1", "uniform:1:2:3", "powerlaw:0:9"),
        *("powerlaw:1:9:-1", "powerlaw:1:9:x", "9" * 30, "3:4", "٣", "1_0"),
    ),
)
def test_bad_sizes_are_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="sizes"):
        Sizes.parse(text)


@settings(max_examples=200, deadline=None)
@given(
    st.one_of(st.text(max_size=12), st.sampled_from(["uniform", "zipf", "expo", "powerlaw", "7"])),
    st.lists(st.text("0123456789.e-+", max_size=5), max_size=3),
)
def test_a_spec_is_read_back_from_what_it_prints_or_refused(word: str, numbers: list[str]) -> None:
    text = ":".join([word, *numbers])
    for parser in (Popularity.parse, Sizes.parse):
        try:
            spec = parser(text)
        except OmenError:
            continue
        assert parser(str(spec)) == spec
