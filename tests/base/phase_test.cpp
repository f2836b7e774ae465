// The names of phases, and back.
#include "base/phase.h"

#include <stdexcept>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace decodelab {
namespace {

TEST(Phase, IsReadBackFromItsName) {
  for (const PhaseWords& words : kPhaseWords) {
    EXPECT_EQ(phase_from_string(words.name), words.phase);
    EXPECT_STREQ(to_string(words.phase), words.name);
    EXPECT_EQ(nlohmann::json(words.phase), words.name);
  }
}

TEST(Phase, IsRefusedByAnUnknownNameWithAllThatThereAre) {
  for (const char* name : {"", "Decode", "decoding"}) {
    try {
      phase_from_string(name);
      ADD_FAILURE() << name;
    } catch (const std::invalid_argument& error) {
      EXPECT_EQ(error.what(), "the phase '" + std::string(name) +
                                  "' is unknown; expected one of prefill, decode, generate, batching, continue");
    }
  }
}

}  // namespace
}  // namespace decodelab
