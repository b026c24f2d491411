// Pictures of Atari screens: colours looked up, two frames merged, and resized, all in one pass.
#pragma once

#include "../image/resize.h"
#include "../python/object.h"

namespace shoal {

class ScreenPainter {
 public:
  /// Makes pictures of size `to` with a channel for each of `tables`, an array (channels, 256, 256)
  /// that says what two colour numbers, the newer and the older, give.
  ScreenPainter(image::Size from, image::Size to, nb::handle tables, bool portable);

  /// Paints the newest screen, merged with the one before it unless that is None, to `out`:
  /// (height, width), or (height, width, channels) if there are several.
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
