// The layers and directions of a model of the CudnnRNN family as a graph.
#ifndef TF_LSTM_OPS_BACKENDS_METAL_CUDNN_STACK_H_
#define TF_LSTM_OPS_BACKENDS_METAL_CUDNN_STACK_H_

#include <cstdint>

#include "backends/metal/rnn.h"
#include "core/reserve.h"
#include "dialects/common/kernel_metal.h"
#include "dialects/cudnn_rnn/problem.h"

namespace tf_lstm_ops::metal {

// Where things stand in reserve_space, in elements:
//   of each pseudo-layer     what a step keeps, [rows,T,B,H], and h, [T,B,P]
//   which inner outputs are kept   [L-1,T,B,D*P], 1 or 0; with dropout only
//   a ReserveHeader                each of its bytes as a number
// Unlike on the CPU padding has its place, so that lengths are data of a graph
// and not a part of it.
class ReserveLayout {
 public:
  static constexpr int64_t kHeaderSize = sizeof(ReserveHeader);

  ReserveLayout(const MultiLayerRnn& problem, float dropout);

  int64_t steps_size() const { return steps_size_; }  // of one kept row
  int64_t h_size() const { return h_size_; }
  int64_t mask_size() const { return mask_size_; }
  int64_t Steps(int64_t pseudo_layer, int row) const {
    return pseudo_layer * (rows_ * steps_size_ + h_size_) + row * steps_size_;
  }
  int64_t H(int64_t pseudo_layer) const {
    return Steps(pseudo_layer, static_cast<int>(rows_));
  }
  int64_t Mask() const { return Steps(pseudo_layers_, 0); }
  int64_t size() const { return Mask() + mask_size_ + kHeaderSize; }

 private:
  int64_t pseudo_layers_, rows_, steps_size_, h_size_, mask_size_;
};

// Of a call whose arguments and results are those of the ops; `valid` [T,B,1]
// as Layer has it, `kept` [L-1,T,B,D*P] positive where an inner output is not
// dropped, or 1.
struct StackCall {
  const MultiLayerRnn& problem;
  float dropout;
  Value valid, kept;
};

// `header` as in the reserve; 0 where nothing is to be kept.
void BuildStack(const StackCall& call, const Value& header, Builder* b);
void BuildStackBackward(const StackCall& call, Builder* b);

}  // namespace tf_lstm_ops::metal

#endif  // TF_LSTM_OPS_BACKENDS_METAL_CUDNN_STACK_H_
