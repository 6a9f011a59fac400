// ForwardWeights: the packed weights of a forward pass.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_SIMD_FORWARD_WEIGHTS_H_
#define TF_LSTM_OPS_BACKENDS_CPU_SIMD_FORWARD_WEIGHTS_H_

#include "backends/cpu/engine.h"
#include "backends/cpu/simd/cells.h"
#include "backends/cpu/simd/gemm.h"
#include "backends/cpu/simd/scratch.h"

namespace tf_lstm_ops::TF_LSTM_OPS_SIMD {

template <class T>
class ForwardWeights {
 public:
  ForwardWeights(const EngineForward<T>& args, const CellShape& shape)
      : args_(args),
        shape_(shape),
        input_(args.config.input_size),
        cell_(args.config.cell_size),
        hidden_(args.config.hidden_size),
        format_(FormatOf(args.config.bfloat16)) {}

  WeightFormat format() const { return format_; }

  // Assigns the memory. Call it before the functions below.
  void Place(Scratch<T>* memory) {
    const int64_t padded = RoundUpToLanes<T>(cell_);
    packed_input_ = memory->Take(
        args_.weights.input ? shape_.input * padded * Words(input_) : 0);
    packed_recurrent_ =
        memory->Take(shape_.recurrent * padded * Words(hidden_));
    packed_projection_ = memory->Take(
        args_.config.projected() ? RoundUpToLanes<T>(hidden_) * cell_ : 0);
  }

  // Packs the weights of units [u, u_end); u is a multiple of kLanes.
  void Pack(int64_t u, int64_t u_end) const {
    const RnnWeights<const T>& from = args_.weights;
    if (from.input) {
      PackGates(from.input, 0, shape_.input, input_, u, u_end, packed_input_);
    }
    PackGates(from.recurrent, shape_.first_recurrent, shape_.recurrent, hidden_,
              u, u_end, packed_recurrent_);
    if (!args_.config.projected() || u >= hidden_) return;
    const GateMatrices<const T>& w = from.projection;
    w.Read(0, [&](const auto* data) {
      PackVectors(PackedFrom{data + u * w.column_stride, w.row_stride,
                             w.column_stride, cell_, Min(hidden_, u_end) - u},
                  PackedTo<T>{packed_projection_ + u * cell_, kL, kL * cell_},
                  WeightFormat::kElements);
    });
  }

  // The packed weights of the vector of units from u on: [I, input parts,
  // lanes], [P, recurrent parts, lanes] and [H, lanes]. In another format than
  // kElements the first two have fewer rows.
  const T* input(int64_t u) const {
    return packed_input_ + u * Words(input_) * shape_.input;
  }
  const T* recurrent(int64_t u) const {
    return packed_recurrent_ + u * Words(hidden_) * shape_.recurrent;
  }
  const T* projection(int64_t u) const {
    return packed_projection_ + u * cell_;
  }

 private:
  static constexpr int64_t kL = kLanes<T>;

  int64_t Words(int64_t depth) const {
    return TF_LSTM_OPS_SIMD::Words(depth, format_);
  }

  void PackGates(const GateMatrices<const T>& from, int first, int parts,
                 int64_t depth, int64_t u, int64_t u_end, T* packed) const {
    const int64_t vector = Words(depth) * parts * kL;
    for (int p = 0; p < parts; ++p) {
      from.Read(
          args_.config.gate_order.block[first + p], [&](const auto* data) {
            PackVectors(
                PackedFrom{data + u * from.column_stride, from.row_stride,
                           from.column_stride, depth, Min(cell_, u_end) - u},
                PackedTo<T>{packed + u / kL * vector + p * kL, parts * kL,
                            vector},
                format_);
          });
    }
  }

  const EngineForward<T>& args_;
  const CellShape shape_;
  const int64_t input_, cell_, hidden_;
  const WeightFormat format_;
  T* packed_input_ = nullptr;
  T* packed_recurrent_ = nullptr;
  T* packed_projection_ = nullptr;
};

}  // namespace tf_lstm_ops::TF_LSTM_OPS_SIMD

#endif  // TF_LSTM_OPS_BACKENDS_CPU_SIMD_FORWARD_WEIGHTS_H_
