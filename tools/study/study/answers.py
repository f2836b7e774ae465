"""What was measured for each question, kept as one file of JSON lines: how and where first, then a row a line."""

import dataclasses
import json
import pathlib
import shutil
import tempfile

from validation import program

from . import classes, drawing, sums

# Of a row of `store export`: what the pages use, and what tells a reader how sure it is.
KEPT = ("arm", "phase", "scope", "batch", "length", "dtype", "threads", "status", "reason", "engaged", "launches", "steps", "median_ns", "mean_ns", "min_ns", "time_ratio", "time_ratio_low",
        "time_ratio_high", "mde", "verdict", "bound_share", "bound_share_low", "bound_share_high", "peak_bytes", "flags",
        "ties", "logit_error", "kl_divergence", "top_1_agreement", "launch_ratios", "quality")
OUTPUTS_DIFFER = 5  # the exit code
COUNTERS = ("counted_steps", "choice.operators", "details.operators", "listed_tokens", "tied_tokens", "rounds", "proposed_tokens", "accepted_tokens", "emitted_tokens", "modelled_weight_bytes", "all_reduces", "all_reduced_bytes", "client_cpu_ns",
            "empty_round_trip_ns", "tokens_read_together", "bundled_tokens")


@dataclasses.dataclass(frozen=True)
class Answer:
    words: list  # the sweep's arguments
    where: str
    rows: list
    engines: dict = dataclasses.field(default_factory=dict)  # arm: engine, version and settings, of arms that are another engine's


class Answers:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder)

    def path(self, question):
        return self.folder / f"{question.name}.jsonl"

    def figures(self, question):
        """The run's figures that a question asks for: their names, and the files that they are kept in."""
        return {name: self.folder / f"{question.name}-{name}.svg" for name in question.figures}

    def draw(self, question, rows):
        """Draws the figures of the page that a question asks for; returns their files."""
        files = []
        for name in question.draws:
            files.append(self.folder / f"{question.name}-{name}.svg")
            with tempfile.TemporaryDirectory() as folder:
                shutil.copy(drawing.drawn(name, rows, pathlib.Path(folder)), files[-1])
        return files

    def get(self, question):
        """None where it was not measured."""
        return self.of(question.name)

    def of(self, name):
        path = self.folder / f"{name}.jsonl"
        if not path.exists():
            return None
        head, *rows = map(json.loads, path.read_text().splitlines())
        return Answer(head["sweep"], head["where"], rows, head.get("engines", {}))

    def measure(self, question, words, store):
        if question.command == "sums":
            self.write(question, {"sweep": sums.WORDS, "where": f"{program.processor()}, {program.build()}"}, sums.timed_sums())
            return
        if question.command == "generate":
            lines = map(json.loads, program.run(*words, "-o", "jsonl")[0].splitlines())
            self.write(question, {"sweep": words, "where": program.build()}, [classes.completion(line) for line in lines])
            return
        # An arm whose tokens or logits are not ours is a row that says so, and no reason to have none of the others.
        program.run(*words, "--name", question.name, "--store", store, allowed=(0, OUTPUTS_DIFFER))
        self.keep(question, words, store)

    def write(self, question, head, rows):
        self.folder.mkdir(parents=True, exist_ok=True)
        whole = self.path(question).with_suffix(".part")
        whole.write_text("".join(json.dumps(line) + "\n" for line in (head, *rows)))
        whole.replace(self.path(question))

    def keep(self, question, words, store):
        """Writes down the newest run of a question that the store has."""
        [[run]] = program.query(store, "SELECT max(id) FROM runs WHERE name = ?", question.name)
        exported = map(json.loads, program.run("store", "export", run, "--store", store, "-o", "jsonl")[0].splitlines())
        rows = [{key: row.get(key) for key in KEPT} | {"counters": {name: row["counters"][name] for name in COUNTERS if name in row["counters"]}} for row in exported]
        self.write(question, {"sweep": words, "where": place_of(store, run), "engines": engines_of(store, run)}, rows)
        if question.figures:
            with tempfile.TemporaryDirectory() as report:
                program.run("report", run, "--store", store, "--out", report, "--format", "svg")
                for name, kept in self.figures(question).items():
                    shutil.copy(pathlib.Path(report) / "figures" / f"{name}.svg", kept)


def engines_of(store, run):
    """What the arms that are other engines said of themselves."""
    return {label: {"engine": engine, "version": version, "settings": json.loads(settings or "{}")}
            for label, engine, version, settings in program.query(store, "SELECT label, engine, version, settings FROM arms WHERE run_id = ? AND engine != '' ORDER BY id", run)}


def place_of(store, run):
    """Where and with what build a run was made."""
    [[cpu, cores, isa, commit]] = program.query(store, "SELECT m.cpu, m.cores, m.isa, b.git_commit FROM runs r JOIN machines m ON m.id = r.machine_id JOIN builds b ON b.id = r.build_id "
                                                       "WHERE r.id = ?", run)
    return f"{cpu} ({cores} cores, {isa}), decodelab {commit}"
