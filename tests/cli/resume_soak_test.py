"""The long form of the kill test: RAPT_SOAK_KILLS kills at random times (default 1,000) and the same run at the
end. Prints how many there were."""

import os
import random
import subprocess
import unittest

from program import CLEAN, PROGRAM, SOURCE_TEXT, TARGET_TEXT, TINY, TestCase, rapt, snapshot

KILLS = int(os.environ.get("RAPT_SOAK_KILLS", "1000"))


class Soak(TestCase):
    def test_R61_kills_at_random_times_lose_nothing(self):
        source, target = self.file("s", SOURCE_TEXT * 10), self.file("t", TARGET_TEXT * 10)
        flags = ["train", "--source", source, "--target", target, *TINY, "--batch-tokens", "16", "--save-every", "4",
                 "--keep-last", "2", "--average", "2", "--ema", "0.9", "--epochs", "4", "--valid-source", source,
                 "--valid-target", target, "--quiet"]
        self.assertEqual(rapt(*flags, "--out", self.folder / "whole").code, 0)
        whole = snapshot(self.folder / "whole")
        times, kills, runs = random.Random(61), 0, 0
        while kills < KILLS:
            runs += 1
            out = self.folder / "run"
            subprocess.run(["rm", "-rf", out], check=True)
            for turn in range(10_000):
                running = subprocess.Popen([PROGRAM, *map(str, flags), "--out", out, "--resume"], env=CLEAN,
                                           stderr=subprocess.PIPE)
                try:
                    err = running.communicate(timeout=times.uniform(0.005, 0.15) + turn * 0.0005)[1]
                    break
                except subprocess.TimeoutExpired:
                    running.kill()
                    running.communicate()
                    kills += 1
            self.assertEqual((running.returncode, err), (0, b""))  # a lost checkpoint would be a warning
            self.assertTrue(snapshot(out) == whole, f"after {kills} kills")
        print(f"{kills} kills in {runs} runs, none lost a checkpoint", flush=True)


if __name__ == "__main__":
    unittest.main()
