"""What each attention head of a trained model does: where it looks, and what is lost without it.

    found = census(model, ids, seed=0)        # any model with the contract Attentive
    found.sentences(), found.tables(), found.page()

Where a head looks is in explain/attending.py, what it is called and how it is shown in explain/census.py. Here heads
are touched, one at a time, and the loss on the same texts compared (Σ over charged tokens, text by text):

    removed     the head adds its mean output m (over all places of all the texts) instead of its own
    direct      only the last residual changes: x − output + m; what the layers between would do differently is left out
    noised      Gaussian noise on its keys, by default 10 % of their root-mean-square length along any direction

Compensation, direct − removed, is what later layers make up for. The rise per token is a ratio of sums over texts,
r = Σ dᵢ / Σ bᵢ, and its interval that of Student's t over the linearised texts yᵢ = r + (dᵢ − r bᵢ) / b̄.

Left out: heads removed together (two that do the same can each be spared), texts of unequal lengths.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from inkling.errors import UsageError
from inkling.explain.attending import Floats, HeadSums, sum_of_head
from inkling.explain.census import Census, HeadFigures, attention_maps
from inkling.measure.intervals import Interval, student_quantile
from inkling.models.contracts import Attentive, Head, Touch

SKIPPED = 2
KEY_NOISE = 0.1


def census(
    model: Attentive,
    ids: Tensor,
    *,
    seed: int = 0,
    first_places_skipped: int = SKIPPED,
    charged: Tensor | None = None,
    key_noise: float = KEY_NOISE,
    tokens: Sequence[str] = (),
    texts_at_once: int = 64,
    progress: Callable[[int, int], None] | None = None,
) -> Census:
    """Every head of `model` on the texts `ids` (B×T).

    `charged` (B×T, True or False) says which tokens the loss is over, by default all but the first of each text.
    `seed` is that of the noise on keys. `tokens` names the tokens of the first text, for its maps. `texts_at_once`
    bounds the memory and changes no figure. `progress` is told how many of the heads, once for each part of the texts,
    have been touched, and of how many.
    """
    _check(ids, first_places_skipped, key_noise, texts_at_once)
    counts = _counts(ids, charged)
    heads = [(layer, head) for layer in range(model.layers) for head in range(model.heads)]
    plain, sums, totals = np.zeros(len(ids)), dict[Head, HeadSums](), dict[Head, Tensor]()
    for part in _parts(len(ids), texts_at_once):
        look = model.look(ids[part])
        plain[part] = _nats(look.log_probs, ids[part], counts[part])
        for layer, head in heads:
            output = look.outputs[layer][:, head]
            found = sum_of_head(
                ids[part],
                look.scores[layer][:, head],
                look.weights[layer][:, head],
                model.unembed(output),
                first_places_skipped,
            )
            total = output.double().sum((0, 1))
            known = (layer, head) in sums
            sums[layer, head] = sums[layer, head] + found if known else found
            totals[layer, head] = totals[layer, head] + total if known else total

    removed, direct, noised = ({head: np.zeros(len(ids)) for head in heads} for _ in range(3))
    moved = dict.fromkeys(heads, 0.0)
    touched, all_touched = 0, len(heads) * len(list(_parts(len(ids), texts_at_once)))
    for part in _parts(len(ids), texts_at_once):
        look, texts = model.look(ids[part]), ids[part]
        for layer, head in heads:
            at, output = (layer, head), look.outputs[layer][:, head]
            mean = (totals[at] / ids.numel()).to(output.dtype)
            without = model.look(texts, Touch(replaced={at: mean}))
            removed[at][part] = _nats(without.log_probs, texts, counts[part])
            exchanged = torch.log_softmax(model.unembed(look.residual - output + mean), dim=-1)
            direct[at][part] = _nats(exchanged, texts, counts[part])
            noisy = model.look(texts, Touch(key_noise={at: key_noise}, seed=seed, first_text=part.start))
            noised[at][part] = _nats(noisy.log_probs, texts, counts[part])
            apart = (noisy.weights[layer][:, head] - look.weights[layer][:, head]).double().abs()
            moved[at] += float(apart[:, first_places_skipped:].sum()) / 2
            touched += 1
            if progress is not None:
                progress(touched, all_touched)

    charged_tokens = counts.double().sum(1).numpy()
    figures = []
    for at in heads:
        effects = {
            "removed": removed[at] - plain,
            "direct": direct[at] - plain,
            "made_up": direct[at] - removed[at],
            "noised": noised[at] - plain,
        }
        intervals = {name: rise_per_token(nats, charged_tokens) for name, nats in effects.items()}
        figures.append(_figures(at, sums[at], intervals, moved[at]))
    whole = float(charged_tokens.sum())
    maps = attention_maps(model, ids[0], tokens)
    return Census(tuple(figures), len(ids), int(whole), float(plain.sum()) / whole, key_noise, maps)


def rise_per_token(nats: Floats, tokens: Floats, level: float = 0.95) -> Interval:
    """Σ nats / Σ tokens over texts, with its interval (see above); NaN at both ends where there is only one text."""
    full = tokens > 0
    nats, tokens = nats[full], tokens[full]
    n, ratio = len(nats), float(nats.sum() / tokens.sum())
    if n < 2:
        return Interval(ratio, float("nan"), float("nan"), level)
    apart = (nats - ratio * tokens) / tokens.mean()
    error = float(np.sqrt((apart**2).sum() / (n * (n - 1))))
    reach = student_quantile(level, n - 1) * error
    return Interval(ratio, ratio - reach, ratio + reach, level)


def _figures(at: Head, sums: HeadSums, effects: dict[str, Interval], moved: float) -> HeadFigures:
    found, nan = sums.induction_places, float("nan")
    return HeadFigures(
        layer=at[0],
        head=at[1],
        places=sums.places,
        even=sums.even / sums.places,
        top_weight=sums.top_weight / sums.places,
        copies=sums.copies / sums.places,
        entropy_nats=sums.entropy_nats / sums.places,
        keys_in_use=sums.keys_in_use / sums.places,
        share_in_use=sums.keys_in_use / sums.keys,
        one_back=sums.one_back / sums.places,
        first_token=sums.first_token / sums.places,
        itself=sums.itself / sums.places,
        induction_places=found,
        induction=sums.induction / found if found else nan,
        induction_even=sums.induction_even / found if found else nan,
        margin_median=float(np.median(sums.margins)),
        beta_median=float(np.median(sums.betas)),
        weights_moved=moved / sums.places,
        **effects,
    )


def _nats(log_probs: Tensor, ids: Tensor, counts: Tensor) -> Floats:
    """Of the charged tokens of each text; log_probs B×T×V are of the token after each place."""
    picked = log_probs[:, :-1].gather(2, ids[:, 1:, None])[..., 0].double()
    found: Floats = -torch.where(counts, picked, 0.0).sum(1).numpy()
    return found


def _counts(ids: Tensor, charged: Tensor | None) -> Tensor:
    """B×(T−1): whether the token after each place is charged."""
    if charged is None:
        return torch.ones(len(ids), ids.shape[1] - 1, dtype=torch.bool)
    if charged.shape != ids.shape or charged.dtype != torch.bool:
        raise UsageError(
            f"The charged tokens are of shape {tuple(charged.shape)} and type {charged.dtype}; give True or False for "
            f"each of the tokens, {tuple(ids.shape)}."
        )
    if not charged[:, 1:].any():
        raise UsageError("No token is charged, so there is no loss to compare; mark at least one after the first.")
    return charged[:, 1:]


def _parts(texts: int, at_once: int) -> Iterator[slice]:
    return (slice(start, min(start + at_once, texts)) for start in range(0, texts, at_once))


def _check(ids: Tensor, skipped: int, key_noise: float, texts_at_once: int) -> None:
    if ids.ndim != 2:
        raise UsageError(f"The tokens have shape {tuple(ids.shape)}; give texts × tokens, all texts of one length.")
    texts, times = ids.shape
    if not texts:
        raise UsageError("There are no texts to watch the heads on; give at least one, better 20.")
    if times < 3:
        raise UsageError(f"The texts have {times} tokens; a head has a choice only with at least 3.")
    if not 1 <= skipped < times:
        raise UsageError(
            f"{skipped} first places of texts of {times} tokens are skipped; skip from 1, where there is only one key "
            f"to look at, to {times - 1}."
        )
    if not 0 <= key_noise < float("inf"):
        raise UsageError(f"key_noise is {key_noise}; give a share of the keys' length, 0 or more.")
    if texts_at_once < 1:
        raise UsageError(f"texts_at_once is {texts_at_once}; give at least 1.")
