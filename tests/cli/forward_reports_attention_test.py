"""Faults that others met in attention, through rapt forward on attention alone."""

import math
import unittest

import reports
from official import ATTENTION, mask, narrow, tensor
from program import safetensors_file
from reports import E, H, LOWEST, additive, alone, complement, part, rows


class Attention(reports.Reports):
    def test_R1_a_row_that_sees_nothing_gives_zeros_and_leaves_the_other_samples_bits(self):
        keep = mask([2, 1, 4, 4], [16 * n + 4 * i + j for n in (0, 1) for i in range(4) for j in range(4)
                                   if j in (i, i - 1) and not (n == 1 and j >= 2)])  # True: may be seen
        both = {**alone([0, 1], 4, 4), "attn_mask": keep}
        first = part(both, 0, 1)
        silent = tensor([2, H, 4, E], [*safetensors_file.values(first["d_output"]), *[0.0] * (H * 4 * E)])
        ours = self.outputs({"model_type": ATTENTION}, {**both, "d_output": silent}, "--grad")
        self.assert_finite(ours)
        self.assertEqual([rows(ours["output"])[4 * (H + h) + 3] for h in range(H)], [[0] * E] * H)
        wanted = self.outputs({"model_type": ATTENTION}, first, "--grad")
        for name, t in part(ours, 0, 1).items():
            self.assertEqual(t, wanted[name], name)
        for name, t in part(ours, 1, 2).items():
            self.assertTrue(name == "output" or not any(safetensors_file.values(t)), name)

    def test_R2_bool_and_minus_infinity_are_the_same_bits_and_a_large_number_another_thing(self):
        drop = mask([8, 8], [*range(32, 64), 3, 13])
        inputs = alone([0, 1], 8, 8)
        runs = [self.outputs({"model_type": ATTENTION}, {**inputs, "attn_mask": m}, "--grad") for m in (complement(drop), additive(drop))]
        self.assertEqual(runs[0]["output"], runs[1]["output"])
        self.assert_same(runs[0], {n: t for n, t in runs[1].items() if not n.endswith("mask")})
        self.assertFalse(any(safetensors_file.values(runs[1]["d.attn_mask"])[32:]))
        narrowed = {n: narrow(t) for n, t in {**inputs, "attn_mask": additive(drop, -1e9)}.items()}
        out, values = (rows(t) for t in (self.outputs({"model_type": ATTENTION}, narrowed, "--grad")["output"], narrowed["value"]))
        for group in range(2 * H):
            mean = [sum(column) / 8 for column in zip(*values[8 * group:8 * group + 8])]
            for row in out[8 * group + 4:8 * group + 8]:
                self.assertTrue(all(abs(x - y) < 1e-6 for x, y in zip(row, mean)))
            self.assertEqual(rows(runs[0]["output"])[8 * group + 4:8 * group + 8], [[0] * E] * 4)

    def test_R3_lengths_with_an_empty_one_and_axes_of_none(self):
        lengths = [5, 3, 1, 0]
        keep = mask([4, 1, 1, 5], [5 * b + t for b in range(4) for t in range(lengths[b])])
        inputs = alone([0, 1, 2, 3], 2, 5)
        together = self.outputs({"model_type": ATTENTION}, {**inputs, "attn_mask": keep}, "--grad")
        self.assert_finite(together)
        self.assertFalse(any(safetensors_file.values(part(together, 3, 4)["output"])))
        for b in range(3):
            one = part(inputs, b, b + 1)
            for name in ("key", "value"):
                values = [row for h in range(H) for row in rows(one[name])[5 * h:5 * h + lengths[b]]]
                one[name] = tensor([1, H, lengths[b], E], [x for row in values for x in row])
            self.assert_same({"output": self.outputs({"model_type": ATTENTION}, one, "--grad")["output"]},
                             {"output": part(together, b, b + 1)["output"]})
        for samples, L, S in (([], 2, 5), ([0, 1], 0, 5), ([0, 1], 2, 0), ([], 0, 0)):
            empty = self.outputs({"model_type": ATTENTION}, alone(samples, L, S), "--grad")
            self.assertEqual(empty["output"][1], [len(samples), H, L, E])
            self.assertFalse(any(any(safetensors_file.values(t)) for t in empty.values()))

    def test_R8_the_columns_of_a_value_do_not_mix(self):
        whole = alone([0, 1], 3, 4, key_width=5, value_width=7)
        ours = self.outputs({"model_type": ATTENTION}, whole, "--grad")
        for columns in (slice(0, 2), slice(2, 7)):
            cut = lambda t: tensor([*t[1][:3], len(rows(t)[0][columns])], [x for row in rows(t) for x in row[columns]])
            halves = self.outputs({"model_type": ATTENTION},
                                  {n: cut(t) if n in ("value", "d_output") else t for n, t in whole.items()}, "--grad")
            self.assert_same({n: halves[n] for n in ("output", "d.value")}, {n: cut(ours[n]) for n in ("output", "d.value")})

    def test_R9_no_heads_or_channels_are_refused(self):
        for args in ({}, {"enable_gqa": True}):
            for heads, width in ((0, E), (H, 0), (0, 0)):
                inputs = {name: tensor([2, heads, 3, width]) for name in ("query", "key", "value", "d_output")}
                self.assert_refused(self.run_on({"model_type": ATTENTION}, inputs, "--grad", args=args), 5, "query", "expected",
                                    f"got (2, {heads}, 3, {width})")

    def test_R12_lowest_numbers_as_masks_stay_finite(self):
        T = 3  # the first sample is [pad, pad, token], the second padding alone, both causal
        hidden = [[j > i or n == 1 or j < 2 for j in range(T)] for n in (0, 1) for i in range(T)]
        both = tensor([2, 1, T, T], [LOWEST if bit else 0.0 for row in hidden for bit in row])
        inputs = {**alone([0, 1], T, T), "attn_mask": both}
        for score in (1, 1e37):  # far below zero a score takes the lowest number to minus infinity
            for name, sign in (("query", -1), ("key", 1)):
                inputs[name] = tensor([2, H, T, E], [sign * math.sqrt(score)] * (2 * H * T * E))
            narrowed = {n: narrow(t) for n, t in inputs.items()}
            ours = self.outputs({"model_type": ATTENTION}, narrowed, "--grad")
            self.assert_finite(ours)
            for h in range(H):
                self.assertEqual(rows(ours["output"])[T * h + 2], rows(narrowed["value"])[T * h + 2])


if __name__ == "__main__":
    unittest.main()
