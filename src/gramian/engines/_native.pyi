from torch import Tensor

def instructions() -> list[str]: ...
def kernels() -> list[str]: ...
def slopes() -> list[str]: ...
def splits(instructions: str, /) -> bool: ...
def reach(instructions: str, x: Tensor, origin: Tensor, factor: Tensor, power: int, /) -> float: ...
def multiply_stored(
    instructions: str,
    entries: Tensor,
    numbers: Tensor | None,
    start: int,
    stop: int,
    v: Tensor | None,
    weights: Tensor | None,
    targets: Tensor | None,
    products: Tensor | None,
    sums: Tensor | None,
    t: int,
    chained: bool,
) -> None: ...

class Columns:
    def __init__(self, columns: Tensor, out: Tensor, /) -> None: ...
    @property
    def count(self) -> int: ...
    def narrow(
        self,
        start: Tensor,
        column: Tensor,
        value: Tensor,
        out_start: Tensor,
        out_column: Tensor,
        out_value: Tensor,
        /,
    ) -> int: ...
    def normal(
        self,
        start: Tensor,
        column: Tensor,
        value: Tensor,
        w: Tensor | None,
        weights: Tensor | None,
        targets: Tensor | None,
        out: Tensor,
    ) -> None: ...

class SparseRight:
    def __init__(
        self, instructions: str, start: Tensor, column: Tensor, value: Tensor, columns: int, /
    ) -> None: ...
    def product(self, start: Tensor, column: Tensor, value: Tensor, out: Tensor, /) -> None: ...

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
        z: Tensor,
        origin: Tensor,
        factor: Tensor,
        diagonal: Tensor | None,
        offset: int,
        pieces: int,
        near: float,
    ) -> None: ...
    @property
    def width(self) -> int: ...
    def pack(self, z: Tensor, start: int, stop: int, /) -> None: ...
    def matvec(self, x: Tensor, start: int, stop: int, v: Tensor, out: Tensor, /) -> None: ...
    def normal(
        self,
        x: Tensor,
        start: int,
        stop: int,
        v: Tensor | None,
        weights: Tensor | None,
        targets: Tensor | None,
        out: Tensor,
    ) -> None: ...
    def symmetric(self, x: Tensor, first: int, step: int, v: Tensor, out: Tensor, /) -> None: ...
    def block(self, x: Tensor, start: int, stop: int, out: Tensor, /) -> None: ...
    def gradients(
        self, x: Tensor, start: int, stop: int, z: Tensor, v: Tensor, out: Tensor, /
    ) -> None: ...
    def stop(self) -> None: ...
