from torch import Tensor

def instructions() -> list[str]: ...
def kernels() -> list[str]: ...
def splits(instructions: str, /) -> bool: ...
def reach(instructions: str, x: Tensor, origin: Tensor, factor: Tensor, power: int, /) -> float: ...
def renumber(values: Tensor, known: Tensor, out: Tensor, /) -> None: ...
def sparse_product(
    start: Tensor,
    column: Tensor,
    value: Tensor,
    right_start: Tensor,
    right_column: Tensor,
    right_value: Tensor,
    out: Tensor,
    /,
) -> None: ...

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
