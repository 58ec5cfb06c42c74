"""All rows of the ledger, in order."""

from __future__ import annotations

from inkling.claims import attention, averaging, bigram, gradients, knowledge, mistakes, perplexity, recurrent, tokens
from inkling.claims.ledger import Claim

CLAIMS: tuple[Claim, ...] = (
    *gradients.CLAIMS,
    *bigram.CLAIMS,
    *recurrent.CLAIMS,
    *tokens.CLAIMS,
    *perplexity.CLAIMS,
    *averaging.CLAIMS,
    *mistakes.CLAIMS,
    *attention.CLAIMS,
    *knowledge.CLAIMS,
)
