#include "jobs.h"

#include <algorithm>
#include <cstring>

#include "../doorbell/spin.h"
#include "../image/canvas.h"
#include "../layout/bounds.h"

namespace shoal {

namespace {

constexpr int64_t kCopiedSlots = 4096;  // per chunk

int64_t divided_up(int64_t count, int64_t size) { return (count + size - 1) / size; }

}  // namespace

SlotJob::SlotJob(std::shared_ptr<Engine> engine, std::vector<int64_t> slots, Rows rows,
                 std::unique_ptr<Reset> reset, int64_t chunk_slots, bool first_come,
                 int participants)
    : ChunkedJob(
          divided_up(slots.empty() ? engine->options().slots : static_cast<int64_t>(slots.size()),
                     chunk_slots),
          first_come, participants),
      engine_(std::move(engine)),
      slots_(std::move(slots)),
      rows_(std::move(rows)),
      reset_(std::move(reset)),
      count_(slots_.empty() ? engine_->options().slots : static_cast<int64_t>(slots_.size())),
      chunk_slots_(chunk_slots),
      order_(first_come ? static_cast<size_t>(divided_up(count_, chunk_slots)) : 0) {
  for (auto& place : order_) place.store(-1, std::memory_order_relaxed);
}

void SlotJob::run(int64_t chunk) {
  // A chunk finishes even if an exception ends it: a caller that waits for every chunk would
  // otherwise never return.
  class Finish {
   public:
    Finish(SlotJob& job, int64_t finished_chunk) : job_(job), chunk_(finished_chunk) {}
    ~Finish() {
      job_.busy_.fetch_add(monotonic_ns() - start_, std::memory_order_relaxed);
      if (job_.order_.empty()) return;
      const auto place =
          static_cast<size_t>(job_.finished_.fetch_add(1, std::memory_order_relaxed));
      job_.order_[place].store(chunk_, std::memory_order_release);
    }
    Finish(const Finish&) = delete;
    Finish& operator=(const Finish&) = delete;

   private:
    SlotJob& job_;
    const int64_t chunk_;
    const int64_t start_ = monotonic_ns();
  };

  const Finish finish(*this, chunk);
  const int64_t end = std::min((chunk + 1) * chunk_slots_, count_);
  for (int64_t k = chunk * chunk_slots_; k < end;) {
    int64_t next = slots_.empty() ? end : k + 1;
    while (next < end && slot(next) == slot(next - 1) + 1) ++next;
    run_slots(slot(k), slot(next - 1) + 1, k);
    k = next;
  }
}

void SlotJob::run_slots(int64_t first, int64_t last, int64_t position) {
  if (reset_ == nullptr) {
    engine_->step(first, last, rows_, report_);
  } else {
    engine_->reset(first, last, reset_->seeds, static_cast<size_t>(position),
                   reset_->options.data(), rows_, report_);
  }
}

int64_t SlotJob::finished_chunk(int64_t place) const {
  if (place >= static_cast<int64_t>(order_.size())) return -1;
  return order_[static_cast<size_t>(place)].load(std::memory_order_acquire);
}

void SlotJob::append_slots(int64_t chunk, std::vector<int64_t>& slots) const {
  const int64_t end = std::min((chunk + 1) * chunk_slots_, count_);
  for (int64_t k = chunk * chunk_slots_; k < end; ++k) slots.push_back(slot(k));
}

CopyJob::CopyJob(const Copy& copy, int64_t slots, int participants)
    : ChunkedJob(divided_up(slots, kCopiedSlots), false, participants),
      copy_(copy),
      slots_(slots) {}

void CopyJob::run(int64_t chunk) {
  const int64_t first = chunk * kCopiedSlots, last = std::min(first + kCopiedSlots, slots_);
  const auto start = static_cast<size_t>(first), count = static_cast<size_t>(last - first);
  char* target = copy_.target + start * copy_.bytes;
  std::memcpy(target, copy_.source + start * copy_.bytes, count * copy_.bytes);
  // Check the copy, not the source: another thread of the user may write to the source.
  if (copy_.is_bounded &&
      !all_within(reinterpret_cast<const int64_t*>(target), last - first, copy_.low, copy_.high)) {
    within_.store(false, std::memory_order_release);
  }
}

DrawJob::DrawJob(std::shared_ptr<Engine> engine, std::vector<int64_t> slots, uint8_t* pixels,
                 int participants)
    : ChunkedJob(static_cast<int64_t>(slots.size()), false, participants),
      engine_(std::move(engine)),
      slots_(std::move(slots)),
      pixels_(pixels) {}

void DrawJob::run(int64_t chunk) {
  const shoal_kernel& kernel = engine_->kernel();
  const int64_t stride = 3 * int64_t{kernel.width};
  Canvas canvas(pixels_ + chunk * stride * kernel.height, kernel.width, kernel.height, stride);
  engine_->draw(slots_[static_cast<size_t>(chunk)], canvas.interface());
}

}  // namespace shoal
