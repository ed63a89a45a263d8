"""Arrays and tensors with hostile types, shapes and values, in the formats that hold them."""

import io
import json
import pickle
import random
import struct
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.numpy import load_file, save_file
from scipy import io as matlab
from scipy import sparse

Mutation = Callable[[random.Random, Path], None]


class Payload:
    """An object whose unpickling creates the canary of the case."""

    def __init__(self, path: Path, how: int) -> None:
        # The mutated file is somewhere below the input folder, the canary beside that folder.
        place = next(parent for parent in path.parents if parent.name in ("input", "cache")).parent
        self.canary = str(place / "canary")
        self.how = how

    def __reduce__(self) -> tuple[Any, ...]:
        import os

        calls: list[tuple[Any, ...]] = [
            (os.system, (f"touch {self.canary}",)),
            (eval, (f"open({self.canary!r}, 'w').close()",)),
            (exec, (f"open({self.canary!r}, 'w').close()",)),
            (open, (self.canary, "w")),
            (np.save, (self.canary, np.zeros(1))),
            (torch.save, (0, self.canary)),
            (np.memmap, (self.canary, "u1", "w+", 0, (4,))),
        ]
        return calls[self.how % len(calls)]


def change_array(rng: random.Random, array: np.ndarray) -> np.ndarray:
    """Return an array of another type, shape or content."""
    changes = [_other_type, _other_shape, _other_values, _other_values, _other_values]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return rng.choice(changes)(rng, np.array(array))


def npz_array(rng: random.Random, path: Path) -> None:
    """Change, remove or add an array."""
    arrays = dict(np.load(path))
    key = rng.choice(list(arrays))
    action = rng.randrange(8)
    if action == 0:
        del arrays[key]
    elif action == 1:
        arrays[rng.choice(["train_masks", "edge_weights", "class_names", "node_ids", "x"])] = (
            arrays[rng.choice(list(arrays))]
        )
    else:
        arrays[key] = change_array(rng, arrays[key])
    save = rng.choice([np.savez, np.savez_compressed])
    save(path, **arrays)


def npz_objects(rng: random.Random, path: Path) -> None:
    """Store an array of Python objects, whose loading runs code."""
    arrays = dict(np.load(path))
    payload = np.empty(1, dtype=object)
    payload[0] = Payload(path, rng.randrange(20))
    arrays[rng.choice([*arrays, "extra"])] = payload
    np.savez(path, **arrays)


def npz_member(rng: random.Random, path: Path) -> None:
    """Let a member declare a shape or a type that the archive does not hold, or be a bomb."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name = rng.choice(list(members))
    shapes = [(2**40,), (2**31, 2**31), (2**62, 4), (-1,), (3, -3), (0, 10**9), (10**9, 0), ()]
    kinds = ["<f8", "|V9", "<U100000", "<M8[s]", "|b1", "<c16", ">i8", "|O", "<f2", "|S0", "<U0"]
    header = {"descr": rng.choice(kinds), "fortran_order": rng.random() < 0.5}
    header["shape"] = rng.choice([*shapes, (3, 2), (2**20, 2**9)])
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(buffer, header)
    members[name] = buffer.getvalue() + (bytes(2**29) if rng.random() < 0.1 else b"\1" * 64)
    if rng.random() < 0.2:
        members[rng.choice(["../../evil.npy", "/evil.npy", name.upper(), "a" * 300])] = b"x"
    with zipfile.ZipFile(
        path, "w", rng.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
    ) as archive:
        for member, content in members.items():
            archive.writestr(member, content)
        if rng.random() < 0.2:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # the name exists already
                archive.writestr(name, b"x")


def tensor_value(rng: random.Random, path: Path) -> None:
    """Change one entry of a dictionary of tensors, or make it a tensor that lies about itself."""
    content = torch.load(path, weights_only=True)
    key = rng.choice(list(content))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        value = hostile_tensor(rng, content[key])
    if rng.random() < 0.1:
        key = rng.choice(["num_nodes", "edge_weight", "train_mask", "class_names", "extra", "name"])
    content[key] = value
    torch.save(content, path)


def tensor_payload(rng: random.Random, path: Path) -> None:
    """Save an object whose unpickling runs code."""
    payload = Payload(path, rng.randrange(20))
    contents = [payload, {"x": payload}, [payload]]
    torch.save(rng.choice(contents), path, _use_new_zipfile_serialization=rng.random() < 0.7)


def safetensors_tensor(rng: random.Random, path: Path) -> None:
    """Change, remove or rename a tensor."""
    tensors = load_file(path)
    key = rng.choice(list(tensors))
    action = rng.randrange(5)
    if action == 0:
        del tensors[key]
    elif action == 1:
        tensors[f"{key}x"] = tensors.pop(key)
    else:
        changed = change_array(rng, tensors[key])
        numeric = changed.dtype.kind in "biuf" and changed.dtype.itemsize <= 8
        tensors[key] = np.ascontiguousarray(changed if numeric else tensors[key] * np.nan)
    save_file(tensors, path)


def safetensors_header(rng: random.Random, path: Path) -> None:
    """Change the JSON header: types, shapes and offsets."""
    content = path.read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + length])
    entry = header[rng.choice([key for key in header if key != "__metadata__"])]
    key = rng.choice(["dtype", "shape", "data_offsets"])
    values = {
        "dtype": ["F64", "F16", "BF16", "I64", "BOOL", "X9", "", 7],
        "shape": [[], [-1], [2**40], [2**62, 4], [0], "x", [1.5]],
        "data_offsets": [[0, 0], [0, 2**62], [8, 4], [-1, 4], [0], "x"],
    }
    entry[key] = rng.choice(values[key])
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + content[8 + length :])


def mat_array(rng: random.Random, path: Path) -> None:
    """Change one array of a MATLAB file."""
    content = {k: v for k, v in matlab.loadmat(path).items() if not k.startswith("__")}
    key = rng.choice(list(content))
    value = content[key]
    if sparse.issparse(value):
        changes = [sparse.csc_matrix((3, 5)), value[:10], value.toarray(), value * np.nan]
        content[key] = rng.choice(changes)
    else:
        changed = change_array(rng, value)
        content[key] = "x" if changed.dtype.kind in "OMV" else changed
    if rng.random() < 0.1:
        del content[key]
    matlab.savemat(path, content, do_compression=rng.random() < 0.5)


def pickle_content(rng: random.Random, path: Path) -> None:
    """Change the matrix or dictionary of a pickle."""
    content = pickle.loads(path.read_bytes())
    if sparse.issparse(content):
        changed: Any = content.copy()
        part = rng.choice(["data", "indices", "indptr", "_shape"])
        vars(changed)[part] = change_array(rng, np.asarray(vars(changed)[part]))
    elif isinstance(content, dict):
        changed = dict(content)
        key = rng.choice(list(changed))
        changed[key] = rng.choice([[-1], [10**9], [10**30], [1.5], ["x"], None, [], [[1]], "abc"])
        if rng.random() < 0.3:
            changed[rng.choice([-1, 10**9, "x", None, 1.5, 10**30])] = [0]
    else:
        changed = change_array(rng, content)
    path.write_bytes(pickle.dumps(changed, protocol=rng.choice([0, 1, 2, 4, 5])))


def split_nodes(rng: random.Random, path: Path) -> None:
    """Change a split in a pickled array of dictionaries."""
    splits = list(np.load(path, allow_pickle=True))
    split = dict(rng.choice(splits))
    key = rng.choice(list(split))
    tensor = torch.from_numpy(split[key].copy())
    changes = [change_array(rng, split[key]), tensor, hostile_tensor(rng, tensor), None, [1, 2], {}]
    split[key] = rng.choice(changes)
    if rng.random() < 0.1:
        del split[key]
    splits[0] = rng.choice([split, split, split, Payload(path, rng.randrange(20)), 3])
    np.save(path, np.array(splits, dtype=object), allow_pickle=True)


def pickle_payload(rng: random.Random, path: Path) -> None:
    """Write a pickle that runs code, recurses without end or repeats itself."""
    payload = Payload(path, rng.randrange(20))
    nested: Any = []
    for _ in range(400):
        nested = [nested]
    doubled = b"(lp0\n" + b"".join(b"(lp%d\ng%d\nag%d\na" % (i + 1, i, i) for i in range(40)) + b"."
    candidates = [
        pickle.dumps(payload, protocol=2),
        pickle.dumps({0: payload}, protocol=2),
        pickle.dumps(nested, protocol=2),
        doubled,
        b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(I1000000000000\ntS'b'\ntR.",
        b"cnumpy\nempty\n(I100000000000\ntR.",
        b"cscipy.sparse\ncsr_matrix\n((I1000000000000\nI2\nttR.",
        b"cbuiltins\nbytearray\n(I100000000000\ntR.",
        b"\x80\x02]q\x00(" + b"K\x01" * 1000 + b"e.",
        b"\x80\x05\x8e" + struct.pack("<Q", 2**62) + b"abc.",
        b"I" + b"9" * 100_000 + b"\n.",
        b".",
    ]
    path.write_bytes(rng.choice(candidates))


def npy_array(rng: random.Random, path: Path) -> None:
    """Change the array of an ``.npy`` file."""
    np.save(path, change_array(rng, np.load(path)))


NPZ: dict[str, Mutation] = {
    "change an array": npz_array,
    "pickle payload": npz_objects,
    "declare a shape or a bomb": npz_member,
}
TENSORS: dict[str, Mutation] = {"change a tensor": tensor_value, "pickle payload": tensor_payload}
SAFETENSORS: dict[str, Mutation] = {
    "change a tensor": safetensors_tensor,
    "change the header": safetensors_header,
}
MAT: dict[str, Mutation] = {"change an array": mat_array}
PICKLE: dict[str, Mutation] = {"change the content": pickle_content, "payload": pickle_payload}
NPY: dict[str, Mutation] = {"change the array": npy_array}
SPLITS: dict[str, Mutation] = {"change a split": split_nodes, "payload": pickle_payload}


def _other_type(rng: random.Random, array: np.ndarray) -> np.ndarray:
    kinds = ["f2", "f4", "f8", "i1", "i8", "u8", "?", "c16", "U", "S", "M8[s]", ">i4", ">f8"]
    try:
        return array.astype(rng.choice(kinds))
    except (TypeError, ValueError):
        return array.astype("U")


def _other_shape(rng: random.Random, array: np.ndarray) -> np.ndarray:
    shapes = [
        array.T,
        array.reshape(-1),
        array[None],
        array[..., None],
        array[:0],
        array.reshape(-1)[:1].reshape(()) if array.size else array,
        np.concatenate([array, array]) if array.ndim else array,
        array[: len(array) // 2] if array.ndim else array,
        np.zeros((0, 5), array.dtype),
        np.zeros((len(array) if array.ndim else 1, 0), array.dtype),
    ]
    return rng.choice(shapes)


def _other_values(rng: random.Random, array: np.ndarray) -> np.ndarray:
    if array.size == 0 or array.dtype.kind not in "biuf":
        return np.zeros(array.shape)
    flat = array.reshape(-1)
    if array.dtype.kind == "f":
        value = rng.choice([np.nan, np.inf, -np.inf, 1e39, 1e-310, -0.0, 3e38, 0.5])
        flat = flat.astype(rng.choice([flat.dtype, np.float64]))
    else:
        value = rng.choice([-1, 2**15, 10**9, 2**31, 2**40, 2**62, -(2**62), 7, 1])
        flat = flat.astype(np.int64)
    count = rng.choice([1, 1, len(flat)])
    flat[rng.randrange(len(flat) - count + 1) :][:count] = value
    return flat.reshape(array.shape)


def hostile_tensor(rng: random.Random, value: Any) -> Any:
    """Return something that is not the tensor, or a tensor that lies about itself."""
    if not isinstance(value, torch.Tensor) or rng.random() < 0.1:
        return rng.choice([-1, 2 * 10**9, 10**30, 0.5, None, "x", True, [1, "a"], {}, [[1], [2]]])
    if rng.random() < 0.5:
        changed = change_array(rng, value.numpy())
        if changed.dtype.kind in "USMO":
            return changed.astype("U").tolist()
        return torch.from_numpy(
            np.ascontiguousarray(changed.astype(changed.dtype.newbyteorder("=")))
        )
    bad = torch.tensor([0, 1, rng.choice([2, -1, 10**9, 2**62])])
    n = len(value) if value.dim() else 1
    candidates = [
        lambda: torch.sparse_csr_tensor(
            torch.arange(4), bad, torch.ones(3), (3, 2), check_invariants=False
        ),
        lambda: torch.sparse_coo_tensor(
            torch.stack([torch.arange(3), bad]), torch.ones(3), (n, 2), check_invariants=False
        ),
        lambda: torch.sparse_csc_tensor(
            torch.tensor([0, 1, 3]), bad, torch.ones(3), (3, 2), check_invariants=False
        ),
        lambda: value.float().to_sparse(),
        lambda: torch.ones(1, 1).expand(n, 10**8),
        lambda: torch.zeros(1).expand(10**10),
        lambda: torch.empty(0, 1).expand(0, 10**12) if rng.random() < 0.5 else torch.empty(0, 7),
        lambda: torch.quantize_per_tensor(value.float(), 0.1, 0, torch.qint8),
        lambda: value.to(torch.bfloat16),
        lambda: value.to(torch.complex64),
        lambda: torch.nn.Parameter(value.float()),
        lambda: torch.empty(value.shape, device="meta"),
        lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]),
        lambda: value.float().to(torch.float8_e4m3fn),
        lambda: value.as_strided((1,), (1,)),
    ]
    return rng.choice(candidates)()
