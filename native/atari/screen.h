// Conversion of Atari screens to frames: merges two screens, looks up colours and resizes in one
// pass.
#pragma once

#include "../image/resize.h"
#include "../python/object.h"

namespace shoal {

class ScreenPainter {
 public:
  /// `tables` has shape (channels, 256, 256) and maps two colour indices, of the newer and the
  /// older screen, to each channel of a frame of size `to`.
  ScreenPainter(image::Size from, image::Size to, nb::handle tables, bool portable);

  /// Writes the newest screen, merged with the one before it unless that is None, to `out` of shape
  /// (height, width), or (height, width, channels) with several channels.
  void paint(nb::handle newest, nb::handle before, nb::handle out);

 private:
  image::Resizer resizer_;
  const image::RowFunctions& functions_;
  std::vector<uint8_t> tables_;
  std::vector<uint8_t> row_;
};

/// Resizes an image (height, width) or (height, width, channels) into another one.
void resize_area(nb::handle image, nb::handle out, bool portable);

}  // namespace shoal
