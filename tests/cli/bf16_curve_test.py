"""Training in bf16 on real sentences: the loss falls as it does in f32."""

import gzip
import itertools
import json
import unittest

from memorise import MULTI30K, unless_there
from program import TestCase, rapt

STEPS = 500
SHAPE = ["--d-model", "64", "--nhead", "4", "--dim-feedforward", "128", "--layers", "2", "--min-count", "3",
         "--batch-tokens", "1000", "--epochs", "14"]


@unittest.skipIf(unless_there(), unless_there())
class Curve(TestCase):
    def losses(self, dtype):
        """The mean loss of each epoch."""
        text = {}
        for language in ("en", "de"):
            with gzip.open(MULTI30K / f"train.{language}.gz", "rt", encoding="utf-8", newline="\n") as file:
                text[language] = self.file(language, "".join(itertools.islice(file, 1500)))
        result = rapt("train", "--source", text["en"], "--target", text["de"], "--out", self.folder / "model", "--restart",
                      "--dtype", dtype, "--log-format", "json", *SHAPE, timeout=900)
        self.assertEqual(result.code, 0, result)
        reports = [json.loads(line) for line in result.err.splitlines()]
        ends = [report for report in reports if report.get("batch") is not None and report["batch"] == report["batches"]]
        self.assertGreaterEqual(ends[-1]["step"], STEPS)
        return [report["loss"] for report in ends]

    def test_stays_within_a_hundredth_of_f32(self):
        f32, bf16 = self.losses("f32"), self.losses("bf16")
        self.assertEqual(len(f32), len(bf16))
        self.assertLess(f32[-1], 0.75 * f32[0])
        self.assertNotEqual(f32, bf16)
        for epoch, (want, got) in enumerate(zip(f32, bf16)):
            self.assertLess(abs(got - want), 0.01 * want, f"epoch {epoch}: {got} for {want}")


if __name__ == "__main__":
    unittest.main()
