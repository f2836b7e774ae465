"""Traces in kineto's JSON against the event model."""

import gzip
import json
import unittest
from collections import defaultdict

from sample_traces import TRACES, Traces


class Kineto(Traces):
    def events(self, name):
        with gzip.open(self.path(name, ".pt.trace.json.gz"), "rt", encoding="utf-8") as file:
            return json.load(file)

    def test_slices_counters_and_flows_are_those_of_the_model(self):
        for name in TRACES:
            expected = self.expected(name)
            sums = defaultdict(lambda: [0, 0])
            counters = defaultdict(list)
            ends = 0
            for event in self.events(name)["traceEvents"]:
                if event["ph"] == "X":
                    slice_name = event["name"].replace("ProfilerStep#", "step ")
                    sums[slice_name][0] += 1
                    sums[slice_name][1] += round(event["dur"] * 1000)
                elif event["ph"] == "C":
                    counters[event["name"]].append(event["args"]["value"])
                elif event["ph"] == "f":
                    ends += 1
            self.assertEqual(sums, expected["slices"], name)
            self.assertEqual(counters, expected["counters"], name)
            self.assertEqual(ends, expected["flows"], name)

    def test_its_head_is_what_readers_ask_for(self):
        document = self.events("sample")
        self.assertEqual(document["schemaVersion"], 1)
        self.assertEqual(document["baseTimeNanoseconds"], 1_700_000_000_000_000_000 + 1_000_000)
        self.assertEqual([device["id"] for device in document["deviceProperties"]], [0, 1])
        for event in document["traceEvents"]:
            if event.get("cat") == "kernel":
                self.assertLessEqual({"device", "context", "stream", "correlation", "grid", "block", "registers per thread"},
                                     set(event["args"]))
            if event.get("cat") == "cuda_sync":
                self.assertNotIn("stream", event["args"])

    def test_every_arrow_that_ends_has_begun(self):
        for name in TRACES:
            arrows = [event for event in self.events(name)["traceEvents"] if event.get("cat") == "ac2g"]
            begun = [event["id"] for event in arrows if event["ph"] == "s"]
            self.assertEqual(len(begun), len(set(begun)), name)
            self.assertEqual({event["id"] for event in arrows if event["ph"] == "f"}, set(begun), name)


if __name__ == "__main__":
    unittest.main()
