"""Class methods that are functions of another module, with the types of their arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar

_P = ParamSpec("_P")
_T = TypeVar("_T")

if TYPE_CHECKING:

    class constructor(Generic[_P]):
        """Makes a class method, which returns an object of the class, of a function."""

        def __init__(self, function: Callable[Concatenate[Any, _P], Any], /) -> None: ...

        def __get__(self, instance: object, owner: type[_T]) -> Callable[_P, _T]: ...

else:
    constructor = classmethod
