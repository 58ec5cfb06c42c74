"""The transformer in the layout of the transformers library, both ways, so that other programs open it as their own.

    with a norm of queries and keys   `model_type` "qwen3"
    without                           `model_type` "llama"
    what no other program computes    `model_type` "inkling-gpt": our own sizes, names and matrices

`to_layout` gives the record for config.json and the tensors for model.safetensors; `from_layout` reads such a pair,
ours or another's. No number changes on the way: names are translated and matrices turned over, which stand outputs ×
inputs there. The record says the base of the rotation twice: `rope_parameters` is how version 5 of that library writes
it, `rope_theta` how version 4 does.

A record of someone else may ask for what gpt.py does not have, such as biases, a sliding window or stretched positions.
That is refused in a sentence rather than read and computed wrongly. The other way round `to_layout` refuses what those
families do not have: a squared layer, tables of hashed runs, attention alone. A run's directory still has to hold such
a model, so `record_of` and `tensors_of` then give the third form, which `from_layout` reads like the others.

Left out: generation_config.json (the library makes its own from the record); other families of models.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import torch
from torch import Tensor

from inkling.configuration import from_record
from inkling.errors import InklingError, UsageError
from inkling.models.gpt import GPTConfig, Parameters, mlp_inputs

OWN = "inkling-gpt"
ARCHITECTURES = {"qwen3": "Qwen3ForCausalLM", "llama": "LlamaForCausalLM"}
# What their configurations take to be so where a record does not say it.
DEFAULTS: dict[str, dict[str, Any]] = {
    "qwen3": {"num_key_value_heads": 32, "head_dim": 128, "max_position_embeddings": 32_768},
    "llama": {"num_key_value_heads": None, "head_dim": None, "max_position_embeddings": 2_048},
}
SIZES = ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size")
NORMS = {"attention_norm": "input_layernorm", "mlp_norm": "post_attention_layernorm"}
HEAD_NORMS = {"q_norm": "self_attn.q_norm", "k_norm": "self_attn.k_norm"}
MATRICES = {
    **{name: f"self_attn.{name}_proj" for name in "qkvo"},
    **{name: f"mlp.{name}_proj" for name in ("gate", "up", "down")},
}


def to_layout(
    config: GPTConfig, parameters: Mapping[str, Tensor], begin: int | None = None
) -> tuple[dict[str, Any], Parameters]:
    """The record for config.json, and float32 tensors for model.safetensors, for other programs to open."""
    obstacle = not_exportable(config)
    if obstacle:
        raise UsageError(obstacle)
    return record_of(config, begin), tensors_of(config, parameters)


def not_exportable(config: GPTConfig) -> str | None:
    """Why other programs cannot open this model, in a sentence; None where they can."""
    has = []
    if config.grams:
        has.append(f"tables of hashed runs of tokens (grams is {config.grams})")
    if config.mlp and config.activation != "gated":
        has.append(f"another layer than the gated one (activation is {config.activation})")
    if not config.mlp:
        has.append("attention only (mlp is 0)")
    if not has:
        return None
    return (
        f"This transformer has {' and '.join(has)}, which neither qwen3 nor llama can be; train one with a gated layer "
        f"{'and without tables ' if config.grams else ''}to open it with other programs."
    )


def record_of(config: GPTConfig, begin: int | None = None) -> dict[str, Any]:
    """What config.json holds. `begin` is the token that stands before a text. There is none that ends one."""
    if not config.is_exportable:
        return {"model_type": OWN, "sizes": asdict(config), "bos_token_id": begin}
    family = "qwen3" if config.query_key_norm else "llama"
    record: dict[str, Any] = {
        "architectures": [ARCHITECTURES[family]],
        "model_type": family,
        "vocab_size": config.vocabulary,
        "hidden_size": config.dimension,
        "intermediate_size": config.mlp,
        "num_hidden_layers": config.layers,
        "num_attention_heads": config.heads,
        "num_key_value_heads": config.key_heads,
        "head_dim": config.head_dimension,
        "max_position_embeddings": config.context,
        "hidden_act": "silu",
        "rms_norm_eps": config.norm_epsilon,
        "rope_parameters": {"rope_type": "default", "rope_theta": config.rotary_base},
        "rope_theta": config.rotary_base,
        "attention_bias": False,
        "attention_dropout": 0.0,
        "tie_word_embeddings": config.tied,
        "bos_token_id": begin,
        "eos_token_id": None,
        "pad_token_id": None,
        "torch_dtype": "float32",
        "use_cache": True,
    }
    record |= {"use_sliding_window": False, "sliding_window": None} if family == "qwen3" else {"mlp_bias": False}
    return record


def tensors_of(config: GPTConfig, parameters: Mapping[str, Tensor]) -> Parameters:
    """What model.safetensors holds."""
    return {
        theirs: (parameters[ours].detach().t() if turned else parameters[ours].detach()).float().contiguous()
        for ours, (theirs, turned) in _names(config).items()
    }


def from_layout(record: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> tuple[GPTConfig, Parameters]:
    """Sizes and parameters, in float32, from what config.json and model.safetensors hold."""
    is_own = record.get("model_type") == OWN
    config = _own_config(record) if is_own else _config(record)
    kind = "transformer" if is_own else record["model_type"]
    names = _names(config)
    wanted = {theirs for theirs, _ in names.values()}
    missing, surplus = wanted - tensors.keys(), tensors.keys() - wanted
    surplus = {name for name in surplus if not name.endswith("rotary_emb.inv_freq")}  # follows from rope_theta
    if config.tied and not is_own:
        surplus.discard("lm_head.weight")  # the embedding again
    if missing or surplus:
        given = f"lacks {min(missing)}" if missing else f"has {min(surplus)}"
        raise InklingError(
            f"The weights do not fit their config.json: model.safetensors {given}, which a {kind} of "
            f"{config.layers} layers does {'' if missing else 'not '}have; give the two files of one model."
        )
    shapes = _shapes(config)
    found = {}
    for ours, (theirs, turned) in names.items():
        value = tensors[theirs].t() if turned else tensors[theirs]
        if tuple(value.shape) != shapes[ours]:
            expected = shapes[ours][::-1] if turned else shapes[ours]
            raise InklingError(
                f"The weights do not fit their config.json: {theirs} has the shape {tuple(tensors[theirs].shape)}, "
                f"where {expected} was expected; give the two files of one model."
            )
        found[ours] = value.to(torch.float32).contiguous()
    return config, found


def _own_config(record: Mapping[str, Any]) -> GPTConfig:
    if not isinstance(record.get("sizes"), dict):
        raise InklingError(f"config.json gives sizes as {record.get('sizes')!r}; those of a transformer were expected.")
    config = from_record(GPTConfig, record["sizes"], "config.json")
    if config.is_exportable:
        raise InklingError(
            f"config.json describes a model of type {OWN!r} with nothing in it that needs one; give the file that was "
            "written with the weights."
        )
    return config


def _config(record: Mapping[str, Any]) -> GPTConfig:
    family = record.get("model_type")
    if family not in ARCHITECTURES:
        raise InklingError(f"config.json describes a model of type {family!r}; Inkling reads qwen3 and llama.")
    for name in SIZES:
        if not isinstance(record.get(name), int):
            raise InklingError(f"config.json gives {name} as {record.get(name)!r}; a whole number was expected.")
    stated = {**DEFAULTS[family], **record}
    rope = record.get("rope_parameters") or record.get("rope_scaling") or {}
    heads, dimension = stated["num_attention_heads"], stated["hidden_size"]
    features = (  # what gpt.py does not have
        ("attention_bias", stated.get("attention_bias", False) is False),
        ("mlp_bias", stated.get("mlp_bias", False) is False),
        ("hidden_act", stated.get("hidden_act", "silu") in ("silu", "swish")),
        ("use_sliding_window", not stated.get("use_sliding_window", False)),
        ("layer_types", set(stated.get("layer_types") or ["full_attention"]) == {"full_attention"}),
        (
            "rope_parameters" if record.get("rope_parameters") else "rope_scaling",
            rope.get("rope_type", rope.get("type", "default")) == "default",
        ),
        ("partial_rotary_factor", rope.get("partial_rotary_factor", stated.get("partial_rotary_factor", 1.0)) == 1.0),
        ("head_dim", stated["head_dim"] in (None, dimension // max(1, heads))),
        ("quantization_config", stated.get("quantization_config") is None),
    )
    for name, fits in features:
        if not fits:
            raise InklingError(
                f"config.json asks for {name} {stated.get(name)!r}, which Inkling's transformer does not have; "
                "open this model with the transformers library."
            )
    key_heads = stated["num_key_value_heads"] or heads
    return GPTConfig(
        vocabulary=stated["vocab_size"],
        dimension=dimension,
        layers=stated["num_hidden_layers"],
        heads=heads,
        mlp=stated["intermediate_size"],
        context=stated["max_position_embeddings"],
        query_key_norm=family == "qwen3",
        tied=bool(stated.get("tie_word_embeddings", False)),
        rotary_base=float(rope.get("rope_theta", stated.get("rope_theta", 10_000.0))),
        key_value_heads=0 if key_heads == heads else key_heads,
        norm_epsilon=float(stated.get("rms_norm_eps", 1e-6)),
    )


def _names(config: GPTConfig) -> dict[str, tuple[str, bool]]:
    """Of each of our parameters its name there, and whether it is a matrix to be turned over."""
    if not config.is_exportable:
        return {name: (name, False) for name in _shapes(config)}
    found = {"embedding": ("model.embed_tokens.weight", False)}
    inside = NORMS | (HEAD_NORMS if config.query_key_norm else {})
    for n in range(config.layers):
        found |= {f"layers.{n}.{ours}": (f"model.layers.{n}.{theirs}.weight", False) for ours, theirs in inside.items()}
        found |= {
            f"layers.{n}.{ours}": (f"model.layers.{n}.{theirs}.weight", True) for ours, theirs in MATRICES.items()
        }
    found["norm"] = ("model.norm.weight", False)
    if not config.tied:
        found["output"] = ("lm_head.weight", True)
    return found


def _shapes(config: GPTConfig) -> dict[str, tuple[int, ...]]:
    """Of each of our parameters."""
    V, D, d, M, shared = (
        config.vocabulary,
        config.dimension,
        config.head_dimension,
        config.mlp,
        config.key_heads * config.head_dimension,
    )
    inside: dict[str, tuple[int, ...]] = {"attention_norm": (D,), "q": (D, D), "o": (D, D)}
    inside |= {"k": (D, shared), "v": (D, shared)}
    if config.query_key_norm:
        inside |= {"q_norm": (d,), "k_norm": (d,)}
    if M:
        inside |= {"mlp_norm": (D,), **dict.fromkeys(mlp_inputs(config), (D, M)), "down": (M, D)}
    found: dict[str, tuple[int, ...]] = {"embedding": (V, D), "norm": (D,)}
    found |= dict.fromkeys(config.gram_names, (config.gram_rows, D))
    if not config.tied:
        found["output"] = (D, V)
    return found | {f"layers.{n}.{name}": shape for n in range(config.layers) for name, shape in inside.items()}
