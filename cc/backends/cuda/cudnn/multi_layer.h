// CudnnMultiLayer: a multi-layer RNN by cuDNN.
//
// Without dropout all layers are one call of cuDNN. With dropout each layer is
// a call of its own, and the dropout between them follows core/dropout_rule.h.
// The reason: second derivatives need the dropout masks, and cuDNN does not
// expose its own.
//
// The reserve is the header, then cuDNN's own reserve for each of its calls,
// then, with dropout, the output of each layer but the last in cuDNN's form
// (batch.h).
#ifndef TF_LSTM_OPS_BACKENDS_CUDA_CUDNN_MULTI_LAYER_H_
#define TF_LSTM_OPS_BACKENDS_CUDA_CUDNN_MULTI_LAYER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "backends/cuda/cudnn/batch.h"
#include "backends/cuda/cudnn/layer_group.h"
#include "backends/cuda/multi_layer/multi_layer.h"
#include "backends/cuda/multi_layer/reserve_parts.h"

namespace tf_lstm_ops::cuda {

template <class T>
class CudnnMultiLayer : public MultiLayerAlgorithm<T> {
 public:
  CudnnMultiLayer(const MultiLayerRnn& rnn, const DropoutMask* mask,
                  Algorithm algorithm)
      : rnn_(rnn),
        model_(rnn.model),
        mask_(mask),
        algorithm_(algorithm),
        batch_(rnn),
        parts_(algorithm, sizeof(T)) {}

  Status Begin(const Device& device, bool is_training) override;
  int64_t reserve_size() const override { return parts_.size(); }
  Status ComputeForward(const MultiLayerForward<T>& t) override;
  Status ComputeBackward(const MultiLayerBackward<T>& t) override;

 private:
  using C = CudnnType<T>;

  struct Group {
    std::unique_ptr<LayerGroup<C>> layers;
    int64_t reserve = 0;  // offset of cuDNN's reserve
    int64_t output = 0;   // offset of the output, of all groups but the last
  };

  Status CheckSizes() const;
  Status MakeGroups(bool is_training);
  void LayOutReserve();
  bool IsLast(size_t n) const { return n + 1 == groups_.size(); }

  // These copy a tensor only if its form differs from cuDNN's.
  template <class Tensors>
  Status ReadInputs(const Tensors& t, CudnnInputs<C>* inputs) const;
  Status ReadParams(const T* params, const C** copy) const;
  Status AllocateParams(T* params, C** to) const;
  Status WriteParams(const C* from, T* params) const;
  // If the batch has rows of length zero, copies the states h to to_h and c to
  // to_c, in all rows. cuDNN then overwrites the rows that it gets.
  Status PassStates(const States<const T>& h, const States<const T>& c, T* to_h,
                    T* to_c) const;

  Status ForwardGroups(const CudnnForward<C>& all, char* reserve) const;
  Status BackwardGroups(const CudnnBackward<C>& all, const char* reserve) const;
  // Sets `to` to a group's output, or its gradient, after dropout.
  Status ApplyDropout(const Group& group, const char* reserve, const C* from,
                      const C** to) const;

  const MultiLayerRnn& rnn_;
  const RnnModel& model_;
  const DropoutMask* const mask_;
  const Algorithm algorithm_;
  CudnnBatch batch_;
  const Device* device_ = nullptr;
  std::optional<CudnnCall> call_;
  std::vector<Group> groups_;  // none where all lengths are zero
  ReserveParts parts_;
  void* workspace_ = nullptr;
};

}  // namespace tf_lstm_ops::cuda

#endif  // TF_LSTM_OPS_BACKENDS_CUDA_CUDNN_MULTI_LAYER_H_
