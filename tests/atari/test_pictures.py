"""Resizing compared with OpenCV, and screen painting compared with the emulator's images."""

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal import _native
from shoal._envs.atari.frame_painter import merging_tables
from shoal._envs.atari.palettes import greys, reds_greens_blues, signal_of
from shoal.atari import games
from shoal.image import area_resize, atari_preprocess
from tests.atari.test_starts import load_emulator, play

SIDES = st.integers(1, 300)
CHANNELS = st.sampled_from([(), (1,), (2,), (3,), (4,)])


def opencv(image, size):
    return cv2.resize(image, size[::-1], interpolation=cv2.INTER_AREA).reshape(
        *size, *image.shape[2:]
    )


@settings(max_examples=150, deadline=None)
@given(st.tuples(SIDES, SIDES), st.tuples(SIDES, SIDES), CHANNELS, SIDES)
def test_resize_equals_opencv(before, after, channels, seed):
    image = np.random.default_rng(seed).integers(0, 256, (*before, *channels), np.uint8)
    expected = opencv(image, after)
    np.testing.assert_array_equal(area_resize(image, after), expected)
    portable = np.empty_like(expected)
    _native.resize_area(image, portable, portable=True)
    np.testing.assert_array_equal(portable, expected)


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_shrinking_by_two_equals_opencv(channels):
    image = np.random.default_rng(0).integers(0, 256, (64, 48, channels), np.uint8)
    np.testing.assert_array_equal(area_resize(image, (32, 24)), opencv(image, (32, 24)))


@pytest.mark.parametrize("size", [(84, 84), (64, 64), (105, 80), (42, 32), (96, 96), (210, 160)])
@pytest.mark.parametrize("lines", [210, 250])
@pytest.mark.parametrize("grayscale", [True, False])
def test_random_screens(size, lines, grayscale):
    random = np.random.default_rng(0)
    signal = signal_of(lines)
    colours = greys(signal) if grayscale else reds_greens_blues(signal)
    newest, before = random.integers(0, 256, (2, lines, 160), np.uint8)
    before[50:90] = newest[50:90] = newest[50]  # repeated lines and areas of one colour
    newest[100:120, 30:90] = 14
    tables = merging_tables(signal, "grayscale" if grayscale else "rgb")
    for screens in ((newest, before), (newest, None)):
        merged = colours[newest]
        if screens[1] is not None:
            merged = np.maximum(merged, colours[before])
        expected = opencv(merged, size)
        np.testing.assert_array_equal(
            atari_preprocess(*screens, size=size, grayscale=grayscale), expected
        )
        painter = _native.ScreenPainter(newest.shape, size, tables, portable=True)
        portable = np.empty_like(expected)
        painter.paint(*screens, portable)
        np.testing.assert_array_equal(portable, expected)


def assert_images_equal_the_emulator(game, frames):
    emulator = load_emulator(game)
    emulator.reset_game()
    random = np.random.default_rng(0)
    signal = signal_of(emulator.getScreenDims()[0])
    for _ in range(frames):
        play(emulator, random, 7)
        if emulator.game_over():
            emulator.reset_game()
        screen = emulator.getScreen()
        np.testing.assert_array_equal(greys(signal)[screen], emulator.getScreenGrayscale())
        np.testing.assert_array_equal(reds_greens_blues(signal)[screen], emulator.getScreenRGB())
        picture = opencv(emulator.getScreenGrayscale(), (84, 84))
        np.testing.assert_array_equal(atari_preprocess(screen), picture)


@pytest.mark.parametrize("game", ["seaquest", "carnival", "air_raid"])
def test_colours(game):
    assert_images_equal_the_emulator(game, 40)


@pytest.mark.slow
@pytest.mark.parametrize("game", games())
def test_colours_of_every_game(game):
    assert_images_equal_the_emulator(game, 400)


def test_out_argument():
    image = np.arange(60, dtype=np.uint8).reshape(10, 6)
    out = np.zeros((5, 3), np.uint8)
    assert area_resize(image, (5, 3), out) is out
    np.testing.assert_array_equal(out, opencv(image, (5, 3)))
    sliced = np.zeros((10, 12), np.uint8)[:, ::2]
    sliced[...] = image
    np.testing.assert_array_equal(area_resize(sliced, (5, 3)), out)


SCREEN = np.zeros((210, 160), np.uint8)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: area_resize(SCREEN.astype(float), (84, 84)), TypeError, "pixels, got float64"),
        (lambda: area_resize(SCREEN, (84, 0)), ValueError, "positive"),
        (lambda: area_resize(SCREEN[0], (84, 84)), ValueError, r"got \(160,\)"),
        (lambda: area_resize(SCREEN[:0], (84, 84)), ValueError, r"got \(0, 160\)"),
        (lambda: area_resize(SCREEN, (8, 8), SCREEN), ValueError, r"shape \(8, 8\)"),
        (lambda: atari_preprocess(SCREEN, SCREEN[:9]), ValueError, "must have the same size"),
        (lambda: atari_preprocess(SCREEN[..., None]), ValueError, "expected a screen"),
        (lambda: atari_preprocess(SCREEN, signal="SECAM"), ValueError, "NTSC"),
        (lambda: area_resize(SCREEN, (8.5, 8)), TypeError, "float"),
        (lambda: area_resize(SCREEN, (8, 8), 5), ValueError, "out must be"),
        (lambda: _native.ScreenPainter((210, 160), (0, 84), np.zeros((1, 256, 256), np.uint8)),
         ValueError, "cannot resize an image of .* to 0 x 84"),
        (lambda: _native.ScreenPainter((210, 160), (84, 84), np.zeros((1, 256, 16), np.uint8)),
         ValueError, "shape"),
    ],
)  # fmt: skip
def test_bad_input(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_painter_checks_its_arrays():
    painter = _native.ScreenPainter((210, 160), (84, 84), merging_tables("NTSC", "grayscale"))
    picture = np.zeros((84, 84), np.uint8)
    for arguments in (
        (SCREEN[:200], None, picture),
        (SCREEN, SCREEN[:, ::2], picture),
        (SCREEN, None, picture[:80]),
        (SCREEN, None, np.zeros((84, 84, 3), np.uint8)),
        (SCREEN.astype(np.int16), None, picture),
    ):
        with pytest.raises(ValueError, match=r"expected|must be"):
            painter.paint(*arguments)
    picture.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        painter.paint(SCREEN, None, picture)
