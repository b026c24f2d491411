// Autoreset modes: when a slot whose episode has ended is reset.
#pragma once

namespace shoal {

enum class Autoreset { kNextStep, kSameStep, kDisabled };

}  // namespace shoal
