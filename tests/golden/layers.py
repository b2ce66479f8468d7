"""Single functions and layers in f64: inputs, results and gradients as PyTorch computes them.

    python3 layers.py    stored beside this script

Names are CASE.TENSOR. For a result y of x, d_y is the gradient that comes in and d_x the one that goes out; options that a
case needs are tensors of one number. README.md lists the files.
"""
import math
import os

import torch
import torch.nn.functional as F
from torch import nn

import tensors

HERE = os.path.dirname(os.path.abspath(__file__))
INF = math.inf


def scalar(value):
    return torch.tensor([value], dtype=torch.int64 if isinstance(value, int) else torch.float64)


def differentiate(inputs, function, numbers):
    """Inputs, y = function(**inputs), a drawn d_y, and d_NAME for every float input."""
    leaves = {name: value.clone().requires_grad_(value.is_floating_point()) for name, value in inputs.items()}
    y = function(**leaves)
    d_y = numbers.uniform(*y.shape)
    y.backward(d_y)
    grads = {"d_" + name: leaf.grad for name, leaf in leaves.items() if leaf.grad is not None}
    return {**inputs, "y": y.detach(), "d_y": d_y, **grads}


def flat(cases):
    return {f"{case}.{name}": value for case, content in cases.items() for name, value in content.items()}


def functions():
    """Elementwise functions and those of rows; x (rows, cols)."""
    numbers = tensors.Numbers(1)
    x = numbers.uniform(5, 13, low=-4, high=4)
    x[0, :4] = torch.tensor([0.0, -0.0, 12.0, -12.0])
    cases = {
        "relu": (dict(x=x.clone().masked_fill(x == 0, 0.5)), lambda x: F.relu(x)),
        "gelu": (dict(x=x), F.gelu),
        "gelu_tanh": (dict(x=x), lambda x: F.gelu(x, approximate="tanh")),
        "softmax": (dict(x=x), lambda x: x.softmax(-1)),
        "log_softmax": (dict(x=x), lambda x: x.log_softmax(-1)),
        "layer_norm": (dict(x=x, weight=numbers.uniform(13), bias=numbers.uniform(13)),
                       lambda x, weight, bias: F.layer_norm(x, (13,), weight, bias, 1e-5)),
        "layer_norm_large_epsilon": (dict(x=1e-3 * x, weight=numbers.uniform(13), bias=numbers.uniform(13)),
                                     lambda x, weight, bias: F.layer_norm(x, (13,), weight, bias, 1e-2)),
        "linear": (dict(x=x, weight=numbers.uniform(7, 13), bias=numbers.uniform(7)), lambda x, weight, bias: F.linear(x, weight, bias)),
        "embedding": (dict(table=numbers.uniform(6, 9), ids=torch.tensor([5, 0, 3, 3, 5, 3, 2])),
                      lambda table, ids: F.embedding(ids, table)),
    }
    contents = {case: differentiate(inputs, function, numbers) for case, (inputs, function) in cases.items()}
    contents["layer_norm"]["epsilon"], contents["layer_norm_large_epsilon"]["epsilon"] = scalar(1e-5), scalar(1e-2)
    return flat(contents)


def cross_entropy():
    """logits (N, V), targets (N) -> the sum of the losses, how many rows count, the mean; d_logits is the mean's gradient."""
    numbers = tensors.Numbers(2)
    cases = {}
    for case, ignore_index, smoothing in (("plain", -100, 0.0), ("padded", 0, 0.0), ("smoothed", -100, 0.1), ("smoothed_padded", 0, 0.1)):
        logits = numbers.uniform(9, 11, low=-3, high=3).requires_grad_()
        targets = torch.tensor([3, 0, 10, 1, 0, 0, 7, 3, 2])
        loss = lambda how: F.cross_entropy(logits, targets, ignore_index=ignore_index, label_smoothing=smoothing, reduction=how)
        mean = loss("mean")
        mean.backward()
        cases[case] = {"logits": logits, "targets": targets, "ignore_index": scalar(ignore_index), "smoothing": scalar(smoothing),
                       "sum": loss("sum").reshape(1), "count": scalar(int((targets != ignore_index).sum())),
                       "mean": mean.reshape(1), "d_logits": logits.grad}
    return flat(cases)


def attend(q, k, v, keep=None, bias=None):
    """softmax(q k^T / sqrt(Dk) + bias) v and the weights, by the formula; a query that sees no key gets zeros.
    q (B, Tq, H, Dk), k (B, Tk, H, Dk), v (B, Tk, H, Dv), keep and bias (B, H, Tq, Tk) or what broadcasts to it."""
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))  # (B, H, T, D)
    scores = q @ k.transpose(-1, -2) / math.sqrt(q.size(-1))
    if bias is not None:
        scores = scores + bias
    if keep is not None:
        scores = scores.masked_fill(~keep, -INF)
        blind = ~keep.expand_as(scores).any(-1, keepdim=True)
        weights = scores.masked_fill(blind, 0.0).softmax(-1).masked_fill(blind, 0.0)
    else:
        weights = scores.softmax(-1)
    return (weights @ v).transpose(1, 2), weights


def agree_with_library(q, k, v, keep, bias, y):
    """PyTorch's own scaled_dot_product_attention, where this version has it, says the same."""
    if not hasattr(F, "scaled_dot_product_attention"):
        return
    mask = keep if bias is None else bias if keep is None else bias.masked_fill(~keep, -INF)
    own = F.scaled_dot_product_attention(*(x.transpose(1, 2) for x in (q, k, v)), attn_mask=mask).transpose(1, 2)
    torch.testing.assert_close(own, y, rtol=0, atol=1e-12)


def attention():
    """q (B, Tq, H, Dk), k (B, Tk, H, Dk), v (B, Tk, H, Dv), keep BOOL and bias broadcast to (B, H, Tq, Tk)."""
    numbers = tensors.Numbers(3)
    causal = torch.ones(6, 6, dtype=torch.bool).tril()[None, None]
    lengths = (torch.arange(7) < torch.tensor([[7], [3]]))[:, None, None]
    scattered = numbers.ids(2, 3, 4, 7, low=0, high=3) > 0
    scattered[..., 2] = True
    blind = numbers.ids(2, 3, 4, 7, low=0, high=2) > 0
    blind[0, 1, 2], blind[1, :, 0] = False, False
    bias = numbers.uniform(2, 3, 4, 7, low=-2, high=2)
    cases = {}
    for case, Tq, Tk, options in (("plain", 4, 7, {}), ("causal", 6, 6, {"keep": causal}), ("lengths", 4, 7, {"keep": lengths}),
                                  ("scattered", 4, 7, {"keep": scattered}), ("nothing_seen", 4, 7, {"keep": blind}), ("bias", 4, 7, {"bias": bias}),
                                  ("bias_and_mask", 4, 7, {"bias": bias, "keep": scattered}), ("long", 70, 70, {})):
        B, H, Dk, Dv = (1, 1, 4, 3) if case == "long" else (2, 3, 5, 4)
        inputs = {"q": numbers.uniform(B, Tq, H, Dk, low=-2, high=2), "k": numbers.uniform(B, Tk, H, Dk, low=-2, high=2),
                  "v": numbers.uniform(B, Tk, H, Dv), **options}
        cases[case] = differentiate(inputs, lambda **given: attend(**given)[0], numbers)
        agree_with_library(inputs["q"], inputs["k"], inputs["v"], options.get("keep"), options.get("bias"), cases[case]["y"])
        if case != "long":
            cases[case]["weights"] = attend(**inputs)[1]
    return flat(cases)


def multihead_attention():
    """nn.MultiheadAttention, batch first, through F.multi_head_attention_forward: query (B, Tq, C), memory (B, Tk, C; the
    query where there is none) as key and value -> output (B, Tq, C), attn_weights (B, H, Tq, Tk). Masks hide where true."""
    numbers = tensors.Numbers(4)
    B, Tq, Tk, C, H = 2, 4, 5, 6, 3
    padding = torch.arange(Tk) >= torch.tensor([[5], [3]])
    later = torch.ones(Tq, Tq, dtype=torch.bool).triu(1)
    cases = {}
    for case, options, masks in (
            ("self", {}, {}), ("self_without_bias", {"bias": False}, {}), ("self_causal", {}, {"attn_mask": later}),
            ("cross", {}, {}), ("cross_padded", {}, {"key_padding_mask": padding})):
        module = nn.MultiheadAttention(C, H, batch_first=True, **options).double()
        tensors.draw_parameters(module, numbers)
        query = numbers.uniform(B, Tq, C)
        inputs = {"query": query} if case.startswith("self") else {"query": query, "memory": numbers.uniform(B, Tk, C)}
        leaves = {name: x.clone().requires_grad_() for name, x in inputs.items()}
        memory = leaves.get("memory", leaves["query"])
        output, weights = module(leaves["query"], memory, memory, average_attn_weights=False, **masks)
        d_output = numbers.uniform(*output.shape)
        output.backward(d_output)
        cases[case] = {**inputs, **masks, **parameters(module), "nhead": scalar(H), "output": output, "attn_weights": weights,
                       "d_output": d_output, **{"d_" + name: leaf.grad for name, leaf in leaves.items()},
                       **tensors.gradients_of(module)}
    return flat(cases)


def parameters(module):
    return {"param." + name: parameter for name, parameter in module.named_parameters()}


def layers():
    """nn.TransformerEncoderLayer and nn.TransformerDecoderLayer, batch first, without dropout, before and after norm:
    src (B, Ts, C) or tgt (B, Tt, C) with memory (B, Ts, C); padding hides where true; the decoder's self-attention is causal."""
    numbers = tensors.Numbers(5)
    B, Ts, Tt, C, H, width = 2, 5, 4, 6, 2, 9
    padding = torch.arange(Ts) >= torch.tensor([[5], [3]])
    later = torch.ones(Tt, Tt, dtype=torch.bool).triu(1)
    encoder, decoder = {}, {}
    for norm_first in (False, True):
        for activation in ("relu", "gelu"):
            case = f"norm_{'first' if norm_first else 'after'}_{activation}"
            for kind, into in ((nn.TransformerEncoderLayer, encoder), (nn.TransformerDecoderLayer, decoder)):
                module = kind(C, H, width, dropout=0.0, activation=activation, batch_first=True, norm_first=norm_first).double()
                tensors.draw_parameters(module, numbers)
                inputs = {"src": numbers.uniform(B, Ts, C)} if into is encoder else {
                    "tgt": numbers.uniform(B, Tt, C), "memory": numbers.uniform(B, Ts, C)}
                run = (lambda src: module(src, src_key_padding_mask=padding)) if into is encoder else (
                    lambda tgt, memory: module(tgt, memory, tgt_mask=later, memory_key_padding_mask=padding))
                into[case] = {**differentiate(inputs, run, numbers), "padding": padding, **parameters(module), **tensors.gradients_of(module)}
    return flat(encoder), flat(decoder)


def optimizers():
    """Five steps from p (3, 5) with the gradients g (5, 3, 5): after (5, 3, 5) is p after each step."""
    numbers = tensors.Numbers(6)
    sgd, adam = torch.optim.SGD, torch.optim.Adam
    cases = {}
    for case, kind, options in (
            ("sgd", sgd, dict(lr=0.1)), ("sgd_weight_decay", sgd, dict(lr=0.1, weight_decay=0.05)),
            ("sgd_momentum", sgd, dict(lr=0.1, momentum=0.9)), ("sgd_dampening", sgd, dict(lr=0.1, momentum=0.9, dampening=0.4)),
            ("sgd_nesterov", sgd, dict(lr=0.1, momentum=0.9, nesterov=True)),
            ("sgd_nesterov_weight_decay", sgd, dict(lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.05)),
            ("adam", adam, dict(lr=0.01)), ("adam_weight_decay", adam, dict(lr=0.01, betas=(0.8, 0.95), eps=1e-6, weight_decay=0.05)),
            ("adamw", torch.optim.AdamW, dict(lr=0.01, weight_decay=0.0)),
            ("adamw_weight_decay", torch.optim.AdamW, dict(lr=0.01, betas=(0.9, 0.98), eps=1e-9, weight_decay=0.1))):
        p, g, after = numbers.uniform(3, 5), numbers.uniform(5, 3, 5), []
        leaf = p.clone().requires_grad_()
        optimizer = kind([leaf], **options)
        for step in range(5):
            leaf.grad = g[step].clone()
            optimizer.step()
            after.append(leaf.detach().clone())
        betas = options.pop("betas", (0.9, 0.999)) if kind is not sgd else None
        given = {**options, **({"beta1": betas[0], "beta2": betas[1]} if betas else {}), **({"eps": 1e-8} if betas and "eps" not in options else {})}
        cases[case] = {"p": p, "g": g, "after": torch.stack(after), **{name: scalar(float(value)) for name, value in given.items()}}
    return flat(cases)


def fixtures():
    encoder_layer, decoder_layer = layers()
    return {"ops/functions.safetensors": functions(), "ops/cross_entropy.safetensors": cross_entropy(),
            "ops/attention.safetensors": attention(), "nn/multihead_attention.safetensors": multihead_attention(),
            "nn/encoder_layer.safetensors": encoder_layer, "nn/decoder_layer.safetensors": decoder_layer,
            "optim/optimizers.safetensors": optimizers()}


if __name__ == "__main__":
    torch.set_num_threads(1)
    tensors.write_fixtures(fixtures(), HERE)
