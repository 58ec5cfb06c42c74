"""`inkling train …` and `inkling resume`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from inkling.cli.following import announce, fill_recipe, follow, run_path, write_lines
from inkling.cli.options import (
    AnswerColumn,
    BadRows,
    ConfigFile,
    Encoding,
    Files,
    Format,
    Header,
    Json,
    LabelColumn,
    Normalise,
    Out,
    QuestionColumn,
    Seed,
    TextColumn,
)

if TYPE_CHECKING:
    from inkling.models.dan import AveragingNetwork
    from inkling.recipes.labelled_text import LabelledText

app = typer.Typer(
    help="Train a model on your text.\n\n\b\nExample:\n  inkling train bigram novel.txt",
    no_args_is_help=True,
    rich_markup_mode=None,
)

HeldOut = Annotated[list[str] | None, typer.Option(help="Files to judge by. [default: a tenth of the text]")]
Vocabulary = Annotated[int | None, typer.Option(help="How many ids; rarer words are spelled out as unknown.")]
Cut = Annotated[str | None, typer.Option("--pieces", help="words, or spaces for text that is already tokenised.")]
Exclude = Annotated[list[str] | None, typer.Option(help="Words that get no id, such as <unk>; may be repeated.")]


@app.command()
def bigram(
    files: Files,
    held_out: HeldOut = None,
    out: Out = None,
    vocabulary: Vocabulary = None,
    hidden: Annotated[int | None, typer.Option(help="Hidden units. [default: 100]")] = None,
    vectors: Annotated[str | None, typer.Option(help="Word vectors to start from: a file, or data:glove-50d.")] = None,
    fixed_vectors: Annotated[bool, typer.Option(help="Keep the vectors as they are.")] = False,
    method: Annotated[str | None, typer.Option(help="exact (default), or sgd as published.")] = None,
    minutes: Annotated[float | None, typer.Option(help="Stop after this time at the latest.")] = None,
    steps: Annotated[int | None, typer.Option(help="Passes over all pairs (exact) or batches (sgd).")] = None,
    rate: Annotated[float | None, typer.Option(help="Learning rate.")] = None,
    dropout: Annotated[float | None, typer.Option(help="Share of features left out in each step.")] = None,
    discount: Annotated[float | None, typer.Option(help="Taken off the count of each pair, 0 to 1.")] = None,
    pieces: Cut = None,
    exclude: Exclude = None,
    normalise: Normalise = None,
    seed: Seed = None,
    text_column: TextColumn = None,
    encoding: Encoding = None,
    header: Header = None,
    format: Format = None,
    bad_rows: BadRows = None,
    config: ConfigFile = None,
    json: Json = False,
) -> None:
    """Train the neural word bigram model.

    The whole text enters through its pair counts, so training takes seconds to a minute. A tenth of the text is held
    out to know when to stop. Ctrl-C keeps what was learned; `inkling resume` goes on.

    \b
    Examples:
      inkling train bigram novel.txt
      inkling train bigram reviews.csv --text-column review --vocabulary 8000
      inkling train bigram news/ --vectors glove.6B.50d.txt --out runs/news
      inkling train bigram ptb.train.txt --held-out ptb.valid.txt --pieces spaces --exclude "<unk>"
    """
    given = locals() | {"learn_vectors": False if fixed_vectors else None}
    from inkling.recipes.bigram import BigramRecipe, train_bigram

    recipe = fill_recipe(BigramRecipe, given)
    path = run_path(out, "bigram", recipe.files)
    follow(lambda say: train_bigram(recipe, path, say), path, json)


@app.command()
def ngram(
    files: Files,
    held_out: HeldOut = None,
    out: Out = None,
    order: Annotated[int | None, typer.Option(help="Tokens in an n-gram: 2 is a bigram. [default: 2]")] = None,
    tokens: Annotated[str | None, typer.Option(help="word (default), character, byte or bpe.")] = None,
    vocabulary: Vocabulary = None,
    discounts: Annotated[str | None, typer.Option(help="modified (default, three a level) or single.")] = None,
    pieces: Cut = None,
    exclude: Exclude = None,
    normalise: Normalise = None,
    text_column: TextColumn = None,
    encoding: Encoding = None,
    header: Header = None,
    format: Format = None,
    bad_rows: BadRows = None,
    config: ConfigFile = None,
    json: Json = False,
) -> None:
    """Count n-grams with Kneser-Ney smoothing: the honest baseline, in seconds.

    \b
    Examples:
      inkling train ngram novel.txt --order 3
      inkling train ngram novel.txt --order 6 --tokens character
    """
    given = locals()
    from inkling.recipes.ngram import NGramRecipe, train_ngram
    from inkling.report.terminal import notice

    recipe = fill_recipe(NGramRecipe, given)
    announce(train_ngram(recipe, run_path(out, "ngram", recipe.files), notice), json)


@app.command()
def gru(
    files: Files,
    held_out: HeldOut = None,
    out: Out = None,
    minutes: Annotated[float | None, typer.Option(help="How long to train; sizes the model. [default: 5]")] = None,
    tokens: Annotated[str | None, typer.Option(help="character (default), byte, bpe or word.")] = None,
    vocabulary: Vocabulary = None,
    hidden: Annotated[int | None, typer.Option(help="Units of a layer. [default: by the minutes]")] = None,
    layers: Annotated[int | None, typer.Option(help="1, 2 or 3. [default: 1]")] = None,
    dimension: Annotated[int | None, typer.Option(help="Of the vector of a token.")] = None,
    tied: Annotated[bool | None, typer.Option(help="Use the token vectors for the output too.")] = None,
    norm: Annotated[bool | None, typer.Option(help="Normalise the output of each layer.")] = None,
    dropout: Annotated[float | None, typer.Option(help="Share of units left out. [default: by the epochs]")] = None,
    chunk: Annotated[int | None, typer.Option(help="Tokens that gradients go back through. [default: 32]")] = None,
    batch: Annotated[int | None, typer.Option(help="Places of the text read side by side.")] = None,
    steps: Annotated[int | None, typer.Option(help="Chunks to read. [default: as the minutes allow]")] = None,
    rate: Annotated[float | None, typer.Option(help="Learning rate.")] = None,
    patience: Annotated[int | None, typer.Option(help="Stop after so many evaluations without a better one.")] = None,
    pieces: Cut = None,
    exclude: Exclude = None,
    normalise: Normalise = None,
    seed: Seed = None,
    text_column: TextColumn = None,
    encoding: Encoding = None,
    header: Header = None,
    format: Format = None,
    bad_rows: BadRows = None,
    config: ConfigFile = None,
    json: Json = False,
) -> None:
    """Train the recurrent model, on characters unless told otherwise.

    A few steps are timed, and from the minutes follow the size of the model and its schedule. The best weights on
    held-out text are kept; on a terminal it writes a line now and then. Ctrl-C keeps what was learned; `inkling resume`
    goes on.

    \b
    Examples:
      inkling train gru novel.txt --minutes 2
      inkling train gru novel.txt --hidden 512 --layers 2 --dropout 0.3 --minutes 30
      inkling train gru reviews.csv --text-column review --tokens bpe --vocabulary 2000
    """
    given = locals()
    from inkling.recipes.gru import GRURecipe, train_gru

    recipe = fill_recipe(GRURecipe, given)
    path = run_path(out, "gru", recipe.files)
    follow(lambda say: train_gru(recipe, path, say, write_lines(path)), path, json, shared=True)


@app.command()
def gpt(
    files: Files,
    held_out: HeldOut = None,
    out: Out = None,
    minutes: Annotated[float | None, typer.Option(help="How long to train; sizes the model. [default: 5]")] = None,
    tokens: Annotated[str | None, typer.Option(help="character (default), byte, bpe or word.")] = None,
    vocabulary: Vocabulary = None,
    objective: Annotated[
        str | None,
        typer.Option(
            help="next (default); of documents span-corruption, recall, naming, question, reading, or a mixture."
        ),
    ] = None,
    pairs: Annotated[
        list[str] | None, typer.Option(help="Questions and answers about the documents, to learn from as well.")
    ] = None,
    question_column: QuestionColumn = None,
    answer_column: AnswerColumn = None,
    layers: Annotated[int | None, typer.Option(help="[default: by the minutes and the text]")] = None,
    width: Annotated[int | None, typer.Option(help="Of the vector of a token. [default: likewise]")] = None,
    heads: Annotated[int | None, typer.Option(help="Of attention in a layer. [default: of 32 coordinates]")] = None,
    key_value_heads: Annotated[int | None, typer.Option(help="Different keys. [default: one a head]")] = None,
    mlp: Annotated[int | None, typer.Option(help="Width of the layer after attention. [default: 3 × width]")] = None,
    context: Annotated[
        int | None, typer.Option(help="The most tokens that are read at once. [default: by the minutes]")
    ] = None,
    batch: Annotated[int | None, typer.Option(help="Texts of that length in a step. [default: by the minutes]")] = None,
    short_share: Annotated[
        float | None,
        typer.Option(help="Of the steps, which read twice the texts of half the length."),
    ] = None,
    activation: Annotated[
        str | None, typer.Option(help="gated (default), or squared_relu: faster, opens in Inkling only.")
    ] = None,
    grams: Annotated[
        int | None, typer.Option(help="Tables for runs of 2, of 2 and 3, … tokens: opens in Inkling only.")
    ] = None,
    gram_rows: Annotated[int | None, typer.Option(help="Rows of each such table. [default: 32768]")] = None,
    tied: Annotated[bool | None, typer.Option(help="Use the token vectors for the output too.")] = None,
    rotary_base: Annotated[float | None, typer.Option(help="Of the rotation by place. [default: by context]")] = None,
    steps: Annotated[int | None, typer.Option(help="Batches to read. [default: as the minutes allow]")] = None,
    rate: Annotated[float | None, typer.Option(help="Of the matrices, with Muon. [default: by the minutes]")] = None,
    embedding_rate: Annotated[
        float | None, typer.Option(help="Of the token vectors, with Adam. [default: by --rate]")
    ] = None,
    output_rate: Annotated[float | None, typer.Option(help="Of the output, with Adam. [default: by --rate]")] = None,
    decay: Annotated[float | None, typer.Option(help="Pull to zero of matrices. [default: by the epochs]")] = None,
    dropout: Annotated[float | None, typer.Option(help="Share left out of layers. [default: by the epochs]")] = None,
    precision: Annotated[str | None, typer.Option(help="auto (default: tried), float32 or bfloat16.")] = None,
    workers: Annotated[int | None, typer.Option(help="Threads that share the texts of a step. [default: all]")] = None,
    patience: Annotated[int | None, typer.Option(help="Stop after so many evaluations without a better one.")] = None,
    pieces: Cut = None,
    exclude: Exclude = None,
    normalise: Normalise = None,
    seed: Seed = None,
    text_column: TextColumn = None,
    encoding: Encoding = None,
    header: Header = None,
    format: Format = None,
    bad_rows: BadRows = None,
    config: ConfigFile = None,
    json: Json = False,
) -> None:
    """Train the small transformer, on characters unless told otherwise.

    A few steps are timed, and from the minutes and the text follow the size of the model and its schedule. The best
    weights on held-out text are kept; on a terminal it writes a line now and then. The run opens in the transformers
    library too. Ctrl-C keeps what was learned; `inkling resume` goes on. A loss that jumps, or is no longer a number,
    ends the training with the last checkpoint kept.

    With --pairs, or an objective for documents, every line is a document about its first words, tokens are bpe unless
    told otherwise, and the model can be asked afterwards (`inkling answer`). All documents are then learned from.

    \b
    Objectives, also mixed, with shares: recall=3,question=1
      next              each token from those before it
      span-corruption   a part that was cut out, from the rest
      recall, naming    some words of a document from its first ones; the other way round
      question          an answer from its question
      reading           an answer from its question, behind the document

    \b
    Examples:
      inkling train gpt novel.txt --minutes 2
      inkling train gpt data:shakespeare --minutes 10 --seed 1
      inkling train gpt articles.jsonl --text-column body --tokens bpe --vocabulary 2000
      inkling train gpt novel.txt --steps 500 --layers 6 --width 192 --context 128 --batch 32
      inkling train gpt biographies.txt --objective span-corruption --minutes 3
      inkling train gpt biographies.txt --pairs questions.tsv --minutes 3
      inkling train gpt biographies.txt --pairs questions.tsv --objective recall=3,question=1
      torchrun --nproc-per-node 2 -m inkling train gpt novel.txt
    """
    given = locals()
    from inkling.recipes.gpt import GPTRecipe, train_gpt
    from inkling.recipes.knowledge import KnowledgeRecipe, train_knowledge

    if pairs or (objective or "next") != "next":
        known = fill_recipe(KnowledgeRecipe, given)
        path = run_path(out, "gpt", known.files)
        follow(lambda say: train_knowledge(known, path, say, write_lines(path)), path, json, shared=True)
        return
    recipe = fill_recipe(GPTRecipe, given)
    path = run_path(out, "gpt", recipe.files)
    follow(lambda say: train_gpt(recipe, path, say, write_lines(path)), path, json, shared=True)


@app.command()
def dan(
    files: Annotated[
        list[str],
        typer.Argument(help="Texts with labels: .csv .tsv .jsonl .parquet (also .gz .xz .zst), folders, or data:NAME."),
    ],
    held_out: Annotated[
        list[str] | None, typer.Option(help="Files to choose by. [default: a tenth of each class]")
    ] = None,
    out: Out = None,
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    preset: Annotated[
        str | None, typer.Option(help="best (default), or published: frozen vectors, two layers.")
    ] = None,
    words: Annotated[int | None, typer.Option(help="Longest run of words that counts. [default: 3]")] = None,
    characters: Annotated[str | None, typer.Option(help="Runs of characters too, such as 3-5: for noisy text.")] = None,
    vectors: Annotated[str | None, typer.Option(help="Word vectors: a file, or data:glove-50d.")] = None,
    learn_vectors: Annotated[
        bool | None, typer.Option("--learn-vectors/--fixed-vectors", help="Whether training changes the vectors.")
    ] = None,
    dimension: Annotated[int | None, typer.Option(help="Of learned vectors; 0: a score for each class.")] = None,
    depth: Annotated[int | None, typer.Option(help="Hidden layers after the average.")] = None,
    width: Annotated[int | None, typer.Option(help="Units of a hidden layer. [default: 100]")] = None,
    activation: Annotated[
        str | None, typer.Option(help="relu, sigmoid, tanh, mish, silu or leaky_relu; or one for each layer.")
    ] = None,
    word_dropout: Annotated[float | None, typer.Option(help="Share of words left out in each step.")] = None,
    weight_decay: Annotated[float | None, typer.Option(help="Pull of the layers towards zero.")] = None,
    class_weights: Annotated[str | None, typer.Option(help="none (default), or balanced for rare classes.")] = None,
    min_count: Annotated[int | None, typer.Option(help="Texts that a feature must occur in.")] = None,
    strength: Annotated[float | None, typer.Option(help="Pull towards naive Bayes. [default: chosen]")] = None,
    trust: Annotated[float | None, typer.Option(help="In naive Bayes; 0 is none. [default: chosen]")] = None,
    refit: Annotated[
        bool | None, typer.Option("--refit/--no-refit", help="Learn from the held-out tenth as well in the end.")
    ] = None,
    epochs: Annotated[int | None, typer.Option(help="Of a network. [default: 20]")] = None,
    batch: Annotated[int | None, typer.Option(help="Texts a step, of a network. [default: 250]")] = None,
    rate: Annotated[float | None, typer.Option(help="Learning rate of a network.")] = None,
    patience: Annotated[
        int | None, typer.Option(help="Stop a network after so many epochs without a better one.")
    ] = None,
    minutes: Annotated[float | None, typer.Option(help="Stop a network after this time at the latest.")] = None,
    errors: Annotated[
        str | None, typer.Option(help="Write a page with the mistakes on held-out rows, and why, here.")
    ] = None,
    seed: Seed = None,
    encoding: Encoding = None,
    header: Header = None,
    format: Format = None,
    bad_rows: BadRows = None,
    config: ConfigFile = None,
    json: Json = False,
) -> None:
    """Train a text classifier: a deep averaging network.

    Give it a table with a text and a label in each row. A tenth of each class chooses settings and calibrates the
    probabilities, and is shown by class before it is learned from; test rows of your own belong to `inkling evaluate`
    and `inkling errors`.

    \b
    Examples:
      inkling train dan reviews.csv --errors mistakes.html
      inkling train dan mails.csv --text-column body --label-column folder --class-weights balanced
      inkling train dan tweets.jsonl --characters 3-5
      inkling train dan reviews.csv --preset published --vectors glove.6B.50d.txt
    """
    given = locals()
    from inkling.recipes.dan import DANRecipe, train_dan
    from inkling.report.terminal import progress

    recipe = fill_recipe(DANRecipe, given)
    path = run_path(out, "dan", recipe.files)
    with progress(None, "Fitting", "stages") as bar:
        judged: list[Any] = []
        follow(lambda say: train_dan(recipe, path, say, bar.show, lambda *found: judged.extend(found)), path, json)
    _show_held_out(path, errors, json, *judged)


def _show_held_out(
    path: Path, errors: str | None, json: bool, network: AveragingNetwork, held_out: LabelledText, log_probs: Any
) -> None:
    """The classes of the held-out rows, and on request the mistakes there; by the model that had not learned them."""
    from inkling.measure.classification import ClassificationReport
    from inkling.report.terminal import notice, print_table

    if not json:
        names = (network.labels, held_out.truth, log_probs)
        print_table(ClassificationReport.of(*names, name=path.name, text_name="the held-out rows").class_table())
    if errors:
        from inkling.recipes.errors import find_mistakes
        from inkling.report.errors import write

        found = find_mistakes(network, held_out, log_probs, name=path.name, text_name="its held-out rows")
        write(found, Path(errors))
        notice(f"Wrote {errors}.")


def resume(
    run: Annotated[str, typer.Argument(help="A run directory that was interrupted.")], json: Json = False
) -> None:
    """Go on with a training that was interrupted, as if it had not been.

    \b
    Example:
      inkling resume runs/bigram-novel
    """
    from inkling.errors import InklingError
    from inkling.runs.run import Run

    opened = Run.open(run)
    if opened.finished:
        raise InklingError(f"{run} is finished; there is nothing to resume, so train anew for a longer run.")
    if "imported" in opened.info:
        raise InklingError(f"{run} was not imported to the end; remove it with `inkling runs rm` and import it again.")
    if opened.kind == "bigram":
        from inkling.recipes.bigram import resume_bigram

        follow(lambda say: resume_bigram(opened, say), opened.path, json)
    elif opened.kind == "gru":
        from inkling.recipes.gru import resume_gru

        follow(lambda say: resume_gru(opened, say, write_lines(opened.path)), opened.path, json, shared=True)
    elif opened.kind == "gpt":
        from inkling.recipes.gpt import resume_gpt
        from inkling.recipes.knowledge import resume_knowledge

        resumed = resume_knowledge if "pairs" in opened.info["recipe"] else resume_gpt
        follow(lambda say: resumed(opened, say, write_lines(opened.path)), opened.path, json, shared=True)
    elif opened.kind == "dan":
        from inkling.recipes.dan import resume_dan

        follow(lambda say: resume_dan(opened, say), opened.path, json)
    else:
        raise InklingError(f"{run} is a {opened.kind}, which is made in one pass; train it anew.")
