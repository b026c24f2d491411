// A kernel as a Python object, with everything that it keeps alive.
#pragma once

#include <deque>
#include <string>

#include "../python/object.h"
#include "engine.h"
#include "toy_text/tabular.h"

namespace shoal {

class Kernel {
 public:
  /// The built-in kernel of this name.
  explicit Kernel(const char* name);

  /// A tabular kernel; `parts` has an entry for each member of Table.
  static Kernel of_table(nb::dict parts);

  /// A kernel at an address, which `owner` keeps valid. Raises KernelDefinitionError if the kernel
  /// is invalid or was compiled for another version.
  static Kernel at(uintptr_t address, nb::handle owner);

  /// A kernel described by `parts`, whose functions are at addresses that `owner` keeps valid.
  static Kernel of_functions(nb::dict parts, nb::handle owner);

  const shoal_kernel& operator*() const { return *kernel_; }

  /// The members of shoal_kernel as a dict.
  nb::dict description() const;

 private:
  struct Built;

  Kernel(const shoal_kernel* kernel, std::shared_ptr<const void> memory, nb::handle owner);

  std::shared_ptr<const void> memory_;
  Ref owner_;
  const shoal_kernel* kernel_;
};

}  // namespace shoal
