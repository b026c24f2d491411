#include "kernel.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstring>

#include "builtin_kernels.h"

namespace shoal {

namespace {

constexpr const char* kDtypes[] = {"float64", "float32", "int64", "int32",
                                   "int16",   "int8",    "uint8", "bool"};

const char* dtype_name(shoal_dtype dtype) { return kDtypes[dtype]; }

shoal_dtype dtype_of(const std::string& name) {
  for (size_t k = 0; k < std::size(kDtypes); ++k) {
    if (name == kDtypes[k]) return static_cast<shoal_dtype>(k);
  }
  raise(PyExc_ValueError, "kernels do not support the dtype %s", name.c_str());
}

/// Raises KernelDefinitionError.
template <class... Args>
[[noreturn]] void refuse(const char* format, Args... args) {
  Ref error = error_class("KernelDefinitionError");
  raise(error.get(), format, args...);
}

void check_leaves(const char* kernel, const char* what, const shoal_leaf* leaves, int count) {
  if (count < 0 || count > kMaxLeaves) {
    refuse("kernel %s: it has %d %s, expected from 0 to %d", kernel, count, what, kMaxLeaves);
  }
  if (count > 0 && leaves == nullptr) {
    refuse("kernel %s: it has %d %s, but the pointer to them is NULL", kernel, count, what);
  }
  for (int k = 0; k < count; ++k) {
    const shoal_leaf& leaf = leaves[k];
    if (leaf.dtype < SHOAL_FLOAT64 || leaf.dtype > SHOAL_BOOL) {
      refuse("kernel %s: leaf %d of its %s has an invalid dtype", kernel, k, what);
    }
    if (leaf.dimensions < 0 || leaf.dimensions > SHOAL_MAX_DIMENSIONS) {
      refuse("kernel %s: leaf %d of its %s has %d dimensions, expected from 0 to %d", kernel, k,
             what, leaf.dimensions, SHOAL_MAX_DIMENSIONS);
    }
    for (int d = 0; d < leaf.dimensions; ++d) {
      if (leaf.shape[d] < 1 || leaf.shape[d] > (int64_t{1} << 32)) {
        refuse("kernel %s: leaf %d of its %s has a dimension of size %lld", kernel, k, what,
               static_cast<long long>(leaf.shape[d]));
      }
    }
  }
}

/// Raises an error for duplicate names.
template <class Named>
void check_names(const char* kernel, const char* what, const Named* items, int count) {
  for (int k = 0; k < count; ++k) {
    for (int other = 0; other < k; ++other) {
      if (std::strcmp(items[k].name, items[other].name) != 0) continue;
      refuse("kernel %s: its %s have the duplicate name %s", kernel, what, items[k].name);
    }
  }
}

void check_numbers(const char* kernel, const char* what, const shoal_number* numbers, int count) {
  if (count < 0 || (count > 0 && numbers == nullptr)) {
    refuse("kernel %s: it has %d %s", kernel, count, what);
  }
  for (int k = 0; k < count; ++k) {
    if (numbers[k].name == nullptr) {
      refuse("kernel %s: item %d of its %s has no name", kernel, k, what);
    }
  }
  check_names(kernel, what, numbers, count);
}

void check_kernel(const shoal_kernel* kernel) {
  if (kernel == nullptr) refuse("shoal_kernel_entry() returned NULL, expected a kernel");
  if (kernel->version != SHOAL_KERNEL_VERSION) {
    refuse(
        "the kernel was compiled for version %d of shoal_kernel.h, expected %d: compile it again",
        kernel->version, SHOAL_KERNEL_VERSION);
  }
  if (kernel->name == nullptr) refuse("the kernel has no name");
  const char* name = kernel->name;
  if (kernel->reset == nullptr || kernel->step == nullptr) {
    refuse("kernel %s: reset and step must not be NULL", name);
  }
  if (kernel->observation_count < 1 || kernel->action_count < 1) {
    refuse("kernel %s: it must have observations and actions", name);
  }
  check_leaves(name, "observations", kernel->observations, kernel->observation_count);
  check_leaves(name, "actions", kernel->actions, kernel->action_count);
  check_leaves(name, "infos", kernel->infos, kernel->info_count);
  check_leaves(name, "fields", kernel->fields, kernel->field_count);
  for (int k = 0; k < kernel->info_count; ++k) {
    if (kernel->infos[k].name == nullptr) refuse("kernel %s: info number %d has no name", name, k);
  }
  for (int k = 0; k < kernel->field_count; ++k) {
    const shoal_leaf& field = kernel->fields[k];
    if (field.name == nullptr || field.offset + leaf_bytes(field) > kernel->state_bytes) {
      refuse("kernel %s: field number %d has no name or is outside the state of %zu bytes", name, k,
             kernel->state_bytes);
    }
  }
  check_names(name, "infos", kernel->infos, kernel->info_count);
  check_names(name, "fields", kernel->fields, kernel->field_count);
  check_numbers(name, "parameters", kernel->parameters, kernel->parameter_count);
  check_numbers(name, "options", kernel->options, kernel->option_count);
  if (kernel->max_episode_steps < 0) refuse("kernel %s: max_episode_steps is negative", name);
  if (kernel->draw != nullptr && (kernel->width < 1 || kernel->height < 1)) {
    refuse("kernel %s: its images are %d by %d pixels", name, kernel->width, kernel->height);
  }
}

nb::object text_or_none(const char* text) {
  return text == nullptr ? nb::none() : nb::object(nb::str(text));
}

nb::list described(const shoal_leaf* leaves, int count) {
  nb::list list;
  for (int k = 0; k < count; ++k) {
    const shoal_leaf& leaf = leaves[k];
    size_t elements = 1;
    nb::list shape, lows, highs;
    for (int d = 0; d < leaf.dimensions; ++d) {
      shape.append(leaf.shape[d]);
      elements *= static_cast<size_t>(leaf.shape[d]);
    }
    if (leaf.lows == nullptr && leaf.highs == nullptr) elements = 1;
    for (size_t e = 0; e < elements; ++e) {
      lows.append(leaf.lows == nullptr ? leaf.low : leaf.lows[e]);
      highs.append(leaf.highs == nullptr ? leaf.high : leaf.highs[e]);
    }
    nb::dict entry;
    entry["name"] = text_or_none(leaf.name);
    entry["dtype"] = dtype_name(leaf.dtype);
    entry["shape"] = nb::tuple(shape);
    entry["space"] = static_cast<int>(leaf.space);
    entry["lows"] = lows;
    entry["highs"] = highs;
    entry["offset"] = leaf.offset;
    list.append(entry);
  }
  return list;
}

nb::dict described(const shoal_number* numbers, int count) {
  nb::dict dict;
  for (int k = 0; k < count; ++k) dict[numbers[k].name] = numbers[k].value;
  return dict;
}

template <class T>
T part(nb::dict parts, const char* name) {
  return nb::cast<T>(parts[name]);
}

/// Copies an array in C order.
template <class T>
std::vector<T> numbers_of(nb::dict parts, const char* name) {
  const nb::object array = parts[name];
  const nb::bytes bytes = nb::cast<nb::bytes>(array.attr("tobytes")());
  const auto* values = reinterpret_cast<const T*>(bytes.c_str());
  return {values, values + bytes.size() / sizeof(T)};
}

}  // namespace

Kernel::Kernel(const shoal_kernel* kernel, std::shared_ptr<const void> memory, nb::handle owner)
    : memory_(std::move(memory)), owner_(Ref::borrow(owner.ptr())), kernel_(kernel) {
  check_kernel(kernel);
}

Kernel::Kernel(const char* name) : kernel_(nullptr) {
  const auto is_named = [name](const shoal_kernel& kernel) {
    return !std::strcmp(kernel.name, name);
  };
  for (const shoal_kernel* kernel :
       {&kCartPole, &kMountainCar, &kMountainCarContinuous, &kPendulum, &kAcrobot, &kBlackjack}) {
    if (is_named(*kernel)) kernel_ = kernel;
  }
  for (const shoal_kernel& kernel : kHockeyKernels) {
    if (is_named(kernel)) kernel_ = &kernel;
  }
  if (kernel_ == nullptr) raise(PyExc_KeyError, "there is no built-in kernel named %s", name);
}

Kernel Kernel::of_table(nb::dict parts) {
  Table table{};
  table.name = part<std::string>(parts, "name");
  table.states = part<int64_t>(parts, "states");
  table.actions = part<int64_t>(parts, "actions");
  table.starts = numbers_of<int32_t>(parts, "starts");
  const auto cumulative = numbers_of<double>(parts, "cumulative");
  const auto probabilities = numbers_of<double>(parts, "probabilities");
  const auto next = numbers_of<int32_t>(parts, "next");
  const auto rewards = numbers_of<double>(parts, "rewards");
  const auto terminated = numbers_of<uint8_t>(parts, "terminated");
  for (size_t k = 0; k < next.size(); ++k) {
    table.transitions.push_back(
        {cumulative.at(k), probabilities.at(k), rewards.at(k), next[k], terminated.at(k) != 0});
  }
  table.initial = numbers_of<double>(parts, "initial");
  table.action_masks = numbers_of<int8_t>(parts, "action_masks");
  table.fickle_probability = part<double>(parts, "fickle_probability");
  table.style = part<bool>(parts, "is_taxi") ? TableStyle::kTaxi : TableStyle::kGrid;
  table.rows = part<int>(parts, "rows");
  table.columns = part<int>(parts, "columns");
  table.cells = numbers_of<char>(parts, "cells");
  table.width = part<int>(parts, "width");
  table.height = part<int>(parts, "height");
  table.frames_per_second = part<int>(parts, "frames_per_second");
  auto memory = std::make_shared<TableKernel>(std::move(table));
  const shoal_kernel* kernel = &memory->kernel();
  return {kernel, std::move(memory), nb::handle()};
}

Kernel Kernel::at(uintptr_t address, nb::handle owner) {
  return {reinterpret_cast<const shoal_kernel*>(address), nullptr, owner};
}

/// A kernel with the memory that its description points to.
struct Kernel::Built {
  shoal_kernel kernel{};
  std::deque<std::string> names;  // a deque, because addresses must stay valid
  std::vector<shoal_leaf> observations, actions, infos, fields;
  std::vector<shoal_number> parameters, options;

  const char* keep(std::string name) { return names.emplace_back(std::move(name)).c_str(); }

  std::vector<shoal_leaf> leaves(nb::handle list) {
    std::vector<shoal_leaf> result;
    for (nb::handle entry : list) {
      shoal_leaf leaf{};
      if (!entry["name"].is_none()) leaf.name = keep(nb::cast<std::string>(entry["name"]));
      leaf.dtype = dtype_of(nb::cast<std::string>(entry["dtype"]));
      const auto shape = nb::cast<std::vector<int64_t>>(entry["shape"]);
      if (shape.size() > SHOAL_MAX_DIMENSIONS) {
        refuse("arrays of a kernel must have at most %d dimensions, got %zu", SHOAL_MAX_DIMENSIONS,
               shape.size());
      }
      leaf.dimensions = static_cast<int>(shape.size());
      std::copy(shape.begin(), shape.end(), leaf.shape);
      leaf.offset = nb::cast<size_t>(entry["offset"]);
      result.push_back(leaf);
    }
    return result;
  }

  std::vector<shoal_number> numbers(nb::handle dict) {
    std::vector<shoal_number> result;
    for (auto [name, value] : nb::cast<nb::dict>(dict)) {
      result.push_back({keep(nb::cast<std::string>(name)), nb::cast<double>(value)});
    }
    return result;
  }
};

Kernel Kernel::of_functions(nb::dict parts, nb::handle owner) {
  auto built = std::make_shared<Built>();
  shoal_kernel& kernel = built->kernel;
  built->observations = built->leaves(parts["observations"]);
  built->actions = built->leaves(parts["actions"]);
  built->infos = built->leaves(parts["infos"]);
  built->fields = built->leaves(parts["fields"]);
  built->parameters = built->numbers(parts["parameters"]);
  built->options = built->numbers(parts["options"]);
  kernel.version = SHOAL_KERNEL_VERSION;
  kernel.name = built->keep(part<std::string>(parts, "name"));
  kernel.state_bytes = part<size_t>(parts, "state_bytes");
  kernel.observation_count = static_cast<int>(built->observations.size());
  kernel.action_count = static_cast<int>(built->actions.size());
  kernel.info_count = static_cast<int>(built->infos.size());
  kernel.field_count = static_cast<int>(built->fields.size());
  kernel.observations = built->observations.data();
  kernel.actions = built->actions.data();
  kernel.infos = built->infos.data();
  kernel.fields = built->fields.data();
  kernel.parameter_count = static_cast<int>(built->parameters.size());
  kernel.option_count = static_cast<int>(built->options.size());
  kernel.parameters = built->parameters.data();
  kernel.options = built->options.data();
  kernel.max_episode_steps = part<int64_t>(parts, "max_episode_steps");
  kernel.reset = reinterpret_cast<int64_t (*)(const shoal_slots*)>(part<uintptr_t>(parts, "reset"));
  kernel.step = reinterpret_cast<int64_t (*)(const shoal_slots*)>(part<uintptr_t>(parts, "step"));
  const shoal_kernel* described = &kernel;
  return {described, std::move(built), owner};
}

nb::dict Kernel::description() const {
  const shoal_kernel& kernel = *kernel_;
  nb::dict parts;
  parts["name"] = kernel.name;
  parts["state_bytes"] = kernel.state_bytes;
  parts["observations"] = described(kernel.observations, kernel.observation_count);
  parts["actions"] = described(kernel.actions, kernel.action_count);
  parts["infos"] = described(kernel.infos, kernel.info_count);
  parts["fields"] = described(kernel.fields, kernel.field_count);
  parts["parameters"] = described(kernel.parameters, kernel.parameter_count);
  parts["options"] = described(kernel.options, kernel.option_count);
  parts["max_episode_steps"] = kernel.max_episode_steps;
  parts["draws"] = kernel.draw != nullptr;
  parts["width"] = kernel.width;
  parts["height"] = kernel.height;
  parts["frames_per_second"] = kernel.frames_per_second;
  return parts;
}

}  // namespace shoal
