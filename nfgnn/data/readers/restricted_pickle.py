"""Read pickles that contain arrays, without running code that they contain.

A pickle may call any function while it is loaded. :class:`RestrictedUnpickler` resolves only the
names that arrays, CSR matrices, tensors and dictionaries need. It resolves them to the plain
containers below, so neither NumPy, SciPy nor torch receives a value before its type, size and
bounds have been checked.
"""

import io
import pickle
from collections import defaultdict
from collections.abc import Callable
from math import prod
from typing import IO, Any

import numpy as np

from nfgnn.data.readers.csr_parts import csr_from_parts


class _DType:
    """The pickled form of ``numpy.dtype``: a type code such as ``f8`` and a byte order."""

    def __init__(self, code: str, *_: object) -> None:
        self.code = code
        self.order = "|"

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.order = state[1]

    def to_numpy(self) -> np.dtype:
        kind = np.dtype(str(self.code))
        if kind.kind not in "biuf":
            raise ValueError(f"it holds an array of type {kind}")
        return np.dtype(f"{self.order}{kind.str[1:]}")


class PickledArray:
    """The pickled form of ``numpy.ndarray``: shape, type, memory order and bytes."""

    state: tuple[Any, ...]

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.state = state

    def to_list(self) -> list[Any]:
        """Return the elements of an array of Python objects, which is pickled as a list."""
        content = self.state[-1]
        if not isinstance(content, list):
            raise ValueError("it holds numbers in place of Python objects")
        return content

    def to_numpy(self) -> np.ndarray:
        _, shape, dtype, fortran, content = self.state
        buffer = content.encode("latin1") if isinstance(content, str) else bytes(content)
        kind = dtype.to_numpy()
        if min(shape, default=0) < 0 or prod(shape) * kind.itemsize != len(buffer):
            raise ValueError(f"it holds an array of shape {shape} in {len(buffer)} bytes")
        flat = np.frombuffer(buffer, kind).astype(kind.newbyteorder("="))
        return flat.reshape(shape, order="F" if fortran else "C")


class PickledCsrMatrix:
    """The pickled form of ``scipy.sparse.csr_matrix``: its attributes by name."""

    state: dict[str, Any]

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.state = state

    def to_scipy(self, where: str) -> Any:
        parts = [self.state[name].to_numpy() for name in ("data", "indices", "indptr")]
        shape = self.state.get("_shape", self.state.get("shape"))
        return csr_from_parts([*parts, np.array(shape)], where)


class PickledTensor:
    """The pickled form of a one-dimensional ``torch.Tensor`` of 64-bit integers."""

    def __init__(
        self,
        storage: np.ndarray,
        offset: int,
        size: tuple[int, ...],
        stride: tuple[int, ...],
        *_: object,
    ) -> None:
        fits = len(size) == 1 and 0 <= offset <= offset + size[0] <= len(storage)
        if not fits or size[0] < 0 or stride != (1,):
            raise ValueError(f"it holds a tensor of size {size} with stride {stride}")
        self.values = storage[offset : offset + size[0]]

    def to_numpy(self) -> np.ndarray:
        return self.values


class _LongStorage:
    """Stand in for ``torch.LongStorage``, whose name a pickled tensor contains."""


def _read_storage(content: bytes) -> np.ndarray:
    """Stand in for torch's ``_load_from_bytes``: return the integers of a pickled storage.

    Five pickles (magic number, version, machine, reference to the storage, its keys) precede the
    number of integers and the integers.
    """
    file = io.BytesIO(content)
    parts = [_StorageUnpickler(file).load() for _ in range(5)]
    if parts[3][:2] != ("storage", _LongStorage):
        raise ValueError("it holds a tensor that is not one of 64-bit integers")
    values = np.frombuffer(file.read(), "<i8")
    if len(values) == 0 or values[0] != len(values) - 1:
        raise ValueError("it holds a tensor whose size differs from its content")
    return values[1:]


def _new_array(*_: object) -> PickledArray:
    """Stand in for NumPy's ``_reconstruct``; the pickle sets the state afterwards."""
    return PickledArray()


def _array_from_buffer(
    buffer: bytes, dtype: _DType, shape: tuple[int, ...], order: str
) -> PickledArray:
    """Stand in for NumPy's ``_frombuffer``, which pickles of protocol 5 call."""
    array = PickledArray()
    array.state = (1, shape, dtype, order == "F", buffer)
    return array


def _encode(text: str, encoding: str) -> bytes:
    """Stand in for ``_codecs.encode``, by which Python 3 writes bytes in protocol 2."""
    if encoding != "latin1":
        raise ValueError(f"it holds text in the encoding {encoding!r}")
    return text.encode("latin1")


def _new_object(kind: type, *_: object) -> object:
    """Stand in for ``copyreg._reconstructor``."""
    if kind is not PickledCsrMatrix:
        raise ValueError(f"it holds an object of type {kind}")
    return PickledCsrMatrix()


# Modules have other names in Python 2, before NumPy 2 and before SciPy 1.8.
_ALLOWED: dict[tuple[str, str], Callable[..., Any]] = {
    ("numpy", "ndarray"): PickledArray,
    ("numpy", "dtype"): _DType,
    ("numpy.core.multiarray", "_reconstruct"): _new_array,
    ("numpy._core.multiarray", "_reconstruct"): _new_array,
    ("numpy.core.numeric", "_frombuffer"): _array_from_buffer,
    ("numpy._core.numeric", "_frombuffer"): _array_from_buffer,
    ("scipy.sparse.csr", "csr_matrix"): PickledCsrMatrix,
    ("scipy.sparse._csr", "csr_matrix"): PickledCsrMatrix,
    ("torch._utils", "_rebuild_tensor_v2"): PickledTensor,
    ("torch.storage", "_load_from_bytes"): _read_storage,
    ("torch", "LongStorage"): _LongStorage,
    ("collections", "defaultdict"): defaultdict,
    ("collections", "OrderedDict"): dict,
    ("__builtin__", "list"): list,
    ("builtins", "list"): list,
    ("__builtin__", "object"): object,
    ("builtins", "object"): object,
    ("copy_reg", "_reconstructor"): _new_object,
    ("copyreg", "_reconstructor"): _new_object,
    ("_codecs", "encode"): _encode,
}


class RestrictedUnpickler(pickle.Unpickler):
    """An unpickler that resolves the names in ``_ALLOWED`` and refuses every other one."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _ALLOWED:
            raise pickle.UnpicklingError(f"it refers to {module}.{name}")
        return _ALLOWED[module, name]


class _StorageUnpickler(RestrictedUnpickler):
    """The unpickler of a storage, which refers to itself as a persistent object."""

    def persistent_load(self, reference: Any) -> Any:
        return reference


def unpickle(file: IO[bytes]) -> Any:
    """Return the content of an open pickle. Arrays are the containers of this module.

    A damaged or hostile pickle can fail in any way.
    """
    return RestrictedUnpickler(file, encoding="latin1").load()
