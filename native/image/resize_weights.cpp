#include "resize_weights.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace shoal::image {

namespace {

// A smaller part of a pixel is ignored.
constexpr double kSmallestPart = 1e-3;

double scale_of(int length, int target) {
  return 1.0 / (static_cast<double>(target) / static_cast<double>(length));
}

}  // namespace

std::vector<Tap> area_taps(int length, int target) {
  const double scale = scale_of(length, target);
  std::vector<Tap> taps;
  for (int place = 0; place < target; ++place) {
    const double begin = place * scale, end = begin + scale;
    const double width = std::min(scale, length - begin);
    const int last = std::min(static_cast<int>(std::floor(end)), length - 1);
    const int first = std::min(static_cast<int>(std::ceil(begin)), last);
    if (first - begin > kSmallestPart) {
      taps.push_back({place, first - 1, static_cast<float>((first - begin) / width)});
    }
    for (int source = first; source < last; ++source) {
      taps.push_back({place, source, static_cast<float>(1.0 / width)});
    }
    if (end - last > kSmallestPart) {
      const double rest = std::min(std::min(end - last, 1.0), width);
      taps.push_back({place, last, static_cast<float>(rest / width)});
    }
  }
  return taps;
}

std::vector<Blend> blends(int length, int target) {
  const double growth = static_cast<double>(target) / static_cast<double>(length);
  const double scale = scale_of(length, target);
  std::vector<Blend> mixed;
  for (int place = 0; place < target; ++place) {
    int source = static_cast<int>(std::floor(place * scale));
    auto part = static_cast<float>((place + 1) - (source + 1) * growth);
    part = part <= 0.0f ? 0.0f : part - std::floor(part);
    if (source >= length - 1) {
      source = length - 1;
      part = 0.0f;
    }
    mixed.push_back({source, std::min(source + 1, length - 1),
                     static_cast<int>(std::lrint((1.0f - part) * kBlendUnit)),
                     static_cast<int>(std::lrint(part * kBlendUnit))});
  }
  return mixed;
}

int whole_factor(int length, int target) {
  const double scale = scale_of(length, target);
  const auto factor = static_cast<int>(std::lrint(scale));
  return std::abs(scale - factor) < std::numeric_limits<double>::epsilon() ? factor : 0;
}

}  // namespace shoal::image
