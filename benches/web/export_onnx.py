"""Writes a Llama-shaped GGUF file as the ONNX folder that transformers.js loads.

usage: export_onnx.py IN.gguf OUT_FOLDER        (PyPI packages: gguf, numpy, onnx)

The graph is the usual one of the hub. Q4_0 becomes its `q4`: MatMulNBits with the file's own blocks, the same weights.
Q8_0 becomes its `q8`: MatMulInteger with one scale a row, the same weights but for that rounding; the head is of this
kind in both. GroupQueryAttention has its rotary embedding inside, norms are fused, and the logits are of the last
position only, as `num_logits_to_keep` gives. It knows nothing of the bench; other formats are refused.
"""

import json
import sys
from pathlib import Path

import gguf
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

BLOCK = 32
FLOAT = TensorProto.FLOAT


class Settings:
    """The numbers of the architecture, from the file's metadata."""

    def __init__(self, reader):
        def meta(key):
            return reader.fields[f"llama.{key}"].contents()

        self.layers, self.hidden, self.ffn = meta("block_count"), meta("embedding_length"), meta("feed_forward_length")
        self.heads, self.kv_heads = meta("attention.head_count"), meta("attention.head_count_kv")
        self.context, self.rope_base = meta("context_length"), meta("rope.freq_base")
        self.norm_eps, self.head_size = meta("attention.layer_norm_rms_epsilon"), meta("rope.dimension_count")


def unpack_blocks(tensor):
    """A matrix as (bits, unsigned integers [rows, blocks, 32], scales [rows, blocks]); its zero point is 2^(bits - 1)."""
    rows = tensor.data.reshape(int(tensor.shape[1]), -1)
    kind = tensor.tensor_type.name
    if kind not in ("Q4_0", "Q8_0"):
        raise SystemExit(f"export_onnx: {tensor.name} is {kind}; expected Q4_0 or Q8_0")
    payload = BLOCK // 2 if kind == "Q4_0" else BLOCK
    blocks = rows.reshape(len(rows), -1, 2 + payload)
    scales = np.ascontiguousarray(blocks[..., :2]).view(np.float16)[..., 0].astype(np.float32)
    packed = blocks[..., 2:]
    if kind == "Q4_0":
        return 4, np.concatenate([packed & 15, packed >> 4], axis=-1), scales
    return 8, packed ^ 0x80, scales


class Graph:
    """Nodes and weights in the order they are added; every method answers the name of what it made."""

    def __init__(self, reader):
        self.tensors = {tensor.name: tensor for tensor in reader.tensors}
        self.nodes, self.weights, self.quantized = [], [], set()

    def node(self, op, inputs, name, outputs=None, domain="", **attributes):
        outputs = outputs or [name]
        self.nodes.append(helper.make_node(op, inputs, outputs, name=name, domain=domain, **attributes))
        return outputs[0]

    def weight(self, name, values):
        self.weights.append(numpy_helper.from_array(np.ascontiguousarray(values), name))
        return name

    def norm(self, name):
        return self.weight(name, self.tensors[name].data.astype(np.float32))

    def linear(self, x, name, *sources):
        """`x` times the matrices `sources`, one beneath the other."""
        parts = [unpack_blocks(self.tensors[source]) for source in sources]
        bits = parts[0][0]
        if any(part[0] != bits for part in parts):
            raise SystemExit(f"export_onnx: {', '.join(sources)} differ in format; expected one")
        values, scales = (np.concatenate([part[i] for part in parts]) for i in (1, 2))
        return self.blocks_linear(x, name, values, scales) if bits == 4 else self.integer_linear(x, name, values, scales)

    def blocks_linear(self, x, name, values, scales):
        """4-bit blocks as they are: MatMulNBits."""
        weights = [self.weight(f"{name}.blocks", values[..., 0::2] | values[..., 1::2] << 4), self.weight(f"{name}.scales", scales)]
        shape = {"K": values.shape[1] * BLOCK, "N": len(values), "block_size": BLOCK}
        return self.node("MatMulNBits", [x, *weights], f"{name}.out", domain="com.microsoft", bits=4, accuracy_level=4, **shape)

    def integer_linear(self, x, name, values, scales):
        """8-bit weights with one scale a row, against an input quantized once for all that read it: MatMulInteger."""
        rows = ((values.astype(np.float32) - 128) * scales[..., None]).reshape(len(values), -1)
        row_scales = np.abs(rows).max(axis=1) / 127
        integers = np.rint(rows / np.maximum(row_scales, 1e-30)[:, None]).astype(np.int8)
        quantized = [f"{x}.{part}" for part in ("integers", "scale", "zero")]
        if x not in self.quantized:
            self.node("DynamicQuantizeLinear", [x], quantized[0], quantized)
            self.quantized.add(x)
        sums = self.node("MatMulInteger", [quantized[0], self.weight(f"{name}.integers", integers.T), quantized[2]], f"{name}.sums")
        factors = self.node("Mul", [quantized[1], self.weight(f"{name}.scales", row_scales)], f"{name}.factors")
        return self.node("Mul", [self.node("Cast", [sums], f"{name}.f32", to=FLOAT), factors], f"{name}.out")

    def add_norm(self, x, skip, name, eps):
        """Adds and normalizes: (normalized, sum)."""
        outputs = [f"{name}.out", "", "", f"{name}.sum"]
        self.node("SkipSimplifiedLayerNormalization", [x, skip, self.norm(name)], name, outputs, "com.microsoft", epsilon=eps)
        return outputs[0], outputs[3]


def add_embedding(graph):
    """Rows of the Q8_0 embedding by token id, made f32 one by one, so that no f32 copy of all is kept."""
    _, values, scales = unpack_blocks(graph.tensors["token_embd.weight"])
    blocks, scales = graph.weight("embed.blocks", values), graph.weight("embed.scales", scales)
    rows = graph.node("Cast", [graph.node("Gather", [blocks, "input_ids"], "embed.rows")], "embed.values", to=FLOAT)
    centered = graph.node("Sub", [rows, graph.weight("embed.zero", np.float32(128))], "embed.centered")
    factors = graph.node("Gather", [scales, "input_ids"], "embed.row_scales")
    column = graph.node("Unsqueeze", [factors, graph.weight("embed.axis", np.array([3]))], "embed.factors")
    product = graph.node("Mul", [centered, column], "embed.products")
    return graph.node("Reshape", [product, graph.weight("embed.shape", np.array([0, 0, values.shape[1] * BLOCK]))], "embed.out")


def add_lengths(graph):
    """What GroupQueryAttention wants of the attention mask: (positions before the last, in all)."""
    total = graph.node("ReduceSum", ["attention_mask", graph.weight("mask.axis", np.array([1]))], "mask.sum", keepdims=0)
    last = graph.node("Sub", [total, graph.weight("mask.one", np.array([1]))], "mask.last")
    shape = graph.node("Shape", ["attention_mask"], "mask.shape")
    width = graph.node("Gather", [shape, graph.weight("mask.width_index", np.array(1))], "mask.width", axis=0)
    to = TensorProto.INT32
    return graph.node("Cast", [last], "mask.seqlens_k", to=to), graph.node("Cast", [width], "mask.total", to=to)


def add_rotary(graph, settings):
    """Cosines and sines of every position, [context, head_size / 2]."""
    half = np.arange(0, settings.head_size, 2) / settings.head_size
    angles = np.outer(np.arange(settings.context), settings.rope_base**-half)
    return [graph.weight("rope.cos", np.cos(angles).astype(np.float32)), graph.weight("rope.sin", np.sin(angles).astype(np.float32))]


def add_layer(graph, settings, index, hidden, normed, lengths, rotary):
    """One decoder layer; answers (residual stream, output of its feed-forward), which the next norm adds."""
    block = f"blk.{index}"
    qkv = graph.linear(normed, f"{block}.qkv", *(f"{block}.attn_{part}.weight" for part in "qkv"))
    past = [f"past_key_values.{index}.{part}" for part in ("key", "value")]
    outputs = [f"{block}.attention", f"present.{index}.key", f"present.{index}.value"]
    # The rows of Q and K in a GGUF file are permuted for neighbouring pairs: rotary_interleaved.
    graph.node("GroupQueryAttention", [qkv, "", "", *past, *lengths, *rotary], outputs[0], outputs, "com.microsoft",
               num_heads=settings.heads, kv_num_heads=settings.kv_heads, do_rotary=1, rotary_interleaved=1)
    attention = graph.linear(outputs[0], f"{block}.attn_output", f"{block}.attn_output.weight")
    normed, hidden = graph.add_norm(hidden, attention, f"{block}.ffn_norm.weight", settings.norm_eps)
    gate = graph.linear(normed, f"{block}.gate", f"{block}.ffn_gate.weight")
    up = graph.linear(normed, f"{block}.up", f"{block}.ffn_up.weight")
    silu = graph.node("Mul", [gate, graph.node("Sigmoid", [gate], f"{block}.sigmoid")], f"{block}.silu")
    product = graph.node("Mul", [silu, up], f"{block}.product")
    return hidden, graph.linear(product, f"{block}.down", f"{block}.ffn_down.weight")


def build_model(reader, settings):
    graph = Graph(reader)
    hidden = add_embedding(graph)
    lengths, rotary = add_lengths(graph), add_rotary(graph, settings)
    first = graph.norm("blk.0.attn_norm.weight")
    normed = graph.node("SimplifiedLayerNormalization", [hidden, first], "blk.0.attn_norm.out", axis=-1, epsilon=settings.norm_eps, stash_type=1)
    for index in range(settings.layers):
        hidden, ffn = add_layer(graph, settings, index, hidden, normed, lengths, rotary)
        following = "output_norm.weight" if index + 1 == settings.layers else f"blk.{index + 1}.attn_norm.weight"
        normed, hidden = graph.add_norm(hidden, ffn, following, settings.norm_eps)
    bounds = [graph.weight(f"last.{name}", np.array([value])) for name, value in (("start", -1), ("end", 2**62), ("axis", 1))]
    last = graph.node("Slice", [normed, *bounds], "last.out")
    graph.node("Identity", [graph.linear(last, "head", "token_embd.weight")], "logits")
    inputs, outputs = interface(settings, len(graph.tensors["token_embd.weight"].data))
    body = helper.make_graph(graph.nodes, "decoder", inputs, outputs, graph.weights)
    return helper.make_model(body, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)], ir_version=9)


def interface(settings, vocabulary):
    """Inputs and outputs by the names transformers.js feeds and reads."""
    integers = {"input_ids": ["batch_size", "sequence_length"], "attention_mask": ["batch_size", "total_sequence_length"]}
    inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, shape) for name, shape in integers.items()]
    outputs = [helper.make_tensor_value_info("logits", FLOAT, ["batch_size", 1, vocabulary])]
    for index in range(settings.layers):
        for part in ("key", "value"):
            shape = ["batch_size", settings.kv_heads, "past_sequence_length", settings.head_size]
            inputs.append(helper.make_tensor_value_info(f"past_key_values.{index}.{part}", FLOAT, shape))
            outputs.append(helper.make_tensor_value_info(f"present.{index}.{part}", FLOAT, ["batch_size", settings.kv_heads, "total_sequence_length", settings.head_size]))
    return inputs, outputs


def tokenizer_files(reader):
    """tokenizer.json and tokenizer_config.json of a byte-level BPE vocabulary."""
    tokens, types, merges = (reader.fields[f"tokenizer.ggml.{key}"].contents() for key in ("tokens", "token_type", "merges"))
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    control = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    added = [{"id": i, "content": token, **control} for i, (token, kind) in enumerate(zip(tokens, types)) if kind == gguf.TokenType.CONTROL]
    model = {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None, "fuse_unk": False,
             "byte_fallback": False, "ignore_merges": False, "vocab": {token: i for i, token in enumerate(tokens)}, "merges": merges}
    pre_tokenizer = {"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": True}, byte_level]}
    tokenizer = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added, "normalizer": None, "pre_tokenizer": pre_tokenizer,
                 "post_processor": None, "decoder": byte_level, "model": model}
    end = tokens[reader.fields["tokenizer.ggml.eos_token_id"].contents()]
    return tokenizer, {"tokenizer_class": "GPT2Tokenizer", "eos_token": end, "bos_token": None, "model_max_length": 8192, "clean_up_tokenization_spaces": False}


def config_files(reader, settings):
    """config.json and generation_config.json."""
    end = reader.fields["tokenizer.ggml.eos_token_id"].contents()
    config = {
        "model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": settings.hidden, "intermediate_size": settings.ffn,
        "num_hidden_layers": settings.layers, "num_attention_heads": settings.heads, "num_key_value_heads": settings.kv_heads,
        "head_dim": settings.head_size, "max_position_embeddings": settings.context, "rope_theta": settings.rope_base,
        "rms_norm_eps": settings.norm_eps, "vocab_size": int(reader.tensors[0].shape[1]), "eos_token_id": end, "tie_word_embeddings": True,
    }
    return config, {"eos_token_id": end, "pad_token_id": end}


def main(source, target):
    reader = gguf.GGUFReader(source)
    settings = Settings(reader)
    model = build_model(reader, settings)
    folder = Path(target)
    (folder / "onnx").mkdir(parents=True, exist_ok=True)
    names = ("tokenizer.json", "tokenizer_config.json", "config.json", "generation_config.json")
    for name, content in zip(names, (*tokenizer_files(reader), *config_files(reader, settings))):
        (folder / name).write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")
    # The model comes last and under its name only when whole: that it is there says that the folder is complete.
    four_bit = "MatMulNBits" in {node.op_type for node in model.graph.node}
    path = folder / "onnx" / ("model_q4.onnx" if four_bit else "model_quantized.onnx")
    part = path.with_suffix(".part")
    onnx.save(model, part)
    part.rename(path)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    main(*sys.argv[1:])
