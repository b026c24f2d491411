#include "resize.h"

#include <algorithm>
#include <cstring>

namespace shoal::image {

Resizer::Resizer(Size from, Size to, int channels, const RowFunctions& functions)
    : from_(from), to_(to), functions_(functions), line_(static_cast<size_t>(to.width)) {
  block_ = {whole_factor(from.height, to.height), whole_factor(from.width, to.width)};
  if (from == to) {
    method_ = Method::kCopy;
  } else if (to.height > from.height || to.width > from.width) {
    method_ = Method::kBlend;
    blends_down_ = blends(from.height, to.height);
    blends_across_ = blends(from.width, to.width);
    mixed_.resize(static_cast<size_t>(2 * to.width));
  } else if (block_.height > 0 && block_.width > 0) {
    method_ = Method::kBlocks;
    totals_.resize(static_cast<size_t>(to.width));
    sums_.resize(totals_.size());
    rounds_up_ = block_ == Size{2, 2} && (channels == 1 || channels == 3 || channels == 4);
  } else {
    method_ = Method::kAverage;
    down_ = area_taps(from.height, to.height);
    across_ = std::make_unique<LineTaps>(area_taps(from.width, to.width), to.width);
    reduced_.resize(static_cast<size_t>(across_->padded()));
    sums_.resize(reduced_.size());
  }
}

void Resizer::fill(RowSource& rows, uint8_t* out, int step) {
  switch (method_) {
    case Method::kCopy:
      return copy(rows, out, step);
    case Method::kBlocks:
      return average_blocks(rows, out, step);
    case Method::kAverage:
      return average(rows, out, step);
    case Method::kBlend:
      return blend(rows, out, step);
  }
}

void Resizer::put(const uint8_t* row, int y, uint8_t* out, int step) const {
  out += static_cast<size_t>(y) * static_cast<size_t>(to_.width * step);
  if (step == 1) {
    std::memcpy(out, row, static_cast<size_t>(to_.width));
    return;
  }
  for (int x = 0; x < to_.width; ++x) out[x * step] = row[x];
}

void Resizer::copy(RowSource& rows, uint8_t* out, int step) {
  for (int y = 0; y < to_.height; ++y) put(rows.row(y), y, out, step);
}

void Resizer::average_blocks(RowSource& rows, uint8_t* out, int step) {
  const float weight = 1.0f / static_cast<float>(block_.height * block_.width);
  std::vector<float>& means = sums_;
  for (int y = 0; y < to_.height; ++y) {
    std::fill(totals_.begin(), totals_.end(), int64_t{0});
    for (int k = 0; k < block_.height; ++k) {
      const uint8_t* row = rows.row(y * block_.height + k);
      for (int64_t& total : totals_) {
        for (int j = 0; j < block_.width; ++j) total += *row++;
      }
    }
    for (size_t x = 0; x < totals_.size(); ++x) {
      means[x] = rounds_up_ ? static_cast<float>((totals_[x] + 2) >> 2)
                            : static_cast<float>(totals_[x]) * weight;
    }
    round_row(means.data(), to_.width, line_.data());
    put(line_.data(), y, out, step);
  }
}

void Resizer::average(RowSource& rows, uint8_t* out, int step) {
  int reduced_row = -1, target = 0;
  const auto finish = [&] {
    round_row(sums_.data(), to_.width, line_.data());
    put(line_.data(), target, out, step);
  };
  for (const Tap& tap : down_) {
    const bool is_reduced =
        tap.source == reduced_row ||
        (tap.source == reduced_row + 1 && reduced_row >= 0 && rows.repeats(tap.source));
    if (!is_reduced) functions_.reduce(*across_, rows.row(tap.source), reduced_.data());
    reduced_row = tap.source;
    const size_t width = sums_.size();
    if (&tap == &down_.front() || tap.target != target) {
      if (&tap != &down_.front()) finish();
      target = tap.target;
      for (size_t x = 0; x < width; ++x) sums_[x] = tap.weight * reduced_[x];
    } else {
      for (size_t x = 0; x < width; ++x) sums_[x] += tap.weight * reduced_[x];
    }
  }
  finish();
}

void Resizer::blend(RowSource& rows, uint8_t* out, int step) {
  // The two source rows that are mixed, after horizontal interpolation.
  int* mixed[2] = {mixed_.data(), mixed_.data() + to_.width};
  int sources[2] = {-1, -1};
  const auto blend_across = [&](int source, int place) {
    if (sources[place] == source) return;
    if (sources[1 - place] == source) {
      std::swap(mixed[0], mixed[1]);
      std::swap(sources[0], sources[1]);
      return;
    }
    const uint8_t* row = rows.row(source);
    for (size_t x = 0; x < blends_across_.size(); ++x) {
      const Blend& parts = blends_across_[x];
      mixed[place][x] =
          row[parts.first] * parts.first_weight + row[parts.second] * parts.second_weight;
    }
    sources[place] = source;
  };
  for (int y = 0; y < to_.height; ++y) {
    const Blend& parts = blends_down_[static_cast<size_t>(y)];
    blend_across(parts.first, 0);
    const bool is_one = parts.second == parts.first;
    if (!is_one) blend_across(parts.second, 1);
    const int* upper = mixed[0];
    const int* lower = is_one ? mixed[0] : mixed[1];
    for (int x = 0; x < to_.width; ++x) {
      const int sum = ((parts.first_weight * (upper[x] >> 4)) >> 16) +
                      ((parts.second_weight * (lower[x] >> 4)) >> 16);
      line_[static_cast<size_t>(x)] = static_cast<uint8_t>(std::clamp((sum + 2) >> 2, 0, 255));
    }
    put(line_.data(), y, out, step);
  }
}

}  // namespace shoal::image
