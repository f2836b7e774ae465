// Weights in panels that one process writes and the next ones read.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "engine/checkpoint/packed_files.h"
#include "engine/tensor.h"

namespace decodelab {

/// Fills a matrix of panels by what an earlier process kept of the weights `name`, or by `fill()`, and keeps
/// it. Each panel is read by the thread that multiplies it, so that its pages are placed where they are used. Without
/// `files` nothing is kept.
template <typename Matrix, typename Fill>
void fill_or_read(Matrix& matrix, const std::string& name, PackedFiles* files, const Fill& fill) {
  const auto piece = static_cast<std::size_t>(matrix.panel_bytes());
  const std::string key = name + " " + matrix.layout();
  if (files != nullptr) {
    if (const auto file = files->open(key, piece, static_cast<std::size_t>(matrix.panels()))) {
      std::atomic<bool> whole = true;
      at::parallel_for(0, matrix.panels(), 1, [&](std::int64_t first, std::int64_t last) {
        for (std::int64_t panel = first; panel < last && whole; ++panel) {
          if (!file->read(static_cast<std::size_t>(panel), matrix.room_of_panel(panel))) {
            whole = false;
          }
        }
      });
      if (whole) {
        return;
      }
    }
  }
  fill();
  if (files != nullptr) {
    files->keep(key, {matrix.panel(0), static_cast<std::size_t>(matrix.bytes())}, piece);
  }
}

}  // namespace decodelab
