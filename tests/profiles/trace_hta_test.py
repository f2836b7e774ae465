"""HolisticTraceAnalysis reads our JSON and computes the breakdown of the event model."""

import json
import os
import subprocess
import sys
import unittest

from sample_traces import Traces, has_module, need


class HolisticTraceAnalysis(Traces):
    def test_holistic_trace_analysis_computes_the_breakdown_of_the_model(self):
        need(has_module("hta"), "wheel HolisticTraceAnalysis")
        for name in ("eager", "graph", "sample"):
            expected = self.expected(name)
            script = ("import json, sys, warnings; warnings.simplefilter('ignore')\n"
                      "from hta.trace_analysis import TraceAnalysis\n"
                      "t = TraceAnalysis(trace_files={0: sys.argv[1]}, trace_dir='/', include_last_profiler_step=True)\n"
                      "print(t.get_temporal_breakdown(visualize=False).to_json(orient='records'))\n")
            done = subprocess.run([sys.executable, "-c", script, self.path(name, ".pt.trace.json.gz")], capture_output=True, text=True,
                                  timeout=240, env={**os.environ, "HTA_DISABLE_NS_ROUNDING": "1"})
            self.assertEqual(done.returncode, 0, done.stderr[-2000:])
            (rank,) = json.loads(done.stdout.splitlines()[-1])
            self.assertAlmostEqual(rank["kernel_time(us)"], expected["device_span_ns"] / 1000, places=3, msg=name)
            self.assertAlmostEqual(rank["idle_time(us)"], (expected["device_span_ns"] - expected["device_busy_ns"]) / 1000, places=3,
                                   msg=name)


if __name__ == "__main__":
    unittest.main()
