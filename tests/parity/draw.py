"""Random configurations of the official modules: constructor arguments, inputs, masks and forward's arguments.

A case is a dict: name, config (config.json), args (--args), inputs {name: tensor}, d {"d_output": None, ..} to be drawn
when shapes are known, training, dtype. Everything follows from a seed, with any version of PyTorch.
"""
import random

import torch

STACKS = ("torch.nn.TransformerEncoder", "torch.nn.TransformerDecoder", "torch.nn.Transformer")
ATTENTION = "rapt.scaled_dot_product_attention"
MODULES = ("torch.nn.MultiheadAttention", "torch.nn.TransformerEncoderLayer", "torch.nn.TransformerDecoderLayer",
           *STACKS, ATTENTION)
INF = float("inf")


class Numbers(random.Random):
    """Random numbers from Python's generator, which gives the same everywhere. Floats are f64 that f32 can hold, so that
    runs in both types start from the same values."""

    def chance(self, probability):
        return self.random() < probability

    def size(self, largest):
        """Mostly small, up to 70."""
        return self.randint(1, min(largest, self.choices((8, 24, 70), (6, 3, 1))[0]))

    def length(self, largest):
        return 0 if self.chance(0.04) else self.size(largest)

    def uniform_tensor(self, shape, low=-1.0, high=1.0):
        count = torch.Size(shape).numel()
        if count == 0:
            return torch.empty(tuple(shape), dtype=torch.float64)
        whole = torch.frombuffer(bytearray(self.randbytes(4 * count)), dtype=torch.int32)
        unit = (whole.double() / 2**31 + 1) / 2
        return (low + (high - low) * unit).float().double().reshape(tuple(shape))

    def bools(self, shape, probability):
        return self.uniform_tensor(shape, 0.0, 1.0) < probability


def causal_hidden(L, S):
    """True where a key comes after its query, the last query standing at the last key."""
    return torch.ones(L, S, dtype=torch.bool).triu(S - L + 1)


def see_something(hidden, numbers):
    """Uncovers a key in every row that sees none."""
    if hidden.shape[-1] > 0:
        rows = hidden.reshape(-1, hidden.shape[-1])
        for row in range(rows.shape[0]):
            if rows[row].all():
                rows[row, numbers.randrange(rows.shape[1])] = False
    return hidden


def as_float(hidden, numbers):
    """A mask that is added: minus infinity where hidden, else any number."""
    return numbers.uniform_tensor(hidden.shape).masked_fill(hidden, -INF)


def draw_mask(numbers, L, S, batch, heads):
    """An attention mask for `batch` sentences (None: unbatched), or None."""
    kind = numbers.choices(("none", "bool", "float"), (4, 3, 3))[0]
    if kind == "none":
        return None
    sentences = 1 if batch is None else batch
    shape = (sentences * heads, L, S) if numbers.chance(0.4) else (L, S)
    content = numbers.choices(("random", "causal", "nothing"), (6, 2, 1))[0]
    if content == "causal" and L <= S:
        hidden = causal_hidden(L, S).expand(shape).clone()
    else:
        hidden = numbers.bools(shape, 0.0 if content == "nothing" else numbers.choice((0.2, 0.6, 0.9)))
    see_something(hidden, numbers)
    if numbers.chance(0.12) and hidden.numel() > 0:
        hidden.reshape(-1, S)[numbers.randrange(hidden.numel() // S)] = True  # this row sees nothing
    if kind == "bool":
        return hidden
    if content == "causal" and numbers.chance(0.5):
        return torch.zeros(shape, dtype=torch.float64).masked_fill(hidden, -INF)
    return as_float(hidden, numbers)


def draw_padding(numbers, S, batch):
    """A key padding mask (N, S), or (S) unbatched, or None."""
    kind = numbers.choices(("none", "bool", "float"), (5, 4, 2))[0]
    if kind == "none":
        return None
    shape = (1 if batch is None else batch, S)
    if numbers.chance(0.7):  # by length
        lengths = torch.tensor([numbers.randint(min(1, S), S) for _ in range(shape[0])], dtype=torch.int64)
        hidden = torch.arange(S)[None, :] >= lengths[:, None]
    else:
        hidden = see_something(numbers.bools(shape, 0.4), numbers)
    if numbers.chance(0.12) and shape[0] > 0:
        hidden[numbers.randrange(shape[0])] = True  # a sentence of nothing
    mask = hidden if kind == "bool" else as_float(hidden, numbers)
    return mask[0] if batch is None else mask


def some(numbers, **arguments):
    """Those of the arguments that differ from None, some of them left out: name = (value, default)."""
    return {name: value for name, (value, default) in arguments.items()
            if value is not None and (value != default or numbers.chance(0.5))}


def draw_hint(numbers, mask, L, S, masks, name):
    """Whether attention is said to be causal: nothing, false, or true alone or with the mask that says the same."""
    hint = numbers.choices((None, False, True), (6, 2, 3))[0]
    if hint:
        mask = None
        if numbers.chance(0.5):
            mask = causal_hidden(L, S)
            if numbers.chance(0.5):
                mask = torch.zeros(L, S, dtype=torch.float64).masked_fill(mask, -INF)
    if mask is not None:
        masks[name] = mask
    return hint


def layout_of(numbers, config):
    """The batch size, None for unbatched."""
    return None if numbers.chance(0.2) else 0 if numbers.chance(0.04) else numbers.randint(1, 4)


def activation_shape(T, batch, width, batch_first):
    return (T, width) if batch is None else (batch, T, width) if batch_first else (T, batch, width)


def heads_and_width(numbers, largest):
    heads = numbers.choice((1, 1, 2, 2, 3, 4, 5, 7, 8))
    heads = min(heads, largest)
    return heads, heads * numbers.randint(1, max(1, min(largest, numbers.choice((8, 24, 70))) // heads))


def draw_multihead(numbers, largest):
    heads, width = heads_and_width(numbers, largest)
    kdim = numbers.choice((None, None, None, width, numbers.size(largest)))
    vdim = numbers.choice((None, None, None, width, numbers.size(largest)))
    batch_first = numbers.chance(0.5)
    config = {"embed_dim": width, "num_heads": heads, **some(
        numbers, dropout=(numbers.choice((0.0, 0.0, 0.3)), 0.0), bias=(numbers.chance(0.7), True),
        add_bias_kv=(numbers.chance(0.25), False), add_zero_attn=(numbers.chance(0.25), False),
        kdim=(kdim, None), vdim=(vdim, None), batch_first=(batch_first, False))}
    batch, L, S = layout_of(numbers, config), numbers.length(largest), numbers.length(largest)
    if numbers.chance(0.3):
        S = L
    shape = lambda T, width: activation_shape(T, batch, width, batch_first)
    inputs = {"query": numbers.uniform_tensor(shape(L, width)), "key": numbers.uniform_tensor(shape(S, kdim or width)),
              "value": numbers.uniform_tensor(shape(S, vdim or width))}
    hint = draw_hint(numbers, draw_mask(numbers, L, S, batch, heads), L, S, inputs, "attn_mask")
    inputs["key_padding_mask"] = draw_padding(numbers, S, batch)
    need = numbers.choice((None, True, False))
    args = some(numbers, need_weights=(need, True), average_attn_weights=(numbers.choice((True, False)), True),
                is_causal=(hint, False))
    return config, inputs, args


def draw_layer_options(numbers, largest, batch_first):
    heads, width = heads_and_width(numbers, largest)
    return heads, width, {"d_model": width, "nhead": heads, "dim_feedforward": numbers.size(largest), **some(
        numbers, dropout=(numbers.choice((0.0, 0.2)), 0.1), activation=(numbers.choice(("relu", "gelu")), "relu"),
        layer_norm_eps=(numbers.choice((1e-5, 1e-5, 1e-3, 0.1)), 1e-5), batch_first=(batch_first, False),
        norm_first=(numbers.chance(0.5), False), bias=(numbers.chance(0.75), True))}


def draw_layers(numbers, largest, module):
    """Encoder or decoder layers, stacks of them, and both together."""
    batch_first = numbers.chance(0.5)
    heads, width, config = draw_layer_options(numbers, largest, batch_first)
    batch, args = layout_of(numbers, config), {}
    Ts, Tt = numbers.length(largest), numbers.length(largest)
    kind = module.rpartition(".")[2]
    if kind == "Transformer":
        config.update(num_encoder_layers=numbers.randint(1, 2), num_decoder_layers=numbers.randint(1, 2))
    elif module in STACKS:
        config.update(num_layers=numbers.randint(1, 3), **some(numbers, norm=(numbers.chance(0.5), False)))
    if kind == "TransformerEncoder":
        config.update(some(numbers, enable_nested_tensor=(numbers.chance(0.5), True), mask_check=(numbers.chance(0.5), True)))
    source = {"TransformerDecoder": "memory", "TransformerDecoderLayer": "memory"}.get(kind, "src")
    inputs = {source: numbers.uniform_tensor(activation_shape(Ts, batch, width, batch_first))}

    def masked(prefix, mask_name, hint_name, default, L, S):
        hint = draw_hint(numbers, draw_mask(numbers, L, S, batch, heads), L, S, inputs, mask_name)
        inputs[prefix + "_key_padding_mask"] = draw_padding(numbers, S, batch)
        args.update(some(numbers, **{hint_name: (hint, default)}))

    if kind.startswith("TransformerEncoder"):
        masked("src", "mask" if kind == "TransformerEncoder" else "src_mask", "is_causal", None, Ts, Ts)
    else:
        inputs["tgt"] = numbers.uniform_tensor(activation_shape(Tt, batch, width, batch_first))
        masked("tgt", "tgt_mask", "tgt_is_causal", None, Tt, Tt)
        masked("memory", "memory_mask", "memory_is_causal", False, Tt, Ts)
        if kind == "Transformer":
            masked("src", "src_mask", "src_is_causal", None, Ts, Ts)
    if module in STACKS:
        wanted = numbers.chance(0.5)
        args.update(some(numbers, attentions=(wanted, False), average_attn_weights=(wanted and numbers.chance(0.4), False)))
    return config, inputs, args


def draw_attention(numbers, largest):
    """Attention alone: any axes before the last two, masks that broadcast, grouped key heads."""
    key_heads, groups = numbers.choice((1, 2, 3)), numbers.choice((1, 1, 2, 3))
    leading = numbers.choice(((), (), (numbers.randint(1, 3),), (numbers.randint(0, 3),), (2, 2)))
    L, S, E, Ev = numbers.length(largest), numbers.length(largest), numbers.size(largest), numbers.size(largest)
    heads = key_heads * groups
    whole = (*leading, heads, L, S)
    inputs = {"query": numbers.uniform_tensor((*leading, heads, L, E)),
              "key": numbers.uniform_tensor((*leading, key_heads, S, E)),
              "value": numbers.uniform_tensor((*leading, key_heads, S, Ev))}
    hint = numbers.choices((None, False, True), (5, 2, 4))[0]
    kind = "none" if hint else numbers.choice(("none", "bool", "float"))
    if kind != "none":
        shape = [1 if size > 1 and numbers.chance(0.4) else size for size in whole[:-2]] + [L, S]
        shape = shape[numbers.randint(0, len(shape) - 2):]
        if numbers.chance(0.15):
            shape[-2] = 1
        if numbers.chance(0.1):
            shape[-1] = 1
        hidden = see_something(numbers.bools(shape, numbers.choice((0.0, 0.3, 0.7))), numbers)
        if numbers.chance(0.15) and hidden.numel() > 0:
            hidden.reshape(-1, shape[-1])[0] = True
        inputs["attn_mask"] = ~hidden if kind == "bool" else as_float(hidden, numbers)
    args = some(numbers, is_causal=(hint, False), scale=(numbers.choice((None, None, 0.1, 1.7)), None),
                enable_gqa=(groups > 1, False), dropout_p=(0.0, 0.0))
    return {}, inputs, args


def draw_case(seed, module, largest=70, dtype=None):
    """The case that this seed gives, in `dtype` if that is set."""
    numbers = Numbers(f"{module} {seed} {largest}")
    if module == ATTENTION:
        config, inputs, args = draw_attention(numbers, largest)
    elif module == "torch.nn.MultiheadAttention":
        config, inputs, args = draw_multihead(numbers, largest)
    else:
        config, inputs, args = draw_layers(numbers, largest, module)
    case = {"name": f"{module.rpartition('.')[2]}-{seed:04}", "config": {"model_type": module, **config}, "args": args,
            "inputs": {name: tensor for name, tensor in inputs.items() if tensor is not None},
            "dtype": dtype or numbers.choice((torch.float64, torch.float32)), "numbers": numbers}
    layers = module not in (ATTENTION, "torch.nn.MultiheadAttention")
    dropout = config.get("dropout", 0.1 if layers else 0.0)
    case["training"] = dropout == 0.0 and numbers.chance(0.5)
    return case
