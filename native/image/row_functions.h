// Functions for single rows of an image, with AVX2 if the processor supports it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "resize_weights.h"

namespace shoal::image {

/// The number of bytes after the end of a row that must be readable.
constexpr int kBeyond = 64;

/// The taps of a line, laid out so that adjacent target pixels are computed at once.
class LineTaps {
 public:
  static constexpr int kGroup = 8;    // target pixels that are computed at once
  static constexpr int kWindow = 32;  // adjacent source pixels that they may depend on

  explicit LineTaps(const std::vector<Tap>& taps, int target);

  int target() const { return target_; }
  /// The length of the result, rounded up to whole groups.
  int padded() const { return groups_ * kGroup; }
  int groups() const { return groups_; }
  int depth() const { return depth_; }
  /// Whether the source pixels of each group are within its window.
  bool fits_windows() const { return fits_; }

  // The k-th taps of a group, in the order of summation. A pixel with fewer taps has additional
  // taps of weight zero.
  const float* weights(int group, int k) const { return &weights_[place(group, k)]; }
  const int32_t* sources(int group, int k) const { return &sources_[place(group, k)]; }
  /// The start of a group's window, and the positions of the sources in its lower and upper half;
  /// 0x80 marks a source in the other half.
  int window(int group) const { return windows_[static_cast<size_t>(group)]; }
  const uint8_t* lower(int group, int k) const { return &lower_[place(group, k)]; }
  const uint8_t* upper(int group, int k) const { return &upper_[place(group, k)]; }

 private:
  size_t place(int group, int k) const {
    return static_cast<size_t>((group * depth_ + k) * kGroup);
  }

  int target_, groups_, depth_;
  bool fits_ = true;
  std::vector<float> weights_;
  std::vector<int32_t> sources_;
  std::vector<int> windows_;
  std::vector<uint8_t> lower_, upper_;
};

/// The size of a table for merging two screens; its index is (newer << 8) + older.
constexpr int kPairs = 256 * 256;

struct RowFunctions {
  void (*look_up)(const uint8_t* newer, const uint8_t* older, int width, const uint8_t* table,
                  uint8_t* out);
  /// Averages the pixels of a row; writes taps.padded() numbers.
  void (*reduce)(const LineTaps& taps, const uint8_t* row, float* out);
};

/// The functions for this processor, or portable ones with the same results.
const RowFunctions& row_functions(bool portable);

/// Rounds numbers from 0 to 255 to the nearest integer, halves to even.
void round_row(const float* row, int count, uint8_t* out);

}  // namespace shoal::image
