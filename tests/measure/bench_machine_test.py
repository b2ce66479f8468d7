"""`rapt bench machine` from outside."""

import json
import os
import subprocess
import unittest

RAPT = os.environ["RAPT_PROGRAM"]
TYPES = ["f32_gops", "bf16_gops", "amx_bf16_gops", "int8_gops", "amx_int8_gops"]
RATES = ["read_gb_per_s", "copy_gb_per_s", "update_gb_per_s", "touch_4k_gb_per_s"]
OPTIONAL = ["touch_huge_gb_per_s"]  # where the system gives huge pages


def bench(*arguments):
    done = subprocess.run([RAPT, "bench", *arguments], capture_output=True, text=True, timeout=300)
    return done.returncode, done.stdout, done.stderr


class BenchMachine(unittest.TestCase):
    def report(self, *arguments):
        code, out, err = bench("machine", "--json", *arguments)
        self.assertEqual((code, err), (0, ""))
        self.assertEqual(out.count("\n"), 1)
        report = json.loads(out)
        self.assertEqual(list(report), ["case", "cpu", "isa", "measured"])
        self.assertEqual(report["case"], "machine")
        for measured in report["measured"]:
            self.assertGreater(measured["threads"], 0)
            for key, value in measured.items():
                self.assertGreater(value, 0, key)
                self.assertLessEqual(len(str(float(value)).partition(".")[2]), 2, key)
        return report

    def types(self, report):
        """The keys of the peaks, the same for any number of threads."""
        keys = [[key for key in m if key not in OPTIONAL] for m in report["measured"]]
        for one in keys:
            self.assertEqual(one, keys[0])
            self.assertEqual(one[0], "threads")
            self.assertEqual(one[-len(RATES):], RATES)
        return keys[0][1:-len(RATES)]

    def test_json_has_every_figure_for_one_thread_and_all(self):
        report = self.report("--threads", "2")
        self.assertEqual([m["threads"] for m in report["measured"]], [1, 2])
        types = {"amx": TYPES, "avx512_bf16": ["f32_gops", "bf16_gops", "int8_gops"]}
        self.assertEqual(self.types(report), types.get(report["isa"], ["f32_gops"]))

    def test_a_lower_instruction_set_leaves_types_out(self):
        report = self.report("--isa", "scalar", "--threads", "1")
        self.assertEqual(report["isa"], "scalar")
        self.assertEqual(self.types(report), ["f32_gops"])
        self.assertEqual(len(report["measured"]), 1)

    def test_without_json_it_is_a_table(self):
        code, out, err = bench("machine", "--threads", "2", "--isa", "scalar")
        self.assertEqual((code, err), (0, ""))
        for name in ["scalar", "multiply-add f32", "memory read", "memory copy", "memory update",
                     "first touch of 4 KiB pages"]:
            self.assertIn(name, out)
        rows = [line for line in out.splitlines() if "op/s" in line or "B/s" in line]
        for row in rows:
            self.assertRegex(row, r" [GM](op|B)/s +\d+\.\d +\d+\.\d$")
        self.assertNotIn("bf16", out)

    def test_an_unknown_case_is_wrong_usage_and_the_cases_are_listed(self):
        code, out, err = bench("machin")
        self.assertEqual((code, out), (2, ""))
        for part in ["machine, sdpa, translate, toy, small, base", '"machin"', "did you mean machine?"]:
            self.assertIn(part, err)

    def test_flags_of_training_cases_are_none_of_the_machine(self):
        for flag, value in [("--steps", "3"), ("--dropout", "0.1"), ("--dtype", "f32"), ("--init", "x")]:
            code, out, err = bench("machine", flag, value)
            self.assertEqual((code, out), (2, ""))
            self.assertIn(flag, err)

    def test_no_memory_for_it_is_7(self):
        code, out, err = bench("machine", "--max-memory", "64M")
        self.assertEqual((code, out), (7, ""))
        self.assertIn("memory", err)

    def test_numbers_of_a_training_case_have_few_decimals(self):
        code, out, err = bench("toy", "--steps", "1", "--json")
        self.assertEqual(code, 0, err)
        line = json.loads(out)
        decimals = {"step_ms": 2, "min": 2, "max": 2, "tokens_per_s": 1, "fraction_of_peak": 4}
        for key, most in decimals.items():
            self.assertLessEqual(len(str(line[key]).partition(".")[2]), most, key)
        for key in ["threads", "flops_per_s", "rss_mib"]:
            self.assertIsInstance(line[key], int)


if __name__ == "__main__":
    unittest.main()
