#include "onednn_layer.h"

#include <algorithm>
#include <map>
#include <oneapi/dnnl/dnnl.hpp>
#include <unordered_map>
#include <vector>

namespace engine_benchmark {
namespace {

using Tag = dnnl::memory::format_tag;

dnnl::memory::desc Describe(const dnnl::memory::dims& dims, Tag tag) {
  return {dims, dnnl::memory::data_type::f32, tag};
}

void Write(const Values& values, const dnnl::memory& memory) {
  float* data = memory.map_data<float>();
  std::copy(values.begin(), values.end(), data);
  memory.unmap_data(data);
}

Values Read(const dnnl::memory& memory) {
  const auto* data = memory.map_data<float>();
  const size_t size = memory.get_desc().get_size() / sizeof(float);
  Values values(data, data + size);
  memory.unmap_data(const_cast<float*>(data));
  return values;
}

// [rows, columns, width] to [columns, rows, width].
Values SwapRows(const Values& values, int64_t rows, int64_t columns,
                int64_t width) {
  Values swapped(values.size());
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) {
      std::copy_n(&values[(r * columns + c) * width], width,
                  &swapped[(c * rows + r) * width]);
    }
  }
  return swapped;
}

// oneDNN's gate order: i, f, c, o, or update, reset, candidate. Element k is
// the block of gate k in Inputs. The map is its own inverse.
std::vector<int> GateOrder(const Case& c) {
  return c.is_lstm() ? std::vector<int>{0, 2, 1, 3} : std::vector<int>{1, 0, 2};
}

// Rows of weights [rows, G, H] with their gates in oneDNN's order, or back.
Values SwapGates(const Case& c, const float* weights, int64_t rows) {
  const std::vector<int> order = GateOrder(c);
  Values swapped;
  for (int64_t row = 0; row < rows; ++row) {
    for (const int gate : order) {
      const float* from = weights + (row * c.gates() + gate) * c.units;
      swapped.insert(swapped.end(), from, from + c.units);
    }
  }
  return swapped;
}

// The bias of an LSTM is the sum of both biases. The one of a GRU has a fourth
// block, the recurrent bias of the candidate.
Values Bias(const Case& c, const float* biases) {
  const int64_t size = c.gates() * c.units;
  Values bias = SwapGates(c, biases, 1);
  const Values recurrent = SwapGates(c, biases + size, 1);
  const int64_t summed = c.is_lstm() ? size : 2 * c.units;
  for (int64_t k = 0; k < summed; ++k) bias[k] += recurrent[k];
  bias.insert(bias.end(), recurrent.begin() + summed, recurrent.end());
  return bias;
}

// The gradients of both biases from the one of the bias.
Values BiasGrads(const Case& c, const Values& grad) {
  Values both = SwapGates(c, grad.data(), 1);
  Values recurrent(grad.begin(), grad.begin() + c.gates() * c.units);
  if (!c.is_lstm())
    std::copy_n(&grad[3 * c.units], c.units, &recurrent[2 * c.units]);
  recurrent = SwapGates(c, recurrent.data(), 1);
  both.insert(both.end(), recurrent.begin(), recurrent.end());
  return both;
}

void Clear(const dnnl::memory& memory) {
  Write(Values(memory.get_desc().get_size() / sizeof(float)), memory);
}

const std::vector<int> kForwardArguments = {
    DNNL_ARG_SRC_LAYER,     DNNL_ARG_SRC_ITER,     DNNL_ARG_SRC_ITER_C,
    DNNL_ARG_WEIGHTS_LAYER, DNNL_ARG_WEIGHTS_ITER, DNNL_ARG_BIAS,
    DNNL_ARG_DST_LAYER,     DNNL_ARG_WORKSPACE};
const std::vector<int> kBackwardArguments = {
    DNNL_ARG_SRC_LAYER,         DNNL_ARG_SRC_ITER,
    DNNL_ARG_SRC_ITER_C,        DNNL_ARG_WEIGHTS_LAYER,
    DNNL_ARG_WEIGHTS_ITER,      DNNL_ARG_BIAS,
    DNNL_ARG_DST_LAYER,         DNNL_ARG_WORKSPACE,
    DNNL_ARG_DIFF_SRC_LAYER,    DNNL_ARG_DIFF_SRC_ITER,
    DNNL_ARG_DIFF_SRC_ITER_C,   DNNL_ARG_DIFF_WEIGHTS_LAYER,
    DNNL_ARG_DIFF_WEIGHTS_ITER, DNNL_ARG_DIFF_BIAS,
    DNNL_ARG_DIFF_DST_LAYER};

// A primitive and its arguments.
struct Pass {
  dnnl::primitive primitive;
  std::unordered_map<int, dnnl::memory> arguments;
};

}  // namespace

struct OnednnLayer::State {
  State(const Case& c, const Inputs& inputs)
      : shape(c),
        engine(dnnl::engine::kind::cpu, 0),
        stream(engine),
        x(Describe({c.steps, c.batch, c.inputs}, Tag::tnc)),
        h(Describe({c.steps, c.batch, c.units}, Tag::tnc)),
        state(Describe({1, 1, c.batch, c.units}, Tag::ldnc)),
        bias(Describe({1, 1, 4, c.units}, Tag::ldgo)),
        inference(Make(ForwardPass(false), kForwardArguments, {})),
        training(Make(ForwardPass(true), kForwardArguments, {})),
        backward(Make(BackwardPass(), kBackwardArguments, training)) {
    for (Pass* pass : {&inference, &training, &backward}) {
      WriteInputs(inputs, pass);
    }
    Write(SwapRows(inputs.h_grad, c.batch, c.steps, c.units),
          backward.arguments[DNNL_ARG_DIFF_DST_LAYER]);
  }

  dnnl::memory::desc Weights(int64_t rows, Tag tag = Tag::any) const {
    return Describe({1, 1, rows, shape.gates(), shape.units}, tag);
  }

  // With `trains` also with initial states, whose gradients are computed.
  dnnl::lstm_forward::primitive_desc LstmForward(bool trains) const {
    const dnnl::memory::desc none, initial = trains ? state : none;
    return {engine,
            Kind(trains),
            kDirection,
            x,
            initial,
            initial,
            Weights(shape.inputs),
            Weights(shape.units),
            bias,
            h,
            none,
            none};
  }
  dnnl::lbr_gru_forward::primitive_desc GruForward(bool trains) const {
    const dnnl::memory::desc none, initial = trains ? state : none;
    return {engine,
            Kind(trains),
            kDirection,
            x,
            initial,
            Weights(shape.inputs),
            Weights(shape.units),
            bias,
            h,
            none};
  }
  static dnnl::prop_kind Kind(bool trains) {
    return trains ? dnnl::prop_kind::forward_training
                  : dnnl::prop_kind::forward_inference;
  }
  dnnl::primitive_desc_base ForwardPass(bool trains) const {
    if (shape.is_lstm()) return LstmForward(trains);
    return GruForward(trains);
  }
  dnnl::primitive_desc_base BackwardPass() const {
    const dnnl::memory::desc none, input = Weights(shape.inputs),
                                   recurrent = Weights(shape.units);
    const auto kind = dnnl::prop_kind::backward;
    if (shape.is_lstm()) {
      return dnnl::lstm_backward::primitive_desc(
          engine, kind, kDirection, x, state, state, input, recurrent, bias, h,
          none, none, x, state, state, input, recurrent, bias, h, none, none,
          LstmForward(true));
    }
    return dnnl::lbr_gru_backward::primitive_desc(
        engine, kind, kDirection, x, state, input, recurrent, bias, h, none, x,
        state, input, recurrent, bias, h, none, GruForward(true));
  }

  // Makes a pass. It shares the arguments that `other` has in the same layout.
  // The others are new and zero.
  Pass Make(const dnnl::primitive_desc_base& desc,
            const std::vector<int>& arguments, const Pass& other) const {
    Pass pass{dnnl::primitive(desc.get()), {}};
    for (const int argument : arguments) {
      const auto layout = desc.query_md(dnnl::query::exec_arg_md, argument);
      if (layout.get_size() == 0) continue;
      const auto found = other.arguments.find(argument);
      const bool shared =
          found != other.arguments.end() && found->second.get_desc() == layout;
      pass.arguments[argument] =
          shared ? found->second : dnnl::memory(layout, engine);
      if (!shared) Clear(pass.arguments[argument]);
    }
    return pass;
  }

  void Reorder(dnnl::memory from, dnnl::memory to) {
    dnnl::reorder(from, to).execute(stream, from, to);
    stream.wait();
  }
  // Copies weights [rows, G, H] to an argument, or back.
  void WriteWeights(const float* weights, int64_t rows,
                    const dnnl::memory& argument) {
    const dnnl::memory plain(Weights(rows, Tag::ldigo), engine);
    Write(SwapGates(shape, weights, rows), plain);
    Reorder(plain, argument);
  }
  Values ReadWeights(int64_t rows, const dnnl::memory& argument) {
    const dnnl::memory plain(Weights(rows, Tag::ldigo), engine);
    Reorder(argument, plain);
    return SwapGates(shape, Read(plain).data(), rows);
  }

  void WriteInputs(const Inputs& inputs, Pass* pass) {
    auto& arguments = pass->arguments;
    const float* weights = inputs.weights.data();
    const int64_t row = shape.gates() * shape.units;
    Write(SwapRows(inputs.x, shape.batch, shape.steps, shape.inputs),
          arguments[DNNL_ARG_SRC_LAYER]);
    WriteWeights(weights, shape.inputs, arguments[DNNL_ARG_WEIGHTS_LAYER]);
    weights += shape.inputs * row;
    WriteWeights(weights, shape.units, arguments[DNNL_ARG_WEIGHTS_ITER]);
    weights += shape.units * row;
    Write(Bias(shape, weights), arguments[DNNL_ARG_BIAS]);
  }

  void Run(const Pass& pass) {
    pass.primitive.execute(stream, pass.arguments);
    stream.wait();
  }

  Values ReadSequence(const Pass& pass, int argument, int64_t width) const {
    return SwapRows(Read(pass.arguments.at(argument)), shape.steps, shape.batch,
                    width);
  }
  Values ReadWeightsGrad() {
    const auto& arguments = backward.arguments;
    Values all =
        ReadWeights(shape.inputs, arguments.at(DNNL_ARG_DIFF_WEIGHTS_LAYER));
    for (const Values& values :
         {ReadWeights(shape.units, arguments.at(DNNL_ARG_DIFF_WEIGHTS_ITER)),
          BiasGrads(shape, Read(arguments.at(DNNL_ARG_DIFF_BIAS)))}) {
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  }

  static constexpr auto kDirection =
      dnnl::rnn_direction::unidirectional_left2right;

  const Case shape;
  const dnnl::engine engine;
  dnnl::stream stream;
  const dnnl::memory::desc x, h, state, bias;
  Pass inference, training, backward;
};

OnednnLayer::OnednnLayer(const Case& c, const Inputs& inputs)
    : state_(std::make_unique<State>(c, inputs)) {}
OnednnLayer::~OnednnLayer() = default;

void OnednnLayer::Infer() { state_->Run(state_->inference); }
void OnednnLayer::Train() { state_->Run(state_->training); }
void OnednnLayer::Backward() { state_->Run(state_->backward); }

Results OnednnLayer::Compute() {
  const Case& c = state_->shape;
  for (const int gradient : {DNNL_ARG_DIFF_WEIGHTS_LAYER,
                             DNNL_ARG_DIFF_WEIGHTS_ITER, DNNL_ARG_DIFF_BIAS}) {
    Clear(state_->backward.arguments.at(gradient));
  }
  Infer();
  Train();
  Backward();
  return {
      state_->ReadSequence(state_->inference, DNNL_ARG_DST_LAYER, c.units),
      state_->ReadSequence(state_->training, DNNL_ARG_DST_LAYER, c.units),
      state_->ReadSequence(state_->backward, DNNL_ARG_DIFF_SRC_LAYER, c.inputs),
      state_->ReadWeightsGrad()};
}

std::string DescribeOnednn() {
  const dnnl_version_t& version = *dnnl::version();
  const std::map<unsigned, const char*> runtimes = {
      {DNNL_RUNTIME_SEQ, "none"},
      {DNNL_RUNTIME_OMP, "OpenMP"},
      {DNNL_RUNTIME_TBB, "TBB"},
      {DNNL_RUNTIME_THREADPOOL, "thread pool"},
      {DNNL_RUNTIME_DPCPP, "SYCL"}};
  const auto name = [&](unsigned runtime) {
    const auto found = runtimes.find(runtime);
    return std::string(found == runtimes.end() ? "unknown" : found->second);
  };
  const std::map<dnnl::cpu_isa, const char*> sets = {
      {dnnl::cpu_isa::sse41, "SSE4.1"},
      {dnnl::cpu_isa::avx, "AVX"},
      {dnnl::cpu_isa::avx2, "AVX2"},
      {dnnl::cpu_isa::avx512_core, "AVX-512"},
      {dnnl::cpu_isa::avx512_core_vnni, "AVX-512 with VNNI"},
      {dnnl::cpu_isa::avx512_core_bf16, "AVX-512 with bfloat16"}};
  const auto set = sets.find(dnnl::get_effective_cpu_isa());
  return "oneDNN " + std::to_string(version.major) + "." +
         std::to_string(version.minor) + "." + std::to_string(version.patch) +
         ", runtime " + name(version.cpu_runtime) + ", threads by " +
         name(DNNL_CPU_THREADING_RUNTIME) + ", " +
         (set == sets.end() ? "another instruction set" : set->second);
}

}  // namespace engine_benchmark
