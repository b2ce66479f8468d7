"""The first 300 pairs of Multi30k, learnt by heart by the preset as it is."""

import unittest

from memorise import Memorise, unless_there


@unittest.skipIf(unless_there(), unless_there())
class ThreeHundredSentences(Memorise):
    def test_at_least_95_percent_come_back_word_for_word(self):
        self.assertGreaterEqual(self.share_given_back(300), 0.95)


if __name__ == "__main__":
    unittest.main()
