// From a seed to a generator: as NumPy's SeedSequence and PCG64 do it, or for the counter-based
// one.
#pragma once

#include <cstdint>

#include "shoal_kernel.h"

namespace shoal {

enum class Generator { kPcg64, kCounter };

/// A generator seeded with a number that is given as 32-bit words, the lowest first.
shoal_random seeded(Generator generator, const uint32_t* words, size_t count);

/// The drawing functions of shoal_kernel.h at an address each, for code that cannot include it.
struct RandomFunctions {
  uintptr_t random_double, uniform, below;
};
RandomFunctions random_functions();

}  // namespace shoal
