"""Names to classes, with one helpful error."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Generic, TypeVar

from ._checks import did_you_mean

T = TypeVar("T")


class Registry(Generic[T]):
    """The public list of one kind of thing (kernels, solvers, selectors).

    Parameters
    ----------
    kind : str
        What the registered classes are, for error messages.
    elsewhere : mapping of str to str, optional
        Names that other libraries have for some of them, for error messages.
    """

    def __init__(self, kind: str, elsewhere: Mapping[str, str] | None = None) -> None:
        self.kind = kind
        self._elsewhere = {} if elsewhere is None else dict(elsewhere)
        self._classes: dict[str, type[T]] = {}

    def register(self, name: str) -> Callable[[type[T]], type[T]]:
        """Return a class decorator that files the class under `name`."""

        def add(cls: type[T]) -> type[T]:
            self._classes[name] = cls
            return cls

        return add

    def __getitem__(self, name: str) -> type[T]:
        """Return the class called `name`; ValueError with the nearest names if there is none."""
        if name not in self._classes:
            known = ", ".join(sorted(self._classes))
            raise ValueError(f"unknown {self.kind} {name!r}; known: {known}{self.hint(name)}")
        return self._classes[name]

    def hint(self, name: object) -> str:
        """Return the end of an error: the class that is called so elsewhere, or a near name."""
        here = self._elsewhere.get(str(name).lower())
        return did_you_mean(name, self._classes) if here is None else f"; did you mean {here}?"

    def make(self, name: str, **parameters: Any) -> T:
        """Return ``cls(**parameters)`` of the class called `name`."""
        return self[name](**parameters)

    def name_of(self, obj: object) -> str:
        """Return the name under which the class of `obj` is registered."""
        for name, cls in self._classes.items():
            if type(obj) is cls:
                return name
        raise ValueError(f"{type(obj).__name__} is not a registered {self.kind}")

    def __iter__(self) -> Iterator[str]:
        return iter(self._classes)

    def __contains__(self, name: object) -> bool:
        return name in self._classes
