"""Models that were opened, so that a second question does not load them again.

A model is known by its run and the state of its weights: when a training saves, the next question is answered by what
it has learned since. The last few are kept. Call from a thread: loading takes up to seconds.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from inkling.models.dan import AveragingNetwork
    from inkling.models.gpt_model import Transformer
    from inkling.runs.loading import LanguageModelRun
    from inkling.runs.run import Run

KEPT = 4


class Shelf:
    def __init__(self, find: Callable[[str], Run]) -> None:
        self._find = find
        self._lock = threading.Lock()
        self._opened: OrderedDict[tuple[str, str], Any] = OrderedDict()

    def language_model(self, name: str) -> LanguageModelRun:
        from inkling.runs.loading import load_language_model

        model: LanguageModelRun = self._open(name, load_language_model)
        return model

    def classifier(self, name: str) -> AveragingNetwork:
        from inkling.runs.loading import load_classifier

        model: AveragingNetwork = self._open(name, load_classifier)
        return model

    def transformer(self, name: str) -> Transformer:
        from inkling.errors import InklingError
        from inkling.models.gpt_model import Transformer

        model = self.language_model(name)
        if not isinstance(model, Transformer):
            raise InklingError(f"'{name}' has no attention heads; choose a run of kind gpt.")
        return model

    def _open(self, name: str, load: Callable[[Run], Any]) -> Any:
        run = self._find(name)
        weights = run.path / "model.safetensors" if run.finished else run.checkpoints()[-1]
        key = (name, f"{weights.name} {weights.stat().st_mtime_ns}")
        with self._lock:
            if key not in self._opened:
                for old in [other for other in self._opened if other[0] == name]:
                    del self._opened[old]
                self._opened[key] = load(run)
            self._opened.move_to_end(key)
            while len(self._opened) > KEPT:
                self._opened.popitem(last=False)
            return self._opened[key]
