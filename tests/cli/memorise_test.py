"""A few real sentences learnt by heart by a small model; memorise_soak_test.py does it in full."""

import unittest

from memorise import Memorise, unless_there


@unittest.skipIf(unless_there(), unless_there())
class FewSentences(Memorise):
    def test_come_back_word_for_word(self):
        share = self.share_given_back(40, "--d-model", "128", "--dim-feedforward", "256", "--layers", "2")
        self.assertGreaterEqual(share, 0.95)


if __name__ == "__main__":
    unittest.main()
