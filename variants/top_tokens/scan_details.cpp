// Computes details with one look at the logits of each row.
#include <algorithm>
#include <span>

#include "engine/kernels/elementwise/scan_logits.h"
#include "engine/kernels/scalar_type.h"
#include "engine/sampling/top_tokens.h"
#include "engine/tensor.h"
#include "profiles/range.h"
#include "variants/registry.h"
#include "variants/top_tokens/scan_on_device.h"
#include "variants/top_tokens/scanned_details.h"
#include "variants/top_tokens/top_tokens_expectations.h"

namespace decodelab {
namespace {

/// Logits that are worth another thread.
constexpr std::int64_t kLogitsOfAPart = 16384;

class ScanDetails final : public TopTokens {
 public:
  PendingDetails start(const DetailsTask& task) const override {
    count_amount(Amount::scanned_logits, scanned(task));
    if (!task.logits.is_cpu()) {
      return scan_on_device(task);
    }
    const at::Tensor logits = task.logits.stride(1) == 1 ? task.logits : task.logits.contiguous();
    const Rows rows(logits, task);
    std::vector<TokenDetails> details(task.wanted.size());
    const std::int64_t parts = rows.parts();
    std::vector<LogitScan> scans(details.size() * static_cast<std::size_t>(parts));
    std::vector<float> maxima(details.size() * static_cast<std::size_t>(scan_blocks(rows.width)));
    at::parallel_for(0, std::ssize(scans), 1, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t index = first; index < last; ++index) {
        scans[static_cast<std::size_t>(index)] = rows.scan(index / parts, index % parts, parts, maxima);
      }
    });
    at::parallel_for(0, std::ssize(details), 1, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t row = first; row < last; ++row) {
        LogitScan whole = scans[static_cast<std::size_t>(row * parts)];
        for (std::int64_t part = 1; part < parts; ++part) {
          whole = merged(whole, scans[static_cast<std::size_t>(row * parts + part)]);
        }
        details[static_cast<std::size_t>(row)] = rows.details(row, whole, maxima);
      }
    });
    return ready(std::move(details));
  }

 private:
  static std::int64_t scanned(const DetailsTask& task) {
    return task.logits.size(1) * std::ranges::count_if(task.wanted, [](const TokenRequest* of) { return of->any(); });
  }

  /// The logits and tokens of a task on the host.
  struct Rows {
    Rows(const at::Tensor& logits, const DetailsTask& task)
        : dtype(element_type(logits.scalar_type())),
          bytes(static_cast<std::int64_t>(element_bytes(dtype))),
          width(logits.size(1)),
          stride(logits.stride(0)),
          data(static_cast<const std::byte*>(logits.const_data_ptr())),
          ids(task.ids.contiguous()),
          wanted(task.wanted) {}

    const void* row(std::int64_t index) const { return data + index * stride * bytes; }
    std::int64_t id(std::int64_t index) const { return ids.const_data_ptr<std::int64_t>()[index]; }
    const TokenRequest& request(std::int64_t index) const { return *wanted[static_cast<std::size_t>(index)]; }

    /// Rows over threads; where there are fewer, parts of rows.
    std::int64_t parts() const {
      const std::int64_t threads = at::get_num_threads();
      const auto rows = static_cast<std::int64_t>(wanted.size());
      return std::clamp<std::int64_t>(threads / std::max<std::int64_t>(rows, 1), 1,
                                      std::max<std::int64_t>(width / kLogitsOfAPart, 1));
    }

    LogitScan scan(std::int64_t index, std::int64_t part, std::int64_t parts, std::vector<float>& maxima) const {
      if (!request(index).any()) {
        return {};
      }
      const std::int64_t blocks = scan_blocks(width);
      const std::int64_t first = std::min(blocks * part / parts * kScanBlock, width);
      const std::int64_t last = std::min(blocks * (part + 1) / parts * kScanBlock, width);
      return scan_logits(row(index), dtype, first, last, logit_at(row(index), dtype, id(index)),
                         maxima.data() + index * blocks, isa);
    }

    TokenDetails details(std::int64_t index, const LogitScan& scan, const std::vector<float>& maxima) const {
      const TokenRequest& asked = request(index);
      const auto blocks = static_cast<std::size_t>(scan_blocks(width));
      const auto logit = [&](std::int64_t of) { return logit_at(row(index), dtype, of); };
      return scanned_details(
          asked, scan, logit(id(index)), [&](std::size_t place) { return logit(asked.ids[place]); },
          [&] {
            return largest_logits(row(index), dtype, width,
                                  std::span(maxima).subspan(static_cast<std::size_t>(index) * blocks, blocks),
                                  asked.top, asked.ties, isa);
          });
    }

    ElementType dtype;
    std::int64_t bytes;
    std::int64_t width;
    std::int64_t stride;
    const std::byte* data;
    at::Tensor ids;
    const std::vector<const TokenRequest*>& wanted;
    CpuIsa isa = best_cpu_isa();
  };
};

void apply(EnginePlan& plan, const Parameters&) {
  plan.top_tokens.bind("scan-details", [] { return std::make_unique<ScanDetails>(); });
}

std::vector<Expectation> expects(const CountedSteps& counted, const Parameters&) {
  if (!counted.details.generated.any()) {
    return {};
  }
  const std::int64_t rows = counted.batch_size * counted.samples;
  return {{"scanned_logits", counted.steps * rows * counted.config.vocabulary_size, true}};
}

[[maybe_unused]] const bool registered = register_variant({
    .name = "scan-details",
    .summary = "Log-probabilities, ranks and the most probable tokens come from one pass over the logits of each row.",
    .source = "Online log-sum-exp (Milakov and Gimelshein 2018, arXiv:1805.02867), and bounds of blocks",
    .parameters = {},
    .expects = expects,
    .unsupported = {},
    .apply = apply,
});

}  // namespace
}  // namespace decodelab
