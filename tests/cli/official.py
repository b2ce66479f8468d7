"""Folders and inputs of the official modules, made without PyTorch, and running them."""

import json
import random
import struct

from program import SOURCE, TestCase, rapt, safetensors_file

FIXTURES = SOURCE / "tests" / "parity" / "fixtures"
ATTENTION = "rapt.scaled_dot_product_attention"


def tensor(shape, values=None, dtype="F64"):
    """(dtype, shape, bytes): the values, or any that follow from the shape."""
    count = 1
    for size in shape:
        count *= size
    if values is None:
        numbers = random.Random(str(shape))
        values = [numbers.uniform(-1, 1) for _ in range(count)]
    code = safetensors_file.CODES[dtype]
    return dtype, list(shape), struct.pack(f"<{count}{code}", *(values if code in "df" else map(int, values)))


def mask(shape, hidden=()):
    """A bool mask that hides the elements at these places."""
    count = 1
    for size in shape:
        count *= size
    return "BOOL", list(shape), bytes(index in hidden for index in range(count))


def attention_parameters(prefix, width, kdim=None, vdim=None, bias=True, add_bias_kv=False):
    if kdim in (None, width) and vdim in (None, width):
        yield prefix + "in_proj_weight", [3 * width, width]
    else:
        for name, size in (("q", width), ("k", kdim or width), ("v", vdim or width)):
            yield f"{prefix}{name}_proj_weight", [width, size]
    if bias:
        yield prefix + "in_proj_bias", [3 * width]
        yield prefix + "out_proj.bias", [width]
    if add_bias_kv:
        yield prefix + "bias_k", [1, 1, width]
        yield prefix + "bias_v", [1, 1, width]
    yield prefix + "out_proj.weight", [width, width]


def layer_parameters(prefix, config, attentions):
    width, hidden, bias = config["d_model"], config["dim_feedforward"], config.get("bias", True)
    for name in attentions:
        yield from attention_parameters(f"{prefix}{name}.", width, bias=bias)
    norms = [(f"norm{index + 1}", [width], [width]) for index in range(len(attentions) + 1)]
    for name, weight, bias_shape in [("linear1", [hidden, width], [hidden]), ("linear2", [width, hidden], [width]), *norms]:
        yield f"{prefix}{name}.weight", weight
        if bias:
            yield f"{prefix}{name}.bias", bias_shape


def stack_parameters(prefix, config, attentions, layers, norm):
    for index in range(layers):
        yield from layer_parameters(f"{prefix}layers.{index}.", config, attentions)
    if norm:
        yield prefix + "norm.weight", [config["d_model"]]
        if config.get("bias", True):
            yield prefix + "norm.bias", [config["d_model"]]


ENCODER, DECODER = ("self_attn",), ("self_attn", "multihead_attn")


def parameters(config):
    """The names and shapes of the official state_dict."""
    kind = config["model_type"].rpartition(".")[2]
    if kind == "MultiheadAttention":
        return dict(attention_parameters("", config["embed_dim"], config.get("kdim"), config.get("vdim"),
                                         config.get("bias", True), config.get("add_bias_kv", False)))
    if kind == "Transformer":
        return {**dict(stack_parameters("encoder.", config, ENCODER, config["num_encoder_layers"], True)),
                **dict(stack_parameters("decoder.", config, DECODER, config["num_decoder_layers"], True))}
    attentions = DECODER if "Decoder" in kind else ENCODER
    if kind.endswith("Layer"):
        return dict(layer_parameters("", config, attentions))
    if config["model_type"] == ATTENTION:
        return {}
    return dict(stack_parameters("", config, attentions, config["num_layers"], config.get("norm", False)))


def write_folder(folder, config, weights=None):
    """A folder with the module; `weights` replace those that the configuration has."""
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    weights = {name: tensor(shape) for name, shape in parameters(config).items()} if weights is None else weights
    (folder / "model.safetensors").unlink(missing_ok=True)
    if weights:
        safetensors_file.write(folder / "model.safetensors", weights)
    return folder


LAYER = {"d_model": 6, "nhead": 2, "dim_feedforward": 5, "dropout": 0.0}
N, H, S, T, E = 3, 2, 4, 5, 6  # batch, heads, source and target length, width
# One configuration of each module, with every tensor that its forward takes.
BASE = {
    "torch.nn.MultiheadAttention": (
        {"embed_dim": E, "num_heads": H, "kdim": 7, "vdim": 8},
        {"query": tensor([T, N, E]), "key": tensor([S, N, 7]), "value": tensor([S, N, 8]),
         "attn_mask": mask([T, S], [0, 5]), "key_padding_mask": mask([N, S], [3]), "d_output": tensor([T, N, E]),
         "d_attn_weights": tensor([N, T, S])}),
    "torch.nn.TransformerEncoderLayer": (
        LAYER, {"src": tensor([S, N, E]), "src_mask": mask([S, S], [1]), "src_key_padding_mask": mask([N, S], [3]),
                "d_output": tensor([S, N, E])}),
    "torch.nn.TransformerEncoder": (
        {**LAYER, "num_layers": 2, "norm": True},
        {"src": tensor([S, N, E]), "mask": mask([S, S], [1]), "src_key_padding_mask": mask([N, S], [3]),
         "d_output": tensor([S, N, E])}),
    "torch.nn.TransformerDecoderLayer": (
        LAYER, {"tgt": tensor([T, N, E]), "memory": tensor([S, N, E]), "tgt_mask": mask([T, T], [1]),
                "memory_mask": mask([T, S], [2]), "tgt_key_padding_mask": mask([N, T], [4]),
                "memory_key_padding_mask": mask([N, S], [3]), "d_output": tensor([T, N, E])}),
    "torch.nn.TransformerDecoder": (
        {**LAYER, "num_layers": 1},
        {"tgt": tensor([T, N, E]), "memory": tensor([S, N, E]), "tgt_mask": mask([T, T], [1]),
         "memory_mask": mask([T, S], [2]), "tgt_key_padding_mask": mask([N, T], [4]),
         "memory_key_padding_mask": mask([N, S], [3]), "d_output": tensor([T, N, E])}),
    "torch.nn.Transformer": (
        {**LAYER, "num_encoder_layers": 1, "num_decoder_layers": 1},
        {"src": tensor([S, N, E]), "tgt": tensor([T, N, E]), "src_mask": mask([S, S], [1]), "tgt_mask": mask([T, T], [1]),
         "memory_mask": mask([T, S], [2]), "src_key_padding_mask": mask([N, S], [3]),
         "tgt_key_padding_mask": mask([N, T], [4]), "memory_key_padding_mask": mask([N, S], [3]),
         "d_output": tensor([T, N, E])}),
    ATTENTION: ({}, {"query": tensor([N, H, T, E]), "key": tensor([N, H, S, E]), "value": tensor([N, H, S, 7]),
                     "attn_mask": mask([T, S], range(20)), "d_output": tensor([N, H, T, 7])}),
}
MODULES = list(BASE)


def base(module):
    """(config, inputs) of a module."""
    config, inputs = BASE[module]
    return {"model_type": module, **config}, dict(inputs)


def wide(tensor_):
    """F32 as F64; other types as they are."""
    if tensor_[0] != "F32":
        return tensor_
    values = safetensors_file.values(tensor_)
    return "F64", tensor_[1], struct.pack(f"<{len(values)}d", *values)


def narrow(tensor_):
    if tensor_[0] != "F64":
        return tensor_
    values = safetensors_file.values(tensor_)
    return "F32", tensor_[1], struct.pack(f"<{len(values)}f", *values)


class Forward(TestCase):
    """Tests that run `rapt forward` on a module."""

    def setUp(self):
        super().setUp()
        self.out = self.folder / "out.safetensors"

    def run_on(self, config, inputs, *flags, args=None, weights=None):
        folder = write_folder(self.folder / "module", config, weights)
        safetensors_file.write(self.folder / "in.safetensors", inputs)
        self.out.unlink(missing_ok=True)
        flags = [*flags, *(["--args", json.dumps(args)] if args is not None else [])]
        return rapt("forward", folder, "--in", self.folder / "in.safetensors", "--out", self.out, *flags)

    def outputs(self, *given, **how):
        result = self.run_on(*given, **how)
        self.assertEqual((result.code, result.out, result.err), (0, "", ""))
        return safetensors_file.read(self.out)

    def assert_refused(self, result, code, *words):
        self.assert_fails(result, code, *words)
        self.assertFalse(self.out.exists())
