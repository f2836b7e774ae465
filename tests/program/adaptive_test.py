"""`decodelab sweep --adaptive`: launches until they decide. Beside another test there may be no verdict, so that it runs alone."""

import contextlib
import sqlite3
import unittest

from program import ProgramTest


class AnAdaptiveSweep(ProgramTest):
    def test_adds_launches_until_they_decide(self):
        answer = self.run_json("sweep", "--store", self.store, "-m", "synthetic:tiny", "--arm", "causal", "--arm", "slow-3000000:causal", "--phase", "decode", "--length", "16", "--blocks", 1,
                            "--adaptive")
        slow = answer["rows"][1]
        # A step that is several times as long is decided at the first look, or at a later one where the machine was disturbed.
        self.assertEqual(slow["verdict"], "SLOWER")
        self.assertIn(slow["launches"], (7, 11, 17, 25))
        self.assertIn("%", answer["interval_level"])
        self.assertEqual(self.query("SELECT launches, ended_unix_ns > 0 FROM runs"), [(slow["launches"], 1)])
        refused = self.run_program("sweep", "--store", self.store, "-m", "synthetic:tiny", "--arm", "causal", "--arm", "bigcode", "--adaptive", "--launches", 9, expect=2)
        self.assert_one_sentence(refused, "--adaptive", "--launches")

    def query(self, sql):
        with contextlib.closing(sqlite3.connect(self.store)) as store:
            return store.execute(sql).fetchall()


if __name__ == "__main__":
    unittest.main()
