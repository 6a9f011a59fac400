// FrozenLayer: a layer direction whose weights do not change. They are packed
// once, and calls neither allocate memory nor look weights up.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_FROZEN_LAYER_H_
#define TF_LSTM_OPS_BACKENDS_CPU_FROZEN_LAYER_H_

#include <cstdint>
#include <memory>

#include "backends/cpu/engine.h"
#include "backends/cpu/memory/aligned_buffer.h"
#include "backends/cpu/memory/call_memory.h"
#include "core/layer_direction.h"
#include "core/packed_sequence.h"

namespace tf_lstm_ops::cpu {

class FrozenLayer {
 public:
  // Packs the weights. Their arrays must outlive the object. Throws
  // std::bad_alloc.
  FrozenLayer(const RnnConfig& config, const RnnWeights<const float>& weights);
  FrozenLayer(const FrozenLayer&) = delete;
  FrozenLayer& operator=(const FrozenLayer&) = delete;

  const RnnConfig& config() const { return config_; }

  // Computes the passes of `count` layers, 1 or kMaxTogether, as ComputeForward
  // does. The members config and weights of passes[k] are set to those of
  // layers[k]; nothing is saved. States must be given and contiguous: h0 and,
  // of an LSTM, c0. Thread-safe, with a `memory` for each thread. Once the
  // memory is large enough, a call allocates nothing; with one thread it takes
  // no lock. Throws std::bad_alloc.
  static void Run(const FrozenLayer* const* layers, LayerForward<float>* passes,
                  const PackedSequence* valid, int count, int threads,
                  CallMemory* memory);

  // The same for steps of a full batch, by a plan that the caller keeps. A plan
  // serves any number of calls with this batch and number of steps. `memory` is
  // the same in all calls of the layer.
  ForwardPlan PlanSteps(int64_t batch, int64_t steps, int threads,
                        CallMemory* memory) const;
  void RunSteps(const ForwardPlan& plan, const PackedSequence& valid,
                LayerForward<float>* pass, CallMemory* memory) const;

  // Steps of one row, where their plan is ForwardWay::kOneRow.
  int64_t row_floats() const { return row_.config.cell_size; }
  int64_t row_scratch() const { return RowScratch(row_); }
  // Computes them on the calling thread. The states have row_floats() elements;
  // those behind P and H are undefined. The scratch memory has row_scratch()
  // floats. The bits are those of Run. It allocates nothing, takes no lock and
  // makes no system call.
  void RunRow(const RowSteps& row) const { row_.run(row_, row); }

 private:
  const ForwardEngine<float>& engine() const { return engine_.forward; }
  LayerForward<float> LayerOf() const;
  // A pass that has no plan yet.
  PlannedForward<float> PassOf(const EngineForward<float>& layer) const;

  // A problem with the layer's format of packed weights.
  ForwardProblem ProblemOf(const EngineForward<float>& layer) const;

  const RnnConfig config_;
  const RnnWeights<const float> weights_;
  const Engine& engine_;
  const WeightFormat format_;
  std::unique_ptr<AlignedBuffer> packed_, row_arrays_;
  RowLayer row_;  // of passes of one row; its function is null without any
};

}  // namespace tf_lstm_ops::cpu

#endif  // TF_LSTM_OPS_BACKENDS_CPU_FROZEN_LAYER_H_
