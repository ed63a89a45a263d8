"""Triton's interpreter: kernels run on the CPU, to be compared with dense products. Import before any kernel."""

import builtins
import os

os.environ["TRITON_INTERPRET"] = "1"

import numpy as np
from triton.runtime import interpreter


class _IntOfOne(type):
    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, builtins.int)

    def __call__(cls, value: object) -> int:
        return builtins.int(np.asarray(value).reshape(-1)[0])


class _int(metaclass=_IntOfOne):
    """``int`` that still takes an array of one element, as NumPy did before 2.4; the interpreter relies on it."""


interpreter.int = _int
