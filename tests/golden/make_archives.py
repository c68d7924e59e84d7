#!/usr/bin/env python3
"""Small PyTorch archives for the tests, by Python's own pickle and zipfile: formats/NAME.pt.

    python3 tests/golden/make_archives.py    # needs no PyTorch: stand-ins are pickled under the names of its classes

Numbers are 0, 1, 2, ... in the order of the tensors below, so that a test can say where each must end up.
"""

import collections
import io
import os
import pickle
import struct
import sys
import types
import zipfile
from dataclasses import dataclass
from pathlib import Path


def stand_in(name, **members):
    module = types.ModuleType(name)
    for key, value in members.items():
        value.__module__, value.__qualname__, value.__name__ = name, key, key
        setattr(module, key, value)
    sys.modules[name] = module
    return module


torch = stand_in("torch", FloatStorage=type("FloatStorage", (), {}))
utils = stand_in("torch._utils", _rebuild_tensor_v2=lambda *_: None)


@dataclass
class GPTConfig:
    context_length: int = 8
    vocab_size: int = 6
    n_layer: int = 1
    n_head: int = 2
    n_embd: int = 4


stand_in("ecd_symbreak.config", GPTConfig=GPTConfig)
stand_in("ecd_symbreak")


class Storage:
    def __init__(self, key, values):
        self.key, self.values = key, values


class Tensor:
    def __init__(self, storage, offset, shape, stride):
        self.parts = (storage, offset, shape, stride, False, collections.OrderedDict())

    def __reduce__(self):
        return utils._rebuild_tensor_v2, self.parts


class Pickler(pickle.Pickler):
    def persistent_id(self, value):
        if isinstance(value, Storage):
            return ("storage", torch.FloatStorage, value.key, "cpu", len(value.values))
        return None


def save(name, value, storages=(), protocol=2, zip64=False):
    pickled = io.BytesIO()
    Pickler(pickled, protocol).dump(value)
    entries = {"data.pkl": pickled.getvalue(), "byteorder": b"little"}
    for storage in storages:
        entries[f"data/{storage.key}"] = struct.pack(f"<{len(storage.values)}f", *storage.values)
    entries["version"] = b"3\n"
    folder = Path(__file__).parent / "formats"
    folder.mkdir(exist_ok=True)
    zipfile.ZIP64_LIMIT = 16 if zip64 else 2**31 - 1  # what is larger is written as if it were more than 4 GiB
    with zipfile.ZipFile(folder / f"{name}.pt", "w", zipfile.ZIP_STORED) as archive:
        for entry, content in entries.items():
            archive.writestr(zipfile.ZipInfo(f"{name}/{entry}"), content)


class Model:
    def __init__(self):
        self.storages, self.count = [], 0

    def tensor(self, *shape, values=None):
        size = 1
        for n in shape:
            size *= n
        values = values or list(range(self.count, self.count + size))
        self.count += size
        self.storages.append(Storage(str(len(self.storages)), values))
        stride = [1]
        for n in reversed(shape[1:]):
            stride.insert(0, stride[0] * n)
        return Tensor(self.storages[-1], 0, shape, tuple(stride))


def authors_model():
    """The state of a model with broken queries and keys, as the authors' program saves it beside its configuration."""
    m, d = Model(), 2
    state = collections.OrderedDict()
    state["transformer.wte.weight"] = m.tensor(6, 4)
    state["transformer.wpe.weight"] = m.tensor(8, 4)
    sa = "transformer.h.0.sa."
    state[sa + "mean_Q"] = m.tensor(d, values=[0.5, 0.5])
    state[sa + "mean_K"] = m.tensor(d, values=[0.3, 0.3])
    state[sa + "std_Q"] = m.tensor(d, values=[0.05, 0.15])
    state[sa + "std_K"] = m.tensor(d, values=[0.12, 0.08])
    state[sa + "bQ"] = m.tensor(2, d)
    state[sa + "bK"] = m.tensor(2, d)
    state[sa + "mean_V"] = m.tensor(d, values=[0, 0])
    state[sa + "std_V"] = m.tensor(d, values=[0.05, 0.05])
    state[sa + "bV"] = m.tensor(2, d, values=[0, 0, 0, 0])
    state[sa + "causal_mask"] = m.tensor(1, 1, 8, 8)
    state[sa + "c_attn.weight"] = m.tensor(12, 4)
    state[sa + "c_attn.bias"] = m.tensor(12)
    state[sa + "c_proj.weight"] = m.tensor(4, 4)
    state[sa + "c_proj.bias"] = m.tensor(4)
    mlp = "transformer.h.0.mlp."
    state[mlp + "c_fc.weight"] = m.tensor(16, 4)
    state[mlp + "c_fc.bias"] = m.tensor(16)
    state[mlp + "act.weight"] = m.tensor(16)
    state[mlp + "c_proj.weight"] = m.tensor(4, 16)
    state[mlp + "c_proj.bias"] = m.tensor(4)
    for norm in ("h.0.ln1", "h.0.ln2", "ln_f"):
        state[f"transformer.{norm}.weight"] = m.tensor(4)
        state[f"transformer.{norm}.bias"] = m.tensor(4)
    state["lm_head.weight"] = state["transformer.wte.weight"]
    state._metadata = {"": {"version": 1}}  # as a state dictionary has
    saved = {
        "model": state,
        "config": GPTConfig(),
        "update": 12,
        "best_val_loss": float("inf"),
        "symmetric": False,
        "symmetry_breaking": {"symmetric": False, "bQ": True, "bK": True, "bV": False, "mean_V": 0.0, "std_V": 0.05},
    }
    return saved, m.storages


class Call:
    def __reduce__(self):
        return os.system, ("touch called",)


def main():
    saved, storages = authors_model()
    save("authors", saved, storages)
    storage = Storage("0", [0, 1, 2, 3, 4, 5])
    # A transposed view that begins at the second number; and what a list, a tuple, None and numbers become.
    save(
        "views",
        {"list": [Tensor(storage, 1, (2, 2), (1, 3)), (1, -2, 2**40, None)], "text": "\u00e9", "real": 0.1, 7: True},
        [storage],
        protocol=5,
        zip64=True,
    )
    save("call", {"model": Call()})


if __name__ == "__main__":
    main()
