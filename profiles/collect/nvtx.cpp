// Registers the names of ranges once and pushes them.
#include "profiles/collect/nvtx.h"

#ifdef DECODELAB_HAS_NVTX
#include <nvtx3/nvToolsExt.h>
#endif

#include <array>
#include <utility>
#include <vector>

namespace decodelab {

#ifdef DECODELAB_HAS_NVTX

struct NvtxRanges::Strings {
  nvtxDomainHandle_t domain = nvtxDomainCreateA(kNvtxDomainName);
  nvtxStringHandle_t window = registered(kNvtxWindowName);
  nvtxStringHandle_t step = registered("step");
  std::array<nvtxStringHandle_t, kStageNames.size()> stages{};
  std::vector<nvtxStringHandle_t> layers;  ///< Names of the layers that were seen so far.

  Strings() {
    for (std::size_t stage = 0; stage < stages.size(); ++stage) {
      stages[stage] = registered(kStageNames[stage]);
    }
  }
  nvtxStringHandle_t registered(const char* text) const { return nvtxDomainRegisterStringA(domain, text); }

  nvtxStringHandle_t layer(std::int64_t index) {
    while (static_cast<std::int64_t>(layers.size()) <= index) {
      layers.push_back(registered(("layer " + std::to_string(layers.size())).c_str()));
    }
    return layers[static_cast<std::size_t>(index)];
  }

  void push(nvtxStringHandle_t text, std::int64_t payload) const {
    nvtxEventAttributes_t attributes{};
    attributes.version = NVTX_VERSION;
    attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    attributes.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    attributes.message.registered = text;
    attributes.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
    attributes.payload.ullValue = static_cast<std::uint64_t>(payload);
    nvtxDomainRangePushEx(domain, &attributes);
  }
};

bool NvtxRanges::tool_attached() {
  // Without a tool NVTX hands out null for every domain. A domain lives as long as the process, and so does this one.
  static const bool attached = nvtxDomainCreateA(kNvtxDomainName) != nullptr;
  return attached;
}

std::string NvtxRanges::why_not() {
  return tool_attached() ? "" : "no tool listens to NVTX: run it under 'nsys profile'";
}

void NvtxRanges::pop() { nvtxDomainRangePop(strings_->domain); }

#else

struct NvtxRanges::Strings {
  static constexpr int window = 0;
  static constexpr int step = 0;
  static constexpr std::array<int, kStageNames.size()> stages{};
  static int layer(std::int64_t) { return 0; }
  static void push(int, std::int64_t) {}
};

bool NvtxRanges::tool_attached() { return false; }
std::string NvtxRanges::why_not() { return "this build was made without the headers of NVTX"; }
void NvtxRanges::pop() {}

#endif

NvtxRanges::NvtxRanges() : strings_(std::make_unique<Strings>()), next_(std::exchange(range_listener, this)) {}

NvtxRanges::~NvtxRanges() { range_listener = next_; }

void NvtxRanges::enter(Stage stage) {
  if (next_ != nullptr) {
    next_->enter(stage);
  }
  strings_->push(strings_->stages[static_cast<std::size_t>(stage)], step_);
}

void NvtxRanges::leave() {
  pop();
  if (next_ != nullptr) {
    next_->leave();
  }
}

void NvtxRanges::add(Amount amount, std::int64_t value) {
  if (next_ != nullptr) {
    next_->add(amount, value);
  }
}

void NvtxRanges::enter_layer(std::int64_t layer) {
  if (next_ != nullptr) {
    next_->enter_layer(layer);
  }
  strings_->push(strings_->layer(layer), step_);
}

void NvtxRanges::leave_layer() {
  pop();
  if (next_ != nullptr) {
    next_->leave_layer();
  }
}

void NvtxRanges::enter_step(std::int64_t index) {
  if (next_ != nullptr) {
    next_->enter_step(index);
  }
  step_ = index;
  strings_->push(strings_->step, step_);
}

void NvtxRanges::leave_step() {
  pop();
  if (next_ != nullptr) {
    next_->leave_step();
  }
}

void NvtxRanges::enter_window() { strings_->push(strings_->window, 0); }
void NvtxRanges::leave_window() { pop(); }

}  // namespace decodelab
