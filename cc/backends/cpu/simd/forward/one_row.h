// OneRow: the steps of one row of the batch on one thread. There are no phases
// and no packed rows: a loop over the steps computes all units of a step, some
// vectors of units at a time.
//
// The bits are those of ForwardStep: each pre-activation is the bias, plus the
// chains of x W, plus those of h_prev R.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_SIMD_FORWARD_ONE_ROW_H_
#define TF_LSTM_OPS_BACKENDS_CPU_SIMD_FORWARD_ONE_ROW_H_

#include <algorithm>
#include <cassert>
#include <utility>

#include "backends/cpu/engine.h"
#include "backends/cpu/simd/forward/packed_layer.h"
#include "backends/cpu/simd/vector/cell.h"

namespace tf_lstm_ops::TF_LSTM_OPS_SIMD {

using cpu::Scratch;

// Vectors of units whose sums are in registers together; README.md, "One row",
// has the reasons. A pair has two multiply-adds, so two vectors hide the
// latency.
constexpr int kRowVectors = kRegisters == 32 && !kDotsPairs ? 4 : 2;
constexpr int kFarRowVectors = 2;  // with weights that exceed the L1 cache

// The fewest features for which x W of kRowChunk steps together is faster than
// a product in each step.
constexpr int64_t kMinChunkInputs = 8;

// Calls f(r, c), of type integral_constant<int, .>, for R x C elements. A
// compiler keeps arrays in registers whose indices it knows from the start.
template <int C, class F, int... k>
TF_LSTM_OPS_INLINE void ForEach(const F& f, std::integer_sequence<int, k...>) {
  (f(std::integral_constant<int, k / C>(),
     std::integral_constant<int, k % C>()),
   ...);
}
template <int R, int C, class F>
TF_LSTM_OPS_INLINE void ForEach(const F& f) {
  ForEach<C>(f, std::make_integer_sequence<int, R * C>());
}

template <class Cell>
struct OneRow {
  using V = VecT<float>;
  // A word of the weights, and of what is multiplied with them.
  using Factor = std::conditional_t<kDotsPairs, BFloat16Pair, float>;
  static constexpr int kL = kLanes<float>;
  static constexpr int kParts = Cell::kPreActivations;
  static constexpr int kInputs = Cell::kInputPreActivations;
  static constexpr int kFirstRecurrent = Cell::kFirstRecurrent;
  static constexpr int kRecurrent = Cell::kRecurrentPreActivations;

  static void Run(const RowLayer& layer, const RowSteps& row) {
    const int64_t padded = layer.config.cell_size;
    const bool chunks =
        row.steps >= kRows && layer.config.input_size >= kMinChunkInputs;
    const Factors factors(layer, row);
    const float* z = factors.z;
    const float* h = row.h;
    // A step that computes all units at once may overwrite h.
    float* next = padded <= layer.vectors * kL ? row.h : row.scratch;
    for (int64_t t = 0; t < row.steps; ++t) {
      const int64_t in_chunk = t % kRowChunk;
      if (chunks && in_chunk == 0) StoreInputProduct(layer, row, t, factors);
      const float* x = chunks ? nullptr : factors.X(row, t, 0);
      Step(layer, x, chunks ? z + in_chunk * kInputs * padded : nullptr, h,
           factors.H(h), next, row.c, row.reverse != (t % 2 == 1));
      float* y = row.y + t * row.y_stride;
      for (int64_t u = 0; u < padded; u += kL) {
        StoreN(Load(next + u), y + u, layer.units - u);
      }
      if (next == h) continue;
      h = std::exchange(next, next == row.h ? row.scratch : row.h);
    }
    if (h != row.h) std::copy(h, h + padded, row.h);
  }

 private:
  // The rows that the products read, x and h, rounded or not, and z of a chunk
  // of steps, [steps, H' / lanes, kInputs, lanes].
  struct Factors {
    Factors(const RowLayer& layer, const RowSteps& row)
        : layer(layer),
          z(row.scratch + layer.config.cell_size),
          h(z + kRowChunk * kMaxPreActivations * layer.config.cell_size),
          x(h + FactorWords(layer.config.hidden_size, layer.format)) {}

    // x of step t, which is kept in place k if it is rounded.
    const float* X(const RowSteps& row, int64_t t, int64_t k) const {
      const float* from = row.x + t * row.x_stride;
      const int64_t width = layer.config.input_size;
      if (!RoundsFactors(layer.format)) return from;
      float* to = x + k * FactorWords(width, layer.format);
      RoundFactor(from, width, layer.format, to);
      return to;
    }
    const float* H(const float* from) const {
      if (!RoundsFactors(layer.format)) return from;
      RoundFactor(from, layer.config.hidden_size, layer.format, h);
      return h;
    }

    const RowLayer& layer;
    float *z, *h, *x;
  };

  // z = x W + bias of a chunk of steps from `first` on.
  static void StoreInputProduct(const RowLayer& layer, const RowSteps& row,
                                int64_t first, const Factors& factors) {
    const int64_t inputs = layer.config.input_size;
    const int64_t words = Words(inputs, layer.format);
    const int64_t padded = layer.config.cell_size;
    const int64_t end = Min(first + kRowChunk, row.steps);
    const float* x[kRowChunk];
    for (int64_t t = first; t < end; ++t) {
      x[t - first] = factors.X(row, t, t - first);
    }
    for (int64_t u = 0; u < padded; u += kL) {
      for (int64_t t = first; t < end; t += kRows) {
        const int64_t rows = Min(end - t, kRows);
        V sums[kMostRows][kInputs];
        for (int64_t r = 0; r < rows; ++r) {
          for (int p = 0; p < kInputs; ++p) sums[r][p] = Bias(layer, p, u);
        }
        MultiplyRows<kInputs>(
            FactorRows<float>{x + t - first, rows},
            WeightColumns<float>{layer.packed_input + u * words * kInputs,
                                 inputs, layer.format},
            sums);
        for (int64_t r = 0; r < rows; ++r) {
          float* to = factors.z + ((t - first + r) * padded + u) * kInputs;
          for (int p = 0; p < kInputs; ++p) Store(sums[r][p], to + p * kL);
        }
      }
    }
  }

  static TF_LSTM_OPS_INLINE V Bias(const RowLayer& layer, int part, int64_t u) {
    return Load(layer.bias + part * layer.config.cell_size + u);
  }

  // One step. z is x W + bias; null: the step computes it from x. The product
  // reads h, which is h_prev, rounded or not. `next` may be h_prev if the step
  // computes all units together.
  static TF_LSTM_OPS_INLINE void Step(const RowLayer& layer, const float* x,
                                      const float* z, const float* h_prev,
                                      const float* h, float* next, float* c,
                                      bool reverse) {
    const int64_t vectors = layer.config.cell_size / kL;
    int64_t groups = CeilDiv(vectors, layer.vectors);
    for (int64_t v = 0; v < vectors; --groups) {
      const int64_t count = CeilDiv(vectors - v, groups);
      kStepOfUnits[count - 1](layer, x, z, h_prev, h, next, c,
                              (reverse ? vectors - v - count : v) * kL);
      v += count;
    }
  }

  // Not inlined, so that the loop over the steps has few variables.
  template <int kVectors>
  static TF_LSTM_OPS_NOINLINE void StepOfUnits(const RowLayer& layer,
                                               const float* x, const float* z,
                                               const float* h_prev,
                                               const float* h, float* next,
                                               float* c, int64_t u) {
    const int64_t inputs = layer.config.input_size;
    V sums[kVectors][kParts];
    ForEach<kVectors, kParts>([&](auto v, auto p) TF_LSTM_OPS_LAMBDA {
      sums[v][p] = z && p < kInputs ? Load(z + (u + v * kL) * kInputs + p * kL)
                                    : Bias(layer, p, u + v * kL);
    });
    if (!z) {
      AddProduct<kVectors, 0, kInputs>(layer, x, inputs, layer.packed_input, u,
                                       sums);
    }
    AddProduct<kVectors, kFirstRecurrent, kRecurrent>(
        layer, h, layer.config.hidden_size, layer.packed_recurrent, u, sums);
    ApplyCell<kVectors>(layer, sums, h_prev, next, c, u);
  }

  // sums[v][kFirst...] += a B of kC pre-activations, for the vectors of units
  // from u on.
  template <int kVectors, int kFirst, int kC>
  static TF_LSTM_OPS_INLINE void AddProduct(const RowLayer& layer,
                                            const float* a, int64_t depth,
                                            const float* packed, int64_t u,
                                            V (&sums)[kVectors][kParts]) {
    const int64_t words = Words(depth, layer.format) * kC;
    const int64_t distance = words * kL;  // of vectors of units
    const float* weights = packed + u * words;
    if constexpr (kHasQuads && kVectors <= kFarRowVectors) {
      if (IsQuads(layer.format)) {
        V some[kVectors][kC] = {};
        MultiplyQuadsOfRow<kVectors, kC>(a, {weights, depth, distance},
                                         layer.format, some[0]);
        ForEach<kVectors, kC>([&](auto v, auto p) TF_LSTM_OPS_LAMBDA {
          sums[v][kFirst + p] = sums[v][kFirst + p] + some[v][p];
        });
        return;
      }
    }
    const int64_t count = kDotsPairs ? Words(depth, layer.format) : depth;
    for (int64_t begin = 0; begin < count; begin += kChain) {
      const int64_t end = Min(begin + kChain, count);
      V chain[kVectors][kC];
      ForEach<kVectors, kC>([&](auto v, auto p)
                                TF_LSTM_OPS_LAMBDA { chain[v][p] = V{}; });
      for (int64_t k = begin; k < end; ++k) {
        const VecT<Factor> value =
            Broadcast(reinterpret_cast<const Factor*>(a)[k]);
        const auto* row =
            reinterpret_cast<const Factor*>(weights) + k * kC * kL;
        ForEach<kVectors, kC>([&](auto v, auto p) TF_LSTM_OPS_LAMBDA {
          const VecT<Factor> column = Load(row + v * distance + p * kL);
          chain[v][p] = Fma(value, column, chain[v][p]);
        });
      }
      ForEach<kVectors, kC>([&](auto v, auto p) TF_LSTM_OPS_LAMBDA {
        sums[v][kFirst + p] = sums[v][kFirst + p] + chain[v][p];
      });
    }
  }

  // By kVectors - 1.
  static constexpr decltype(&StepOfUnits<1>) kStepOfUnits[] = {
      &StepOfUnits<1>, &StepOfUnits<2>, &StepOfUnits<Min(3, kRowVectors)>,
      &StepOfUnits<kRowVectors>};

  // The cell's equations, in two halves as in ForwardStep::ApplyCell.
  template <int kVectors>
  static TF_LSTM_OPS_INLINE void ApplyCell(const RowLayer& layer,
                                           const V (&z)[kVectors][kParts],
                                           const float* h_prev, float* next,
                                           float* c, int64_t u) {
    const float* states = Cell::kHasCellState ? c : h_prev;
    V state[kVectors];
    typename Cell::Outputs y[kVectors];
    ForEach<kVectors, 1>([&](auto v, auto) TF_LSTM_OPS_LAMBDA {
      const ParametersAt<float, Cell> with(layer, u + v * kL);
      state[v] = Cell::kHasState ? Load(states + u + v * kL) : V{};
      y[v] = Cell::Gates(z[v], state[v], with.get());
    });
    ForEach<kVectors, 1>([&](auto v, auto) TF_LSTM_OPS_LAMBDA {
      const ParametersAt<float, Cell> with(layer, u + v * kL);
      Cell::Output(z[v], state[v], with.get(), &y[v]);
      if constexpr (Cell::kHasCellState) {
        Store(y[v].*Cell::kState, c + u + v * kL);
      }
      Store(y[v].h, next + u + v * kL);
    });
  }
};

// Null for a cell that OneRow does not serve.
inline RowFunction RowFunctionOf(CellKind cell) {
  return WithCell<VecMath<float>>(cell, [](auto of) {
    using Cell = typename decltype(of)::Cell;
    RowFunction run = nullptr;
    if constexpr (!Cell::kReducesRows && !Cell::kResetsBefore && !kTiles) {
      run = &OneRow<Cell>::Run;
    }
    return run;
  });
}

// Sets `row` to a layer with these packed weights. Its arrays are taken from
// `scratch`; one without memory only counts them.
inline void SetRowLayer(const LayerDirection<float>& layer,
                        const PackedLayer<float>& packed,
                        Scratch<float>* scratch, RowLayer* row) {
  const CellShape& shape = packed.shape;
  const int64_t cell_size = layer.config.cell_size;
  const int64_t padded = RoundUpToLanes<float>(cell_size);
  row->run = RowFunctionOf(layer.config.cell);
  row->config = layer.config;
  row->config.cell_size = padded;
  row->units = cell_size;
  const int64_t bytes = padded * shape.recurrent *
                        Words(packed.hidden_size, packed.format) *
                        static_cast<int64_t>(sizeof(float));
  row->format = packed.format;
  row->vectors = bytes <= cpu::TheCaches().l1 && !IsQuads(packed.format)
                     ? kRowVectors
                     : kFarRowVectors;
  row->packed_input = packed.input;
  row->packed_recurrent = packed.recurrent;
  // An array [parts, H'] of vector(part, u).
  const auto make = [&](int parts, const auto& vector) {
    float* to = scratch->Take(parts * padded);
    for (int p = 0; to && p < parts; ++p) {
      for (int64_t u = 0; u < padded; u += kLanes<float>) {
        Store(vector(p, u), to + p * padded + u);
      }
    }
    return to;
  };
  row->bias = make(shape.pre_activations, [&](int p, int64_t u) {
    return BiasOf(layer, shape, p, u);
  });
  for (int p = 0; p < kMaxPreActivations; ++p) {
    const float* from = layer.weights.peephole[p];
    if (!from) continue;
    row->weights.peephole[p] =
        make(1, [&](int, int64_t u) { return LoadN(from + u, cell_size - u); });
  }
}

// As Engine::set_row_layer.
inline int64_t SetRowLayer(const LayerDirection<float>& layer,
                           WeightFormat format, float* packed, float* memory,
                           RowLayer* row) {
  PackedLayer<float> weights(layer, format);
  Scratch<float> kept(packed), scratch(memory);
  weights.Place(&kept);
  SetRowLayer(layer, weights, &scratch, row);
  return scratch.used();
}

// A pass by OneRow of a call. Its arrays are in scratch memory; without memory
// they are only counted.
struct RowPass {
  RowPass(const PlannedForward<float>& pass, float* memory)
      : args(*pass.layer), packed(args, pass.plan.format), scratch(memory) {
    Scratch<float> kept(pass.packed);
    packed.Place(pass.packed ? &kept : &scratch);
    SetRowLayer(args, packed, &scratch, &layer);
    row.h = scratch.Take(layer.config.cell_size);
    row.c = scratch.Take(layer.config.cell_size);
    row.scratch = scratch.Take(RowScratch(layer));
  }

  const EngineForward<float>& args;
  PackedLayer<float> packed;
  Scratch<float> scratch;
  RowLayer layer;
  RowSteps row;
};

// Floats of scratch memory.
inline int64_t RowMemory(const PlannedForward<float>& pass) {
  return RowPass(pass, nullptr).scratch.used();
}

// Where the steps are, and the initial states.
inline void SetSteps(RowPass* pass) {
  const EngineForward<float>& args = pass->args;
  const PackedSequence& valid = *args.valid;
  RowSteps& row = pass->row;
  const PackedRow first = valid.At(0);
  row.steps = valid.steps;
  row.x = args.x + first.input * args.x_stride;
  row.y = args.h + first.output * args.h_stride;
  if (row.steps > 1) {
    const PackedRow second = valid.At(1);
    row.x_stride = (second.input - first.input) * args.x_stride;
    row.y_stride = (second.output - first.output) * args.h_stride;
  }
  for (int64_t u = 0; u < pass->layer.config.cell_size; u += kLanes<float>) {
    const int64_t width = args.config.cell_size - u;
    Store(LoadN(args.h0.data + u, width), row.h + u);
    if (pass->packed.shape.has_cell_state) {
      Store(LoadN(args.c0.data + u, width), row.c + u);
    }
  }
}

inline void RunOneRow(const PlannedForward<float>* planned, int count,
                      cpu::CallMemory* memory) {
  assert(count == 1);
  static_cast<void>(count);
  void* scratch = memory->Get(RowMemory(*planned) * sizeof(float));
  RowPass pass(*planned, static_cast<float*>(scratch));
  if (!planned->is_packed) {
    Pack(pass.args, pass.packed, {0, pass.layer.config.cell_size});
  }
  SetSteps(&pass);
  pass.layer.run(pass.layer, pass.row);
  if (pass.packed.shape.has_cell_state && pass.args.final_c.data) {
    std::copy_n(pass.row.c, pass.layer.units, pass.args.final_c.data);
  }
}

}  // namespace tf_lstm_ops::TF_LSTM_OPS_SIMD

#endif  // TF_LSTM_OPS_BACKENDS_CPU_SIMD_FORWARD_ONE_ROW_H_
