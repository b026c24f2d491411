// An ordered set of slots in which adding and removing any slot takes constant time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace shoal {

/// A doubly linked list through an array with two links for each slot; one more entry is its ends.
class SlotList {
 public:
  explicit SlotList(size_t num_slots)
      : end_(static_cast<int32_t>(num_slots)), links_(num_slots + 1, Links{kAbsent, kAbsent}) {
    links_[num_slots] = {end_, end_};
  }

  size_t size() const { return size_; }
  bool contains(int64_t slot) const { return at(slot).next != kAbsent; }

  /// Adds a slot that is not in the list.
  void push_back(int64_t slot) {
    const auto place = static_cast<int32_t>(slot);
    Links& end = at(end_);
    at(slot) = {end.previous, end_};
    at(end.previous).next = place;
    end.previous = place;
    ++size_;
  }

  /// Removes a slot that is in the list.
  void remove(int64_t slot) {
    Links& removed = at(slot);
    at(removed.previous).next = removed.next;
    at(removed.next).previous = removed.previous;
    removed = {kAbsent, kAbsent};
    --size_;
  }

  void clear() {
    for (int32_t place = at(end_).next; place != end_;) {
      const int32_t next = at(place).next;
      at(place) = {kAbsent, kAbsent};
      place = next;
    }
    at(end_) = {end_, end_};
    size_ = 0;
  }

  class Iterator {
   public:
    Iterator(const SlotList& list, int32_t place) : list_(list), place_(place) {}
    int64_t operator*() const { return place_; }
    Iterator& operator++() {
      place_ = list_.at(place_).next;
      return *this;
    }
    bool operator!=(const Iterator& other) const { return place_ != other.place_; }

   private:
    const SlotList& list_;
    int32_t place_;
  };
  Iterator begin() const { return {*this, at(end_).next}; }
  Iterator end() const { return {*this, end_}; }

 private:
  struct Links {
    int32_t previous, next;
  };
  static constexpr int32_t kAbsent = -1;

  Links& at(int64_t place) { return links_[static_cast<size_t>(place)]; }
  const Links& at(int64_t place) const { return links_[static_cast<size_t>(place)]; }

  int32_t end_;
  std::vector<Links> links_;
  size_t size_ = 0;
};

}  // namespace shoal
