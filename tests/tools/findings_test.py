"""Tests of tools/findings: a sweep's answer is kept, a page is made of it, and the settings of other engines are chosen by it."""

import json
import os
import pathlib
import sys
import tempfile
import time
import unittest
import unittest.mock
import urllib.request

TOOLS = pathlib.Path(__file__).resolve().parents[2] / "tools"
sys.path[:0] = [str(TOOLS / "study"), str(TOOLS / "validation")]
os.environ.setdefault("DECODELAB", "decodelab")
from study import classes, drawing, engines, page, peers, prediction, sequences, serving, tax  # noqa: E402
from study.answers import Answer, Answers  # noqa: E402
from study.questions import Claim, Question, Study  # noqa: E402
from validation import __main__ as validation, cross_check, paced_server  # noqa: E402


def row(arm, batch=1, ms=1.0, ratio=None, status="ok", **more):
    low, high = (ratio[1], ratio[2]) if ratio else (None, None)
    return {"arm": arm, "phase": "decode", "scope": "step", "batch": batch, "length": 128, "status": status, "reason": "" if status == "ok" else "it cannot", "median_ns": 1e6 * ms,
            "min_ns": 1e6 * ms, "time_ratio": ratio[0] if ratio else 1, "time_ratio_low": low, "time_ratio_high": high, "bound_share": None, "bound_share_low": None, "bound_share_high": None,
            "peak_bytes": 1 << 20, "counters": {"counted_steps": 1}, **more}


class FindingsTest(unittest.TestCase):
    def claim(self, says, *ratios):
        rows = [row("other", batch, ratio=ratio) for batch, ratio in enumerate(ratios, 1)]
        return page.judged(Claim("it is", "other", "decode", says), rows)[1:]

    def test_a_claim_agrees_only_where_every_interval_bears_it_out(self):
        slower, faster, unclear = (1.2, 1.1, 1.3), (0.8, 0.7, 0.9), (1.1, 0.9, 1.3)
        self.assertEqual(self.claim("slower", slower, slower), ["**agrees**", "2 slower of 2 cells"])
        self.assertEqual(self.claim("slower", slower, unclear), ["agrees in part", "1 slower, 1 undecided of 2 cells"])
        self.assertEqual(self.claim("slower", faster), ["**disagrees**", "1 faster of 1 cells"])
        self.assertEqual(self.claim("slower", unclear), ["undecided", "1 undecided of 1 cells"])
        self.assertEqual(self.claim("same", (1.0, 0.99, 1.01)), ["**agrees**", "1 same of 1 cells"])
        self.assertEqual(self.claim("slower"), ["not measured", " of 0 cells"])
        one_row = Claim("it is", "other", "decode", "slower", most_batch=1)
        self.assertEqual(page.judged(one_row, [row("other", 1, ratio=slower), row("other", 4, ratio=faster)])[1:], ["**agrees**", "1 slower of 1 cells"])

    def test_a_page_says_what_was_not_measured_and_why_a_row_is_not_there(self):
        with tempfile.TemporaryDirectory() as folder:
            answers = Answers(folder)
            study = Study("T", "command", (Question("one", "One?", {}, shows="engines"), Question("two", "Two?", {})), claimed_by="asked")
            answers.path(study.questions[0]).write_text('{"sweep": ["sweep", "--worker", "a b=c"], "where": "here"}\n' + "".join(
                json.dumps(each) + "\n" for each in (row("native"), row("slow", ms=2, ratio=(2, 1.9, 2.1)), row("none", status="unsupported"))))
            text, complete = page.whole(study, answers)
        self.assertFalse(complete)
        self.assertIn("decodelab sweep --worker 'a b=c'", text)
        self.assertIn("| decode b1 L128 | 1 | - | 2 | 2.000 [1.900, 2.100] | - | unsupported | - | - |", text)
        self.assertIn("* none: unsupported, it cannot", text)
        self.assertTrue(text.endswith("Not measured here: Two?\n"))

    def test_a_page_has_a_table_where_no_row_of_a_question_or_of_an_arm_could_be_timed(self):
        wrong = [row(arm, batch, status="incorrect") for batch in (1, 2) for arm in ("causal", "other")]
        for layout in ("times", "memory", "slope", "residues"):
            with self.subTest(layout):
                self.assertIn("| other |" if layout in ("slope", "residues") else "| incorrect |", page.LAYOUTS[layout](wrong))
        half = [row("causal", 1), row("causal", 2, ms=3), *(one for one in wrong if one["arm"] == "other")]
        self.assertIn("| other | - | - |", page.LAYOUTS["slope"](half))
        self.assertIn("| causal | 2000 | 0 |", page.LAYOUTS["slope"](half))

    def test_a_page_says_what_an_engine_computed_and_whether_its_own_tool_bears_our_worker_out(self):
        rows = [row("native", dtype="bf16", threads=2), row("llama.cpp", ms=2, dtype="bf16", logit_error=0.01, kl_divergence=2e-5, top_1_agreement=1.0),
                row("llama.cpp", batch=8, ms=2, dtype="bf16", logit_error=0.02, kl_divergence=1e-5, top_1_agreement=0.875)]
        said = {"llama.cpp": {"engine": "llama.cpp", "version": "7", "settings": {"weights": "bf16", "kv": "bf16", "threads": 2}}}
        text = peers.computed(Answer([], "here", rows, said))
        self.assertIn("| llama.cpp | llama.cpp 7 | bf16 | not told | bf16 | not told | 2 | 0.02 | 2e-05 | 0.88 | decode: ", text)
        self.assertIn("| native | decodelab | bf16 | bf16 | bf16 | fp32 | 2 | - | - | - | - |", text)
        self.assertEqual(peers.computed(Answer([], "here", rows)), "")
        self.assertEqual(peers.computed(Answer([], "here", rows[1:], said)), "", "without an arm of ours the reference was another's")

    def test_a_speed_up_is_predicted_from_rounds_that_say_one_token_each(self):
        said = 32

        def price(guesses):
            return 1 + 0.03 * guesses

        def spoken(guesses, percent):
            """A row of rounds that say one token or all that they may, each at its price."""
            left, rounds, time, proposed = said, 0, 0, 0
            while left:
                checked = min(guesses, left - 1)
                rounds, time, proposed = rounds + 1, time + price(checked), proposed + checked
                left -= 1 if percent == 0 else checked + 1
            ratio = time / said
            counters = {"rounds": rounds, "proposed_tokens": proposed, "emitted_tokens": said}
            return row(f"native,+oracle-draft:percent={percent}:tokens={guesses}", ratio=(ratio, 0.99 * ratio, 1.01 * ratio), counters=counters, launch_ratios=[0.9 * ratio, ratio, 1.1 * ratio])

        rows = [row("native"), *(spoken(guesses, percent) for percent in (0, 100) for guesses in (1, 3, 7))]
        prices = prediction.prices({each["arm"]: each for each in rows}, said)
        for guesses in (1, 3, 7):
            self.assertAlmostEqual(prices[guesses], price(guesses))
        text = page.predicted(rows)
        self.assertIn("| decode b1 L128 | 100 % | 7 | 1.210 | 4 | 6.61 | 6.61 | 6.61 [6.55, 6.68] | 1.000 [0.993, 1.007] |", text, "launches that are slow for all arms leave the prediction where it was")
        self.assertIn("| decode b1 L128 | 0 % | 3 | 1.090 | 32 | 0.92 | - |", text)
        self.assertEqual(prediction.oracle("native,+oracle-draft"), (80, 4))
        self.assertIsNone(prediction.oracle("native"))

    def test_a_guess_is_counted_at_its_position_only_where_all_before_it_stood(self):
        completions = [{"class": "open", "rounds": [[3, 3], [3, 1], [0, 0]]}, {"class": "open", "rounds": [[2, 0]]}]
        self.assertEqual(classes.by_position(completions), {1: (3, 2), 2: (2, 1), 3: (1, 1)})
        right, tokens, skipped = classes.rates(completions)
        self.assertEqual((right, tokens, skipped), (4 / 8, 8 / 4, 4 / 8))

    def test_acceptance_has_an_interval_over_prompts(self):
        rows = [{"class": "edits", "rounds": [[4, kept]] * 20} for kept in (0, 4, 4, 4)] + [{"class": "open", "rounds": [[4, 2]] * 3}] * 5
        text = classes.table(rows)
        self.assertIn("| open | 5 | 60 | 50% [50%, 50%] | 3.00 [3.00, 3.00] | 67% [67%, 67%] |", text)
        self.assertRegex(text, r"\| edits \| 4 \| 320 \| 75% \[(0|25)%, 100%\] \|")
        points = {(point["class"], point["position"]): point for point in classes.positions(rows)}
        self.assertEqual(points["edits", 1]["share"], 0.75)
        self.assertEqual(points["edits", 4]["share"], 1, "whose first stood, all stood")
        self.assertEqual([points["open", position]["share"] for position in (1, 2, 3)], [1, 1, 0])
        self.assertNotIn(("open", 4), points, "nothing came so far")

    def test_each_class_of_text_has_as_many_prompts_as_the_figure_says(self):
        self.assertEqual({name: len(pairs) for name, pairs in classes.texts().items()}, dict.fromkeys(classes.HELD, 6))
        self.assertEqual([classes.class_of(index) for index in (0, 5, 6, 23)], ["summaries", "summaries", "edits", "open"])

    def test_a_loss_stands_beside_the_time_with_its_interval(self):
        quality = {"kl_divergence": 0.05, "kl_divergence_error": 0.002, "perplexity_ratio": 1.05, "log_perplexity_ratio_error": 0.01, "top_1_agreement": 0.875}
        rows = [row("native", counters={"counted_steps": 8, "modelled_weight_bytes": 8 * 250e6}), row("int4", ms=0.5, ratio=(0.5, 0.4, 0.6), quality=quality), row("roofline-read")]
        text = page.losses(rows)
        self.assertIn("| decode b1 L128 | native | 1 | 1 | - | 250 | - | - | - |", text)
        self.assertIn("| decode b1 L128 | int4 | 0.5 | 0.500 [0.400, 0.600] | - | - | 0.05 ± 0.004 | x1.0500 ± 0.0206 | 87.5 % |", text)
        self.assertNotIn("roofline", text)

    def test_a_quick_validation_fails_only_by_what_misses_every_time(self):
        for misses, attempts, ok, collected in ((2, 3, True, 3), (3, 3, False, 3), (1, 1, False, 1), (0, 3, True, 1)):
            with tempfile.TemporaryDirectory() as folder:
                path = pathlib.Path(folder) / "part.jsonl"
                begun = []

                def collect(out, keep_going):
                    self.assertFalse(path.exists(), "a part that is run again starts from nothing")
                    path.write_text("{}")
                    begun.append(out)
                    return unittest.mock.Mock(path=path)

                def judge(trials):
                    return [{"what": "an empty step", "seen": "-", "target": "-", "ok": len(begun) > misses}]

                with unittest.mock.patch("sys.stderr"):
                    _, rows = validation.judged((collect, judge), folder, lambda: True, attempts)
                self.assertEqual((rows[0]["ok"], len(begun)), (ok, collected))

    def test_a_paced_server_sends_each_token_no_earlier_than_it_says(self):
        with paced_server.serving(0.05, 0.01) as url:
            begun = time.monotonic()
            body = json.dumps({"prompt": [1, 2], "max_tokens": 4, "stream": True}).encode()
            with urllib.request.urlopen(urllib.request.Request(f"{url}/v1/completions", body), timeout=30) as answer:
                events = [(line[len(b"data: "):], time.monotonic() - begun) for line in answer if line.startswith(b"data: ")]
        self.assertEqual(events.pop()[0].strip(), b"[DONE]")
        self.assertEqual(json.loads(events.pop()[0])["usage"]["completion_tokens"], 4)
        choices = [json.loads(text)["choices"][0] for text, _ in events]
        self.assertEqual([choice["token_ids"] for choice in choices], [[17], [25], [81], [85]])
        self.assertEqual([choice["finish_reason"] for choice in choices], [None, None, None, "length"])
        for index, (_, seconds) in enumerate(events):
            self.assertGreaterEqual(seconds, 0.05 + 0.01 * index)

    def test_a_worker_is_validated_only_by_its_own_tool_in_the_same_phase_and_dtype(self):
        checks = [{"engine": "llama.cpp", "phase": "prefill", "dtype": "fp32", "ratio": "1.01 [1.00, 1.02]", "ok": True},
                  {"engine": "llama.cpp", "phase": "decode", "dtype": "fp32", "ratio": "0.96 [0.81, 1.13]", "ok": None}]
        self.assertEqual(peers.own_tool("llama.cpp", "prefill", "fp32", checks), "validated: 1.01 [1.00, 1.02]")
        self.assertEqual(peers.own_tool("llama.cpp", "decode", "fp32", checks), "unvalidated: 0.96 [0.81, 1.13]")
        for engine, phase, dtype in (("llama.cpp", "prefill", "bf16"), ("transformers", "prefill", "fp32")):
            self.assertEqual(peers.own_tool(engine, phase, dtype, checks), "unvalidated")

    def test_the_best_setting_is_the_one_whose_cells_all_ran_in_the_least_time(self):
        flags = engines.GRID["llama.cpp", "bf16"]
        rows = [row(engines.setting("llama.cpp", one), batch, ms) for one, times in zip(flags, ((2, 8), (3, 3), (1, 1), (4, 4)), strict=True) for batch, ms in zip((1, 8), times, strict=True)]
        rows[4]["status"] = "failed"

        class Measured:
            def get(self, question):
                return Answer([], "here", rows) if question.name == "settings-bf16" else None

        self.assertEqual(engines.best(Measured(), "llama.cpp", "bf16"), flags[1])
        self.assertEqual(engines.best(Measured(), "llama.cpp", "fp32"), engines.GRID["llama.cpp", "fp32"][0])

    def test_every_setting_has_a_name_of_its_own_that_a_worker_may_have(self):
        for dtype in ("bf16", "fp32"):
            names = [worker.split("=")[0] for worker in engines.pilot(dtype).sweep["--worker"]]
            self.assertEqual(len(set(names)), len(names))
            for name in names:
                self.assertRegex(name, r"\A[A-Za-z0-9._-]+\Z")

    def test_rates_of_requests_come_from_what_the_static_batch_answered(self):
        class Measured:
            def get(self, question):
                return Answer([], "here", [row(sequences.STATIC, sequences.BATCH, 100 * sequences.REQUESTS) | {"phase": "batching", "scope": scope} for scope in ("first-token", "served")])

        self.assertEqual(sequences.under_load(Measured())["--request-rate"], "6,9,12", "a request each 100 ms")

    def test_a_tax_is_the_server_over_the_engine_launch_by_launch(self):
        # A slow second launch slows both alike, and says nothing of the server.
        rows = [row("native"), row("vllm", ms=2, ratio=(2, 1.5, 2.5), launch_ratios=[2, 3, 2]), row("vllm-server", ms=2.2, ratio=(2.2, 1.6, 2.8), launch_ratios=[2.2, 3.3, 2.2]),
                row("llama.cpp", ms=1.5, ratio=(1.5, 1.4, 1.6), launch_ratios=[1.5, 1.5]), row("llama.cpp-server", status="failed", launch_ratios=[])]
        value, low, high = tax.ratio(rows[2], rows[1])
        self.assertAlmostEqual(value, 1.1)
        self.assertAlmostEqual(low, high)
        self.assertIsNone(tax.ratio(rows[4], rows[3]))
        text = page.taxes(rows)
        self.assertIn("| decode b1 L128 | 1 | vllm | 2 | 2.000 [1.500, 2.500] | 2.2 | 2.200 [1.600, 2.800] | 1.100 [1.100, 1.100] | +0.2 |", text)
        self.assertIn("| decode b1 L128 | 1 | llama.cpp | 1.5 | 1.500 [1.400, 1.600] | failed | - | - | - |", text)
        self.assertEqual([(point["engine"], point["batch"]) for point in tax.points(page.by_cell(rows))], [("vllm", 1)])
        self.assertEqual(tax.sentences("T", page.by_cell(rows)), ["**T**, decode: the time of vllm's server over that of vllm in process is 1.100 [1.100, 1.100] at 1 row."])
        self.assertEqual(len(drawing.serving_tax(page.by_cell(rows))["data"]["values"]), 1)

    def test_a_claim_may_be_about_another_arm_than_the_baseline(self):
        rows = [row("native"), row("vllm", ratio=(2, 1.5, 2.5), launch_ratios=[2, 3]), row("vllm-server", ratio=(1.9, 1.5, 2.4), launch_ratios=[1.9, 2.85])]
        self.assertEqual(page.judged(Claim("it is", "vllm-server", "decode", "faster", base="vllm"), rows)[1:], ["**agrees**", "1 faster of 1 cells"])
        self.assertEqual(page.judged(Claim("it is", "vllm-server", "decode", "slower"), rows)[1:], ["**agrees**", "1 slower of 1 cells"])
        self.assertEqual(page.judged(Claim("it is", "vllm-server", "decode", "faster", base="nobody"), rows)[1], "not measured")

    def test_every_server_is_asked_beside_its_engine_in_process(self):
        for question in (one for one in serving.SERVING.questions if one.shows == "tax"):
            with self.subTest(question=question.name):
                sweep = question.sweep(None)
                workers = dict(worker.split("=", 1) for worker in sweep["--worker"])
                self.assertEqual(sweep["--scope"], "serving")
                for inside, server in tax.pairs(workers):
                    name = serving.script(inside)
                    self.assertIn(f"tools/peers/run {name}", workers[inside])
                    self.assertIn(f"tools/peers/serve {name} --model {{model}} --dtype {{dtype}} --threads {{threads}} --port {{port}}", workers[server])
                self.assertEqual(len(tax.pairs(workers)) * 2, len(workers))
                self.assertEqual({claim.arm for claim in question.claims}, {server for _, server in tax.pairs(workers)})
                self.assertLessEqual(max(map(int, sweep["--batch"].split(","))), serving.ROWS)

    def test_rates_of_requests_to_servers_come_from_what_the_slowest_answered(self):
        class Measured:
            def get(self, question):
                rows = [row(arm, serving.BATCH, ms * serving.REQUESTS) | {"phase": "batching", "scope": "served"} for arm, ms in (("native", 20), ("vllm-server", 100))]
                return Answer([], "here", [*rows, row("llama.cpp-server", serving.BATCH, 1e6, status="failed") | {"phase": "batching", "scope": "served"}])

        self.assertEqual(serving.under_load(Measured())["--request-rate"], "5,9", "a request each 100 ms")
        self.assertNotIn("--scope", serving.BURST.sweep)

    def test_what_a_client_costs_stands_beside_the_tax(self):
        counters = {"counted_steps": 16, "client_cpu_ns": 41_000, "empty_round_trip_ns": 230_000, "tokens_read_together": 2}
        text = page.taxes([row("native"), row("vllm-server", counters=counters)])
        self.assertIn("| decode b1 L128 | vllm-server | 41 | 230 | 2 | 0 |", text)
        self.assertNotIn("round trip", page.taxes([row("native")]))

    def test_the_program_is_named_from_the_root_where_it_lies_below_it(self):
        for program, name in ((str(serving.ROOT / "build" / "ci" / "decodelab"), "build/ci/decodelab"), ("/usr/bin/decodelab", "/usr/bin/decodelab"), ("decodelab", "decodelab")):
            with unittest.mock.patch.object(serving.program, "PROGRAM", program):
                self.assertEqual(serving.own_program(), name)

    def test_what_a_tool_said_replaces_only_what_it_said_before(self):
        def seen(engine, phase, dtype, ratio):
            return {"engine": engine, "phase": phase, "dtype": dtype, "ratio": ratio, "ok": True, "where": "there"}

        with tempfile.TemporaryDirectory() as folder, unittest.mock.patch.multiple(cross_check.program, processor=lambda: "cpu", build=lambda: "build"):
            path = pathlib.Path(folder, "cross_check.json")
            path.write_text(json.dumps([seen("a", "prefill", "fp32", "old"), seen("a", "prefill", "bf16", "kept"), seen("b", "prefill", "fp32", "kept")]))
            cross_check.keep(path, [seen("a", "prefill", "fp32", "new"), {"check": "sleep"}])
            self.assertEqual([(each["engine"], each["dtype"], each["ratio"]) for each in json.loads(path.read_text())], [("a", "bf16", "kept"), ("b", "fp32", "kept"), ("a", "fp32", "new")])


if __name__ == "__main__":
    unittest.main()
