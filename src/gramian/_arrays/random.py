"""Random numbers of a seed, with the same bits as torch's generator on a CPU."""

from __future__ import annotations

import functools
import struct
from typing import Any

import numpy as np
from numpy.random.bit_generator import ISeedSequence

from ._kinds import numpy_dtype
from .elementwise import load_compiled
from .places import to_host

STATE_HEADER = "<QiiQ"
STATE_BYTES = 5056
"""Bytes of a state in torch's layout, in which journals have stored it since the first version."""

PERMUTED_COUNT = 1 << 20
"""Numbers up to which a sample is cut from a permutation, which is faster and takes 16 MB."""

BLOCK_ROWS = 16
"""Numbers that one Box-Muller step of torch makes from as many uniform numbers."""


class _NoSeed(ISeedSequence):
    """A seed of zeros, because a seed from the system takes three times as long."""

    def generate_state(self, n_words: int, dtype: Any = np.uint32) -> np.ndarray:
        """Return zeros."""
        return np.zeros(n_words, dtype)


def seeded_words(seed: int) -> np.random.MT19937:
    """Return the words of NumPy's `RandomState` for a seed of 32 bits, in 0.05 ms."""
    no_seed: Any = _NoSeed()  # a type that the stubs of NumPy leave out
    words = np.random.MT19937(no_seed)
    words._legacy_seeding(seed)
    return words


class RandomStream:
    """Random numbers of a seed: the same on every machine and with every version of NumPy.

    The methods have the names of `numpy.random.Generator`. Words come from a Mersenne Twister, and
    numbers from words as in `torch.Generator`, so that fits repeat bit by bit over versions of this
    library: earlier versions drew from torch.

    Parameters
    ----------
    seed : int
        The lowest 32 bits are used.
    """

    def __init__(self, seed: int = 0) -> None:
        self.seed = int(seed)
        self._normal: float | None = None  # the second of a pair of normal numbers, if unused

    # At the first draw: seeding takes time, and a fit draws from few of its eight streams.
    @functools.cached_property
    def _words(self) -> np.random.MT19937:
        return seeded_words(self.seed & 0xFFFFFFFF)

    def __getstate__(self) -> bytes:
        """Return the state for pickle and copy."""
        return self.state().tobytes()

    def __setstate__(self, state: bytes) -> None:
        """Restore the state of a pickled stream."""
        self.__init__(0)  # type: ignore[misc]
        self.set_state(np.frombuffer(state, np.uint8))

    def random(self, size: Any = (), dtype: Any = np.float64) -> Any:
        """Return numbers uniform in [0, 1): float64 of 53 random bits, float32 of 24."""
        return self._uniform(size, numpy_dtype(dtype))

    def integers(self, high: int, size: Any = (), dtype: Any = np.int64) -> Any:
        """Return integers uniform in 0, ..., high - 1."""
        count = int(np.prod(size))
        # As torch: the remainder of one 32-bit word is uneven for a large range, so that it takes
        # two words there.
        words = self._pairs(count) if high >= 1 << 28 else self._words.random_raw(count)
        words %= np.uint64(high)
        dtype = numpy_dtype(dtype)
        drawn = words.view(dtype) if dtype == np.int64 else words.astype(dtype)
        return drawn.reshape(size)

    def permutation(self, n: int) -> Any:
        """Return 0, ..., n - 1 in random order, by Fisher and Yates."""
        return _permute(n, self._words.random_raw(max(n - 1, 0)))

    def sample(self, n: int, size: int) -> Any:
        """Return the first `size` numbers of `permutation(n)`.

        The memory of a small sample of many numbers is proportional to `size`.
        """
        if n <= PERMUTED_COUNT or 4 * size >= n:
            return self.permutation(n)[:size].copy()
        words = self._words.random_raw(size)
        # The words of the other exchanges are skipped: the stream continues as after a permutation.
        self._words.random_raw(n - 1 - size, output=False)
        return _permute_first(n, words)

    def standard_normal(self, size: Any = (), dtype: Any = np.float64) -> Any:
        """Return normal numbers of mean 0 and variance 1, by Box and Muller."""
        dtype = numpy_dtype(dtype)
        shape = (size,) if isinstance(size, int) else tuple(size)
        count = int(np.prod(shape))
        # As torch: few numbers come in pairs, of which one is kept for the next call; more of them
        # in blocks of 16, the last of which is drawn again where it is cut short.
        if count < BLOCK_ROWS:
            drawn = np.array([self._one_normal() for _ in range(count)], dtype)
            return drawn.reshape(shape)
        drawn = self._uniform(count, dtype)
        whole_count = count // BLOCK_ROWS * BLOCK_ROWS
        drawn[:whole_count] = _normal_blocks(drawn[:whole_count])
        if whole_count < count:
            drawn[-BLOCK_ROWS:] = _normal_blocks(self._uniform(BLOCK_ROWS, dtype))
        return drawn.reshape(shape)

    def standard_gamma(self, shape: Any) -> Any:
        """Return gamma numbers of scale 1, one for each given shape."""
        shapes = to_host(shape)
        drawn = np.random.Generator(self._words).standard_gamma(shapes)
        return np.asarray(drawn).astype(shapes.dtype)

    def binomial(self, n: int, p: Any) -> Any:
        """Return the number of successes in n trials, for each given probability."""
        return np.random.Generator(self._words).binomial(n, to_host(p))

    def choose(self, weights: Any) -> int:
        """Return a position, drawn with probability proportional to its weight."""
        total = np.cumsum(np.asarray(to_host(weights), np.float64))
        drawn = self._uniform((), np.dtype(np.float64)) * total[-1]
        return int(min(np.searchsorted(total, drawn, side="right"), len(total) - 1))

    def state(self) -> np.ndarray:
        """Return the state in torch's layout, as 5,056 bytes."""
        state = self._words.state["state"]
        # NumPy counts the words that are used, torch the ones that are left, with 1 for none.
        draws_left, after = (1, 0) if state["pos"] == 624 else (625 - state["pos"], state["pos"])
        header = struct.pack(STATE_HEADER, self.seed & (1 << 64) - 1, draws_left, 1, after)
        words = state["key"].astype("<u8").tobytes()
        cached = 0.0 if self._normal is None else self._normal
        tail_bytes = struct.pack(
            "<dddiifbxxx", 0.0, cached, 0.0, self._normal is not None, 0, 0.0, False
        )
        return np.frombuffer(header + words + tail_bytes, np.uint8).copy()

    def set_state(self, state: Any) -> None:
        """Restore a state of `state`, or of `torch.Generator.get_state`."""
        raw = np.asarray(to_host(state), np.uint8).tobytes()
        if len(raw) != STATE_BYTES:
            raise ValueError(f"a state of a random stream has {STATE_BYTES} bytes, not {len(raw)}")
        self.seed, draws_left, _, _ = struct.unpack_from(STATE_HEADER, raw)
        key = np.frombuffer(raw, "<u8", 624, struct.calcsize(STATE_HEADER)).astype(np.uint32)
        pos = 624 if draws_left == 1 else 625 - draws_left
        self._words.state = {"bit_generator": "MT19937", "state": {"key": key, "pos": pos}}
        _, cached, _, has_cached = struct.unpack_from("<dddi", raw, STATE_BYTES - 40)
        self._normal = cached if has_cached else None

    def _pairs(self, count: int) -> np.ndarray:
        words = self._words.random_raw(2 * count).reshape(count, 2)
        return (words[:, 0] << np.uint64(32)) | words[:, 1]

    def _uniform(self, size: Any, dtype: np.dtype[Any]) -> np.ndarray:
        count = int(np.prod(size))
        if dtype == np.float64:
            drawn = (self._pairs(count) & np.uint64((1 << 53) - 1)) * 2.0**-53
        else:
            words = self._words.random_raw(count) & np.uint64((1 << 24) - 1)
            drawn = words.astype(np.float32) * np.float32(2.0**-24)
        return drawn.astype(dtype, copy=False).reshape(size)

    def _one_normal(self) -> float:
        if self._normal is not None:
            drawn, self._normal = self._normal, None
            return drawn
        u, v = self._uniform(2, np.dtype(np.float64))
        radius, angle = np.sqrt(-2.0 * np.log1p(-v)), 2.0 * np.pi * u
        self._normal = float(radius * np.sin(angle))
        return float(radius * np.cos(angle))


def _normal_blocks(uniform: np.ndarray) -> np.ndarray:
    """Return normal numbers: in each block of 16, the first eight have cosines, the rest sines."""
    blocks = uniform.reshape(-1, BLOCK_ROWS)
    unit, half = uniform.dtype.type(1), BLOCK_ROWS // 2
    radius = np.sqrt(uniform.dtype.type(-2) * np.log(unit - blocks[:, :half]))
    angle = uniform.dtype.type(2 * np.pi) * blocks[:, half:]
    return np.concatenate([radius * np.cos(angle), radius * np.sin(angle)], axis=1).reshape(-1)


def _permute(n: int, words: np.ndarray) -> np.ndarray:
    """Return 0, ..., n - 1, each exchanged with a later one that its word chooses."""
    words %= np.arange(n, 1, -1, dtype=np.uint64)
    offsets = words.view(np.int64)
    # Each exchange depends on the ones before it: a loop, which NumPy cannot do at once.
    compiled = load_compiled()
    if compiled is not None:
        order = np.arange(n)
        compiled.permute_(offsets, order)
        return order
    numbers = list(range(n))
    for i, offset in enumerate(offsets.tolist()):
        numbers[i], numbers[i + offset] = numbers[i + offset], numbers[i]
    return np.array(numbers, np.int64)


def _permute_first(n: int, words: np.ndarray) -> np.ndarray:
    """Return the numbers that the first exchanges of `_permute` leave at the first places."""
    words %= np.arange(n, n - len(words), -1, dtype=np.uint64)
    moved: dict[int, int] = {}
    numbers = np.empty(len(words), np.int64)
    for i, offset in enumerate(words.tolist()):
        # A place that no exchange has changed holds its own number.
        numbers[i] = moved.get(i + offset, i + offset)
        moved[i + offset] = moved.pop(i, i)
    return numbers


def as_stream(rng: Any) -> RandomStream:
    """Return the stream of a seed, or a stream itself; NumPy's generator draws the seed."""
    if isinstance(rng, RandomStream):
        return rng
    if isinstance(rng, np.random.Generator):
        return RandomStream(int(rng.integers(1 << 32)))
    if rng is None or isinstance(rng, int | np.integer):
        return RandomStream(int(rng or 0))
    raise TypeError(
        f"rng={rng!r} is no generator; give a seed, a numpy.random.Generator or a RandomStream"
    )
