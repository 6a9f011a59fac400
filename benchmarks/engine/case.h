// A case of the benchmark and the data that every implementation gets.
#ifndef TF_LSTM_OPS_BENCHMARKS_ENGINE_CASE_H_
#define TF_LSTM_OPS_BENCHMARKS_ENGINE_CASE_H_

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "core/cells.h"

namespace engine_benchmark {

using Values = std::vector<float>;

// N rows of the batch, T steps, I input size, H units.
struct Case {
  tf_lstm_ops::CellKind cell;
  int64_t batch, steps, inputs, units;

  bool is_lstm() const { return tf_lstm_ops::IsLstm(cell); }
  int64_t gates() const { return tf_lstm_ops::GateCount(cell); }
  std::string name() const {
    return std::string(is_lstm() ? "lstm" : "gru") + " N" +
           std::to_string(batch) + " T" + std::to_string(steps) + " I" +
           std::to_string(inputs) + " H" + std::to_string(units);
  }
};

// Reads CELL,BATCH,STEPS,INPUTS,UNITS. Ends the process if `text` is another.
inline Case ParseCase(const std::string& text) {
  using tf_lstm_ops::CellKind;
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

// Values between -scale and scale, others in each call.
inline Values Random(int64_t size, float scale) {
  static std::mt19937 generator(1);
  std::uniform_real_distribution<float> values(-scale, scale);
  Values all(size);
  for (float& value : all) value = values(generator);
  return all;
}

// The inputs of a case: x [N, T, I], h_grad [N, T, H] and the weights, one
// after the other: [I, G, H], [H, G, H], and the two biases [G, H]. The gate
// order of an LSTM is i, c, f, o. The one of a GRU is reset, update, candidate.
struct Inputs {
  explicit Inputs(const Case& c)
      : x(Random(c.batch * c.steps * c.inputs, 1)),
        h_grad(Random(c.batch * c.steps * c.units, 1)),
        weights(Random((c.inputs + c.units + 2) * c.gates() * c.units, 0.05f)) {
  }

  Values x, h_grad, weights;
};

// The results of the passes, in the layouts of Inputs. The gradients of the
// two biases of an LSTM are equal.
struct Results {
  Values inferred_h, h, x_grad, weights_grad;
};

}  // namespace engine_benchmark

#endif  // TF_LSTM_OPS_BENCHMARKS_ENGINE_CASE_H_
