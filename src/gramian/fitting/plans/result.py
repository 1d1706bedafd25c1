"""Result of `plan`: the memory, kernel evaluations and seconds of a fit."""

from __future__ import annotations

from dataclasses import dataclass

from ..._messages.checks import readable_bytes


@dataclass(frozen=True)
class Plan:
    """The memory, kernel evaluations and seconds that a fit will need.

    Attributes
    ----------
    solver : str
    landmarks : int or None
        None if all rows are centers.
    memory_bytes : int
        Peak of the memory that the fit allocates, without the given data and the libraries.
    kernel_evaluations : int
        Kernel evaluations of `iterations` iterations, including setup, and of a path of penalties;
        without other choices of settings. The data determine the length of a path, the evaluations
        of BLESS, and when products continue in float64.
    seconds : float
        Seconds of the choice of settings and of these iterations on this machine. Its speed is
        measured in a quarter of a second, once a process for similar plans. The data determine how
        many lengthscales and penalties are tried, and conformal intervals are not included.
    iterations : int
        Assumed iterations of an iterative solver; 1 for a closed form.
    device : str
        Place of vectors and factors: the device of the engine if they fit, else "cpu".
    device_bytes : int
        Peak of the memory on the device of the engine, which `memory_bytes` does not count; 0 if
        it computes on the host, or on several devices.
    kept_bytes : int
        Part of `memory_bytes` for kernel entries that are evaluated once and read in each
        iteration; 0 if each iteration evaluates them.
    cells : int
        Approximate number of cells; 0 without cells.
    disk_bytes : int
        Bytes of temporary files: decoded rows of a file, and rows by cells that exceed the memory.
    workers, slots : int
        Workers of the cluster with the rows, and the tasks that it runs at once; 0 for local rows.
    worker_bytes : int
        Memory of each worker, libraries included.
    tasks, pass_bytes : int
        Tasks of a pass over the rows, and the bytes that it sends and receives.
    """

    solver: str
    landmarks: int | None
    memory_bytes: int
    kernel_evaluations: int
    seconds: float
    iterations: int
    device: str = "cpu"
    device_bytes: int = 0
    kept_bytes: int = 0
    cells: int = 0
    disk_bytes: int = 0
    workers: int = 0
    slots: int = 0
    worker_bytes: int = 0
    tasks: int = 0
    pass_bytes: int = 0

    def __str__(self) -> str:
        centers = "all rows" if self.landmarks is None else f"{self.landmarks:,} landmarks"
        centers = f"{centers} of each of {self.cells:,} cells" if self.cells else centers
        device_memory = readable_bytes(self.device_bytes)
        memory = readable_bytes(self.memory_bytes)
        memory += f" and {device_memory} of the device" if self.device_bytes else ""
        disk = readable_bytes(self.disk_bytes)
        memory += f" and {disk} of temporary files" if self.disk_bytes else ""
        kept_memory = readable_bytes(self.kept_bytes)
        memory += f", {kept_memory} of it for entries that are kept" if self.kept_bytes else ""
        return (
            f"{self.solver} with {centers}: {memory}, "
            f"{self.kernel_evaluations:.3g} kernel evaluations, about {self.seconds:.3g} s "
            f"for {self.iterations} iterations{self._elsewhere}"
        )

    @property
    def _elsewhere(self) -> str:
        if not self.workers:
            return ""
        threads = "1 thread" if self.slots == 1 else f"{self.slots:,} threads"
        return (
            f" on {self.workers:,} worker{'s' * (self.workers > 1)} ({threads}): "
            f"{readable_bytes(self.worker_bytes)} on each, {self.tasks:,} tasks and "
            f"{readable_bytes(self.pass_bytes)} sent per pass"
        )
