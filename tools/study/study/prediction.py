"""What speculation should be worth, from what rounds cost where no guess is right, beside what it was measured to be worth."""

import math
import re

from validation.statistics_values import t_interval
from validation.table import markdown

ORACLE = re.compile(r"oracle-draft(?::percent=(?P<percent>\d+))?(?::tokens=(?P<tokens>\d+))?")
PERCENT, TOKENS = 80, 4  # what a label leaves out


def oracle(arm):
    """The percentage of right guesses and the guesses of a round of an arm; None where its guesses are others'."""
    found = ORACLE.search(arm)
    return found and (int(found["percent"] or PERCENT), int(found["tokens"] or TOKENS))


def prices(arms, said):
    """What a round of so many guesses takes, in plain steps, by the arms none of whose guesses is right: each of their rounds says one token.

    The last rounds of `said` tokens guess less, since there are fewer to go: what those cost lies on the line between the numbers that were measured.
    """
    price = {0: 1.0}
    ratios = {oracle(arm)[1]: row["time_ratio"] for arm, row in arms.items() if oracle(arm) and oracle(arm)[0] == 0 and row["status"] == "ok"}
    for guesses, ratio in sorted(ratios.items()):
        known = max(price)
        # ratio x said = (said - guesses) x price + the rounds of fewer guesses; of those, each between `known` and `guesses` has a share of this price.
        shares = [(count - known) / (guesses - known) for count in range(known + 1, guesses)]
        fewer = sum(between(price, count) for count in range(known + 1)) + sum((1 - share) * price[known] for share in shares)
        price[guesses] = (ratio * said - fewer) / (said - guesses + sum(shares))
    return price


def between(price, count):
    """The price of a number of guesses within those that are known."""
    if count in price:
        return price[count]
    low, high = max(known for known in price if known < count), min(known for known in price if known > count)
    return price[low] + (price[high] - price[low]) * (count - low) / (high - low)


def predicted_ratio(price, row, guesses, said):
    """The time of a token over a plain step's: the rounds that were counted, each at its price. Rounds that guessed less are cheaper by as many guesses."""
    rounds = row["counters"]["rounds"]
    lacking = rounds * guesses - row["counters"].get("proposed_tokens", 0) / row["batch"]
    slope = (price[guesses] - price[0]) / guesses
    return (rounds * price[guesses] - lacking * slope) / said


def expected_tokens(right, guesses):
    """Tokens of a round (Leviathan et al. 2023, equation 1)."""
    return guesses + 1 if right == 1 else (1 - right ** (guesses + 1)) / (1 - right)


def of_launch(arms, launch):
    """The rows as one launch measured them; those that have nothing of it are left out."""
    return {arm: row | {"time_ratio": row["launch_ratios"][launch]} for arm, row in arms.items() if len(row.get("launch_ratios") or ()) > launch}


def shares(arms, arm, said):
    """Of each launch, how much the time that was predicted of its prices is over the time that it measured: what slows all arms of a launch alike cancels."""
    values = []
    for launch in range(len(arms[arm].get("launch_ratios") or ())):
        rows = of_launch(arms, launch)
        price, guesses = prices(rows, said), oracle(arm)[1]
        if guesses in price:
            values.append(predicted_ratio(price, rows[arm], guesses, said) / rows[arm]["time_ratio"])
    return values


def share_text(values):
    """The geometric mean over launches, with its interval where there are several."""
    logs = [math.log(value) for value in values]
    if len(logs) < 2:
        return "-"
    low, high = t_interval(logs)
    return f"{math.exp(sum(logs) / len(logs)):.3f} [{math.exp(low):.3f}, {math.exp(high):.3f}]"


def interval(row, factor):
    return f"{factor / row['time_ratio']:.2f} [{factor / row['time_ratio_high']:.2f}, {factor / row['time_ratio_low']:.2f}]"


def tokens_said(cells):
    """The tokens of each row, which all rows say in as many rounds where no guess is right."""
    return min(row["counters"]["emitted_tokens"] // row["batch"] for arms in cells.values() for row in arms.values() if row["counters"].get("rounds"))


def table(cells):
    said = tokens_said(cells)
    lines = []
    for name, arms in cells.items():
        price = prices(arms, said)
        for arm, row in arms.items():
            right = oracle(arm)
            if not right or row["status"] != "ok" or row["time_ratio_low"] is None or right[1] not in price:
                continue
            percent, guesses = right
            predicted = predicted_ratio(price, row, guesses, said)
            lines.append([name, f"{percent} %", str(guesses), f"{price[guesses]:.3f}", str(row["counters"]["rounds"]),
                          f"{expected_tokens(percent / 100, guesses) / price[guesses]:.2f}", f"{1 / predicted:.2f}" if percent else "-", interval(row, 1),
                          share_text(shares(arms, arm, said)) if percent else "fixes the price"])
    head = ["cell", "right", "guesses", "a round, in steps", "rounds", "closed form", "predicted", "measured", "measured / predicted"]
    return f"Speed-ups of {said} tokens:\n\n" + markdown(head, lines)
