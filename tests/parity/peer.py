"""What PyTorch computes for a case, and the rules for what it is known to do otherwise than rapt.

Known differences, by name. A case that meets one is counted under it, and what is expected follows from the rule:

blind-rows        A query that sees no key makes PyTorch's weights, output or gradients NaN. Rule: PyTorch's own module code
                  with a softmax that gives such a row zeros, and zero gradients.
causal-hint       is_causal is not known before 2.0. Later it is refused by PyTorch's modules where it stands alone, is aligned to
                  the first key where lengths differ, hides the keys that add_bias_kv and add_zero_attn append, and takes the
                  gradient from a float mask beside it. Rule: PyTorch gets the mask that the hint means, the last query
                  standing at the last key, and no hint.
detected-hint     Stacks find out by themselves that a float mask is the causal one, and then give it no gradient. Rule: they
                  are told is_causal=False.
empty-masks       PyTorch's modules cannot reshape an empty mask where nobody asks for weights. Rule: they are asked.
copied-layers     (no case) A stack of PyTorch copies one layer; every case loads weights of its own for each layer.
dropped-weights   (no case) Weights that are returned are those before dropout; PyTorch's are those after it.
contradictions    (no case) is_causal beside a mask that says otherwise is an error; PyTorch takes one of the two.
"""
import contextlib
import inspect
import math
import warnings

import torch
import torch.nn as nn
import torch.nn.functional as F

import draw

warnings.filterwarnings("ignore")


class Skip(Exception):
    """This PyTorch lacks something that the case needs."""


class Mismatch(Exception):
    """PyTorch did something that no known difference explains."""


def safe_softmax(scores, dim=-1, **_):
    """Softmax whose rows of minus infinity alone are zeros, and their gradient too."""
    blind = (scores == -math.inf).all(dim, keepdim=True)
    safe_softmax.blind_rows += int(blind.sum()) if scores.shape[dim] else 0
    return torch.softmax(scores.masked_fill(blind, 0.0), dim).masked_fill(blind, 0.0)


def plain_attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
    """scaled_dot_product_attention as its documentation writes it, over safe_softmax."""
    if enable_gqa:
        key, value = (x.repeat_interleave(query.size(-3) // key.size(-3), -3) for x in (key, value))
    scores = query @ key.transpose(-2, -1) * (1 / math.sqrt(query.size(-1)) if scale is None else scale)
    if is_causal:
        scores = scores.masked_fill(draw.causal_hidden(*scores.shape[-2:]), -math.inf)
    if attn_mask is not None:
        scores = scores.masked_fill(~attn_mask, -math.inf) if attn_mask.dtype == torch.bool else scores + attn_mask
    return safe_softmax(scores) @ value


@contextlib.contextmanager
def blind_rows_are_zero():
    names = [name for name in ("softmax", "scaled_dot_product_attention") if hasattr(F, name)]
    kept = {name: getattr(F, name) for name in names}
    safe_softmax.blind_rows = 0
    try:
        F.softmax = safe_softmax
        if "scaled_dot_product_attention" in kept:
            F.scaled_dot_product_attention = plain_attention
        yield
    finally:
        for name, function in kept.items():
            setattr(F, name, function)


NEW = {"bias": True}  # arguments that are younger than 1.13, with their defaults


def accepted(function, arguments):
    """The arguments that the function has; Skip if it lacks one that is not at its default."""
    known = inspect.signature(function).parameters
    for name, value in arguments.items():
        if name not in known and NEW.get(name) != value:
            raise Skip(f"no argument {name}={value} of {function.__name__}")
    return {name: value for name, value in arguments.items() if name in known}


def build(config):
    """The module that config.json describes, parameters as PyTorch initialises them; None for attention alone."""
    options = {name: value for name, value in config.items() if name != "model_type"}
    kind = config["model_type"].rpartition(".")[2]
    if config["model_type"] == draw.ATTENTION:
        return None
    if kind in ("TransformerEncoder", "TransformerDecoder"):
        layer_class = getattr(nn, kind + "Layer")
        stack = {name: options.pop(name) for name in ("num_layers", "enable_nested_tensor", "mask_check") if name in options}
        norm = options.pop("norm", False)
        layer = layer_class(**accepted(layer_class, options))
        if norm:
            bias = accepted(nn.LayerNorm, {"bias": options.get("bias", True)})
            norm = nn.LayerNorm(options["d_model"], eps=options.get("layer_norm_eps", 1e-5), **bias)
        return getattr(nn, kind)(layer, **stack, norm=norm or None)
    module_class = getattr(nn, kind)
    return module_class(**accepted(module_class, options))


def draw_weights(module, numbers):
    """Values of the usual size, none of them special."""
    for name, parameter in module.named_parameters():
        if "norm" in name:
            low, high = (0.7, 1.3) if name.endswith("weight") else (-0.2, 0.2)
        else:
            high = parameter.shape[-1] ** -0.5 if parameter.dim() > 1 else 0.3
            low = -high
        parameter.data = numbers.uniform_tensor(parameter.shape, low, high)


def keep_weights(attention, weights, name):
    """Lets an nn.MultiheadAttention that its layer calls without weights leave those of all heads in weights[name]."""
    def watched(*args, **options):
        output, weights[name] = nn.MultiheadAttention.forward(
            attention, *args, **{**options, "need_weights": True, "average_attn_weights": False})
        return output, None

    attention.forward = watched


def ask_for_weights(module):
    """Lets every nn.MultiheadAttention compute as if its weights were wanted, and not return them."""
    for attention in module.modules():
        if isinstance(attention, nn.MultiheadAttention):
            keep_weights(attention, {}, "")


def watch_attentions(module):
    """{name: weights}, filled when the stack runs."""
    weights = {}
    encoder = module if isinstance(module, nn.TransformerEncoder) else getattr(module, "encoder", None)
    decoder = module if isinstance(module, nn.TransformerDecoder) else getattr(module, "decoder", None)
    for index, layer in enumerate(encoder.layers if encoder is not None else ()):
        keep_weights(layer.self_attn, weights, f"encoder_attentions.{index}")
    for index, layer in enumerate(decoder.layers if decoder is not None else ()):
        keep_weights(layer.self_attn, weights, f"decoder_attentions.{index}")
        keep_weights(layer.multihead_attn, weights, f"cross_attentions.{index}")
    return weights


# The mask that each hint speaks of, and where its number of queries and of keys stands.
HINTS = {
    "torch.nn.MultiheadAttention": {"is_causal": ("attn_mask", "query", "key")},
    "torch.nn.TransformerEncoderLayer": {"is_causal": ("src_mask", "src", "src")},
    "torch.nn.TransformerEncoder": {"is_causal": ("mask", "src", "src")},
    "torch.nn.TransformerDecoderLayer": {"tgt_is_causal": ("tgt_mask", "tgt", "tgt"),
                                         "memory_is_causal": ("memory_mask", "tgt", "memory")},
    "torch.nn.TransformerDecoder": {"tgt_is_causal": ("tgt_mask", "tgt", "tgt"),
                                    "memory_is_causal": ("memory_mask", "tgt", "memory")},
    "torch.nn.Transformer": {"src_is_causal": ("src_mask", "src", "src"), "tgt_is_causal": ("tgt_mask", "tgt", "tgt"),
                             "memory_is_causal": ("memory_mask", "tgt", "src")},
    draw.ATTENTION: {"is_causal": ("attn_mask", "query", "key")},
}


def has_hint(module, hint):
    """Whether this PyTorch's forward takes the hint."""
    if module == draw.ATTENTION:
        return True
    return hint in inspect.signature(getattr(nn, module.rpartition(".")[2]).forward).parameters


def length_of(case, name):
    """The time axis of an input."""
    tensor = case["inputs"][name]
    if case["config"]["model_type"] == draw.ATTENTION:
        return tensor.shape[-2]
    return tensor.shape[1 if tensor.dim() == 3 and case["config"].get("batch_first", False) else 0]


def apply_hint_rules(case, inputs, args):
    """Changes what PyTorch is given by the rules causal-hint and detected-hint; returns the names of those used."""
    used = set()
    module = case["config"]["model_type"]
    for hint, (mask_name, queries, keys) in HINTS[module].items():
        mask = inputs.get(mask_name)
        L, S = length_of(case, queries), length_of(case, keys)
        if args.get(hint):
            simple = not (case["config"].get("add_bias_kv") or case["config"].get("add_zero_attn")) and L == S
            if simple and has_hint(module, hint) and (module == draw.ATTENTION or mask is not None and mask.dtype == torch.bool):
                continue  # PyTorch and rapt mean the same
            args.pop(hint)
            if has_hint(module, hint):
                args[hint] = False  # not None: stacks would look for a causal mask
            if mask is None:
                hidden = draw.causal_hidden(L, S)
                inputs[mask_name] = ~hidden if module == draw.ATTENTION else hidden
            used.add("causal-hint")
        elif module in draw.STACKS and mask is not None and mask.is_floating_point() and hint != "memory_is_causal":
            if has_hint(module, hint) and torch.equal(
                    mask, torch.zeros(L, S, dtype=mask.dtype).masked_fill(draw.causal_hidden(L, S), -math.inf)):
                args[hint] = False
                used.add("detected-hint")
    return used


def refuse_what_is_missing(case, inputs, args):
    """Skips what this PyTorch cannot do, by reason."""
    if case["config"]["model_type"] == draw.ATTENTION:
        if not hasattr(F, "scaled_dot_product_attention"):
            raise Skip("no function scaled_dot_product_attention")
        return
    for hint in HINTS[case["config"]["model_type"]]:
        if hint in args and not has_hint(case["config"]["model_type"], hint):
            args.pop(hint)  # it is False: true ones went as masks
    if not hasattr(F, "_canonical_mask"):
        for mask_name, _, _ in HINTS[case["config"]["model_type"]].values():
            prefix = mask_name.rpartition("_")[0].replace("attn", "")
            padding = "_".join(filter(None, (prefix or "src" * (mask_name == "mask"), "key_padding_mask")))
            if padding in inputs and mask_name in inputs and inputs[padding].is_floating_point():
                raise Skip("before 2.0 a float key padding mask is not added to another mask")


def evaluate(case, module, inputs, args):
    """Runs forward and backward; returns {name: tensor} as rapt names them."""
    module_type = case["config"]["model_type"]
    attentions = args.pop("attentions", False)
    average = module_type in draw.STACKS and args.pop("average_attn_weights", False)
    weights = watch_attentions(module) if attentions else {}
    leaves = {name: tensor for name, tensor in inputs.items()}
    outputs = {}
    if module is None:
        result = F.scaled_dot_product_attention(**leaves, **args)
    else:
        result = module(**leaves, **args)
    outputs["output"] = result[0] if isinstance(result, tuple) else result
    if isinstance(result, tuple) and result[1] is not None:
        outputs["attn_weights"] = result[1]
    loss = sum((outputs[name] * case["d"]["d_" + name]).sum() for name in ("output", "attn_weights") if "d_" + name in case["d"])
    loss.backward()
    outputs.update({name: tensor.mean(-3) if average else tensor for name, tensor in weights.items()})
    outputs = {name: tensor.detach() for name, tensor in outputs.items()}
    for name, tensor in case["inputs"].items():
        if tensor.is_floating_point():
            leaf = leaves[name]
            outputs["d." + name] = torch.zeros_like(leaf) if leaf.grad is None else leaf.grad
    for name, parameter in module.named_parameters() if module is not None else ():
        outputs["grad." + name] = torch.zeros_like(parameter.data) if parameter.grad is None else parameter.grad
    return outputs


def draw_output_gradients(case, outputs):
    """Draws d_output, and d_attn_weights for some cases, once their shapes are known."""
    case["d"] = {"d_output": case["numbers"].uniform_tensor(outputs["output"].shape)}
    if "attn_weights" in outputs and case["numbers"].chance(0.6):
        case["d"]["d_attn_weights"] = case["numbers"].uniform_tensor(outputs["attn_weights"].shape)


def shapes_of(case):
    """The shapes of what is returned, from PyTorch's documentation."""
    config, inputs = case["config"], case["inputs"]
    first = inputs.get("query", inputs.get("tgt", inputs.get("src")))
    if config["model_type"] == draw.ATTENTION:
        return {"output": torch.empty(*first.shape[:-1], inputs["value"].shape[-1])}
    shapes = {"output": first}
    if config["model_type"] == "torch.nn.MultiheadAttention" and case["args"].get("need_weights", True):
        L, S = length_of(case, "query"), length_of(case, "key")
        S += bool(config.get("add_bias_kv")) + bool(config.get("add_zero_attn"))
        batch = [] if first.dim() == 2 else [first.shape[0 if config.get("batch_first") else 1]]
        heads = [] if case["args"].get("average_attn_weights", True) else [config["num_heads"]]
        shapes["attn_weights"] = torch.empty(*batch, *heads, L, S)
    return shapes


def watch_rounding(case, module, limit):
    """A function that says, after a run, whether f32 can know the result: not where rounding decides on which side of a ReLU
    an input falls, as its gradient is then either of two; and not where a norm has one or two channels, as what it divides by
    is then made of rounding (PyTorch's own f32 is 0.09 beside its f64 there)."""
    if module is None or "d_model" not in case["config"]:
        return lambda: False
    nearest = [math.inf]

    def look(_, __, output):
        if output.numel() and case["config"].get("activation", "relu") == "relu":
            nearest[0] = min(nearest[0], output.detach().abs().min().item())

    for name, part in module.named_modules():
        if name.endswith("linear1"):
            part.register_forward_hook(look)
    return lambda: nearest[0] < limit or case["config"]["d_model"] < 3


def expected(case, nearest=1e-6):
    """Completes a case with weights and output gradients and computes what rapt is to give:
    {name: tensor}, the names of the known differences that it met, whether f32 is too coarse for the case."""
    dtype = case["dtype"]
    module = build(case["config"])
    if module is not None:
        draw_weights(module, case["numbers"])
        module.to(dtype).train(case["training"])
        case["weights"] = {name: value.detach().clone() for name, value in module.state_dict().items()}
    else:
        case["weights"] = {}
    draw_output_gradients(case, shapes_of(case))
    case["inputs"] = {name: t.to(dtype) if t.is_floating_point() else t for name, t in case["inputs"].items()}
    case["d"] = {name: t.to(dtype) for name, t in case["d"].items()}
    args = dict(case["args"])
    masked = dict(case["inputs"])
    used = apply_hint_rules(case, masked, args)
    refuse_what_is_missing(case, masked, args)
    too_coarse = watch_rounding(case, module, nearest)

    def run():
        for parameter in module.parameters() if module is not None else ():
            parameter.grad = None
        fresh = {n: t.clone().requires_grad_() if t.is_floating_point() else t for n, t in masked.items()}
        return evaluate(case, module, fresh, dict(args))

    try:
        wanted = run()
    except IndexError as error:
        if hasattr(F, "scaled_dot_product_attention") or all(t.numel() for t in masked.values()):
            raise
        raise Skip("before 2.0 an encoder refuses an empty padding mask") from error
    except RuntimeError as error:
        if "cannot reshape tensor of 0 elements" not in str(error):
            raise
        used.add("empty-masks")
        ask_for_weights(module)
        wanted = run()
    if any(tensor.isnan().any() for tensor in wanted.values()):
        used.add("blind-rows")
        with blind_rows_are_zero():
            wanted = run()
        if safe_softmax.blind_rows == 0 or any(tensor.isnan().any() for tensor in wanted.values()):
            raise Mismatch("NaN without a row that sees nothing")
    return wanted, used, too_coarse()
