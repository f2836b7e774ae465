// The reference of the head's rows: all of them.
#include "engine/layers/lm_head_rows.h"

namespace decodelab {
namespace {

class AllRows final : public LmHeadRows {
 public:
  bool all_positions(const DetailsRequest&) const override { return true; }
};

}  // namespace

std::unique_ptr<LmHeadRows> make_all_lm_head_rows() { return std::make_unique<AllRows>(); }

}  // namespace decodelab
