"""rapt forward with the official modules: PyTorch's stored numbers, and what it says of what does not fit."""

import json
import unittest

import official
from official import ATTENTION, MODULES, E, H, N, S, T, base, mask, tensor
from program import rapt, safetensors_file

MULTIHEAD, ENCODER = "torch.nn.MultiheadAttention", "torch.nn.TransformerEncoder"
STACKS = (ENCODER, "torch.nn.TransformerDecoder", "torch.nn.Transformer")


class Numbers(official.Forward):
    def test_the_stored_cases_are_pytorchs(self):
        for case in json.loads((official.FIXTURES / "cases.json").read_text()):
            with self.subTest(case["name"]):
                stored = safetensors_file.read(official.FIXTURES / (case["name"] + ".safetensors"))
                part = lambda prefix: {name[len(prefix):]: official.wide(t) for name, t in stored.items() if name.startswith(prefix)}
                ours = self.outputs(case["config"], part("in."), "--grad", *(["--train", "1"] if case["train"] else []),
                                    args=case["args"], weights=part("model."))
                wanted = part("out.")
                self.assertEqual(set(ours), set(wanted))
                for name, tensor_ in wanted.items():
                    self.assertEqual(ours[name][:2], tensor_[:2], name)
                    pairs = zip(safetensors_file.values(ours[name]), safetensors_file.values(tensor_))
                    self.assertLessEqual(max((abs(a - b) / max(1, abs(b)) for a, b in pairs), default=0), 1e-10, name)

    def test_float_inputs_decide_the_type(self):
        for module in MODULES:
            config, inputs = base(module)
            self.assertEqual({t[0] for t in self.outputs(config, inputs, "--grad").values()}, {"F64"})
            ours = self.outputs(config, {name: official.narrow(t) for name, t in inputs.items()}, "--grad")
            self.assertEqual({t[0] for t in ours.values()}, {"F32"})

    def test_outputs_are_those_that_were_asked_for(self):
        for module in MODULES:
            config, inputs = base(module)
            weights = {"attn_weights"} if module == MULTIHEAD else set()
            gradients = {"d." + name for name, t in inputs.items() if t[0] == "F64" and not name.startswith("d_")}
            gradients |= {"grad." + name for name in official.parameters(config)}
            self.assertEqual(set(self.outputs(config, inputs, "--grad")), {"output"} | weights | gradients)
            alone = {name: t for name, t in inputs.items() if not name.startswith("d_")}
            self.assertEqual(set(self.outputs(config, alone)), {"output"} | weights)
        config, inputs = base(MULTIHEAD)
        alone = {name: t for name, t in inputs.items() if not name.startswith("d_")}
        self.assertEqual(set(self.outputs(config, alone, args={"need_weights": False})), {"output"})

    def test_stacks_give_the_attentions_of_all_three_kinds(self):
        shapes = {"encoder_attentions": [N, H, S, S], "decoder_attentions": [N, H, T, T], "cross_attentions": [N, H, T, S]}
        kinds = {ENCODER: {"encoder_attentions": 2}, "torch.nn.TransformerDecoder": {"decoder_attentions": 1, "cross_attentions": 1},
                 "torch.nn.Transformer": {"encoder_attentions": 1, "decoder_attentions": 1, "cross_attentions": 1}}
        for module in STACKS:
            config, inputs = base(module)
            for average in (False, True):
                ours = self.outputs(config, inputs, "--grad", args={"attentions": True, "average_attn_weights": average})
                wanted = {f"{kind}.{layer}": [n for n in shapes[kind] if not (average and n == H)]
                          for kind, count in kinds[module].items() for layer in range(count)}
                self.assertEqual({name: t[1] for name, t in ours.items() if "attentions." in name}, wanted)
            plain = self.outputs(config, inputs, "--grad")
            self.assertEqual(plain, {name: t for name, t in ours.items() if "attentions." not in name})

    def test_R5_weights_asked_for_or_not_the_causal_output_is_the_same(self):
        config, inputs = base(MULTIHEAD)
        for padded in (True, False):
            given = {name: t for name, t in inputs.items()
                     if name not in ("attn_mask", "d_attn_weights") and (padded or name != "key_padding_mask")}
            results = [self.outputs(config, given, "--grad", args={"is_causal": True, "need_weights": need})
                       for need in (True, False)]
            weights = safetensors_file.values(results[0].pop("attn_weights"))
            self.assertEqual(results[0], results[1])
            for row in range(N * T):
                later = weights[row * S + row % T + S - T + 1:(row + 1) * S]
                self.assertFalse(any(later))

    def test_dropout_acts_with_train_and_by_its_seed_and_weights_are_those_before_it(self):
        for module in MODULES:
            config, inputs = base(module)
            args = {"dropout_p": 0.5} if module == ATTENTION else {}
            if module != ATTENTION:
                config["dropout"] = 0.5
            runs = [self.outputs(config, inputs, "--grad", *flags, args=args)
                    for flags in ([], ["--train", "1"], ["--train", "1"], ["--train", "2"])]
            self.assertEqual(runs[1], runs[2])
            self.assertNotEqual(runs[1]["output"], runs[3]["output"])
            self.assertNotEqual(runs[0]["output"], runs[1]["output"])
            if module == MULTIHEAD:
                self.assertEqual(runs[0]["attn_weights"], runs[1]["attn_weights"])

    def test_what_changes_only_how_pytorch_computes_changes_nothing(self):
        config, inputs = base(ENCODER)
        plain = self.outputs(config, inputs, "--grad")
        for names in ({"enable_nested_tensor": False}, {"mask_check": False}, {"enable_nested_tensor": True, "mask_check": True}):
            self.assertEqual(self.outputs({**config, **names}, inputs, "--grad"), plain)

    def test_R3_empty_inputs_give_empty_outputs_of_the_right_shape(self):
        for batch, length in ((0, S), (N, 0), (0, 0)):
            config, _ = base(ENCODER)
            inputs = {"src": tensor([length, batch, E]), "d_output": tensor([length, batch, E])}
            ours = self.outputs(config, inputs, "--grad", args={"attentions": True})
            self.assertEqual(ours["output"][1], [length, batch, E])
            self.assertEqual(ours["encoder_attentions.1"][1], [batch, H, length, length])
            self.assertFalse(any(any(safetensors_file.values(t)) for name, t in ours.items() if name.startswith("grad.")))

    def test_R43_threads_change_no_bit(self):
        for module in MODULES:
            config, inputs = base(module)
            inputs = {name: official.narrow(t) for name, t in inputs.items()}
            results = []
            for threads in (1, 2, 5):
                self.outputs(config, inputs, "--grad", "--threads", threads)
                results.append(self.out.read_bytes())
            self.assertEqual(len(set(results)), 1)


class BadConfig(official.Forward):
    """Each is 4 with one line, and nothing is written."""

    def refused(self, module, changes, *words):
        config, inputs = base(module)
        config.update(changes)
        with self.subTest(module=module, changes=changes):
            weights = {name: tensor(shape) for name, shape in official.parameters(base(module)[0]).items()}
            self.assert_refused(self.run_on(config, inputs, "--grad", weights=weights), 4, "config.json", *words)

    def test_R9_sizes_below_one_and_of_other_types(self):
        for module in MODULES[:-1]:
            config, _ = base(module)
            for name in ("embed_dim", "num_heads", "kdim", "vdim", "d_model", "nhead", "dim_feedforward"):
                if name in config:
                    for value in (0, "6") if module != ENCODER else (0, -1, 2.5, "6", 2**63, True, []):
                        self.refused(module, {name: value}, name, "expected an integer", "got")
            for name in ("num_layers", "num_encoder_layers", "num_decoder_layers"):
                if name in config:
                    for value in (-1, "2"):
                        self.refused(module, {name: value}, name, "expected an integer", "got")

    def test_R9_heads_that_do_not_divide(self):
        self.refused(MULTIHEAD, {"num_heads": 4}, "num_heads", "embed_dim", "expected", "got")
        for module in MODULES[1:-1]:
            self.refused(module, {"nhead": 4}, "nhead", "d_model", "expected", "got")
            self.refused(module, {"nhead": 12}, "nhead", "d_model", "expected", "got")

    def test_numbers_flags_and_names(self):
        flags = {"bias", "add_bias_kv", "add_zero_attn", "batch_first"}
        for name in flags:
            for value in (1, "true"):
                self.refused(MULTIHEAD, {name: value}, name, "true or false", "got")
        for value in (-0.1, 1, "0.1"):
            self.refused(MULTIHEAD, {"dropout": value}, "dropout", "expected", "got")
        for module in MODULES[1:-1]:
            for name in ("bias", "batch_first", "norm_first"):
                self.refused(module, {name: 1}, name, "true or false", "got")
            for value in (-0.1, 1, "0.1"):
                self.refused(module, {"dropout": value}, "dropout", "expected", "got")
            for value in (0, -1e-5, "1e-5"):
                self.refused(module, {"layer_norm_eps": value}, "layer_norm_eps", "expected", "got")
            for value in ("tanh", 1, True):
                self.refused(module, {"activation": value}, "activation", "expected one of relu, gelu", "got")
        for module in STACKS[:2]:
            self.refused(module, {"norm": "LayerNorm"}, "norm", "true or false", "got")
        self.refused(ENCODER, {"enable_nested_tensor": 1}, "enable_nested_tensor", "true or false", "got")
        self.refused(ENCODER, {"mask_check": "no"}, "mask_check", "true or false", "got")
        for name in ("custom_encoder", "custom_decoder"):
            self.refused("torch.nn.Transformer", {name: {}}, name, "null", "got")

    def test_unknown_and_misspelt_keys_name_the_nearest(self):
        for module in MODULES:
            self.refused(module, {"nhaed": 2}, "nhaed", *(["nhead"] if "nhead" in base(module)[0] else []))
        self.refused(MULTIHEAD, {"add_bias_kw": True}, "add_bias_kw", "did you mean add_bias_kv?")
        self.refused("torch.nn.TransformerDecoder", {"mask_check": True}, "mask_check")

    def test_a_missing_size_and_another_module(self):
        for module in MODULES[:-1]:
            name = "embed_dim" if module == MULTIHEAD else "d_model"
            config, inputs = base(module)
            weights = {n: tensor(shape) for n, shape in official.parameters(config).items()}
            del config[name]
            words = ("d_model",) if module != "torch.nn.Transformer" else ("parameters",)  # 512 is its default
            self.assert_refused(self.run_on(config, inputs, "--grad", weights=weights), 4,
                                *(words if module != MULTIHEAD else ("embed_dim",)), "expected")
        for kind in ("torch.nn.LSTM", "torch.nn.transformer", "MultiheadAttention", 5):
            config, inputs = base(MULTIHEAD)
            self.assert_refused(self.run_on({**config, "model_type": kind}, inputs, "--grad", weights={}), 4, "model_type")

    def test_a_configuration_that_claims_more_than_the_file_has_takes_no_memory(self):
        config, inputs = base(ENCODER)
        self.assert_refused(self.run_on({**config, "d_model": 2**20, "nhead": 1}, inputs,
                                        weights={"layers.0.linear1.weight": tensor([5, 6])}), 4, "parameters")


class BadWeights(official.Forward):
    def weights(self, module):
        config, inputs = base(module)
        return config, inputs, {name: tensor(shape) for name, shape in official.parameters(config).items()}

    def test_every_tensor_that_is_missing_or_of_another_shape_is_named(self):
        for module in MODULES[:-1]:
            config, inputs, weights = self.weights(module)
            spare = {"spare": tensor([500])}  # so that the file has elements enough
            for turn, (name, (_, shape, _)) in enumerate(weights.items()):
                with self.subTest(module=module, name=name):
                    if turn % 2:
                        left = {n: t for n, t in weights.items() if n != name}
                        self.assert_refused(self.run_on(config, inputs, "--grad", weights={**left, **spare}), 4, name, "expected")
                    else:
                        changed = {**weights, name: tensor([shape[0] + 1, *shape[1:]])}
                        self.assert_refused(self.run_on(config, inputs, "--grad", weights=changed), 4, name, "expected shape", "got")

    def test_tensors_without_a_place_and_of_other_types(self):
        for module in MODULES[:-1]:
            config, inputs, weights = self.weights(module)
            self.assert_refused(self.run_on(config, inputs, "--grad", weights={**weights, "extra": tensor([2])}), 4, "extra")
            first = next(iter(weights))
            changed = {**weights, first: tensor(weights[first][1], dtype="I64")}
            self.assert_refused(self.run_on(config, inputs, "--grad", weights=changed), 4, first, "I64")
        config, inputs = base(ATTENTION)
        self.assert_refused(self.run_on(config, inputs, "--grad", weights={"extra": tensor([2])}), 4, "extra")

    def test_a_folder_without_weights(self):
        for module in MODULES[:-1]:
            config, inputs, _ = self.weights(module)
            self.assert_refused(self.run_on(config, inputs, "--grad", weights={}), 4, "model.safetensors")


class BadInputs(official.Forward):
    """Each is 5 with one line that names the argument, and nothing is written."""

    def refused(self, module, changes, *words, args=None, config=None):
        given, inputs = base(module)
        inputs.update(changes)
        inputs = {name: t for name, t in inputs.items() if t is not None}
        with self.subTest(module=module, changes={name: t and t[:2] for name, t in changes.items()}):
            self.assert_refused(self.run_on({**given, **(config or {})}, inputs, "--grad", args=args), 5, *words)

    def activations(self, module):
        return [name for name, t in base(module)[1].items() if t[0] == "F64" and not name.startswith("d_")]

    def masks(self, module):
        return [name for name, t in base(module)[1].items() if t[0] == "BOOL"]

    def test_missing_inputs(self):
        for module in MODULES:
            for name in [*self.activations(module), "d_output"]:
                self.refused(module, {name: None}, name, "expected", "got none")

    def test_unknown_and_misspelt_inputs_name_the_nearest(self):
        for module in MODULES:
            for name in [*self.activations(module), *self.masks(module)]:
                self.refused(module, {name: None, name + "s": base(module)[1][name]}, name + "s",
                             *([f"did you mean {name}?"] if len(name) > 3 else []))

    def test_activations_of_another_rank_width_or_type(self):
        for module in MODULES[:-1]:
            for name in self.activations(module):
                shape = base(module)[1][name][1]
                for wrong in (shape[:1], [*shape[:2], shape[2] + 1]):
                    self.refused(module, {name: tensor(wrong)}, name, "expected", "got")
                self.refused(module, {name: tensor(shape, [1] * (shape[0] * shape[1] * shape[2]), "I64")}, name, "expected", "got")
                self.refused(module, {name: mask(shape)}, name, "expected", "got")
                self.refused(module, {name: official.narrow(base(module)[1][name])}, "one type")

    def test_batches_and_lengths_that_differ(self):
        self.refused(MULTIHEAD, {"key": tensor([S, N + 1, 7]), "value": tensor([S, N + 1, 8])}, "key", "expected", "got")
        self.refused(MULTIHEAD, {"value": tensor([S + 1, N, 8])}, "value", "expected", "got")
        self.refused(MULTIHEAD, {"value": tensor([S, N + 1, 8])}, "value", "expected", "got")
        self.refused(MULTIHEAD, {"query": tensor([T, E])}, "key", "expected", "got")  # the others have a batch
        for module in ("torch.nn.TransformerDecoderLayer", "torch.nn.TransformerDecoder"):
            self.refused(module, {"memory": tensor([S, N + 1, E])}, "memory", "expected", "got")
            self.refused(module, {"memory": tensor([S, E])}, "memory", "expected", "got")
        self.refused("torch.nn.Transformer", {"tgt": tensor([T, N + 1, E])}, "tgt", "expected", "got")
        self.refused("torch.nn.Transformer", {"tgt": tensor([T, E])}, "tgt", "expected", "got")

    def test_masks_of_another_size_rank_or_type(self):
        for module in MODULES[:-1]:
            for name in self.masks(module):
                shape = base(module)[1][name][1]
                wrong = [mask([shape[0] + 1, shape[1]]), tensor([shape[0], shape[1] + 1]), mask([shape[1] + 7])]
                if not name.endswith("key_padding_mask"):
                    wrong += [tensor([N * H - 1, *shape]), mask([N, *shape])]
                for bad in wrong:
                    self.refused(module, {name: bad}, name, "expected", "got")
                self.refused(module, {name: tensor(shape, [1] * (shape[0] * shape[1]), "I64")}, name, "expected", "got")
                self.refused(module, {name: tensor(shape, dtype="F32")}, "one type")

    def test_a_mask_that_contradicts_is_causal(self):
        hints = {MULTIHEAD: [("is_causal", "attn_mask")], MODULES[1]: [("is_causal", "src_mask")], ENCODER: [("is_causal", "mask")],
                 "torch.nn.Transformer": [("src_is_causal", "src_mask"), ("tgt_is_causal", "tgt_mask"),
                                          ("memory_is_causal", "memory_mask")]}
        for module in ("torch.nn.TransformerDecoderLayer", "torch.nn.TransformerDecoder"):
            hints[module] = [("tgt_is_causal", "tgt_mask"), ("memory_is_causal", "memory_mask")]
        for module, pairs in hints.items():
            for hint, name in pairs:
                self.refused(module, {}, hint, name, args={hint: True})

    def test_R5_attention_alone_takes_a_mask_or_its_hint(self):
        self.refused(ATTENTION, {}, "is_causal", "without attn_mask", args={"is_causal": True})

    def test_a_dropout_of_everything(self):
        self.refused(ATTENTION, {}, "dropout_p", "expected", "got 1", args={"dropout_p": 1})

    def test_gradients_of_outputs(self):
        for module in MODULES:
            shape = base(module)[1]["d_output"][1]
            for wrong in (shape[:-1], [*shape, 1], [*shape[:-1], shape[-1] + 1]):
                self.refused(module, {"d_output": tensor(wrong)}, "d_output", "expected", "got")
            self.refused(module, {"d_output": tensor(shape, dtype="I64")}, "d_output", "expected", "got")
        self.refused(MULTIHEAD, {"d_attn_weights": tensor([N, H, T, S])}, "d_attn_weights", "expected", "got")
        self.refused(MULTIHEAD, {}, "d_attn_weights", args={"need_weights": False})
        self.refused(ENCODER, {"d_attn_weights": tensor([N, S, S])}, "d_attn_weights")
        config, inputs = base(ENCODER)
        self.assert_refused(self.run_on(config, inputs), 5, "d_output")  # nobody asked for gradients

    def test_attention_alone(self):
        heads = lambda size, width: tensor([N, size, S, width])
        for changes, name in (({"query": tensor([E])}, "query"), ({"key": heads(H, E + 1)}, "key"), ({"key": heads(H + 1, E)}, "key"),
                              ({"value": tensor([N, H, S + 1, 7])}, "value"), ({"value": heads(H + 1, 7)}, "value"),
                              ({"key": tensor([H, S, E])}, "key"), ({"key": tensor([N + 1, H, S, E])}, "key"),
                              ({"query": mask([N, H, T, E])}, "query"), ({"key": mask([N, H, S, E])}, "key"),
                              ({"value": mask([N, H, S, 7])}, "value"),
                              ({"attn_mask": mask([T, S + 1])}, "attn_mask"), ({"attn_mask": mask([T + 1, S])}, "attn_mask"),
                              ({"attn_mask": mask([1, N, H, T, S])}, "attn_mask"), ({"attn_mask": tensor([N + 1, 1, T, S])}, "attn_mask"),
                              ({"attn_mask": tensor([T, S], dtype="I64")}, "attn_mask")):
            self.refused(ATTENTION, changes, name, "expected", "got")
        grouped = {"query": tensor([N, 4, T, E]), "d_output": tensor([N, 4, T, 7]), "attn_mask": None}
        self.refused(ATTENTION, {**grouped, "key": heads(3, E), "value": heads(3, 7)}, "key", "expected", "got",
                     args={"enable_gqa": True})
        self.refused(ATTENTION, {**grouped, "key": heads(2, E), "value": heads(2, 7)}, "key", "expected", "got")
        self.refused(ATTENTION, {**grouped, "key": heads(0, E), "value": heads(0, 7)}, "key", args={"enable_gqa": True})  # R9


class BadArguments(official.Forward):
    """Each is 2 with one line, and nothing is written."""

    def refused(self, module, args, *words):
        with self.subTest(module=module, args=args):
            config, inputs = base(module)
            self.assert_refused(self.run_on(config, inputs, "--grad", args=args), 2, "--args", *words)

    def test_flags_of_other_types(self):
        names = {MULTIHEAD: ("need_weights", "average_attn_weights", "is_causal"), MODULES[1]: ("is_causal",),
                 ATTENTION: ("is_causal", "enable_gqa"), "torch.nn.TransformerDecoderLayer": ("tgt_is_causal", "memory_is_causal"),
                 ENCODER: ("is_causal", "attentions", "average_attn_weights"),
                 "torch.nn.TransformerDecoder": ("tgt_is_causal", "memory_is_causal", "attentions", "average_attn_weights"),
                 "torch.nn.Transformer": ("src_is_causal", "tgt_is_causal", "memory_is_causal", "attentions", "average_attn_weights")}
        for module, flags in names.items():
            for name in flags:
                for value in (1, "true"):
                    self.refused(module, {name: value}, name, "expected true or false", "got")
        for value in (-0.1, 1.5, "0"):
            self.refused(ATTENTION, {"dropout_p": value}, "dropout_p", "expected a number", "got")
        self.refused(ATTENTION, {"scale": "1"}, "scale", "expected a number", "got")

    def test_unknown_and_misspelt_arguments(self):
        for module in MODULES:
            self.refused(module, {"unheard_of": True}, "unheard_of", "known are")
        self.refused(MULTIHEAD, {"need_weight": True}, "did you mean need_weights?")
        self.refused(MULTIHEAD, {"attentions": True}, "attentions")
        self.refused(MULTIHEAD, {"attn_mask": True}, "attn_mask")  # a tensor's place is the file

    def test_a_failed_call_leaves_the_old_output(self):
        config, inputs = base(ENCODER)
        self.outputs(config, inputs, "--grad")
        before = self.out.read_bytes()
        for flags in (["--args", '{"is_causal": 1}'], ["--args", '{"is_causal": true}'], []):
            result = rapt("forward", self.folder / "module", "--in", self.folder / "in.safetensors", "--out", self.out, *flags)
            self.assertNotEqual(result.code, 0)
            self.assertEqual(self.out.read_bytes(), before)
        self.assertEqual({p.name for p in self.folder.iterdir()}, {"module", "in.safetensors", "out.safetensors"})


if __name__ == "__main__":
    unittest.main()
