// Memory for weights that every step reads as a whole.
#pragma once

#include <cstddef>
#include <memory>

namespace decodelab {

/// Zeros on huge pages where the system grants them: with small pages the translation of addresses would add to the
/// cost of a step. Pages are placed where they are first written. Matrices share huge pages, so that those of less than
/// 2 MiB take what they need; memory goes back to the system once no matrix that was mapped with it, mostly of the same
/// 16 MiB, is left.
class PanelMemory {
 public:
  /// May be called by several threads at once. Throws std::bad_alloc where the system refuses.
  explicit PanelMemory(std::size_t bytes);
  PanelMemory(const PanelMemory&) = delete;
  PanelMemory& operator=(const PanelMemory&) = delete;
  PanelMemory(PanelMemory&&) = default;
  PanelMemory& operator=(PanelMemory&&) = default;
  ~PanelMemory() = default;

  std::byte* data() const { return data_.get(); }

 private:
  std::shared_ptr<std::byte> data_;
};

}  // namespace decodelab
