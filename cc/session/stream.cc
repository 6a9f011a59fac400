#include "session/stream.h"

#include <algorithm>
#include <cinttypes>
#include <cstring>

#include "session/block_lengths.h"
#include "session/stream_claim.h"

namespace tf_lstm_ops::session {
namespace {

// Blocks are shorter where an array of a block would have more floats.
constexpr int64_t kMaxBlockFloats = int64_t{1} << 22;

// The largest power of two up to `most`, itself one, and `steps`. With few
// lengths of blocks, one call of each allocates all memory.
int64_t BlockSteps(int64_t steps, int64_t most) {
  while (most > steps) most /= 2;
  return most;
}

// Copies rows of `size` floats between arrays with different strides.
void CopyRows(const float* from, int64_t from_stride, int64_t rows,
              int64_t size, float* to, int64_t to_stride) {
  for (int64_t b = 0; b < rows; ++b) {
    std::memcpy(to + b * to_stride, from + b * from_stride,
                size * sizeof(float));
  }
}

}  // namespace

// The shapes of the inputs of `steps` steps.
void Stream::SetInputs(const Graph& graph, int64_t batch, int64_t steps,
                       std::vector<Tensor>* inputs) {
  inputs->assign(graph.input_count(), {});
  for (int k = 0; k < graph.input_count(); ++k) {
    Shape& shape = (*inputs)[k].shape;
    shape = graph.shapes[k];
    shape.dims[0] = batch;
    shape.dims[1] = steps;
  }
}

bool Stream::Check(const Session& session, int64_t batch, Error* error) {
  const Graph& graph = session.graph();
  if (graph.blocking_node != kNone) {
    const int node = graph.blocking_node;
    Fail(error, kInvalidArgument, "the session cannot stream: a layer %s: ",
         graph.nodes[node].layer->needs());
    AppendLayer(error, node, " of the file, counted from 0");
    return false;
  }
  if (graph.blocking_input != kNone) {
    return Fail(error, kInvalidArgument,
                "the session cannot stream: input %d has no axis of time, a "
                "size behind it that is not fixed, or a fixed number of steps, "
                "on which the model may depend",
                graph.blocking_input);
  }
  if (batch < 1) {
    return Fail(error, kInvalidArgument,
                "batch is %" PRId64 ", must be 1 or more", batch);
  }
  for (const InputRecord& input : graph.inputs) {
    if (input.batch == 0 || input.batch == batch) continue;
    return Fail(error, kInvalidArgument,
                "batch is %" PRId64 ", must be %" PRId64, batch, input.batch);
  }
  std::vector<Tensor> inputs;
  SetInputs(graph, batch, kMaxBlockSteps, &inputs);
  int64_t size;
  if (CallPlan(graph).Plan(inputs.data(), error) &&
      !__builtin_mul_overflow(batch, session.state_size(), &size) &&
      size <= kMaxArraySize) {
    return true;
  }
  return Fail(error, kInvalidArgument,
              "batch is %" PRId64 ", too large for arrays", batch);
}

Stream::Stream(const Session& session, int64_t batch)
    : session_(session), graph_(session.graph()), batch_(batch) {
  Error error;
  std::vector<Tensor> inputs;
  SetInputs(graph_, batch, 1, &inputs);
  CallPlan step(graph_);
  step.Plan(inputs.data(), &error);  // Check() has done so
  block_steps_ =
      BlockSteps(std::max<int64_t>(kMaxBlockFloats / step.most_elements(), 1),
                 kMaxBlockSteps);
  for (int length = 0; StepsOfLength(length) <= block_steps_; ++length) {
    SetInputs(graph_, batch, StepsOfLength(length), &inputs);
    plans_.emplace_back(graph_).Plan(inputs.data(), &error);
  }
  for (int k = 0; k < graph_.input_count(); ++k) {
    inputs_.push_back({step.shape(k).Count(), true});
  }
  for (const OutputRecord& output : graph_.outputs) {
    const auto value = static_cast<int>(output.value);
    outputs_.push_back(
        {step.shape(value).Count(), graph_.values[value].is_sequence});
  }
  block_inputs_ = simple_input_ = inputs;
  block_outputs_.resize(outputs_.size());
  simple_output_.resize(outputs_.size());
  slots_.resize(graph_.slots);
  MakeLayers();
  Allocate();
  WarmUp();
}

void Stream::MakeLayers() {
  for (const Node& node : graph_.nodes) {
    auto& layer = layers_.emplace_back();
    if (node.batch_axes > 1 || node.is_behind_last_step) continue;
    if (node.layer->streaming() != Streaming::kKeepsState) continue;
    layer = node.layer->NewStreamLayer(batch_, session_.threads());
    layer->Prepare(block_steps_, &memory_);
  }
}

void Stream::Place(cpu::Scratch<float>* memory) {
  int64_t scratch = 0;
  for (const auto& layer : layers_) {
    if (!layer) continue;
    layer->Place(memory);
    scratch = std::max(scratch, layer->scratch_floats());
  }
  memory_.stream = memory->Take(scratch);
  for (int k = 0; k < graph_.slots; ++k) {
    const int64_t bytes = plans_.back().slot_bytes(k);
    constexpr int64_t kFloat = sizeof(float);
    slots_[k] = memory->Take((bytes + kFloat - 1) / kFloat);
  }
  if (batch_ == 1) return;
  for (std::vector<Argument>* arguments : {&inputs_, &outputs_}) {
    for (Argument& argument : *arguments) {
      argument.block = memory->Take(block_steps_ * argument.step_elements);
    }
  }
}

// One block, in which no two arrays begin at the same place of a page: a load
// would wait for a store to the same place of another page.
void Stream::Allocate() {
  cpu::Scratch<float> size(nullptr);
  Place(&size);
  arrays_ = std::make_unique<AlignedBuffer>(std::max<int64_t>(size.used(), 1) *
                                            sizeof(float));
  auto* data = static_cast<float*>(arrays_->data());
  std::fill_n(data, size.used(), 0.0F);
  cpu::Scratch<float> scratch(data);
  Place(&scratch);
  for (CallPlan& plan : plans_) {
    for (int k = 0; k < graph_.slots; ++k) plan.SetSlot(k, slots_[k]);
  }
}

// Computes a block of each length. It reads the weights of all layers, so that
// their pages are in memory.
void Stream::WarmUp() {
  std::vector<std::unique_ptr<AlignedBuffer>> memory;
  const auto zeros = [&](int64_t elements) {
    const size_t bytes = std::max<int64_t>(elements, 1) * sizeof(float);
    memory.push_back(std::make_unique<AlignedBuffer>(bytes));
    std::memset(memory.back()->data(), 0, bytes);
    return memory.back()->data();
  };
  for (size_t k = 0; k < inputs_.size(); ++k) {
    block_inputs_[k].data = zeros(block_steps_ * inputs_[k].step_elements);
  }
  for (size_t k = 0; k < outputs_.size(); ++k) {
    block_outputs_[k].data = zeros(block_steps_ * outputs_[k].step_elements);
  }
  const CallArrays arrays = {block_inputs_.data(), nullptr,
                             block_outputs_.data()};
  for (int64_t steps = block_steps_; steps >= 1; steps /= 2) {
    RunBlock(steps, true, arrays);
  }
  ClearStates();
}

bool Stream::CheckRun(int64_t steps, const float* x, int64_t x_count,
                      const float* y, int64_t y_count, Error* error) const {
  if (!session_.CheckIsSimple(error)) return false;
  if (steps < 1) {
    return Fail(error, kInvalidArgument,
                "steps is %" PRId64 ", must be 1 or more", steps);
  }
  if (!x || !y) {
    return Fail(error, kInvalidArgument, "%s is null", x ? "y" : "x");
  }
  const int64_t out_steps = outputs_[0].is_sequence ? steps : 1;
  int64_t wanted_x, wanted_y;
  if (__builtin_mul_overflow(steps, inputs_[0].step_elements, &wanted_x) ||
      __builtin_mul_overflow(out_steps, outputs_[0].step_elements, &wanted_y) ||
      std::max(wanted_x, wanted_y) > kMaxArraySize) {
    return Fail(error, kInvalidArgument,
                "steps is %" PRId64 ", too large for an array", steps);
  }
  if (x_count != wanted_x) {
    return Fail(error, kInvalidArgument,
                "x_count is %" PRId64 ", must be %" PRId64, x_count, wanted_x);
  }
  if (y_count != wanted_y) {
    return Fail(error, kInvalidArgument,
                "y_count is %" PRId64 ", must be %" PRId64, y_count, wanted_y);
  }
  return true;
}

bool Stream::Run(int64_t steps, const float* x, int64_t x_count, float* y,
                 int64_t y_count, Error* error) {
  if (!CheckRun(steps, x, x_count, y, y_count, error)) return false;
  const Claim claim(this, error);
  if (!claim) return false;
  // It is not written to.
  simple_input_[0].data = const_cast<float*>(x);
  simple_output_[0].data = y;
  RunSteps(steps, simple_input_.data(), simple_output_.data());
  return true;
}

bool Stream::CheckArrays(const SessionInputs& inputs, const Tensor* outputs,
                         Error* error) const {
  if (!CheckInputs(graph_, inputs.arrays, inputs.types, true, error)) {
    return false;
  }
  const int64_t steps = inputs.arrays[0].shape.dims[1];
  if (inputs.arrays[0].shape.dims[0] != batch_ || steps < 1) {
    return Fail(error, kInvalidArgument,
                "the inputs have %" PRId64 " rows and %" PRId64
                " steps, must have %" PRId64 " rows and 1 or more steps",
                inputs.arrays[0].shape.dims[0], steps, batch_);
  }
  for (int k = 0; k < graph_.input_count(); ++k) {
    if (!inputs.valid[k].all() || !inputs.arrays[k].data) {
      return Fail(
          error, kInvalidArgument, "input %d %s", k,
          !inputs.valid[k].all() ? "has a mask, a stream has none" : "is null");
    }
    if (inputs.arrays[k].shape.Fits()) continue;
    return Fail(error, kInvalidArgument, "input %d is too large", k);
  }
  for (size_t k = 0; k < outputs_.size(); ++k) {
    const auto value = static_cast<int>(graph_.outputs[k].value);
    Shape wanted = plans_[0].shape(value);
    if (outputs_[k].is_sequence) wanted.dims[1] = steps;
    if (outputs[k].shape == wanted && outputs[k].data && wanted.Fits()) {
      continue;
    }
    return Fail(error, kInvalidArgument,
                "output %zu is null, or its shape is not that of the result",
                k);
  }
  return CheckValues(graph_, inputs.arrays, error);
}

bool Stream::RunArrays(const SessionInputs& inputs, const Tensor* outputs,
                       Error* error) {
  if (!CheckArrays(inputs, outputs, error)) return false;
  const Claim claim(this, error);
  if (!claim) return false;
  RunSteps(inputs.arrays[0].shape.dims[1], inputs.arrays, outputs);
  return true;
}

void Stream::RunSteps(int64_t steps, const Tensor* inputs,
                      const Tensor* outputs) {
  const bool is_whole = steps <= block_steps_ && (steps & (steps - 1)) == 0;
  if (is_whole) return RunBlock(steps, true, {inputs, nullptr, outputs});
  const CallArrays arrays = {block_inputs_.data(), nullptr,
                             block_outputs_.data()};
  for (int64_t first = 0; first < steps;) {
    const int64_t block = BlockSteps(steps - first, block_steps_);
    CopyToBlocks(first, block, steps, inputs, outputs);
    RunBlock(block, first + block == steps, arrays);
    CopyFromBlocks(first, block, steps, outputs);
    first += block;
  }
}

// Sets the arrays of a block. Those of one row lie in the caller's.
void Stream::CopyToBlocks(int64_t first, int64_t block, int64_t steps,
                          const Tensor* inputs, const Tensor* outputs) {
  for (size_t k = 0; k < inputs_.size(); ++k) {
    const int64_t row = inputs_[k].step_elements / batch_;
    float* from = inputs[k].floats() + first * row;
    block_inputs_[k].data = batch_ == 1 ? from : inputs_[k].block;
    if (batch_ == 1) continue;
    CopyRows(from, steps * row, batch_, block * row, inputs_[k].block,
             block * row);
  }
  for (size_t k = 0; k < outputs_.size(); ++k) {
    const int64_t row = outputs_[k].step_elements / batch_;
    float* to = outputs[k].floats();
    if (outputs_[k].is_sequence) {
      to = batch_ == 1 ? to + first * row : outputs_[k].block;
    }
    block_outputs_[k].data = to;
  }
}

void Stream::CopyFromBlocks(int64_t first, int64_t block, int64_t steps,
                            const Tensor* outputs) {
  for (size_t k = 0; k < outputs_.size() && batch_ > 1; ++k) {
    if (!outputs_[k].is_sequence) continue;
    const int64_t row = outputs_[k].step_elements / batch_;
    CopyRows(outputs_[k].block, block * row, batch_, block * row,
             outputs[k].floats() + first * row, steps * row);
  }
}

// Computes one block through all layers. What lies behind a last step is
// computed in the last block only.
void Stream::RunBlock(int64_t steps, bool is_last, const CallArrays& arrays) {
  CallPlan& plan = plans_[LengthOf(steps)];
  plan.SetArrays(arrays);
  for (size_t n = 0; n < layers_.size(); ++n) {
    if (graph_.nodes[n].is_behind_last_step && !is_last) continue;
    const LayerCall call = plan.CallOf(n, session_.threads(), &memory_);
    if (layers_[n]) {
      layers_[n]->Run(steps, call);
    } else {
      graph_.nodes[n].layer->Run(call);
    }
  }
  for (size_t k = 0; k < outputs_.size(); ++k) {
    if (!outputs_[k].is_sequence && !is_last) continue;
    const auto value = static_cast<int>(graph_.outputs[k].value);
    const void* from = plan.data(value, arrays);
    if (from == arrays.outputs[k].data) continue;
    std::memcpy(arrays.outputs[k].data, from,
                plan.shape(value).Count() * sizeof(float));
  }
}

}  // namespace tf_lstm_ops::session
