// The meaning of a board's entries: tasks for a worker, and their outcomes.
#pragma once

#include "../doorbell/board.h"

namespace shoal {

enum class Kind : Entry {
  kMessage,  // a message waits in the worker's mailbox
  kSlot,     // one slot; its results belong into the first bank
  kShare,    // every slot of the worker; their results belong into the bank with this number
};

constexpr Entry kNumberMask = (Entry{1} << 28) - 1;
constexpr Entry kHasMessage = Entry{1} << 28;  // of an outcome: a message follows

constexpr Entry entry_of(Kind kind, Entry number) {
  return static_cast<Entry>(kind) << 30 | number;
}
constexpr Kind kind_of(Entry entry) { return static_cast<Kind>(entry >> 30); }
constexpr Entry number_of(Entry entry) { return entry & kNumberMask; }

}  // namespace shoal
