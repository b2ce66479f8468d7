"""The stored cases are what the PyTorch at hand computes, and a few new ones agree with it."""

import importlib.util
import os
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))


@unittest.skipUnless(importlib.util.find_spec("torch"), "no PyTorch")
class Parity(unittest.TestCase):
    def test_stored_cases_are_those_of_pytorch(self):
        sys.path[:0] = [HERE, os.path.join(HERE, "..", "golden")]
        import store

        entries, differ, skipped = store.check()
        self.assertEqual(differ, [])
        self.assertGreater(len(entries) - len(skipped), 15)  # an old PyTorch lacks arguments

    def test_new_cases_agree(self):
        done = subprocess.run([sys.executable, "-B", os.path.join(HERE, "sweep.py"), "--program", os.environ["RAPT_PROGRAM"],
                               "--cases", "6", "--seed", "5000", "--largest", "24"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
