"""What the tests of reports share: sequences, masks, and the official modules as they attend to themselves."""

import math

import official
from official import base, tensor
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
LOWEST = -3.4028234663852886e38  # of f32
# What attends to a memory too.
DECODING = ("torch.nn.TransformerDecoderLayer", "torch.nn.TransformerDecoder", "torch.nn.Transformer")


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


def alone(samples, L, S, salt=0, key_width=E, value_width=E):
    """Inputs of attention alone, (N, H, L or S, width), with d_output."""
    def heads(T, width, salt):
        flat = sequence([H * b + h for b in samples for h in range(H)], T, salt, width)
        return flat[0], [len(samples), H, T, width], flat[2]
    return {"query": heads(L, key_width, salt), "key": heads(S, key_width, salt + 1), "value": heads(S, value_width, salt + 2),
            "d_output": heads(L, value_width, salt + 3)}


def unlike_weights(config):
    """A module's parameters, no two of them alike."""
    return {name: ("F64", shape, sequence([index], math.prod(shape), width=1)[2])
            for index, (name, shape) in enumerate(official.parameters(config).items())}


def complement(drop):
    """What may be seen, of what is hidden."""
    return drop[0], drop[1], bytes(not bit for bit in drop[2])


def part(inputs, begin, end):
    """The samples from `begin` to `end` of inputs whose first axis is the batch."""
    def cut(t):
        size = len(t[2]) // t[1][0]
        return t[0], [end - begin, *t[1][1:]], t[2][begin * size:end * size]
    return {name: cut(t) for name, t in inputs.items()}


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
