// LayerPass: the base of the forward and the backward pass of a layer
// direction. It has the sizes, launches kernels, and gives views of weights as
// matrices.
#ifndef TF_LSTM_OPS_BACKENDS_CUDA_FUSED_LAYER_PASS_H_
#define TF_LSTM_OPS_BACKENDS_CUDA_FUSED_LAYER_PASS_H_

#include "backends/cuda/fused/cell_kernels.h"
#include "backends/cuda/fused/persistent.h"
#include "backends/cuda/fused/products.h"
#include "backends/cuda/fused/tensors.h"
#include "backends/cuda/kernels/block.h"
#include "backends/cuda/kernels/step_arguments.h"
#include "core/layer_direction.h"

namespace tf_lstm_ops::cuda {

template <class T>
class LayerPass {
 protected:
  using C = ComputeType<T>;

  // Both must outlive this object.
  LayerPass(const Device& device, const LayerDirection<T>& layer)
      : device_(device),
        layer_(layer),
        rows_(layer.sequence.rows()),
        batch_(layer.sequence.batch),
        input_size_(layer.config.input_size),
        cell_size_(layer.config.cell_size),
        gates_(GateCount(layer.config.cell)),
        width_(gates_ * cell_size_) {}

  bool is_lstm() const { return IsLstm(layer_.config.cell); }
  bool is_gru() const { return layer_.config.cell == CellKind::kGru; }
  bool is_empty() const { return batch_ * cell_size_ == 0; }
  // Whether x and z_grad have rows that no step reads or writes.
  bool has_unread_rows() const {
    return rows_ > batch_ * layer_.sequence.steps;
  }

  // The parameters of the cell.
  CellArguments<T, C> Cell() const {
    CellArguments<T, C> cell;
    cell.cell_size = cell_size_;
    cell.gates = gates_;
    for (int gate = 0; gate < kMaxPreActivations; ++gate) {
      cell.block[gate] = layer_.config.gate_order.block[gate];
      cell.peephole[gate] = layer_.weights.peephole[gate];
    }
    cell.has_peephole = layer_.weights.has_peephole();
    cell.clip = static_cast<C>(layer_.config.cell_clip);
    cell.options = layer_.config.options;
    return cell;
  }

  // Launches a kernel of steps.cu with one thread for each element of [B, H].
  template <class Arguments>
  Status Launch(const char* kernel, const Arguments& arguments) const {
    if (is_empty()) return Status();
    CUfunction function = nullptr;
    TF_LSTM_OPS_RETURN_IF_ERROR(Find(kernel, &function));
    return device_.Launch(function, batch_ * cell_size_, arguments);
  }
  Status Find(const char* kernel, CUfunction* function) const {
    return FindCellKernel<T>(device_, layer_.config.cell, kernel, function);
  }

  // Launches a kernel of persistent.cu.
  template <class Arguments>
  Status LaunchPersistent(const char* kernel, const LaunchConfig& config,
                          const Arguments& arguments) const {
    const bool in_clusters = config.algorithm == Algorithm::kFusedClusters;
    CUfunction function = nullptr;
    TF_LSTM_OPS_RETURN_IF_ERROR(FindPersistentKernel<T>(
        device_, {layer_.config.cell, config.tiles, in_clusters}, kernel,
        &function));
    const LaunchShape shape = {config.groups * config.blocks,
                               config.warps * kWarp, config.shared_bytes};
    return in_clusters ? device_.LaunchInClusters(function, shape,
                                                  config.blocks, arguments)
                       : device_.LaunchCooperative(function, shape, arguments);
  }

  // The weights of all gates as one matrix [K, G*H], in the order of the
  // weights' blocks; or as one matrix [K, H] for each block.
  template <class E>
  Matrix<E> AllGates(const GateMatrices<E>& w, int64_t k) const {
    return {w.data, k, width_, w.row_stride, w.column_stride};
  }
  template <class E>
  Matrix<E> EachGate(const GateMatrices<E>& w, int64_t k) const {
    return {w.data,       k, cell_size_, w.row_stride, w.column_stride,
            w.gate_stride};
  }
  // Pre-activations [rows, G*H] as one matrix; or as one [rows, H] for each
  // block.
  template <class E>
  Matrix<E> AllPreActivations(E* data, int64_t rows) const {
    return {data, rows, width_, width_};
  }
  template <class E>
  Matrix<E> EachPreActivation(E* data, int64_t rows) const {
    return {data, rows, cell_size_, width_, 1, cell_size_};
  }

  // The rows that the gates read, after dropout: one set for each gate, or one
  // set for all gates.
  struct GateInputs {
    Matrix<const T> rows;
    int sets = 1;
  };
  // Sets `inputs` to `from`, [rows, width], after dropout. Without dropout this
  // is a view of `from` and no copy, unless `clears_unread` is set. In a copy,
  // rows that no step reads are zero. A copy belongs to the call.
  Status DropInputs(const Matrix<const T>& from, const Multipliers<T>& dropout,
                    bool clears_unread, GateInputs* inputs) const {
    return Drop(from, dropout, false, clears_unread, inputs);
  }
  // The same for states, which have one row for each row of the batch.
  Status DropStates(const Matrix<const T>& from, const Multipliers<T>& dropout,
                    GateInputs* inputs) const {
    return Drop(from, dropout, true, false, inputs);
  }

  // Sets `to` to a copy of a state [B, H] in the type of the computation. The
  // copy belongs to the call.
  Status Widen(const States<const T>& from, C** to) const {
    TF_LSTM_OPS_RETURN_IF_ERROR(device_.Allocate(batch_ * cell_size_, to));
    return Copy(device_, CopyRows<T, C>{batch_, cell_size_, from.data,
                                        from.stride, *to, cell_size_});
  }

  const Device& device_;
  const LayerDirection<T>& layer_;
  const int64_t rows_, batch_, input_size_, cell_size_;
  const int gates_;
  const int64_t width_;  // of the pre-activations, G*H

 private:
  Status Drop(const Matrix<const T>& from, const Multipliers<T>& dropout,
              bool by_batch, bool copies, GateInputs* inputs) const {
    *inputs = {from, dropout.sets(gates_)};
    if (!dropout.data && !copies) return Status();
    DropRows<T> a;
    a.sequence = layer_.sequence;
    a.rows = from.rows;
    a.width = from.columns;
    a.sets = inputs->sets;
    a.by_batch = by_batch;
    a.from = from.data;
    a.from_stride = from.row_stride;
    a.dropout = dropout;
    TF_LSTM_OPS_RETURN_IF_ERROR(
        device_.Allocate(a.sets * a.rows * a.width, &a.to));
    inputs->rows = {a.to, a.rows, a.width, a.width, 1, a.rows * a.width};
    return ComputeDropRows(device_, a);
  }
};

}  // namespace tf_lstm_ops::cuda

#endif  // TF_LSTM_OPS_BACKENDS_CUDA_FUSED_LAYER_PASS_H_
