"""Inkling trains, measures and explains small neural text models on the computer you have."""

from __future__ import annotations

__version__ = "0.1.0"
