"""The small cases of fixtures/: drawn until every argument of every module is seen on and off.

fixtures/cases.json    a list of {name, config, args, train, differences}; the names of known differences are peer.py's
fixtures/NAME.safetensors    model.X the weights, in.X what goes in, both F32; out.X what PyTorch gives in F64
"""
import json
import os
import shutil

import torch

import draw
import peer
import tensors

HERE = os.path.dirname(os.path.abspath(__file__))
FOLDER = os.path.join(HERE, "fixtures")
LARGEST = 7  # size of an axis
LEAST = 9    # cases a module
LIMIT = 40_000  # bytes of one case
DEFAULTS = {"bias": True, "need_weights": True, "enable_nested_tensor": True, "mask_check": True,
            "layer_norm_eps": 1e-5, "activation": "relu", "kdim": None, "vdim": None, "scale": None}
SIZES = {"model_type", "embed_dim", "num_heads", "d_model", "nhead", "dim_feedforward", "num_layers", "num_encoder_layers",
         "num_decoder_layers"}


def layers_dropout(module):
    return 0.0 if module in (draw.ATTENTION, "torch.nn.MultiheadAttention") else 0.1


def features(case, differences):
    """What a case shows: words such as "bias=off" and "attn_mask=float 3-D"."""
    module = case["config"]["model_type"]
    shown = {"dropout=on" if case["config"].get("dropout", layers_dropout(module)) else "dropout=off"}
    defaults = {**DEFAULTS, "average_attn_weights": module not in draw.STACKS}
    for arguments in (case["config"], case["args"]):
        for name, value in arguments.items():
            if name not in SIZES | {"dropout", "dropout_p"}:
                shown.add(f"{name}={'off' if value in (defaults.get(name, False), None) else 'on'}")
    for name, tensor in case["inputs"].items():
        if name.endswith("mask"):
            kind = "bool" if tensor.dtype == torch.bool else "float"
            shown.add(f"{name}={kind} {tensor.dim()}-D")
        else:
            shown.add(f"{name}={tensor.dim()}-D" + (" empty" if tensor.numel() == 0 else ""))
    shown |= {f"training={case['training']}"} | {f"d={name}" for name in case["d"]} | set(differences)
    return shown


def drawn(module, seed):
    """The case of this seed as it is stored, what it shows, and its bytes; None for one that cannot be stored."""
    case = draw.draw_case(seed, module, LARGEST, torch.float64)
    try:
        wanted, differences, too_coarse = peer.expected(case, nearest=1e-4)
    except peer.Skip:
        return None
    if too_coarse:
        return None
    stored = {**{"model." + n: t.float() for n, t in case["weights"].items()},
              **{"in." + n: t.float() if t.is_floating_point() else t for n, t in {**case["inputs"], **case["d"]}.items()},
              **{"out." + n: t for n, t in wanted.items()}}
    entry = {"name": case["name"], "config": case["config"], "args": case["args"], "train": case["training"],
             "differences": sorted(differences)}
    return entry, stored, features(case, differences), sum(t.numel() * t.element_size() + 80 for t in stored.values())


def select(module, seeds):
    """Small cases that show all that the seeds show together, then as many more as LEAST wants."""
    found = [case for case in (drawn(module, seed) for seed in seeds) if case is not None and case[3] <= LIMIT]
    missing, chosen = set().union(*(case[2] for case in found)), []
    while missing or len(chosen) < LEAST:
        best = max((case for case in found if case not in chosen), key=lambda case: len(case[2] & missing) / case[3] ** 0.3)
        chosen.append(best)
        missing -= best[2]
    return sorted(chosen, key=lambda case: case[0]["name"])


def check():
    """Computes what is stored again with the PyTorch at hand: names of cases that differ, and of those it cannot compute."""
    with open(os.path.join(FOLDER, "cases.json")) as file:
        entries = json.load(file)
    differ, skipped = [], []
    for entry in entries:
        kept = tensors.read(os.path.join(FOLDER, entry["name"] + ".safetensors"))
        again = drawn(entry["config"]["model_type"], int(entry["name"].rpartition("-")[2]))
        if again is None:
            skipped.append(entry["name"])
        elif set(kept) != set(again[1]) or any(
                a.shape != kept[n].shape or not torch.allclose(a, kept[n], rtol=1e-9, atol=1e-9) for n, a in again[1].items()):
            differ.append(entry["name"])
    return entries, differ, skipped


def write():
    shutil.rmtree(FOLDER, ignore_errors=True)
    os.makedirs(FOLDER)
    entries, total = [], 0
    for module in draw.MODULES:
        chosen = select(module, range(1000, 1300))
        for entry, stored, _, _ in chosen:
            path = os.path.join(FOLDER, entry["name"] + ".safetensors")
            tensors.write(path, stored)
            total += os.path.getsize(path)
            entries.append(entry)
        print(f"{module}: {len(chosen)} cases show {len(set().union(*(case[2] for case in chosen)))} things", flush=True)
    with open(os.path.join(FOLDER, "cases.json"), "w") as file:
        file.write("[\n" + ",\n".join(json.dumps(entry) for entry in entries) + "\n]\n")
    print(f"{len(entries)} cases, {total:,} bytes in {FOLDER}, by PyTorch {torch.__version__}")
    return len(entries) >= 60
