// A thread team: persistent threads that work on jobs together with the calling thread. No Python.
//
// A job is a number of chunks. Each participant (worker threads and the caller) owns a range of
// chunks, the same range in every job, so that its slots may still be in its cache. A participant
// that has finished its range claims chunks of the other ranges. A claim is one atomic addition.
//
// Threads start with the first posted job, sleep while there is no work, and live until the team is
// stopped. A fork waits up to one second for running chunks to end; the child process starts new
// threads and continues with the unclaimed chunks.
//
// Exceptions: an exception thrown by a chunk never leaves a worker thread. The job keeps the first
// one, the other chunks run as usual, and help() or wait() rethrows it once all chunks have ended.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <vector>

namespace shoal {

class ChunkedJob {
 public:
  /// `first_come`: wake the caller after every chunk instead of after the last one only.
  /// `participants`: the largest number of threads that may work on it, the caller included.
  ChunkedJob(int64_t chunks, bool first_come, int participants);
  virtual ~ChunkedJob() = default;
  ChunkedJob(const ChunkedJob&) = delete;
  ChunkedJob& operator=(const ChunkedJob&) = delete;

  int64_t chunk_count() const { return chunks_; }
  bool has_unclaimed() const;

  /// The number of chunks that have ended, by an exception or not.
  int64_t done() const { return done_.load(std::memory_order_acquire); }

  /// Whether all chunks have ended and no exception is waiting to be rethrown. A caller that loops
  /// until a job is done therefore always receives the exception.
  bool is_done() const { return has_ended() && !has_error_.load(std::memory_order_acquire); }

  /// Prevents further claims. Chunks that were not claimed count as done.
  void cancel();

 protected:
  /// Works on one chunk. Different chunks run on different threads at the same time.
  virtual void run(int64_t chunk) = 0;

 private:
  friend class Team;

  /// The chunks of one participant. Other participants claim them only after their own.
  struct alignas(64) ChunkRange {
    std::atomic<int64_t> next;
    int64_t end;
  };

  bool has_ended() const { return done() == chunks_; }

  /// Returns a chunk that no other thread works on, or -1 if all chunks are claimed.
  int64_t claim(int participant);

  /// Runs a chunk and keeps its exception if it is the first one.
  void run_guarded(int64_t chunk) noexcept;

  /// Rethrows the first exception of a job whose chunks have all ended, exactly once.
  void rethrow_error();

  const int64_t chunks_;
  const bool first_come_;
  std::vector<ChunkRange> ranges_;
  alignas(64) std::atomic<int64_t> done_{0};
  std::atomic<bool> has_error_{false};
  // Written by the thread that sets has_error_; read by the caller after all chunks have ended.
  std::exception_ptr error_;
};

class Team {
 public:
  /// `cores`: worker k is bound to core cores[k % size]; empty: workers are not bound.
  /// `may_spin`: whether there is a core for every worker and the caller.
  Team(int workers, std::vector<int> cores, bool may_spin);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  int workers() const;

  /// The system's thread IDs; 0 for a thread that has not been started.
  std::vector<int> thread_ids() const;

  /// Makes a job available to the workers.
  void post(std::shared_ptr<ChunkedJob> job);

  /// Works on one chunk of a job, posted or not. Returns false if no chunk is left to claim.
  /// Rethrows the job's exception once all chunks have ended.
  bool help(ChunkedJob& job);

  /// Sleeps until more than `done` chunks of a posted job have ended, or the job is done, or the
  /// given time has passed. Rethrows the job's exception once all chunks have ended.
  void wait(ChunkedJob& job, int64_t done, int64_t nanoseconds);

  /// Ends the threads, each after its current chunk. Returns false if a thread has not ended in
  /// time, in this call or an earlier one. Such a thread is detached, and the memory that its chunk
  /// uses must never be freed.
  bool stop(double seconds);

  /// Whether this process was forked while chunks were running that did not end in time. They will
  /// never finish in this process.
  bool has_lost_chunks() const;

  struct State;

 private:
  std::shared_ptr<State> state_;  // shared with the threads, which may outlive the team
};

}  // namespace shoal
