"""The stored numbers are what their scripts compute with the PyTorch that is here."""

import importlib.util
import unittest


class StoredNumbers(unittest.TestCase):
    @unittest.skipUnless(importlib.util.find_spec("torch"), "no PyTorch")
    def test_are_those_of_the_scripts(self):
        import check

        self.assertEqual(check.main(), 0)


if __name__ == "__main__":
    unittest.main()
