// What the entries of a board mean to a group of workers: tasks for a worker, and their outcomes.
#pragma once

#include "../doorbell/board.h"

namespace shoal {

enum class Kind : Entry {
  kMessage,  // a message waits in the worker's mailbox
  kSlot,     // one slot, in the first bank
  kShare,    // every slot of the worker, in the bank with this number
};

constexpr Entry kNumberMask = (Entry{1} << 28) - 1;
constexpr Entry kHasMessage = Entry{1} << 28;  // of an outcome: a message with more follows

constexpr Entry entry_of(Kind kind, Entry number) {
  return static_cast<Entry>(kind) << 30 | number;
}
constexpr Kind kind_of(Entry entry) { return static_cast<Kind>(entry >> 30); }
constexpr Entry number_of(Entry entry) { return entry & kNumberMask; }

}  // namespace shoal
