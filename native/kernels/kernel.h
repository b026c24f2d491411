// A kernel as Python holds it: what it says of itself, and whatever must live as long.
#pragma once

#include <deque>
#include <string>

#include "../python/object.h"
#include "engine.h"
#include "toy_text/tabular.h"

namespace shoal {

class Kernel {
 public:
  /// A kernel that comes with Shoal, by its name.
  explicit Kernel(const char* name);

  /// Over the rows of a table; `parts` has an entry for each member of Table.
  static Kernel of_table(nb::dict parts);

  /// At an address in a library or in compiled code; `owner` keeps that alive. Raises where it is
  /// no kernel, or one that this version does not know.
  static Kernel at(uintptr_t address, nb::handle owner);

  /// Of functions at these addresses, described by `parts`; `owner` keeps them alive.
  static Kernel of_functions(nb::dict parts, nb::handle owner);

  const shoal_kernel& operator*() const { return *kernel_; }

  /// All that Python wants to know, as a dict.
  nb::dict description() const;

 private:
  struct Built;

  Kernel(const shoal_kernel* kernel, std::shared_ptr<const void> memory, nb::handle owner);

  std::shared_ptr<const void> memory_;
  Ref owner_;
  const shoal_kernel* kernel_;
};

}  // namespace shoal
