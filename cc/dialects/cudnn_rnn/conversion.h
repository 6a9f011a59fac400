// The ops on the parameter buffer: its size, and the conversions between the
// buffer and lists of matrices and vectors.
#ifndef TF_LSTM_OPS_DIALECTS_CUDNN_RNN_CONVERSION_H_
#define TF_LSTM_OPS_DIALECTS_CUDNN_RNN_CONVERSION_H_

#include <cstdint>
#include <vector>

#include "core/params_layout.h"
#include "core/status.h"
#include "dialects/cudnn_rnn/problem.h"
#include "tf/kernel.h"

namespace tf_lstm_ops::cudnn_rnn {

// Sets model and layout from the first three inputs: num_layers, num_units and
// input_size, scalars in host memory. Errors: InvalidArgument.
Status MakeLayout(const Attributes& attributes, const tf::Tensors& inputs,
                  RnnModel* model, ParamsLayout* layout);

// The layout of one conversion. `weights` and `biases` are the regions of the
// buffer that hold the tensors of the canonical lists, by pseudo-layer, then by
// linear-layer ID.
struct Conversion {
  using Regions = std::vector<ParamsLayout::Region>;

  ParamsLayout layout;
  Regions weights, biases;
};

class ConversionAttributes {
 public:
  // Reads the attributes. Version 2 of the ops has projections and separate
  // numbers of weights and biases. Errors: those of GetAttr and
  // Attributes::Init.
  Status Init(const tf::KernelConstruction& construction, bool is_v2);

  // Sets `c` from the inputs of MakeLayout. Errors: those of MakeLayout, and
  // InvalidArgument where a list has the wrong length.
  Status Make(const tf::Tensors& inputs, Conversion* c) const;

 private:
  Attributes attributes_;
  int64_t weights_ = 0, biases_ = 0;
};

// Checks the tensors of a list, which CudnnRNNCanonicalToParams takes. As in
// stock TensorFlow, a tensor may have any shape with the right number of
// elements. Error: InvalidArgument.
Status CheckParts(const char* name, const Conversion::Regions& regions,
                  const std::vector<tf::Tensor>& parts);
// Checks the size of the buffer that CudnnRNNParamsToCanonical takes. Error:
// InvalidArgument.
Status CheckParams(const Conversion& c, const tf::Tensor& params);

// Registers the kernel of CudnnRNNParamsSize under our own name, and under the
// stock name with this priority. The kernel uses host memory on every device.
void RegisterOwnParamsSize(const char* device, TF_DataType type);
void RegisterStockParamsSize(const char* device, TF_DataType type,
                             int priority);

}  // namespace tf_lstm_ops::cudnn_rnn

#endif  // TF_LSTM_OPS_DIALECTS_CUDNN_RNN_CONVERSION_H_
