"""The transformer as files that the transformers library opens as its own, and back."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from inkling.errors import InklingError, UsageError
from inkling.models.gpt import GPT, GPTConfig, Parameters, forward, initial_parameters
from inkling.models.gpt_layout import from_layout, record_of, tensors_of, to_layout
from inkling.models.gpt_model import Transformer
from inkling.text.tokenise import tokenizer_config_json, train_tokeniser
from inkling.text.tokens import Tokeniser

QWEN = GPTConfig(37, 32, 2, 4, mlp=24, context=24)
KINDS = {
    "qwen3, tied": QWEN,
    "qwen3, untied, grouped": replace(QWEN, tied=False, key_value_heads=2),
    "llama, tied, grouped": replace(QWEN, query_key_norm=False, key_value_heads=1, rotary_base=500.0),
    "llama, untied": replace(QWEN, query_key_norm=False, tied=False, norm_epsilon=1e-5),
}
every_kind = pytest.mark.parametrize("config", KINDS.values(), ids=KINDS.keys())
TEXTS = ["The quick brown fox\njumps.\n", "\n\n  naïve café, “東京” 🦑\t\r\n", "Straße", ""]


def parameters_of(config: GPTConfig) -> Parameters:
    generator = np.random.default_rng(4)
    found = initial_parameters(config, generator)
    return {
        name: value + torch.from_numpy(generator.normal(0, 0.05, value.shape)).float() for name, value in found.items()
    }


def written(folder: Path, config: GPTConfig, parameters: Parameters, begin: int = 1) -> Path:
    record, tensors = to_layout(config, parameters, begin)
    (folder / "config.json").write_text(json.dumps(record), encoding="utf-8")
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    return folder


def opened(folder: Path) -> Any:
    from transformers import AutoModelForCausalLM

    library: Any = AutoModelForCausalLM
    model, told = library.from_pretrained(folder, local_files_only=True, output_loading_info=True)
    assert not any(told[name] for name in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    return model.eval()


@every_kind
def test_the_transformers_library_computes_the_same_logits(config: GPTConfig, tmp_path: Path) -> None:
    parameters = parameters_of(config)
    theirs = opened(written(tmp_path, config, parameters))
    ids = torch.from_numpy(np.random.default_rng(0).integers(0, 37, (3, 24)))
    with torch.no_grad():
        found, expected = theirs(ids).logits, forward(parameters, config, ids)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)
    assert type(theirs).__name__ == ("Qwen3ForCausalLM" if config.query_key_norm else "LlamaForCausalLM")
    assert theirs.dtype == torch.float32
    assert theirs.config.max_position_embeddings == 24
    assert (theirs.config.bos_token_id, theirs.config.eos_token_id) == (1, None)


@pytest.mark.parametrize("kind", ["character", "bpe"])
def test_the_transformers_library_writes_the_same_text(kind: str, tmp_path: Path) -> None:
    from transformers import AutoTokenizer

    tokeniser = train_tokeniser(kind, [TEXTS], None if kind == "character" else 270)
    config = replace(QWEN, vocabulary=tokeniser.size, key_value_heads=2)
    parameters = parameters_of(config)
    ours = Transformer(config, parameters, tokeniser)
    folder = with_tokeniser(written(tmp_path, config, parameters, tokeniser.begin), tokeniser)
    theirs, their_tokeniser = opened(folder), AutoTokenizer.from_pretrained(folder, local_files_only=True)
    prompt = their_tokeniser("\nThe", return_tensors="pt")  # a text begins behind a line end
    begun = prompt["input_ids"].shape[1]
    drawn = theirs.generate(**prompt, max_new_tokens=24 - begun, do_sample=False, pad_token_id=0)[0, begun:].tolist()
    state, log_probs = ours.begin()
    for token in tokeniser.encode(["The"]).ids.tolist():
        state, log_probs = ours.step(state, token)
    expected = []
    for _ in range(24 - begun):
        expected.append(int(log_probs.argmax()))
        state, log_probs = ours.step(state, expected[-1])
    assert prompt["input_ids"][0, 0] == tokeniser.begin == theirs.config.bos_token_id
    assert drawn == expected
    assert len(set(drawn)) > 1


def with_tokeniser(folder: Path, tokeniser: Tokeniser) -> Path:
    (folder / "tokenizer.json").write_text(tokeniser.to_json(), encoding="utf-8")
    (folder / "tokenizer_config.json").write_text(tokenizer_config_json(tokeniser), encoding="utf-8")
    return folder


@pytest.mark.parametrize("kind", ["word", "character", "byte", "bpe"])
@pytest.mark.parametrize("query_key_norm", [True, False])
def test_the_tokeniser_beside_the_model_gives_the_same_ids(kind: str, query_key_norm: bool, tmp_path: Path) -> None:
    """The library may choose a tokeniser by the model's type, so the model has to lie beside it."""
    from transformers import AutoTokenizer

    tokeniser = train_tokeniser(kind, [TEXTS[:1] * 2 + TEXTS[1:2]], 270 if kind == "bpe" else None)
    config = replace(QWEN, vocabulary=tokeniser.size, query_key_norm=query_key_norm)
    folder = with_tokeniser(written(tmp_path, config, parameters_of(config), tokeniser.begin), tokeniser)
    theirs = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    for text in TEXTS:
        ids = tokeniser.encode([text]).ids.tolist()
        assert theirs(text)["input_ids"] == ids
        if tokeniser.unknown not in ids:
            assert theirs.decode(ids) == text


@every_kind
def test_what_was_exported_comes_back_to_the_bit(config: GPTConfig, tmp_path: Path) -> None:
    parameters = parameters_of(config)
    folder = written(tmp_path, config, parameters)
    found, tensors = from_layout(
        json.loads((folder / "config.json").read_text()), load_file(folder / "model.safetensors")
    )
    assert found == config
    assert tensors.keys() == parameters.keys()
    for name, value in parameters.items():
        assert torch.equal(tensors[name], value), name
        assert tensors[name].is_contiguous()


@pytest.mark.parametrize("family", ["qwen3", "llama"])
def test_what_the_transformers_library_saves_is_read(family: str, tmp_path: Path) -> None:
    from transformers import AutoConfig, AutoModelForCausalLM

    torch.manual_seed(0)
    sizes = {"vocab_size": 37, "hidden_size": 32, "intermediate_size": 24, "num_hidden_layers": 2, "head_dim": 8}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2, "rms_norm_eps": 1e-5, "max_position_embeddings": 24}
    config = AutoConfig.for_model(family, **sizes, **heads, bos_token_id=1, eos_token_id=2)
    library: Any = AutoModelForCausalLM
    theirs = library.from_config(config).eval()
    theirs.save_pretrained(tmp_path)
    record = json.loads((tmp_path / "config.json").read_text())
    ours = GPT(*from_layout(record, load_file(tmp_path / "model.safetensors")))
    assert ours.config == replace(
        QWEN, query_key_norm=family == "qwen3", tied=False, key_value_heads=2, norm_epsilon=1e-5
    )
    ids = torch.from_numpy(np.random.default_rng(0).integers(0, 37, (2, 24)))
    with torch.no_grad():
        torch.testing.assert_close(forward(ours.parameters, ours.config, ids), theirs(ids).logits, rtol=0, atol=1e-5)


def test_a_record_of_version_4_is_read() -> None:
    config = replace(QWEN, query_key_norm=False, rotary_base=500.0)
    record, tensors = to_layout(config, parameters_of(config))
    for name in ("rope_parameters", "head_dim", "num_key_value_heads"):  # as it wrote small models
        del record[name]
    assert from_layout(record | {"rope_scaling": None}, tensors)[0] == config


OWN_KINDS = {
    "attention only (mlp is 0)": replace(QWEN, mlp=0, tied=False),
    "another layer than the gated one (activation is squared_relu)": replace(QWEN, activation="squared_relu"),
    "tables of hashed runs of tokens (grams is 2)": replace(QWEN, grams=2, gram_rows=7, query_key_norm=False),
    "tables of hashed runs of tokens (grams is 3) and attention only (mlp is 0)": replace(
        QWEN, grams=3, gram_rows=7, mlp=0, key_value_heads=1
    ),
}


@pytest.mark.parametrize(("has", "config"), OWN_KINDS.items(), ids=OWN_KINDS.keys())
def test_what_other_programs_do_not_have_is_not_exported_but_kept(has: str, config: GPTConfig) -> None:
    parameters = parameters_of(config)
    with pytest.raises(UsageError, match=f"has {re.escape(has)}, which neither qwen3 nor llama can be; train one"):
        to_layout(config, parameters)
    record, tensors = json.loads(json.dumps(record_of(config, 1))), tensors_of(config, parameters)
    assert record["model_type"] == "inkling-gpt"
    found, back = from_layout(record, tensors)
    assert found == config
    assert back.keys() == parameters.keys()
    assert all(torch.equal(back[name], value) for name, value in parameters.items())


def test_a_record_of_our_own_is_checked() -> None:
    config = OWN_KINDS["tables of hashed runs of tokens (grams is 2)"]
    record, tensors = record_of(config), tensors_of(config, parameters_of(config))
    with pytest.raises(InklingError, match=r"lacks grams\.3, which a transformer of 2 layers does have"):
        from_layout(record, {name: value for name, value in tensors.items() if name != "grams.3"})
    with pytest.raises(InklingError, match=r"grams\.2 has the shape \(7, 32\), where \(8, 32\) was expected"):
        from_layout(record | {"sizes": record["sizes"] | {"gram_rows": 8}}, tensors)
    with pytest.raises(InklingError, match="unknown key 'rams'"):
        from_layout(record | {"sizes": {"rams": 2}}, tensors)
    with pytest.raises(InklingError, match="gives sizes as None"):
        from_layout({"model_type": "inkling-gpt"}, tensors)
    with pytest.raises(InklingError, match="nothing in it that needs one"):
        from_layout(record | {"sizes": record["sizes"] | {"grams": 0}}, tensors)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"model_type": "gpt2"}, "a model of type 'gpt2'; Inkling reads qwen3 and llama"),
        ({"hidden_size": None}, "gives hidden_size as None; a whole number was expected"),
        ({"attention_bias": True}, "asks for attention_bias True, which Inkling's transformer does not have"),
        ({"mlp_bias": True}, "asks for mlp_bias True"),
        ({"hidden_act": "gelu"}, "asks for hidden_act 'gelu'"),
        ({"hidden_act": "relu2"}, "asks for hidden_act 'relu2'"),
        ({"use_sliding_window": True}, "asks for use_sliding_window True"),
        ({"layer_types": ["full_attention", "sliding_attention"]}, "asks for layer_types"),
        ({"rope_parameters": {"rope_type": "yarn", "rope_theta": 1e4}}, "asks for rope_parameters .*yarn"),
        ({"rope_parameters": None, "rope_scaling": {"type": "linear", "factor": 2}}, "asks for rope_scaling .*linear"),
        ({"partial_rotary_factor": 0.5}, "asks for partial_rotary_factor 0.5"),
        ({"head_dim": 16}, "asks for head_dim 16"),
        ({"quantization_config": {"bits": 4}}, "asks for quantization_config"),
    ],
)
def test_what_our_transformer_does_not_have_is_refused(change: dict[str, Any], sentence: str) -> None:
    record, tensors = to_layout(QWEN, parameters_of(QWEN))
    with pytest.raises(InklingError, match=sentence):
        from_layout(record | change, tensors)


def test_weights_that_do_not_fit_are_refused() -> None:
    record, tensors = to_layout(QWEN, parameters_of(QWEN))
    short = {name: value for name, value in tensors.items() if name != "model.norm.weight"}
    with pytest.raises(InklingError, match=r"lacks model\.norm\.weight, which a qwen3 of 2 layers does have"):
        from_layout(record, short)
    bias = {"model.layers.0.self_attn.q_proj.bias": torch.zeros(32)}
    with pytest.raises(InklingError, match=r"has model\.layers\.0\.self_attn\.q_proj\.bias, .* does not have"):
        from_layout(record, tensors | bias)
    with pytest.raises(InklingError, match=r"up_proj\.weight has the shape \(24, 32\), where \(25, 32\) was expected"):
        from_layout(
            record | {"intermediate_size": 25},
            {k: v for k, v in tensors.items() if "gate" not in k}
            | {f"model.layers.{n}.mlp.gate_proj.weight": torch.zeros(25, 32) for n in range(2)},
        )
    head = {"lm_head.weight": tensors["model.embed_tokens.weight"]}
    assert from_layout(record, tensors | head)[0].tied  # some programs write a tied embedding twice
