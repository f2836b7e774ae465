// Memory for weights that every step reads as a whole.
#pragma once

#include <cstddef>
#include <memory>

namespace decodelab {

/// Zeros on huge pages where the system grants them: with small pages the translation of addresses would add to the
/// cost of a step. Pages are placed where they are first written.
class PanelMemory {
 public:
  /// Throws std::bad_alloc where the system refuses.
  explicit PanelMemory(std::size_t bytes);

  std::byte* data() const { return data_.get(); }

 private:
  struct Unmap {
    std::size_t bytes;
    void operator()(std::byte* data) const;
  };
  std::unique_ptr<std::byte[], Unmap> data_;
};

}  // namespace decodelab
