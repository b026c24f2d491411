#include "row_functions.h"

#include <algorithm>
#include <cstring>

#if defined(__x86_64__) && defined(__GNUC__)
#define SHOAL_HAS_AVX2 1
#include <immintrin.h>
#endif

namespace shoal::image {

LineTaps::LineTaps(const std::vector<Tap>& taps, int target)
    : target_(target), groups_((target + kGroup - 1) / kGroup), depth_(0) {
  std::vector<int> counts(static_cast<size_t>(target));
  for (const Tap& tap : taps) {
    depth_ = std::max(depth_, ++counts[static_cast<size_t>(tap.target)]);
  }
  const size_t size = place(groups_, 0);
  weights_.resize(size);
  lower_.resize(size);
  upper_.resize(size);
  sources_.resize(size);
  std::fill(counts.begin(), counts.end(), 0);
  for (const Tap& tap : taps) {
    const int k = counts[static_cast<size_t>(tap.target)]++;
    const size_t at = place(tap.target / kGroup, k) + static_cast<size_t>(tap.target % kGroup);
    weights_[at] = tap.weight;
    sources_[at] = tap.source;
  }
  for (int group = 0; group < groups_; ++group) {
    int first = -1, last = 0;
    for (size_t at = place(group, 0); at < place(group + 1, 0); ++at) {
      if (weights_[at] == 0.0f) continue;
      first = first < 0 ? sources_[at] : std::min(first, sources_[at]);
      last = std::max(last, sources_[at]);
    }
    windows_.push_back(first);
    fits_ = fits_ && last - first < kWindow;
    for (size_t at = place(group, 0); at < place(group + 1, 0); ++at) {
      if (weights_[at] == 0.0f) sources_[at] = first;
      const int offset = sources_[at] - first;
      constexpr int kHalf = kWindow / 2;
      lower_[at] = offset < kHalf ? static_cast<uint8_t>(offset) : uint8_t{0x80};
      upper_[at] = offset < kHalf ? uint8_t{0x80} : static_cast<uint8_t>(offset - kHalf);
    }
  }
}

namespace {

inline uint8_t look_up(const uint8_t* table, uint8_t newer, uint8_t older) {
  return table[(newer << 8) + older];
}

inline void look_up_each(const uint8_t* newer, const uint8_t* older, int from, int to,
                         const uint8_t* table, uint8_t* out) {
  for (int x = from; x < to; ++x) out[x] = look_up(table, newer[x], older[x]);
}

// A screen consists of areas of one colour. Several pixels are compared at once, and looked up only
// once if all are equal.

void look_up_portable(const uint8_t* newer, const uint8_t* older, int width, const uint8_t* table,
                      uint8_t* out) {
  constexpr int kAtOnce = 8;
  constexpr uint64_t kEach = 0x0101010101010101;
  int x = 0;
  for (; x + kAtOnce <= width; x += kAtOnce) {
    uint64_t a, b;
    std::memcpy(&a, newer + x, kAtOnce);
    std::memcpy(&b, older + x, kAtOnce);
    if (a == newer[x] * kEach && b == older[x] * kEach) {
      std::memset(out + x, look_up(table, newer[x], older[x]), kAtOnce);
    } else {
      look_up_each(newer, older, x, x + kAtOnce, table, out);
    }
  }
  look_up_each(newer, older, x, width, table, out);
}

void reduce_portable(const LineTaps& taps, const uint8_t* row, float* out) {
  for (int group = 0; group < taps.groups(); ++group, out += LineTaps::kGroup) {
    float sums[LineTaps::kGroup] = {};
    for (int k = 0; k < taps.depth(); ++k) {
      const float* weights = taps.weights(group, k);
      const int32_t* sources = taps.sources(group, k);
      for (int lane = 0; lane < LineTaps::kGroup; ++lane) {
        sums[lane] += static_cast<float>(row[sources[lane]]) * weights[lane];
      }
    }
    std::memcpy(out, sums, sizeof sums);
  }
}

#ifdef SHOAL_HAS_AVX2

__attribute__((target("avx2"))) void look_up_avx2(const uint8_t* newer, const uint8_t* older,
                                                  int width, const uint8_t* table, uint8_t* out) {
  constexpr int kAtOnce = 16;
  int x = 0;
  for (; x + kAtOnce <= width; x += kAtOnce) {
    const __m128i a = _mm_loadu_si128(reinterpret_cast<const __m128i*>(newer + x));
    const __m128i b = _mm_loadu_si128(reinterpret_cast<const __m128i*>(older + x));
    const __m128i same = _mm_and_si128(_mm_cmpeq_epi8(a, _mm_broadcastb_epi8(a)),
                                       _mm_cmpeq_epi8(b, _mm_broadcastb_epi8(b)));
    if (_mm_movemask_epi8(same) == 0xffff) {
      const auto colour = static_cast<char>(look_up(table, newer[x], older[x]));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(out + x), _mm_set1_epi8(colour));
    } else {
      look_up_each(newer, older, x, x + kAtOnce, table, out);
    }
  }
  look_up_each(newer, older, x, width, table, out);
}

__attribute__((target("avx2"))) void reduce_avx2(const LineTaps& taps, const uint8_t* row,
                                                 float* out) {
  if (!taps.fits_windows()) return reduce_portable(taps, row, out);
  for (int group = 0; group < taps.groups(); ++group, out += LineTaps::kGroup) {
    const auto* window = reinterpret_cast<const __m128i*>(row + taps.window(group));
    const __m128i low = _mm_loadu_si128(window), high = _mm_loadu_si128(window + 1);
    __m256 sums = _mm256_setzero_ps();
    for (int k = 0; k < taps.depth(); ++k) {
      const auto* lower = reinterpret_cast<const __m128i*>(taps.lower(group, k));
      const auto* upper = reinterpret_cast<const __m128i*>(taps.upper(group, k));
      const __m128i pixels = _mm_or_si128(_mm_shuffle_epi8(low, _mm_loadl_epi64(lower)),
                                          _mm_shuffle_epi8(high, _mm_loadl_epi64(upper)));
      const __m256 numbers = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(pixels));
      sums = _mm256_add_ps(sums, _mm256_mul_ps(numbers, _mm256_loadu_ps(taps.weights(group, k))));
    }
    _mm256_storeu_ps(out, sums);
  }
}

#endif

}  // namespace

const RowFunctions& row_functions(bool portable) {
  static const RowFunctions kPortable{look_up_portable, reduce_portable};
#ifdef SHOAL_HAS_AVX2
  static const RowFunctions kAvx2{look_up_avx2, reduce_avx2};
  if (!portable && __builtin_cpu_supports("avx2")) return kAvx2;
#endif
  (void)portable;
  return kPortable;
}

void round_row(const float* row, int count, uint8_t* out) {
  // Floats of this size have a spacing of 1: the addition rounds to an integer, which is in the low
  // bits of the sum.
  constexpr float kUnitSpacing = 12582912.0f;
  for (int x = 0; x < count; ++x) {
    const float rounded = row[x] + kUnitSpacing;
    uint32_t bits;
    std::memcpy(&bits, &rounded, sizeof bits);
    out[x] = static_cast<uint8_t>(bits);
  }
}

}  // namespace shoal::image
