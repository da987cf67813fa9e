"""Options are declared once and say what is wrong; algorithms are found by name, or the nearest is suggested."""

from __future__ import annotations

import math
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from omen.design import Option, resolve_options
from omen.errors import InvalidInput
from omen.interests import Interests
from omen.systems import ALGORITHMS, design_overlay, find_algorithm

INTERESTS = Interests.from_pairs([("ann", "tea"), ("bob", "tea"), ("bob", "jazz"), ("cid", "jazz")])


def test_the_static_algorithms_are_there_under_their_names() -> None:
    names = ["gm", "gm2", "minmax-oda", "low-oda", "cd-oda", "cd-oda-i", "cd-oda-ii"]
    names += ["harary-pt", "cycle-pt", "ring-pt"]
    assert [name for name in names if name not in ALGORITHMS] == []


@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_declaration_is_complete_and_its_defaults_are_allowed(name: str) -> None:
    algorithm = ALGORITHMS[name]
    assert algorithm.name == name
    assert algorithm.summary and algorithm.paper and algorithm.build.__doc__
    resolved = resolve_options(algorithm, {})
    assert list(resolved) == [option.name for option in algorithm.options]
    for option in algorithm.options:
        assert resolved[option.name] == option.default
        assert isinstance(option.default, option.type)
        assert option.help and not option.help.endswith(".")


@pytest.mark.parametrize(
    ("algorithm", "option", "value"),
    [
        ("low-oda", "rho", 0.99),
        ("low-oda", "rho", -math.inf),
        ("low-oda", "rho", math.nan),
        ("low-oda", "rho", "three"),
        ("low-oda", "rho", None),
        ("low-oda", "rho", True),
        ("low-oda", "rho", [3]),
        ("low-oda", "rho", 3 + 0j),
        ("harary-pt", "k", 0),
        ("harary-pt", "k", -1),
        ("harary-pt", "k", 2.5),
        ("harary-pt", "k", "2.5"),
        ("harary-pt", "k", math.inf),
        ("harary-pt", "k", 10**40),
        ("cycle-pt", "seed", -1),
        ("cycle-pt", "seed", 2**63),
    ],
)
def test_a_value_out_of_range_is_refused_by_name(algorithm: str, option: str, value: Any) -> None:
    with pytest.raises(InvalidInput, match=f"option {option} must be a .*, not "):
        design_overlay(INTERESTS, algorithm, **{option: value})


@pytest.mark.parametrize("value", [3, 3.0, "3", "3.0", np.int64(3), np.float64(3.0)])
def test_numbers_and_text_are_read_alike(value: Any) -> None:
    assert resolve_options(ALGORITHMS["low-oda"], {"rho": value}) == {"rho": 3.0}


def test_rho_may_be_infinite_as_number_and_as_text() -> None:
    for value in (math.inf, "inf"):
        assert resolve_options(ALGORITHMS["low-oda"], {"rho": value}) == {"rho": math.inf}


def test_large_seeds_stay_exact() -> None:
    assert resolve_options(ALGORITHMS["cycle-pt"], {"seed": 2**63 - 1}) == {"seed": 2**63 - 1}
    assert resolve_options(ALGORITHMS["cycle-pt"], {"seed": str(2**63 - 1)}) == {"seed": 2**63 - 1}


def test_an_unknown_option_is_refused_and_the_known_ones_are_named() -> None:
    with pytest.raises(InvalidInput, match=r"low-oda has no option 'roh': it takes rho; did you mean 'rho'\?"):
        design_overlay(INTERESTS, "low-oda", roh=3)
    with pytest.raises(InvalidInput, match="gm has no option 'rho': it takes none"):
        design_overlay(INTERESTS, "gm", rho=3)


@pytest.mark.parametrize(
    ("wrong", "nearest"),
    [("low-odo", "low-oda"), ("LOW_ODA", "low-oda"), ("lowoda", "low-oda"), ("hararypt", "harary-pt"), ("gm22", "gm2")],
)
def test_an_unknown_algorithm_is_refused_with_the_nearest_name(wrong: str, nearest: str) -> None:
    with pytest.raises(InvalidInput, match=f"there is no algorithm '{wrong}'; did you mean '{nearest}'[?]"):
        find_algorithm(wrong)


def test_a_name_near_nothing_gets_the_list() -> None:
    with pytest.raises(InvalidInput, match=r"no algorithm 'xyzzy' \(there are gm, .*ring-pt"):
        design_overlay(INTERESTS, "xyzzy")


def test_promises_follow_the_options() -> None:
    assert ALGORITHMS["harary-pt"].promise() == 2
    assert ALGORITHMS["harary-pt"].promise({"k": "7"}) == 7
    assert ALGORITHMS["gm2"].promise() == 2
    assert ALGORITHMS["low-oda"].promise({"rho": 5}) == 1


def test_an_option_says_its_range_in_words() -> None:
    assert Option("x", float, 1.0, 0.5, math.inf, "").range == "a number, at least 0.5, or inf"
    assert Option("x", int, 1, 0, 9, "").range == "a whole number from 0 to 9"


def test_low_oda_is_the_default() -> None:
    assert design_overlay(INTERESTS) == design_overlay(INTERESTS, "low-oda", rho=3)


def test_declarations_are_read_without_loading_numpy_or_a_kernel() -> None:
    code = "import sys, omen.systems; print(*sorted({'numpy', 'numba', 'pyarrow', 'pandas'} & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
