// Requests and replies survive the way over a line, and anything else is refused by name.
#include "bench/measure/process/worker_protocol.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

namespace decodelab {
namespace {

const CellRecord kSentCell{.phase = Phase::decode,
                           .batch = 2,
                           .length = 5,
                           .dtype = "bf16",
                           .device = "cpu",
                           .threads = 3,
                           .scope = "step",
                           .fill = "generated",
                           .steps = 16};

TEST(WorkerProtocol, CarriesRequests) {
  const WorkerLoad load{
      .model = "/a \"dir\"", .dtype = "bf16", .device = "cpu", .threads = 3, .seed = 9, .max_tokens = 4};
  const WorkerRequest loaded = parse_request(load_request(load));
  EXPECT_EQ(loaded.kind, "load");
  EXPECT_EQ(loaded.load.model, load.model);
  EXPECT_EQ(loaded.load.seed, 9);
  const WorkerRequest prepared =
      parse_request(prepare_request(kSentCell, load, 64, {{1, 2, 3, 4, 5}, {6, 7, 8, 9, 10}}, kNewestProtocol));
  EXPECT_EQ(prepared.cell.phase, Phase::decode);
  EXPECT_EQ(prepared.cell.threads, 3);
  EXPECT_EQ(prepared.cell.fill, "generated");
  const OutputTrace forced{.first = {8, 9}, .tokens = {{1, 2}, {3, 4}}};
  const WorkerRequest outputs = parse_request(outputs_request(3, &forced, true));
  ASSERT_TRUE(outputs.forced);
  EXPECT_EQ(outputs.forced->tokens, forced.tokens);
  EXPECT_EQ(outputs.forced->first, forced.first);
  EXPECT_TRUE(outputs.logits);
  EXPECT_FALSE(parse_request(outputs_request(3, nullptr, false)).forced);
  EXPECT_FALSE(parse_request(outputs_request(3, nullptr, false)).logits);
  EXPECT_TRUE(parse_request(R"({"request":"outputs","steps":3})").logits) << "as a request always was";
  EXPECT_EQ(parse_request(visit_request(24)).steps, 24);
}

TEST(WorkerProtocol, CarriesReplies) {
  const WorkerHello hello = parse_hello(hello_reply({.engine = "e",
                                                     .version = "1",
                                                     .settings_json = R"({"a":1})",
                                                     .phases = {"decode"},
                                                     .fills = {"random"},
                                                     .dtypes = {"fp32"},
                                                     .devices = {"cpu"},
                                                     .exact = true,
                                                     .forced = false,
                                                     .samples = true,
                                                     .sampling = {"top_k"}},
                                                    kNewestProtocol));
  EXPECT_EQ(hello.settings_json, R"({"a":1})");
  EXPECT_TRUE(hello.exact);
  EXPECT_FALSE(hello.forced);
  const Probe probe = parse_counters(counters_reply(
      {.peak_bytes = 5, .counters = {{"x", 1}}, .unsteady = {"y"}, .engaged = false, .missing = "m", .step_ns = 7}));
  EXPECT_EQ(probe.peak_bytes, 5);
  EXPECT_EQ(probe.engaged, false);
  EXPECT_EQ(probe.unsteady, std::vector<std::string>{"y"});
  const VisitTimes times =
      parse_visit(visit_reply({.warmup_steps = 1, .quiet = true, .wall_ns = 3, .samples_ns = {1, 2}}));
  EXPECT_EQ(times.samples_ns, (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(parse_begun(begun_reply(times)).warmup_steps, 1);
  EXPECT_EQ(parse_slice(slice_reply(times)).samples_ns, times.samples_ns);
  EXPECT_EQ(parse_slice(slice_reply(times)).wall_ns, 3);
  EXPECT_EQ(parse_request(begin_request(9)).steps, 9);
  EXPECT_EQ(parse_request(slice_request(7)).steps, 7);
}

TEST(WorkerProtocol, AsksAWorkerOfTheOldestVersionForWhatThatHas) {
  CellRecord cell = kSentCell;
  cell.phase = Phase::generate;
  cell.scope = "generate-warped-samples-3";
  const WorkerLoad load{.max_tokens = 4, .sampling = {.sample = true, .top_k = 50}};
  const std::string newest = prepare_request(cell, load, 64, {{1}}, 2);
  EXPECT_NE(newest.find(R"("samples":3)"), std::string::npos) << newest;
  EXPECT_NE(newest.find(R"("top_k":50)"), std::string::npos) << newest;
  EXPECT_NE(newest.find(R"("ignore_eos":true)"), std::string::npos) << newest;
  EXPECT_NE(prepare_request(cell, {}, 64, {{1}}, 2).find(R"("sampling":null)"), std::string::npos);
  const std::string oldest = prepare_request(cell, load, 64, {{1}}, 1);
  EXPECT_EQ(oldest.find("sampl"), oldest.find("samples-3")) << "but for the scope, " << oldest;

  const WorkerHello hello{.engine = "e", .version = "1", .samples = true, .sampling = {"sample", "top_k"}};
  EXPECT_EQ(parse_request(hello_request()).protocol, kNewestProtocol);
  EXPECT_EQ(parse_request(R"({"request":"hello","protocol":1})").protocol, kOldestProtocol) << "an older program";
  const WorkerHello now = parse_hello(hello_reply(hello, kNewestProtocol));
  EXPECT_TRUE(now.samples);
  EXPECT_EQ(now.sampling, hello.sampling);
  const WorkerHello before = parse_hello(hello_reply(hello, kOldestProtocol));
  EXPECT_EQ(before.protocol, kOldestProtocol);
  EXPECT_FALSE(before.samples);
  EXPECT_THROW(parse_hello(hello_reply(hello, kNewestProtocol + 1)), WorkerError);
}

TEST(WorkerProtocol, CarriesTheRequestsOfABatchFromTheSecondVersionOn) {
  CellRecord cell = kSentCell;
  cell.phase = Phase::batching;
  cell.scope = "served";
  const BatchWork work{.planned = {{.prompt_tokens = 2, .new_tokens = 5, .arrival = 0},
                                   {.prompt_tokens = 1, .new_tokens = 3, .arrival = 0.25}},
                       .prompts = {{1, 2}, {3}}};
  const WorkerRequest read = parse_request(prepare_request(cell, {}, 64, {{1}}, 2, &work));
  EXPECT_EQ(read.requests.prompts, work.prompts);
  ASSERT_EQ(read.requests.planned.size(), 2U);
  EXPECT_EQ(read.requests.planned[0].new_tokens, 5);
  EXPECT_EQ(read.requests.planned[1].prompt_tokens, 1);
  EXPECT_EQ(read.requests.planned[1].arrival, 0.25);
  EXPECT_EQ(prepare_request(cell, {}, 64, {{1}}, 1, &work).find("requests"), std::string::npos);
  EXPECT_TRUE(parse_request(prepare_request(cell, {}, 64, {{1}}, 2)).requests.planned.empty());
}

TEST(WorkerProtocol, CarriesWhatMarksARow) {
  const std::string visit = visit_reply({.wall_ns = 3, .samples_ns = {3}, .flags = {"tokens-bundled"}});
  EXPECT_EQ(parse_visit(visit).flags, std::vector<std::string>{"tokens-bundled"});
  EXPECT_EQ(parse_slice(slice_reply({.wall_ns = 3, .samples_ns = {3}, .flags = {"x"}})).flags,
            std::vector<std::string>{"x"});
  EXPECT_EQ(visit_reply({.wall_ns = 3, .samples_ns = {3}}).find("flags"), std::string::npos);
  for (const char* flags : {R"("x")", R"(["a b"])", R"([""])", R"([7])", R"(["<b>"])"}) {
    const std::string reply = std::string(R"({"reply":"turn","wall_ns":3,"samples_ns":[3],"flags":)") + flags + "}";
    EXPECT_THROW(parse_slice(reply), WorkerError) << flags;
  }
}

TEST(WorkerProtocol, CarriesWhatLoadingDecided) {
  EXPECT_EQ(parse_loaded(loaded_reply(0.25, R"({"served_model":"m"})")).settings_json, R"({"served_model":"m"})");
  EXPECT_EQ(parse_loaded(loaded_reply(0.25)).settings_json, "{}");
  const WorkerHello hello{.engine = "e", .version = "1", .scopes = {"serving"}};
  EXPECT_EQ(parse_hello(hello_reply(hello, kNewestProtocol)).scopes, hello.scopes);
}

TEST(WorkerProtocol, ExpectsARowForEachSample) {
  CellRecord cell = kSentCell;
  cell.phase = Phase::prefill;
  cell.scope = "step-samples-2";
  const WorkerLoad load{};
  EXPECT_EQ(parse_outputs(R"({"reply":"outputs","tokens":[[1,2,3,4]]})", cell.batch * load.samples_of(cell)).batch, 4);
  EXPECT_THROW(parse_outputs(R"({"reply":"outputs","tokens":[[1,2]]})", cell.batch * load.samples_of(cell)),
               WorkerError);
}

TEST(WorkerProtocol, CarriesWhatTheArmAsksOfEachRow) {
  CellRecord cell = kSentCell;
  cell.phase = Phase::prefill;
  cell.scope = "step";
  cell.length = 8;
  const WorkerLoad load{.request = {.samples = 3, .prefix = 0.5}};
  EXPECT_EQ(load.samples_of(cell), 3);
  const std::string newest = prepare_request(cell, load, 64, {{1}}, 2);
  EXPECT_NE(newest.find(R"("samples":3)"), std::string::npos) << newest;
  EXPECT_NE(newest.find(R"("prefix_tokens":4)"), std::string::npos) << newest;
  EXPECT_EQ(prepare_request(cell, {}, 64, {{1}}, 2).find("prefix_tokens"), std::string::npos);
  EXPECT_EQ(prepare_request(cell, load, 64, {{1}}, 1).find("prefix_tokens"), std::string::npos);
  const WorkerHello hello{.engine = "e", .version = "1", .prefixes = true};
  EXPECT_TRUE(parse_hello(hello_reply(hello, kNewestProtocol)).prefixes);
  EXPECT_FALSE(parse_hello(hello_reply(hello, kOldestProtocol)).prefixes);
}

TEST(WorkerProtocol, CarriesWhatWasDoneAlongWithAReply) {
  const SideWork side{.loading_ns = 1, .packing_ns = 2, .filling_ns = 3};
  const std::string reply = with_side_work(begun_reply({.warmup_steps = 9, .warmup_ns = 70, .quiet = true}), side);
  EXPECT_EQ(parse_side_work(reply), side);
  EXPECT_EQ(parse_begun(reply).warmup_steps, 9) << "the reply itself stays readable";
  EXPECT_EQ(parse_begun(reply).warmup_ns, 70);
  EXPECT_EQ(with_side_work("{}", {}), "{}");
  EXPECT_EQ(parse_side_work(done_reply("loaded")), SideWork());
  for (const char* odd :
       {R"({"spent":3})", R"({"spent":{"filling_ns":"x"}})", R"({"spent":{"filling_ns":-1}})", R"("spent")"}) {
    EXPECT_EQ(parse_side_work(odd), SideWork()) << odd;
  }
  EXPECT_EQ(parse_visit(R"({"reply":"visit","warmup_steps":1,"quiet":true,"wall_ns":5,"samples_ns":[5]})").warmup_ns, 0)
      << "an older worker does not say";
}

TEST(WorkerProtocol, ReadsLogitsOnceAndRefusesAFileOfAnotherSize) {
  const auto path = std::filesystem::temp_directory_path() / "decodelab-protocol-test-logits";
  const OutputTrace trace{.tokens = {{1, 2}}, .logits = {}, .batch = 2, .vocabulary = 3};
  const auto write = [&](std::size_t values) {
    const std::vector<float> numbers(values, 0.5F);
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(numbers.data()), static_cast<std::streamsize>(4 * values));
  };
  write(6);
  EXPECT_EQ(parse_outputs(outputs_reply(trace, path), kSentCell.batch).logits,
            std::vector<std::vector<float>>{std::vector<float>(6, 0.5F)});
  EXPECT_FALSE(std::filesystem::exists(path));
  for (const std::size_t values : {5, 7}) {
    write(values);
    EXPECT_THROW(parse_outputs(outputs_reply(trace, path), kSentCell.batch), WorkerError);
  }
}

TEST(WorkerProtocol, RefusesWhatIsNoReply) {
  for (const char* line :
       {"", "{", "[]", "7", "null", R"({"reply":7})", R"({"reply":"visit"})",
        R"({"reply":"visit","warmup_steps":1,"quiet":true,"wall_ns":1,"samples_ns":[0]})",
        R"({"reply":"visit","warmup_steps":1,"quiet":true,"wall_ns":1,"samples_ns":"x"})", R"({"reply":"hello"})"}) {
    EXPECT_THROW(parse_visit(line), WorkerError) << line;
  }
  EXPECT_THROW(parse_begun(R"({"reply":"begun","quiet":true})"), WorkerError);
  EXPECT_THROW(parse_slice(R"({"reply":"turn","wall_ns":1,"samples_ns":[0]})"), WorkerError);
  EXPECT_THROW(parse_counters(R"({"reply":"counters","step_ns":0})"), WorkerError);
  EXPECT_THROW(parse_outputs(R"({"reply":"outputs","tokens":[[1,2,3]]})", kSentCell.batch), WorkerError);
  EXPECT_THROW(parse_hello(R"({"reply":"hello","protocol":1,"engine":"","version":"","phases":[],"fills":[],)"
                           R"("dtypes":[],"devices":[]})"),
               WorkerError);
  EXPECT_THROW(parse_request("{}"), std::invalid_argument);
  EXPECT_THROW(parse_request("nonsense"), std::invalid_argument);
}

TEST(WorkerProtocol, ErrorsCarryTheirKindAndFirstLine) {
  for (const RowStatus status : {RowStatus::oom, RowStatus::unsupported, RowStatus::failed}) {
    try {
      parse_prepared(error_reply(status, "why\nwhere"));
      FAIL();
    } catch (const WorkerError& error) {
      EXPECT_EQ(error.status, status);
      EXPECT_STREQ(error.what(), "why");
    }
  }
}

}  // namespace
}  // namespace decodelab
