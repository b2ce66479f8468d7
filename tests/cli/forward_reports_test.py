"""Faults that others met in attention, each through rapt forward on every official module that can meet it."""

import math
import unittest

import official
from official import ATTENTION, MODULES, base, mask, narrow, tensor
from program import safetensors_file

MULTIHEAD = "torch.nn.MultiheadAttention"
E, H = 4, 2
LAYER = {"d_model": E, "nhead": H, "dim_feedforward": 5, "dropout": 0.0, "batch_first": True}
# How each module attends to itself: its configuration, the inputs that hold the sequence, its mask and its padding mask.
SELF = {
    MULTIHEAD: ({"embed_dim": E, "num_heads": H, "batch_first": True}, ("query", "key", "value"), "attn_mask", "key_padding_mask"),
    "torch.nn.TransformerEncoderLayer": (LAYER, ("src",), "src_mask", "src_key_padding_mask"),
    "torch.nn.TransformerEncoder": ({**LAYER, "num_layers": 2}, ("src",), "mask", "src_key_padding_mask"),
    "torch.nn.TransformerDecoderLayer": (LAYER, ("tgt",), "tgt_mask", "tgt_key_padding_mask"),
    "torch.nn.TransformerDecoder": ({**LAYER, "num_layers": 2}, ("tgt",), "tgt_mask", "tgt_key_padding_mask"),
    "torch.nn.Transformer": ({**LAYER, "num_encoder_layers": 1, "num_decoder_layers": 1}, ("src",), "src_mask", "src_key_padding_mask"),
}
INF = float("inf")


def sequence(samples, T, salt=0, width=E):
    """(B, T, width): what a sample holds does not depend on the others."""
    return tensor([len(samples), T, width], [math.sin(1 + salt + 7 * b + 3 * t + 1.7 * e)
                                             for b in samples for t in range(T) for e in range(width)])


def rows(tensor_):
    """The last axis's rows, flat over the others."""
    values, width = safetensors_file.values(tensor_), tensor_[1][-1]
    return [list(values[i:i + width]) for i in range(0, len(values), width)] if width else []


def call(module, samples, T, drop=None, padding=None, salt=0, trained=None):
    """(config, inputs) of self-attention over `samples`, with d_output for those of `trained` alone (all)."""
    config, names, mask_name, padding_name = SELF[module]
    inputs = {name: sequence(samples, T, salt) for name in names}
    if "memory" in base(module)[1]:
        inputs["memory"] = sequence(samples, 3, 11)
    if module == "torch.nn.Transformer":
        inputs["tgt"] = sequence(samples, 2, 12)
    if drop is not None:
        inputs[mask_name] = drop
    if padding is not None:
        inputs[padding_name] = padding
    if padding is not None and module == "torch.nn.Transformer":
        inputs["memory_key_padding_mask"] = padding
    out_length = 2 if module == "torch.nn.Transformer" else T
    inputs["d_output"] = tensor([len(samples), out_length, E], [
        math.cos(b + 2 * t + e) if trained is None or b in trained else 0.0
        for b in samples for t in range(out_length) for e in range(E)])
    return {"model_type": module, **config}, inputs


def additive(drop, hidden=-INF):
    """A bool mask as one that is added."""
    return tensor(drop[1], [hidden if bit else 0.0 for bit in drop[2]])


class Reports(official.Forward):
    def assert_finite(self, outputs):
        for name, t in outputs.items():
            self.assertTrue(all(map(math.isfinite, safetensors_file.values(t))), name)

    def assert_same(self, ours, theirs, tolerance=1e-12):
        largest = max((abs(v) for t in theirs.values() for v in safetensors_file.values(t)), default=0)
        self.assertEqual(set(ours), set(theirs))
        for name, t in theirs.items():
            self.assert_alike(ours[name], t, tolerance, max(1, largest))

    def test_R1_a_sample_whose_row_sees_nothing_leaves_the_gradients_of_the_others(self):
        band = additive(mask([4, 4], [4 * i + j for i in range(4) for j in range(4) if j not in (i, i - 1)]))
        for module in SELF:
            both = self.outputs(*call(module, [0, 1], 4, band, mask([2, 4], [6, 7]), trained=[0]), "--grad")
            alone = self.outputs(*call(module, [0], 4, band, mask([1, 4])), "--grad")
            self.assert_finite(both)
            self.assert_same(*({n: t for n, t in x.items() if n.startswith("grad.")} for x in (both, alone)))
        one = {"model_type": MULTIHEAD, "embed_dim": 1, "num_heads": 1, "batch_first": True}
        x = sequence([0, 1], 4, width=1)
        both = self.outputs(one, {"query": x, "key": x, "value": x, "attn_mask": band, "key_padding_mask": mask([2, 4], [6, 7]),
                                  "d_output": tensor([2, 4, 1], [1, 2, 3, 4, 0, 0, 0, 0])}, "--grad")
        self.assert_finite(both)
        self.assertEqual(rows(both["attn_weights"])[7], [0, 0, 0, 0])
        bias = safetensors_file.values(safetensors_file.read(self.folder / "module" / "model.safetensors")["out_proj.bias"])
        self.assertEqual(rows(both["output"])[7], list(bias))

    def test_R2_bool_and_minus_infinity_are_the_same_bits_and_large_numbers_another_thing(self):
        drop = mask([8, 8], range(32, 64))
        for module in SELF:
            runs = [self.outputs(*call(module, [0, 1], 8, m), "--grad") for m in (drop, additive(drop))]
            for name in ("output", "attn_weights"):
                self.assertEqual(runs[0].get(name), runs[1].get(name), f"{module} {name}")
            self.assert_finite(runs[0])
            self.assert_same(runs[0], {n: t for n, t in runs[1].items() if not n.endswith("mask")})  # it has a gradient too
        weights = []
        for m in (drop, additive(drop), additive(drop, -1e9)):
            config, inputs = call(MULTIHEAD, [0], 8, m)
            weights.append(rows(self.outputs(config, {n: narrow(t) for n, t in inputs.items()}, "--grad")["attn_weights"]))
        self.assertEqual(weights[0], weights[1])
        for row in range(4, 8):
            self.assertEqual(weights[0][row], [0] * 8)
            self.assertEqual(weights[2][row], [1 / 8] * 8)

    def test_R3_lengths_with_an_empty_one_and_batches_of_none(self):
        lengths = [5, 3, 1, 0]
        for module in SELF:
            padding = mask([4, 5], [5 * b + t for b in range(4) for t in range(lengths[b], 5)])
            together = self.outputs(*call(module, [0, 1, 2, 3], 5, None, padding), "--grad")
            self.assert_finite(together)
            out = rows(together["output"])
            per_sample = len(out) // 4
            for b in range(3):
                alone = self.outputs(*call(module, [b], lengths[b]), "--grad")
                ours, theirs = out[b * per_sample:(b + 1) * per_sample], rows(alone["output"])
                for mine, wanted in zip(ours, theirs):
                    self.assertTrue(all(abs(x - y) < 1e-12 for x, y in zip(mine, wanted)))
            for samples, T in (([], 5), ([0, 1], 0), ([], 0)):
                empty = self.outputs(*call(module, samples, T), "--grad")
                self.assertEqual(empty["output"][1][::2], [len(samples), E])
                self.assert_finite(empty)

    def test_R4_one_upper_triangle_hides_the_future_in_every_module_and_its_complement_in_attention_alone(self):
        T = 5
        future = mask([T, T], [T * i + j for i in range(T) for j in range(i + 1, T)])
        for module in list(SELF)[:-1]:  # Transformer's source is seen through its memory alone
            config, inputs = call(module, [0], T, future)
            before = rows(self.outputs(config, inputs, "--grad")["output"])
            for name in SELF[module][1]:
                values = safetensors_file.values(inputs[name])
                for e in range(E):
                    values[3 * E + e] += 1
                inputs[name] = tensor([1, T, E], values)
            after = rows(self.outputs(config, inputs, "--grad")["output"])
            self.assertEqual(before[:3], after[:3], module)
            self.assertNotEqual(before[3], after[3])
        x = {name: sequence([0], T, salt) for salt, name in enumerate(("query", "key", "value"))}
        keep = mask([T, T], [T * i + j for i in range(T) for j in range(i + 1)])
        kept = self.outputs({"model_type": ATTENTION}, {**x, "attn_mask": keep})
        self.assertEqual(kept, self.outputs({"model_type": ATTENTION}, {**x, "attn_mask": additive(future)}))
        self.assert_same(kept, self.outputs({"model_type": ATTENTION}, x, args={"is_causal": True}))

    def test_R6_causal_rows_are_the_last_ones_of_the_whole_computation(self):
        whole_q, k, v = (sequence([0, 1], 8, salt) for salt in (1, 2, 3))
        for module, config, args in ((MULTIHEAD, SELF[MULTIHEAD][0], {"is_causal": True, "average_attn_weights": False}),
                                     (ATTENTION, {}, {"is_causal": True})):
            config = {"model_type": module, **config}
            whole = rows(self.outputs(config, {"query": whole_q, "key": k, "value": v}, args=args)["output"])
            for L in (1, 3):
                last = tensor([2, L, E], [x for b in range(2) for row in rows(whole_q)[8 * b + 8 - L:8 * b + 8] for x in row])
                ours = rows(self.outputs(config, {"query": last, "key": k, "value": v}, args=args)["output"])
                wanted = [row for b in range(2) for row in whole[8 * b + 8 - L:8 * b + 8]]
                for mine, theirs in zip(ours, wanted, strict=True):
                    self.assertTrue(all(abs(x - y) < 1e-12 for x, y in zip(mine, theirs)))
            five, two = sequence([0], 5, 4), sequence([0], 2, 5)
            ours = self.outputs(config, {"query": five, "key": two, "value": two}, args=args)
            blind = rows(ours["output"])[:3]
            self.assertEqual(blind, [blind[0]] * 3)  # the bias of the output projection
            if module == ATTENTION:
                self.assertEqual(blind[0], [0] * E)
            else:
                self.assertEqual(rows(ours["attn_weights"])[:3], [[0, 0]] * 3)

    def test_R7_every_way_of_running_gives_the_same(self):
        for module in MODULES:
            config, inputs = base(module)
            config["dropout"] = 0.0
            if module == ATTENTION:
                del config["dropout"]
            inputs = {n: narrow(t) for n, t in inputs.items()}
            bare = {n: t for n, t in inputs.items() if not n.startswith("d_")}
            reference = {"output": self.outputs(config, inputs, "--grad")["output"]}
            ways = [(bare, []), (bare, ["--train", "1"]), (inputs, ["--grad", "--train", "1"])]
            ways += [(bare, ["--isa", isa]) for isa in ("scalar", "sse4", "avx2", "avx512")]
            if module == MULTIHEAD:
                ways.append((bare, ["--args", '{"need_weights": false}']))
            for given, flags in ways:
                result = self.run_on(config, given, *flags)
                if result.code == 2 and "--isa" in flags:
                    continue  # this CPU lacks it
                self.assertEqual(result.code, 0, result)
                self.assert_same({"output": safetensors_file.read(self.out)["output"]}, reference, 2e-6)

    def test_R8_keys_and_values_of_other_widths(self):
        for heads in (1, 3):
            for kdim in (24, 10):
                config = {"model_type": MULTIHEAD, "embed_dim": 24, "num_heads": heads, "kdim": kdim, "vdim": 12}
                inputs = {"query": tensor([10, 5, 24]), "key": tensor([10, 5, kdim]), "value": tensor([10, 5, 12]),
                          "d_output": tensor([10, 5, 24])}
                ours = self.outputs(config, inputs, "--grad")
                self.assertEqual(ours["output"][1], [10, 5, 24])
                self.assertEqual((ours["d.key"][1], ours["d.value"][1]), ([10, 5, kdim], [10, 5, 12]))
                self.assert_finite(ours)

    def test_R10_weights_of_each_head_and_their_mean(self):
        for batch, batch_first in ((3, True), (3, False), (None, True), (None, False)):
            config = {"model_type": MULTIHEAD, "embed_dim": E, "num_heads": H, "batch_first": batch_first}
            shape = lambda T: [T, E] if batch is None else [batch, T, E] if batch_first else [T, batch, E]
            inputs = {"query": tensor(shape(4)), "key": tensor(shape(5)), "value": tensor(shape(5))}
            each, mean = (self.outputs(config, inputs, args={"average_attn_weights": average})["attn_weights"]
                          for average in (False, True))
            first = [] if batch is None else [batch]
            self.assertEqual((each[1], mean[1]), ([*first, H, 4, 5], [*first, 4, 5]))
            a, b = rows(each), rows(mean)
            for row, values in enumerate(b):
                sentence, query = divmod(row, 4)
                heads = [a[(sentence * H + h) * 4 + query] for h in range(H)]
                self.assertTrue(all(abs(sum(w) / H - m) < 1e-15 for *w, m in zip(*heads, values)))


if __name__ == "__main__":
    unittest.main()
