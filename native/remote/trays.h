// Trays: places in shared memory for the observations of all slots.
//
// The client names a tray that nobody holds with its request; the server puts the observations
// there instead of into its answer, and the arrays over the tray are the user's. So they are copied
// once, not twice. A tray is used again when the user has let go of its arrays; where the user
// holds all of them, observations travel as they always do.
#pragma once

#include "../layout/tree.h"

namespace shoal {

/// The part of a block of shared memory that trays lie in.
struct TrayArea {
  Ref owner;
  char* data = nullptr;
  size_t size = 0;
};

/// How observations of all slots lie in a tray.
class TrayPlan {
 public:
  TrayPlan(const Tree& observations, Py_ssize_t rows);

  /// Bytes of one tray, whole pages; 0 where they are not worth it, or must be looked at first.
  size_t bytes() const { return bytes_; }

  /// Where in a tray each leaf begins.
  size_t offset(size_t leaf) const { return offsets_[leaf]; }

  /// How many trays there are in an area.
  size_t count_in(const TrayArea& area) const { return bytes_ == 0 ? 0 : area.size / bytes_; }

 private:
  std::vector<size_t> offsets_;
  size_t bytes_ = 0;
};

/// The client's trays.
class Trays {
 public:
  Trays(const Tree& observations, Py_ssize_t rows);

  /// The number of a tray in this area that nobody holds, from 1 on; 0 if there is none.
  uint8_t free_one(const TrayArea& area);

  /// What lies in a tray, as arrays that are handed to the user.
  const Columns& operator[](uint8_t number) const { return trays_[number - 1u]; }

  /// Before a fork: what the user holds becomes memory of this process, and is no tray any more.
  /// The child would else see what becomes of the tray after its parent has let go of it.
  void part_from_held();

 private:
  bool is_free(const Columns& tray) const;
  void make_arrays(Columns& tray, char* data);

  const Tree& observations_;
  const Py_ssize_t rows_;
  const TrayPlan plan_;
  TrayArea area_;
  std::vector<Columns> trays_;
  std::vector<bool> is_parted_;
};

}  // namespace shoal
