// The contact solver: computes impulses that make touching bodies stop, slide and bounce, by
// iteration until the impulses converge, and corrects overlaps.
#pragma once

#include "contact.h"

namespace shoal::hockey {

constexpr int kMaxContacts = 24;

/// Contacts that are solved together.
struct Contacts {
  int count = 0;
  Contact items[kMaxContacts];

  void add(const Contact& contact, float friction, float restitution) {
    if (contact.count == 0 || count == kMaxContacts) return;
    items[count] = contact;
    items[count].friction = friction;
    items[count].restitution = restitution;
    ++count;
  }
  /// Moves the contacts of `others` here.
  void take(Contacts& others) {
    for (int k = 0; k < others.count && count < kMaxContacts; ++k) items[count++] = others.items[k];
    others.count = 0;
  }
};

/// The parameters of position correction.
struct Correction {
  int rounds;
  float share;      // the fraction of an overlap that a round removes
  float tolerated;  // the overlap at which the iteration stops
};

constexpr float kSlop = 0.005f;  // the overlap that remains, so that contacts persist
constexpr Correction kUsual{60, 0.2f, 3.0f * kSlop};
constexpr Correction kAtImpact{20, 0.75f, 1.5f * kSlop};

void solve_velocities(Contacts& contacts);
void solve_positions(Contacts& contacts, const Correction& correction);

/// Moves a body for a time, by at most kMaxTravel and kMaxTurn.
void move(Body& body, float seconds);

}  // namespace shoal::hockey
