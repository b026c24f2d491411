// Helpers that describe built-in kernels.
//
// Python takes the spaces and time limits of built-in kernels from the Gymnasium environments; the
// native descriptions contain only dtypes and shapes.
#pragma once

#include "shoal_kernel.h"

namespace shoal {

constexpr shoal_leaf number(shoal_dtype dtype, const char* name = nullptr) {
  return {name, dtype, 0, {}, SHOAL_BOX, 0.0, 0.0, nullptr, nullptr, 0};
}

constexpr shoal_leaf array(shoal_dtype dtype, int64_t length, const char* name = nullptr) {
  return {name, dtype, 1, {length}, SHOAL_BOX, 0.0, 0.0, nullptr, nullptr, 0};
}

constexpr shoal_leaf field(const char* name, shoal_dtype dtype, size_t offset) {
  return {name, dtype, 0, {}, SHOAL_BOX, 0.0, 0.0, nullptr, nullptr, offset};
}

/// Assembles a shoal_kernel.
class KernelBuilder {
 public:
  constexpr KernelBuilder(const char* name, size_t state_bytes) : kernel_{} {
    kernel_.version = SHOAL_KERNEL_VERSION;
    kernel_.name = name;
    kernel_.state_bytes = state_bytes;
  }

  template <int count>
  constexpr KernelBuilder& observations(const shoal_leaf (&leaves)[count]) {
    kernel_.observations = leaves;
    kernel_.observation_count = count;
    return *this;
  }
  template <int count>
  constexpr KernelBuilder& actions(const shoal_leaf (&leaves)[count]) {
    kernel_.actions = leaves;
    kernel_.action_count = count;
    return *this;
  }
  template <int count>
  constexpr KernelBuilder& infos(const shoal_leaf (&leaves)[count]) {
    kernel_.infos = leaves;
    kernel_.info_count = count;
    return *this;
  }
  template <int count>
  constexpr KernelBuilder& fields(const shoal_leaf (&leaves)[count]) {
    kernel_.fields = leaves;
    kernel_.field_count = count;
    return *this;
  }
  template <int count>
  constexpr KernelBuilder& parameters(const shoal_number (&numbers)[count]) {
    kernel_.parameters = numbers;
    kernel_.parameter_count = count;
    return *this;
  }
  template <int count>
  constexpr KernelBuilder& options(const shoal_number (&numbers)[count]) {
    kernel_.options = numbers;
    kernel_.option_count = count;
    return *this;
  }
  constexpr KernelBuilder& functions(int64_t (*reset)(const shoal_slots*),
                                     int64_t (*step)(const shoal_slots*)) {
    kernel_.reset = reset;
    kernel_.step = step;
    return *this;
  }
  constexpr KernelBuilder& images(void (*draw)(const shoal_slots*, shoal_canvas*), int width,
                                  int height, int frames_per_second) {
    kernel_.draw = draw;
    kernel_.width = width;
    kernel_.height = height;
    kernel_.frames_per_second = frames_per_second;
    return *this;
  }

  constexpr KernelBuilder& only_reset_has_parameters() {
    kernel_.only_reset_has_parameters = 1;
    return *this;
  }

  constexpr operator shoal_kernel() const { return kernel_; }

 private:
  shoal_kernel kernel_;
};

}  // namespace shoal
