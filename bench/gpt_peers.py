"""What bench/gpt.py compares with: the usual small GPT in plain PyTorch, and the transformers library."""

from __future__ import annotations

import importlib.util
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

LAYERS, HEADS, WIDTH, CONTEXT, BATCH = 4, 4, 128, 64, 12
RATE, LAST_RATE, WARM_UP, BETAS, DECAY = 1e-3, 1e-4, 100, (0.9, 0.99), 0.1
JUDGED_AT_ONCE = 64  # windows


@dataclass
class Course:
    """How a training went: its seconds, judging left out, and held-out nats per character, each after some steps."""

    name: str
    steps: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    nats: list[float] = field(default_factory=list)

    def note(self, step: int, seconds: float, nats: float) -> None:
        self.steps.append(step)
        self.seconds.append(seconds)
        self.nats.append(nats)

    def seconds_to(self, target: float) -> float | None:
        """On the line between the points before and after; None where it does not get there."""
        for place, nats in enumerate(self.nats):
            if nats <= target:
                if not place:
                    return self.seconds[0]
                before, share = place - 1, (self.nats[place - 1] - target) / (self.nats[place - 1] - nats)
                return self.seconds[before] + share * (self.seconds[place] - self.seconds[before])
        return None


@torch.no_grad()
def judge(logits: Callable[[Tensor], Tensor], ids: Tensor, context: int) -> float:
    """Nats per character of all but the first of `ids`, in windows of `context` that do not overlap."""
    whole, nats = (len(ids) - 1) // context, 0.0
    inputs, targets = (ids[shift : shift + whole * context].view(whole, context) for shift in (0, 1))
    starts = range(0, whole, JUDGED_AT_ONCE)
    parts = [(inputs[n : n + JUDGED_AT_ONCE], targets[n : n + JUDGED_AT_ONCE]) for n in starts]
    if whole * context < len(ids) - 1:
        parts.append((ids[whole * context : -1][None], ids[whole * context + 1 :][None]))
    for x, y in parts:
        nats += float(functional.cross_entropy(logits(x).flatten(0, 1), y.flatten(), reduction="sum"))
    return nats / (len(ids) - 1)


class _Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.before_attention, self.before_mlp = nn.LayerNorm(WIDTH, bias=False), nn.LayerNorm(WIDTH, bias=False)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH, bias=False), nn.Linear(WIDTH, WIDTH, bias=False)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH, bias=False), nn.Linear(4 * WIDTH, WIDTH, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        B, T, _ = x.shape
        q, k, v = (p.view(B, T, HEADS, -1).transpose(1, 2) for p in self.qkv(self.before_attention(x)).chunk(3, dim=-1))
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(B, T, WIDTH))
        added: Tensor = x + self.down(functional.gelu(self.up(self.before_mlp(x))))
        return added


class PlainGPT(nn.Module):
    """As GPT-2: places are learned vectors, LayerNorm before each part, GELU, the embedding is the output too."""

    def __init__(self, vocabulary: int) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocabulary, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.blocks, self.last = nn.ModuleList(_Block() for _ in range(LAYERS)), nn.LayerNorm(WIDTH, bias=False)
        for name, p in self.named_parameters():
            if p.ndim == 2:
                quiet = name.endswith(("out.weight", "down.weight"))
                nn.init.normal_(p, std=0.02 / math.sqrt(2 * LAYERS) if quiet else 0.02)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.tokens(ids) + self.places(torch.arange(ids.shape[1]))
        for block in self.blocks:
            x = block(x)
        return functional.linear(self.last(x), self.tokens.weight)


def plain_pytorch(train: Tensor, held: Tensor, vocabulary: int, steps: int, judged_at: Sequence[int]) -> Course:
    """The commonest recipe for a CPU: float32, AdamW, random windows, warm-up and a cosine."""
    warm_up(vocabulary)
    torch.manual_seed(0)
    course, started, judging = Course("(a) plain PyTorch, AdamW"), time.perf_counter(), 0.0
    model = PlainGPT(vocabulary)
    matrices, others = ([p for p in model.parameters() if (p.ndim >= 2) == wide] for wide in (True, False))
    groups = [{"params": matrices, "weight_decay": DECAY}, {"params": others, "weight_decay": 0.0}]
    optimiser = torch.optim.AdamW(groups, lr=RATE, betas=BETAS)
    for step in range(steps):
        for group in optimiser.param_groups:
            group["lr"] = _rate(step, steps)
        first = torch.randint(len(train) - CONTEXT - 1, (BATCH,))
        chosen = train[first[:, None] + torch.arange(CONTEXT + 1)]
        loss = functional.cross_entropy(model(chosen[:, :-1]).flatten(0, 1), chosen[:, 1:].flatten())
        optimiser.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        if step + 1 in judged_at:
            stopped = time.perf_counter()
            course.note(step + 1, stopped - started - judging, judge(model, held, CONTEXT))
            judging += time.perf_counter() - stopped
    return course


def warm_up(vocabulary: int) -> None:
    """A step that nobody times: torch imports parts of itself only when an optimiser asks for them."""
    model = PlainGPT(vocabulary)
    optimiser = torch.optim.AdamW(model.parameters())
    model(torch.zeros(1, 2, dtype=torch.int64)).sum().backward()
    optimiser.step()


def _rate(step: int, steps: int) -> float:
    if step < WARM_UP:
        return RATE * (step + 1) / WARM_UP
    share = (step - WARM_UP) / max(1, steps - WARM_UP)
    return LAST_RATE + (RATE - LAST_RATE) * (1 + math.cos(math.pi * share)) / 2


def trainer_is_there() -> bool:
    """The library's Trainer wants another package."""
    return all(importlib.util.find_spec(name) for name in ("transformers", "accelerate"))


def quiet_library() -> Any:
    import transformers

    library: Any = transformers
    library.utils.logging.disable_progress_bar()
    library.utils.logging.set_verbosity_error()
    return library


def their_trainer(
    train: Tensor, held: Tensor, vocabulary: int, steps: int, judged_at: Sequence[int], folder: Path
) -> Course:
    """GPT-2 of the transformers library of the same size, with the same batch, steps and rates, by its Trainer."""
    from transformers import PrinterCallback, Trainer, TrainerCallback, TrainingArguments

    class Windows(torch.utils.data.Dataset[dict[str, Tensor]]):
        def __init__(self) -> None:
            random = torch.Generator().manual_seed(0)
            self.first = torch.randint(len(train) - CONTEXT - 1, (steps * BATCH,), generator=random).tolist()

        def __len__(self) -> int:
            return len(self.first)

        def __getitem__(self, number: int) -> dict[str, Tensor]:
            chosen = train[self.first[number] : self.first[number] + CONTEXT + 1]
            return {"input_ids": chosen, "labels": chosen}  # it shifts them itself

    library = quiet_library()
    course, started, judging = Course("(b) transformers' GPT-2, its Trainer"), time.perf_counter(), 0.0

    class Judging(TrainerCallback):
        def on_step_end(self, args: Any, state: Any, control: Any, **given: Any) -> None:
            nonlocal judging
            if state.global_step in judged_at:
                stopped = time.perf_counter()
                model.eval()
                course.note(
                    state.global_step,
                    stopped - started - judging,
                    judge(lambda ids: model(input_ids=ids).logits, held, CONTEXT),
                )
                model.train()
                judging += time.perf_counter() - stopped

    sizes: dict[str, Any] = {"vocab_size": vocabulary, "n_positions": CONTEXT + 1, "n_embd": WIDTH}
    sizes |= {"n_layer": LAYERS, "n_head": HEADS, "bos_token_id": 0, "eos_token_id": 0}
    sizes |= dict.fromkeys(("resid_pdrop", "embd_pdrop", "attn_pdrop"), 0.0)
    torch.manual_seed(0)
    model: Any = library.GPT2LMHeadModel(library.GPT2Config(**sizes))
    settings: dict[str, Any] = {
        "output_dir": str(folder),
        "max_steps": steps,
        "per_device_train_batch_size": BATCH,
        "learning_rate": RATE,
        "warmup_steps": WARM_UP,
        "lr_scheduler_type": "cosine_with_min_lr",
        "lr_scheduler_kwargs": {"min_lr": LAST_RATE},
        "adam_beta1": BETAS[0],
        "adam_beta2": BETAS[1],
        "weight_decay": DECAY,
        "report_to": [],
        "save_strategy": "no",
        "logging_strategy": "no",
        "use_cpu": True,
        "disable_tqdm": True,
    }
    trainer = Trainer(model, TrainingArguments(**settings), train_dataset=Windows(), callbacks=[Judging()])
    trainer.remove_callback(PrinterCallback)
    trainer.train()
    return course


@dataclass(frozen=True)
class Theirs:
    """A directory of ours, opened by the transformers library."""

    model: Any

    @classmethod
    def open(cls, folder: Path) -> Theirs:
        model: Any = quiet_library().AutoModelForCausalLM.from_pretrained(folder)
        return cls(model.eval())

    @torch.no_grad()
    def write(self, begin: int, texts: int, tokens: int) -> list[list[int]]:
        """Greedily, after the token `begin`: texts × tokens."""
        ids = torch.full((texts, 1), begin)
        exactly = {"max_new_tokens": tokens, "min_new_tokens": tokens, "do_sample": False, "use_cache": True}
        found = self.model.generate(ids, attention_mask=torch.ones_like(ids), pad_token_id=begin, **exactly)
        written: list[list[int]] = found[:, 1:].tolist()
        return written

    @torch.no_grad()
    def nats(self, ids: Tensor) -> Tensor:
        """Of all but the first token of each window (B×T)."""
        log_probs = torch.log_softmax(self.model(input_ids=ids).logits[:, :-1], dim=-1)
        return -log_probs.gather(2, ids[:, 1:, None])[:, :, 0]
