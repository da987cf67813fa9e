"""Lines of a figure stay apart for readers who see colours differently, and in print without any."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import numpy.typing as npt
import pytest

from omen.report.figures import COLOURS, MARKERS, dash_of

# Machado, Oliveira, Fernandes 2009: what is seen without one kind of cone, in linear RGB.
VISIONS = {
    "all cones": np.eye(3),
    "no red": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "no green": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "no blue": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}
TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
WHITE = TO_XYZ.sum(axis=1)
APART = 10.0
"""In CIELAB; what is just noticed side by side is about 2."""


def lab(colour: str, vision: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    channels = np.array([int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)])
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    x, y, z = np.cbrt(np.maximum(TO_XYZ @ np.clip(vision @ linear, 0, 1) / WHITE, 1e-4))
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("vision", VISIONS)
def test_any_two_lines_differ_in_colour_or_dash_whatever_cones_there_are(vision: str) -> None:
    for one, other in combinations(range(len(COLOURS)), 2):
        apart = np.linalg.norm(lab(COLOURS[one], VISIONS[vision]) - lab(COLOURS[other], VISIONS[vision]))
        assert apart > APART or dash_of(one) != dash_of(other), (COLOURS[one], COLOURS[other], apart)


def test_any_two_of_32_lines_differ_without_colour() -> None:
    kinds = [(dash_of(line), MARKERS[line % len(MARKERS)]) for line in range(32)]
    assert len(set(kinds)) == len(kinds)


@pytest.mark.parametrize("colour", COLOURS)
def test_every_colour_stands_out_from_white_paper(colour: str) -> None:
    assert np.linalg.norm(lab(colour, np.eye(3)) - lab("#FFFFFF", np.eye(3))) > 40
