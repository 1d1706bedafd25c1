"""Landmarks of a fit, from a selector, points, a file or an earlier fit, and their problem."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ... import _arrays as xp
from ..._arrays import Array, Int, RandomStream, Shaped
from ..._parameters.types import FileLike, LandmarksLike
from ..._sparse import are_equal
from ...data import Cast, RowSource, as_rows, check_finite, gather_rows, store_rows
from ...landmarks import Landmarks
from ...operators import KernelOperator
from ...problems import FullProblem, NystromProblem
from ..inputs.training_data import TrainingData
from ..settings import landmarks as landmark_settings


def choose_landmarks(
    K: KernelOperator, given: LandmarksLike, rng: RandomStream
) -> Landmarks | None:
    """Return the landmarks of the parameter `given`; None if all rows are centers."""
    selector = landmark_settings.selector(given, K.shape[0], not K.rows.random_access)
    if isinstance(selector, RowSource):
        return given_points(selector, K)
    return None if selector is None else selector.select(K, rng=rng)


def given_points(points: RowSource, K: KernelOperator) -> Landmarks:
    """Return the points that the user gave as landmarks, in a mapped file if they exceed memory."""
    if points.shape[1] != K.rows.shape[1]:
        raise ValueError(
            f"the landmarks have {points.shape[1]} features, but X has {K.rows.shape[1]}"
        )
    check_finite(points, "landmarks")
    # Tiles need rows and centers of one type.
    alike = points if points.dtype == K.dtype else Cast(points, K.dtype)
    m = len(points)
    points_taken = gather_rows(alike, xp.arange(m), K.host_bytes)
    return Landmarks(points_taken, xp.ones(m, xp.float64))


def of_earlier_fit(
    points: RowSource, index: Int[Array, " m"] | None, K: KernelOperator
) -> Landmarks:
    """Return the landmarks of an earlier fit, with their row numbers if they are rows of K."""
    m = len(points)
    points_taken = gather_rows(points, xp.arange(m), K.host_bytes)
    # Row numbers select the weights of rows: of other data they would select the wrong ones.
    if index is not None and not _are_rows(points_taken, K.rows, index):
        index = None
    return Landmarks(points_taken, xp.ones(m, xp.float64), index)


def _are_rows(points: Shaped[Array, "m d"], rows: RowSource, index: Int[Array, " m"]) -> bool:
    # The new data may have fewer rows.
    if int(index.max()) >= len(rows):
        return False
    rows_taken, points = xp.to_host(rows.take(index)), xp.to_host(points)
    return rows_taken.dtype == points.dtype and are_equal(rows_taken, points)


def kept_in_file(found: Landmarks | None, path: FileLike) -> Landmarks | None:
    """Write landmarks to the file at `path`, and return them mapped from this file."""
    if path is None:
        return found
    if found is None:
        raise ValueError(
            f"centers_file={str(path)!r} stores landmarks, but landmarks=None takes all rows as "
            "centers; give landmarks, or leave centers_file out"
        )
    return replace(found, points=store_rows(as_rows(xp.to_host(found.points)), Path(path)))


def problem_of(
    K: KernelOperator,
    data: TrainingData,
    found: Landmarks | None,
    penalty: float,
    penalties: tuple[float, ...] | None = None,
    *,
    spare_bytes: int = 0,
) -> FullProblem | NystromProblem:
    """Return the Nystrom problem of landmarks, or the full problem if landmarks are None.

    Factors of the kernel matrix, if any, are kept in memory up to `spare_bytes`.
    """
    problem: FullProblem | NystromProblem
    if found is None:
        problem = FullProblem(K, data.targets, penalty, data.weights)
    else:
        problem = nystrom_problem(K, data, found, penalty)
    if spare_bytes:
        problem = replace(problem, K=problem.K.with_factors(spare_bytes))
    return problem if penalties is None else replace(problem, penalties=penalties)


def nystrom_problem(
    K: KernelOperator, data: TrainingData, found: Landmarks, penalty: float
) -> NystromProblem:
    """Return the Nystrom problem whose centers are the given landmarks."""
    weight = found.weight
    # Preconditioners estimate sums over rows from landmarks: each counts by the weight of its row.
    if data.weights is not None and found.index is not None:
        weight = weight * xp.to_host(data.weights[found.index] / data.weights.mean())
    centers = K.against(K.on_device(found.points))
    return NystromProblem(
        centers, data.targets, penalty, data.weights, weight, found.coverage, found.index
    )


def centers_on_host(found: Landmarks | None, rows: RowSource) -> RowSource | Array:
    """Return the centers of a model in the memory of the host: the landmarks, or all rows."""
    return rows if found is None else xp.to_host(found.points)
