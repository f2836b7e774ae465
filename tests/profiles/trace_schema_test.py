"""Traces in Perfetto's official schema: every field is known, and order and flags are what it asks for."""

import unittest
from collections import defaultdict

from sample_traces import TRACES, Traces, has_module, need


class PerfettoSchema(Traces):
    @classmethod
    def setUpClass(cls):
        need(has_module("perfetto"), "wheel perfetto")
        super().setUpClass()

    def packets(self, name):
        from perfetto.protos.perfetto.trace import perfetto_trace_pb2
        trace = perfetto_trace_pb2.Trace()
        with open(self.path(name, ".pftrace"), "rb") as file:
            trace.ParseFromString(file.read())
        return trace.packet

    def test_knows_every_field_that_is_written(self):
        def unknown(message):
            from google.protobuf.unknown_fields import UnknownFieldSet
            count = len(UnknownFieldSet(message))
            for field, value in message.ListFields():
                if field.message_type is not None:
                    count += sum(map(unknown, value)) if hasattr(value, "__len__") else unknown(value)
            return count
        for name in TRACES:
            packets = self.packets(name)
            self.assertGreater(len(packets), 10)
            self.assertEqual([unknown(packet) for packet in packets], [0] * len(packets), name)

    def test_order_and_flags_are_what_its_documentation_asks_for(self):
        for name in TRACES:
            packets = self.packets(name)
            self.assertEqual(packets[0].sequence_flags, 1)
            self.assertEqual(packets[0].clock_snapshot.primary_trace_clock, 3)
            self.assertTrue(all(packet.sequence_flags != 1 for packet in packets[1:]))
            self.assertEqual({packet.trusted_packet_sequence_id for packet in packets}, {1})
            events = [packet for packet in packets if packet.HasField("track_event")]
            times = [packet.timestamp for packet in events]
            self.assertEqual(times, sorted(times), name)
            described = {packet.track_descriptor.uuid for packet in packets if packet.HasField("track_descriptor")}
            self.assertLessEqual({packet.track_event.track_uuid for packet in events}, described)
            for packet in packets:
                if packet.HasField("track_descriptor"):
                    self.assertEqual(packet.track_descriptor.sibling_merge_behavior, 2)
                if packet.track_descriptor.name.startswith("GPU "):
                    self.assertEqual(packet.track_descriptor.child_ordering, 3)

    def test_begins_and_ends_of_each_track_pair_up_as_a_stack(self):
        for name in TRACES:
            open_slices = defaultdict(list)
            for packet in self.packets(name):
                event = packet.track_event
                if event.type == 1:
                    open_slices[event.track_uuid].append(packet.timestamp)
                elif event.type == 2:
                    self.assertLessEqual(open_slices[event.track_uuid].pop(), packet.timestamp)
            self.assertFalse(any(open_slices.values()), name)


if __name__ == "__main__":
    unittest.main()
