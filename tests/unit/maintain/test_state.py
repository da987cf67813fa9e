from __future__ import annotations

import numpy as np
import pytest

from omen.errors import InvalidInput
from omen.interests import Interests
from omen.kernels.pieces import sort_by_order
from omen.maintain import start_maintainer
from omen.maintain.names import Names
from omen.maintain.rows import Rows
from omen.maintain.state import State
from omen.overlay import Overlay
from omen.quality import check_overlay


def random_interests(nodes: int, topics: int, seed: int) -> Interests:
    rng = np.random.default_rng(seed)
    pairs = [(v, int(t)) for v in range(nodes) for t in rng.choice(topics, int(rng.integers(1, 6)), replace=False)]
    return Interests.from_pairs(pairs, range(nodes))


def test_text_labels_keep_their_order_even_when_no_room_is_left_between_them() -> None:
    rng = np.random.default_rng(1)
    names = Names(np.empty(0, np.int64), "node", spread=64)
    present: set[str] = set()
    for _ in range(400):
        label = "".join(rng.choice(list("ab"), int(rng.integers(1, 6))))
        if label in present:
            names.release(names.slot_of[label])
            present.discard(label)
        else:
            names.claim(label)
            present.add(label)
        assert [names.label(slot) for slot in names.sorted_slots()] == sorted(present)
    assert len(names.labels) <= 62


def test_slots_are_reused_and_keys_follow_the_label() -> None:
    names = Names(np.array([3, 5, 9], np.int64), "node")
    key = int(names.keys[names.slot_of[5]])
    slot = names.slot_of[5]
    names.release(slot)
    assert names.claim(-7) == slot
    assert int(names.order[slot]) == -7
    again = names.claim(5)
    assert int(names.keys[again]) == key


@pytest.mark.parametrize("label", [2.5, None, True, "text", 2**70])
def test_labels_that_do_not_fit_are_refused(label: object) -> None:
    with pytest.raises(InvalidInput):
        Names(np.array([1, 2], np.int64), "node").checked(label)


def test_rows_hold_what_was_put_into_them_and_memory_stays_flat() -> None:
    from omen.kernels.population import link, unlink

    rng = np.random.default_rng(2)
    rows, model = Rows(30), {row: set[int]() for row in range(30)}
    counts, totals = np.zeros(31, np.int64), np.zeros(2, np.int64)
    counts[0] = 30
    sizes = []
    for _ in range(6000):
        u, v = (int(end) for end in rng.choice(30, 2, replace=False))
        pair = np.array([[u, v]], np.int32)
        if v in model[u]:
            unlink(rows.spans, rows.pool, counts, totals, pair)
            model[u].discard(v)
            model[v].discard(u)
        else:
            while link(rows.spans, rows.pool, rows.tail, counts, totals, pair, 0) == 0:
                rows.grow(16)
            model[u].add(v)
            model[v].add(u)
        sizes.append(rows.pool.size)
    assert all(set(rows.of(row).tolist()) == model[row] for row in model)
    assert totals[0] == max(len(others) for others in model.values())
    assert max(sizes[3000:]) == max(sizes[:3000])


@pytest.mark.parametrize("size", [0, 1, 2, 3, 5, 47, 48, 49, 300])
def test_slots_are_sorted_by_order(size: int) -> None:
    rng = np.random.default_rng(size)
    order = rng.permutation(size + 5).astype(np.int64)
    slots = rng.permutation(size).astype(np.int32)
    expected = slots[np.argsort(order[slots])].tolist()
    sort_by_order(slots, order)
    assert slots.tolist() == expected


def test_interests_and_overlay_come_out_as_they_went_in() -> None:
    interests = random_interests(40, 12, 3)
    maintainer = start_maintainer("naive", interests)
    assert maintainer.interests() == interests
    again = State(interests, maintainer.overlay())
    assert again.overlay() == maintainer.overlay()
    assert again.average_degree == 2 * maintainer.link_count / 40


def test_topics_nobody_wants_are_left_out() -> None:
    codes = np.zeros(2, np.int64)
    interests = Interests.from_codes(np.arange(2), np.array(["a", "b"], object), np.arange(2), codes)
    assert State(interests).interests().topics.tolist() == ["a"]


def test_an_overlay_of_other_nodes_is_refused() -> None:
    with pytest.raises(InvalidInput, match="must be the same"):
        State(random_interests(4, 8, 1), Overlay.from_links(range(5), []))


def test_results_do_not_depend_on_how_subscriptions_are_looked_up() -> None:
    interests = random_interests(60, 10, 4)
    by_bits = start_maintainer("shadow", interests)
    searched = start_maintainer("shadow", interests)
    searched.state = State.restored(by_bits.snapshot(), bits_limit=0)
    assert searched.state.bits.shape[1] == 0 and by_bits.state.bits.shape[1] == 1
    for step, node in enumerate(range(0, 60, 3)):
        joining = (1000 + step, [step % 10, (3 * step) % 10, 20 + step % 3])
        for change in ("leave", "join", "resubscribe"):
            arguments = {"leave": (node,), "join": joining, "resubscribe": (node + 1, [0, step % 10])}[change]
            one, other = getattr(by_bits, change)(*arguments), getattr(searched, change)(*arguments)
            assert (one.added, one.removed, one.shadow) == (other.added, other.removed, other.shadow)
    assert check_overlay(searched.interests(), searched.overlay()).holds


def test_memory_and_slots_stay_flat_while_the_population_turns_over() -> None:
    maintainer = start_maintainer("shadow", random_interests(50, 10, 5))
    rng = np.random.default_rng(6)
    state = maintainer.state
    sizes = []
    for step in range(600):
        maintainer.leave(min(state.nodes.slot_of))  # type: ignore[type-var]
        topics = [int(t) for t in rng.choice(10, 3, replace=False)] + [100 + step % 70]
        maintainer.join(50 + step, topics)
        pools = (state.topics_of, state.members, state.neighbours, state.backups, state.primaries)
        sizes.append((state.nodes.capacity, *(rows.pool.size for rows in pools)))
    assert np.max(sizes[300:], axis=0).tolist() == np.max(sizes[:300], axis=0).tolist()
    assert check_overlay(maintainer.interests(), maintainer.overlay()).holds
