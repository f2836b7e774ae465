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


def of_ours(rows):
    """What our own arms say of themselves: tensors of the cell's dtype, sums in fp32."""
    dtype = rows[0]["dtype"]
    return {"engine": "decodelab", "version": "", "settings": {"weights": dtype, "activations": dtype, "kv": dtype, "accumulate": "fp32", "threads": rows[0]["threads"]}}


def computed(answer):
    """A line an engine that ran, ours too; nothing where no other ran, or where no arm of ours did: then the reference was another's."""
    arms = dict.fromkeys(row["arm"] for row in answer.rows if not row["arm"].startswith("roofline"))
    if not answer.engines or all(arm in answer.engines for arm in arms):
        return ""
    lines = []
    for arm in arms:
        rows = [row for row in answer.rows if row["arm"] == arm and row["status"] == "ok"]
        if not rows:
            continue
        said = answer.engines.get(arm) or of_ours(rows)
        settings = said["settings"]
        phases = dict.fromkeys(row["phase"] for row in rows)
        # A client of a server says its own version too.
        version = settings.get("server_version", said["version"])
        lines.append([arm, f"{said['engine']} {version}".strip(), *(settings.get(name, "not told") for name in DTYPES), str(settings.get("threads", "not told")),
                      worst(rows, "logit_error", max), worst(rows, "kl_divergence", max), worst(rows, "top_1_agreement", min),
                      "; ".join(f"{phase}: {own_tool(said['engine'], phase, rows[0]['dtype'], checks())}" for phase in phases) if arm in answer.engines else "-"])
    heads = ["engine", "version", *DTYPES, "threads", "largest logit error", "KL, nats", "same largest logit", "its own tool beside our worker, ours / its"]
    note = "Outputs beside our reference's, both fed the same tokens: the worst of the cells. A worker is validated where the engine's own benchmark tool agrees within 2 % (`tools/cross_check`)."
    return f"{note}\n\n{markdown(heads, lines)}"
