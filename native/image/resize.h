// Resizes images with results bit-identical to OpenCV's INTER_AREA: averages pixels to shrink an
// image and interpolates between adjacent pixels to enlarge it.
#pragma once

#include <memory>

#include "row_functions.h"

namespace shoal::image {

/// One channel of an image, row by row. A row is valid until the next call of row(), and kBeyond
/// bytes after its end are readable.
class RowSource {
 public:
  virtual ~RowSource() = default;
  virtual const uint8_t* row(int y) = 0;
  /// Whether this row is known to equal the row above it.
  virtual bool repeats(int y) const = 0;
};

struct Size {
  int height, width;

  bool operator==(const Size& other) const {
    return height == other.height && width == other.width;
  }
};

class Resizer {
 public:
  /// `channels`: the number of channels of the images; it affects OpenCV's rounding.
  Resizer(Size from, Size to, int channels, const RowFunctions& functions);

  Size from() const { return from_; }
  Size to() const { return to_; }

  /// Writes one channel of an image whose pixels are `step` bytes apart.
  void fill(RowSource& rows, uint8_t* out, int step);

 private:
  void copy(RowSource& rows, uint8_t* out, int step);
  void average_blocks(RowSource& rows, uint8_t* out, int step);
  void average(RowSource& rows, uint8_t* out, int step);
  void blend(RowSource& rows, uint8_t* out, int step);
  void put(const uint8_t* row, int y, uint8_t* out, int step) const;

  enum class Method { kCopy, kBlocks, kAverage, kBlend };

  Size from_, to_;
  const RowFunctions& functions_;
  Method method_;
  Size block_{};
  bool rounds_up_ = false;  // whether means of blocks round halves up
  std::vector<Tap> down_;
  std::unique_ptr<LineTaps> across_;
  std::vector<Blend> blends_down_, blends_across_;
  // Temporary data of a resize.
  std::vector<float> reduced_, sums_;
  std::vector<uint8_t> line_;
  std::vector<int> mixed_;
  std::vector<int64_t> totals_;
};

}  // namespace shoal::image
