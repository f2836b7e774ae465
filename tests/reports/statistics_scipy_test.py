"""The statistics of reports/ against SciPy: quantiles, p values of Student's t and of sign flips, families, and what a gate finds."""

import itertools
import json
import os
import subprocess
import unittest

import numpy
import scipy.stats

PROGRAM = os.environ.get("STATISTICS_VALUES", os.path.join(os.path.dirname(__file__), "../../build/release/statistics_values"))
DIGITS = 2e-9  # decisions are made on 9 digits


def answers(queries):
    """What the C++ side says to each query, a dict."""
    lines = "".join(json.dumps(query) + "\n" for query in queries)
    done = subprocess.run([PROGRAM], input=lines, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def samples():
    """Normal, heavy-tailed and skewed values around 0 and away from it."""
    random = numpy.random.default_rng(1)
    draws = {"normal": random.standard_normal, "t3": lambda n: random.standard_t(3, n), "skewed": lambda n: random.exponential(1, n) - 1}
    return [(draw(n) + shift) * 0.02 for draw in draws.values() for n in (2, 3, 6, 7, 10, 12) for shift in (0, 0.5, -2)]


def signs_of(count):
    return numpy.array(list(itertools.product([1, -1], repeat=count)))


def t_of(values):
    return values.mean(axis=-1) / (values.std(axis=-1, ddof=1) / numpy.sqrt(values.shape[-1]))


class Statistics(unittest.TestCase):
    def test_quantiles_of_students_t(self):
        cases = [(p, n) for p in (0.5, 0.8, 0.95, 0.975, 0.982, 0.9916, 0.9999) for n in (2, 3, 6, 7, 10, 24, 25, 64)]
        for (p, n), got in zip(cases, answers({"what": "t_quantile", "p": p, "n": n} for p, n in cases), strict=True):
            self.assertAlmostEqual(got / (scipy.stats.t.ppf(p, n - 1) or 1), 0 if p == 0.5 else 1, delta=1e-10, msg=f"p {p}, n {n}")

    def test_p_of_students_t(self):
        for name, alternative in (("t_p", "two-sided"), ("t_p_above", "greater")):
            values = samples()
            for one, got in zip(values, answers({"what": name, "values": list(one)} for one in values), strict=True):
                expected = scipy.stats.ttest_1samp(one, 0, alternative=alternative).pvalue
                self.assertAlmostEqual(got / expected, 1, delta=DIGITS, msg=f"{name} of {one}")

    def test_p_of_sign_flips(self):
        for sides, alternative in (("two", "two-sided"), ("upper", "greater")):
            values = samples()
            queries = ({"what": "family", "sides": sides, "contrasts": [list(one)]} for one in values)
            for one, got in zip(values, answers(queries), strict=True):
                # SciPy enumerates all patterns where there are no more of them than resamples. In a two-sided test it doubles the
                # smaller of two tails, which for signs is the same.
                expected = scipy.stats.permutation_test((one,), numpy.mean, permutation_type="samples", n_resamples=numpy.inf,
                                                        alternative=alternative).pvalue
                self.assertAlmostEqual(got["p"][0], expected, delta=DIGITS, msg=f"{sides}: {one}")

    def test_max_t_of_families(self):
        random = numpy.random.default_rng(2)
        for count, size in itertools.product((6, 7, 10), (1, 3, 8)):
            shared = random.standard_normal(count)
            family = shared + random.standard_normal((size, count)) + numpy.linspace(0, 1.5, size)[:, None]
            flipped = t_of(signs_of(count)[None, :, :] * family[:, None, :])  # contrast, pattern
            for sides, seen_by in (("two", numpy.abs), ("upper", lambda t: t)):
                [got] = answers([{"what": "family", "sides": sides, "contrasts": family.tolist(), "level": 0.05}])
                ts = seen_by(flipped)
                largest = ts.max(axis=0)
                for j in range(size):
                    expected = numpy.mean(largest >= ts[j, 0] - 1e-9 * abs(ts[j, 0]))
                    self.assertAlmostEqual(got["p_family"][j], expected, delta=DIGITS, msg=f"{sides}, {size} contrasts of {count}")
                if got["critical_t"] is not None:
                    self.assertLessEqual(numpy.mean(largest >= got["critical_t"] * (1 - 1e-8)), 0.05)

    def test_drawn_patterns_come_close_to_all_of_them(self):
        values = numpy.random.default_rng(3).standard_normal(16) + 0.4
        sums = signs_of(16) @ values
        for sides, seen in (("two", numpy.abs(sums) >= abs(values.sum()) - 1e-9), ("upper", sums >= values.sum() - 1e-9)):
            [got] = answers([{"what": "family", "sides": sides, "contrasts": [values.tolist()]}])
            self.assertAlmostEqual(got["p"][0], seen.mean(), delta=0.003, msg=sides)

    def test_interval_of_a_look(self):
        values = samples()
        for one, got in zip(values, answers({"what": "look", "values": list(one), "margin": 0.03} for one in values), strict=True):
            low, high = scipy.stats.t.interval(1 - 2 * 0.018, len(one) - 1, numpy.mean(one), scipy.stats.sem(one))
            self.assertAlmostEqual(got["low"], low, delta=1e-11)
            self.assertAlmostEqual(got["high"], high, delta=1e-11)
            self.assertAlmostEqual(got["estimate"], numpy.mean(one), delta=1e-14)

    def test_a_gate_of_one_look_passes_as_often_as_the_noncentral_t_says(self):
        margin, gates = 0.03, 4000
        for sd, blocks in ((0.01, 6), (0.03, 10), (0.03, 24)):
            [points] = answers([{"what": "operating", "sd": sd, "margin": margin, "looks": [blocks], "gates": gates}])
            for point in points:
                away = (numpy.log1p(point["effect"]) - numpy.log1p(margin)) / (numpy.log1p(sd) / numpy.sqrt(blocks))
                expected = scipy.stats.nct.cdf(-scipy.stats.t.ppf(1 - 0.018, blocks - 1), blocks - 1, away)
                error = numpy.sqrt(max(expected * (1 - expected), 1e-4) / gates)
                self.assertAlmostEqual(point["pass"], expected, delta=4 * error, msg=f"sd {sd}, {blocks} blocks, {point}")


if __name__ == "__main__":
    unittest.main()
