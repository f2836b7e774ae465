"""Figures of a page that no single run's report has: what speculation should be worth, as lines, and what it was worth, as points."""

import json
import pathlib
import subprocess
import sys

from . import classes, prediction, tax

ROOT = pathlib.Path(__file__).resolve().parents[3]
COLORS = ("#4269d0", "#efb118", "#ff725c", "#6cc5b0", "#3ca951", "#ff8ab7")
WIDTH, HEIGHT = 230, 210


def encoded(field, title, kind="quantitative", **more):
    return {"field": field, "type": kind, "title": title, **more}


def points_of(cells):
    """A measured point of each oracle arm, with its predicted speed-up; and the price of a round of so many guesses."""
    said = prediction.tokens_said(cells)
    points, prices = [], []
    for name, arms in cells.items():
        price = prediction.prices(arms, said)
        batch = next(iter(arms.values()))["batch"]
        prices += [{"cell": name, "batch": batch, "guesses": guesses, "price": price[guesses]} for guesses in sorted(price)]
        for arm, row in arms.items():
            right = prediction.oracle(arm)
            if right and row["status"] == "ok" and row["time_ratio_low"] is not None and right[1] in price:
                points.append({"cell": name, "right": f"{right[0]} %", "guesses": right[1], "measured": 1 / row["time_ratio"], "low": 1 / row["time_ratio_high"], "high": 1 / row["time_ratio_low"],
                               "predicted": 1 / prediction.predicted_ratio(price, row, right[1], said)})
    return points, prices


def figure(values, **content):
    return {"$schema": "https://vega.github.io/schema/vega-lite/v6.json", "data": {"values": values}, "config": {"background": "white", "view": {"stroke": "#ddd"}}, **content}


def faceted(values, layers, column):
    """One panel for each value of a column, side by side."""
    return figure(values, facet={"field": column, "type": "nominal", "title": None, "sort": list(dict.fromkeys(value[column] for value in values))}, spec={"width": WIDTH, "height": HEIGHT, "layer": layers})


def lines_with_points(values, **encoding):
    return figure(values, width=2 * WIDTH, height=HEIGHT, encoding=encoding,
                  layer=[{"mark": {"type": "line", "strokeWidth": 1.5}}, {"mark": {"type": "point", "filled": True, "size": 45, "opacity": 1}}])


def speed_up(cells):
    points, _ = points_of(cells)
    x = encoded("guesses", "guesses of a round", axis={"values": sorted({point["guesses"] for point in points}), "format": "d"})
    color = encoded("right", "right guesses", "nominal", scale={"range": list(COLORS)}, sort=None)
    title = "speed-up (lines: predicted, points: measured)"
    one = {"mark": {"type": "rule", "color": "#888", "strokeDash": [2, 2]}, "encoding": {"y": {"datum": 1, "title": title}}}
    return faceted(points, [
        one,
        {"mark": {"type": "line", "strokeWidth": 1.5}, "encoding": {"x": x, "y": encoded("predicted", title), "color": color}},
        {"mark": {"type": "rule", "strokeWidth": 1.5}, "encoding": {"x": x, "y": encoded("low", title), "y2": {"field": "high"}, "color": color}},
        {"mark": {"type": "point", "filled": True, "size": 45, "opacity": 1}, "encoding": {"x": x, "y": encoded("measured", title), "color": color}},
    ], "cell")


def price_of_rows(cells):
    _, prices = points_of(cells)
    rows = [{**price, "rows": price["batch"] * (1 + price["guesses"]), "name": f"{price['batch']} at a time"} for price in prices]
    return lines_with_points(rows, x=encoded("guesses", "guesses of each row in a round", axis={"values": sorted({row["guesses"] for row in rows}), "format": "d"}),
                             y=encoded("price", "time of a round, in plain steps"), color=encoded("name", "rows", "nominal", scale={"range": list(COLORS)}, sort=None))


def share_that_pays(price, guesses):
    """The share of right guesses from which on a round of them is worth its time; None where even all of them are not."""
    if guesses + 1 <= price:
        return None
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if prediction.expected_tokens(middle, guesses) < price else (low, middle)
    return high


def break_even(cells):
    _, prices = points_of(cells)
    shares = [{**price, "share": share_that_pays(price["price"], price["guesses"]), "name": f"{price['guesses']}"} for price in prices if price["guesses"] > 0]
    return lines_with_points([share for share in shares if share["share"] is not None], x=encoded("batch", "rows of the batch", "ordinal"),
                             y=encoded("share", "right guesses from which on they pay", scale={"domain": [0, 1]}, axis={"format": "%"}),
                             color=encoded("name", "guesses", "nominal", scale={"range": list(COLORS)}, sort=None))


def positions(rows):
    """Of each class, the share of guesses that stood, by their position in a round, where all before them did."""
    values = classes.positions(rows)
    x = encoded("position", "position of a guess, where all before it were right", axis={"values": sorted({value["position"] for value in values}), "format": "d"})
    title = "right guesses"
    color = encoded("class", "text", "nominal", scale={"range": list(COLORS)}, sort=None)
    share = encoded("share", title, scale={"domain": [0, 1]}, axis={"format": "%"})
    return figure(values, width=2 * WIDTH, height=HEIGHT, encoding={"x": x, "color": color}, layer=[
        {"mark": {"type": "line", "strokeWidth": 1.5}, "encoding": {"y": share}},
        {"mark": {"type": "rule", "strokeWidth": 1, "opacity": 0.5}, "encoding": {"y": encoded("low", title), "y2": {"field": "high"}}},
        {"mark": {"type": "point", "filled": True, "size": 45, "opacity": 1}, "encoding": {"y": share}},
    ])


def serving_tax(cells):
    """The time of each server over its engine's in process, a panel a phase."""
    values = tax.points(cells)
    title = "server / in process"
    x = encoded("batch", "rows", "ordinal")
    color = encoded("engine", "engine", "nominal", scale={"range": list(COLORS)}, sort=None)
    beside = {"xOffset": {"field": "engine"}}
    return faceted(values, [
        {"mark": {"type": "rule", "color": "#888", "strokeDash": [2, 2]}, "encoding": {"y": {"datum": 1, "title": title}}},
        {"mark": {"type": "rule", "strokeWidth": 1.5}, "encoding": {"x": x, "y": encoded("low", title, scale={"zero": False}), "y2": {"field": "high"}, "color": color, **beside}},
        {"mark": {"type": "point", "filled": True, "size": 60, "opacity": 1}, "encoding": {"x": x, "y": encoded("tax", title, scale={"zero": False}), "color": color, **beside}},
    ], "phase")


def drawn(name, rows, folder):
    """Draws a figure of a question's rows into a folder; returns the file."""
    spec = folder / f"{name}.vl.json"
    spec.write_text(json.dumps(DRAWINGS[name](rows)))
    subprocess.run([sys.executable, str(ROOT / "tools" / "render_figures.py"), str(folder)], check=True)
    return folder / f"{name}.svg"


DRAWINGS = {"speed-up": speed_up, "price": price_of_rows, "break-even": break_even, "positions": positions, "tax": serving_tax}
