// CudnnStack: a call of the CudnnRNN family through cuDNN.
//
// All layers are one call of cuDNN's. With dropout each layer is a call of its
// own and this package drops in between: cuDNN's masks are its secret, ours can
// be drawn again, for second derivatives and on any device.
//
// reserve_space: the header, then for each of cuDNN's calls its own reserve,
// then, with dropout, for each layer but the last its outputs, in cuDNN's type
// and layout.
#ifndef TF_LSTM_OPS_BACKENDS_CUDA_CUDNN_MULTI_LAYER_H_
#define TF_LSTM_OPS_BACKENDS_CUDA_CUDNN_MULTI_LAYER_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "backends/cuda/cudnn/batch.h"
#include "backends/cuda/cudnn/layers.h"
#include "backends/cuda/multi_layer/multi_layer.h"

namespace tf_lstm_ops::cuda {

template <class T>
class CudnnStack : public Stack<T> {
 public:
  using C = CudnnType<T>;

  CudnnStack(const MultiLayerRnn& problem, const DropoutMask* mask,
             cudnnRNNAlgo_t algorithm)
      : problem_(problem),
        model_(problem.model),
        mask_(mask),
        algorithm_(algorithm),
        batch_(problem) {}

  Status Begin(const Device& device, bool is_training) override;
  int64_t reserve_bytes() const override { return reserve_.bytes(); }
  Status Forward(const MultiLayerForward<T>& t) override;
  Status Backward(const MultiLayerBackward<T>& t) override;

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

  const MultiLayerRnn& problem_;
  const RnnModel& model_;
  const DropoutMask* mask_;
  const cudnnRNNAlgo_t algorithm_;
  CudnnBatch batch_;
  const Device* device_ = nullptr;
  const Cudnn* cudnn_ = nullptr;
  cudnnHandle_t handle_ = nullptr;
  std::vector<std::unique_ptr<Part>> parts_;
  ReserveParts reserve_;
  void* workspace_ = nullptr;
};

}  // namespace tf_lstm_ops::cuda

#endif  // TF_LSTM_OPS_BACKENDS_CUDA_CUDNN_MULTI_LAYER_H_
