"""The long form of the kill test: RAPT_SOAK_KILLS kills (default 1,000), at least three in ten of them inside a save,
and the same run at the end. Prints how many there were."""

import os
import random
import subprocess
import time
import unittest

from program import CLEAN, PROGRAM, SOURCE_TEXT, TARGET_TEXT, TINY, TestCase, rapt, snapshot

KILLS = int(os.environ.get("RAPT_SOAK_KILLS", "1000"))
INSIDE = KILLS * 3 // 10


def is_saving(process, out):
    """Whether a temporary file or folder of this process stands in the run's folder."""
    mark = f".{process.pid}-"
    for _, folders, files in os.walk(out):
        if any(mark in name and name.endswith(".tmp") for name in folders + files):
            return True
    return False


def wait_for_save(process, out, seconds):
    """Returns in the middle of a save, or when the process ends or the time is over."""
    end = time.monotonic() + seconds
    while process.poll() is None and time.monotonic() < end and not is_saving(process, out):
        pass


class Soak(TestCase):
    def test_R61_kills_at_random_times_lose_nothing(self):
        source, target = self.file("s", SOURCE_TEXT * 10), self.file("t", TARGET_TEXT * 10)
        flags = ["train", "--source", source, "--target", target, *TINY, "--batch-tokens", "16", "--save-every", "4",
                 "--keep-last", "2", "--average", "2", "--ema", "0.9", "--epochs", "4", "--valid-source", source,
                 "--valid-target", target, "--quiet"]
        self.assertEqual(rapt(*flags, "--out", self.folder / "whole").code, 0)
        whole = snapshot(self.folder / "whole")
        times, kills, inside, runs = random.Random(61), 0, 0, 0
        while kills < KILLS or inside < INSIDE:
            runs += 1
            out = self.folder / "run"
            subprocess.run(["rm", "-rf", out], check=True)
            for turn in range(10_000):
                running = subprocess.Popen([PROGRAM, *map(str, flags), "--out", out, "--resume"], env=CLEAN,
                                           stderr=subprocess.PIPE)
                try:
                    if turn % 2 == 1:
                        wait_for_save(running, out, 0.2 + turn * 0.0005)
                    err = running.communicate(
                        timeout=times.uniform(0, 0.002) if turn % 2 == 1
                        else times.uniform(0.005, 0.15) + turn * 0.0005)[1]
                    break
                except subprocess.TimeoutExpired:
                    running.kill()
                    running.communicate()
                    kills += 1
                    inside += is_saving(running, out)
            self.assertEqual((running.returncode, err), (0, b""))  # a lost checkpoint would be a warning
            self.assertTrue(snapshot(out) == whole, f"after {kills} kills")
        print(f"{kills} kills in {runs} runs, {inside} of them inside a save; none lost a checkpoint", flush=True)


if __name__ == "__main__":
    unittest.main()
