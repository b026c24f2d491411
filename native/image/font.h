// A bitmap font with glyphs of 5 x 7 dots.
#pragma once

#include <cstdint>

namespace shoal {

constexpr int kGlyphRows = 7, kGlyphColumns = 5;

struct Glyph {
  char letter;
  uint8_t rows[kGlyphRows];  // the highest of five bits is the leftmost dot
};

/// Returns the glyph of a character, or null if the font does not contain it.
const Glyph* glyph_of(char letter);

}  // namespace shoal
