// PackedLayer: the packed weights of a layer direction, for products. The
// sequence, the loop of one row and layers that keep their weights read them.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_SIMD_FORWARD_PACKED_LAYER_H_
#define TF_LSTM_OPS_BACKENDS_CPU_SIMD_FORWARD_PACKED_LAYER_H_

#include "backends/cpu/memory/scratch.h"
#include "backends/cpu/simd/vector/gemm.h"
#include "core/cell_shape.h"
#include "core/layer_direction.h"

namespace tf_lstm_ops::TF_LSTM_OPS_SIMD {

// Units [begin, end). With `reverse` the last vector of units is first.
struct Units {
  int64_t begin, end;
  bool reverse = false;
};

// The weights of a vector of units follow each other: W as [I, input parts,
// lanes], R as [P, recurrent parts, lanes], and of the second product [H,
// lanes]. As pairs of bfloat16 the first two have half as many rows; as quads
// of int8 all have Words(rows, format) rows. A part is a pre-activation.
template <class T>
struct PackedLayer {
  PackedLayer(const LayerDirection<T>& layer, WeightFormat format)
      : shape(CellShapeOf(layer.config.cell)),
        format(format),
        second_format(IsQuads(format) ? format : WeightFormat::kElements),
        input_size(layer.weights.input ? layer.config.input_size : 0),
        cell_size(layer.config.cell_size),
        hidden_size(layer.config.hidden_size),
        has_second(layer.config.projected() || shape.resets_before) {}

  // Assigns the arrays.
  void Place(cpu::Scratch<T>* memory) {
    const int64_t units = RoundUpToLanes<T>(cell_size);
    input = memory->Take(units * shape.input * Words(input_size, format));
    recurrent =
        memory->Take(units * shape.recurrent * Words(hidden_size, format));
    second = memory->Take(has_second ? RoundUpToLanes<T>(hidden_size) *
                                           Words(cell_size, second_format)
                                     : 0);
  }

  // Of the vector of units from u on.
  WeightColumns<T> Input(int64_t u) const {
    return {input + u * Words(input_size, format) * shape.input, input_size,
            format};
  }
  WeightColumns<T> Recurrent(int64_t u) const {
    return {recurrent + u * Words(hidden_size, format) * shape.recurrent,
            hidden_size, format};
  }
  WeightColumns<T> Second(int64_t u) const {
    return {second + u * Words(cell_size, second_format), cell_size,
            second_format};
  }

  const CellShape shape;
  const WeightFormat format, second_format;
  const int64_t input_size, cell_size, hidden_size;
  const bool has_second;
  T* input = nullptr;
  T* recurrent = nullptr;
  T* second = nullptr;
};

// One of the `parts` parts of a packed matrix: the matrix [depth, columns] in a
// block of `from`.
template <class T>
struct PackedPart {
  const GateMatrices<const T>& from;
  int block;
  int64_t depth, columns;
  T* packed;
  int parts;
  WeightFormat format;
};

template <class T>
void PackPart(const PackedPart<T>& part, const Units& units) {
  const int64_t u = units.begin, columns = Min(part.columns, units.end) - u;
  if (columns <= 0) return;
  const int64_t row = part.parts * kLanes<T>;
  const int64_t vector = Words(part.depth, part.format) * row;
  T* const to = part.packed + u / kLanes<T> * vector;
  if constexpr (std::is_same_v<T, float>) {
    if (part.from.int8) {
      const int64_t first = part.block * part.from.gate_stride + u;
      return PackQuads(part.from.int8 + first, part.from.scales + first,
                       part.from.row_stride, part.depth, columns,
                       {to, row, vector, part.format});
    }
  }
  part.from.Read(part.block, [&](const auto* data) {
    PackVectors(
        PackedFrom{data + u * part.from.column_stride, part.from.row_stride,
                   part.from.column_stride, part.depth, columns},
        PackedTo<T>{to, row, vector}, part.format);
  });
}

// Packs the weights of some units; the first one is a multiple of kLanes.
template <class T>
void Pack(const LayerDirection<T>& layer, const PackedLayer<T>& to,
          const Units& units) {
  const RnnWeights<const T>& w = layer.weights;
  const auto& block = layer.config.gate_order.block;
  for (int p = 0; w.input && p < to.shape.input; ++p) {
    PackPart<T>({w.input, block[p], to.input_size, to.cell_size,
                 to.input + p * kLanes<T>, to.shape.input, to.format},
                units);
  }
  for (int p = 0; p < to.shape.recurrent; ++p) {
    PackPart<T>({w.recurrent, block[to.shape.first_recurrent + p],
                 to.hidden_size, to.cell_size, to.recurrent + p * kLanes<T>,
                 to.shape.recurrent, to.format},
                units);
  }
  if (!to.has_second) return;
  const bool projected = layer.config.projected();
  PackPart<T>(
      {projected ? w.projection : w.recurrent, projected ? 0 : block[kGateN],
       to.cell_size, to.hidden_size, to.second, 1, to.second_format},
      units);
}

// Packs all weights, unless `packed` is null. Returns the number of elements.
template <class T>
int64_t PackAll(const LayerDirection<T>& layer, WeightFormat format,
                T* packed) {
  PackedLayer<T> to(layer, format);
  cpu::Scratch<T> memory(packed);
  to.Place(&memory);
  if (packed) Pack(layer, to, {0, RoundUpToLanes<T>(to.cell_size)});
  return memory.used();
}

// The sums of the biases of pre-activation `part` from unit u on, with the
// forget bias. A layer-normalised cell adds its biases later.
template <class T>
TF_LSTM_OPS_INLINE VecT<T> BiasOf(const LayerDirection<T>& layer,
                                  const CellShape& shape, int part, int64_t u) {
  if (shape.reduces_rows) return VecT<T>{};
  const int64_t cell_size = layer.config.cell_size;
  const int64_t at = layer.config.gate_order.block[part] * cell_size + u;
  const auto load = [&](const T* bias, bool has_part) {
    return bias && has_part ? LoadN(bias + at, cell_size - u) : VecT<T>{};
  };
  VecT<T> bias =
      load(layer.weights.input_bias, part < shape.input) +
      load(layer.weights.recurrent_bias, part >= shape.first_recurrent);
  if (shape.has_forget_bias && part == kGateF) {
    bias = bias + static_cast<T>(layer.config.forget_bias);
  }
  return bias;
}

}  // namespace tf_lstm_ops::TF_LSTM_OPS_SIMD

#endif  // TF_LSTM_OPS_BACKENDS_CPU_SIMD_FORWARD_PACKED_LAYER_H_
