#!/usr/bin/env python3
"""Small models of other programs as noether checkpoints, for the tests: models/NAME.h5 and models/NAME-expected.h5.

    python3 tests/golden/make_models.py ../shared/data/golden    # needs numpy and h5py

The weights are random numbers of our own; the logits, losses and greedy continuations beside them were computed in
float64 by Hugging Face transformers 5.24 (gpt2-tiny, llama-tiny-gqa) and by the symmetry-breaking authors' program
(symmetry-*).
Before a file is written, the float64 model at the end of this script must give the same logits from what it holds.
"""

import collections
import io
import json
import pickle
import sys
import zipfile
from pathlib import Path

import h5py
import numpy as np


def read_safetensors(path):
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    header.pop("__metadata__", None)
    assert all(t["dtype"] == "F32" for t in header.values())
    return {
        name: np.frombuffer(data[8 + size :][slice(*t["data_offsets"])], "<f4").reshape(t["shape"])
        for name, t in header.items()
    }


def read_pt(path):
    """A state dictionary saved by torch.save; only what one of float32 tensors needs is understood."""
    archive = zipfile.ZipFile(path)
    root = archive.namelist()[0].split("/")[0]

    class Reader(pickle.Unpickler):
        def find_class(self, module, name):
            return {
                "OrderedDict": collections.OrderedDict,
                "FloatStorage": "<f4",
                "_rebuild_tensor_v2": lambda storage, offset, shape, *_: storage[
                    offset : offset + int(np.prod(shape))
                ].reshape(shape),
            }[name]

        def persistent_load(self, identity):
            return np.frombuffer(archive.read(f"{root}/data/{identity[2]}"), identity[1])

    return Reader(io.BytesIO(archive.read(root + "/data.pkl"))).load()


def from_gpt2(tensors, config, transposed, names):
    """names: the layer's (attention, mlp, first norm, last norm). transposed: Hugging Face's Conv1D holds [in, out]."""
    attention, mlp, norm1, norm2 = names
    matrix = (lambda name: tensors[name].T) if transposed else (lambda name: tensors[name])
    heads, width, head_width = config["heads"], config["width"], config["head_width"]
    out = {
        "embedding/tokens": tensors["transformer.wte.weight"],
        "embedding/positions": tensors["transformer.wpe.weight"],
    }
    for i in range(config["layers"]):
        theirs, ours = f"transformer.h.{i}.", f"layers/{i}/"
        for part, norm in (("attention", norm1), ("mlp", norm2)):
            out[f"{ours}{part}/norm_gain"] = tensors[f"{theirs}{norm}.weight"]
            out[f"{ours}{part}/norm_bias"] = tensors[f"{theirs}{norm}.bias"]
        qkv = matrix(f"{theirs}{attention}.c_attn.weight").reshape(3, heads, head_width, width)
        qkv_bias = tensors[f"{theirs}{attention}.c_attn.bias"].reshape(3, heads, head_width)
        for letter, weight, bias in zip("QKV", qkv, qkv_bias):
            out[f"{ours}attention/W_{letter}"], out[f"{ours}attention/b_{letter}"] = weight, bias
        out[ours + "attention/W_O"] = matrix(f"{theirs}{attention}.c_proj.weight").reshape(width, heads, head_width)
        out[ours + "attention/b_O"] = tensors[f"{theirs}{attention}.c_proj.bias"]
        out[ours + "mlp/W_up"] = matrix(f"{theirs}{mlp}.c_fc.weight")
        out[ours + "mlp/b_up"] = tensors[f"{theirs}{mlp}.c_fc.bias"]
        if config["activation"] == "prelu":
            out[ours + "mlp/slope"] = tensors[f"{theirs}{mlp}.act.weight"]
        out[ours + "mlp/W_down"] = matrix(f"{theirs}{mlp}.c_proj.weight")
        out[ours + "mlp/b_down"] = tensors[f"{theirs}{mlp}.c_proj.bias"]
    out["head/norm_gain"], out["head/norm_bias"] = tensors["transformer.ln_f.weight"], tensors["transformer.ln_f.bias"]
    return out


def from_llama(tensors, config):
    width, head_width = config["width"], config["head_width"]
    out = {"embedding/tokens": tensors["model.embed_tokens.weight"]}
    for i in range(config["layers"]):
        theirs, ours = f"model.layers.{i}.", f"layers/{i}/"
        out[ours + "attention/norm_gain"] = tensors[theirs + "input_layernorm.weight"]
        for letter in "QKV":
            weight = tensors[f"{theirs}self_attn.{letter.lower()}_proj.weight"]
            out[f"{ours}attention/W_{letter}"] = weight.reshape(-1, head_width, width)
        out[ours + "attention/W_O"] = tensors[theirs + "self_attn.o_proj.weight"].reshape(width, -1, head_width)
        out[ours + "mlp/norm_gain"] = tensors[theirs + "post_attention_layernorm.weight"]
        for part in ("gate", "up", "down"):
            out[f"{ours}mlp/W_{part}"] = tensors[f"{theirs}mlp.{part}_proj.weight"]
    out["head/norm_gain"], out["head/W_U"] = tensors["model.norm.weight"], tensors["lm_head.weight"]
    return out


def logits(parameters, config, ids):
    """The model in float64. ids: [T]. Returns [T, vocab_size]."""
    p = {name: value.astype(np.float64) for name, value in parameters.items()}
    length, d = len(ids), config["head_width"]

    def norm(x, prefix):
        if config["norm"] == "layer":
            x = x - x.mean(-1, keepdims=True)
        x = x / np.sqrt((x * x).mean(-1, keepdims=True) + config["norm_epsilon"])
        return x * p[prefix + "norm_gain"] + p.get(prefix + "norm_bias", 0)

    def rotate(x):  # [heads, T, d]; the first half of the components turns with the second
        angles = np.arange(length)[:, None] * config["rope_base"] ** (-np.arange(d // 2) / (d // 2))
        a, b = x[..., : d // 2], x[..., d // 2 :]
        return np.concatenate([a * np.cos(angles) - b * np.sin(angles), b * np.cos(angles) + a * np.sin(angles)], -1)

    def activation(x, slope):
        if config["activation"] == "prelu":
            return np.where(x > 0, x, slope * x)
        if config["activation"] == "silu":
            return x / (1 + np.exp(-x))
        return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))  # gelu-tanh

    x = p["embedding/tokens"][ids]
    if config["position"] == "learned":
        x = x + p["embedding/positions"][:length]
    for i in range(config["layers"]):
        a, m = f"layers/{i}/attention/", f"layers/{i}/mlp/"
        h = norm(x, a)
        q, k, v = (
            np.einsum("tw,hdw->htd", h, p[f"{a}W_{c}"]) + p.get(f"{a}b_{c}", np.zeros((1, 1)))[:, None] for c in "QKV"
        )
        if config["position"] == "rope":
            q, k = rotate(q), rotate(k)
        if "q_bias" in config:
            q = q + config["q_bias"]["means"][0]
        if "v_bias" in config:
            v = v + config["v_bias"]["means"][0]
        group = config["heads"] // config["kv_heads"]
        scores = np.einsum("htd,hsd->hts", q, k.repeat(group, 0)) / np.sqrt(d)
        scores = np.where(np.tril(np.ones((length, length))) > 0, scores, -np.inf)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights /= weights.sum(-1, keepdims=True)
        mixed = np.einsum("hts,hsd->htd", weights, v.repeat(group, 0))
        x = x + np.einsum("htd,whd->tw", mixed, p[a + "W_O"]) + p.get(a + "b_O", 0)
        h = norm(x, m)
        up = h @ p[m + "W_up"].T + p.get(m + "b_up", 0)
        if config["gated_mlp"]:
            up = activation(h @ p[m + "W_gate"].T, None) * up
        else:
            up = activation(up, p.get(m + "slope"))
        x = x + up @ p[m + "W_down"].T + p.get(m + "b_down", 0)
    return norm(x, "head/") @ p.get("head/W_U", p["embedding/tokens"]).T


def write(name, config, parameters, expected):
    folder = Path(__file__).parent / "models"
    folder.mkdir(exist_ok=True)
    ids = expected["input_ids"][()]
    golden = expected["logits"][()]
    mine = np.stack([logits(parameters, config, row) for row in ids])
    # Hugging Face computes rotary angles and the mean loss in float32, whatever the weights.
    assert np.abs(mine - golden).max() < 1e-5, (name, np.abs(mine - golden).max())
    shifted = golden[:, :-1] - golden[:, :-1].max(-1, keepdims=True)
    losses = np.log(np.exp(shifted).sum(-1)) - np.take_along_axis(shifted, ids[:, 1:, None], -1)[..., 0]
    if "mean_next_token_loss" in expected:
        assert abs(losses.mean() - expected["mean_next_token_loss"][()]) < 1e-5

    with h5py.File(folder / f"{name}.h5", "w") as file:
        file.attrs["noether_kind"] = "checkpoint"
        file.attrs["noether_format"] = 1
        file["configuration"] = json.dumps(config)
        for path, value in parameters.items():
            file["parameters/" + path] = np.ascontiguousarray(value, "<f4")
    with h5py.File(folder / f"{name}-expected.h5", "w") as file:
        file["input_ids"] = ids.astype("<i8")
        file["logits"] = golden.astype("<f4")
        file["losses"] = losses  # nats, of tokens 1, 2, ... of each row
        if "greedy_ids" in expected:  # the prompt and its continuation
            file["greedy_ids"] = expected["greedy_ids"][()].astype("<i8")


def main(golden):
    sizes = dict(layers=3, heads=4, kv_heads=4, width=48, head_width=12, hidden=192, context=64, vocab_size=512)
    plain = dict(norm="layer", norm_epsilon=1e-5, biases=True, gated_mlp=False)
    with h5py.File(golden / "gpt2-tiny/expected.h5") as expected:
        config = dict(
            family="gpt2",
            **sizes,
            **plain,
            activation="gelu-tanh",
            tied_head=True,
            position="learned",
            **{"break": "none"},
        )
        tensors = read_safetensors(golden / "gpt2-tiny/model.safetensors")
        write("gpt2-tiny", config, from_gpt2(tensors, config, True, ("attn", "mlp", "ln_1", "ln_2")), expected)
    for name, broken in (("symmetry-symmetric", "none"), ("symmetry-bqbv", "qv")):
        with h5py.File(golden / name / "expected.h5") as expected:
            config = dict(
                family="gpt2",
                **sizes,
                **plain,
                activation="prelu",
                tied_head=True,
                position="learned",
                **{"break": broken},
            )
            if broken == "qv":
                config["q_bias"] = dict(means=[0.5], deviations=[0.05, 0.15])
                config["v_bias"] = dict(means=[0.5], deviations=[0.05])
                config.update(bias_per="layer", learned_bias=False, bias_directions=0)
            tensors = read_pt(golden / name / "model.pt")
            assert np.array_equal(tensors["lm_head.weight"], tensors["transformer.wte.weight"])
            write(name, config, from_gpt2(tensors, config, False, ("sa", "mlp", "ln1", "ln2")), expected)
    with h5py.File(golden / "llama-tiny-gqa/expected.h5") as expected:
        sizes.update(kv_heads=2, hidden=128)
        rope = dict(position="rope", rope_fraction=1.0, rope_base=10000.0)
        config = dict(
            family="llama",
            **sizes,
            norm="rms",
            norm_epsilon=1e-5,
            biases=False,
            gated_mlp=True,
            activation="silu",
            tied_head=False,
            **rope,
            **{"break": "none"},
        )
        tensors = read_safetensors(golden / "llama-tiny-gqa/model.safetensors")
        write("llama-tiny-gqa", config, from_llama(tensors, config), expected)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
