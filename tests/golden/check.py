"""Computes every stored fixture again, with the PyTorch at hand, and compares it with what is stored.

    python3 check.py    prints one line a file; exit status 1 if one of them differs by more than 1e-9

A tensor may differ by 1e-9 of its largest value (f32: 1e-5). One that is zero but for rounding, as the gradient of a key's
bias always is, is measured against 1e-6 of the largest value in its file.
"""
import json
import os
import sys

import torch

import encoder_decoder
import forward
import layers
import tensors

HERE = os.path.dirname(os.path.abspath(__file__))


def difference(stored, again):
    """The worst difference of two {name: tensor}, each relative to what it may be (above 1 is too much), and its name."""
    if list(stored) != list(again):
        return float("inf"), "names"
    sizes = {name: x.abs().max().item() for name, x in stored.items() if x.is_floating_point() and x.numel()}
    floor, worst = 1e-6 * max(sizes.values(), default=0.0), (0.0, "")
    for name, x in stored.items():
        y = again[name].detach()
        if x.dtype != y.dtype or x.shape != y.shape or not (name in sizes or torch.equal(x, y)):
            return float("inf"), name
        if name in sizes:
            allowed = (1e-5 if x.dtype == torch.float32 else 1e-9) * max(sizes[name], floor)
            worst = max(worst, ((x - y).abs().max().item() / allowed, name))
    return worst


def main():
    torch.set_num_threads(1)
    failed = 0
    for path, again in {**encoder_decoder.fixtures(), **forward.fixtures(), **layers.fixtures()}.items():
        full = os.path.join(HERE, path)
        if path.endswith(".json"):
            with open(full) as file:
                worst, where = (0.0, "") if json.load(file) == again else (float("inf"), "content")
        else:
            worst, where = difference(tensors.read(full), again)
        failed += not worst <= 1
        print(f"{'ok     ' if worst <= 1 else 'DIFFERS'} {path}  {worst:.1e} of what is allowed {where and 'in ' + where}")
    print(f"PyTorch {torch.__version__}: {'all as stored' if not failed else f'{failed} files differ'}")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
