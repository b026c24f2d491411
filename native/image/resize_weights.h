// The weights of a resize: which pixels of a line make up each pixel of the resized line.
//
// All of it is computed as OpenCV computes it, in the same order and precision, so that results
// are equal to its INTER_AREA bit for bit.
#pragma once

#include <cstdint>
#include <vector>

namespace shoal::image {

/// One pixel's part in a pixel of the result.
struct Tap {
  int target;
  int source;
  float weight;
};

/// How a line of `length` pixels is averaged into `target` pixels, at most as many, in order.
std::vector<Tap> area_taps(int length, int target);

/// A pixel of a line that becomes longer: a mix of two neighbours, in parts of kBlendUnit.
struct Blend {
  int first, second;
  int first_weight, second_weight;
};

constexpr int kBlendUnit = 2048;

std::vector<Blend> blends(int length, int target);

/// How many pixels are averaged into one if that is a whole number, else 0.
int whole_factor(int length, int target);

}  // namespace shoal::image
