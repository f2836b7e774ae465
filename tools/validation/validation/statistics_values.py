"""Restatements of statistics for the validation, on SciPy and NumPy, independent of the C++ that they judge."""

import math

import numpy
from scipy import stats


def visit_mean(samples):
    """The visit statistic: whole periods of 8 steps, each residue class trimmed by a tenth at each end."""
    whole = len(samples) // 8 * 8
    if whole == 0:
        return float(numpy.mean(samples))
    table = numpy.sort(numpy.asarray(samples[:whole], dtype=float).reshape(-1, 8), axis=0)
    count = table.shape[0]
    weights = numpy.ones(count)
    cut = 0.1 * count
    for end in (1, -1):
        left = cut
        for place in range(count)[::end]:
            taken = min(left, weights[place])
            weights[place] -= taken
            left -= taken
    return float(numpy.mean(weights @ table / weights.sum()))


def _disturbances(pairs):
    """Of each visit's pairs of steps: the median of each sum and its neighbours', as shares of what is usual at that place of a period and of a visit."""
    sums = [both.sum(axis=0) for both in pairs]
    usual = numpy.array([numpy.quantile(numpy.concatenate([of_visit[place::8] for of_visit in sums]), 0.25) for place in range(8)])
    relative = [of_visit / numpy.resize(usual, len(of_visit)) for of_visit in sums]
    halves = [numpy.concatenate([numpy.array_split(of_visit, 2)[half] for of_visit in relative]) for half in (0, 1)]
    growth = numpy.quantile(halves[1], 0.25) / numpy.quantile(halves[0], 0.25)
    found = []
    for of_visit in relative:
        level = of_visit / growth ** ((numpy.arange(len(of_visit)) + 0.5) / (len(of_visit) / 2) - 0.5)
        found.append(numpy.array([numpy.median(level[max(0, i - 1) : i + 2]) for i in range(len(level))]))
    return found


def _sums_and_noise(pairs, disturbances, period, most):
    """Sums over the places of a period of the mean times of the pairs that are not disturbed and whose differences are the middle three fifths; and how
    far the differences there lie apart, over the root of their number."""
    sums, differences = numpy.zeros(2), []
    for place in range(period):
        disturbed = numpy.concatenate([of_visit[place::period] for of_visit in disturbances])
        calm = disturbed <= max(most, numpy.quantile(disturbed, 0.25))
        of_place = numpy.concatenate([both[:, place::period] for both in pairs], axis=1)[:, calm]
        ordered = of_place[:, numpy.argsort(of_place[0] - of_place[1], kind="stable")]
        count = ordered.shape[1]
        # The weight of each pair is the part of its unit interval of ranks that lies within the middle.
        edges = numpy.clip(numpy.arange(count + 1), 0.2 * count, 0.8 * count)
        sums += numpy.average(ordered, axis=1, weights=numpy.diff(edges))
        apart = ordered[0] - ordered[1]
        differences.extend(apart - numpy.median(apart))
    return sums, stats.iqr(differences) / math.sqrt(len(differences))


def log_ratio_of_pairs(candidate, baseline):
    """Of visits side by side, without the pairs that were disturbed together, 5 % above what is usual, where the rest lies closer together."""
    period = 8 if min(map(len, candidate + baseline)) >= 8 else 1
    pairs = [numpy.array(both, dtype=float)[:, : len(both[0]) // period * period] for both in zip(candidate, baseline)]
    sums, noise = _sums_and_noise(pairs, [numpy.ones(both.shape[1]) for both in pairs], period, 1)
    if period == 8:
        calm_sums, calm_noise = _sums_and_noise(pairs, _disturbances(pairs), period, 1.05)
        if calm_noise < noise:
            sums = calm_sums
    return math.log(sums[0] / sums[1])


def contrasts(rows, baseline, candidate):
    """{(cell, launch): mean over blocks of log candidate - log baseline} of the rows of program.visits()."""
    blocks = {}
    for launch, block, cell, label, _, samples in rows:
        blocks.setdefault((cell, launch, block), {}).setdefault(label, []).append(samples)
    result = {}
    for (cell, launch, _), arms in blocks.items():
        if baseline in arms and candidate in arms:
            result.setdefault((cell, launch), []).append(log_ratio_of_pairs(arms[candidate], arms[baseline]))
    return {key: float(numpy.mean(values)) for key, values in result.items()}


def t_interval(values, level=0.95):
    mean, error = float(numpy.mean(values)), float(stats.sem(values))
    half = float(stats.t.ppf((1 + level) / 2, len(values) - 1)) * error
    return mean - half, mean + half


def t_p(values):
    return float(stats.ttest_1samp(values, 0).pvalue)


def detectable(values, level=0.05, power=0.8):
    """The effect that is printed as detectable: both quantiles of Student's t, times the upper 90 % limit of the standard deviation."""
    n = len(values)
    spread = float(numpy.std(values, ddof=1)) * math.sqrt((n - 1) / float(stats.chi2.ppf(1 - 0.9, n - 1)))
    return float(stats.t.ppf(1 - level / 2, n - 1) + stats.t.ppf(power, n - 1)) * spread / math.sqrt(n)


def sign_flip_p(values):
    """Exact, two-sided: the share of all sign patterns whose |mean| is at least the one seen."""
    values = numpy.asarray(values)
    patterns = 1 - 2 * ((numpy.arange(2 ** len(values))[:, None] >> numpy.arange(len(values))) & 1)
    means = numpy.abs(patterns @ values)
    return float(numpy.mean(means >= abs(values.sum()) * (1 - 1e-9)))


def alarms(values, level=0.05):
    """decodelab's rule for one contrast at margin 0: Student's t and the sign flips agree."""
    return t_p(values) <= level and sign_flip_p(values) <= level
