from numpy import ndarray as Array

def instructions() -> list[str]: ...
def kernels() -> list[str]: ...
def slopes() -> list[str]: ...
def splits(instructions: str, /) -> bool: ...
def reach(instructions: str, x: Array, origin: Array, factor: Array, power: int, /) -> float: ...
def flush_denormals() -> None: ...
def permute_(offset: Array, out: Array, /) -> None: ...
def map_(instructions: str, function: str, x: Array, out: Array, /) -> None: ...
def quantile_shares(x: Array, quantiles: Array, levels: Array, out: Array) -> None: ...
def multiply_stored(
    instructions: str,
    entries: Array,
    numbers: Array | None,
    start: int,
    stop: int,
    v: Array | None,
    weights: Array | None,
    targets: Array | None,
    products: Array | None,
    sums: Array | None,
    t: int,
    chained: bool,
) -> None: ...

class Columns:
    def __init__(self, columns: Array, out: Array, /) -> None: ...
    @property
    def count(self) -> int: ...
    def narrow(
        self,
        start: Array,
        column: Array,
        value: Array,
        out_start: Array,
        out_column: Array,
        out_value: Array,
        /,
    ) -> int: ...
    def normal(
        self,
        start: Array,
        column: Array,
        value: Array,
        w: Array | None,
        weights: Array | None,
        targets: Array | None,
        out: Array,
    ) -> None: ...

class SparseRight:
    def __init__(
        self, instructions: str, start: Array, column: Array, value: Array, columns: int, /
    ) -> None: ...
    def product(self, start: Array, column: Array, value: Array, out: Array, /) -> None: ...

class Plan:
    def __init__(
        self,
        instructions: str,
        kernel: str,
        first: float,
        second: float,
        scale: float,
        difference: bool,
        single: bool,
        z: Array,
        origin: Array,
        factor: Array,
        diagonal: Array | None,
        offset: int,
        pieces: int,
        near: float,
    ) -> None: ...
    @property
    def width(self) -> int: ...
    def pack(self, z: Array, start: int, stop: int, /) -> None: ...
    def matvec(self, x: Array, start: int, stop: int, v: Array, out: Array, /) -> None: ...
    def normal(
        self,
        x: Array,
        start: int,
        stop: int,
        v: Array | None,
        weights: Array | None,
        targets: Array | None,
        out: Array,
    ) -> None: ...
    def symmetric(self, x: Array, first: int, step: int, v: Array, out: Array, /) -> None: ...
    def block(self, x: Array, start: int, stop: int, out: Array, /) -> None: ...
    def gradients(
        self, x: Array, start: int, stop: int, z: Array, v: Array, out: Array, /
    ) -> None: ...
    def stop(self) -> None: ...
