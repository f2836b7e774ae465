"""A worker of the protocol that decodes nothing, and misbehaves as its argument says."""
import json
import os
import sys
import time

how = sys.argv[1] if len(sys.argv) > 1 else "good"
requests = os.fdopen(3, "r")


def reply(**fields):
    os.write(4, (json.dumps(fields) + "\n").encode())


print("a library prints on stdout")
steps_seen = 0
batch = 1
for line in requests:
    request = json.loads(line)
    kind = request["request"]
    if how == "dies-in-" + kind:
        print("the fake ran out of patience", flush=True)
        os._exit(3)
    if how == "hangs-in-" + kind:
        time.sleep(3600)
    if how == "rubbish-in-" + kind:
        os.write(4, b"Loading model: 100%|####|\n")
        continue
    if how == "oom-in-" + kind:
        reply(reply="error", kind="oom", message="no room for this\nand a trace")
        continue
    if kind == "hello":
        version = str(time.monotonic_ns()) if how == "changes-its-version" else "1.0"
        reply(reply="hello", protocol=3 if how == "speaks-another-version" else 1, engine="fake", version=version,
              settings={"mood": how, **({"places": os.environ.get("OMP_PLACES", ""), "bind": os.environ.get("OMP_PROC_BIND", ""), "cores": len(os.sched_getaffinity(0))}
                                 if how == "tells-its-places" else {})}, phases=["decode"], fills=["generated"], dtypes=["fp32"], devices=["cpu"],
              forced=how != "shows-no-logits", exact=how == "exact", turns=how == "takes-turns" or "in-turn" in how)
    elif kind == "load":
        reply(reply="loaded", settings={"threads": request["threads"]})
    elif kind == "prepare":
        batch = request["cell"]["batch"]
        assert len(request["prompts"]) == batch and len(request["prompts"][0]) == request["cell"]["length"]
        reply(reply="prepared", bytes_needed=0)
    elif kind == "outputs":
        reply(reply="outputs", tokens=[[3] * batch for _ in range(request["steps"])], logits_file=None, vocabulary=0)
    elif kind == "counters":
        reply(reply="counters", step_ns=1000000, peak_bytes=None, counters={"things": 7}, unsteady=[], engaged=None,
              missing="")
    elif kind == "visit":
        steps = request["steps"] - (how == "one-step-short")
        step_ns = 10**12 if how == "claims-more-time-than-passed" else 1000
        if how == "busy":
            end = time.process_time() + 0.2
            while time.process_time() < end:
                pass
        reply(reply="visit", warmup_steps=2, quiet=True, wall_ns=step_ns * steps, samples_ns=[step_ns] * steps)
    elif kind == "begin":
        steps_seen = 0
        reply(reply="begun", warmup_steps=3, quiet=True)
    elif kind == "turn":
        steps_seen += request["steps"]
        reply(reply="turn", wall_ns=1000 * request["steps"], samples_ns=[1000 + steps_seen] * request["steps"])
    elif kind == "bye":
        reply(reply="bye")
        break
