"""Serves versions 1 and 2 of the worker protocol (README.md): requests on descriptor 3, replies on descriptor 4, one JSON object a line."""

import gc
import json
import math
import os
import statistics
import sys
import tempfile

from worker_engine import FILLED_PHASES, PHASE_SCOPES, SAMPLES, WARPED, Cell

OLDEST, NEWEST = 1, 2
# Values of the parameters of sampling that change nothing.
NEUTRAL = {"sample": False, "temperature": 1, "top_k": 0, "top_p": 1, "typical_p": 1, "repetition_penalty": 1}
REQUESTS, REPLIES = 3, 4
# Steps that `counters` runs: the first pays for what is made lazily, the fastest of the rest plans the visits.
PROBE_STEPS = 3


class Refusal(Exception):
    """A request that cannot be served as it stands; the worker goes on."""

    def __init__(self, message, kind="failed"):
        super().__init__(message)
        self.kind = kind


class Request(dict):
    """An object of a request, whose missing keys are named to the one who sent it."""

    def __missing__(self, key):
        raise Refusal(f"the request lacks the key '{key}'")


class Warmup:
    """Fed with each step's time, says when to stop: long enough and quiet, or slow, or at the limit of steps."""

    def __init__(self, minimum_ns, window, quiet_share, slow_step_ns, maximum_steps, maximum_ns=2_000_000_000):
        self.minimum_ns, self.window, self.quiet_share = minimum_ns, window, quiet_share
        self.slow_step_ns, self.maximum_steps, self.maximum_ns = slow_step_ns, max(1, maximum_steps), maximum_ns
        self.samples = []

    def add(self, step_ns):
        """Takes a step and returns done(), so that it can be the sink of Engine.run."""
        self.samples.append(step_ns)
        return self.done()

    def quiet(self):
        if self.samples and self.samples[0] > self.slow_step_ns:
            return True
        half = self.window // 2
        last = self.samples[-2 * half :]
        if half < 1 or len(last) < 2 * half:
            return False
        # Medians: a cost that comes every 8th step falls into one half, and would keep any mean unquiet.
        before, after = statistics.median(last[:half]), statistics.median(last[half:])
        # Halves that differ by no more than steps about their medians do show no trend: more steps would not end the noise.
        gaps = sum(ordered[half // 2] - ordered[(half - 1) // 2] for ordered in (sorted(last[:half]), sorted(last[half:])))
        return abs(after - before) < max(self.quiet_share * before, gaps)

    def done(self):
        if len(self.samples) >= self.maximum_steps:
            return True
        if len(self.samples) >= self.window and sum(self.samples) >= self.maximum_ns:
            return True
        return bool(self.samples) and sum(self.samples) >= self.minimum_ns and self.quiet()


class Steps:
    """The steps of an engine from a fresh fill on, which is filled again, untimed, where its capacity ends."""

    def __init__(self, engine, capacity):
        self.engine, self.capacity, self.left = engine, math.inf if capacity is None else capacity, 0

    def run(self, steps, sink):
        """Runs until `steps` have run or `sink` returned True; returns the timed ns of all pieces."""
        wall_ns, ran, stopped = 0, 0, False

        def count(step_ns):
            nonlocal ran, stopped
            ran += 1
            stopped = bool(sink(step_ns))
            return stopped

        while ran < steps and not stopped:
            if self.left == 0:
                self.engine.fill()
                self.left = self.capacity
            before = ran
            wall_ns += self.engine.run(min(self.left, steps - ran), count)
            if ran == before:
                raise RuntimeError(f"{self.engine.name} ran no step of {steps - ran}; expected {min(self.left, steps - ran)}")
            self.left -= ran - before
        return wall_ns


class Server:
    """Answers requests for one engine, and remembers what is loaded and prepared."""

    def __init__(self, engine):
        self.engine = engine
        self.loaded = None  # the load request
        self.cell = None
        self.visit = None

    def answer(self, line):
        """The reply to one line, and whether to go on."""
        filling_ns = self.engine.filling_ns
        try:
            request = parse(line)
            handler = getattr(self, "on_" + request["request"], None)
            if request["request"] != "turn":
                self.visit = None
            if handler is None:
                raise Refusal(f"unknown request '{request['request']}': protocol {NEWEST} has hello, load, prepare, outputs, counters, visit, begin, turn and bye")
            reply = {"reply": REPLY_NAMES.get(request["request"], request["request"]), **handler(request)}
            if self.engine.filling_ns > filling_ns:
                reply["spent"] = {"filling_ns": self.engine.filling_ns - filling_ns}
            return reply, request["request"] != "bye"
        except Refusal as refusal:
            return error(refusal.kind, refusal), True
        except MemoryError as problem:
            return error("oom", problem), True
        except NotImplementedError as problem:
            return error("unsupported", problem), True
        except Exception as problem:  # whatever an engine throws is an outcome of this cell, not the end of the worker
            return error("oom" if is_out_of_memory(problem) else "failed", problem), True

    def on_hello(self, request):
        newest = min(request.get("newest", request["protocol"]), NEWEST)
        if newest < OLDEST or request["protocol"] > NEWEST:
            raise Refusal(f"protocol {request['protocol']} was asked for; this worker speaks {OLDEST} and {NEWEST}", "unsupported")
        engine = self.engine
        scopes = [scope for phase, scope in PHASE_SCOPES if phase in engine.phases]
        more = {"samples": True, "sampling": list(engine.sampling), "prefixes": engine.prefixes} if newest > OLDEST else {}
        return {**more, "protocol": newest, "engine": engine.name, "version": engine.version, "settings": engine.settings, "phases": list(engine.phases),
                "scopes": list(dict.fromkeys(scopes)), "fills": ["generated"], "dtypes": list(engine.dtypes), "devices": list(engine.devices), "turns": engine.turns}

    def on_load(self, request):
        model, dtype, device, threads = (request[key] for key in ("model", "dtype", "device", "threads"))
        self.loaded = self.cell = None
        self.engine.forget()
        gc.unfreeze()
        if dtype not in self.engine.dtypes:
            raise Refusal(f"{self.engine.name} here has no {dtype}: it has {', '.join(self.engine.dtypes)}", "unsupported")
        if device.split(":")[0] not in self.engine.devices:
            raise Refusal(f"{self.engine.name} here has no device {device}: it has {', '.join(self.engine.devices)}", "unsupported")
        settings = self.engine.load(model, dtype, device, threads, request["seed"])
        # What was made by loading never dies: without this, the collector would walk through it inside timed steps.
        gc.collect()
        gc.freeze()
        self.loaded = request
        return {"settings": settings, **({"logit_bound": self.engine.logit_bound} if self.engine.logit_bound else {})}

    def on_prepare(self, request):
        self.cell = None
        if not self.loaded:
            raise Refusal("prepare came before load: send load first")
        cell = self.checked(request)
        needed = self.engine.prepare(cell)
        self.cell = cell
        return {"bytes_needed": int(needed)}

    def checked(self, request):
        """The cell of a prepare request, where this engine can run it and the prompts are what the cell says."""
        cell, prompts, engine = request["cell"], request["prompts"], self.engine
        for key in ("dtype", "device", "threads"):
            if cell[key] != self.loaded[key]:
                raise Refusal(f"the cell wants {key} {cell[key]}, loaded was {self.loaded[key]}: send load again")
        samples, sampling = request.get("samples", 1), request.get("sampling")
        scope = cell["scope"].removesuffix(f"{SAMPLES}{samples}")
        if sampling is not None:
            scope = scope.removesuffix(WARPED)
            for name, value in sampling.items():
                if value != NEUTRAL.get(name) and name not in engine.sampling:
                    raise Refusal(f"{engine.name} cannot sample with {name}", "unsupported")
        if cell["phase"] not in engine.phases or (cell["phase"], scope) not in PHASE_SCOPES:
            known = ", ".join(f"{phase} at scope {scope}" for phase, scope in PHASE_SCOPES if phase in engine.phases)
            raise Refusal(f"{engine.name} has no {cell['phase']} at scope {cell['scope']}: it has {known}", "unsupported")
        if cell["fill"] != "generated":
            raise Refusal(f"{engine.name} has no fill '{cell['fill']}': it has generated, which holds the keys of the prompts", "unsupported")
        if cell["batch"] < 1 or cell["length"] < 1 or len(prompts) != cell["batch"] or any(len(row) != cell["length"] for row in prompts):
            raise Refusal(f"expected {cell['batch']} prompts of {cell['length']} ids, got lengths {[len(row) for row in prompts]}")
        if any(not isinstance(token, int) or not 0 <= token < engine.vocabulary for row in prompts for token in row):
            raise Refusal(f"a prompt holds an id outside 0 to {engine.vocabulary - 1}")
        room, most = max(0, request["room"]), max(1, request["max_tokens"])
        needed = cell["length"] + {"prefill": 0, "decode": 1, "generate": most - 1, "continue": most}[cell["phase"]]
        if needed > engine.positions or (cell["phase"] == "decode" and room < 1):
            raise Refusal(f"the cell needs {needed} positions and room for a step; the model has {engine.positions} positions, room is {room}", "unsupported")
        if cell["phase"] != "decode":
            room = max(room, most)
        room = min(room, engine.positions - cell["length"])
        prefix = request.get("prefix_tokens")
        if prefix is not None and not engine.prefixes:
            raise Refusal(f"{engine.name} here keeps no prefixes of prompts", "unsupported")
        if prefix is not None and not 0 <= prefix < cell["length"]:
            raise Refusal(f"a prefix of {prefix} tokens was asked for; a prompt has {cell['length']}, and one of them at least is new")
        # Each sample has a row of its own: whoever forks in a better way finds their number in the cell.
        rows = [row for row in prompts for _ in range(samples)]
        return Cell(phase=cell["phase"], batch=len(rows), length=cell["length"], prompts=rows, max_tokens=most, room=room, samples=samples, prefix=prefix, sampling=sampling)

    def prepared(self, name):
        if not self.cell:
            raise Refusal(f"{name} came before prepare: send load and prepare first")
        return self.cell

    def on_outputs(self, request):
        cell, steps, forced = self.prepared("outputs"), request["steps"], request["forced"]
        most = cell.room + (cell.phase not in FILLED_PHASES)  # the prefill is a step of its own
        if not 1 <= steps <= most:
            raise Refusal(f"{steps} steps of outputs were asked for; the cell has room for 1 to {most}")
        if forced is not None and (len(forced) < steps - 1 or any(len(row) != cell.batch for row in forced)):
            raise Refusal(f"forced needs {steps - 1} rows of {cell.batch} ids")
        first = request.get("first") or None
        if first is not None and len(first) != cell.batch:
            raise Refusal(f"first needs {cell.batch} ids")
        tokens, logits = self.engine.outputs(steps, forced, request["logits"], first)
        path = write_logits(logits) if logits is not None else None
        return {"tokens": tokens, "logits_file": path, "vocabulary": self.engine.vocabulary}

    def on_counters(self, request):
        cell, samples = self.prepared("counters"), []
        Steps(self.engine, self.engine.capacity(cell)).run(PROBE_STEPS, samples.append)
        return {"step_ns": min(samples), "peak_bytes": self.engine.peak_bytes(), "counters": {}, "unsteady": [], "engaged": None, "missing": ""}

    def on_visit(self, request):
        cell, steps = self.prepared("visit"), request["steps"]
        if steps < 1:
            raise Refusal(f"a visit of {steps} steps was asked for; expected at least 1")
        begun = self.begin(cell, request["warmup"])
        return {**begun, **self.turn(steps)}

    def begin(self, cell, rule):
        """Warms up; the steps of a turn begin afresh."""
        warmup, capacity = Warmup(**rule), self.engine.capacity(cell)
        # A sample of phase continue is the time of a token; its step, which the rule is about, has several.
        tokens = cell.max_tokens if cell.phase == "continue" else 1
        Steps(self.engine, capacity).run(warmup.maximum_steps, lambda ns: warmup.add(ns * tokens))
        self.visit = Steps(self.engine, capacity)
        return {"warmup_steps": len(warmup.samples), "warmup_ns": sum(warmup.samples), "quiet": warmup.quiet()}

    def turn(self, steps):
        samples = []
        wall_ns = self.visit.run(steps, samples.append)
        return {"wall_ns": wall_ns, "samples_ns": samples}

    def on_begin(self, request):
        cell = self.prepared("begin")
        if not self.engine.turns:
            raise Refusal(f"{self.engine.name} knows no turns: ask for a visit", "unsupported")
        return self.begin(cell, request["warmup"])

    def on_turn(self, request):
        if self.visit is None:
            raise Refusal("turn came before begin")
        if request["steps"] < 1:
            raise Refusal(f"a turn of {request['steps']} steps was asked for; expected at least 1")
        return self.turn(request["steps"])

    def on_bye(self, request):
        return {}


REPLY_NAMES = {"load": "loaded", "prepare": "prepared", "begin": "begun"}


def parse(line):
    """The object on one line, with its request's name."""
    try:
        request = json.loads(line, object_hook=Request)
    except ValueError as problem:
        raise Refusal(f"a request is one JSON object a line, got {line[:60]!r}: {problem}") from None
    if not isinstance(request, dict) or not isinstance(request.get("request"), str):
        raise Refusal(f"a request is an object with a key 'request', got {line[:60]!r}")
    return request


def error(kind, problem):
    """An error reply; its message is one line even where an engine writes several."""
    lines = [text.strip() for text in str(problem).splitlines() if text.strip()]
    message = lines[0] if lines else f"{type(problem).__name__} without a message"
    return {"reply": "error", "kind": kind, "message": message}


def is_out_of_memory(problem):
    """Whether an engine's own exception says that memory ran out: PyTorch throws RuntimeError for a CPU."""
    text = str(problem).lower()
    return type(problem).__name__ == "OutOfMemoryError" or "can't allocate memory" in text or "out of memory" in text or "bad_alloc" in text


def write_logits(rows):
    """Writes [steps, B, V] little-endian float32 to a temporary file, which the runner deletes."""
    handle, path = tempfile.mkstemp(prefix="decodelab-logits-")
    with os.fdopen(handle, "wb") as file:
        for row in rows:
            file.write(memoryview(row).cast("B"))
    return path


def serve(engine):
    """Answers until `bye` or the end of the requests; returns the exit code."""
    try:
        for descriptor in (REQUESTS, REPLIES):
            os.set_inheritable(descriptor, False)  # a compiler that the engine starts must not keep the pipes open
        requests, replies = os.fdopen(REQUESTS, "rb"), os.fdopen(REPLIES, "wb")
    except OSError:
        print(f"{sys.argv[0]}: this is a worker: pass it to `decodelab sweep --worker NAME='COMMAND'`, which talks to it on descriptors 3 and 4", file=sys.stderr)
        return 2
    server, going = Server(engine), True
    while going and (line := requests.readline()):
        reply, going = server.answer(line)
        try:
            replies.write(json.dumps(reply, allow_nan=False).encode() + b"\n")
            replies.flush()
        except BrokenPipeError:
            return 0  # nobody waits for an answer any more
    return 0
