// Seeding of generators: PCG64 as NumPy's SeedSequence does it, and the counter-based generator.
#pragma once

#include <cstdint>

#include "shoal_kernel.h"

namespace shoal {

enum class Generator { kPcg64, kCounter };

/// Creates a generator from a seed, given as 32-bit words, lowest first.
shoal_random seeded(Generator generator, const uint32_t* words, size_t count);

/// The addresses of the random functions of shoal_kernel.h, for code that cannot include it.
struct RandomFunctions {
  uintptr_t random_double, uniform, below;
};
RandomFunctions random_functions();

}  // namespace shoal
