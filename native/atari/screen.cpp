#include "screen.h"

#include <cstring>

#include "../python/numpy.h"

namespace shoal {

namespace {

using image::kBeyond;
using image::kPairs;
using image::Size;

/// Checks that an object is a contiguous uint8 array with this number of dimensions.
PyArrayObject* bytes_of(nb::handle array, int dimensions, const char* what) {
  auto* typed = reinterpret_cast<PyArrayObject*>(array.ptr());
  if (!PyArray_Check(array.ptr()) || PyArray_TYPE(typed) != NPY_UINT8 ||
      !PyArray_IS_C_CONTIGUOUS(typed) || PyArray_NDIM(typed) != dimensions) {
    raise(PyExc_ValueError, "%s must be a contiguous array of uint8 with %d dimensions", what,
          dimensions);
  }
  return typed;
}

const uint8_t* data_of(PyArrayObject* array) {
  return static_cast<const uint8_t*>(PyArray_DATA(array));
}

uint8_t* writable_data_of(PyArrayObject* array) {
  if (!PyArray_ISWRITEABLE(array)) raise(PyExc_ValueError, "the output array is read-only");
  return static_cast<uint8_t*>(PyArray_DATA(array));
}

Size size_of(PyArrayObject* array) {
  return {static_cast<int>(PyArray_DIM(array, 0)), static_cast<int>(PyArray_DIM(array, 1))};
}

int channels_of(PyArrayObject* array) {
  return PyArray_NDIM(array) == 3 ? static_cast<int>(PyArray_DIM(array, 2)) : 1;
}

/// Two screens of colour indices as one channel of an image.
class MergedScreens : public image::RowSource {
 public:
  MergedScreens(const uint8_t* newest, const uint8_t* before, int width, const uint8_t* table,
                const image::RowFunctions& functions, uint8_t* row)
      : newest_(newest),
        before_(before),
        width_(static_cast<size_t>(width)),
        table_(table),
        functions_(functions),
        row_(row) {}

  const uint8_t* row(int y) override {
    const size_t at = static_cast<size_t>(y) * width_;
    functions_.look_up(newest_ + at, before_ + at, static_cast<int>(width_), table_, row_);
    return row_;
  }
  bool repeats(int y) const override {
    const size_t at = static_cast<size_t>(y) * width_;
    return std::memcmp(newest_ + at, newest_ + at - width_, width_) == 0 &&
           std::memcmp(before_ + at, before_ + at - width_, width_) == 0;
  }

 private:
  const uint8_t *newest_, *before_;
  size_t width_;
  const uint8_t* table_;
  const image::RowFunctions& functions_;
  uint8_t* row_;
};

/// One channel of an image whose pixels are `step` bytes apart.
class ImageChannel : public image::RowSource {
 public:
  ImageChannel(const uint8_t* pixels, int width, int step)
      : pixels_(pixels), step_(step), row_(static_cast<size_t>(width + kBeyond)), width_(width) {}

  const uint8_t* row(int y) override {
    const uint8_t* source = pixels_ + static_cast<size_t>(y) * static_cast<size_t>(width_ * step_);
    for (int x = 0; x < width_; ++x) row_[static_cast<size_t>(x)] = source[x * step_];
    return row_.data();
  }
  bool repeats(int) const override { return false; }

 private:
  const uint8_t* pixels_;
  int step_;
  std::vector<uint8_t> row_;
  int width_;
};

void check_sizes(Size from, Size to) {
  if (from.height < 1 || from.width < 1 || to.height < 1 || to.width < 1) {
    raise(PyExc_ValueError, "cannot resize an image of %d x %d to %d x %d: sizes must be positive",
          from.height, from.width, to.height, to.width);
  }
}

}  // namespace

ScreenPainter::ScreenPainter(Size from, Size to, nb::handle tables, bool portable)
    : resizer_((check_sizes(from, to), from), to, 1, image::row_functions(portable)),
      functions_(image::row_functions(portable)),
      row_(static_cast<size_t>(from.width + kBeyond)) {
  PyArrayObject* array = bytes_of(tables, 3, "tables");
  if (PyArray_DIM(array, 1) * PyArray_DIM(array, 2) != kPairs) {
    raise(PyExc_ValueError, "tables must have the shape (channels, 256, 256)");
  }
  tables_.assign(data_of(array), data_of(array) + PyArray_SIZE(array));
}

void ScreenPainter::paint(nb::handle newest, nb::handle before, nb::handle out) {
  PyArrayObject* newer = bytes_of(newest, 2, "the screen");
  PyArrayObject* older = before.is_none() ? newer : bytes_of(before, 2, "the screen before");
  const auto channels = static_cast<int>(tables_.size() / kPairs);
  PyArrayObject* output = bytes_of(out, channels == 1 ? 2 : 3, "the output");
  if (!(size_of(newer) == resizer_.from()) || !(size_of(older) == resizer_.from())) {
    raise(PyExc_ValueError, "expected screens of %d x %d", resizer_.from().height,
          resizer_.from().width);
  }
  if (!(size_of(output) == resizer_.to()) || channels_of(output) != channels) {
    raise(PyExc_ValueError, "expected an output of %d x %d with %d channels", resizer_.to().height,
          resizer_.to().width, channels);
  }
  uint8_t* pixels = writable_data_of(output);
  for (int channel = 0; channel < channels; ++channel) {
    MergedScreens rows(data_of(newer), data_of(older), resizer_.from().width,
                       tables_.data() + channel * kPairs, functions_, row_.data());
    resizer_.fill(rows, pixels + channel, channels);
  }
}

void resize_area(nb::handle image, nb::handle out, bool portable) {
  const bool has_channels = PyArray_Check(image.ptr()) &&
                            PyArray_NDIM(reinterpret_cast<PyArrayObject*>(image.ptr())) == 3;
  PyArrayObject* source = bytes_of(image, has_channels ? 3 : 2, "the image");
  PyArrayObject* target = bytes_of(out, has_channels ? 3 : 2, "the resized image");
  if (channels_of(source) != channels_of(target)) {
    raise(PyExc_ValueError, "the images must have the same number of channels");
  }
  check_sizes(size_of(source), size_of(target));
  const int channels = channels_of(source);
  image::Resizer resizer(size_of(source), size_of(target), channels,
                         image::row_functions(portable));
  for (int channel = 0; channel < channels; ++channel) {
    ImageChannel rows(data_of(source) + channel, resizer.from().width, channels);
    resizer.fill(rows, writable_data_of(target) + channel, channels);
  }
}

}  // namespace shoal
