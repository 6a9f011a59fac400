// Runs layers and products with frozen weights of int8, and prints the bits of
// all results, for comparison between processors. It needs no input. Rows,
// threads and ways of one call must have the same results, which it checks.
//
// Usage: frozen_program
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

#include "backends/cpu/frozen_layer.h"
#include "backends/cpu/frozen_product.h"
#include "core/cell_shape.h"

namespace tf_lstm_ops {
namespace {

using Floats = std::vector<float>;

constexpr int64_t kBatch = 3, kSteps = 7;

// Integers and floats of them, so that each processor draws the same ones.
class Numbers {
 public:
  int Below(int bound) { return static_cast<int>(random_() % bound); }
  Floats Draw(int64_t size, float scale) {
    Floats drawn(size);
    for (float& x : drawn) {
      x = scale * static_cast<float>(Below(2001) - 1000) / 1000;
    }
    return drawn;
  }

 private:
  std::mt19937 random_{1};
};

// A matrix [depth, columns] of int8.
struct Int8Matrix {
  Int8Matrix(int64_t depth, int64_t columns, Numbers* numbers)
      : integers(depth * columns), scales(numbers->Draw(columns, 0.01F)) {
    for (int8_t& q : integers) {
      q = static_cast<int8_t>(numbers->Below(255) - 127);
    }
  }
  GateMatrices<const float> View(int gates, int64_t cell) const {
    GateMatrices<const float> view = ByInput<const float>(nullptr, gates, cell);
    view.int8 = integers.data();
    view.scales = scales.data();
    return view;
  }

  std::vector<int8_t> integers;
  Floats scales;
};

void Print(const char* name, const RnnConfig& config, const Floats& values) {
  std::printf("%s %d of %" PRId64 ", %" PRId64 ":", name,
              static_cast<int>(config.cell), config.cell_size,
              config.hidden_size);
  for (const float value : values) {
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    std::printf(" %08x", bits);
  }
  std::printf("\n");
}

void CheckSame(const float* a, const float* b, size_t count, const char* what) {
  if (std::memcmp(a, b, count * sizeof *a) == 0) return;
  std::fprintf(stderr, "the bits of %s differ\n", what);
  std::exit(1);
}

struct Layer {
  Layer(const RnnConfig& config, Numbers* numbers)
      : config(config),
        gates(GateCount(config.cell)),
        input(config.input_size, gates * config.cell_size, numbers),
        recurrent(config.hidden_size, gates * config.cell_size, numbers),
        projection(config.cell_size, config.hidden_size, numbers),
        bias(numbers->Draw(gates * config.cell_size, 1)),
        recurrent_bias(numbers->Draw(gates * config.cell_size, 1)),
        peephole(numbers->Draw(config.cell_size, 1)),
        x(numbers->Draw(kBatch * kSteps * config.input_size, 2)),
        h0(numbers->Draw(kBatch * config.hidden_size, 1)),
        c0(numbers->Draw(kBatch * config.cell_size, 1)) {}

  RnnWeights<const float> Weights() const {
    const int64_t cell = config.cell_size;
    RnnWeights<const float> weights;
    weights.input = input.View(gates, cell);
    weights.recurrent = recurrent.View(gates, cell);
    if (config.projected()) {
      weights.projection = projection.View(1, config.hidden_size);
    }
    weights.input_bias = bias.data();
    weights.recurrent_bias = recurrent_bias.data();
    if (config.cell == CellKind::kLstm) {
      for (const auto gate : {kGateI, kGateF, kGateO}) {
        weights.peephole[gate] = peephole.data();
      }
    }
    return weights;
  }

  // h [kSteps, batch, P] of the rows from `first` on.
  Floats Run(const cpu::FrozenLayer& frozen, int64_t first, int64_t batch,
             int threads) const {
    const int64_t inputs = config.input_size, hidden = config.hidden_size;
    Sequence sequence;
    sequence.batch = batch;
    sequence.time = sequence.steps = kSteps;
    sequence.time_major = true;
    const PackedSequence valid(sequence);
    Floats rows, h(kSteps * batch * hidden);
    for (int64_t t = 0; t < kSteps; ++t) {
      const float* from = &x[(t * kBatch + first) * inputs];
      rows.insert(rows.end(), from, from + batch * inputs);
    }
    LayerForward<float> pass;
    pass.sequence = sequence;
    pass.x = rows.data();
    pass.x_stride = inputs;
    pass.h0 = {h0.data() + first * hidden, hidden};
    if (CellShapeOf(config.cell).has_cell_state) {
      pass.c0 = {c0.data() + first * config.cell_size, config.cell_size};
    }
    pass.h = h.data();
    pass.h_stride = hidden;
    const cpu::FrozenLayer* const layers[] = {&frozen};
    cpu::CallMemory memory;
    cpu::FrozenLayer::Run(layers, &pass, &valid, 1, threads, &memory);
    return h;
  }

  void Compare() const {
    const RnnWeights<const float> weights = Weights();
    const cpu::FrozenLayer frozen(config, weights);
    const Floats all = Run(frozen, 0, kBatch, 1);
    const Floats threads = Run(frozen, 0, kBatch, 2);
    CheckSame(all.data(), threads.data(), all.size(), "two threads");
    const int64_t hidden = config.hidden_size;
    for (int64_t b = 0; b < kBatch; ++b) {
      const Floats row = Run(frozen, b, 1, 1);
      for (int64_t t = 0; t < kSteps; ++t) {
        CheckSame(&all[(t * kBatch + b) * hidden], &row[t * hidden], hidden,
                  "one row");
      }
    }
    Print("layer", config, all);
  }

  const RnnConfig config;
  const int gates;
  const Int8Matrix input, recurrent, projection;
  const Floats bias, recurrent_bias, peephole, x, h0, c0;
};

void RunProduct(int64_t depth, int64_t columns, Numbers* numbers) {
  const Int8Matrix weights(depth, columns, numbers);
  const Floats bias = numbers->Draw(columns, 1);
  const Floats x = numbers->Draw(kBatch * depth, 3);
  const cpu::FrozenProduct product(weights.View(1, columns), bias.data(), depth,
                                   columns);
  Floats scratch(kBatch * product.scratch_floats()), y(kBatch * columns);
  const float* rows[kBatch];
  for (int64_t r = 0; r < kBatch; ++r) rows[r] = &x[r * depth];
  product.Run(rows, kBatch, y.data(), columns, scratch.data());
  for (int64_t r = 0; r < kBatch; ++r) {
    Floats one(columns);
    product.Run(rows + r, 1, one.data(), columns, scratch.data());
    CheckSame(&y[r * columns], one.data(), columns, "one row of a product");
  }
  RnnConfig sizes;
  sizes.cell_size = depth;
  sizes.hidden_size = columns;
  Print("product", sizes, y);
}

void RunAll() {
  Numbers numbers;
  for (const auto cell : {CellKind::kLstm, CellKind::kGru,
                          CellKind::kResetBeforeGru, CellKind::kTanh}) {
    // In AVX2 on processors with AVX-512, odd, whole vectors, and large.
    for (const int64_t units : {5, 37, 64, 160}) {
      RnnConfig config;
      config.cell = cell;
      const int gates = GateCount(cell);
      config.gate_order = gates == 4   ? kOrderIFCO
                          : gates == 3 ? kOrderURN
                                       : kOrderSingle;
      config.input_size = 21;
      config.cell_size = config.hidden_size = units;
      Layer(config, &numbers).Compare();
      if (cell != CellKind::kLstm) continue;
      config.hidden_size = units / 2 + 1;
      config.cell_clip = 0.5;
      Layer(config, &numbers).Compare();
    }
  }
  RunProduct(1, 1, &numbers);
  RunProduct(130, 67, &numbers);
  RunProduct(1025, 200, &numbers);
}

}  // namespace
}  // namespace tf_lstm_ops

int main() {
  std::fprintf(stderr, "%s\n", tf_lstm_ops::SelectedInstructionSet().name);
  tf_lstm_ops::RunAll();
}
