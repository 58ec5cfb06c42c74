"""The `inkling` command: its groups, and what a mistake looks like.

stdout is the result, stderr everything else. A user's mistake is one sentence and exit code 1 (what was given cannot be
used) or 2 (the command makes no sense); a fault of ours keeps its traceback.
"""

from __future__ import annotations

import os
import sys
from copy import copy

import typer

from inkling.cli import (
    ablate,
    answer,
    check,
    classify,
    construct,
    demonstrate,
    errors,
    evaluate,
    finetuning,
    importing,
    manage,
    sample,
    serve,
    studio,
    study,
    surprise,
    train,
    use,
)
from inkling.errors import InklingError

INTERRUPTED = 130
TOO_LARGE = "there is not enough memory for this; try a smaller vocabulary, model or file."

app = typer.Typer(
    name="inkling",
    help="""Train, measure and understand small neural text models on the computer you have.

    \b
    Examples to begin with:
      inkling demo                              see everything at work, in three minutes
      inkling train bigram novel.txt            train a model on your text
      inkling evaluate runs/bigram-novel --on other.txt
      inkling sample runs/bigram-novel
      inkling train gpt novel.txt --minutes 5   a small transformer, as large as the time allows
      inkling train dan reviews.csv             train a classifier on texts with labels
      inkling errors runs/dan-reviews --on test.csv
      inkling attention heads                   attention, exactly and simulated

    `inkling COMMAND --help` shows more.
    """,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)

app.add_typer(train.app, name="train")
app.command("resume")(train.resume)
app.command("finetune")(finetuning.finetune)
app.command("import")(importing.import_model)
app.command("evaluate")(evaluate.evaluate)
app.command("score")(use.score)
app.command("filter")(use.filter_rows)
app.command("sample")(sample.sample)
app.command("surprise")(surprise.surprise)
app.command("answer")(answer.answer)
app.command("classify")(classify.classify)
app.command("errors")(errors.errors)
app.command("serve")(serve.serve)
app.add_typer(ablate.app, name="ablate")
app.add_typer(study.app, name="study")
app.add_typer(construct.app, name="attention")
app.add_typer(manage.runs, name="runs")
app.add_typer(manage.data, name="data")
app.command("studio")(studio.studio)
app.command("gradcheck")(check.gradcheck)
app.command("claims")(check.claims)
app.command("doctor")(check.doctor)
app.command("demo")(demonstrate.demo)


@app.callback(invoke_without_command=True)
def root(version: bool = typer.Option(False, "--version", help="Print the version and leave.")) -> None:
    if version:
        from inkling import __version__

        typer.echo(__version__)
        raise typer.Exit()


def main(arguments: list[str] | None = None) -> int:
    """Runs one command; the exit code."""
    from inkling.pictures.harmless import one_line

    def fail(sentence: str, code: int) -> int:
        end = "" if sentence.endswith((".", "?")) else "."
        sys.stderr.write(f"inkling: {one_line(sentence)}{end}\n")
        return code

    try:
        result = _called(arguments)(args=arguments, prog_name="inkling", standalone_mode=False)
        sys.stdout.flush()
        if result == INTERRUPTED:  # what typer makes of Ctrl-C
            raise KeyboardInterrupt
        return result if isinstance(result, int) else 0
    except InklingError as error:
        return fail(str(error), error.exit_code)
    except KeyboardInterrupt:
        return fail("stopped.", INTERRUPTED)
    except (BrokenPipeError, SystemExit):  # the reader (head, less) has seen enough; typer makes a SystemExit of it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        return fail(f"{where}{error.strerror or error}; free space or check the path and its permissions.", 1)
    except MemoryError:
        return fail(TOO_LARGE, 1)
    except Exception as error:
        if isinstance(error, RuntimeError) and "not enough memory" in str(error):  # torch has no class for it
            return fail(TOO_LARGE, 1)
        # Typer carries its own copy of click, so its exceptions are known by what they can do.
        message = getattr(error, "format_message", None)
        if message is None:
            if type(error).__name__ == "Abort":
                return fail("stopped.", INTERRUPTED)
            raise
        context = getattr(error, "ctx", None)
        command = context.command_path if context is not None else "inkling"
        if type(error).__name__ == "NoArgsIsHelpError":
            sys.stdout.write(message() + "\n")
            return 0
        return fail(f"{_wrong_call(error, message())}; see `{command} --help`.", getattr(error, "exit_code", 2))


def _called(arguments: list[str] | None) -> typer.Typer:
    """The app for one call: typer reads the options of all commands first, and those of other groups are not needed."""
    given = sys.argv[1:] if arguments is None else arguments
    first = next((word for word in given if not word.startswith("-")), "")
    called = copy(app)
    called.registered_groups = [copy(group) for group in app.registered_groups]
    for group in called.registered_groups:
        if group.name != first and group.typer_instance is not None:
            group.typer_instance = copy(group.typer_instance)
            group.typer_instance.registered_commands = []
    return called


def _wrong_call(error: Exception, message: str) -> str:
    """What typer says of a call that it cannot understand, in our form: what was given, what was expected."""
    details = getattr(error.__cause__, "errors", None)  # of pydantic, which typer has values read by
    if details is not None and getattr(error, "param", None) is not None:
        found = details()[0]
        kinds = {"int": "a whole number", "float": "a number", "bool": "true or false"}
        wanted = kinds.get(found["type"].partition("_")[0])
        if wanted:
            return f"{error.param.opts[0]} is '{found['input']}'; give {wanted}"  # type: ignore[attr-defined]
    return message.rstrip(".?").replace(". Did you mean", "; did you perhaps mean")
