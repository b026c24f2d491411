// The batches that a runner returns, with infos and finished episodes.
#include <algorithm>

#include "array_tools.h"
#include "runner.h"

namespace shoal {

Rows KernelRunner::rows_of(const Bank& bank, const Columns& infos) const {
  return {bank.observations.data, infos.data, bank.rewards.data, bank.terminated.data,
          bank.truncated.data};
}

/// Fills five items of a tuple, starting at `place`, with a batch.
void KernelRunner::put_results(const Bank& bank, const Columns& infos, const Slots& slots,
                               bool any_ended, PyObject* tuple, Py_ssize_t place) const {
  const Py_ssize_t rows = slots.count;
  Ref batch_infos = infos_of(bank, infos, slots, any_ended);
  PyTuple_SET_ITEM(tuple, place, assemble(observations_, bank.observations, rows).release());
  PyTuple_SET_ITEM(tuple, place + 1, bank.rewards.head(rows, bank.rows).release());
  PyTuple_SET_ITEM(tuple, place + 2, bank.terminated.head(rows, bank.rows).release());
  PyTuple_SET_ITEM(tuple, place + 3, bank.truncated.head(rows, bank.rows).release());
  PyTuple_SET_ITEM(tuple, place + 4, batch_infos.release());
}

Ref KernelRunner::infos_of(const Bank& bank, const Columns& infos, const Slots& slots,
                           bool any_ended) const {
  const bool has_columns = !infos_.leaves.empty();
  const bool has_episodes = any_ended && engine_->options().statistics;
  const bool has_finals = any_ended && engine_->options().mode == Autoreset::kSameStep;
  if (!has_columns && !has_episodes && !has_finals) return Ref::borrow(Py_None);
  Ref columns = has_columns ? assemble(infos_, infos, slots.count) : Ref::borrow(Py_None);
  Ref ended = has_episodes ? episodes(bank, slots) : Ref::borrow(Py_None);
  Ref last = has_finals ? finals(bank, slots) : Ref::borrow(Py_None);
  return Ref::checked(PyTuple_Pack(3, columns.get(), ended.get(), last.get()));
}

Ref KernelRunner::episodes(const Bank& bank, const Slots& slots) const {
  npy_intp rows = slots.count;
  Ref mask = Ref::checked(PyArray_ZEROS(1, &rows, NPY_BOOL, 0));
  Ref totals = Ref::checked(PyArray_ZEROS(1, &rows, NPY_FLOAT64, 0));
  Ref lengths = Ref::checked(PyArray_ZEROS(1, &rows, NPY_INT64, 0));
  Ref times = Ref::checked(PyArray_ZEROS(1, &rows, NPY_FLOAT64, 0));
  for (Py_ssize_t row = 0; row < rows; ++row) {
    if (!(bank.terminated[row] | bank.truncated[row])) continue;
    const Engine::Episode& episode = engine_->ended(slots[row]);
    data_of<uint8_t>(mask)[row] = 1;
    data_of<double>(totals)[row] = episode.total;
    data_of<int64_t>(lengths)[row] = episode.length;
    data_of<double>(times)[row] = episode.seconds;
  }
  return Ref::checked(PyTuple_Pack(4, mask.get(), totals.get(), lengths.get(), times.get()));
}

Ref KernelRunner::finals(const Bank& bank, const Slots& slots) const {
  std::vector<int64_t> rows, ended;
  for (Py_ssize_t row = 0; row < slots.count; ++row) {
    if (!(bank.terminated[row] | bank.truncated[row])) continue;
    rows.push_back(row);
    ended.push_back(slots[row]);
  }
  const auto count = static_cast<Py_ssize_t>(rows.size());
  const Slots finished{ended.data(), count};
  Ref numbers = new_array(NPY_INT64, {count});
  std::copy(rows.begin(), rows.end(), data_of<int64_t>(numbers));
  Columns observations, infos;
  observations.renew(observations_, count);
  gather(engine_->final_observations(), engine_->observation_bytes(), finished, observations.data);
  Ref final_infos = Ref::borrow(Py_None);
  if (!infos_.leaves.empty()) {
    infos.renew(infos_, count);
    gather(engine_->final_infos(), engine_->info_bytes(), finished, infos.data);
    final_infos = assemble(infos_, infos, count);
  }
  Ref batch = assemble(observations_, observations, count);
  return Ref::checked(PyTuple_Pack(3, numbers.get(), batch.get(), final_infos.get()));
}

}  // namespace shoal
