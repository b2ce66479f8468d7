"""A training case of `rapt bench` in PyTorch; prints one JSON line.

    python torch_train.py CASE [--dtype f32|bf16] [--mode eager|compile] [--steps N] [--dropout P] [--dump DIR]

With the fused optimizer, set_to_none and scaled_dot_product_attention. bertbucket is bertpad in four
micro-batches of like length. --dump writes the weights and the batch for `rapt bench CASE --init DIR`.
"""

import argparse
import json
import os
import pathlib
import resource
import statistics
import time

import torch

import torch_models

WARM_UP = 3


def dump(case, directory):
    from safetensors.torch import save_file

    folder = pathlib.Path(directory)
    folder.mkdir(parents=True, exist_ok=True)
    weights = {k: v.detach().clone().contiguous() for k, v in case.model.state_dict().items()}
    save_file(weights, folder / "weights.safetensors")
    save_file({k: v.contiguous() for k, v in case.batch.items()}, folder / "batch.safetensors")


def make_optimizer(case):
    if case.sgd:
        return torch.optim.SGD(case.model.parameters(), lr=1e-3, momentum=0.99, fused=True)
    return torch.optim.AdamW(case.model.parameters(), lr=3e-4, fused=True)


def train_step(case, optimizer, bf16):
    total = 0.0
    for part in case.losses:
        with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
            loss = part()
        loss.backward()
        total += loss.item()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return total


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("case", choices=torch_models.CASES)
    parser.add_argument("--dtype", choices=["f32", "bf16"], default="f32")
    parser.add_argument("--mode", choices=["eager", "compile"], default="eager")
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--dump")
    options = parser.parse_args()

    torch.set_num_threads(int(os.environ.get("THREADS", "2")))
    case = torch_models.make_case(options.case, options.dropout)
    if options.dump:
        dump(case, options.dump)
    if options.mode == "compile":
        case.model.compile()
    optimizer = make_optimizer(case)
    losses, times = [], []
    for _ in range(WARM_UP + options.steps):
        start = time.perf_counter()
        losses.append(round(train_step(case, optimizer, options.dtype == "bf16"), 5))
        times.append((time.perf_counter() - start) * 1e3)
    times = times[WARM_UP:]
    step = statistics.median(times)
    result = {
        "case": options.case,
        "dtype": options.dtype,
        "mode": options.mode,
        "step_ms": round(step, 1),
        "min": round(min(times), 1),
        "max": round(max(times), 1),
        case.unit + "_per_s": round(case.items / step * 1e3, 2),
        "rss_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "loss": losses[:3] + losses[-1:],
    }
    print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
