// What is done with single rows of an image, in the instructions that the processor has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "resize_weights.h"

namespace shoal::image {

/// How many bytes beyond the end of a row must be readable.
constexpr int kBeyond = 64;

/// The taps of a line, laid out to compute neighbouring pixels of the result at once.
class LineTaps {
 public:
  static constexpr int kGroup = 8;    // pixels of the result that are computed at once
  static constexpr int kWindow = 32;  // pixels of the line that they may come from

  explicit LineTaps(const std::vector<Tap>& taps, int target);

  int target() const { return target_; }
  /// The length of a result with the padding that fills up its last group.
  int padded() const { return groups_ * kGroup; }
  int groups() const { return groups_; }
  int depth() const { return depth_; }
  /// Whether what each group needs lies within its window.
  bool fits_windows() const { return fits_; }

  // Of a group's k-th tap, in the order in which they are added up; a pixel that has fewer of them
  // than others has some without weight.
  const float* weights(int group, int k) const { return &weights_[place(group, k)]; }
  const int32_t* sources(int group, int k) const { return &sources_[place(group, k)]; }
  /// Where a group's window begins, and where in it the sources lie; 0x80 marks the other half.
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

/// The table that two screens of colour numbers are looked up in: at (newer << 8) + older.
constexpr int kPairs = 256 * 256;

struct RowFunctions {
  void (*look_up)(const uint8_t* newer, const uint8_t* older, int width, const uint8_t* table,
                  uint8_t* out);
  /// Averages pixels of a row; writes taps.padded() numbers.
  void (*reduce)(const LineTaps& taps, const uint8_t* row, float* out);
};

/// Those for this processor, or those that run on all of them and give the same results.
const RowFunctions& row_functions(bool portable);

/// Rounds numbers from 0 to 255 to the nearest whole one, halves to the even one.
void round_row(const float* row, int count, uint8_t* out);

}  // namespace shoal::image
