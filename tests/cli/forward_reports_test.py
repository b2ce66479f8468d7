"""Faults that others met in attention, each through rapt forward on every official module that can meet it."""

import unittest

import reports
from official import ATTENTION, MODULES, base, mask, narrow, tensor
from program import safetensors_file
from reports import DECODING, E, H, LAYER, LOWEST, MULTIHEAD, SELF, additive, call, rows, sequence, unlike_weights


class Modules(reports.Reports):
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

    def test_R1_a_sample_whose_memory_is_hidden(self):
        for module in DECODING:
            config, both = call(module, [0, 1], 3, trained=[0])
            length = (both.get("memory") or both["src"])[1][1]
            both["memory_key_padding_mask"] = mask([2, length], range(length, 2 * length))
            one = call(module, [0], 3)[1]
            ours, wanted = self.outputs(config, both, "--grad"), self.outputs(config, one, "--grad")
            self.assert_finite(ours)
            self.assert_same(*({n: t for n, t in x.items() if n.startswith("grad.")} for x in (ours, wanted)))

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

    def test_R4_masks_of_transformers_target_and_of_memories(self):
        T = 4
        future = mask([T, T], [T * i + j for i in range(T) for j in range(i + 1, T)])
        for module, mask_name, moved in [("torch.nn.Transformer", "tgt_mask", "tgt")] + [
                (m, "memory_mask", "src" if m == "torch.nn.Transformer" else "memory") for m in DECODING]:
            config, inputs = call(module, [0], T)
            inputs.update({name: sequence([0], T, salt) for salt, name in enumerate(("src", "tgt", "memory")) if name in inputs})
            inputs[mask_name] = future
            if moved == "src":  # which the memory mixes: hidden in the encoder as well
                inputs["src_mask"] = future
            if mask_name == "memory_mask":  # what a query sees reaches later layers through its own row alone
                inputs["tgt_mask"] = future
            inputs["d_output"] = tensor([1, T, E])
            before = rows(self.outputs(config, inputs, "--grad")["output"])
            values = safetensors_file.values(inputs[moved])
            values[-1] += 1
            after = rows(self.outputs(config, {**inputs, moved: tensor([1, T, E], values)}, "--grad")["output"])
            self.assertEqual(before[:T - 1], after[:T - 1], (module, mask_name))
            self.assertNotEqual(before[T - 1], after[T - 1], (module, mask_name))

    def test_R5_stacks_keep_their_masks_causal_when_asked_for_weights(self):
        hints = {"torch.nn.TransformerEncoder": [("is_causal", "encoder_attentions")],
                 "torch.nn.TransformerDecoder": [("tgt_is_causal", "decoder_attentions"), ("memory_is_causal", "cross_attentions")],
                 "torch.nn.Transformer": [("src_is_causal", "encoder_attentions"), ("tgt_is_causal", "decoder_attentions"),
                                          ("memory_is_causal", "cross_attentions")]}
        for module, kinds in hints.items():
            for padding in (None, mask([2, 4], [0, 7])):
                config, inputs = call(module, [0, 1], 4, None, padding)
                causal = {hint: True for hint, _ in kinds}
                plain = self.outputs(config, inputs, "--grad", args=causal)
                asked = self.outputs(config, inputs, "--grad", args={**causal, "attentions": True})
                for name, t in plain.items():
                    self.assertEqual(t, asked[name], name)
                self.assertNotEqual(plain["output"], self.outputs(config, inputs, "--grad")["output"])
                for _, kind in kinds:
                    t = asked[kind + ".0"]
                    L, S = t[1][-2:]
                    for index, row in enumerate(rows(t)):
                        self.assertFalse(any(row[max(0, index % L + S - L + 1):]), (module, kind))

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

    def test_R6_a_memory_is_causal_by_position(self):
        for module in DECODING:
            for T, S in ((3, 5), (5, 3), (1, 4)):
                config, inputs = call(module, [0, 1], T)
                inputs.update({name: sequence([0, 1], size, 5)
                               for name, size in (("tgt", T), ("memory", S), ("src", S)) if name in inputs})
                inputs["d_output"] = tensor([2, T, E])
                later = mask([T, S], [S * i + j for i in range(T) for j in range(S) if j > i + S - T])
                hinted = self.outputs(config, inputs, "--grad", args={"memory_is_causal": True})
                self.assert_finite(hinted)
                self.assert_same(hinted, self.outputs(config, {**inputs, "memory_mask": later}, "--grad"))

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

    def test_R10_the_attentions_of_stacks_and_their_mean(self):
        for module in ("torch.nn.TransformerEncoder", "torch.nn.TransformerDecoder", "torch.nn.Transformer"):
            config, inputs = base(module)
            each, mean = ({name: t for name, t in self.outputs(config, inputs, "--grad", args={
                "attentions": True, "average_attn_weights": average}).items() if "attentions." in name} for average in (False, True))
            self.assertEqual(set(each), set(mean))
            for name, t in each.items():
                batch, heads, L, S = t[1]
                self.assertEqual(mean[name][1], [batch, L, S])
                a = rows(t)
                for row, values in enumerate(rows(mean[name])):
                    sentence, query = divmod(row, L)
                    of_heads = [a[(sentence * heads + h) * L + query] for h in range(heads)]
                    self.assertTrue(all(abs(sum(w) / heads - m) < 1e-15 for *w, m in zip(*of_heads, values)))

    def test_R11_every_layer_of_a_stack_has_weights_of_its_own(self):
        under = lambda weights, prefix: {n[len(prefix):]: t for n, t in weights.items() if n.startswith(prefix)}
        layers, samples = 3, [0, 1]
        for kind in ("Encoder", "Decoder"):
            stack, inputs = call(f"torch.nn.Transformer{kind}", samples, 4)
            stack["num_layers"] = layers
            weights = unlike_weights(stack)
            whole = self.outputs(stack, inputs, "--grad", weights=weights)
            layer, given = call(f"torch.nn.Transformer{kind}Layer", samples, 4)
            name = SELF[layer["model_type"]][1][0]
            for index in range(layers):
                given[name] = self.outputs(layer, given, "--grad", weights=under(weights, f"layers.{index}."))["output"]
            self.assert_same({"output": given[name]}, {"output": whole["output"]})
            for tensor_name in under(weights, "layers.0."):
                gradients = [whole[f"grad.layers.{index}.{tensor_name}"][2] for index in range(layers)]
                self.assertEqual(len(set(gradients)), layers, tensor_name)
        config, inputs = call("torch.nn.Transformer", samples, 4)
        config.update(num_encoder_layers=2, num_decoder_layers=2)
        weights = unlike_weights(config)
        wanted = self.outputs(config, inputs, "--grad", weights=weights)["output"]
        stack = {**LAYER, "num_layers": 2, "norm": True}
        memory = self.outputs({"model_type": "torch.nn.TransformerEncoder", **stack}, {"src": inputs["src"]},
                              weights=under(weights, "encoder."))["output"]
        ours = self.outputs({"model_type": "torch.nn.TransformerDecoder", **stack}, {"tgt": inputs["tgt"], "memory": memory},
                            weights=under(weights, "decoder."))["output"]
        self.assert_same({"output": ours}, {"output": wanted})

    def test_R12_lowest_numbers_as_masks_stay_finite(self):
        T = 3  # the first sample is [pad, pad, token], the second padding alone; masks are added
        causal = additive(mask([T, T], [T * i + j for i in range(T) for j in range(i + 1, T)]), LOWEST)
        padding = additive(mask([2, T], [0, 1, 3, 4, 5]), LOWEST)
        large = lambda t: tensor(t[1], [40 * x - 20 for x in safetensors_file.values(t)])
        for module in SELF:
            config, inputs = call(module, [0, 1], T, causal, padding)
            inputs = {n: narrow(large(t) if n in ("query", "key", "src", "tgt", "memory") else t) for n, t in inputs.items()}
            ours = self.outputs(config, inputs, "--grad")
            self.assert_finite(ours)
            if module == MULTIHEAD:  # only the token sees a key that is not hidden
                self.assertEqual(rows(ours["attn_weights"])[2], [0, 0, 1])


if __name__ == "__main__":
    unittest.main()
