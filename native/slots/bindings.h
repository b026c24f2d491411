#pragma once

#include <nanobind/nanobind.h>

namespace shoal {

void bind_slots(nanobind::module_& module);

}  // namespace shoal
