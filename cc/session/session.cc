#include "session/session.h"

#include <algorithm>
#include <cinttypes>
#include <cstring>
#include <memory>

namespace tf_lstm_ops::session {

// The memory of one call at a time.
struct Session::Workspace {
  explicit Workspace(const Graph& graph)
      : plan(graph),
        slots(graph.slots),
        mask_memory(graph.input_count()),
        masks(graph.input_count()) {}

  std::atomic<bool> is_used{true};
  Workspace* next = nullptr;  // in the session's list
  CallPlan plan;
  std::vector<cpu::CallMemory> slots;
  std::vector<cpu::CallMemory> mask_memory;  // by input
  std::vector<const bool*> masks;            // by input
  LayerMemory layers;
};

// A call's use of a workspace of the session that no other call uses.
class Session::Lease {
 public:
  explicit Lease(const Session& session) : workspace_(session.workspaces_) {
    while (workspace_ && !Claim()) workspace_ = workspace_->next;
    if (workspace_) return;
    workspace_ = new Workspace(session.graph_);
    workspace_->next = session.workspaces_;
    while (!session.workspaces_.compare_exchange_weak(workspace_->next,
                                                      workspace_)) {
    }
  }
  ~Lease() { workspace_->is_used.store(false, std::memory_order_release); }
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;

  Workspace* get() const { return workspace_; }

 private:
  bool Claim() const {
    std::atomic<bool>& is_used = workspace_->is_used;
    return !is_used.load(std::memory_order_relaxed) &&
           !is_used.exchange(true, std::memory_order_acquire);
  }

  Workspace* workspace_;
};

Session::Session(int threads) : threads_(threads) {}

Session::~Session() {
  // No call uses a workspace, but in a forked child the parent's calls seem to.
  // These are left alone: the fork may have come while one changed.
  for (Workspace* workspace = workspaces_; workspace;) {
    Workspace* const next = workspace->next;
    if (!workspace->is_used) delete workspace;
    workspace = next;
  }
}

bool Session::Open(const char* path, Error* error) {
  return file_.Open(path, error) && OpenData(file_.data(), file_.size(), error);
}

bool Session::OpenData(const void* data, uint64_t size, Error* error) {
  data_ = data;
  size_ = size;
  if (!ReadGraph(data, size, &graph_, error)) return false;
  SetStates();
  return true;
}

void Session::SetStates() {
  for (const Node& node : graph_.nodes) {
    if (node.batch_axes > 1 || node.is_behind_last_step) continue;
    for (int k = 0; k < node.layer->state_count(); ++k) {
      state_shapes_.push_back(node.layer->state_shape(k));
      state_size_ += state_shapes_.back().Count();
    }
  }
}

namespace {

// The product of dimensions from `first` on; 0 if one of them is unknown.
int64_t KnownCount(const Shape& shape, int first) {
  for (int k = first; k < shape.rank; ++k) {
    if (shape.dims[k] == kUnknown) return 0;
  }
  return shape.Count(first, shape.rank);
}

}  // namespace

int64_t Session::input_size() const { return KnownCount(graph_.shapes[0], 2); }

int64_t Session::output_size() const {
  const Shape& shape = graph_.shapes[graph_.outputs[0].value];
  return KnownCount(shape, returns_sequence() ? 2 : 1);
}

bool Session::returns_sequence() const {
  return graph_.shapes[graph_.outputs[0].value].rank > 2;
}

bool Session::CheckIsSimple(Error* error) const {
  const bool is_simple = graph_.input_count() == 1 &&
                         graph_.output_count() == 1 &&
                         graph_.values[0].type == Type::kFloat &&
                         graph_.inputs[0].rank > 2 && input_size() > 0;
  return is_simple ||
         Fail(error, kInvalidArgument,
              "the session needs calls with arrays (*_run_arrays): it has %d "
              "inputs and %d outputs, and input 0 has type %d and %d axes",
              graph_.input_count(), graph_.output_count(),
              static_cast<int>(graph_.values[0].type), graph_.shapes[0].rank);
}

Shape Session::InputShape(int64_t batch, int64_t time) const {
  Shape shape = graph_.shapes[0];
  shape.dims[0] = batch;
  shape.dims[1] = time;
  return shape;
}

bool Session::Infer(const SessionInputs& inputs, Shape* outputs,
                    Error* error) const {
  if (!CheckInputs(graph_, inputs.arrays, inputs.types, false, error)) {
    return false;
  }
  const Lease lease(*this);
  CallPlan& plan = lease.get()->plan;
  if (!plan.Plan(inputs.arrays, error)) return false;
  for (int k = 0; k < graph_.output_count(); ++k) {
    outputs[k] = plan.shape(static_cast<int>(graph_.outputs[k].value));
  }
  return true;
}

bool CheckValues(const Graph& graph, const Tensor* inputs, Error* error) {
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    const int operand = node.operands[0];
    if (graph.values[operand].type != Type::kInt) continue;
    if (!node.layer->CheckValues(inputs[operand], error)) {
      return FailIn(node, n, error);
    }
  }
  return true;
}

bool Session::Run(const SessionInputs& inputs, const Tensor* outputs,
                  Error* error) const {
  if (!CheckInputs(graph_, inputs.arrays, inputs.types, false, error)) {
    return false;
  }
  const Lease lease(*this);
  CallPlan& plan = lease.get()->plan;
  if (!plan.Plan(inputs.arrays, error)) return false;
  bool is_empty = true;
  for (int k = 0; k < graph_.output_count(); ++k) {
    const Shape& shape = plan.shape(static_cast<int>(graph_.outputs[k].value));
    if (!(outputs[k].shape == shape)) {
      return Fail(error, kInvalidArgument,
                  "the shape of output %d is not that of the result, which has "
                  "%d axes and %" PRId64 " elements",
                  k, shape.rank, shape.Count());
    }
    const bool has_elements = shape.Count() > 0;
    if (has_elements && !outputs[k].data) {
      return Fail(error, kInvalidArgument, "output %d is null", k);
    }
    is_empty = is_empty && !has_elements;
  }
  for (int k = 0; k < graph_.input_count(); ++k) {
    if (inputs.arrays[k].data || inputs.arrays[k].shape.Count() == 0) continue;
    return Fail(error, kInvalidArgument, "input %d is null", k);
  }
  if (!CheckValues(graph_, inputs.arrays, error) ||
      !CheckLengths(inputs, plan, error)) {
    return false;
  }
  if (!is_empty) RunNodes(inputs, outputs, lease.get());
  return true;
}

bool Session::CheckLengths(const SessionInputs& inputs, const CallPlan& plan,
                           Error* error) const {
  for (int k = 0; k < graph_.input_count(); ++k) {
    const int32_t* lengths = inputs.valid[k].lengths;
    const Shape& shape = plan.shape(graph_.mask_of_input(k));
    for (int64_t b = 0; lengths && b < shape.dims[0]; ++b) {
      if (lengths[b] >= 0 && lengths[b] <= shape.dims[1]) continue;
      return Fail(error, kInvalidArgument,
                  "length [%" PRId64 "] of input %d is %" PRId32
                  ", must be from 0 to %" PRId64,
                  b, k, lengths[b], shape.dims[1]);
    }
  }
  return true;
}

namespace {

// Writes a mask [B, T] of bool.
void WriteMask(const ValidSteps& from, const Shape& shape, bool* mask) {
  const int64_t batch = shape.dims[0], time = shape.dims[1];
  if (from.mask) {
    for (int64_t r = 0; r < batch * time; ++r) mask[r] = from.mask[r] != 0;
    return;
  }
  for (int64_t b = 0; b < batch; ++b, mask += time) {
    std::fill_n(mask, from.lengths[b], true);
    std::fill_n(mask + from.lengths[b], time - from.lengths[b], false);
  }
}

}  // namespace

void Session::RunNodes(const SessionInputs& inputs, const Tensor* outputs,
                       Workspace* workspace) const {
  CallPlan& plan = workspace->plan;
  for (int k = 0; k < graph_.slots; ++k) {
    const int64_t bytes = std::max<int64_t>(plan.slot_bytes(k), 1);
    plan.SetSlot(k, workspace->slots[k].Get(bytes));
  }
  for (int k = 0; k < graph_.input_count(); ++k) {
    workspace->masks[k] = nullptr;
    if (inputs.valid[k].all()) continue;
    const Shape& shape = plan.shape(graph_.mask_of_input(k));
    auto* mask = static_cast<bool*>(workspace->mask_memory[k].Get(
        std::max<int64_t>(shape.Count(), 1) * sizeof(bool)));
    WriteMask(inputs.valid[k], shape, mask);
    workspace->masks[k] = mask;
  }
  const CallArrays arrays = {inputs.arrays, workspace->masks.data(), outputs};
  plan.SetArrays(arrays);
  for (size_t n = 0; n < graph_.nodes.size(); ++n) {
    plan.Run(n, threads_, &workspace->layers);
  }
  for (int k = 0; k < graph_.output_count(); ++k) {
    const void* from =
        plan.data(static_cast<int>(graph_.outputs[k].value), arrays);
    const int64_t count = outputs[k].shape.Count();
    if (from != outputs[k].data && count > 0) {
      std::memcpy(outputs[k].data, from, count * sizeof(float));
    }
  }
}

}  // namespace tf_lstm_ops::session
