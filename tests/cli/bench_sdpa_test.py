"""`rapt bench sdpa` from outside: its lines, and that memory grows with T, not with its square."""

import json
import os
import subprocess
import unittest

RAPT = os.environ["RAPT_PROGRAM"]
KEYS = ["case", "T", "dtype", "mask", "both", "threads", "ms", "step_ms", "min", "max",
        "tokens_per_s", "flops_per_s", "fraction_of_peak", "rss_mib"]


def bench(*arguments):
    done = subprocess.run([RAPT, "bench", "sdpa", *arguments], capture_output=True, text=True,
                          timeout=300)
    return done.returncode, done.stdout, done.stderr


class BenchSdpa(unittest.TestCase):
    def lines(self, *arguments):
        code, out, err = bench(*arguments)
        self.assertEqual((code, err), (0, ""))
        return [json.loads(line) for line in out.splitlines()]

    def test_prints_a_line_a_setting(self):
        lines = self.lines("--lengths", "5,16", "--steps", "3", "--threads", "2", "--json")
        self.assertEqual([(d["T"], d["mask"], d["both"]) for d in lines],
                         [(T, mask, both) for T in (5, 16)
                          for mask in ("full", "causal", "lengths", "dropout")
                          for both in (False, True)])
        for d in lines:
            self.assertEqual(list(d), KEYS)
            self.assertEqual((d["case"], d["dtype"], d["threads"]), ("sdpa", "f32", 2))
            self.assertEqual(d["ms"], d["step_ms"])
            self.assertLessEqual(d["min"], d["ms"])
            self.assertLessEqual(d["ms"], d["max"])
            for key in ("tokens_per_s", "flops_per_s", "rss_mib"):
                self.assertGreater(d[key], 0, key)

    def test_memory_grows_with_the_length_not_with_its_square(self):
        short, long = (self.lines("--lengths", str(T), "--steps", "1")[-1]["rss_mib"]
                       for T in (256, 1024))
        # Of T 1024 a tensor takes 8 MiB, and all scores of it 128 MiB.
        self.assertLess(long - short, 110)

    def test_wrong_flags_are_usage_errors(self):
        for arguments, word in ((["--lengths", "0"], "--lengths"), (["--lengths", "8,x"], "--lengths"),
                                (["--dropout", "0.1"], "--dropout"), (["--init", "x"], "--init"),
                                (["--dtype", "int8"], "--dtype")):
            code, out, err = bench(*arguments)
            self.assertEqual((code, out), (2, ""), arguments)
            self.assertIn(word, err)


if __name__ == "__main__":
    unittest.main()
