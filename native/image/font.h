// Letters as dots, five by seven.
#pragma once

#include <cstdint>

namespace shoal {

constexpr int kGlyphRows = 7, kGlyphColumns = 5;

struct Glyph {
  char letter;
  uint8_t rows[kGlyphRows];  // the highest of five bits is the leftmost dot
};

/// The dots of a letter, null where there are none.
const Glyph* glyph_of(char letter);

}  // namespace shoal
