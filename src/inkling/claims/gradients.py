"""Claims A1–A4: softmax, cross-entropy, one hidden layer, and how the gradients are known to be right."""

from __future__ import annotations

from decimal import Decimal, localcontext

import numpy as np

from inkling.claims.ledger import Claim, Context, Finding, Verdict
from inkling.models.gradients import (
    AUTOGRAD_LIMIT,
    DIFFERENCES_LIMIT,
    Array,
    Check,
    central_differences,
    check,
    cross_entropy,
    network,
    relative_error,
)

SEED = 20


def _softmax(logits: Array) -> Array:
    shifted = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return np.asarray(shifted / shifted.sum(axis=-1, keepdims=True))


def _exact_cross_entropy(logits: Array, target: Array) -> float:
    """−Σ yᵢθᵢ + (Σ yᵢ) ln Σ exp θⱼ for one row, in sixty decimal digits."""
    with localcontext() as context:
        context.prec = 60
        context.Emin, context.Emax = -999999, 999999
        theta, y = [Decimal(float(v)) for v in logits], [Decimal(float(v)) for v in target]
        log_total = sum((t.exp() for t in theta), Decimal(0)).ln()
        return float(sum(((log_total - t) * w for t, w in zip(theta, y, strict=True)), Decimal(0)))


def cross_entropy_form(context: Context) -> Finding:
    generator = np.random.default_rng(SEED)
    worst = 0.0
    for scale in (1e-3, 1.0, 1e2, 1e4):
        for _ in range(25):
            logits = generator.uniform(-scale, scale, (1, 8))
            target = generator.dirichlet(np.ones(8), 1)
            nats, _ = cross_entropy(logits, target)
            truth = _exact_cross_entropy(logits[0], target[0])
            worst = max(worst, abs(nats - truth) / abs(truth))
    verdict: Verdict = "holds" if worst <= 1e-12 else "fails"
    return Finding(
        f"largest relative error {worst:.1e} against 60-digit arithmetic, logits to ±1e4",
        verdict,
        {"largest_relative_error": worst, "cases": 100},
    )


def cross_entropy_gradient(context: Context) -> Finding:
    generator = np.random.default_rng(SEED)
    logits, target = generator.normal(0, 3, (6, 9)), generator.dirichlet(np.ones(9), 6)
    _, backprop = cross_entropy(logits, target)
    by_formula = relative_error(backprop(), _softmax(logits) - target)
    by_differences = relative_error(
        backprop(), central_differences(lambda v: float(cross_entropy(v, target)[0]), logits)
    )
    verdict: Verdict = "holds" if by_formula <= 1e-12 and by_differences <= DIFFERENCES_LIMIT else "fails"
    return Finding(
        f"softmax(θ) − y to {by_formula:.1e}; central differences to {by_differences:.1e}",
        verdict,
        {"formula": by_formula, "differences": by_differences},
    )


def hidden_layer_gradient(context: Context) -> Finding:
    """The formula holds; the two factors that some notes write down do not, and their product is far off."""
    generator = np.random.default_rng(SEED)
    x, W1, b1 = generator.normal(size=(1, 5)), generator.normal(size=(5, 4)), generator.normal(size=4)
    W2, b2 = generator.normal(size=(4, 6)), generator.normal(size=6)
    y = generator.dirichlet(np.ones(6), 1)
    _, backprop = network(x, W1, b1, W2, b2, y)
    d_x = backprop()[0]
    h = 1 / (1 + np.exp(-(x @ W1 + b1)))
    y_hat = _softmax(h @ W2 + b2)
    formula = ((y_hat - y) @ W2.T * h * (1 - h)) @ W1.T
    jacobian = np.diag(y_hat[0]) - y_hat.T @ y_hat
    true_product = (-y / y_hat) @ jacobian
    false_product = (y_hat - y) * (y_hat * (1 - y_hat))
    checks = [c for c in check(np.random.default_rng(SEED)) if c.layer == "network"]
    worst = max(c.differences for c in checks)
    figures = {
        "d_x_formula": relative_error(d_x, formula),
        "true_factors": relative_error(true_product, y_hat - y),
        "published_factors": relative_error(false_product, y_hat - y),
        "differences": worst,
    }
    right = figures["d_x_formula"] <= 1e-12 and figures["true_factors"] <= 1e-12 and all(c.passes for c in checks)
    return Finding(
        f"∂J/∂x by the formula to {figures['d_x_formula']:.1e}; the factors −y⊘ŷ and diag(ŷ) − ŷᵀŷ multiply to ŷ−y "
        f"within {figures['true_factors']:.1e}, while ŷ−y times ŷ(1−ŷ) is off by {figures['published_factors']:.0%}",
        "corrected" if right and figures["published_factors"] > 0.1 else "fails",
        figures,
    )


def gradients_checked(context: Context) -> Finding:
    checks: list[Check] = [c for seed in range(5) for c in check(np.random.default_rng(seed))]
    differences, autograd = max(c.differences for c in checks), max(c.autograd for c in checks)
    return Finding(
        f"{len(checks)} gradients at 5 random points: largest relative error {differences:.1e} against central "
        f"differences, {autograd:.1e} against autograd",
        "holds" if all(c.passes for c in checks) else "fails",
        {"differences": differences, "autograd": autograd, "gradients": len(checks)},
    )


CLAIMS = (
    Claim(
        "A1",
        "Cross-entropy of softmax(θ) is −Σ yᵢθᵢ + ln Σ exp θⱼ for any target with Σy = 1, computed stably to ±1e4.",
        "",
        cross_entropy_form,
    ),
    Claim("A2", "Its gradient is softmax(θ) − y.", "", cross_entropy_gradient),
    Claim(
        "A3",
        "One hidden sigmoid layer: ∂J/∂x = ((ŷ−y)W₂ᵀ ⊙ h⊙(1−h)) W₁ᵀ, likewise for W₁, b₁, W₂, b₂.",
        "∂J/∂ŷ = ŷ−y and ∂ŷ/∂z = ŷ(1−ŷ)",
        hidden_layer_gradient,
    ),
    Claim(
        "A4",
        "Gradients agree with central differences and with autograd.",
        f"≤ {DIFFERENCES_LIMIT:g} and ≤ {AUTOGRAD_LIMIT:g}, relative",
        gradients_checked,
    ),
)
