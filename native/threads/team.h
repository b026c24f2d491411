// Threads that work on jobs together with their caller, without Python.
//
// A job is a number of chunks. Each participant has a range of them, always the same one, so that
// it may find in its cache what it left there; whoever is done with its range goes on with
// those of the others. A chunk is claimed by one atomic addition. The threads are started with the
// first job that is posted, sleep while there is nothing to do, and live as long as the team. A
// fork waits until nobody is inside a chunk, for a second at most; in the child the team starts new
// threads, and unclaimed chunks are worked on as if nothing had been.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

namespace shoal {

class ChunkedJob {
 public:
  /// `first_come`: whether somebody waits for single chunks, and not only for the last of them.
  /// `participants`: how many may work on it: the threads of a team and the caller.
  ChunkedJob(int64_t chunks, bool first_come, int participants);
  virtual ~ChunkedJob() = default;
  ChunkedJob(const ChunkedJob&) = delete;
  ChunkedJob& operator=(const ChunkedJob&) = delete;

  int64_t chunk_count() const { return chunks_; }
  bool has_unclaimed() const;
  int64_t done() const { return done_.load(std::memory_order_acquire); }
  bool is_done() const { return done() == chunks_; }
  /// Lets nobody claim another chunk; those that were not claimed count as done.
  void cancel();

 protected:
  virtual void run(int64_t chunk) = 0;

 private:
  friend class Team;

  /// The chunks of one participant, who claims them first; then come the others.
  struct alignas(64) ChunkRange {
    std::atomic<int64_t> next;
    int64_t end;
  };

  /// The number of a chunk that nobody else works on, or -1.
  int64_t claim(int participant);

  const int64_t chunks_;
  const bool first_come_;
  std::vector<ChunkRange> ranges_;
  alignas(64) std::atomic<int64_t> done_{0};
};

class Team {
 public:
  /// `cores`: worker k is bound to core cores[k % size], or to none where there are no cores.
  /// `may_spin`: whether there are cores enough for every worker and the caller.
  Team(int workers, std::vector<int> cores, bool may_spin);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  int workers() const;

  /// The threads as the system knows them; 0 for one that has not been started.
  std::vector<int> thread_ids() const;

  /// Lets the workers begin with a job.
  void post(std::shared_ptr<ChunkedJob> job);

  /// Works on one chunk of a job, posted or not; false where none is left to claim.
  bool help(ChunkedJob& job);

  /// Sleeps until a job that is posted makes progress beyond `done` chunks, or is done, or so many
  /// nanoseconds have passed.
  void wait(const ChunkedJob& job, int64_t done, int64_t nanoseconds);

  /// Ends the threads, each after the chunk that it is in. Returns false where some did not end in
  /// time, now or before: they are left alone, and what they work on must stay for ever.
  bool stop(double seconds);

  /// Whether this is the child of a fork in which chunks were under way that did not end in time:
  /// nobody will ever finish them.
  bool has_lost_chunks() const;

  struct State;

 private:
  std::shared_ptr<State> state_;  // shared with the threads, which may outlive the team
};

}  // namespace shoal
