"""The models of a server, by the names of their runs, each with the threads that work for it.

One torch thread for each of our threads: at the sizes of these models a second one costs more than it brings. What uses
several cores is that several threads work, each on texts of its own.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from inkling.errors import UsageError
from inkling.models.contracts import LanguageModel, Ranking
from inkling.models.dan import AveragingNetwork
from inkling.models.ranking import rank_tokens
from inkling.recipes.scoring import score_rows
from inkling.recipes.verdicts import ClassificationWriter, choose_threshold, judge
from inkling.runs.loading import load_classifier, load_language_model
from inkling.runs.run import Run
from inkling.serve.bodies import Refusal, shown
from inkling.serve.engine import Pool, Post, Task, WritingEngine, deliver
from inkling.serve.limits import Limits
from inkling.serve.metrics import Metrics
from inkling.text.corpus import Row

SCORED_TOGETHER = 16_384  # characters or tokens, after which the next group begins
NAMES_SHOWN = 5
TaskPost = Callable[[Sequence[Task[Any, Any]]], None]


@dataclass(frozen=True)
class Prompt:
    """Tokens to be ranked; `others` of the likeliest at each place are told."""

    ids: tuple[int, ...]
    others: int


@dataclass(frozen=True)
class Opened:
    """A run that was loaded."""

    name: str
    kind: str
    created: int  # seconds since 1970
    model: Any
    threshold: float | None = None  # of a classifier: below which probability a verdict is unsure

    @property
    def is_classifier(self) -> bool:
        return self.kind == "dan"


def open_runs(paths: Iterable[str | Path]) -> list[Opened]:
    found: dict[str, Opened] = {}
    for path in paths:
        run = Run.open(path)
        name = run.path.absolute().name
        if name in found:
            raise UsageError(f"Two runs are called '{name}'; copy one to a folder of another name.")
        created = _seconds(run.info.get("started"))
        if run.kind == "dan":
            found[name] = Opened(name, run.kind, created, load_classifier(run), choose_threshold(run, None))
        else:
            found[name] = Opened(name, run.kind, created, load_language_model(run))
    return list(found.values())


class LanguageService:
    """A language model at work: one thread that writes, one that scores."""

    def __init__(self, opened: Opened, limits: Limits, metrics: Metrics, post: Post, post_tasks: TaskPost) -> None:
        self.opened, self.name = opened, opened.name
        self.model: LanguageModel[Any] = opened.model
        self.engine = WritingEngine(
            self.model,
            post,
            batch=limits.batch,
            queue=limits.queue,
            lanes=limits.lanes,
            on_step=metrics.stepped(self.name),
            name=f"write-{self.name}",
        )
        self.scoring: Pool[str | Prompt, dict[str, Any] | Ranking] = Pool(
            self._score, post_tasks, most=SCORED_TOGETHER, queue=limits.queue, name=f"score-{self.name}"
        )
        metrics.depths[f"write {self.name}"] = lambda: self.engine.depth
        metrics.depths[f"score {self.name}"] = lambda: self.scoring.depth

    def close(self) -> None:
        self.engine.close()
        self.scoring.close()

    def _score(self, items: Sequence[str | Prompt]) -> Sequence[dict[str, Any] | Ranking]:
        """Texts with the figures of `inkling score`, prompts with what each token costs."""
        found: dict[int, dict[str, Any] | Ranking] = {}
        texts = {i: item for i, item in enumerate(items) if isinstance(item, str)}
        if texts:
            scores = score_rows(self.model, list(texts.values()))
            columns = (scores.nats, scores.tokens, scores.unknown, scores.bytes, scores.bits_per_byte)
            names = ("nats", "tokens", "unknown", "bytes", "bits_per_byte")
            for i, *values in zip(texts, *(column.tolist() for column in columns), strict=True):
                found[i] = dict(zip(names, values, strict=True))
        prompts = {i: item for i, item in enumerate(items) if isinstance(item, Prompt)}
        for others in sorted({prompt.others for prompt in prompts.values()}):
            group = {i: prompt for i, prompt in prompts.items() if prompt.others == others}
            ranked = rank_tokens(self.model, [prompt.ids for prompt in group.values()], others)
            found |= dict(zip(group, ranked, strict=True))
        return [found[i] for i in range(len(items))]


class ClassifierService:
    """A classifier at work, in one thread."""

    def __init__(self, opened: Opened, limits: Limits, metrics: Metrics, post_tasks: TaskPost) -> None:
        self.opened, self.name = opened, opened.name
        self.network: AveragingNetwork = opened.model
        self.pool: Pool[tuple[str, bool, bool], dict[str, Any]] = Pool(
            self._judge, post_tasks, most=SCORED_TOGETHER, queue=limits.queue, name=f"judge-{self.name}"
        )
        metrics.depths[f"judge {self.name}"] = lambda: self.pool.depth

    def close(self) -> None:
        self.pool.close()

    def _judge(self, items: Sequence[tuple[str, bool, bool]]) -> Sequence[dict[str, Any]]:
        """Each (text, why, all labels), as `inkling classify` has it in its JSON lines."""
        found: dict[int, dict[str, Any]] = {}
        for why, all_labels in sorted({item[1:] for item in items}):
            group = [i for i, item in enumerate(items) if item[1:] == (why, all_labels)]
            rows = [Row(items[i][0], None, "", i, False) for i in group]
            writer = ClassificationWriter(
                None, self.network.labels, self.opened.threshold, all_labels=all_labels, why=why
            )
            for record in writer.records(judge(self.network, rows, why=why)):
                found[record.pop("row")] = record
        return [found[i] for i in range(len(items))]


class Shelf:
    """All of them. `pick` finds the one that a request means."""

    def __init__(
        self,
        opened: Sequence[Opened],
        limits: Limits,
        metrics: Metrics,
        post: Post = deliver,
        post_tasks: TaskPost | None = None,
    ) -> None:
        tasks = post_tasks or finish_here
        self.opened = tuple(opened)
        self.language = {
            one.name: LanguageService(one, limits, metrics, post, tasks) for one in opened if not one.is_classifier
        }
        self.classifiers = {
            one.name: ClassifierService(one, limits, metrics, tasks) for one in opened if one.is_classifier
        }

    def close(self) -> None:
        for service in self.language.values():
            service.close()
        for classifier in self.classifiers.values():
            classifier.close()

    def language_model(self, name: str | None) -> LanguageService:
        return self.language[self._pick(name, list(self.language), "language model", "/v1/classify")]

    def classifier(self, name: str | None) -> ClassifierService:
        return self.classifiers[self._pick(name, list(self.classifiers), "classifier", "/v1/completions or /v1/score")]

    def _pick(self, name: str | None, fitting: list[str], wanted: str, elsewhere: str) -> str:
        every = [one.name for one in self.opened]
        if name is None:
            if len(fitting) == 1:
                return fitting[0]
            if not fitting:
                raise Refusal(f"No {wanted} is served here; start the server with one.", status=404, param="model")
            raise Refusal(f"'model' is missing; name one of {_listed(fitting)}.", param="model")
        if name in fitting:
            return name
        if name in every:
            raise Refusal(
                f"'model' is {shown(name)}, which is no {wanted}; use it at {elsewhere}.", status=400, param="model"
            )
        nearest = difflib.get_close_matches(name, every, n=1, cutoff=0.0)
        hint = f"; did you mean '{nearest[0]}'?" if nearest and len(every) > 1 else f"; there is {_listed(every)}."
        raise Refusal(f"There is no model {shown(name)}{hint}", status=404, param="model", code="model_not_found")


def finish_here(tasks: Sequence[Task[Any, Any]]) -> None:
    for task in tasks:
        task.finish(task)


def _listed(names: Sequence[str]) -> str:
    shown_names = ", ".join(f"'{name}'" for name in names[:NAMES_SHOWN])
    return shown_names + (" …" if len(names) > NAMES_SHOWN else "")


def _seconds(started: Any) -> int:
    try:
        return int(datetime.fromisoformat(str(started)).timestamp())
    except ValueError:
        return 0
