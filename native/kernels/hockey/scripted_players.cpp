#include "scripted_players.h"

#include <algorithm>
#include <cstring>

#include "../array_tools.h"
#include "../seeding.h"
#include "scripted_policy.h"

namespace shoal {

namespace {

/// The rows of an array.
struct Rows {
  char* data;
  npy_intp stride;

  template <class T>
  T* at(size_t row) const {
    return reinterpret_cast<T*>(data + static_cast<npy_intp>(row) * stride);
  }
};

/// Checks an array of `count` rows with `width` contiguous elements; width 0: a scalar per row.
Rows rows_of(const char* what, nb::handle object, int type, size_t count, npy_intp width) {
  auto* array = reinterpret_cast<PyArrayObject*>(object.ptr());
  const int dimensions = width == 0 ? 1 : 2;
  const bool fits = PyArray_Check(object.ptr()) && PyArray_TYPE(array) == type &&
                    PyArray_NDIM(array) == dimensions && PyArray_ISBEHAVED_RO(array) &&
                    static_cast<size_t>(PyArray_DIM(array, 0)) == count &&
                    (width == 0 || (PyArray_DIM(array, 1) == width &&
                                    PyArray_STRIDE(array, 1) == PyArray_ITEMSIZE(array)));
  if (!fits)
    raise(PyExc_ValueError, "%s: expected %zu rows with the right dtype and contiguous elements",
          what, count);
  return {PyArray_BYTES(array), PyArray_STRIDE(array, 0)};
}

}  // namespace

ScriptedPlayers::ScriptedPlayers(size_t count, std::vector<uint32_t> seed) : players_(count) {
  this->seed(std::move(seed));
}

void ScriptedPlayers::seed(std::vector<uint32_t> seed) {
  seed.push_back(0);
  for (size_t k = 0; k < players_.size(); ++k) {
    seed.back() = static_cast<uint32_t>(k);
    Player& player = players_[k];
    player.random = seeded(Generator::kPcg64, seed.data(), seed.size());
    player.phase = hockey::first_phase(player.random);
  }
}

nb::bytes ScriptedPlayers::save() const {
  return nb::bytes(players_.data(), players_.size() * sizeof(Player));
}

void ScriptedPlayers::restore(nb::bytes saved) {
  if (saved.size() != players_.size() * sizeof(Player)) {
    raise(PyExc_ValueError, "expected %zu saved players", players_.size());
  }
  std::memcpy(players_.data(), saved.data(), saved.size());
}

void ScriptedPlayers::act(nb::handle observations, nb::handle is_weak, nb::handle actions) {
  const size_t count = players_.size();
  const Rows observed =
      rows_of("observations", observations, NPY_FLOAT32, count, hockey::kObservationSize);
  const Rows weak = rows_of("weak flags", is_weak, NPY_BOOL, count, 0);
  const Rows acted = rows_of("actions", actions, NPY_FLOAT32, count, 4);
  if (!PyArray_ISWRITEABLE(reinterpret_cast<PyArrayObject*>(actions.ptr()))) {
    raise(PyExc_ValueError, "actions cannot be written");
  }
  const nb::gil_scoped_release released;
  for (size_t first = 0; first < count; first += hockey::kLanes) {
    const float* views[hockey::kLanes];
    float* outputs[hockey::kLanes];
    bool are_weak[hockey::kLanes];
    hockey::Lanes phase;
    const auto lanes = static_cast<int>(std::min<size_t>(hockey::kLanes, count - first));
    for (int k = 0; k < hockey::kLanes; ++k) {
      // Lanes without a player repeat the last one.
      const size_t place = first + static_cast<size_t>(std::min(k, lanes - 1));
      Player& player = players_[place];
      if (k < lanes) player.phase = hockey::next_phase(player.phase, player.random);
      phase[k] = player.phase;
      views[k] = observed.at<const float>(place);
      are_weak[k] = *weak.at<const bool>(place);
      outputs[k] = acted.at<float>(place);
    }
    hockey::scripted_actions(views, are_weak, phase, outputs, lanes);
  }
}

}  // namespace shoal
