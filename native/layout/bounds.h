// Bounds checks of integers.
#pragma once

#include <cstddef>
#include <cstdint>

namespace shoal {

/// Whether all values are within the inclusive bounds.
inline bool all_within(const int64_t* values, ptrdiff_t count, int64_t low, int64_t high) {
  // A value out of bounds makes one of the differences negative, even if the other one overflows.
  // Without branches, the compiler can vectorise the loop on every processor.
  uint64_t differences = 0;
  for (ptrdiff_t k = 0; k < count; ++k) {
    const auto value = static_cast<uint64_t>(values[k]);
    differences |= (value - static_cast<uint64_t>(low)) | (static_cast<uint64_t>(high) - value);
  }
  return differences >> 63 == 0;
}

}  // namespace shoal
