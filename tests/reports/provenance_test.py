"""Every number of the page beside the store that it came from: read from the HTML, computed again from the samples with NumPy and SciPy."""

import html.parser
import json
import os
import re
import shutil
import sqlite3
import subprocess
import tempfile
import unittest
from collections import Counter
from pathlib import Path

import numpy
import scipy.stats

PROGRAM = os.environ.get("SAMPLE_REPORT", os.path.join(os.path.dirname(__file__), "../../build/release/sample_report"))
UNITS = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9, "B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
DIGITS = 6e-4  # of a value with four significant digits
PERCENTILES = {"p90": (90, 64, 10), "p99": (99, 662, 10)}


class Tables(html.parser.HTMLParser):
    """The tables of a page: caption, names of columns, and rows as (run, cell, fields)."""

    def __init__(self, text):
        super().__init__()
        self.tables, self._field = [], None
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        if tag == "table":
            self.tables.append({"caption": "", "columns": [], "rows": []})
        elif self.tables and tag == "tr" and self.tables[-1]["columns"]:
            self.tables[-1]["rows"].append((attributes.get("data-run"), attributes.get("data-cell"), []))
        if tag in ("caption", "th", "td"):
            self._field = tag
            if tag == "th":
                self.tables[-1]["columns"].append("")
            elif tag == "td":
                self.tables[-1]["rows"][-1][2].append("")
        elif tag in ("tr", "tbody", "thead"):
            self._field = None

    def handle_endtag(self, tag):
        if tag in ("caption", "table", "thead", "tbody"):
            self._field = None

    def handle_data(self, data):
        data = data.strip()
        if not data or not self._field:
            return
        table = self.tables[-1]
        if self._field == "caption":
            table["caption"] += data
        elif self._field == "th":
            table["columns"][-1] += data
        else:
            table["rows"][-1][2][-1] += data


def visit_statistic(samples):
    """Mean over whole periods of 8 steps, of each place of the period a mean with 10 % cut at each end, fractions of a value included."""
    if len(samples) < 8:
        return numpy.mean(samples)
    places = numpy.sort(numpy.array(samples[: len(samples) // 8 * 8], float).reshape(-1, 8), axis=0)
    count = len(places)
    weights = numpy.ones(count)
    left = 0.1 * count
    for i in range(count):
        cut = min(1, max(0, left - i))
        weights[i] -= cut
        weights[count - 1 - i] -= cut
    return numpy.mean((weights[:, None] * places).sum(axis=0) / weights.sum())


def disturbances(pairs):
    """How long each pair and its neighbours took, in the middle, beside the lower quartile of its place of a period, which grows over a visit."""
    usual = [numpy.percentile(numpy.concatenate([visit[place::8] for visit in pairs]).sum(axis=1), 25) for place in range(8)]
    levels = [visit.sum(axis=1) / numpy.tile(usual, len(visit) // 8) for visit in pairs]
    early, late = (numpy.percentile(numpy.concatenate(halves), 25) for halves in zip(*((level[: len(level) // 2], level[len(level) // 2 :]) for level in levels)))
    result = []
    for level in levels:
        places = (numpy.arange(len(level)) + 0.5) / len(level)
        flat = numpy.concatenate([[numpy.nan], level / (late / early) ** (2 * places - 0.5), [numpy.nan]])
        result.append(numpy.nanmedian([flat[:-2], flat[1:-1], flat[2:]], axis=0))
    return result


def totals_of_pairs(visits, found, period, most):
    """Of the steps at each place of a period, over all visits, those pairs that nothing disturbed and whose differences are the middle three fifths, fractions
    of a pair included; and how far apart the differences are."""
    totals, apart = numpy.zeros(2), []
    for place in range(period):
        of_place, disturbed = (numpy.concatenate([values[place::period] for values in of_visits]) for of_visits in (visits, found))
        calm = of_place[disturbed <= max(most, numpy.percentile(disturbed, 25))]
        pairs = sorted(calm.tolist(), key=lambda pair: pair[0] - pair[1])
        weights = [max(0, min(i + 1, 0.8 * len(pairs)) - max(i, 0.2 * len(pairs))) for i in range(len(pairs))]
        totals += numpy.average(pairs, axis=0, weights=weights)
        differences = calm[:, 0] - calm[:, 1]
        apart += (differences - numpy.median(differences)).tolist()
    low, high = numpy.percentile(apart, [25, 75])
    return (high - low) / len(apart) ** 0.5, totals


def log_ratio_of_pairs(arm, baseline):
    """Over all pairs, or over those that nothing disturbed where they agree better."""
    period = 8 if min(map(len, arm + baseline)) >= 8 else 1
    visits = [numpy.array([ours[: len(ours) // period * period], theirs[: len(ours) // period * period]], float).T for ours, theirs in zip(arm, baseline)]
    noise, totals = totals_of_pairs(visits, [numpy.zeros(len(visit)) for visit in visits], period, 0)
    if period == 8:
        calm_noise, calm_totals = totals_of_pairs(visits, disturbances(visits), period, 1.05)
        totals = calm_totals if calm_noise < noise else totals
    return numpy.log(totals[0] / totals[1])


class Store:
    """What the store says, computed here and not by the program."""

    def __init__(self, path):
        self.database = sqlite3.connect(path)
        self.arms = {label: (number, baseline) for number, label, baseline in self.database.execute("SELECT id, label, baseline FROM arms")}
        self.baseline = next(label for label, (_, baseline) in self.arms.items() if baseline)
        self._visits = {}

    def visits(self, cell, arm):
        """(launch, block, samples) of every visit, in the order in which they ran."""
        key = (cell, arm)
        if key not in self._visits:
            rows = self.database.execute("SELECT launch, block, samples_ns FROM visits JOIN blocks ON blocks.id = block_id WHERE cell_id = ? AND arm_id = ? ORDER BY block_id, position",
                                         (cell, self.arms[arm][0]))
            self._visits[key] = [(launch, block, numpy.frombuffer(samples, "<i8")) for launch, block, samples in rows]
        return self._visits[key]

    def steps(self, cell, arm):
        visits = self.visits(cell, arm)
        return numpy.concatenate([samples for _, _, samples in visits]) if visits else numpy.array([])

    def percentile(self, cell, arm, name):
        share, steps, launches = PERCENTILES[name]
        values = self.steps(cell, arm)
        enough = len(values) >= steps and len({launch for launch, _, _ in self.visits(cell, arm)}) >= launches
        return numpy.percentile(values, share) if enough else None

    def ratio(self, cell, arm):
        """The paired time ratio with its interval."""
        if arm == self.baseline:
            return (1.0,)
        blocks = {}
        for label in (arm, self.baseline):
            for launch, block, samples in self.visits(cell, label):
                blocks.setdefault((launch, block), {}).setdefault(label, []).append(samples.tolist())
        launches = {}
        for (launch, _), visits in blocks.items():
            if len(visits) == 2:
                launches.setdefault(launch, []).append(log_ratio_of_pairs(visits[arm], visits[self.baseline]))
        contrasts = [numpy.mean(values) for values in launches.values()]
        if not contrasts:
            return ()
        half = scipy.stats.t.ppf(0.975, len(contrasts) - 1) * numpy.std(contrasts, ddof=1) / numpy.sqrt(len(contrasts))
        return tuple(numpy.exp([numpy.mean(contrasts), numpy.mean(contrasts) - half, numpy.mean(contrasts) + half]))

    def launch_means(self, cell, arm):
        launches = {}
        for launch, _, samples in self.visits(cell, arm):
            launches.setdefault(launch, []).append(visit_statistic(samples))
        return [numpy.mean(values) for values in launches.values()]

    def of_row(self, column, cell, arm):
        return self.database.execute(f"SELECT {column} FROM cell_arms WHERE cell_id = ? AND arm_id = ?", (cell, self.arms[arm][0])).fetchone()[0]


def quantity(text):
    """`12.34 ms` in ns, `3.25 GiB` in bytes; None where nothing or a reason stands."""
    if not re.search(r"\d", text):
        return None
    number, unit = text.split()
    return float(number) * UNITS[unit]


def numbers(text):
    return tuple(float(number) for number in re.findall(r"\d+(?:\.\d+)?", text))


def interval(values):
    """Mean and 95 % of Student's t."""
    half = scipy.stats.t.ppf(0.975, len(values) - 1) * numpy.std(values, ddof=1) / numpy.sqrt(len(values))
    return numpy.mean(values), numpy.mean(values) - half, numpy.mean(values) + half


def of_steps(function):
    """A column that is a function of all steps; nothing where there are none."""
    return lambda store, cell, arm: function(store.steps(cell, arm)) if len(store.steps(cell, arm)) else None


def of_launches(place):
    """Mean (0), low (1) or high (2) end over launches of the mean visit statistic."""
    return lambda store, cell, arm: interval(store.launch_means(cell, arm))[place] if store.visits(cell, arm) else None


# Columns whose numbers can be computed again: how to read a field, and what the store says.
COLUMNS = {
    "Average": (quantity, of_steps(numpy.mean)),
    "Lowest": (quantity, of_steps(numpy.min)),
    "Highest": (quantity, of_steps(numpy.max)),
    "p50": (quantity, of_steps(numpy.median)),
    "Median": (quantity, of_steps(numpy.median)),
    "p90": (quantity, lambda store, cell, arm: store.percentile(cell, arm, "p90")),
    "p99": (quantity, lambda store, cell, arm: store.percentile(cell, arm, "p99")),
    "Peak": (quantity, lambda store, cell, arm: store.of_row("peak_bytes", cell, arm)),
    "Time ratio [95 %]": (numbers, lambda store, cell, arm: store.ratio(cell, arm)),
    "Time ratio": (numbers, lambda store, cell, arm: store.ratio(cell, arm)),
    "Mean": (quantity, of_launches(0)),
    "Low": (quantity, of_launches(1)),
    "High": (quantity, of_launches(2)),
    "Steps": (int, of_steps(len)),
    "Quarter": (quantity, of_steps(lambda steps: numpy.percentile(steps, 25))),
    "Three quarters": (quantity, of_steps(lambda steps: numpy.percentile(steps, 75))),
    "Batch Size": (int, lambda store, cell, arm: store.database.execute("SELECT batch FROM cells WHERE id = ?", (cell,)).fetchone()[0]),
    "Warm-up steps": (int, lambda store, cell, arm: store.database.execute(
        "SELECT max(warmup_steps) FROM visits JOIN blocks ON blocks.id = block_id WHERE cell_id = ? AND arm_id = ?", (cell, store.arms[arm][0])).fetchone()[0]),
    "Blocks": (int, lambda store, cell, arm: len({(launch, block) for launch, block, _ in store.visits(cell, arm)})),
}


class EveryNumber(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = Path(tempfile.mkdtemp(prefix="decodelab-provenance-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        subprocess.run([PROGRAM, "small", cls.folder], check=True, capture_output=True)
        cls.store = Store(cls.folder / "store.sqlite")
        cls.text = (cls.folder / "report" / "report.html").read_text(encoding="utf-8")

    def arm_of(self, table, columns, fields):
        """The arm that a row is about: it stands in its own column, or in the caption."""
        if "Arm" in columns:
            return fields[columns.index("Arm")]
        return next((arm for arm in sorted(self.store.arms, key=len, reverse=True) if table["caption"].startswith(arm)), None)

    def test_of_the_page_follows_from_the_store(self):
        traced, others = Counter(), Counter()
        for table in Tables(self.text).tables:
            columns = table["columns"]
            for run, cell, fields in table["rows"]:
                if not cell or cell == "0":
                    continue
                self.assertEqual(run, "1")
                arm = self.arm_of(table, columns, fields)
                if arm not in self.store.arms:
                    others[table["caption"]] += 1
                    continue
                for column, field in zip(columns, fields, strict=True):
                    if column not in COLUMNS:
                        others[f"{table['caption'].split(' (')[0]} / {column}"] += bool(re.search(r"\d", field))
                        continue
                    self.check(table["caption"], column, field, int(cell), arm)
                    traced[column] += bool(field)
        print(f"{sum(traced.values())} numbers traced: {dict(traced)}")
        print(f"not traced by this test: {sorted(name for name, count in others.items() if count)}")
        for column in ("Average", "Lowest", "Highest", "p50", "p90", "Median", "Peak", "Time ratio [95 %]", "Blocks"):
            self.assertGreater(traced[column], 10, column)

    def check(self, caption, column, field, cell, arm):
        read, expected = COLUMNS[column]
        where = f"{column} of {arm} in cell {cell}, in '{caption}': {field!r}"
        got, wanted = read(field), expected(self.store, cell, arm)
        if isinstance(got, tuple):
            if not field and (arm == self.store.baseline or not wanted):
                return  # the baseline's own ratio may be left out
            if self.store.of_row("status", cell, arm) != "ok" or self.store.of_row("status", cell, self.store.baseline) != "ok":
                self.assertEqual(got, (), where)
                return
            numpy.testing.assert_allclose(got, wanted, atol=6e-5, err_msg=where)
        elif wanted is None or got is None:
            self.assertEqual(got, wanted, where)
        else:
            self.assertAlmostEqual(got / wanted if wanted else got + 1, 1, delta=DIGITS, msg=where)

    def test_of_the_json_and_csv_beside_it_is_the_same(self):
        rows = json.loads((self.folder / "data" / "report.json").read_text(encoding="utf-8"))["rows"]
        cells = {tuple(row[1:]): row[0] for row in self.store.database.execute("SELECT id, phase, batch, length FROM cells")}
        for row in rows:
            cell = cells[row["phase"], row["batch"], row["length"]]
            steps = self.store.steps(cell, row["arm"])
            self.assertEqual(row["steps"], len(steps))
            if len(steps):
                self.assertAlmostEqual(row["mean_ns"], steps.mean(), delta=1)
                self.assertEqual((row["min_ns"], row["max_ns"]), (steps.min(), steps.max()))
            if row["time_ratio"] is not None and row["arm"] != self.store.baseline:
                numpy.testing.assert_allclose((row["time_ratio"], row["time_ratio_low"], row["time_ratio_high"]), self.store.ratio(cell, row["arm"]), rtol=1e-9)

    def test_a_changed_sample_would_be_found(self):
        """The comparison itself can fail: another page of the same store, with one digit of a time changed."""
        wrong = re.sub(r"(<td class=n>)(\d)(\.\d+ ms)", lambda match: f"{match[1]}{(int(match[2]) + 1) % 10}{match[3]}", self.text, count=0)
        self.assertNotEqual(wrong, self.text)
        failures = 0
        for table in Tables(wrong).tables:
            for _, cell, fields in table["rows"]:
                arm = self.arm_of(table, table["columns"], fields) if cell and cell != "0" else None
                for column, field in zip(table["columns"], fields, strict=True):
                    if arm in self.store.arms and column in COLUMNS:
                        try:
                            self.check(table["caption"], column, field, int(cell), arm)
                        except AssertionError:
                            failures += 1
        self.assertGreater(failures, 10)


if __name__ == "__main__":
    unittest.main()
