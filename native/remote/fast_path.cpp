#include "fast_path.h"

#include "../layout/codec.h"

namespace shoal {

namespace {

constexpr size_t kResultBytes = sizeof(double) + 2;  // per row: a reward and two flags

uint64_t leaf_bytes(const Tree& tree) {
  uint64_t bytes = 0;
  for (const Leaf& leaf : tree.leaves) bytes += static_cast<uint64_t>(leaf.bytes);
  return bytes;
}

/// Whether the object is a C-contiguous array of this dtype and of shape (rows, *shape).
bool is_column(PyObject* object, PyArray_Descr* descr, Py_ssize_t rows,
               const std::vector<npy_intp>& shape) {
  if (!PyArray_CheckExact(object)) return false;
  auto* array = reinterpret_cast<PyArrayObject*>(object);
  return PyArray_NDIM(array) == static_cast<int>(shape.size()) + 1 &&
         PyArray_DIM(array, 0) == rows &&
         std::equal(shape.begin(), shape.end(), PyArray_DIMS(array) + 1) &&
         PyArray_EquivTypes(PyArray_DESCR(array), descr) && PyArray_ISCARRAY_RO(array);
}

iovec bytes_of(PyObject* object) {
  auto* array = reinterpret_cast<PyArrayObject*>(object);
  return {PyArray_DATA(array), static_cast<size_t>(PyArray_NBYTES(array))};
}

/// Collects the arrays of a batch in the order of the leaves; returns false if one does not match.
bool collect(const Tree& tree, const Node& node, PyObject* batch, Py_ssize_t rows,
             std::vector<Ref>& arrays) {
  switch (node.kind) {
    case Node::Kind::kLeaf: {
      const Leaf& leaf = tree.leaves[node.index];
      if (!is_column(batch, leaf.dtype(), rows, leaf.shape)) return false;
      arrays.push_back(Ref::borrow(batch));
      return true;
    }
    case Node::Kind::kObject:
      return false;
    case Node::Kind::kDict:
      for (size_t k = 0; k < node.children.size(); ++k) {
        Ref part = Ref::checked(PyObject_GetItem(batch, node.keys[k].get()));
        if (!collect(tree, node.children[k], part.get(), rows, arrays)) return false;
      }
      return true;
    case Node::Kind::kTuple:
      for (size_t k = 0; k < node.children.size(); ++k) {
        Ref part = Ref::checked(PySequence_GetItem(batch, static_cast<Py_ssize_t>(k)));
        if (!collect(tree, node.children[k], part.get(), rows, arrays)) return false;
      }
      return true;
  }
  return false;
}

std::vector<iovec> bytes_of(const Tree& tree, const Columns& columns, Py_ssize_t rows) {
  std::vector<iovec> parts;
  for (size_t leaf = 0; leaf < tree.leaves.size(); ++leaf) {
    const Py_ssize_t bytes = tree.leaves[leaf].bytes * rows;
    if (bytes > 0) parts.push_back({columns.data[leaf], static_cast<size_t>(bytes)});
  }
  return parts;
}

/// Rejects bytes other than 0 and 1: NumPy assumes that boolean arrays contain nothing else.
void check_flags(const uint8_t* flags, size_t count) {
  if (std::all_of(flags, flags + count, [](uint8_t flag) { return flag <= 1; })) return;
  Ref type = error_class("ProtocolError");
  raise(type.get(), "a boolean is neither 0 nor 1");
}

void check_flags(const Tree& tree, const Columns& columns, Py_ssize_t rows) {
  for (size_t k = 0; k < tree.leaves.size(); ++k) {
    const Leaf& leaf = tree.leaves[k];
    if (leaf.type_num != NPY_BOOL) continue;
    check_flags(reinterpret_cast<const uint8_t*>(columns.data[k]),
                static_cast<size_t>(leaf.bytes * rows));
  }
}

}  // namespace

FastPathClient::FastPathClient(ActionIntake& intake, SlotState& state, const Tree& observations,
                               bool updates_finished, FastPathCodes codes)
    : intake_(intake),
      state_(state),
      observations_(observations),
      updates_finished_(updates_finished),
      codes_(codes) {
  const auto rows = static_cast<uint64_t>(state.count);
  request_bytes_ = rows * leaf_bytes(intake.tree());
  response_bytes_ = rows * (kResultBytes + leaf_bytes(observations));
}

nb::object FastPathClient::step(Port& port, nb::handle actions, uint64_t number, uint64_t ack,
                                std::optional<double> seconds) {
  const SlotsInUse in_use(state_);
  const Py_ssize_t rows = state_.count;
  intake_.accept_occupied(actions, {nullptr, rows, 0});
  if (has_extras(intake_.columns(), {nullptr, rows, 0})) return nb::none();
  results_ = Ref();  // so that their arrays can be recycled
  Header request;
  request.kind = codes_.step;
  request.flags = codes_.whole;
  request.rows = static_cast<uint32_t>(rows);
  request.number = number;
  request.ack = ack;
  request.body = request_bytes_;
  auto head = request.packed();
  std::vector<iovec> parts = bytes_of(intake_.tree(), intake_.columns(), rows);
  parts.insert(parts.begin(), {head.data(), head.size()});
  last_request_ = number;
  is_receive_incomplete_ = false;
  is_send_incomplete_ = true;
  port.send_parts(std::move(parts));
  is_send_incomplete_ = false;

  const char* bytes = port.await_bytes(Header::kBytes, seconds);
  const std::optional<Header> response = bytes ? Header::read(bytes) : std::nullopt;
  if (!response || !is_plain(*response, number, ack)) return nb::steal(Py_NewRef(Py_False));
  is_receive_incomplete_ = true;
  port.skip(Header::kBytes);
  Bank& bank = banks_.renewed(observations_, rows);
  const auto count = static_cast<size_t>(rows);
  std::vector<iovec> targets = bytes_of(observations_, bank.observations, rows);
  const iovec results[] = {{bank.rewards.data, count * sizeof(double)},
                           {bank.terminated.data, count},
                           {bank.truncated.data, count}};
  targets.insert(targets.begin(), std::begin(results), std::end(results));
  port.receive_parts(targets);
  is_receive_incomplete_ = false;
  check_flags(bank.terminated.data, count);
  check_flags(bank.truncated.data, count);
  check_flags(observations_, bank.observations, rows);
  for (Py_ssize_t k = 0; updates_finished_ && k < rows; ++k) {
    state_.finished[k] = bank.terminated[k] | bank.truncated[k];
  }
  micros_ = response->micros;
  Ref tuple = Ref::checked(PyTuple_New(5));
  PyTuple_SET_ITEM(tuple.get(), 0, assemble(observations_, bank.observations, rows).release());
  PyTuple_SET_ITEM(tuple.get(), 1, Ref(bank.rewards.owner).release());
  PyTuple_SET_ITEM(tuple.get(), 2, Ref(bank.terminated.owner).release());
  PyTuple_SET_ITEM(tuple.get(), 3, Ref(bank.truncated.owner).release());
  PyTuple_SET_ITEM(tuple.get(), 4, Py_NewRef(Py_None));
  last_answered_ = number;
  last_received_ = response->number;
  results_ = tuple;
  return nb::steal(tuple.release());
}

bool FastPathClient::is_plain(const Header& header, uint64_t number, uint64_t ack) const {
  return header.kind == codes_.batch && header.flags == 0 && header.meta == 0 &&
         header.rows == static_cast<uint32_t>(state_.count) && header.body == response_bytes_ &&
         header.reply_to == number && header.number == ack + 1 && header.ack <= number;
}

FastPathServer::FastPathServer(const Tree& actions, const Tree& observations, Py_ssize_t rows,
                               FastPathCodes codes)
    : actions_(actions), observations_(observations), rows_(rows), codes_(codes) {
  request_bytes_ = static_cast<uint64_t>(rows) * leaf_bytes(actions);
  response_bytes_ = static_cast<uint64_t>(rows) * (kResultBytes + leaf_bytes(observations));
}

nb::object FastPathServer::receive(Port& port, uint64_t received, std::optional<double> seconds) {
  const char* bytes = port.await_bytes(Header::kBytes, seconds);
  if (bytes == nullptr) return nb::none();
  const std::optional<Header> request = Header::read(bytes);
  const bool is_plain = request && request->kind == codes_.step && request->meta == 0 &&
                        request->flags == codes_.whole &&
                        request->rows == static_cast<uint32_t>(rows_) &&
                        request->body == request_bytes_ && request->number == received + 1;
  if (!is_plain) return nb::steal(Py_NewRef(Py_False));
  port.skip(Header::kBytes);
  received_.renew(actions_, rows_);
  port.receive_parts(bytes_of(actions_, received_, rows_));
  check_flags(actions_, received_, rows_);
  Ref pair = Ref::checked(PyTuple_New(2));
  PyTuple_SET_ITEM(pair.get(), 0, PyLong_FromUnsignedLongLong(request->number));
  PyTuple_SET_ITEM(pair.get(), 1, assemble(actions_, received_, rows_).release());
  return nb::steal(pair.release());
}

bool FastPathServer::respond(Port& port, nb::tuple results, uint64_t number, uint64_t reply_to,
                             uint32_t micros) {
  if (results.size() != 5 || !results[4].is_none()) return false;
  static PyArray_Descr* const reward_descr = PyArray_DescrFromType(NPY_FLOAT64);
  static PyArray_Descr* const flag_descr = PyArray_DescrFromType(NPY_BOOL);
  std::vector<Ref> arrays;
  for (size_t k = 1; k < 4; ++k) {
    PyObject* column = nb::handle(results[k]).ptr();
    if (!is_column(column, k == 1 ? reward_descr : flag_descr, rows_, {})) return false;
    arrays.push_back(Ref::borrow(column));
  }
  if (!collect(observations_, observations_.root, nb::handle(results[0]).ptr(), rows_, arrays)) {
    return false;
  }
  Header header;
  header.kind = codes_.batch;
  header.rows = static_cast<uint32_t>(rows_);
  header.micros = micros;
  header.number = number;
  header.ack = reply_to;
  header.reply_to = reply_to;
  header.body = response_bytes_;
  auto head = header.packed();
  std::vector<iovec> parts = {{head.data(), head.size()}};
  for (const Ref& array : arrays) parts.push_back(bytes_of(array.get()));
  port.send_parts(std::move(parts));
  return true;
}

}  // namespace shoal
