// The slots of a plan that choose tokens: settings, and factories of implementations.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "engine/masks/pattern_masks.h"

namespace decodelab {

class Acceptance;
struct ChoiceOptions;
struct RngOptions;
class Rng;
class TokenChoice;
class TokenDetailsPolicy;
class TokenBytes;
class TokenText;
class TopTokens;

/// Says when a step's tokens are read on the host. `each`: before the next step begins. `async`: after the next step
/// was launched on the device, which then never waits for the host to read; the end of a row is noticed one step late.
enum class ReadBack : std::uint8_t { each, async };

using AcceptanceFactory = std::function<std::unique_ptr<Acceptance>()>;
using TokenChoiceFactory = std::function<std::unique_ptr<TokenChoice>(const ChoiceOptions&)>;
using RngFactory = std::function<std::unique_ptr<Rng>(const RngOptions&)>;
using TokenDetailsFactory = std::function<std::unique_ptr<TokenDetailsPolicy>()>;
using TokenTextFactory = std::function<std::unique_ptr<TokenText>(std::shared_ptr<const TokenBytes>)>;
using TopTokensFactory = std::function<std::unique_ptr<TopTokens>()>;

}  // namespace decodelab
