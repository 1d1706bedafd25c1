"""Files damaged on purpose, and what becomes of whoever reads them."""

from __future__ import annotations

import json
import random
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import safe_open

from gramian import _arrays as xp
from gramian._files.tensors import write_tensors
from gramian.cli.main import BUG, explain_error

Edit = Callable[[dict[str, Any], dict[str, np.ndarray]], Any]
OUTCOMES = ("refused", "same", "silently other", "bug")


def random_damage(whole: bytes, rng: random.Random) -> bytes:
    """Return the file with a bit flipped, bytes swapped, cut, filled, moved or doubled."""
    data, n = bytearray(whole), len(whole)
    at, to = rng.randrange(n), rng.randrange(n)
    kind = rng.choice(("bit", "bit", "bit", "swap", "cut", "zeros", "ones", "double", "gone"))
    size = rng.randint(1, max(1, n // 10))
    if kind == "bit":
        data[at] ^= 1 << rng.randrange(8)
    elif kind == "swap":
        data[at], data[to] = data[to], data[at]
    elif kind == "cut":
        del data[at:]
    elif kind in ("zeros", "ones"):
        data[at : at + size] = bytes([0 if kind == "zeros" else 255]) * len(data[at : at + size])
    elif kind == "double":
        data[at:at] = data[at : at + size]
    else:
        del data[at : at + size]
    return bytes(data)


def damage_of_ends(whole: bytes, rng: random.Random) -> bytes:
    """Return the file with up to four bytes changed where formats keep their structure."""
    data, n = bytearray(whole), len(whole)
    for _ in range(rng.randint(1, 4)):
        near = rng.randrange(min(n, 300))
        data[near if rng.random() < 0.5 else n - 1 - near] = rng.choice(
            b'\x00\x01\xff"{}[]0159-,:ae'
        )
    return bytes(data)


def edited(whole: Path, out: Path, key: str, edit: Edit) -> None:
    """Write a file of tensors once more, edited, with the digest that then is right."""
    with safe_open(whole, framework="np") as file:
        header = json.loads(file.metadata()[key])
        tensors = {name: xp.copy(file.get_tensor(name)) for name in file.keys()}  # noqa: SIM118
    edit(header, tensors)
    write_tensors(out, tensors, {key: json.dumps(header)})


def edits(name: str) -> list[Edit]:
    """Return edits of a tensor called `name`, and of the header, that nobody may believe."""

    def tensor(change: Callable[[np.ndarray], np.ndarray]) -> Edit:
        return lambda header, tensors: tensors.update({name: xp.contiguous(change(tensors[name]))})

    return [
        tensor(lambda x: x * np.nan),
        tensor(lambda x: np.where(np.arange(len(x))[:, None] == 0, np.inf, x)),
        tensor(lambda x: xp.cast(x, np.int32)),
        tensor(lambda x: xp.cast(x, np.bool_)),
        tensor(lambda x: x[:-1]),
        tensor(lambda x: np.concatenate([x, x])),
        tensor(lambda x: x[:, 0]),
        tensor(lambda x: x[None]),
        tensor(lambda x: x[:0]),
        tensor(lambda x: x.reshape(-1)[0]),
        lambda header, tensors: tensors.pop(name),
        lambda header, tensors: tensors.update({name + "2": tensors[name]}),
        lambda header, tensors: header.update(format=10**9),
        lambda header, tensors: header.update(format="2"),
        lambda header, tensors: header.update(format=None),
        lambda header, tensors: header.update(
            {"unknown": 1} if "info" in header else {"values": 1}
        ),
        *(_without(number) for number in range(6)),
        *(_replaced(number, value) for number in range(6) for value in (None, -1, "x", [[]])),
    ]


def _without(number: int) -> Edit:
    return lambda header, tensors: header.pop(sorted(header)[number % len(header)])


def _replaced(number: int, value: Any) -> Edit:
    def replace(header: dict[str, Any], tensors: dict[str, np.ndarray]) -> None:
        # what may be null, or says nothing about the numbers, may also be replaced
        fields = sorted(set(header) - {"classes", "feature_names", "about", "info"})
        header[fields[number % len(fields)]] = value

    return replace


def outcomes(
    mutants: Iterator[Path], use: Callable[[Path], np.ndarray], expected: np.ndarray
) -> tuple[Counter[str], list[str]]:
    """Count what becomes of each mutant; also return what the bugs said."""
    counts, said = Counter(dict.fromkeys(OUTCOMES, 0)), []
    for path in mutants:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # filled gaps are no bug
                found = use(path)
        except Exception as error:
            code, text = explain_error(error)
            kind = "bug" if code == BUG else "refused"
            said += [str(text)] if code == BUG else []
        else:
            kind = "same" if np.array_equal(found, expected) else "silently other"
        counts[kind] += 1
    return counts, said


def damaged(
    whole: Path, count: int, seed: int, key: str | None = None, tensor: str = ""
) -> Iterator[Path]:
    """Yield damaged copies: half of them at random, half in their structure.

    Of a file of tensors, whose metadata is called `key`, a quarter has the right digest.
    """
    rng, content = random.Random(seed), whole.read_bytes()
    out = whole.with_name(f"damaged{whole.suffix}")
    for i in range(count):
        if key is not None and i % 4 == 3:
            edited(whole, out, key, edits(tensor)[i // 4 % len(edits(tensor))])
        elif i % 2:
            out.write_bytes(damage_of_ends(content, rng))
        else:
            out.write_bytes(random_damage(content, rng))
        yield out
