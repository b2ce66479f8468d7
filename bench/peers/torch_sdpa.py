"""The settings of `rapt bench sdpa` in PyTorch; prints one JSON line a setting.

    python torch_sdpa.py [f32|bf16] [T,T,...]

4 sentences, 8 heads of 64. `lengths` pads half of the keys away by a boolean mask; `dropout` is causal and left out above
T 4096, where PyTorch builds matrices of T x T.
"""

import json
import os
import statistics
import sys
import time

import torch
from torch.nn import functional as F

SENTENCES, HEADS, WIDTH = 4, 8, 64


def settings(T):
    lengths = torch.tensor([T, T // 2, T // 4, T // 4])
    keep = (torch.arange(T) < lengths[:, None])[:, None, None, :]
    yield "full", {}
    yield "causal", {"is_causal": True}
    yield "lengths", {"attn_mask": keep}
    if T <= 4096:
        yield "dropout", {"dropout_p": 0.1, "is_causal": True}


def median_ms(run, count=5):
    run()
    times = []
    for _ in range(count):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e3


def measure(dtype, T):
    shape = (SENTENCES, HEADS, T, WIDTH)
    query, key, value = (torch.randn(shape, dtype=dtype, requires_grad=True) for _ in range(3))
    gradient = torch.randn(shape, dtype=dtype)

    def forward(how):
        with torch.no_grad():
            F.scaled_dot_product_attention(query, key, value, **how)

    def both_ways(how):
        F.scaled_dot_product_attention(query, key, value, **how).backward(gradient)
        query.grad = key.grad = value.grad = None

    for name, how in settings(T):
        for both, run in ((False, forward), (True, both_ways)):
            ms = median_ms(lambda: run(how))
            print(json.dumps({"T": T, "mask": name, "both": both, "ms": round(ms, 3)}), flush=True)


def main():
    dtype = {"f32": torch.float32, "bf16": torch.bfloat16}[sys.argv[1] if sys.argv[1:] else "f32"]
    lengths = sys.argv[2] if sys.argv[2:] else "128,512,2048"
    torch.manual_seed(0)
    torch.set_num_threads(int(os.environ.get("THREADS", "2")))
    for T in map(int, lengths.split(",")):
        measure(dtype, T)


if __name__ == "__main__":
    main()
