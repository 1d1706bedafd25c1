"""Registry of classes by name, also of other packages, with an error that suggests near names."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from .._messages.checks import did_you_mean

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint as EntryPoint
else:  # importlib_metadata replaces importlib's class once it is imported
    EntryPoint = Any

Registered = TypeVar("Registered")
Cls = TypeVar("Cls", bound=type[Any])

ENTRY_POINT_GROUPS = {
    "kernel": ("gramian.kernels", "Kernel"),
    "solver": ("gramian.solvers", "Solver"),
    "selector of landmarks": ("gramian.landmarks", "Selector"),
    "conformal method": ("gramian.conformal", "ConformalMethod"),
}
"""Kinds that plugins may extend, with the package of the base class, which is also the group of
entry points, and the name of the base class."""


class Registry(Generic[Registered]):
    """Registry of the classes of one kind (kernels, solvers, selectors, conformal methods).

    An unknown name is looked up among the entry points of other packages, see `ENTRY_POINT_GROUPS`,
    and its class is loaded. Registered classes take precedence.

    - `kind`: kind of the registered classes, for error messages.
    - `elsewhere`: registered names by their names in other libraries, for error messages.
    """

    def __init__(self, kind: str, elsewhere: Mapping[str, str] | None = None) -> None:
        self.kind = kind
        self._elsewhere = {} if elsewhere is None else dict(elsewhere)
        self._classes: dict[str, type[Registered]] = {}

    def register(self, name: str) -> Callable[[Cls], Cls]:
        """Return a class decorator that registers the class as `name`.

        The decorated class keeps its type, so that type checkers see its parameters.
        """

        def add(cls: Cls) -> Cls:
            self._classes[name] = cls
            return cls

        return add

    def __getitem__(self, name: str) -> type[Registered]:
        """Return the class called `name`; raise ValueError with a near name if unknown."""
        # Registered classes take precedence: no plugin can replace one.
        if name not in self._classes and name in self._plugins():
            self._load(name)
        if name not in self._classes:
            known_names = ", ".join(sorted(self.names()))
            raise ValueError(f"unknown {self.kind} {name!r}; known: {known_names}{self.hint(name)}")
        return self._classes[name]

    def names(self) -> tuple[str, ...]:
        """Return the registered names, then the names that other packages add."""
        return *self._classes, *(name for name in self._plugins() if name not in self._classes)

    def needs(self, obj: object) -> str | None:
        """Return the package or module that defines the class of `obj`; None for gramian.

        Reading a model with this class requires it.
        """
        entry_point = self._plugins().get(self.name_of(obj))
        module = type(obj).__module__
        if module.split(".")[0] == "gramian":
            return None
        return module if entry_point is None else package_of(entry_point)

    def _plugins(self) -> dict[str, EntryPoint]:
        return plugins(ENTRY_POINT_GROUPS[self.kind][0]) if self.kind in ENTRY_POINT_GROUPS else {}

    def _load(self, name: str) -> None:
        # The base class is imported late, because its package imports this module.
        package, base = ENTRY_POINT_GROUPS[self.kind]
        plugin_class = load(self._plugins()[name], getattr(import_module(package), base), self.kind)
        # The import of the plugin may have registered a class of this name already.
        self._classes.setdefault(name, cast("type[Registered]", plugin_class))

    def hint(self, name: object) -> str:
        """Return the end of an error: the class for a name elsewhere, or a near name."""
        near_name = self._elsewhere.get(str(name).lower())
        if near_name is None:
            return did_you_mean(name, self.names())
        return f"; did you mean {near_name}?"

    def make(self, name: str, **parameters: Any) -> Registered:
        """Return ``cls(**parameters)`` of the class called `name`."""
        return self[name](**parameters)

    def name_of(self, obj: object) -> str:
        """Return the registered name of the class of `obj`, or the name of its entry point."""
        for name, cls in self._classes.items():
            # Not `isinstance`: a file would store the name of the base class for a subclass.
            if type(obj) is cls:
                return name
        for name, plugin in self._plugins().items():
            # Loading imports the plugin, so only plugins of the package
            # that defines the class are loaded.
            if plugin.module.split(".")[0] == type(obj).__module__.split(".")[0]:
                self._load(name)
                if type(obj) is self._classes[name]:
                    return name
        raise ValueError(f"{type(obj).__name__} is not a registered {self.kind}")

    def __iter__(self) -> Iterator[str]:
        return iter(self._classes)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and (name in self._classes or name in self._plugins())


@functools.cache
def _of_path(group: str, _path: tuple[str, ...]) -> dict[str, EntryPoint]:
    return {entry_point.name: entry_point for entry_point in entry_points(group=group)}


def plugins(group: str) -> dict[str, EntryPoint]:
    """Return the entry points of a group by name, without loading them.

    The metadata of all packages are read at the first call, and after a change of `sys.path`.
    """
    # The path is the key of the cache: it changes with the packages that can be found.
    return _of_path(group, tuple(sys.path))


def package_of(entry: EntryPoint) -> str:
    """Return the name of the package that declares an entry point."""
    return entry.value.partition(":")[0] if entry.dist is None else entry.dist.name


def load(entry: EntryPoint, base: type, kind: str) -> type:
    """Return the class of an entry point.

    Raise ValueError if it cannot be imported, or is not a subclass of `base`.
    """
    entry_text = (
        f"{kind} {entry.name!r}, entry point {entry.value!r} of the package {package_of(entry)}"
    )
    try:
        cls = entry.load()
    # A module that does not exist, or one without the class that the entry point names.
    except (ImportError, AttributeError) as error:
        raise ValueError(f"{entry_text}, cannot be imported: {error}") from error
    if not (isinstance(cls, type) and issubclass(cls, base)):
        raise ValueError(f"{entry_text}, must be a subclass of {base.__qualname__}, not {cls!r}")
    return cls
