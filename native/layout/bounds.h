// Whether integers keep their bounds.
#pragma once

#include <cstddef>
#include <cstdint>

namespace shoal {

/// Whether all of these lie within the bounds, both included.
inline bool all_within(const int64_t* values, ptrdiff_t count, int64_t low, int64_t high) {
  // Whatever lies outside makes one of the differences negative, also if the other overflows; and
  // these are operations that every processor can do on several numbers at once.
  uint64_t differences = 0;
  for (ptrdiff_t k = 0; k < count; ++k) {
    const auto value = static_cast<uint64_t>(values[k]);
    differences |= (value - static_cast<uint64_t>(low)) | (static_cast<uint64_t>(high) - value);
  }
  return differences >> 63 == 0;
}

}  // namespace shoal
