// Times the CPU engine without TensorFlow. Prints a line for each case: time of
// one call, rate, fraction of the roofline, time for each unit and step.
//
// usage: engine THREADS [CELL,BATCH,STEPS,INPUTS,UNITS ...]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "backends/cpu/layer.h"
#include "backends/cpu/roofline.h"

namespace {

using tf_lstm_ops::ByInput;
using tf_lstm_ops::CellKind;
using tf_lstm_ops::GateCount;
using tf_lstm_ops::IsLstm;
using tf_lstm_ops::LayerBackward;
using tf_lstm_ops::LayerDirection;
using tf_lstm_ops::LayerForward;
using tf_lstm_ops::PackedActivations;
using tf_lstm_ops::PackedSequence;
using tf_lstm_ops::SavedCount;
using tf_lstm_ops::Sequence;

struct Case {
  CellKind cell;
  int64_t batch, steps, inputs, units;
};

using Values = std::vector<float>;

Values Random(int64_t size, float scale) {
  static std::mt19937 generator(1);
  std::uniform_real_distribution<float> values(-scale, scale);
  Values all(size);
  for (float& value : all) value = values(generator);
  return all;
}

// The tensors of a layer direction that computes a whole batch.
class Layer {
 public:
  explicit Layer(const Case& c)
      : case_(c),
        gates_(GateCount(c.cell)),
        saved_(SavedCount(c.cell)),
        x_(Random(c.batch * c.steps * c.inputs, 1)),
        h_(c.batch * c.steps * c.units),
        h_grad_(Random(c.batch * c.steps * c.units, 1)),
        x_grad_(x_.size()),
        activations_(c.batch * c.steps * saved_ * c.units),
        state_grads_(2 * c.batch * c.units),
        weights_(Random((c.inputs + c.units + 2) * gates_ * c.units, 0.05f)),
        weights_grad_(weights_.size()),
        packed_(SequenceOf(c)) {}

  void Infer() const { Forward(nullptr); }
  void Train() { Forward(activations_.data()); }
  void Backward() {
    LayerBackward<float> pass;
    Describe(&pass);
    const int64_t units = case_.units;
    pass.h = h_.data();
    pass.h_stride = pass.h_grad_stride = units;
    const float* saved = activations_.data();
    pass.saved = PackedActivations(saved, case_.cell, units);
    pass.h_grad = h_grad_.data();
    pass.h0_grad = {state_grads_.data(), units};
    pass.c0_grad = {state_grads_.data() + case_.batch * units, units};
    SetWeights(weights_grad_.data(), &pass.weights_grad);
    pass.x_grad = x_grad_.data();
    tf_lstm_ops::cpu::ComputeBackward(pass, packed_, threads);
  }

  int threads = 1;

 private:
  static Sequence SequenceOf(const Case& c) {
    Sequence sequence;
    sequence.batch = c.batch;
    sequence.time = sequence.steps = c.steps;
    sequence.time_major = false;
    return sequence;
  }

  template <class T>
  void SetWeights(T* at, tf_lstm_ops::RnnWeights<T>* weights) const {
    const int64_t row = gates_ * case_.units;
    weights->input = ByInput(at, gates_, case_.units);
    at += case_.inputs * row;
    weights->recurrent = ByInput(at, gates_, case_.units);
    at += case_.units * row;
    weights->input_bias = at;
    weights->recurrent_bias = at + row;
  }

  void Describe(LayerDirection<float>* layer) const {
    layer->config.cell = case_.cell;
    layer->config.gate_order =
        IsLstm(case_.cell) ? tf_lstm_ops::kOrderICFO : tf_lstm_ops::kOrderRUN;
    layer->config.input_size = case_.inputs;
    layer->config.cell_size = layer->config.hidden_size = case_.units;
    layer->sequence = SequenceOf(case_);
    SetWeights<const float>(weights_.data(), &layer->weights);
    layer->x = x_.data();
    layer->x_stride = case_.inputs;
  }

  void Forward(float* activations) const {
    LayerForward<float> pass;
    Describe(&pass);
    pass.h = h_.data();
    pass.h_stride = case_.units;
    pass.saved = PackedActivations(activations, case_.cell, case_.units);
    tf_lstm_ops::cpu::ComputeForward(pass, packed_, threads);
  }

  const Case case_;
  const int gates_, saved_;
  const Values x_;
  mutable Values h_;
  Values h_grad_, x_grad_, activations_, state_grads_;
  Values weights_, weights_grad_;
  const PackedSequence packed_;
};

// Seconds of the fastest of many calls.
double Fastest(const std::function<void()>& call) {
  using Clock = std::chrono::steady_clock;
  constexpr double kSeconds = 0.4;
  double best = 1e9, total = 0;
  for (int rounds = 0; rounds < 3 || total < kSeconds; ++rounds) {
    const auto begin = Clock::now();
    call();
    const std::chrono::duration<double> seconds = Clock::now() - begin;
    best = std::min(best, seconds.count());
    total += seconds.count();
  }
  return best;
}

// The shortest time of a pass by the roofline model: its products at the peak
// rate, and in each step at least the time to read the recurrent weights.
double Floor(const Case& c, bool backward, double flops, double bandwidth) {
  const double columns = static_cast<double>(GateCount(c.cell) * c.units);
  const auto batch = static_cast<double>(c.batch);
  const auto steps = static_cast<double>(c.steps);
  const auto inputs = static_cast<double>(c.inputs);
  const auto units = static_cast<double>(c.units);
  const double of_input = 2 * batch * steps * inputs * columns / flops;
  const double recurrent = 2 * batch * units * columns / flops;
  const double step = std::max(recurrent, units * columns * 4 / bandwidth);
  return backward ? 2 * of_input + steps * (step + recurrent)
                  : of_input + steps * step;
}

void Run(const Case& c, int threads, double flops) {
  Layer layer(c);
  layer.threads = threads;
  const int64_t bytes = 4 * GateCount(c.cell) * c.units * c.units;
  const double bandwidth =
      tf_lstm_ops::cpu::MeasureReadBandwidth(bytes, threads);
  const double work = static_cast<double>(c.batch * c.steps * c.units);
  const std::string name =
      std::string(IsLstm(c.cell) ? "lstm" : "gru") + " N" +
      std::to_string(c.batch) + " T" + std::to_string(c.steps) + " I" +
      std::to_string(c.inputs) + " H" + std::to_string(c.units);
  std::printf("%-30s", name.c_str());
  const auto report = [&](const char* pass, bool backward, double seconds) {
    std::printf(" | %s %9.1f us %3.0f %% %6.2f ns", pass, seconds * 1e6,
                100 * Floor(c, backward, flops, bandwidth) / seconds,
                seconds / work * 1e9);
  };
  report("inference", false, Fastest([&] { layer.Infer(); }));
  const double forward = Fastest([&] { layer.Train(); });
  report("forward", false, forward);
  report("backward", true, Fastest([&] { layer.Backward(); }));
  std::printf("\n");
  std::fflush(stdout);
}

Case Parse(const std::string& text) {
  const size_t comma = text.find(',');
  Case c = {text.substr(0, comma) == "gru" ? CellKind::kGru : CellKind::kLstm,
            1, 1, 1, 1};
  long long batch, steps, inputs, units;
  if (comma == std::string::npos ||
      std::sscanf(text.c_str() + comma, ",%lld,%lld,%lld,%lld", &batch, &steps,
                  &inputs, &units) != 4) {
    std::fprintf(stderr, "'%s' is not CELL,BATCH,STEPS,INPUTS,UNITS\n",
                 text.c_str());
    std::exit(2);
  }
  c.batch = batch, c.steps = steps, c.inputs = inputs, c.units = units;
  return c;
}

}  // namespace

int main(int count, char** arguments) {
  const int threads = count > 1 ? std::atoi(arguments[1]) : 1;
  const double flops = tf_lstm_ops::cpu::MeasureFlops(threads);
  std::printf(
      "%d threads, peak %.0f GFLOP/s; %% of the roofline, ns a unit"
      " and step\n",
      threads, flops / 1e9);
  for (int k = 2; k < count; ++k) Run(Parse(arguments[k]), threads, flops);
}
