// The weights of a resize: the source pixels of each target pixel in one dimension.
//
// The computation has the same order and precision as in OpenCV, so that results are bit-identical
// to its INTER_AREA.
#pragma once

#include <cstdint>
#include <vector>

namespace shoal::image {

/// The contribution of a source pixel to a target pixel.
struct Tap {
  int target;
  int source;
  float weight;
};

/// The taps that shrink a line of `length` pixels to `target` pixels, in order of the target.
std::vector<Tap> area_taps(int length, int target);

/// A target pixel of an enlarged line: two adjacent source pixels with weights in 1 / kBlendUnit.
struct Blend {
  int first, second;
  int first_weight, second_weight;
};

constexpr int kBlendUnit = 2048;

/// The blends that enlarge a line of `length` pixels to `target` pixels.
std::vector<Blend> blends(int length, int target);

/// The ratio of the lengths if it is an integer, else 0.
int whole_factor(int length, int target);

}  // namespace shoal::image
