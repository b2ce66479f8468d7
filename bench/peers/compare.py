#!/usr/bin/env python3
"""Rapt beside its peers in one run; prints one JSON line a case.

    bench/peers/compare.py train  --peer DIR/bin/python [--dtype f32|bf16] [--rounds N] [--steps N] CASE...
    bench/peers/compare.py sdpa   --peer DIR/bin/python [--dtype f32|bf16] [--lengths T,T,...]
    bench/peers/compare.py decode --peer DIR/bin/python [--dtype f32|int8] [--beam N] [--batch N]

DIR is what setup.sh made. The two programs take turns, so that a busy machine meets both, and the peer has its best
settings: memory that is kept (jemalloc), huge pages, fused optimizers. `faster` is the median over the rounds of the
ratio of speeds, `range` the least and the largest, `memory` the ratio of peak resident memory.

train starts both from the same weights and batch, without dropout, and stops unless the first three losses agree; then
it times both with dropout. bertpad meets also the peer that batches by length (`faster_than_bucketed`). --out FILE
keeps the lines for plot.py.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
JEMALLOC = "/usr/lib/x86_64-linux-gnu/libjemalloc.so.2"
LOSSES_AGREE = {"f32": 2e-4, "bf16": 2e-2}


class Programs:
    """Both sides; each call gives the JSON lines that were printed."""

    def __init__(self, options):
        self.options = options
        threads = str(options.threads)
        self.environment = dict(os.environ, THREADS=threads, OMP_NUM_THREADS=threads)
        if os.path.exists(JEMALLOC):
            self.environment.update(
                LD_PRELOAD=JEMALLOC,
                MALLOC_CONF="dirty_decay_ms:-1,muzzy_decay_ms:-1,thp:always",
            )
        else:
            print("no jemalloc here: the peer is not at its best", file=sys.stderr)

    def rapt(self, *arguments):
        threads = str(self.options.threads)
        command = [self.options.rapt, "bench", *arguments, "--threads", threads, "--json"]
        return self.lines(command, None)

    def peer(self, script, *arguments):
        command = [self.options.peer, "-W", "ignore", HERE / script, *arguments]
        return self.lines(command, self.environment)

    @staticmethod
    def lines(command, environment):
        command = [str(part) for part in command]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)}: exit code {done.returncode}\n{done.stderr[-2000:]}")
        return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


class Report:
    def __init__(self, options):
        self.dtype, self.out = options.dtype, options.out

    def add(self, case, ours, theirs, **more):
        """`ours` and `theirs`: speeds, one a round."""
        ratios = [a / b for a, b in zip(ours, theirs)]
        line = {
            "case": case,
            "dtype": self.dtype,
            "faster": round(statistics.median(ratios), 2),
            "range": [round(min(ratios), 2), round(max(ratios), 2)],
            **more,
        }
        print(json.dumps(line), flush=True)
        if self.out:
            with open(self.out, "a") as file:
                print(json.dumps(line), file=file)


def memory_ratio(ours, theirs):
    sides = [statistics.median(line["rss_mib"] for line in side) for side in (ours, theirs)]
    return round(sides[0] / sides[1], 2)


def check_losses(case, dtype, ours, theirs):
    worst = max(abs(a - b) / abs(b) for a, b in zip(ours, theirs))
    if worst > LOSSES_AGREE[dtype]:
        sys.exit(f"{case}: the first losses differ: {ours} here, {theirs} there")
    return float(f"{worst:.1e}")


def compare_training(case, options, programs, report):
    dtype, steps = ["--dtype", options.dtype], ["--steps", str(options.steps)]
    with tempfile.TemporaryDirectory() as start:
        same = ["--dropout", "0", *dtype, "--steps"]
        theirs = programs.peer("torch_train.py", case, *same, "1", "--dump", start)[-1]
        ours = programs.rapt(case, *same, "3", "--init", start)[-1]
        difference = check_losses(case, options.dtype, ours["loss"][:3], theirs["loss"][:3])
        ours, theirs, bucketed = [], [], []
        for _ in range(options.rounds):
            ours.append(programs.rapt(case, *dtype, *steps, "--init", start)[-1])
            modes = ["eager", "compile"] if options.mode == "best" else [options.mode]
            runs = [
                programs.peer("torch_train.py", case, *dtype, *steps, "--mode", mode)[-1]
                for mode in modes
            ]
            theirs.append(min(runs, key=lambda line: line["step_ms"]))
            if case == "bertpad":
                bucketed.append(programs.peer("torch_train.py", "bertbucket", *dtype, *steps)[-1])
    more = {
        "memory": memory_ratio(ours, theirs),
        "loss_difference": difference,
        "rapt_ms": statistics.median(line["step_ms"] for line in ours),
        "peer_ms": statistics.median(line["step_ms"] for line in theirs),
    }
    speeds = [[1 / line["step_ms"] for line in side] for side in (ours, theirs, bucketed)]
    if bucketed:
        more["faster_than_bucketed"] = round(
            statistics.median(a / b for a, b in zip(speeds[0], speeds[2])), 2
        )
    report.add(case, speeds[0], speeds[1], **more)


def compare_sdpa(options, programs, report):
    ours, theirs = {}, {}

    def keep(side, lines):
        for line in lines:
            key = (line["T"], line["mask"], line["both"])
            side.setdefault(key, []).append(1 / line["ms"])

    for _ in range(options.rounds):
        keep(ours, programs.rapt("sdpa", "--dtype", options.dtype, "--lengths", options.lengths))
        keep(theirs, programs.peer("torch_sdpa.py", options.dtype, options.lengths))
    for key, speeds in theirs.items():
        length, mask, both = key
        ways = "both ways" if both else "forward"
        report.add(f"sdpa T {length} {mask} {ways}", ours[key], speeds)


def compare_decoding(options, programs, report):
    settings = [str(options.beam), str(options.batch)]
    ours, theirs = [], []
    for _ in range(options.rounds):
        ours += programs.rapt(
            "translate", "--dtype", options.dtype, "--beam", settings[0], "--batch", settings[1]
        )[-1:]
        dtype = {"f32": "float32"}.get(options.dtype, options.dtype)
        theirs += programs.peer("ctranslate2_decode.py", dtype, *settings)[-1:]
    speeds = [[line["tokens_per_s"] for line in side] for side in (ours, theirs)]
    case = f"translate beam {options.beam} batch {options.batch}"
    more = {
        "memory": memory_ratio(ours, theirs),
        "rapt_tokens_per_s": statistics.median(speeds[0]),
        "peer_tokens_per_s": statistics.median(speeds[1]),
    }
    report.add(case, speeds[0], speeds[1], **more)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["train", "sdpa", "decode"])
    parser.add_argument("--rapt", default=HERE.parents[1] / "build" / "rapt")
    parser.add_argument("--peer", required=True, help="the Python that setup.sh made")
    parser.add_argument("--dtype", default="f32", choices=["f32", "bf16", "int8"])
    parser.add_argument("--mode", default="eager", choices=["eager", "compile", "best"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--lengths", default="128,512,2048")
    parser.add_argument("--beam", type=int, default=1)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--out", help="a file that the lines are added to")
    parser.add_argument("cases", nargs="*")
    options = parser.parse_intermixed_args()

    programs, report = Programs(options), Report(options)
    if options.what == "train":
        for case in options.cases or sys.exit("train: name at least one case"):
            compare_training(case, options, programs, report)
    elif options.what == "sdpa":
        compare_sdpa(options, programs, report)
    else:
        compare_decoding(options, programs, report)


if __name__ == "__main__":
    main()
