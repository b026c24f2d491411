#include "seeding.h"

#include <array>

namespace shoal {

namespace {

constexpr size_t kPool = 4;
constexpr int kShift = 16;

/// NumPy's SeedSequence: hashes entropy of any length into a pool and generates words from it.
class SeedSequence {
 public:
  SeedSequence(const uint32_t* words, size_t count) {
    for (size_t k = 0; k < kPool; ++k) pool_[k] = hashed(k < count ? words[k] : 0);
    for (size_t from = 0; from < kPool; ++from) {
      for (size_t to = 0; to < kPool; ++to) {
        if (from != to) pool_[to] = mixed(pool_[to], hashed(pool_[from]));
      }
    }
    for (size_t from = kPool; from < count; ++from) {
      for (uint32_t& word : pool_) word = mixed(word, hashed(words[from]));
    }
  }

  uint64_t next64() {
    const uint64_t low = next32();
    return static_cast<uint64_t>(next32()) << 32 | low;
  }

 private:
  uint32_t next32() {
    uint32_t word = pool_[drawn_++ % kPool] ^ draw_factor_;
    draw_factor_ *= 0x58f38dedu;
    word *= draw_factor_;
    return word ^ word >> kShift;
  }

  uint32_t hashed(uint32_t word) {
    word ^= hash_factor_;
    hash_factor_ *= 0x931e8875u;
    word *= hash_factor_;
    return word ^ word >> kShift;
  }

  static uint32_t mixed(uint32_t one, uint32_t other) {
    const uint32_t word = one * 0xca01f9ddu - other * 0x4973f715u;
    return word ^ word >> kShift;
  }

  std::array<uint32_t, kPool> pool_;
  uint32_t hash_factor_ = 0x43b0d7e5u, draw_factor_ = 0x8b51f9ddu;
  size_t drawn_ = 0;
};

shoal_random pcg64(const uint32_t* words, size_t count) {
  __extension__ using Wide = unsigned __int128;
  SeedSequence sequence(words, count);
  uint64_t drawn[4];
  for (uint64_t& word : drawn) word = sequence.next64();
  const Wide start = static_cast<Wide>(drawn[0]) << 64 | drawn[1];
  const Wide stream = (static_cast<Wide>(drawn[2]) << 64 | drawn[3]) << 1 | 1;
  // As NumPy: start from state zero, step once, add the start value, step again.
  const Wide state = stream + start;
  shoal_random random{{static_cast<uint64_t>(state), static_cast<uint64_t>(state >> 64)},
                      {static_cast<uint64_t>(stream), static_cast<uint64_t>(stream >> 64)},
                      0,
                      0};
  shoal_random_bits(&random);
  return random;
}

shoal_random counter_based(const uint32_t* words, size_t count) {
  uint64_t key = count;
  for (size_t k = 0; k < count; ++k) {
    key = (key ^ words[k]) * UINT64_C(0x9e3779b97f4a7c15);
    key = (key ^ key >> 32) * UINT64_C(0xbf58476d1ce4e5b9);
    key ^= key >> 29;
  }
  return {{0, key}, {0, 0}, 0, 0};
}

// `random` is the address of a generator.
double draw_double(int64_t random) {
  return shoal_random_double(reinterpret_cast<shoal_random*>(random));
}
double draw_uniform(int64_t random, double low, double high) {
  return shoal_random_uniform(reinterpret_cast<shoal_random*>(random), low, high);
}
int64_t draw_below(int64_t random, int64_t count) {
  const auto limit = static_cast<uint64_t>(count < 1 ? 1 : count);
  return static_cast<int64_t>(shoal_random_below(reinterpret_cast<shoal_random*>(random), limit));
}

}  // namespace

RandomFunctions random_functions() {
  return {reinterpret_cast<uintptr_t>(draw_double), reinterpret_cast<uintptr_t>(draw_uniform),
          reinterpret_cast<uintptr_t>(draw_below)};
}

shoal_random seeded(Generator generator, const uint32_t* words, size_t count) {
  return generator == Generator::kPcg64 ? pcg64(words, count) : counter_based(words, count);
}

}  // namespace shoal
