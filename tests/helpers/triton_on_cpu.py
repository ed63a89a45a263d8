"""Run kernels on the CPU with Triton's interpreter. Import this module before any kernel."""

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
    """Accept an array of one element, as NumPy before 2.4 did; the interpreter relies on it."""


interpreter.int = _int
