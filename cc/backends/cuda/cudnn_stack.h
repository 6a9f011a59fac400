// CudnnStack: a call of the CudnnRNN family through cuDNN.
//
// All layers are one call of cuDNN's. With dropout each layer is a call of its
// own and this package drops in between: cuDNN's masks are its secret, ours can
// be drawn again, for second derivatives and on any device.
//
// reserve_space, in bytes, every part beginning at a multiple of 256:
//
//   header                   64 bytes, a cudnn_rnn::ReserveHeader
//   cuDNN's own reserve      of each of its calls
//   outputs of inner layers  with dropout, for each layer but the last, in
//                            cuDNN's type and layout
//
// with zeros in between.
#ifndef TF_LSTM_OPS_BACKENDS_CUDA_CUDNN_STACK_H_
#define TF_LSTM_OPS_BACKENDS_CUDA_CUDNN_STACK_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "backends/cuda/cudnn_batch.h"
#include "backends/cuda/cudnn_layers.h"
#include "dialects/cudnn_rnn/tensors.h"

namespace tf_lstm_ops::cuda {

template <class T>
class CudnnStack {
 public:
  using C = CudnnType<T>;

  // `mask` null: no dropout; its key is what the reserve's header says. A
  // backward pass takes the algorithm of its forward pass. The arguments must
  // outlive this object.
  CudnnStack(const cudnn_rnn::Problem& problem,
             const cudnn_rnn::DropoutMask* mask, cudnnRNNAlgo_t algorithm)
      : problem_(problem),
        model_(problem.model),
        mask_(mask),
        algorithm_(algorithm),
        batch_(problem) {}

  // What the call needs of cuDNN. Errors: FailedPrecondition where it is not
  // there; InvalidArgument for sizes that it cannot count; Unimplemented where
  // it has no such algorithm.
  Status Begin(const Device& device, bool is_training);

  int64_t reserve_size() const {  // in elements of T
    return (reserve_bytes_ + static_cast<int64_t>(sizeof(T)) - 1) /
           static_cast<int64_t>(sizeof(T));
  }

  // `reserve` null in inference. Its header is the caller's.
  Status Forward(const cudnn_rnn::ForwardTensors<T>& t);
  Status Backward(const cudnn_rnn::BackwardTensors<T>& t);

 private:
  // Layers that are one call of cuDNN's.
  struct Part {
    int64_t first = 0;
    std::shared_ptr<const CudnnLayers> layers;
    RnnDataDescriptor x, y;
    TensorDescriptor h, c;
    size_t workspace_bytes = 0, reserve_bytes = 0;
    int64_t reserve = 0;  // where cuDNN's begins
    int64_t inner = 0;    // where the outputs of an inner layer begin
  };
  // What cuDNN sees of the op's tensors.
  struct Inputs {
    const C *x, *hx, *cx, *params;
  };
  struct Gradients {
    const C *y, *dhy, *dcy;
    C *dx, *dhx, *dcx, *params;
  };

  Status CheckSizes() const;
  Status AddPart(int64_t first, int64_t count, const CudnnOptions& options,
                 bool is_training);
  void LayOutReserve();
  // Zeros between the parts.
  Status ClearGaps(char* reserve) const;

  bool is_lstm() const { return model_.cell == CellKind::kLstm; }
  bool IsLast(const Part& part) const { return &part == parts_.back().get(); }
  int64_t InnerSize() const {
    return batch_.SequenceSize(model_.output_size());
  }
  // Of a part, in what all layers have.
  template <class E>
  E* StatesOf(const Part& part, int64_t width, E* states) const {
    return states
               ? states + part.first * model_.directions * batch_.rows() * width
               : nullptr;
  }

  template <class Tensors>
  Status FetchInputs(const Tensors& t, Inputs* inputs) const;
  Status FetchParams(const T* params, const C** copy) const;
  Status ParamsFor(T* params, C** place) const;
  Status ParamsOut(const C* from, T* params) const;
  Status Weights(const Part& part, const C* params, const C** weights) const;
  Status MakeDropped(const Part& part, const char* reserve, const C* outputs,
                     const C** dropped) const;
  // The states of rows that cuDNN does not get pass from `from` to `to`.
  Status PassStates(const T* from_h, const T* from_c, T* to_h, T* to_c) const;

  Status RunForward(const Part& part, const Inputs& inputs, const C* x, C* y,
                    C* hy, C* cy, char* reserve) const;
  Status BackwardParts(const T* reserve, const Inputs& inputs, const C* dy,
                       const Gradients& g) const;
  Status RunBackward(const Part& part, const Inputs& inputs, const C* x,
                     const C* y, const C* dy, C* dx, const Gradients& g,
                     const char* kept) const;

  const cudnn_rnn::Problem& problem_;
  const RnnModel& model_;
  const cudnn_rnn::DropoutMask* mask_;
  const cudnnRNNAlgo_t algorithm_;
  CudnnBatch batch_;
  const Device* device_ = nullptr;
  const Cudnn* cudnn_ = nullptr;
  cudnnHandle_t handle_ = nullptr;
  std::vector<std::unique_ptr<Part>> parts_;
  int64_t reserve_bytes_ = 0;
  void* workspace_ = nullptr;
};

}  // namespace tf_lstm_ops::cuda

#endif  // TF_LSTM_OPS_BACKENDS_CUDA_CUDNN_STACK_H_
