"""Tree of the tests: folders have the names of packages, so that the tests of a file are found."""

from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
PACKAGE = TESTS.parent / "src" / "gramian"

KINDS = {
    "campaign",  # random fits of all kinds
    "contracts",  # one file for each registry or protocol
    "memory",  # peak memory, in processes of their own
    "mutants",  # deliberate errors
    "project",  # pages, examples, benchmarks and the source as a whole
    "shared",  # helpers
    "typed",  # programs of users
}


def misplaced(paths: list[Path]) -> list[str]:
    """Return test files, by their path below `tests`, in folders that are no packages."""
    return [
        path.as_posix()
        for path in paths
        if path.parts[0] not in KINDS and not has_source(PACKAGE / path.parent, path)
    ]


def has_source(folder: Path, path: Path) -> bool:
    """Return whether a file of tests has a package; at the top, a module of its own."""
    if len(path.parts) > 1:
        return (folder / "__init__.py").exists()
    name = path.name.removeprefix("test_")
    return (folder / name).exists() or (folder / f"_{name}").exists()


def test_folders_are_packages():
    files = [path.relative_to(TESTS) for path in TESTS.rglob("test_*.py")]
    assert len(files) > 100
    assert misplaced(files) == []


@pytest.mark.parametrize("path", ["numerics/test_falkon.py", "test_solve.py", "data/csv/test_a.py"])
def test_a_misplaced_file_is_found(path):
    assert misplaced([Path(path)]) == [path]
