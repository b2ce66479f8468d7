"""Random configurations of the official modules, computed by PyTorch and by `rapt forward`, compared number by number.

    python3 tests/parity/sweep.py                       560 cases, 80 a module; build/rapt must be built
    python3 tests/parity/sweep.py --cases 20 --seed 7   others
    python3 tests/parity/sweep.py --only Transformer-0031 --keep DIR    one case, its files left in DIR
    python3 tests/parity/sweep.py --store               writes the small cases of fixtures/ again

Any PyTorch from 1.13 on. What an older one lacks is skipped and counted by reason; where PyTorch is known to do otherwise
than rapt, peer.py says by which rule the expected numbers are made. Every output, attention weight, gradient of an input
and of a parameter is compared, element by element: f64 within 1e-10 (of the value where that is above 1), f32 within 2e-5,
or 1e-4 of the value. Cases that f32 is too coarse for (peer.watch_rounding) run in f64. Exit status 1 if a case fails.
"""
import argparse
import collections
import json
import os
import shutil
import subprocess
import sys
import tempfile

import torch

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "golden")]

import draw  # noqa: E402
import peer  # noqa: E402
import tensors  # noqa: E402

ALLOWED = {torch.float64: (1e-10, 1e-10), torch.float32: (2e-5, 1e-4)}  # absolute, relative


def complete(seed, module, largest):
    """A case with PyTorch's numbers: (case, wanted, names of known differences)."""
    case = draw.draw_case(seed, module, largest)
    wanted, differences, too_coarse = peer.expected(case)
    if too_coarse and case["dtype"] == torch.float32:
        case = draw.draw_case(seed, module, largest, torch.float64)
        wanted, differences, _ = peer.expected(case)
    return case, wanted, differences


def run_rapt(program, case, folder):
    """What `rapt forward --grad` gives for the case: {name: tensor}. Raises RuntimeError with what it says."""
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "config.json"), "w") as file:
        json.dump(case["config"], file)
    source, target = os.path.join(folder, "in.safetensors"), os.path.join(folder, "out.safetensors")
    if case["weights"]:
        tensors.write(os.path.join(folder, "model.safetensors"), case["weights"])
    tensors.write(source, {**case["inputs"], **case["d"]})
    command = [program, "forward", folder, "--in", source, "--out", target, "--grad", "--args", json.dumps(case["args"]),
               *(["--train", "1"] if case["training"] else [])]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"exit {done.returncode}: {done.stderr.strip()}")
    return tensors.read(target)


def difference(ours, wanted):
    """(worst difference as a part of what is allowed, where): above 1 is too much."""
    if set(ours) != set(wanted):
        return float("inf"), "names " + " ".join(sorted(set(ours) ^ set(wanted)))
    worst = (0.0, "")
    for name, b in wanted.items():
        a = ours[name]
        if a.shape != b.shape or a.dtype != b.dtype:
            return float("inf"), f"{name}: {list(a.shape)} of {a.dtype}, not {list(b.shape)} of {b.dtype}"
        if a.numel() == 0:
            continue
        absolute, relative = ALLOWED[b.dtype]
        parts = (a - b).abs() / torch.clamp(relative * b.abs(), min=absolute)
        part = parts.max().item() if bool(parts.isfinite().all()) else float("inf")
        worst = max(worst, (part, name))
    return worst


class Tally:
    def __init__(self):
        self.passed, self.failed = collections.Counter(), collections.Counter()
        self.skipped, self.met = collections.Counter(), collections.Counter()
        self.worst = {dtype: (0.0, "") for dtype in ALLOWED}

    def report(self):
        for module in draw.MODULES:
            print(f"  {module:36} {self.passed[module]:4} passed {self.failed[module]:4} failed")
        for reason, count in sorted(self.skipped.items()):
            print(f"  skipped {count:4}: {reason}")
        for name, count in sorted(self.met.items()):
            print(f"  known difference {name}: {count} cases, expected by its rule (peer.py)")
        for dtype, (part, where) in self.worst.items():
            print(f"  largest difference in {str(dtype)[6:]}: {part:.2g} of what is allowed {where and 'in ' + where}")
        passed, failed, skipped = (sum(c.values()) for c in (self.passed, self.failed, self.skipped))
        print(f"parity with PyTorch {torch.__version__}: {passed + failed + skipped} cases, {passed} passed, {failed} failed, "
              f"{skipped} skipped")
        return failed == 0 and passed > 0


def one(tally, program, seed, module, largest, folder):
    name = f"{module.rpartition('.')[2]}-{seed:04}"
    try:
        case, wanted, differences = complete(seed, module, largest)
        part, where = difference(run_rapt(program, case, folder), wanted)
        if not part <= 1:
            raise RuntimeError(f"{part:.3g} of what is allowed in {where} {sorted(differences)}")
        tally.passed[module] += 1
        tally.met.update(differences)
        tally.worst[case["dtype"]] = max(tally.worst[case["dtype"]], (part, f"{where} of {name}"))
    except peer.Skip as reason:
        tally.skipped[str(reason)] += 1
    except (RuntimeError, AssertionError, peer.Mismatch) as error:
        tally.failed[module] += 1
        print(f"FAILED {name}: {error}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=os.path.join(HERE, "..", "..", "build", "rapt"))
    parser.add_argument("--cases", type=int, default=80, help="a module")
    parser.add_argument("--seed", type=int, default=0, help="of the first case")
    parser.add_argument("--largest", type=int, default=70, help="size of an axis")
    parser.add_argument("--only", default="", help="cases whose name begins so")
    parser.add_argument("--keep", help="leave each case's files in this folder")
    parser.add_argument("--store", action="store_true", help="write fixtures/ again, without running rapt")
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.store:
        import store
        return 0 if store.write() else 1
    tally, scratch = Tally(), options.keep or tempfile.mkdtemp(prefix="rapt-parity-")
    try:
        for module in draw.MODULES:
            for seed in range(options.seed, options.seed + options.cases):
                name = f"{module.rpartition('.')[2]}-{seed:04}"
                if name.startswith(options.only):
                    one(tally, options.program, seed, module, options.largest,
                        os.path.join(scratch, name if options.keep else "case"))
                if not options.keep:
                    shutil.rmtree(os.path.join(scratch, "case"), ignore_errors=True)
    finally:
        if not options.keep:
            shutil.rmtree(scratch, ignore_errors=True)
    return 0 if tally.report() else 1


if __name__ == "__main__":
    sys.exit(main())
