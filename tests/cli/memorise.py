"""Real sentences learnt by heart: the first lines of Multi30k, English to German, words as tokens."""

import gzip
import itertools
import os
import pathlib

from program import TestCase, rapt

MULTI30K = pathlib.Path(os.environ.get("RAPT_DATA_DIR", "")) / "multi30k"


def unless_there():
    """The reason to skip, or ""."""
    if "RAPT_DATA_DIR" not in os.environ:
        return "real data: RAPT_DATA_DIR is not set"
    return "" if (MULTI30K / "train.en.gz").exists() else f"real data: no train.en.gz in {MULTI30K}"


class Memorise(TestCase):
    def lines(self, language, count):
        with gzip.open(MULTI30K / f"train.{language}.gz", "rt", encoding="utf-8", newline="\n") as file:
            return list(itertools.islice(file, count))

    def share_given_back(self, pairs, *flags):
        """Trains on so many pairs; the share of their translations that come back word for word."""
        english, german = self.lines("en", pairs), self.lines("de", pairs)
        trained = rapt("train", "--source", self.file("en", "".join(english)), "--target",
                       self.file("de", "".join(german)), "--out", self.folder / "model", *flags, timeout=3000)
        self.assertEqual(trained.code, 0, trained)
        translated = rapt("translate", self.folder / "model", stdin="".join(english), timeout=3000)
        self.assertEqual((translated.code, len(translated.lines)), (0, pairs), translated.err)
        return sum(" ".join(filter(None, want.rstrip("\n").split(" "))) == got for want, got in zip(german, translated.lines)) / pairs
