"""What other engines were and computed in an answer, beside their times: versions, dtypes, agreement with the reference, and whose own tool bears our worker out."""

import json
import pathlib

from validation.table import markdown

CROSS_CHECK = pathlib.Path(__file__).resolve().parents[3] / "reports/measured/validation/cross_check.json"
# Dtypes of what an engine holds and computes with, as workers call them in their settings.
DTYPES = ("weights", "activations", "kv", "accumulate")


def own_tool(engine, phase, dtype, checks):
    """Whether the engine's own benchmark tool bore our worker out: `tools/cross_check` keeps what it saw."""
    seen = [check for check in checks if check.get("engine") == engine and (check["phase"], check["dtype"]) == (phase, dtype)]
    if not seen:
        return "unvalidated"
    return "; ".join(f"{'validated' if check['ok'] else 'unvalidated'}: {check['ratio']}" for check in seen)


def checks():
    return json.loads(CROSS_CHECK.read_text()) if CROSS_CHECK.exists() else []


def worst(rows, key, choose):
    known = [row[key] for row in rows if row.get(key) is not None]
    return f"{choose(known):.2g}" if known else "-"


def computed(answer):
    """A line an engine that ran; nothing where the answer knows of no engine."""
    lines = []
    for arm, said in answer.engines.items():
        rows = [row for row in answer.rows if row["arm"] == arm and row["status"] == "ok"]
        if not rows:
            continue
        settings = said["settings"]
        phases = dict.fromkeys(row["phase"] for row in rows)
        lines.append([arm, f"{said['engine']} {said['version']}", *(settings.get(name, "not told") for name in DTYPES), str(settings.get("threads", "not told")),
                      worst(rows, "logit_error", max), worst(rows, "kl_divergence", max), worst(rows, "top_1_agreement", min),
                      "; ".join(f"{phase}: {own_tool(said['engine'], phase, rows[0]['dtype'], checks())}" for phase in phases)])
    if not lines:
        return ""
    heads = ["engine", "version", *DTYPES, "threads", "largest logit error", "KL, nats", "same largest logit", "its own tool beside our worker, ours / its"]
    note = "Outputs beside our reference's, both fed the same tokens: the worst of the cells. A worker is validated where the engine's own benchmark tool agrees within 2 % (`tools/cross_check`)."
    return f"{note}\n\n{markdown(heads, lines)}\n"
